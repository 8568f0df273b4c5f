/* SPDX-License-Identifier: MIT */
/* The addresses of a link's host. libcurl gets all of them with the request and never asks by
 * itself: its own lookups hold up the loop when a request is given up meanwhile.
 *
 * An answer is used for 30 s; an older one goes on being used while a new one is asked for, up
 * to five minutes, or as long as nothing newer can be had: a name server that is down does not
 * take a node away that is up. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include "http.h"

#define FRESH_MS 30000u
#define USABLE_MS 300000u

static bool
is_link_local(const struct in6_addr *a)
{
  return IN6_IS_ADDR_LINKLOCAL(a)
         || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 169 && a->s6_addr[13] == 254);
}

/* The address as CURLOPT_RESOLVE wants it. Link-local ones, where clouds keep credentials, are
 * taken from the configuration only, never from a name server. */
static bool
print_address(const struct egw_address *address, char *out, size_t cap)
{
  char text[INET6_ADDRSTRLEN];
  struct sockaddr_in6 in6;
  struct sockaddr_in in;

  if (address->len == sizeof in) {
    memcpy(&in, address->bytes, sizeof in);
    if ((ntohl(in.sin_addr.s_addr) >> 16) == 0xa9fe
        || inet_ntop(AF_INET, &in.sin_addr, text, sizeof text) == NULL)
      return false;
    snprintf(out, cap, "%s", text);
    return true;
  }
  if (address->len != sizeof in6)
    return false;
  memcpy(&in6, address->bytes, sizeof in6);
  if (is_link_local(&in6.sin6_addr)
      || inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof text) == NULL)
    return false;
  snprintf(out, cap, "[%s]", text);
  return true;
}

/* "host:port:address,address"; NULL: no memory, or no usable address. */
static struct http_list *
make_list(struct http_link *l, const struct egw_address *addresses, size_t count)
{
  const struct egw_url *url = egw_link_url(l->link);
  struct http_list *list = http_list_new();
  struct egw_buf *text = egw_buf_new(256);
  char one[INET6_ADDRSTRLEN + 3];
  size_t used = 0;
  int bad;

  bad = list == NULL || text == NULL
        || egw_buf_printf(text, "%s:%u:", url->host, (unsigned)url->port) != 0;
  for (size_t i = 0; !bad && i < count; i++)
    if (print_address(&addresses[i], one, sizeof one))
      bad = egw_buf_printf(text, "%s%s", used++ == 0 ? "" : ",", one);
  bad = bad || used == 0 || egw_buf_append(text, "", 1) != 0
        || http_list_add(list, egw_buf_slice(text).ptr) != 0;
  egw_buf_unref(text);
  if (!bad)
    return list;
  http_list_unref(list);
  return NULL;
}

static void
on_answer(void *arg, const struct egw_address *addresses, size_t count, const char *why)
{
  struct http_link *l = arg;
  struct http_list *list = count == 0 ? NULL : make_list(l, addresses, count);

  (void)why;
  l->names.query = NULL;
  l->names.asked_ms = egw_now_ms(l->hub->worker);
  if (list != NULL) {
    http_list_unref(l->names.list);
    l->names.list = list;
    l->names.state = NAMES_KNOWN;
  } else {
    egw_log(l->names.failed ? EGW_DEBUG : EGW_WARN, "http", "%s: its name can't be resolved",
            egw_link_name(l->link));
  }
  l->names.failed = list == NULL;
  if (l->names.state == NAMES_NONE)
    pool_fail_waiting(l, EGW_NOT_SENT, "the name can't be resolved");
  else
    pool_pump(l);
}

static bool
ask(struct http_link *l)
{
  const struct egw_url *url = egw_link_url(l->link);

  if (l->names.query == NULL)
    l->names.query = egw_resolve(l->hub->worker, url->host, url->port, on_answer, l);
  return l->names.query != NULL;
}

int
names_open(struct http_link *l)
{
  const char *host = egw_link_url(l->link)->host;
  unsigned char bytes[16];

  if (inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1) {
    l->names.state = NAMES_LITERAL;
    return 0;
  }
  return ask(l) ? 0 : -1;
}

bool
names_ready(struct http_link *l)
{
  uint64_t age;

  if (l->names.state == NAMES_LITERAL)
    return true;
  age = egw_now_ms(l->hub->worker) - l->names.asked_ms;
  if (l->names.state == NAMES_KNOWN && age < FRESH_MS)
    return true;
  if (!ask(l)) {
    pool_fail_waiting(l, EGW_NOT_SENT, "memory is short");
    return false;
  }
  return l->names.state == NAMES_KNOWN && age < USABLE_MS;
}

void
names_close(struct http_link *l)
{
  if (l->names.query != NULL)
    egw_resolve_cancel(l->names.query);
  l->names.query = NULL;
  http_list_unref(l->names.list);
  l->names.list = NULL;
  l->names.state = NAMES_NONE;
}
