/* SPDX-License-Identifier: MIT */
/* The headers of a link's requests: the fixed ones, the configured ones, and one of Basic
 * (user and password of the URL), Bearer, or a JWT as nodes want it on their authenticated
 * port: HS256 with the time of issue, which may be a minute off at most, hence made anew each
 * half minute. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "http.h"

#define JWT_AGE_MS 30000u

/* --- lists ---------------------------------------------------------------------------- */

struct http_list *
http_list_new(void)
{
  struct http_list *list = calloc(1, sizeof *list);

  if (list != NULL)
    list->refs = 1;
  return list;
}

int
http_list_add(struct http_list *list, const char *text)
{
  struct curl_slist *items = curl_slist_append(list->items, text);

  if (items == NULL)
    return -1;
  list->items = items;
  return 0;
}

struct http_list *
http_list_ref(struct http_list *list)
{
  list->refs++;
  return list;
}

void
http_list_unref(struct http_list *list)
{
  if (list == NULL || --list->refs > 0)
    return;
  for (struct curl_slist *i = list->items; i != NULL; i = i->next)
    OPENSSL_cleanse(i->data, strlen(i->data));
  curl_slist_free_all(list->items);
  free(list);
}

/* --- configuration -------------------------------------------------------------------- */

static bool
named(const char *header, size_t len, const char *name)
{
  return strlen(name) == len && strncasecmp(header, name, len) == 0;
}

/* What is wrong with a header (RFC 9110 section 5), or NULL; the framing of the message stays
 * libcurl's. */
static const char *
header_fault(const char *text)
{
  static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz";
  static const char *const framing[] = {
    "Content-Length", "Transfer-Encoding", "Connection",      "Expect",      "Upgrade",
    "TE",             "Trailer",           "Accept-Encoding", "Content-Type",
  };
  size_t len = strspn(text, token);

  if (len == 0 || text[len] != ':')
    return "is not of the form \"Name: value\"";
  for (const char *p = text + len; *p != 0; p++)
    if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f)
      return "has a control character";
  if (text[len + 1 + strspn(text + len + 1, " \t")] == 0)
    return "has no value";
  for (size_t i = 0; i < sizeof framing / sizeof framing[0]; i++)
    if (named(text, len, framing[i]))
      return "is set by the transport itself";
  return NULL;
}

static int
check_headers(const struct http *http, struct egw_conf *section)
{
  int status = 0;

  for (size_t i = 0; i < http->headers.n; i++) {
    const char *text = http->headers.v[i], *fault = header_fault(text);

    if (fault == NULL && named(text, strcspn(text, ":"), "Authorization")
        && (http->bearer != NULL || http->jwt_secret != NULL))
      fault = "is already set by bearer or jwt_secret";
    if (fault != NULL)
      status = egw_conf_error(section, "headers", "header %zu %s", i + 1, fault);
  }
  return status;
}

static bool
is_printable(const char *text)
{
  for (; *text != 0; text++)
    if ((unsigned char)*text < ' ' || *text == 0x7f)
      return false;
  return true;
}

static int
hex_digit(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int
read_jwt_key(struct http *http)
{
  const char *hex = http->jwt_secret;

  if (hex[0] == '0' && (hex[1] == 'x' || hex[1] == 'X'))
    hex += 2;
  if (strlen(hex) != 2 * sizeof http->jwt_key)
    return -1;
  for (size_t i = 0; i < sizeof http->jwt_key; i++) {
    int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);

    if (high < 0 || low < 0)
      return -1;
    http->jwt_key[i] = (unsigned char)(high * 16 + low);
  }
  http->has_jwt = true;
  return 0;
}

int
auth_configure(struct http *http, struct egw_conf *section)
{
  int status = check_headers(http, section);

  if (http->bearer != NULL && http->jwt_secret != NULL)
    status = egw_conf_error(section, "bearer", "can't be used together with jwt_secret");
  if (http->bearer != NULL && (*http->bearer == 0 || !is_printable(http->bearer)))
    status = egw_conf_error(section, "bearer", "is empty or has a control character");
  if (http->user_agent == NULL || !is_printable(http->user_agent))
    status = egw_conf_error(section, "user_agent", "has a control character");
  if (http->jwt_secret != NULL && read_jwt_key(http) != 0)
    status = egw_conf_error(section, "jwt_secret", "is not 32 bytes in hex");
  return status;
}

/* --- tokens --------------------------------------------------------------------------- */

/* Appends base64; the variant of URLs has no padding (RFC 4648 section 5). */
static int
add_base64(struct egw_buf *out, const void *bytes, size_t len, bool for_url)
{
  char *to = egw_buf_room(out, (len + 2) / 3 * 4 + 1);
  size_t n;

  if (to == NULL || len > 65536)
    return -1;
  n = (size_t)EVP_EncodeBlock((unsigned char *)to, bytes, (int)len);
  for (size_t i = 0; for_url && i < n; i++)
    to[i] = to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i];
  while (for_url && n > 0 && to[n - 1] == '=')
    n--;
  egw_buf_commit(out, n);
  return 0;
}

static int
add_jwt(struct egw_buf *out, const struct http *http)
{
  static const char head[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
  struct egw_buf *claims = egw_buf_new(64);
  unsigned char mac[EVP_MAX_MD_SIZE];
  size_t start = egw_buf_slice(out).len;
  struct egw_slice text;
  unsigned n = 0;
  long long issued = (long long)time(NULL);
  int bad = claims == NULL || egw_buf_printf(claims, "{\"iat\":%lld}", issued) != 0;

  bad = bad || add_base64(out, head, sizeof head - 1, true) != 0
        || egw_buf_append(out, ".", 1) != 0
        || add_base64(out, egw_buf_slice(claims).ptr, egw_buf_slice(claims).len, true) != 0;
  egw_buf_unref(claims);
  if (bad)
    return -1;
  text = egw_buf_slice(out);
  if (HMAC(EVP_sha256(), http->jwt_key, HTTP_JWT_BYTES,
           (const unsigned char *)text.ptr + start, text.len - start, mac, &n) == NULL)
    return -1;
  return egw_buf_append(out, ".", 1) != 0 ? -1 : add_base64(out, mac, n, true);
}

static int
add_basic(struct egw_buf *out, const struct egw_url *url)
{
  struct egw_buf *pair = egw_buf_new(128);
  int bad = pair == NULL || egw_buf_printf(pair, "%s:%s", url->user, url->password) != 0
            || add_base64(out, egw_buf_slice(pair).ptr, egw_buf_slice(pair).len, false) != 0;

  egw_buf_unref(pair);
  return bad ? -1 : 0;
}

static int
add_authorization(struct http_list *list, const struct http_link *l)
{
  const struct egw_url *url = egw_link_url(l->link);
  struct egw_buf *text = egw_buf_new(256);
  bool some = true;
  int bad = text == NULL || egw_buf_printf(text, "Authorization: ") != 0;

  if (bad)
    ;
  else if (l->http->has_jwt)
    bad = egw_buf_append(text, "Bearer ", 7) != 0 || add_jwt(text, l->http) != 0;
  else if (l->http->bearer != NULL)
    bad = egw_buf_printf(text, "Bearer %s", l->http->bearer) != 0;
  else if (url->user[0] != 0 || url->password[0] != 0)
    bad = egw_buf_append(text, "Basic ", 6) != 0 || add_basic(text, url) != 0;
  else
    some = false;
  bad = bad || egw_buf_append(text, "", 1) != 0
        || (some && http_list_add(list, egw_buf_slice(text).ptr) != 0);
  egw_buf_unref(text);
  return bad ? -1 : 0;
}

/* --- the headers ---------------------------------------------------------------------- */

static int
add_user_agent(struct http_list *list, const struct http *http)
{
  struct egw_buf *text = egw_buf_new(128);
  int bad = text == NULL || egw_buf_printf(text, "User-Agent: %s", http->user_agent) != 0
            || egw_buf_append(text, "", 1) != 0
            || http_list_add(list, egw_buf_slice(text).ptr) != 0;

  egw_buf_unref(text);
  return bad ? -1 : 0;
}

static struct http_list *
make_headers(const struct http_link *l)
{
  struct http_list *list = http_list_new();
  int bad;

  if (list == NULL)
    return NULL;
  /* Without a value after its colon libcurl leaves the header out. */
  bad = http_list_add(list, "Content-Type: application/json") != 0
        || http_list_add(list, "Accept: application/json") != 0
        || http_list_add(list, "Expect:") != 0 || add_user_agent(list, l->http) != 0
        || add_authorization(list, l) != 0;
  for (size_t i = 0; !bad && i < l->http->headers.n; i++)
    bad = http_list_add(list, l->http->headers.v[i]) != 0;
  if (!bad)
    return list;
  http_list_unref(list);
  return NULL;
}

int
auth_refresh(struct http_link *l)
{
  uint64_t now = egw_now_ms(l->hub->worker);
  struct http_list *list;

  if (l->headers != NULL && (!l->http->has_jwt || now - l->jwt_made_ms < JWT_AGE_MS))
    return 0;
  list = make_headers(l);
  if (list == NULL)
    return -1;
  http_list_unref(l->headers);
  l->headers = list;
  l->jwt_made_ms = now;
  return 0;
}

bool
auth_is_secret(const struct http_link *l)
{
  const struct egw_url *url = egw_link_url(l->link);

  return l->http->has_jwt || l->http->bearer != NULL || l->http->headers.n > 0
         || url->user[0] != 0 || url->password[0] != 0;
}
