/* SPDX-License-Identifier: MIT */
/* Recordings: text lines "// comment", ">> {request}", "<< {response}".
 *
 * The file is read, not mapped: one that is cut short while it is served would end the
 * process. What the lines hold is not checked for being strictly valid JSON; the reader of the
 * answers does that, as for any node. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ethrpc-gw/json.h>
#include "base/checked.h"
#include "replay.h"

#define TAPE_MAX (INT64_C(1) << 30)

/* --- keys ------------------------------------------------------------------------------ */

/* Goes over the bytes of a JSON text without its insignificant white space (RFC 8259
 * section 2). */
struct walk {
  const char *p, *end;
  bool in_string;
};

static int
walk_next(struct walk *w)
{
  while (w->p < w->end) {
    unsigned char c = (unsigned char)*w->p++;

    if (w->in_string) {
      if (c == '"')
        w->in_string = false;
      else if (c == '\\' && w->p < w->end && (*w->p == '"' || *w->p == '\\'))
        return -2 - (unsigned char)*w->p++; /* an escape: not to be taken for a quote */
      return c;
    }
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
      continue;
    w->in_string = c == '"';
    return c;
  }
  return -1;
}

static uint64_t
hash_on(uint64_t hash, struct egw_slice text)
{
  struct walk w = { text.ptr, text.ptr + text.len, false };
  int c;

  while ((c = walk_next(&w)) != -1)
    hash = (hash ^ (uint64_t)(unsigned)c) * UINT64_C(0x100000001b3);
  return hash;
}

static bool
same_text(struct egw_slice a, struct egw_slice b)
{
  struct walk x = { a.ptr, a.ptr + a.len, false }, y = { b.ptr, b.ptr + b.len, false };
  int c;

  if (a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0)
    return true;
  while ((c = walk_next(&x)) == walk_next(&y))
    if (c == -1)
      return true;
  return false;
}

static uint64_t
hash_of(struct egw_slice method, struct egw_slice params)
{
  uint64_t h = hash_on(hash_on(UINT64_C(0xcbf29ce484222325), method), params);

  return h ^ h >> 32; /* the low bits choose the slot */
}

static struct egw_slice
or_empty(struct egw_slice params)
{
  return params.ptr == NULL ? EGW_LIT("[]") : params;
}

/* --- looking up ------------------------------------------------------------------------- */

static const struct replay_entry *
find_hashed(const struct replay_tape *tape, uint64_t hash, struct egw_slice method,
            struct egw_slice params)
{
  size_t mask = tape->slot_count - 1;

  for (size_t i = hash & mask; tape->slots[i] != 0; i = (i + 1) & mask) {
    const struct replay_entry *e = &tape->entries[tape->slots[i] - 1];

    if (e->hash == hash && e->method.len == method.len
        && memcmp(e->method.ptr, method.ptr, method.len) == 0 && same_text(e->params, params))
      return e;
  }
  return NULL;
}

const struct replay_entry *
tape_find(const struct replay_tape *tape, struct egw_slice method, struct egw_slice params)
{
  params = or_empty(params);
  return find_hashed(tape, hash_of(method, params), method, params);
}

/* Fills the slots; of exchanges for the same request the first stays. */
static int
make_slots(struct replay_tape *tape)
{
  size_t mask;

  for (tape->slot_count = 16; tape->slot_count < tape->count * 2;)
    tape->slot_count *= 2;
  mask = tape->slot_count - 1;
  tape->slots = calloc(tape->slot_count, sizeof *tape->slots);
  if (tape->slots == NULL)
    return -1;
  for (size_t n = 0; n < tape->count; n++) {
    const struct replay_entry *e = &tape->entries[n];
    size_t i = e->hash & mask;

    if (find_hashed(tape, e->hash, e->method, e->params) != NULL)
      continue;
    while (tape->slots[i] != 0)
      i = (i + 1) & mask;
    tape->slots[i] = (uint32_t)n + 1;
  }
  return 0;
}

/* --- lines ------------------------------------------------------------------------------ */

static struct replay_entry *
add_entry(struct replay_tape *tape)
{
  size_t room = tape->room == 0 ? 256 : tape->room * 2, bytes;
  struct replay_entry *grown;

  if (tape->count < tape->room)
    return &tape->entries[tape->count++];
  if (room > UINT32_MAX / 2 || !size_mul(room, sizeof *grown, &bytes))
    return NULL;
  grown = realloc(tape->entries, bytes);
  if (grown == NULL)
    return NULL;
  tape->entries = grown;
  tape->room = room;
  return &tape->entries[tape->count++];
}

/* Reads "<< ..." into the entry whose request came before. One of the members may be null. */
static const char *
read_response(struct replay_entry *e, struct egw_slice text)
{
  struct egw_slice error = egw_json_member(text, "error");
  struct egw_slice result = egw_json_member(text, "result");

  if (error.ptr == NULL && result.ptr == NULL)
    return "the response has neither result nor error";
  e->is_error = result.ptr == NULL
                || (error.ptr != NULL && egw_json_kind(error) != EGW_JSON_NULL);
  e->answer = e->is_error ? error : result;
  return NULL;
}

static const char *
read_request(struct replay_entry *e, struct egw_slice text)
{
  e->method = egw_json_member(text, "method");
  e->params = or_empty(egw_json_member(text, "params"));
  e->answer = (struct egw_slice){ NULL, 0 };
  if (egw_json_kind(e->method) != EGW_JSON_STRING)
    return "the request has no method";
  e->hash = hash_of(e->method, e->params);
  return NULL;
}

/* Takes one line in; NULL, or what is wrong with it. */
static const char *
read_line(struct replay_tape *tape, struct egw_slice line)
{
  struct replay_entry *last = tape->count == 0 ? NULL : &tape->entries[tape->count - 1];
  bool open = last != NULL && last->answer.ptr == NULL;
  struct egw_slice text;

  if (line.len > 0 && line.ptr[line.len - 1] == '\r')
    line.len--;
  if (line.len == 0 || (line.len >= 2 && memcmp(line.ptr, "//", 2) == 0))
    return NULL;
  if (line.len < 3)
    return "not a comment, a request or a response";
  text = (struct egw_slice){ line.ptr + 3, line.len - 3 };
  if (memcmp(line.ptr, ">> ", 3) == 0) {
    if (open)
      return "a request without a response comes before";
    last = add_entry(tape);
    return last == NULL ? "memory is short" : read_request(last, text);
  }
  if (memcmp(line.ptr, "<< ", 3) != 0)
    return "not a comment, a request or a response";
  return open ? read_response(last, text) : "a response without a request";
}

static int
read_lines(struct replay_tape *tape, char *why, size_t cap)
{
  const char *p = tape->text, *end = p + tape->len, *fault = NULL;
  size_t number = 0;

  while (p < end && fault == NULL) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));

    if (stop == NULL)
      stop = end;
    number++;
    fault = read_line(tape, (struct egw_slice){ p, (size_t)(stop - p) });
    p = stop == end ? end : stop + 1;
  }
  if (fault == NULL && tape->count > 0 && tape->entries[tape->count - 1].answer.ptr == NULL)
    fault = "the last request has no response";
  if (fault == NULL)
    return 0;
  snprintf(why, cap, "line %zu: %s", number, fault);
  return -1;
}

/* --- files ------------------------------------------------------------------------------ */

/* Reads what the descriptor has, as far as it said to have. */
static int
read_text(struct replay_tape *tape, int fd, char *why, size_t cap)
{
  struct stat st;
  ssize_t n;

  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    snprintf(why, cap, "not a regular file");
    return -1;
  }
  if (st.st_size > TAPE_MAX) {
    snprintf(why, cap, "larger than 1 GiB");
    return -1;
  }
  tape->text = malloc((size_t)st.st_size + 1);
  if (tape->text == NULL) {
    snprintf(why, cap, "memory is short");
    return -1;
  }
  while (tape->len < (size_t)st.st_size) {
    n = read(fd, tape->text + tape->len, (size_t)st.st_size - tape->len);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      snprintf(why, cap, "%s", strerrordesc_np(errno));
      return -1;
    }
    if (n == 0)
      break;
    tape->len += (size_t)n;
  }
  return 0;
}

struct replay_tape *
tape_load(const char *path, char *why, size_t cap)
{
  struct replay_tape *tape = calloc(1, sizeof *tape);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), bad;

  if (tape == NULL || fd < 0) {
    snprintf(why, cap, "%s", tape == NULL ? "memory is short" : strerrordesc_np(errno));
    if (fd >= 0)
      close(fd);
    free(tape);
    return NULL;
  }
  bad = read_text(tape, fd, why, cap) != 0 || read_lines(tape, why, cap) != 0;
  close(fd);
  if (!bad && make_slots(tape) != 0) {
    snprintf(why, cap, "memory is short");
    bad = true;
  }
  if (!bad)
    return tape;
  tape_free(tape);
  return NULL;
}

void
tape_free(struct replay_tape *tape)
{
  if (tape == NULL)
    return;
  free(tape->text);
  free(tape->entries);
  free(tape->slots);
  free(tape);
}
