/* SPDX-License-Identifier: MIT */
/* Binding: ports and hosts of TCP listeners, the file of a unix listener. */
#include "listen/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "listen/parts.h"
#include "../lib/http-kit.h"
#include "../lib/tap.h"

static char folder[] = "/tmp/listen-sockets-XXXXXX";

static void
path_of(char *out, size_t cap, const char *name)
{
  snprintf(out, cap, "%s/%s", folder, name);
}

static bool
open_conf(struct listeners *listeners, struct conf_listener *one, unsigned workers)
{
  struct conf conf = { .listeners = one, .listener_count = 1 };

  return listen_open(listeners, &conf, workers) == 0;
}

/* --- TCP ------------------------------------------------------------------------------ */

static bool
allows(const struct listener *listener, const char *host)
{
  return gate_host_allowed(listener, (struct egw_slice){ host, strlen(host) });
}

static void
test_tcp(void)
{
  static const char *const names[] = { "gw.example" };
  struct conf_listener conf = { .address = "127.0.0.1", .http = true };
  struct listeners listeners, second;
  struct listener *l;

  ok(open_conf(&listeners, &conf, 3), "a port for three workers");
  l = &listeners.v[0];
  ok(l->port != 0 && l->fd_count == 3 && l->local,
     "the kernel's choice, three sockets, local");
  ok(strncmp(l->name, "127.0.0.1:", 10) == 0, "named %s", l->name);
  ok(allows(l, "localhost") && allows(l, "127.0.0.1") && !allows(l, "gw.example"),
     "its hosts");
  conf.port = l->port;
  ok(!open_conf(&second, &conf, 3), "the port can't be had twice");
  listen_close(&listeners);
  ok(open_conf(&listeners, &conf, 1), "but again");
  listen_close(&listeners);
  conf = (struct conf_listener){ .address = "127.0.0.2", .hosts = { names, 1 } };
  ok(open_conf(&listeners, &conf, 1), "another address");
  ok(allows(&listeners.v[0], "127.0.0.2") && allows(&listeners.v[0], "gw.example") &&
         !allows(&listeners.v[0], "127.0.0.3"),
     "is one of its hosts, and so are configured ones");
  listen_close(&listeners);
  conf = (struct conf_listener){ .address = "0.0.0.0" };
  ok(open_conf(&listeners, &conf, 1), "any address");
  ok(!listeners.v[0].local && allows(&listeners.v[0], "127.0.0.1") &&
         !allows(&listeners.v[0], "0.0.0.0"),
     "is not local, and not a host");
  listen_close(&listeners);
  conf = (struct conf_listener){ .address = "example.com" };
  ok(!open_conf(&listeners, &conf, 1), "a name is not an address");
  conf = (struct conf_listener){ .address = "192.0.2.1" };
  ok(!open_conf(&listeners, &conf, 1), "nor is one of another machine");
}

static void
test_tcp6(void)
{
  struct conf_listener conf = { .address = "::1" };
  struct listeners listeners;

  if (!open_conf(&listeners, &conf, 2)) {
    tap_skip("no IPv6 here");
    return;
  }
  ok(listeners.v[0].local && strncmp(listeners.v[0].name, "[::1]:", 6) == 0, "IPv6: %s",
     listeners.v[0].name);
  listen_close(&listeners);
}

/* --- unix ----------------------------------------------------------------------------- */

static unsigned
mode_of(const char *path)
{
  struct stat st;

  return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_mode & 07777 : 0;
}

static bool
can_connect(const char *path)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool yes;

  snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
  yes = connect(fd, (struct sockaddr *)(void *)&un, sizeof un) == 0;
  close(fd);
  return yes;
}

static void
test_unix(void)
{
  char path[128], other[128], text[256];
  struct conf_listener conf = { .path = path };
  struct listeners listeners, second;
  FILE *file;

  path_of(path, sizeof path, "gw.ipc");
  path_of(other, sizeof other, "other");
  ok(open_conf(&listeners, &conf, 4), "a unix socket");
  is_int(listeners.v[0].fd_count, 1, "one for all workers");
  is_int(mode_of(path), 0600, "for its owner");
  ok(can_connect(path), "answers");
  ok(!open_conf(&second, &conf, 1), "one that is in use is left alone");
  ok(can_connect(path), "and goes on");
  listen_close(&listeners);
  is_int(mode_of(path), 0, "it goes at the end");
  conf.mode = "0666";
  ok(open_conf(&listeners, &conf, 1), "another mode");
  is_int(mode_of(path), 0666, "whatever the umask");
  close(listeners.v[0].fds[0]);
  listeners.v[0].fds[0] = -1; /* as after a crash: the file stays */
  ok(!can_connect(path) && open_conf(&second, &conf, 1), "a dead socket is replaced");
  listen_close(&listeners);
  ok(can_connect(path), "closing the old one does not take the new one's file");
  listen_close(&second);
  conf.mode = "rw";
  ok(!open_conf(&listeners, &conf, 1), "a mode must be a number");
  conf.mode = "1777";
  ok(!open_conf(&listeners, &conf, 1), "of permissions");
  conf.mode = NULL;
  conf.group = "no-such-group";
  ok(!open_conf(&listeners, &conf, 1), "a group must be there");
  is_int(mode_of(path), 0, "nothing is left of that");
  conf.group = NULL;
  file = fopen(path, "we");
  fputs("precious", file);
  fclose(file);
  ok(!open_conf(&listeners, &conf, 1), "a file is not replaced");
  file = fopen(path, "re");
  ok(file != NULL && fgets(text, sizeof text, file) != NULL && strcmp(text, "precious") == 0,
     "nor touched");
  fclose(file);
  unlink(path);
  ok(symlink(other, path) == 0 && !open_conf(&listeners, &conf, 1),
     "a symbolic link is not followed");
  is_int(mode_of(other), 0, "nor is what it names made");
  unlink(path);
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  conf.path = text;
  ok(!open_conf(&listeners, &conf, 1), "a path that is too long");
}

static void
test_group(void)
{
  char path[128];
  struct conf_listener conf = { .path = path, .mode = "0660", .group = "daemon" };
  struct listeners listeners;
  struct stat st;

  path_of(path, sizeof path, "group.ipc");
  if (geteuid() != 0 || !open_conf(&listeners, &conf, 1)) {
    tap_skip("only root can give a socket to the group daemon");
    return;
  }
  ok(mode_of(path) == 0660 && lstat(path, &st) == 0 && st.st_gid != 0, "a group may use it");
  listen_close(&listeners);
}

int
main(void)
{
  if (mkdtemp(folder) == NULL)
    abort();
  test_tcp();
  test_tcp6();
  test_unix();
  test_group();
  rmdir(folder);
  return done_testing();
}
