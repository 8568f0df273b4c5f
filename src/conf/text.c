/* SPDX-License-Identifier: MIT */
/* A look at the configuration's text before libconfig gets it. libconfig 1.5 cuts integers of
 * more than 32 bits without a word, lets a string run over line ends (so that a forgotten
 * quote is reported far away), follows @include from the working directory, and drops \x00. */
#include "conf/file.h"

#include <stdlib.h>
#include <string.h>

struct text {
  struct conf_file *file;
  char *at, *end;
  char *last;       /* the last character seen but blanks and comments; NULL: none */
  int line;
  int depth;
  bool good;
};

static void
text_error(struct text *t, int line, const char *what)
{
  conf_message(t->file, false, line, "%s", what);
  t->good = false;
}

static bool
text_has(const struct text *t, const char *what)
{
  size_t len = strlen(what);

  return (size_t)(t->end - t->at) >= len && memcmp(t->at, what, len) == 0;
}

static void
skip_line(struct text *t)
{
  while (t->at < t->end && *t->at != '\n')
    t->at++;
}

static void
skip_comment(struct text *t)
{
  int began = t->line;

  for (t->at += 2; t->at < t->end; t->at++) {
    if (text_has(t, "*/")) {
      t->at += 2;
      return;
    }
    if (*t->at == '\n')
      t->line++;
  }
  text_error(t, began, "the comment that begins here does not end");
}

static void
skip_string(struct text *t)
{
  t->last = t->at;
  for (t->at++; t->at < t->end && *t->at != '"'; t->at++) {
    if (*t->at == '\n') {
      text_error(t, t->line, "a text does not end in its line: a \" is missing");
      return;
    }
    if (text_has(t, "\\x00"))
      text_error(t, t->line, "\\x00 in a text");
    if (*t->at == '\\' && t->end - t->at > 1 && t->at[1] != '\n')
      t->at++;
  }
  if (t->at < t->end)
    t->at++;
  else
    text_error(t, t->line, "a text does not end in its line: a \" is missing");
}

static bool
is_word_char(char c)
{
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_' || c == '.';
}

/* libconfig keeps 32 bits of an integer, or 64 when it ends in L. A larger one is reported,
 * and becomes 0 so that there is no second message about what libconfig made of it. */
static void
check_number(struct text *t, char *word, size_t len, bool minus)
{
  unsigned base = len > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X') ? 16 : 10;
  uint64_t n = 0, most;
  size_t i = base == 16 ? 2 : 0;
  bool over = false, is_long = false;

  for (; i < len; i++) {
    char c = word[i];
    unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : 16;

    if (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
      digit = (unsigned)((c | 0x20) - 'a' + 10);
    if (digit >= base)
      break;
    over = over || __builtin_mul_overflow(n, (uint64_t)base, &n) ||
           __builtin_add_overflow(n, (uint64_t)digit, &n);
  }
  for (; i < len && word[i] == 'L'; i++)
    is_long = true;
  if (i < len)
    return; /* a float, or what libconfig will call a syntax error */
  most = is_long ? (uint64_t)INT64_MAX : (uint64_t)INT32_MAX;
  if (!over && n <= most + (minus && base == 10 ? 1 : 0))
    return;
  conf_message(t->file, false, t->line,
               is_long || over || n > (uint64_t)INT64_MAX
                   ? "the number %.*s is too large"
                   : "the number %.*s is too large: write it with an L "
                     "behind it",
               (int)(len > 40 ? 40 : len), word);
  memset(word, ' ', len);
  word[0] = '0';
}

static void
take_word(struct text *t)
{
  char *word = t->at;
  bool minus = *word == '-';

  t->last = t->at;
  if (*word == '-' || *word == '+')
    t->at++;
  word = t->at;
  while (t->at < t->end && (is_word_char(*t->at) || *t->at == '-' || *t->at == '*'))
    t->at++;
  if (t->at == word)
    return;
  if (*word >= '0' && *word <= '9')
    check_number(t, word, (size_t)(t->at - word), minus);
}

/* A comma behind the last element is fine with later versions of libconfig only: it goes. So
 * they also take one without an element before it, which is a mistake. */
static void
note_comma(struct text *t)
{
  char c = *t->at, last = t->last == NULL ? '\0' : *t->last;

  if (c == ',' && (last == ',' || last == '(' || last == '['))
    text_error(t, t->line, "a comma without anything before it");
  if ((c == ')' || c == ']') && last == ',')
    *t->last = ' ';
  if (c != '\0' && strchr(" \t\r\n\f", c) == NULL)
    t->last = t->at;
}

/* false: stop here. */
static bool
take_sign(struct text *t)
{
  char c = *t->at;

  note_comma(t);
  t->at++;
  if (c == '\n') {
    t->line++;
  } else if (c == '\0') {
    text_error(t, t->line, "the file holds a NUL byte");
    return false;
  } else if (c == '@') {
    text_error(t, t->line, "@include is not supported: put everything into one file");
    skip_line(t);
  } else if (c == '{' || c == '(' || c == '[') {
    if (++t->depth > CONF_DEPTH_MAX) {
      text_error(t, t->line, "groups and lists are nested too deeply");
      return false;
    }
  } else if (c == '}' || c == ')' || c == ']') {
    t->depth--;
  }
  return true;
}

bool
conf_text_check(struct conf_file *file, char *text, size_t len)
{
  struct text t = { .file = file, .at = text, .end = text + len, .line = 1, .good = true };

  while (t.at < t.end) {
    if (*t.at == '#' || text_has(&t, "//"))
      skip_line(&t);
    else if (text_has(&t, "/*"))
      skip_comment(&t);
    else if (*t.at == '"')
      skip_string(&t);
    else if (is_word_char(*t.at) || *t.at == '-' || *t.at == '+')
      take_word(&t);
    else if (!take_sign(&t))
      break;
  }
  return t.good;
}
