/* SPDX-License-Identifier: MIT */
/* The gate's lists: whether a Host or an Origin is one of the listener's own.
 *
 * Entries of listener->hosts are "name", good with the listener's port or none, or
 * "name:port", good with that port only (and without one when it is a scheme's default). Names
 * compare whole and without case; IPv6 literals by their bytes. "*" lets every well-formed
 * Host in. */
#include "listen/gate.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* A Host value taken apart. */
struct authority {
  struct egw_slice name;   /* with the brackets of an IPv6 literal */
  bool literal6;
  unsigned char address[16];
  unsigned port;           /* 0: none */
};

static bool
read_port(const char *p, size_t len, unsigned *port)
{
  unsigned n = 0;

  if (len == 0 || len > 5)
    return false;
  for (size_t i = 0; i < len; i++) {
    if (p[i] < '0' || p[i] > '9')
      return false;
    n = n * 10 + (unsigned)(p[i] - '0');
  }
  *port = n;
  return n > 0 && n <= 65535;
}

static bool
read_literal6(struct egw_slice name, unsigned char address[16])
{
  char text[INET6_ADDRSTRLEN];

  if (name.len < 4 || name.len - 2 >= sizeof text)
    return false;
  memcpy(text, name.ptr + 1, name.len - 2);
  text[name.len - 2] = '\0';
  return inet_pton(AF_INET6, text, address) == 1;
}

/* RFC 3986 3.2.2, without percent-encoding: names here are DNS names and IP literals. */
static bool
is_name(struct egw_slice name)
{
  for (size_t i = 0; i < name.len; i++) {
    char c = name.ptr[i];

    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
          c == '-' || c == '.' || c == '_'))
      return false;
  }
  return name.len > 0 && name.len <= 253;
}

static bool
read_authority(struct egw_slice text, struct authority *out)
{
  const char *end, *colon;

  *out = (struct authority){ .port = 0 };
  if (text.len > 0 && text.ptr[0] == '[') {
    end = memchr(text.ptr, ']', text.len);
    if (end == NULL)
      return false;
    out->name = (struct egw_slice){ text.ptr, (size_t)(end - text.ptr) + 1 };
    out->literal6 = true;
    if (!read_literal6(out->name, out->address))
      return false;
  } else {
    colon = text.len == 0 ? NULL : memchr(text.ptr, ':', text.len);
    out->name = text;
    if (colon != NULL)
      out->name.len = (size_t)(colon - text.ptr);
    if (!is_name(out->name))
      return false;
  }
  if (out->name.len == text.len)
    return true;
  if (text.ptr[out->name.len] != ':')
    return false;
  return read_port(text.ptr + out->name.len + 1, text.len - out->name.len - 1, &out->port);
}

static bool
port_fits(const struct listener *listener, unsigned entry, unsigned asked)
{
  if (entry == 0)
    return asked == 0 || asked == listener->port;
  return asked == entry || (asked == 0 && (entry == 80 || entry == 443));
}

static bool
entry_fits(const struct listener *listener, const char *text, const struct authority *asked)
{
  struct authority entry;
  unsigned port = 0;
  const char *rest;

  if (asked->literal6)
    return read_authority((struct egw_slice){ text, strlen(text) }, &entry) && entry.literal6 &&
           memcmp(entry.address, asked->address, sizeof entry.address) == 0 &&
           port_fits(listener, entry.port, asked->port);
  if (strncasecmp(text, asked->name.ptr, asked->name.len) != 0)
    return false;
  rest = text + asked->name.len;
  if (*rest != '\0' && (*rest != ':' || !read_port(rest + 1, strlen(rest + 1), &port)))
    return false;
  return port_fits(listener, port, asked->port);
}

bool
gate_host_allowed(const struct listener *listener, struct egw_slice host)
{
  struct authority asked;

  if (!read_authority(host, &asked))
    return false;
  for (size_t i = 0; i < listener->hosts.n; i++)
    if (strcmp(listener->hosts.v[i], "*") == 0 ||
        entry_fits(listener, listener->hosts.v[i], &asked))
      return true;
  return false;
}

/* Whole and without case: browsers write scheme and host in lower case (RFC 6454 6.1). "null"
 * stands for any page of unknown origin, so that no entry but "*" means it. */
bool
gate_origin_allowed(const struct listener *listener, struct egw_slice origin)
{
  const struct egw_strings *list = &listener->conf->origins;
  bool opaque = origin.len == 4 && strncasecmp(origin.ptr, "null", 4) == 0;

  for (size_t i = 0; i < list->n; i++) {
    size_t len = strlen(list->v[i]);

    if (strcmp(list->v[i], "*") == 0)
      return true;
    if (len > 0 && list->v[i][len - 1] == '/')
      len--;
    if (!opaque && origin.len == len && len > 0 &&
        strncasecmp(origin.ptr, list->v[i], len) == 0)
      return true;
  }
  return false;
}
