/* SPDX-License-Identifier: MIT */
/* See proxies.h. Elements are read from left to right, since quotes can't be read otherwise; the
 * last one that is no proxy's is then the first from the right. */
#include "listen/proxies.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "listen/gate.h"

struct proxies {
  size_t count;
  struct net_block blocks[];
};

struct proxies *
proxies_new(const struct egw_strings *list)
{
  struct proxies *proxies = calloc(1, sizeof *proxies + list->n * sizeof *proxies->blocks);

  if (proxies == NULL)
    return NULL;
  for (size_t i = 0; i < list->n; i++)
    if (net_read_block(list->v[i], &proxies->blocks[proxies->count]) == 0)
      proxies->count++;
  return proxies;
}

void
proxies_free(struct proxies *proxies)
{
  free(proxies);
}

static bool
is_proxy(const struct proxies *proxies, const struct net_address *address)
{
  for (size_t i = 0; i < proxies->count; i++)
    if (net_in_block(address, &proxies->blocks[i]))
      return true;
  return false;
}

/* --- the walk ------------------------------------------------------------------------- */

enum finding {
  FOUND_NOTHING,   /* no element yet */
  FOUND_PROXIES,   /* so far all are proxies; `address` is the leftmost */
  FOUND_CLIENT,
  FOUND_UNKNOWN    /* behind the last proxy is somebody without an address */
};

struct walk {
  const struct proxies *proxies;
  bool sent;                   /* the header is there */
  enum finding finding;
  struct net_address address;
};

/* The next element to the right; NULL: it has no address. */
static void
step(struct walk *walk, const struct net_address *address)
{
  if (address == NULL) {
    walk->finding = FOUND_UNKNOWN;
    return;
  }
  if (!is_proxy(walk->proxies, address))
    walk->finding = FOUND_CLIENT;
  else if (walk->finding == FOUND_NOTHING)
    walk->finding = FOUND_PROXIES;
  else
    return;
  walk->address = *address;
}

static bool
has_address(const struct walk *walk)
{
  return walk->finding == FOUND_CLIENT || walk->finding == FOUND_PROXIES;
}

/* --- parts of a value ----------------------------------------------------------------- */

static struct egw_slice
trim(struct egw_slice text)
{
  while (text.len > 0 && (text.ptr[0] == ' ' || text.ptr[0] == '\t')) {
    text.ptr++;
    text.len--;
  }
  while (text.len > 0 && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\t'))
    text.len--;
  return text;
}

/* Bytes up to `mark`, or all. Quoted strings (RFC 9110 5.6.4) are passed over whole; one without
 * an end takes the rest. */
static size_t
part_length(struct egw_slice text, char mark)
{
  bool quoted = false;
  size_t i;

  for (i = 0; i < text.len; i++) {
    char c = text.ptr[i];

    if (c == '"')
      quoted = !quoted;
    else if (quoted && c == '\\')
      i++;
    else if (!quoted && c == mark)
      return i;
  }
  return text.len;
}

/* Cuts the first part off. false: there is no more. */
static bool
next_part(struct egw_slice *rest, char mark, bool quotes, struct egw_slice *part)
{
  const char *found;
  size_t len;

  if (rest->ptr == NULL)
    return false;
  found = quotes || rest->len == 0 ? NULL : memchr(rest->ptr, mark, rest->len);
  len = quotes          ? part_length(*rest, mark)
        : found != NULL ? (size_t)(found - rest->ptr)
                        : rest->len;
  *part = trim((struct egw_slice){ rest->ptr, len });
  if (len < rest->len)
    *rest = (struct egw_slice){ rest->ptr + len + 1, rest->len - len - 1 };
  else
    *rest = (struct egw_slice){ NULL, 0 };
  return true;
}

/* RFC 7239 6: ":" and digits, or a made-up name. "" is no port and right. */
static bool
is_port(struct egw_slice text)
{
  bool name = text.len > 1 && text.ptr[1] == '_';

  if (text.len == 0)
    return true;
  if (text.ptr[0] != ':' || text.len < 2 || (name ? text.len < 3 : text.len > 6))
    return false;
  for (size_t i = name ? 2 : 1; i < text.len; i++) {
    char c = text.ptr[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
                  c == '-';

    if (!(c >= '0' && c <= '9') && !(name && letter))
      return false;
  }
  return true;
}

/* A node with an address: IPv4, or IPv6 in brackets, each with or without a port. */
static bool
read_node(struct egw_slice node, struct net_address *address)
{
  bool six = node.len > 0 && node.ptr[0] == '[';
  const char *end = node.len == 0 ? NULL : memchr(node.ptr, six ? ']' : ':', node.len);
  struct egw_slice text = node, port = { NULL, 0 };

  if (six && end == NULL)
    return false;
  if (end != NULL)
    text.len = (size_t)(end - node.ptr);
  if (six) {
    text.ptr++;
    text.len--;
    end++;
  }
  if (end != NULL)
    port = (struct egw_slice){ end, node.len - (size_t)(end - node.ptr) };
  if (six != (text.len > 0 && memchr(text.ptr, ':', text.len) != NULL))
    return false;
  return is_port(port) && net_read(text, address) == 0;
}

/* --- X-Forwarded-For ------------------------------------------------------------------ */

/* Not standardised: addresses, also IPv6 without brackets, sometimes with ports. */
static void
read_list(struct walk *walk, struct egw_slice value)
{
  struct net_address address;
  struct egw_slice part;

  walk->sent = true;
  while (next_part(&value, ',', false, &part))
    if (part.len > 0)
      step(walk, read_node(part, &address) || net_read(part, &address) == 0 ? &address : NULL);
}

/* --- Forwarded ------------------------------------------------------------------------ */

/* Takes the quotes off; false: it is not one quoted string. Escapes stay: there are none in
 * an address. */
static bool
unquote(struct egw_slice *value)
{
  for (size_t i = 1; i < value->len; i++) {
    if (value->ptr[i] == '\\') {
      i++;
    } else if (value->ptr[i] == '"') {
      if (i + 1 < value->len)
        return false;
      *value = (struct egw_slice){ value->ptr + 1, value->len - 2 };
      return true;
    }
  }
  return false;
}

/* RFC 7239 4: token "=" ( token / quoted-string ). */
static bool
read_pair(struct egw_slice pair, struct egw_slice *name, struct egw_slice *value)
{
  const char *equal = pair.len == 0 ? NULL : memchr(pair.ptr, '=', pair.len);

  if (equal == NULL)
    return false;
  *name = (struct egw_slice){ pair.ptr, (size_t)(equal - pair.ptr) };
  *value = (struct egw_slice){ equal + 1, pair.len - name->len - 1 };
  if (!gate_is_token(*name))
    return false;
  return value->len > 0 && value->ptr[0] == '"' ? unquote(value) : gate_is_token(*value);
}

/* The address in the one "for" of an element. */
static bool
read_element(struct egw_slice element, struct net_address *address)
{
  struct egw_slice pair, name, value, node = { NULL, 0 };

  while (next_part(&element, ';', true, &pair)) {
    if (pair.len == 0)
      continue;
    if (!read_pair(pair, &name, &value))
      return false;
    if (name.len != 3 || strncasecmp(name.ptr, "for", 3) != 0)
      continue;
    if (node.ptr != NULL)
      return false;
    node = value;
  }
  return node.ptr != NULL && read_node(node, address);
}

static void
read_forwarded(struct walk *walk, struct egw_slice value)
{
  struct net_address address;
  struct egw_slice part;

  walk->sent = true;
  while (next_part(&value, ',', true, &part))
    if (part.len > 0)
      step(walk, read_element(part, &address) ? &address : NULL);
}

/* --- both ----------------------------------------------------------------------------- */

static bool
is_named(const struct gate_header *h, const char *name)
{
  return h->name.len == strlen(name) && strncasecmp(h->name.ptr, name, h->name.len) == 0;
}

void
proxies_ask(const struct proxies *proxies, const struct sockaddr_storage *peer,
            const struct gate_head *head, struct client_facts *facts)
{
  struct walk forwarded = { .proxies = proxies }, list = { .proxies = proxies };
  const struct walk *one = &forwarded;
  struct net_address address;

  if (proxies == NULL || !net_of_socket(peer, &address) || !is_proxy(proxies, &address))
    return;
  for (size_t i = 0; i < head->header_count; i++) {
    if (is_named(&head->headers[i], "forwarded"))
      read_forwarded(&forwarded, head->headers[i].value);
    else if (is_named(&head->headers[i], "x-forwarded-for"))
      read_list(&list, head->headers[i].value);
  }
  facts->forwarded = forwarded.sent || list.sent;
  if (!forwarded.sent)
    one = &list;
  else if (list.sent && (!has_address(&list) || !net_same(&list.address, &forwarded.address)))
    return;
  if (facts->forwarded && has_address(one))
    net_print(&one->address, facts->peer);
}
