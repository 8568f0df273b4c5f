/* SPDX-License-Identifier: MIT */
/* JSON values out of a byte stream. See ipc-frame.h. */
#include "listen/ipc-frame.h"

#include <string.h>
#include "base/buf.h"

void
frame_init(struct frame *frame, unsigned max_depth, uint64_t limit, struct budget *budget)
{
  memset(frame, 0, sizeof(*frame));
  frame->max_depth = max_depth;
  frame->limit = limit;
  frame->budget = budget;
}

/* --- keeping bytes -------------------------------------------------------------------- */

static void
unreserve(struct frame *frame)
{
  if (frame->budget != NULL)
    budget_give(frame->budget, frame->reserved);
  frame->reserved = 0;
}

static void
drop_held(struct frame *frame)
{
  egw_buf_unref(frame->held);
  frame->held = NULL;
  unreserve(frame);
}

void
frame_free(struct frame *frame)
{
  drop_held(frame);
  frame->mode = FRAME_DEAD;
  frame->len = frame->at = frame->from = 0;
}

/* Appends to the kept bytes, which become the bytes at hand. */
static enum frame_found
hold(struct frame *frame, const char *bytes, size_t len)
{
  if (frame->budget != NULL && !budget_take(frame->budget, len))
    return FRAME_OVERLOADED;
  frame->reserved += len;
  if (frame->held == NULL)
    frame->held = egw_buf_new(len);
  if (frame->held == NULL || egw_buf_append(frame->held, bytes, len) != 0)
    return FRAME_NO_MEMORY;
  frame->bytes = frame->held->data;
  frame->len = frame->held->len;
  return FRAME_MORE;
}

/* Keeps the bytes at hand from `first` on, and no others. */
static enum frame_found
keep_from(struct frame *frame, size_t first)
{
  struct egw_buf *before = frame->held;
  size_t reserved = frame->reserved;
  enum frame_found found = FRAME_MORE;

  if (first == 0 && before != NULL)
    return FRAME_MORE;
  frame->held = NULL;
  frame->reserved = 0;
  if (first < frame->len)
    found = hold(frame, frame->bytes + first, frame->len - first);
  else
    frame->len = first = 0;
  frame->at -= first < frame->at ? first : frame->at;
  frame->from -= first < frame->from ? first : frame->from;
  egw_buf_unref(before);
  if (frame->budget != NULL)
    budget_give(frame->budget, reserved);
  return found;
}

/* The value's bytes can't be kept. Over the budget, it is followed to its end all the same, so
 * that the values behind it are found. */
static enum frame_found
give_up(struct frame *frame, enum frame_found why)
{
  drop_held(frame);
  frame->len = frame->at = frame->from = 0;
  frame->mode = why == FRAME_OVERLOADED && frame->mode == FRAME_INSIDE ? FRAME_DROPPING
                                                                       : FRAME_DEAD;
  return why;
}

void
frame_feed(struct frame *frame, const char *bytes, size_t len)
{
  if (frame->mode == FRAME_INSIDE && frame->held != NULL) {
    enum frame_found found = hold(frame, bytes, len);

    if (found == FRAME_MORE)
      return;
    frame->failed = give_up(frame, found);
  }
  frame->bytes = bytes;
  frame->len = len;
  frame->at = frame->from = 0;
}

void
frame_keep(struct frame *frame)
{
  size_t first = frame->mode == FRAME_INSIDE ? frame->from : frame->at;
  enum frame_found found;

  if (frame->mode == FRAME_DEAD || frame->held != NULL)
    return;
  found = keep_from(frame, first);
  if (found != FRAME_MORE)
    frame->failed = give_up(frame, found);
}

/* All bytes at hand were looked at. */
static enum frame_found
rest(struct frame *frame)
{
  enum frame_found found;

  if (frame->mode == FRAME_INSIDE) {
    found = keep_from(frame, frame->from);
    return found == FRAME_MORE ? FRAME_MORE : give_up(frame, found);
  }
  drop_held(frame);
  frame->len = frame->at = frame->from = 0;
  return FRAME_MORE;
}

/* --- a whole value -------------------------------------------------------------------- */

/* The kept buffer holds little more than the value: hands it on and keeps a copy of the tail.
 */
static struct egw_buf *
cut_held(struct frame *frame)
{
  struct egw_buf *value = frame->held, *tail = NULL;
  size_t left = frame->len - frame->at;

  if (left > 0) {
    tail = egw_buf_copy(buf_from(value, frame->at));
    if (tail == NULL)
      return NULL;
  }
  value->len = frame->at;
  unreserve(frame);
  if (frame->budget != NULL)
    budget_force(frame->budget, left);
  frame->reserved = left;
  frame->held = tail;
  frame->bytes = tail == NULL ? NULL : tail->data;
  frame->len = left;
  frame->at = frame->from = 0;
  return value;
}

static enum frame_found
cut(struct frame *frame, struct egw_buf **text)
{
  size_t size = frame->at - frame->from;

  if (frame->held != NULL && frame->from == 0 && size > frame->len - frame->at)
    *text = cut_held(frame);
  else
    *text = egw_buf_copy((struct egw_slice){ frame->bytes + frame->from, size });
  if (*text == NULL)
    return give_up(frame, FRAME_NO_MEMORY);
  frame->mode = FRAME_BETWEEN;
  return FRAME_VALUE;
}

/* --- behind a broken value ------------------------------------------------------------ */

static bool
opens(char c)
{
  return c == '{' || c == '[';
}

/* Follows brackets and strings, nothing else. True when the value ended with this byte. */
static bool
skip_byte(struct frame *frame, char c)
{
  if (frame->in_string) {
    if (frame->escaped)
      frame->escaped = false;
    else if (c == '\\')
      frame->escaped = true;
    else if (c == '"')
      frame->in_string = false;
    return c == '"' && !frame->in_string && frame->depth == 0;
  }
  if (c == '"')
    frame->in_string = true;
  else if (opens(c))
    frame->depth++;
  else if ((c == '}' || c == ']') && frame->depth > 0)
    return --frame->depth == 0;
  return false;
}

static void
begin_skipping(struct frame *frame)
{
  bool seen = frame->mode == FRAME_INSIDE;
  size_t i;

  frame->depth = frame->mode == FRAME_DROPPING ? frame->scan.depth : 0;
  frame->in_string = frame->escaped = frame->line_began = false;
  for (i = frame->from; seen && i < frame->at; i++)
    skip_byte(frame, frame->bytes[i]);
  frame->mode = FRAME_SKIPPING;
  frame->length = 0;
  frame->bom = 0;
}

/* FRAME_MORE: at the end of the bytes, or the mode has changed. */
static enum frame_found
skip(struct frame *frame)
{
  while (frame->at < frame->len) {
    char c = frame->bytes[frame->at];
    bool outside = frame->depth == 0 && !frame->in_string;

    if (opens(c) && (frame->line_began || outside)) {
      frame->mode = FRAME_BETWEEN;
      return FRAME_MORE;
    }
    frame->at++;
    if (++frame->length > frame->limit) {
      frame->mode = FRAME_DEAD;
      return FRAME_LOST;
    }
    if (c == '\n')
      frame->line_began = true;
    else if (c != '\r')
      frame->line_began = false;
    if (skip_byte(frame, c) || (c == '\n' && frame->depth == 0)) {
      frame->mode = FRAME_BETWEEN;
      return FRAME_MORE;
    }
  }
  return FRAME_MORE;
}

/* --- finding -------------------------------------------------------------------------- */

/* Up to the first byte of a value. A byte order mark there is passed over. */
static enum frame_found
between(struct frame *frame)
{
  static const char bom[] = "\xef\xbb\xbf";

  for (; frame->at < frame->len; frame->at++) {
    char c = frame->bytes[frame->at];

    if (c == bom[frame->bom]) {
      frame->bom = (frame->bom + 1) % 3;
      continue;
    }
    if (frame->bom > 0) {
      frame->from = frame->at;
      begin_skipping(frame);
      return FRAME_BROKEN;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
      continue;
    frame->mode = FRAME_INSIDE;
    frame->from = frame->at;
    frame->length = 0;
    scan_init(&frame->scan, frame->max_depth, NULL, NULL);
    break;
  }
  return FRAME_MORE;
}

static enum frame_found
inside(struct frame *frame, struct egw_buf **text)
{
  bool dropping = frame->mode == FRAME_DROPPING;
  enum scan_status status;
  size_t used;

  status = scan_feed(&frame->scan, frame->bytes + frame->at, frame->len - frame->at, &used);
  frame->at += used;
  frame->length += used;
  if (frame->length > frame->limit) {
    frame->mode = FRAME_DEAD;
    return FRAME_TOO_LARGE;
  }
  if (status == SCAN_MORE)
    return FRAME_MORE;
  if (status == SCAN_BAD) {
    begin_skipping(frame);
    return dropping ? FRAME_MORE : FRAME_BROKEN;
  }
  if (!dropping)
    return cut(frame, text);
  frame->mode = FRAME_BETWEEN;
  return FRAME_MORE;
}

enum frame_found
frame_next(struct frame *frame, struct egw_buf **text)
{
  enum frame_found found = frame->failed;

  frame->failed = FRAME_MORE;
  while (found == FRAME_MORE && frame->at < frame->len) {
    switch (frame->mode) {
    case FRAME_BETWEEN:
      found = between(frame);
      break;
    case FRAME_INSIDE:
    case FRAME_DROPPING:
      found = inside(frame, text);
      break;
    case FRAME_SKIPPING:
      found = skip(frame);
      break;
    case FRAME_DEAD:
      drop_held(frame);
      frame->at = frame->len;
      break;
    }
  }
  return found == FRAME_MORE ? rest(frame) : found;
}

enum frame_found
frame_finish(struct frame *frame, struct egw_buf **text)
{
  enum frame_mode mode = frame->mode;
  enum frame_found found = frame->bom > 0 ? FRAME_BROKEN : FRAME_MORE;

  if (mode == FRAME_INSIDE)
    found = scan_finish(&frame->scan) == SCAN_DONE ? cut(frame, text) : FRAME_BROKEN;
  frame_free(frame);
  return found;
}
