/* SPDX-License-Identifier: MIT */
/* URLs of upstreams, RFC 3986 read strictly. A URL is taken apart once, when the configuration
 * is read; transports see the parts only. No reason given here quotes the text, since any part
 * of it may be a secret. */
#include "conf/url.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define URL_MAX 8192u

struct url_scheme {
  const char *name;
  bool file;          /* names a file or socket: no authority */
  uint16_t port;
  bool tls;
};

/* Schemes of the built-in transports; others are a plugin's and may have either form. */
static const struct url_scheme url_schemes[] = {
  { "http", false, 80, false }, { "https", false, 443, true }, { "ws", false, 80, false },
  { "wss", false, 443, true },  { "ipc", true, 0, false },     { "replay", true, 0, false },
};

static const struct url_scheme *
url_scheme(const char *name)
{
  for (size_t i = 0; i < sizeof url_schemes / sizeof url_schemes[0]; i++)
    if (strcmp(url_schemes[i].name, name) == 0)
      return &url_schemes[i];
  return NULL;
}

static bool
is_alpha(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static int
hex_value(char c)
{
  if (is_digit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/* unreserved and sub-delims of RFC 3986 section 2, and the characters of `more` */
static bool
is_url_char(char c, const char *more)
{
  return is_alpha(c) || is_digit(c) || (c != '\0' && strchr("-._~!$&'()*+,;=", c) != NULL) ||
         (c != '\0' && strchr(more, c) != NULL);
}

/* Whether `part` holds only characters of a URL, with whole percent-escapes. */
static bool
url_chars_fit(struct egw_slice part, const char *more)
{
  for (size_t i = 0; i < part.len; i++) {
    if (part.ptr[i] == '%') {
      if (part.len - i < 3 || hex_value(part.ptr[i + 1]) < 0 || hex_value(part.ptr[i + 2]) < 0)
        return false;
      i += 2;
    } else if (!is_url_char(part.ptr[i], more)) {
      return false;
    }
  }
  return true;
}

static char *
copy_part(struct egw_slice part)
{
  char *s = malloc(part.len + 1);

  if (s != NULL) {
    if (part.len > 0)
      memcpy(s, part.ptr, part.len);
    s[part.len] = '\0';
  }
  return s;
}

static char *
copy_lower(struct egw_slice part)
{
  char *s = copy_part(part);

  for (size_t i = 0; s != NULL && i < part.len; i++)
    if (s[i] >= 'A' && s[i] <= 'Z')
      s[i] = (char)(s[i] - 'A' + 'a');
  return s;
}

/* Percent-decodes a part that url_chars_fit() passed. NULL with *why: a control character, or
 * no memory. */
static char *
copy_decoded(struct egw_slice part, const char **why)
{
  char *s = malloc(part.len + 1);
  size_t n = 0;

  if (s == NULL) {
    *why = "out of memory";
    return NULL;
  }
  for (size_t i = 0; i < part.len; i++) {
    char c = part.ptr[i];

    if (c == '%') {
      c = (char)(hex_value(part.ptr[i + 1]) * 16 + hex_value(part.ptr[i + 2]));
      i += 2;
    }
    if ((unsigned char)c < 0x20 || c == 0x7f) {
      *why = "it holds a control character";
      free(s);
      return NULL;
    }
    s[n++] = c;
  }
  s[n] = '\0';
  return s;
}

/* The part before the first `stop` character, which `rest` then begins with (or is empty). */
static struct egw_slice
cut_before(struct egw_slice *rest, const char *stop)
{
  struct egw_slice head = *rest;
  size_t n = 0;

  while (n < rest->len && strchr(stop, rest->ptr[n]) == NULL)
    n++;
  head.len = n;
  rest->ptr += n;
  rest->len -= n;
  return head;
}

static const char *
parse_user(struct egw_slice info, struct egw_url *out)
{
  const char *why = NULL;
  struct egw_slice user, rest = info;

  if (!url_chars_fit(info, ":"))
    return "user or password hold a character that must be percent-encoded";
  user = cut_before(&rest, ":");
  if (rest.len > 0) {
    rest.ptr++;
    rest.len--;
  }
  out->user = copy_decoded(user, &why);
  if (out->user != NULL)
    out->password = copy_decoded(rest, &why);
  return why;
}

static const char *
parse_port(struct egw_slice text, uint16_t *port)
{
  unsigned n = 0;

  if (text.len == 0 || text.len > 5)
    return "the port must be a number from 1 to 65535";
  for (size_t i = 0; i < text.len; i++) {
    if (!is_digit(text.ptr[i]))
      return "the port must be a number from 1 to 65535";
    n = n * 10 + (unsigned)(text.ptr[i] - '0');
  }
  if (n < 1 || n > 65535)
    return "the port must be a number from 1 to 65535";
  *port = (uint16_t)n;
  return NULL;
}

/* A name, or an IPv4 address if it is only digits and dots. */
static const char *
check_host(const char *host)
{
  unsigned char addr[4];
  bool numeric = true;
  size_t len = strlen(host);

  if (len == 0)
    return "the host is missing";
  if (len > 253)
    return "the host name is too long";
  for (size_t i = 0; i < len; i++) {
    if (!is_alpha(host[i]) && !is_digit(host[i]) && strchr("-._*", host[i]) == NULL)
      return "the host holds a character that no host name has";
    if (!is_digit(host[i]) && host[i] != '.')
      numeric = false;
    if (host[i] == '.' && (i == 0 || host[i - 1] == '.'))
      return "the host name has an empty part";
  }
  if (numeric && inet_pton(AF_INET, host, addr) != 1)
    return "the host is not a whole IPv4 address";
  return NULL;
}

static const char *
parse_ipv6(struct egw_slice *rest, struct egw_url *out)
{
  struct egw_slice host;
  unsigned char addr[16];

  rest->ptr++;
  rest->len--;
  host = cut_before(rest, "]");
  if (rest->len == 0)
    return "the bracket of the IPv6 address is not closed";
  rest->ptr++;
  rest->len--;
  out->host = copy_lower(host);
  if (out->host == NULL)
    return "out of memory";
  if (inet_pton(AF_INET6, out->host, addr) != 1)
    return "what stands in brackets is not an IPv6 address";
  return NULL;
}

/* [user[:password]@]host[:port] */
static const char *
parse_authority(struct egw_slice text, struct egw_url *out)
{
  const char *why = NULL;
  const char *at = memrchr(text.ptr, '@', text.len);
  struct egw_slice rest = text;

  if (at != NULL) {
    struct egw_slice info = { text.ptr, (size_t)(at - text.ptr) };

    why = parse_user(info, out);
    rest.ptr = at + 1;
    rest.len = text.len - info.len - 1;
  }
  if (why == NULL && rest.len > 0 && rest.ptr[0] == '[') {
    why = parse_ipv6(&rest, out);
  } else if (why == NULL &&
             memchr(rest.ptr, ':', rest.len) != memrchr(rest.ptr, ':', rest.len)) {
    why = "an IPv6 address must stand in brackets";
  } else if (why == NULL) {
    out->host = copy_lower(cut_before(&rest, ":"));
    why = out->host == NULL ? "out of memory" : check_host(out->host);
  }
  if (why != NULL || rest.len == 0)
    return why;
  if (rest.ptr[0] != ':')
    return "text stands between the IPv6 address and the port";
  rest.ptr++;
  rest.len--;
  return parse_port(rest, &out->port);
}

/* What stands behind the authority: never empty in the result. */
static const char *
parse_path(struct egw_slice text, struct egw_url *out)
{
  bool slash = text.len > 0 && text.ptr[0] == '/';
  char *path;

  if (memchr(text.ptr, '#', text.len) != NULL)
    return "a fragment ('#') has no meaning here";
  if (!url_chars_fit(text, "/?:@"))
    return "the path holds a character that must be percent-encoded";
  path = malloc(text.len + 2);
  if (path == NULL)
    return "out of memory";
  path[0] = '/';
  memcpy(path + (slash ? 0 : 1), text.ptr, text.len);
  path[text.len + (slash ? 0 : 1)] = '\0';
  out->path = path;
  return NULL;
}

/* scheme:path and scheme:///path */
static const char *
parse_file(struct egw_slice text, struct egw_url *out)
{
  const char *why = NULL;

  if (text.len == 0)
    return "the file name is missing";
  if (!url_chars_fit(text, "/?:@"))
    return "the file name holds a character that must be percent-encoded";
  out->path = copy_decoded(text, &why);
  return why;
}

static const char *
parse_bare_path(struct egw_slice text, struct egw_url *out)
{
  for (size_t i = 0; i < text.len; i++)
    if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f)
      return "it holds a control character";
  if (text.len == 1)
    return "the file name is missing";
  out->scheme = copy_part(EGW_LIT("ipc"));
  out->path = copy_part(text);
  return out->scheme == NULL || out->path == NULL ? "out of memory" : NULL;
}

/* Takes "scheme:" off `rest`; NULL or a reason. */
static const char *
parse_scheme(struct egw_slice *rest, struct egw_url *out)
{
  struct egw_slice name;

  if (rest->len == 0)
    return "it is empty";
  if (!is_alpha(rest->ptr[0]))
    return "it begins with no scheme (such as http://, ws:// or ipc://)";
  name = cut_before(rest, ":");
  for (size_t i = 0; i < name.len; i++)
    if (!is_alpha(name.ptr[i]) && !is_digit(name.ptr[i]) && strchr("+-.", name.ptr[i]) == NULL)
      return "it begins with no scheme (such as http://, ws:// or ipc://)";
  if (rest->len == 0)
    return "it begins with no scheme (such as http://, ws:// or ipc://)";
  rest->ptr++;
  rest->len--;
  out->scheme = copy_lower(name);
  return out->scheme == NULL ? "out of memory" : NULL;
}

/* "localhost:8545" looks like a scheme and a file name. */
static bool
is_port_only(struct egw_slice rest)
{
  size_t n = 0;

  while (n < rest.len && is_digit(rest.ptr[n]))
    n++;
  return n > 0 && (n == rest.len || rest.ptr[n] == '/');
}

static const char *
parse_behind_scheme(struct egw_slice rest, struct egw_url *out)
{
  const struct url_scheme *scheme = url_scheme(out->scheme);
  bool slashes = rest.len >= 2 && rest.ptr[0] == '/' && rest.ptr[1] == '/';
  const char *why;

  if (scheme == NULL && is_port_only(rest))
    return "it begins with no scheme (such as http://, ws:// or ipc://)";
  if (slashes) {
    rest.ptr += 2;
    rest.len -= 2;
  }
  if (scheme != NULL && scheme->file && slashes && (rest.len == 0 || rest.ptr[0] != '/'))
    return "a file name has three slashes and is absolute: ipc:///run/node.ipc";
  if ((scheme != NULL && scheme->file) || (scheme == NULL && !slashes) ||
      (scheme == NULL && rest.len > 0 && rest.ptr[0] == '/'))
    return parse_file(rest, out);
  if (!slashes)
    return "two slashes are missing behind the scheme";
  why = parse_authority(cut_before(&rest, "/?#"), out);
  if (why != NULL)
    return why;
  if (scheme != NULL) {
    out->tls = scheme->tls;
    if (out->port == 0)
      out->port = scheme->port;
  }
  return parse_path(rest, out);
}

static const char *
fill_empty(const char **part)
{
  if (*part == NULL)
    *part = copy_part(EGW_LIT(""));
  return *part;
}

const char *
url_parse(const char *text, struct egw_url *out)
{
  struct egw_slice rest = { text, strlen(text) };
  const char *why = NULL;

  memset(out, 0, sizeof *out);
  if (rest.len > URL_MAX)
    return "it is too long";
  if (rest.len > 0 && rest.ptr[0] == '/') {
    why = parse_bare_path(rest, out);
  } else {
    why = parse_scheme(&rest, out);
    if (why == NULL)
      why = parse_behind_scheme(rest, out);
  }
  if (why == NULL && (fill_empty(&out->user) == NULL || fill_empty(&out->password) == NULL ||
                      fill_empty(&out->host) == NULL))
    why = "out of memory";
  if (why != NULL)
    url_free(out);
  return why;
}

void
url_free(struct egw_url *url)
{
  free((char *)(uintptr_t)url->scheme);
  free((char *)(uintptr_t)url->user);
  free((char *)(uintptr_t)url->password);
  free((char *)(uintptr_t)url->host);
  free((char *)(uintptr_t)url->path);
  memset(url, 0, sizeof *url);
}

int
url_default_name(const struct egw_url *url, struct egw_buf *out)
{
  const char *base;

  if (url->host[0] != '\0')
    return egw_buf_printf(out, strchr(url->host, ':') != NULL ? "[%s]:%u" : "%s:%u", url->host,
                          url->port);
  base = strrchr(url->path, '/');
  base = base == NULL ? url->path : base + 1;
  return egw_buf_printf(out, "%s", base[0] == '\0' ? url->scheme : base);
}
