/* SPDX-License-Identifier: MIT */
/* See hosts.h. */
#include "listen/hosts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int
add(struct listener *listener, const char *text)
{
  size_t n = listener->hosts.n;
  const char **v;
  char *copy = strdup(text);

  /* The array is this module's own; the struct shows it as constant. */
  v = copy == NULL ? NULL : realloc((void *)listener->hosts.v, (n + 1) * sizeof *v);
  if (v == NULL) {
    free(copy);
    return -1;
  }
  v[n] = copy;
  listener->hosts.v = v;
  listener->hosts.n = n + 1;
  return 0;
}

/* An IP address as it stands in a Host. */
static int
add_address(struct listener *listener, int family, const void *address)
{
  char text[INET6_ADDRSTRLEN], literal[INET6_ADDRSTRLEN + 2];

  if (inet_ntop(family, address, text, sizeof text) == NULL)
    return 0;
  snprintf(literal, sizeof literal, family == AF_INET6 ? "[%s]" : "%s", text);
  return add(listener, literal);
}

static int
add_interfaces(struct listener *listener, int family)
{
  struct ifaddrs *all, *i;
  int rc = 0;

  if (getifaddrs(&all) != 0)
    return 0;
  for (i = all; i != NULL && rc == 0; i = i->ifa_next) {
    if (i->ifa_addr == NULL || i->ifa_addr->sa_family != family)
      continue;
    if (family == AF_INET)
      rc = add_address(listener, family,
                       &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr);
    else
      rc = add_address(listener, family,
                       &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr);
  }
  freeifaddrs(all);
  return rc;
}

static int
add_bound(struct listener *listener)
{
  const struct conf_listener *conf = listener->conf;
  static const unsigned char any[16];
  unsigned char address[16] = { 0 };
  bool four;

  if (conf->address == NULL)
    return 0;
  four = inet_pton(AF_INET, conf->address, address) == 1;
  if (!four && inet_pton(AF_INET6, conf->address, address) != 1)
    return 0;
  if (memcmp(address, any, four ? 4 : 16) != 0)
    return add_address(listener, four ? AF_INET : AF_INET6, address);
  if (conf->hosts.n > 0)
    return 0;
  return add_interfaces(listener, four ? AF_INET : AF_INET6);
}

int
hosts_make(struct listener *listener)
{
  static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]" };
  int rc = 0;

  for (size_t i = 0; i < 3 && rc == 0; i++)
    rc = add(listener, loopback[i]);
  if (rc == 0)
    rc = add_bound(listener);
  for (size_t i = 0; i < listener->conf->hosts.n && rc == 0; i++)
    rc = add(listener, listener->conf->hosts.v[i]);
  if (rc != 0)
    egw_log(EGW_ERROR, "listen", "%s: out of memory", listener->name);
  return rc;
}

void
hosts_free(struct listener *listener)
{
  for (size_t i = 0; i < listener->hosts.n; i++)
    free((void *)listener->hosts.v[i]);
  free((void *)listener->hosts.v);
  listener->hosts = (struct egw_strings){ NULL, 0 };
}
