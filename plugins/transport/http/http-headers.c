/* SPDX-License-Identifier: MIT */
/* The headers of a link's requests: the fixed ones and those of ../common/auth.h, as libcurl
 * wants them. A token is made anew each half minute: nodes let its time of issue be a minute
 * off. */
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
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

/* --- headers -------------------------------------------------------------------------- */

int
headers_configure(struct http *http, struct egw_conf *section)
{
  /* The form of the message is libcurl's. */
  static const char *const reserved[] = {
    "Content-Length", "Transfer-Encoding", "Connection",      "Expect",       "Upgrade",
    "TE",             "Trailer",           "Accept-Encoding", "Content-Type", NULL,
  };
  int status = auth_configure(&http->auth, section, reserved);

  for (const char *p = http->user_agent; *p != 0; p++)
    if ((unsigned char)*p < ' ' || *p == 0x7f)
      return egw_conf_error(section, "user_agent", "has a control character");
  return status;
}

/* Without a value after its colon libcurl leaves a header out. */
static int
print_headers(const struct http_link *l, struct egw_buf *out)
{
  if (egw_buf_printf(out,
                     "Content-Type: application/json\r\n"
                     "Accept: application/json\r\n"
                     "Expect:\r\n"
                     "User-Agent: %s\r\n",
                     l->http->user_agent)
      != 0)
    return -1;
  return auth_print(&l->http->auth, egw_link_url(l->link), out);
}

/* Adds each line, whose CRLF becomes the end of a string. */
static int
add_lines(struct http_list *list, struct egw_buf *text)
{
  struct egw_slice all;
  const char *p, *end;

  if (egw_buf_append(text, "", 1) != 0)
    return -1;
  all = egw_buf_slice(text);
  for (p = all.ptr; (end = strstr(p, "\r\n")) != NULL; p = end + 2) {
    char *line = strndup(p, (size_t)(end - p));
    int bad = line == NULL || http_list_add(list, line) != 0;

    if (line != NULL)
      OPENSSL_cleanse(line, strlen(line));
    free(line);
    if (bad)
      return -1;
  }
  return 0;
}

int
headers_refresh(struct http_link *l)
{
  uint64_t now = egw_now_ms(l->hub->worker);
  struct http_list *list;
  struct egw_buf *text;
  bool good;

  if (l->headers != NULL && (!l->http->auth.has_jwt || now - l->jwt_made_ms < JWT_AGE_MS))
    return 0;
  list = http_list_new();
  text = egw_buf_new(1024);
  good = list != NULL && text != NULL && print_headers(l, text) == 0
         && add_lines(list, text) == 0;
  egw_buf_unref(text);
  if (!good) {
    http_list_unref(list);
    return -1;
  }
  http_list_unref(l->headers);
  l->headers = list;
  l->jwt_made_ms = now;
  return 0;
}
