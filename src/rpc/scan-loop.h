/* SPDX-License-Identifier: MIT */
/* The scanner's loop as a template: scan-string.c includes this once for each flavour with
 * SCAN_RUN (its name), SCAN_TARGET (its attributes) and SCAN_PLAIN (its string loop).
 *
 * One long function on purpose. The program counter is the state: between two bytes that are
 * both at hand no state is stored, and the branch predictor sees each place of the grammar
 * as a place of its own. Only where the bytes run out is the state written to the struct, and
 * the switch at the top jumps back to the same place. */

/* Offset of `q` in the message. */
#define SCAN_AT(q) (s->offset + (uint64_t)((q) - base))

#define SCAN_SUSPEND(st)                                                                    \
  do {                                                                                      \
    state = (st);                                                                           \
    goto suspend;                                                                           \
  } while (0)

#define SCAN_FAIL(text)                                                                     \
  do {                                                                                      \
    why = (text);                                                                           \
    goto bad;                                                                               \
  } while (0)

/* `p` at the next byte that is not white space; suspends when there is none. */
#define SCAN_SKIP(st)                                                                       \
  do {                                                                                      \
    while (p < end && *p <= ' ' && scan_is_space(*p))                                       \
      p++;                                                                                  \
    if (p == end)                                                                           \
      SCAN_SUSPEND(st);                                                                     \
  } while (0)

#define SCAN_NEED(st)                                                                       \
  do {                                                                                      \
    if (p == end)                                                                           \
      SCAN_SUSPEND(st);                                                                     \
  } while (0)

#define SCAN_TELL(event, kind, from, to)                                                    \
  do {                                                                                      \
    if (s->fn != NULL) {                                                                    \
      s->depth = depth;                                                                     \
      s->fn(s, (event), (kind), (from), (to), s->arg);                                      \
      if (s->stop)                                                                          \
        SCAN_FAIL("stopped by the caller");                                                 \
    }                                                                                       \
  } while (0)

/* A value of `what` begins at `p`. */
#define SCAN_BEGIN(what)                                                                    \
  do {                                                                                      \
    if (depth == 1) {                                                                       \
      s->kind = (what);                                                                     \
      s->value_from = SCAN_AT(p);                                                           \
      SCAN_TELL(SCAN_VALUE_BEGIN, s->kind, s->value_from, 0);                               \
    } else if (depth == 0) {                                                                \
      s->top = (what);                                                                      \
      s->top_begin = SCAN_AT(p);                                                            \
    }                                                                                       \
  } while (0)

static SCAN_TARGET enum scan_status
SCAN_RUN(struct scan *s, const unsigned char *base, size_t len, size_t *used)
{
  const unsigned char *p = base, *const end = base + len;
  unsigned depth = s->depth;
  bool object = scan_in_object(s, depth);
  uint8_t state = s->state, sub = s->sub;
  uint8_t left = s->utf8_left, lo = s->utf8_lo, hi = s->utf8_hi, at = s->literal_at;
  const char *why;

  switch ((enum scan_state)state) {
  case SCAN_ST_VALUE: goto value;
  case SCAN_ST_VALUE_OR_END: goto value_or_end;
  case SCAN_ST_KEY: goto key;
  case SCAN_ST_KEY_OR_END: goto key_or_end;
  case SCAN_ST_COLON: goto colon;
  case SCAN_ST_AFTER: goto after;
  case SCAN_ST_STRING: goto string;
  case SCAN_ST_ESCAPE: goto escape;
  case SCAN_ST_HEX: goto hex;
  case SCAN_ST_UTF8: goto utf8;
  case SCAN_ST_MINUS: goto minus;
  case SCAN_ST_ZERO: goto zero;
  case SCAN_ST_INT: goto integer;
  case SCAN_ST_DOT: goto dot;
  case SCAN_ST_FRACTION: goto fraction;
  case SCAN_ST_E: goto e;
  case SCAN_ST_E_SIGN: goto e_sign;
  case SCAN_ST_EXPONENT: goto exponent;
  case SCAN_ST_LITERAL: goto literal;
  case SCAN_ST_DONE: *used = 0; return SCAN_DONE;
  case SCAN_ST_BAD: break;
  }
  *used = 0;
  return SCAN_BAD;

value_or_end:
  SCAN_SKIP(SCAN_ST_VALUE_OR_END);
  if (*p == ']')
    goto close;
value:
  SCAN_SKIP(SCAN_ST_VALUE);
  switch (*p) {
  case '"':
    SCAN_BEGIN(EGW_JSON_STRING);
    p++;
    p = SCAN_PLAIN(p, end);
    if (p < end && *p == '"') {
      p++;
      goto value_end;
    }
    sub = 0;
    goto string;
  case '{':
    SCAN_BEGIN(EGW_JSON_OBJECT);
    object = true;
    goto open;
  case '[':
    SCAN_BEGIN(EGW_JSON_ARRAY);
    object = false;
    goto open;
  case 't':
    SCAN_BEGIN(EGW_JSON_TRUE);
    sub = 0;
    at = 0;
    goto literal;
  case 'f':
    SCAN_BEGIN(EGW_JSON_FALSE);
    sub = 1;
    at = 0;
    goto literal;
  case 'n':
    SCAN_BEGIN(EGW_JSON_NULL);
    sub = 2;
    at = 0;
    goto literal;
  case '-':
    SCAN_BEGIN(EGW_JSON_NUMBER);
    p++;
    goto minus;
  case '0':
    SCAN_BEGIN(EGW_JSON_NUMBER);
    p++;
    goto zero;
  case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8': case '9':
    SCAN_BEGIN(EGW_JSON_NUMBER);
    p++;
    goto integer;
  default:
    SCAN_FAIL("a value was expected");
  }

open:
  if (depth == s->max_depth)
    SCAN_FAIL("nested too deeply");
  scan_push(s, depth, object);
  depth++;
  p++;
  if (!object)
    goto value_or_end;
key_or_end:
  SCAN_SKIP(SCAN_ST_KEY_OR_END);
  if (*p == '}')
    goto close;
key:
  SCAN_SKIP(SCAN_ST_KEY);
  if (*p != '"')
    SCAN_FAIL("a key was expected");
  if (depth == 1)
    s->key_from = SCAN_AT(p);
  p++;
  p = SCAN_PLAIN(p, end);
  sub = 1;
  if (p == end || *p != '"')
    goto string;
  p++;
key_end:
  if (depth == 1)
    SCAN_TELL(SCAN_KEY, EGW_JSON_STRING, s->key_from, SCAN_AT(p));
colon:
  SCAN_SKIP(SCAN_ST_COLON);
  if (*p != ':')
    SCAN_FAIL("a colon was expected");
  p++;
  goto value;

value_end:
  if (depth <= 1) {
    if (depth == 0)
      goto done;
    SCAN_TELL(SCAN_VALUE_END, s->kind, s->value_from, SCAN_AT(p));
  }
after:
  SCAN_SKIP(SCAN_ST_AFTER);
  if (*p == ',') {
    p++;
    if (object)
      goto key;
    goto value;
  }
  if (*p != (object ? '}' : ']'))
    SCAN_FAIL("a comma or the end of the container was expected");
close:
  p++;
  depth--;
  object = scan_in_object(s, depth);
  goto value_end;

  /* Strings with something in them that is not plain; sub: 1 in a key. */
string:
  p = SCAN_PLAIN(p, end);
  SCAN_NEED(SCAN_ST_STRING);
  if (*p == '"') {
    p++;
    if (sub != 0)
      goto key_end;
    goto value_end;
  }
  if (*p >= 0x80) {
    if (!scan_utf8_lead(*p, &left, &lo, &hi))
      SCAN_FAIL("not UTF-8");
    p++;
    goto utf8;
  }
  if (*p != '\\')
    SCAN_FAIL("a control character in a string");
  p++;
escape:
  SCAN_NEED(SCAN_ST_ESCAPE);
  switch (*p) {
  case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
    p++;
    goto string;
  case 'u':
    p++;
    left = 4;
    break;
  default:
    SCAN_FAIL("an unknown escape");
  }
hex:
  for (; left > 0; left--, p++) {
    SCAN_NEED(SCAN_ST_HEX);
    if (!scan_is_hex(*p))
      SCAN_FAIL("four hex digits were expected");
  }
  goto string;
utf8:
  for (; left > 0; left--, p++) {
    SCAN_NEED(SCAN_ST_UTF8);
    if (*p < lo || *p > hi)
      SCAN_FAIL("not UTF-8");
    lo = 0x80;
    hi = 0xbf;
  }
  goto string;

minus:
  SCAN_NEED(SCAN_ST_MINUS);
  if (*p == '0') {
    p++;
    goto zero;
  }
  if (!scan_is_digit(*p))
    SCAN_FAIL("a digit was expected");
  p++;
integer:
  while (p < end && scan_is_digit(*p))
    p++;
  SCAN_NEED(SCAN_ST_INT);
  goto point;
zero:
  SCAN_NEED(SCAN_ST_ZERO);
point:
  if (*p == '.') {
    p++;
    goto dot;
  }
  if ((*p | 0x20) == 'e') {
    p++;
    goto e;
  }
  goto value_end;
dot:
  SCAN_NEED(SCAN_ST_DOT);
  if (!scan_is_digit(*p))
    SCAN_FAIL("a digit was expected");
  p++;
fraction:
  while (p < end && scan_is_digit(*p))
    p++;
  SCAN_NEED(SCAN_ST_FRACTION);
  if ((*p | 0x20) != 'e')
    goto value_end;
  p++;
e:
  SCAN_NEED(SCAN_ST_E);
  if (*p == '+' || *p == '-')
    p++;
e_sign:
  SCAN_NEED(SCAN_ST_E_SIGN);
  if (!scan_is_digit(*p))
    SCAN_FAIL("a digit was expected");
  p++;
exponent:
  while (p < end && scan_is_digit(*p))
    p++;
  SCAN_NEED(SCAN_ST_EXPONENT);
  goto value_end;

literal:
  for (; scan_literals[sub][at] != '\0'; at++, p++) {
    SCAN_NEED(SCAN_ST_LITERAL);
    if (*p != (unsigned char)scan_literals[sub][at])
      SCAN_FAIL("an unknown word");
  }
  goto value_end;

suspend:
  s->state = state;
  s->sub = sub;
  s->utf8_left = left;
  s->utf8_lo = lo;
  s->utf8_hi = hi;
  s->literal_at = at;
  s->depth = depth;
  s->offset += len;
  *used = len;
  return SCAN_MORE;
done:
  s->state = SCAN_ST_DONE;
  s->depth = 0;
  *used = (size_t)(p - base);
  s->offset += *used;
  return SCAN_DONE;
bad:
  s->state = SCAN_ST_BAD;
  s->why = why;
  s->depth = depth;
  *used = (size_t)(p - base);
  s->offset += *used;
  return SCAN_BAD;
}

#undef SCAN_AT
#undef SCAN_SUSPEND
#undef SCAN_FAIL
#undef SCAN_SKIP
#undef SCAN_NEED
#undef SCAN_TELL
#undef SCAN_BEGIN
#undef SCAN_RUN
#undef SCAN_TARGET
#undef SCAN_PLAIN
