/* SPDX-License-Identifier: MIT */
/* Fuzzes the gate. What it lets in must hold the promises that the servers behind it rely on,
 * read here from the bytes again by other means; and a head that comes in two parts must be
 * judged as the whole one. */
#include <stdlib.h>
#include <string.h>
#include "listen/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const hosts[] = { "localhost", "[::1]", "gw.example:9000" };
static const char *const origins[] = { "http://good.example" };

static const char *const fields[GATE_FIELDS] = {
  [FIELD_AUTHORIZATION] = "authorization:",   [FIELD_API_KEY] = "x-api-key:",
  [FIELD_USER_AGENT] = "user-agent:",         [FIELD_CACHE] = "x-ethrpc-gw-cache:",
  [FIELD_EXPLAIN] = "x-ethrpc-gw-explain:",
};

static void
check(bool holds)
{
  if (!holds)
    abort();
}

static bool
inside(struct egw_slice part, const char *text, size_t len)
{
  return part.ptr == NULL || (part.ptr >= text && part.ptr + part.len <= text + len);
}

/* Number of lines of the head that begin with `name`, whatever its case. */
static unsigned
count_fields(const char *text, size_t len, const char *name)
{
  size_t name_len = strlen(name);
  unsigned n = 0;

  for (size_t i = 0; i + 2 + name_len <= len; i++)
    if (text[i] == '\r' && text[i + 1] == '\n' &&
        strncasecmp(text + i + 2, name, name_len) == 0)
      n++;
  return n;
}

static void
check_let_in(const char *text, size_t size, const struct gate_head *head)
{
  size_t len = head->length;

  check(len > 0 && len <= size && len <= GATE_HEAD_MAX);
  check(memcmp(text + len - 4, "\r\n\r\n", 4) == 0);
  check(memchr(text, '\0', len) == NULL);
  for (size_t i = 0; i < len; i++) {
    check(text[i] != '\n' || (i > 0 && text[i - 1] == '\r'));
    check(text[i] != '\r' || text[i + 1] == '\n');
  }
  check(count_fields(text, len, "host:") == 1);
  check(count_fields(text, len, "content-length:") +
            count_fields(text, len, "transfer-encoding:") <=
        1);
  check(count_fields(text, len, "origin:") <= 1);
  check(count_fields(text, len, " ") == 0 && count_fields(text, len, "\t") == 0);
  for (size_t i = 0; i < head->header_count; i++)
    check(inside(head->headers[i].name, text, len) &&
          inside(head->headers[i].value, text, len));
  check(inside(head->target, text, len) && inside(head->host, text, len) &&
        inside(head->origin, text, len) && inside(head->ws_key, text, len));
  check(head->origin.ptr == NULL || head->origin.len == strlen(origins[0]));
  for (int i = 0; i < GATE_FIELDS; i++)
    check(inside(head->fields[i], text, len) &&
          (head->fields[i].ptr != NULL) == (count_fields(text, len, fields[i]) == 1));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct conf_listener conf = { .http = true, .websocket = true, .origins = { origins, 1 } };
  struct listener listener = { .conf = &conf, .port = 8645, .hosts = { hosts, 3 } };
  struct gate_head head, part;
  enum gate_kind whole, first;
  size_t cut;
  char *text;

  if (size < 1)
    return 0;
  cut = data[0] * size / 256;
  text = malloc(size);
  check(text != NULL);
  memcpy(text, data + 1, size - 1);
  size--;
  cut = cut > size ? size : cut;
  whole = gate_check(&listener, text, size, &head);
  if (whole == GATE_HTTP || whole == GATE_WEBSOCKET)
    check_let_in(text, size, &head);
  if (whole == GATE_REFUSED)
    check(head.status >= 400 && head.status < 600 && head.why != NULL);
  first = gate_check(&listener, text, cut, &part);
  if (first == GATE_MORE)
    check(cut < GATE_HEAD_MAX);
  else
    check(first == whole && part.status == head.status && part.length == head.length);
  free(text);
  return 0;
}
