/* SPDX-License-Identifier: MIT */
/* The gate, second half: what a well-formed head may say. Framing by RFC 9112 6 without its
 * leniencies, the WebSocket handshake by RFC 6455 4.2.1, and who may ask: Host against DNS
 * rebinding, Origin and Sec-Fetch-Site against other sites' pages. gate-names.c has the
 * lists. */
#include "listen/gate.h"

#include <string.h>
#include <strings.h>

/* What is looked for in the fields, with how often it was there. */
struct facts {
  struct egw_slice length, coding, expect, site, ws_version;
  unsigned hosts, origins, lengths, codings, types, expects, sites, ws_versions, ws_keys;
  unsigned kept[GATE_FIELDS];
  bool upgrade_websocket, connection_upgrade;
};

static bool
equals(struct egw_slice a, const char *b)
{
  return a.len == strlen(b) && strncasecmp(a.ptr, b, a.len) == 0;
}

/* Whether the comma-separated list holds `token`. */
static bool
has_token(struct egw_slice list, const char *token)
{
  size_t at = 0;

  while (at < list.len) {
    size_t from = at, to;

    while (at < list.len && list.ptr[at] != ',')
      at++;
    to = at++;
    while (from < to && (list.ptr[from] == ' ' || list.ptr[from] == '\t'))
      from++;
    while (to > from && (list.ptr[to - 1] == ' ' || list.ptr[to - 1] == '\t'))
      to--;
    if (equals((struct egw_slice){ list.ptr + from, to - from }, token))
      return true;
  }
  return false;
}

/* Notes a field that must stand alone: the first value, and how many there were. */
static void
note(struct egw_slice *into, unsigned *count, struct egw_slice value)
{
  if ((*count)++ == 0)
    *into = value;
}

static void
note_field(const struct gate_header *h, struct gate_head *head, struct facts *f)
{
  switch (h->name.len) {
  case 4:
    if (equals(h->name, "host"))
      note(&head->host, &f->hosts, h->value);
    break;
  case 6:
    if (equals(h->name, "origin"))
      note(&head->origin, &f->origins, h->value);
    else if (equals(h->name, "expect"))
      note(&f->expect, &f->expects, h->value);
    break;
  case 7:
    if (equals(h->name, "upgrade") && has_token(h->value, "websocket"))
      f->upgrade_websocket = true;
    break;
  case 10:
    if (equals(h->name, "connection") && has_token(h->value, "upgrade"))
      f->connection_upgrade = true;
    break;
  case 12:
    if (equals(h->name, "content-type"))
      note(&head->content_type, &f->types, h->value);
    break;
  case 14:
    if (equals(h->name, "content-length"))
      note(&f->length, &f->lengths, h->value);
    else if (equals(h->name, "sec-fetch-site"))
      note(&f->site, &f->sites, h->value);
    break;
  case 16:
    /* Two are as bad as one that is not served, so that the last one will do. */
    if (equals(h->name, "content-encoding") && !equals(h->value, "identity"))
      head->content_encoding = h->value;
    break;
  case 17:
    if (equals(h->name, "transfer-encoding"))
      note(&f->coding, &f->codings, h->value);
    else if (equals(h->name, "sec-websocket-key"))
      note(&head->ws_key, &f->ws_keys, h->value);
    break;
  case 21:
    if (equals(h->name, "sec-websocket-version"))
      note(&f->ws_version, &f->ws_versions, h->value);
    break;
  default:
    break;
  }
}

/* Those that are only kept. */
static void
note_kept(const struct gate_header *h, struct gate_head *head, struct facts *f)
{
  static const struct egw_slice names[GATE_FIELDS] = {
    [FIELD_AUTHORIZATION] = { "authorization", 13 },
    [FIELD_API_KEY] = { "x-api-key", 9 },
    [FIELD_USER_AGENT] = { "user-agent", 10 },
    [FIELD_CACHE] = { "x-ethrpc-gw-cache", 17 },
    [FIELD_EXPLAIN] = { "x-ethrpc-gw-explain", 19 },
  };

  for (int i = 0; i < GATE_FIELDS; i++)
    if (h->name.len == names[i].len && equals(h->name, names[i].ptr))
      note(&head->fields[i], &f->kept[i], h->value);
}

static bool
read_fields(struct gate_head *head, struct facts *f)
{
  for (size_t i = 0; i < head->header_count; i++) {
    const struct gate_header *h = &head->headers[i];

    if (!gate_is_token(h->name))
      return gate_refuse(head, 400, REFUSED_HEAD, "bad header name");
    if (!gate_is_value(h->value))
      return gate_refuse(head, 400, REFUSED_HEAD, "control bytes in a header");
    note_field(h, head, f);
    note_kept(h, head, f);
  }
  if (f->types != 1)
    head->content_type = (struct egw_slice){ NULL, 0 };
  for (int i = 0; i < GATE_FIELDS; i++)
    if (f->kept[i] != 1)
      head->fields[i] = (struct egw_slice){ NULL, 0 };
  return true;
}

/* --- framing -------------------------------------------------------------------------- */

static bool
check_version(struct gate_head *head)
{
  struct egw_slice v = head->version;

  if (v.len == 8 && (memcmp(v.ptr, "HTTP/1.1", 8) == 0 || memcmp(v.ptr, "HTTP/1.0", 8) == 0))
    return true;
  if (v.len == 8 && memcmp(v.ptr, "HTTP/", 5) == 0 && v.ptr[5] >= '0' && v.ptr[5] <= '9' &&
      v.ptr[6] == '.' && v.ptr[7] >= '0' && v.ptr[7] <= '9')
    return gate_refuse(head, 505, REFUSED_HEAD, "HTTP version not supported");
  return gate_refuse(head, 400, REFUSED_HEAD, "bad request line");
}

/* RFC 9112 6.2: 1*DIGIT, here of at most 18. */
static bool
read_length(struct egw_slice text, uint64_t *out)
{
  uint64_t n = 0;

  if (text.len == 0 || text.len > 18)
    return false;
  for (size_t i = 0; i < text.len; i++) {
    if (text.ptr[i] < '0' || text.ptr[i] > '9')
      return false;
    n = n * 10 + (uint64_t)(text.ptr[i] - '0');
  }
  *out = n;
  return true;
}

/* RFC 9112 6.1 and 6.3: exactly one thing tells where the body ends. */
static bool
check_framing(struct gate_head *head, const struct facts *f)
{
  bool http_1_0 = head->version.ptr[7] == '0';

  if (f->codings > 0 && f->lengths > 0)
    return gate_refuse(head, 400, REFUSED_HEAD, "both Content-Length and Transfer-Encoding");
  if (f->lengths > 1 || (f->lengths == 1 && !read_length(f->length, &head->body_length)))
    return gate_refuse(head, 400, REFUSED_HEAD, "bad Content-Length");
  if (f->codings > 1 || (f->codings == 1 && (http_1_0 || !equals(f->coding, "chunked"))))
    return gate_refuse(head, 400, REFUSED_HEAD, "bad Transfer-Encoding");
  head->chunked = f->codings == 1;
  if (f->expects > 0 && !http_1_0) {
    if (f->expects > 1 || !equals(f->expect, "100-continue"))
      return gate_refuse(head, 417, REFUSED_HEAD, "expectation not supported");
    head->expects = true;
  }
  return true;
}

/* --- method and target ---------------------------------------------------------------- */

static bool
is_method(const struct gate_head *head, const char *name)
{
  size_t len = strlen(name);

  return head->method.len == len && memcmp(head->method.ptr, name, len) == 0;
}

static bool
check_method(const struct listener *listener, struct gate_head *head)
{
  bool posts = is_method(head, "POST");
  bool reads = is_method(head, "GET") || is_method(head, "HEAD");

  if (!gate_is_token(head->method))
    return gate_refuse(head, 400, REFUSED_HEAD, "bad request line");
  if (listener->admin ? !reads : !reads && !posts && !is_method(head, "OPTIONS"))
    return gate_refuse(head, 405, REFUSED_METHOD, "method not allowed");
  if (!posts && (head->chunked || head->body_length > 0))
    return gate_refuse(head, 400, REFUSED_HEAD, "a body where none belongs");
  return true;
}

/* The authority of an absolute-form target and what follows it; false for other forms. */
static bool
split_absolute(struct egw_slice target, struct egw_slice *authority, struct egw_slice *path)
{
  size_t skip, end;

  if (target.len > 7 && strncasecmp(target.ptr, "http://", 7) == 0)
    skip = 7;
  else if (target.len > 8 && strncasecmp(target.ptr, "https://", 8) == 0)
    skip = 8;
  else
    return false;
  for (end = skip; end < target.len; end++)
    if (target.ptr[end] == '/' || target.ptr[end] == '?')
      break;
  *authority = (struct egw_slice){ target.ptr + skip, end - skip };
  *path = (struct egw_slice){ target.ptr + end, target.len - end };
  return true;
}

struct egw_slice
gate_path(struct egw_slice target)
{
  struct egw_slice authority, path = target;
  const char *query;

  split_absolute(target, &authority, &path);
  query = path.len == 0 ? NULL : memchr(path.ptr, '?', path.len);
  if (query != NULL)
    path.len = (size_t)(query - path.ptr);
  return path.len == 0 ? EGW_LIT("/") : path;
}

/* Paths whose meaning depends on who decodes them, and how often, are refused. */
static bool
is_plain_path(struct egw_slice path)
{
  for (size_t i = 0; i + 1 < path.len; i++) {
    const char *p = path.ptr + i;

    if (p[0] == '/' && (p[1] == '/' || p[1] == '\\'))
      return false;
    if (p[0] == '/' && p[1] == '.' && i + 2 < path.len && p[2] == '.')
      return false;
    if (p[0] == '%' && p[1] == '0' && i + 2 < path.len && p[2] == '0')
      return false;
  }
  return true;
}

/* RFC 9112 3.2: origin-form, absolute-form of the same authority, or "*" with OPTIONS. */
static bool
check_target(struct gate_head *head)
{
  struct egw_slice target = head->target, authority, path;

  for (size_t i = 0; i < target.len; i++)
    if (target.ptr[i] <= 0x20 || target.ptr[i] >= 0x7f || target.ptr[i] == '#')
      return gate_refuse(head, 400, REFUSED_HEAD, "bad request target");
  if (target.len == 0)
    return gate_refuse(head, 400, REFUSED_HEAD, "bad request line");
  if (target.len == 1 && target.ptr[0] == '*' && is_method(head, "OPTIONS"))
    return true;
  if (split_absolute(target, &authority, &path)) {
    if (authority.len != head->host.len ||
        strncasecmp(authority.ptr, head->host.ptr, authority.len) != 0)
      return gate_refuse(head, 400, REFUSED_HOST, "target and Host differ");
  } else if (target.ptr[0] != '/') {
    return gate_refuse(head, 400, REFUSED_HEAD, "bad request target");
  }
  if (!is_plain_path(gate_path(target)))
    return gate_refuse(head, 400, REFUSED_HEAD, "bad request path");
  return true;
}

/* --- who asks ------------------------------------------------------------------------- */

static bool
check_host(const struct listener *listener, struct gate_head *head, const struct facts *f)
{
  if (f->hosts != 1)
    return gate_refuse(head, 400, REFUSED_HOST, "exactly one Host header is needed");
  if (!gate_host_allowed(listener, head->host))
    return gate_refuse(head, 403, REFUSED_HOST, "this Host is not allowed");
  return true;
}

/* Refused before anything runs: withholding CORS headers would hide the answer of a call that
 * was carried out. A page without an Origin (a form, an image) shows itself in newer browsers
 * by Sec-Fetch-Site. */
static bool
check_origin(const struct listener *listener, struct gate_head *head, const struct facts *f)
{
  if (f->origins > 1 || (f->origins == 1 && !gate_origin_allowed(listener, head->origin)))
    return gate_refuse(head, 403, REFUSED_ORIGIN, "this Origin is not allowed");
  if (f->origins == 0 && f->sites > 0 && (f->sites > 1 || equals(f->site, "cross-site")))
    return gate_refuse(head, 403, REFUSED_ORIGIN, "requests of other sites are not allowed");
  return true;
}

/* --- WebSocket ------------------------------------------------------------------------ */

/* RFC 6455 4.1: 16 bytes in base64. */
static bool
is_key(struct egw_slice key)
{
  if (key.len != 24 || key.ptr[22] != '=' || key.ptr[23] != '=')
    return false;
  for (size_t i = 0; i < 22; i++) {
    char c = key.ptr[i];

    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
          c == '+' || c == '/'))
      return false;
  }
  return true;
}

static bool
check_handshake(struct gate_head *head, const struct facts *f)
{
  if (head->version.ptr[7] != '1')
    return gate_refuse(head, 400, REFUSED_HEAD, "WebSocket needs HTTP/1.1");
  if (!f->connection_upgrade)
    return gate_refuse(head, 400, REFUSED_HEAD, "WebSocket needs Connection: upgrade");
  if (f->ws_versions != 1)
    return gate_refuse(head, 400, REFUSED_HEAD, "one Sec-WebSocket-Version is needed");
  if (!equals(f->ws_version, "13"))
    return gate_refuse(head, 426, REFUSED_HEAD, "WebSocket version not supported");
  if (f->ws_keys != 1 || !is_key(head->ws_key))
    return gate_refuse(head, 400, REFUSED_HEAD, "bad Sec-WebSocket-Key");
  if (f->lengths > 0 || f->codings > 0)
    return gate_refuse(head, 400, REFUSED_HEAD, "a WebSocket handshake has no body");
  return true;
}

static void
clear_findings(struct gate_head *head)
{
  struct egw_slice none = { NULL, 0 };

  head->host = head->origin = head->ws_key = none;
  head->content_type = head->content_encoding = none;
  for (int i = 0; i < GATE_FIELDS; i++)
    head->fields[i] = none;
  head->path_key = none;
  head->body_length = 0;
  head->chunked = head->expects = false;
  head->status = 0;
  head->why = NULL;
}

enum gate_kind
gate_judge(const struct listener *listener, struct gate_head *head)
{
  struct facts f = { .hosts = 0 };
  bool websocket = listener->conf->websocket && !listener->admin;
  bool http = listener->conf->http || listener->admin;

  clear_findings(head);
  if (!check_version(head) || !read_fields(head, &f) || !check_framing(head, &f) ||
      !check_host(listener, head, &f) || !check_method(listener, head) ||
      !check_target(head) || !check_origin(listener, head, &f))
    return GATE_REFUSED;
  if (websocket && f.upgrade_websocket && is_method(head, "GET"))
    return check_handshake(head, &f) ? GATE_WEBSOCKET : GATE_REFUSED;
  if (!http) {
    gate_refuse(head, 426, REFUSED_METHOD, "only WebSocket is served here");
    return GATE_REFUSED;
  }
  return GATE_HTTP;
}
