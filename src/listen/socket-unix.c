/* SPDX-License-Identifier: MIT */
/* Listening unix sockets. Who can open the path can use the gateway, so its mode is right from
 * the first instant, and nothing but a dead socket of our own is ever replaced. */
#include "listen/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int
complain(const struct listener *listener, const char *why)
{
  egw_log(EGW_ERROR, "listen", "%s: %s", listener->conf->path, why);
  return -1;
}

static int
read_path(const struct listener *listener, struct sockaddr_un *un)
{
  size_t len = strlen(listener->conf->path);

  memset(un, 0, sizeof *un);
  un->sun_family = AF_UNIX;
  if (len == 0)
    return complain(listener, "the path is empty");
  if (len >= sizeof un->sun_path) {
    egw_log(EGW_ERROR, "listen", "%s: the path is too long: %zu bytes, at most %zu",
            listener->conf->path, len, sizeof un->sun_path - 1);
    return -1;
  }
  memcpy(un->sun_path, listener->conf->path, len);
  return 0;
}

static int
read_mode(const struct listener *listener, mode_t *mode)
{
  const char *text = listener->conf->mode == NULL ? "0600" : listener->conf->mode;
  char *end;
  unsigned long n;

  errno = 0;
  n = strtoul(text, &end, 8);
  if (errno != 0 || end == text || *end != '\0' || n > 0777)
    return complain(listener, "the mode is not an octal number up to 0777");
  *mode = (mode_t)n;
  return 0;
}

static int
read_group(const struct listener *listener, bool *given, gid_t *gid)
{
  struct group group, *found = NULL;
  char text[4096];

  *given = listener->conf->group != NULL;
  if (!*given)
    return 0;
  if (getgrnam_r(listener->conf->group, &group, text, sizeof text, &found) != 0 ||
      found == NULL)
    return complain(listener, "no such group");
  *gid = group.gr_gid;
  return 0;
}

/* Whether somebody answers at the path. */
static bool
is_alive(const struct sockaddr_un *un)
{
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  bool refused;

  if (fd < 0)
    return true;
  refused = connect(fd, (const struct sockaddr *)(const void *)un, sizeof *un) != 0 &&
            errno == ECONNREFUSED;
  close(fd);
  return !refused;
}

/* Takes a dead socket of an earlier run out of the way. */
static int
clear_path(const struct listener *listener, const struct sockaddr_un *un)
{
  struct stat st;

  if (lstat(un->sun_path, &st) != 0)
    return errno == ENOENT ? 0 : complain(listener, strerror(errno));
  if (!S_ISSOCK(st.st_mode))
    return complain(listener, "the path exists and is not a socket");
  if (st.st_uid != geteuid())
    return complain(listener, "the path is a socket of another user");
  if (is_alive(un))
    return complain(listener, "the socket is in use by another process");
  if (unlink(un->sun_path) != 0)
    return complain(listener, strerror(errno));
  egw_log(EGW_INFO, "listen", "%s: replaced the socket of an earlier run", un->sun_path);
  return 0;
}

/* What identifies the socket at the path; false: none is there. */
static bool
identify(const char *path, struct socket_file *file)
{
  struct statx st;

  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &st) != 0 ||
      !S_ISSOCK(st.stx_mode))
    return false;
  file->device = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
  file->inode = st.stx_ino;
  file->born_ns = 0; /* where the file system does not know */
  if (st.stx_mask & STATX_BTIME)
    file->born_ns = (uint64_t)st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
  return true;
}

/* The mode is given by the umask, since the path can be connected to as soon as it is there.
 * With a group, others than the owner get in only after the group is right. */
static int
bind_with_mode(struct listener *listener, int fd, const struct sockaddr_un *un)
{
  mode_t mode = 0, old;
  gid_t gid = 0;
  bool group;
  int rc;

  if (read_mode(listener, &mode) != 0 || read_group(listener, &group, &gid) != 0)
    return -1;
  old = umask(0777 & ~(group ? mode & 0700 : mode));
  rc = bind(fd, (const struct sockaddr *)(const void *)un, sizeof *un);
  umask(old);
  if (rc != 0)
    return complain(listener, strerror(errno));
  if (!identify(un->sun_path, &listener->file))
    return complain(listener, "the socket has disappeared");
  if (!group)
    return 0;
  if (lchown(un->sun_path, (uid_t)-1, gid) != 0)
    return complain(listener, strerror(errno));
  if (fchmodat(AT_FDCWD, un->sun_path, mode, AT_SYMLINK_NOFOLLOW) != 0)
    return complain(listener, strerror(errno));
  return 0;
}

int
sockets_open_unix(struct listener *listener)
{
  struct sockaddr_un un;
  int fd;

  if (read_path(listener, &un) != 0 || clear_path(listener, &un) != 0)
    return -1;
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return complain(listener, strerror(errno));
  listener->fds[0] = fd;
  listener->fd_count = 1;
  if (bind_with_mode(listener, fd, &un) != 0)
    return -1;
  if (listen(fd, LISTEN_BACKLOG) != 0)
    return complain(listener, strerror(errno));
  return 0;
}

void
sockets_remove_unix(struct listener *listener)
{
  struct socket_file now;

  if (listener->file.inode == 0)
    return;
  if (identify(listener->conf->path, &now) && now.device == listener->file.device &&
      now.inode == listener->file.inode && now.born_ns == listener->file.born_ns)
    unlink(listener->conf->path);
  listener->file.inode = 0;
}
