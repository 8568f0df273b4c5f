/* SPDX-License-Identifier: MIT */
/* Listening TCP sockets: one for each worker on the same port. */
#include "listen/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
  struct sockaddr any;
  struct sockaddr_in in;
  struct sockaddr_in6 in6;
};

static socklen_t
read_address(const char *text, uint16_t port, union address *out)
{
  memset(out, 0, sizeof *out);
  if (inet_pton(AF_INET, text, &out->in.sin_addr) == 1) {
    out->in.sin_family = AF_INET;
    out->in.sin_port = htons(port);
    return sizeof out->in;
  }
  if (inet_pton(AF_INET6, text, &out->in6.sin6_addr) == 1) {
    out->in6.sin6_family = AF_INET6;
    out->in6.sin6_port = htons(port);
    return sizeof out->in6;
  }
  return 0;
}

static bool
is_loopback(const union address *address)
{
  if (address->any.sa_family == AF_INET)
    return ntohl(address->in.sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
}

static int
set(int fd, int level, int option)
{
  int one = 1;

  return setsockopt(fd, level, option, &one, sizeof one);
}

/* A bound socket; -1 with errno. TCP_NODELAY and SO_KEEPALIVE pass on to what it accepts. */
static int
bind_one(const union address *address, socklen_t len, bool shared)
{
  int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int saved;

  if (fd < 0)
    return -1;
  if (set(fd, SOL_SOCKET, SO_REUSEADDR) == 0 &&
      (!shared || set(fd, SOL_SOCKET, SO_REUSEPORT) == 0) &&
      (address->any.sa_family != AF_INET6 || set(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 0) &&
      set(fd, IPPROTO_TCP, TCP_NODELAY) == 0 && set(fd, SOL_SOCKET, SO_KEEPALIVE) == 0 &&
      bind(fd, &address->any, len) == 0)
    return fd;
  saved = errno;
  close(fd);
  errno = saved;
  return -1;
}

/* Sockets with SO_REUSEPORT would share the port with another gateway's that was started by
 * mistake: one without it finds that out. */
static bool
is_taken(const union address *address, socklen_t len)
{
  int fd = bind_one(address, len, false);

  if (fd < 0)
    return errno == EADDRINUSE;
  close(fd);
  return false;
}

static int
complain(const struct listener *listener, const char *what)
{
  egw_log(EGW_ERROR, "listen", "%s: %s: %s", listener->name, what, strerror(errno));
  return -1;
}

static void
set_name(struct listener *listener)
{
  const struct conf_listener *conf = listener->conf;
  bool six = strchr(conf->address, ':') != NULL;

  if (conf->name != NULL)
    snprintf(listener->name, sizeof listener->name, "%s", conf->name);
  else
    snprintf(listener->name, sizeof listener->name, "%s%s%s:%u", six ? "[" : "", conf->address,
             six ? "]" : "", (unsigned)listener->port);
}

/* The port that the kernel chose, for the sockets that follow. */
static int
learn_port(struct listener *listener, union address *address, socklen_t len)
{
  if (getsockname(listener->fds[0], &address->any, &len) != 0)
    return complain(listener, "getsockname");
  listener->port = ntohs(address->any.sa_family == AF_INET ? address->in.sin_port
                                                           : address->in6.sin6_port);
  set_name(listener);
  return 0;
}

static int
open_tcp(struct listener *listener, unsigned count)
{
  const struct conf_listener *conf = listener->conf;
  union address address;
  socklen_t len = read_address(conf->address, (uint16_t)conf->port, &address);

  listener->port = (uint16_t)conf->port;
  set_name(listener);
  if (len == 0) {
    egw_log(EGW_ERROR, "listen", "%s: not an IP address", listener->name);
    return -1;
  }
  listener->local = is_loopback(&address);
  if (conf->port != 0 && is_taken(&address, len)) {
    errno = EADDRINUSE;
    return complain(listener, "bind");
  }
  for (unsigned i = 0; i < count; i++) {
    listener->fds[i] = bind_one(&address, len, count > 1);
    if (listener->fds[i] < 0)
      return complain(listener, "bind");
    listener->fd_count = i + 1;
    if (i == 0 && learn_port(listener, &address, len) != 0)
      return -1;
  }
  /* Not before all are bound: connections are spread over those that listen. */
  for (unsigned i = 0; i < count; i++)
    if (listen(listener->fds[i], LISTEN_BACKLOG) != 0)
      return complain(listener, "listen");
  return 0;
}

int
sockets_open(struct listener *listener, unsigned count)
{
  if (listener->conf->path != NULL)
    count = 1;
  listener->fds = malloc(count * sizeof *listener->fds);
  if (listener->fds == NULL) {
    egw_log(EGW_ERROR, "listen", "out of memory");
    return -1;
  }
  if (listener->conf->path == NULL)
    return open_tcp(listener, count);
  snprintf(listener->name, sizeof listener->name, "%s",
           listener->conf->name != NULL ? listener->conf->name : listener->conf->path);
  listener->local = true;
  return sockets_open_unix(listener);
}

void
sockets_close(struct listener *listener)
{
  for (unsigned i = 0; i < listener->fd_count; i++)
    if (listener->fds[i] >= 0)
      close(listener->fds[i]);
  listener->fd_count = 0;
  free(listener->fds);
  listener->fds = NULL;
  sockets_remove_unix(listener);
}
