/* SPDX-License-Identifier: MIT */
/* See route.h. */
#include "listen/route.h"

#include "gateway/gateway.h"
#include "listen/gate.h"

#define KEY_MAX 256

/* RFC 3986 2.3: bytes that mean the same encoded or not, so that nobody on the way changes
 * the key. */
static bool
is_key(struct egw_slice text)
{
  if (text.len == 0 || text.len > KEY_MAX)
    return false;
  for (size_t i = 0; i < text.len; i++) {
    char c = text.ptr[i];

    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
          c == '.' || c == '_' || c == '~' || c == '-'))
      return false;
  }
  return true;
}

/* Cuts the last segment off. */
static struct egw_slice
cut_last(struct egw_slice *path)
{
  struct egw_slice last = *path;
  size_t from;

  while (path->len > 0 && path->ptr[path->len - 1] == '/')
    path->len--;
  for (from = path->len; from > 0 && path->ptr[from - 1] != '/'; from--)
    ;
  last.ptr = path->ptr + from;
  last.len = path->len - from;
  path->len = from;
  return last;
}

struct network *
route_path(struct gateway *gateway, const struct listener *listener, struct egw_slice path,
           struct egw_slice *key)
{
  struct network *network = gateway_network(gateway, path.ptr, path.len);
  struct egw_slice rest = path, last;

  *key = (struct egw_slice){ NULL, 0 };
  if (network != NULL || !listener->conf->key_in_path)
    return network;
  last = cut_last(&rest);
  if (!is_key(last) || gateway_network(gateway, last.ptr, last.len) != NULL)
    return NULL;
  network = gateway_network(gateway, rest.ptr, rest.len);
  if (network != NULL)
    *key = last;
  return network;
}

struct network *
route_head(struct gateway *gateway, const struct listener *listener, struct gate_head *head)
{
  return route_path(gateway, listener, gate_path(head->target), &head->path_key);
}
