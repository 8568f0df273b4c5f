/* SPDX-License-Identifier: MIT */
/* Where a reply ends, over each transport. Its bytes are counted, and the first 256 and the last
 * 96 of them kept: in them "id":, "error": and "code": are looked for. The rest, most of a large
 * reply, is not looked at (but for the newline that ends one over IPC).
 *
 * A reply is an error when "error": stands in its first bytes, before any "result":, and has an
 * object. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "load.h"

#define WS_CONTROL 8

void
reply_begin(struct reply *reply)
{
  reply->started = reply->last = reply->closes = reply->bad = reply->trailer = false;
  reply->body = BODY_LENGTH;
  reply->status = 200;
  reply->left = reply->bytes = 0;
  reply->head_len = reply->first_len = reply->tail_len = 0;
}

/* Bytes of the reply itself. */
static void
collect(struct reply *reply, const char *data, size_t len)
{
  size_t n = FIRST_MAX - reply->first_len, keep;

  reply->bytes += len;
  if (n > 0) {
    n = len < n ? len : n;
    memcpy(reply->first + reply->first_len, data, n);
    reply->first_len += n;
  }
  n = len < LAST_MAX ? len : LAST_MAX;
  keep = LAST_MAX - n < reply->tail_len ? LAST_MAX - n : reply->tail_len;
  memmove(reply->tail, reply->tail + reply->tail_len - keep, keep);
  memcpy(reply->tail + keep, data + len - n, n);
  reply->tail_len = keep + n;
}

/* Takes bytes into `head` up to and with `end`; whether it is there. */
static bool
take_to(struct reply *reply, const char **data, size_t *len, const char *end)
{
  size_t end_len = strlen(end), had = reply->head_len, from = had < end_len ? 0 : had - end_len;
  size_t n = *len < HEAD_MAX - 1 - had ? *len : HEAD_MAX - 1 - had;
  char *found;

  memcpy(reply->head + had, *data, n);
  found = memmem(reply->head + from, had + n - from, end, end_len);
  if (found != NULL)
    n = (size_t)(found - reply->head) + end_len - had;
  else if (had + n == HEAD_MAX - 1)
    reply->bad = true;
  reply->head_len = had + n;
  reply->head[reply->head_len] = '\0';
  *data += n;
  *len -= n;
  return found != NULL;
}

/* --- HTTP ------------------------------------------------------------------------------------ */

static const char *
field(const char *head, const char *name)
{
  const char *at = strcasestr(head, name);

  return at == NULL ? NULL : at + strlen(name) + strspn(at + strlen(name), " ");
}

static void
take_http_head(struct reply *reply, const char **data, size_t *len)
{
  const char *length, *coding, *connection;

  if (!take_to(reply, data, len, "\r\n\r\n"))
    return;
  if (strncmp(reply->head, "HTTP/1.", 7) != 0) {
    reply->bad = true;
    return;
  }
  reply->status = (int)strtol(reply->head + 9, NULL, 10);
  reply->head_len = 0;
  if (reply->status >= 100 && reply->status < 200)
    return;
  length = field(reply->head, "\ncontent-length:");
  coding = field(reply->head, "\ntransfer-encoding:");
  connection = field(reply->head, "\nconnection:");
  reply->closes = connection != NULL ? strncasecmp(connection, "close", 5) == 0
                                     : reply->head[7] == '0';
  reply->started = true;
  if (coding != NULL)
    reply->body = BODY_CHUNKED;
  else if (length != NULL)
    reply->left = strtoull(length, NULL, 10);
  else
    reply->body = reply->status == 204 ? BODY_LENGTH : BODY_TO_END;
  reply->closes |= reply->body == BODY_TO_END;
  reply->last = reply->body == BODY_LENGTH;
}

/* A line between chunks: the size of the next one, or what follows the last. */
static void
take_chunk_line(struct reply *reply, const char **data, size_t *len)
{
  bool empty;

  if (!take_to(reply, data, len, "\n"))
    return;
  empty = reply->head[0] == '\r' || reply->head[0] == '\n';
  reply->head_len = 0;
  if (reply->trailer) {
    reply->last = empty;
    return;
  }
  if (empty)
    return;
  reply->left = strtoull(reply->head, NULL, 16);
  reply->trailer = reply->left == 0;
}

/* --- WebSocket ------------------------------------------------------------------------------- */

static void
take_frame_head(struct reply *reply, const char **data, size_t *len)
{
  size_t wide, i;

  while (*len > 0) {
    reply->head[reply->head_len++] = *(*data)++;
    (*len)--;
    if (reply->head_len < 2)
      continue;
    wide = (reply->head[1] & 0x7f) == 126 ? 2 : (reply->head[1] & 0x7f) == 127 ? 8 : 0;
    if (reply->head_len < 2 + wide)
      continue;
    reply->left = wide == 0 ? (uint64_t)(reply->head[1] & 0x7f) : 0;
    for (i = 0; i < wide; i++)
      reply->left = reply->left << 8 | (unsigned char)reply->head[2 + i];
    reply->opcode = reply->head[0] & 0x0f;
    reply->last = (reply->head[0] & 0x80) != 0 && reply->opcode < WS_CONTROL;
    reply->closes |= reply->opcode == WS_CONTROL;
    reply->started = true;
    reply->head_len = 0;
    return;
  }
}

/* --- all ------------------------------------------------------------------------------------- */

/* JSON values over IPC end with a newline. */
static size_t
take_line(struct reply *reply, const char *data, size_t len, bool *whole)
{
  const char *end = memchr(data, '\n', len);
  size_t n = end != NULL ? (size_t)(end - data) : len;

  collect(reply, data, n);
  *whole = end != NULL && reply->bytes > 0;
  return end != NULL ? n + 1 : n;
}

static void
take_bytes(struct reply *reply, const char **data, size_t *len)
{
  size_t n = *len;

  if (reply->body != BODY_TO_END && n > reply->left)
    n = (size_t)reply->left;
  if (options.kind != WS || reply->opcode < WS_CONTROL)
    collect(reply, *data, n);
  if (reply->body != BODY_TO_END)
    reply->left -= n;
  *data += n;
  *len -= n;
}

size_t
reply_take(struct reply *reply, const char *data, size_t len, bool *whole)
{
  const char *began = data;

  *whole = false;
  if (options.kind == IPC)
    return take_line(reply, data, len, whole);
  while (!reply->bad && !*whole && len > 0) {
    if (reply->started && (reply->left > 0 || reply->body == BODY_TO_END))
      take_bytes(reply, &data, &len);
    else if (options.kind == WS)
      take_frame_head(reply, &data, &len);
    else if (!reply->started)
      take_http_head(reply, &data, &len);
    else
      take_chunk_line(reply, &data, &len);
    *whole = reply->started && reply->last && reply->left == 0;
  }
  return (size_t)(data - began);
}

size_t
reply_skippable(const struct reply *reply)
{
  if (!reply->started || reply->body == BODY_TO_END || reply->first_len < FIRST_MAX ||
      reply->left <= 2 * LAST_MAX || options.kind == IPC)
    return 0;
  return (size_t)reply->left - LAST_MAX;
}

void
reply_skip(struct reply *reply, size_t n)
{
  reply->left -= n;
  reply->bytes += n;
}

/* --- what is looked at ----------------------------------------------------------------------- */

static const char *
find(const char *data, size_t len, const char *key)
{
  return memmem(data, len, key, strlen(key));
}

/* "error": of the reply, or NULL; *result likewise. */
static const char *
find_outcome(const struct reply *reply, const char **result)
{
  *result = find(reply->first, reply->first_len, "\"result\":");
  return find(reply->first, reply->first_len, "\"error\":");
}

uint64_t
reply_id(struct reply *reply)
{
  const char *result, *error = find_outcome(reply, &result), *at, *next;

  reply->first[reply->first_len] = reply->tail[reply->tail_len] = '\0';
  at = find(reply->first, reply->first_len, "\"id\":");
  if (at == NULL || (result != NULL && at > result) || (error != NULL && at > error)) {
    at = find(reply->tail, reply->tail_len, "\"id\":");
    while (at != NULL && (next = strstr(at + 1, "\"id\":")) != NULL)
      at = next;
  }
  return at == NULL ? 0 : strtoull(at + 5 + (at[5] == '"'), NULL, 10);
}

bool
reply_error(struct reply *reply, long *code)
{
  const char *result, *error = find_outcome(reply, &result), *at;

  reply->first[reply->first_len] = '\0';
  *code = 0;
  if (error == NULL || (result != NULL && result < error))
    return false;
  if (error[8 + strspn(error + 8, " ")] != '{')
    return false;
  at = strstr(error, "\"code\":");
  if (at != NULL)
    *code = strtol(at + 7, NULL, 10);
  return true;
}
