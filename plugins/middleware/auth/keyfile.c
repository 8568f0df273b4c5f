/* SPDX-License-Identifier: MIT */
/* A file of API keys. Its text is kept and cut into words where it stands. */
#include "keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORDS_MAX 512u /* of one line */

struct keyfile {
  char *text;
  const char **words;            /* of all lines, one behind the other */
  size_t count, room;
};

static const char *const sorry = "out of memory";

void
keyfile_free(struct keyfile *file)
{
  if (file == NULL)
    return;
  free(file->text);
  free(file->words);
  free(file);
}

/* --- one line ---------------------------------------------------------------------------- */

struct line {
  const char *name;
  unsigned char digest[KEYS_DIGEST];
  int64_t expires;
  const char *allow[WORDS_MAX], *deny[WORDS_MAX];
  size_t allow_count, deny_count;
};

/* A word behind the key. NULL, or what is wrong. */
static const char *
read_word(struct line *line, const char *word)
{
  bool denied = word[0] == '!';

  if (strncmp(word, "expires=", 8) == 0)
    return grant_read_date(word + 8, &line->expires) == 0
             ? NULL : "expires= wants a date such as 2027-01-31";
  word += denied;
  if (!grant_pattern_valid(word))
    return "a word is neither a method, nor the beginning of one and a \"*\"";
  if (line->allow_count == WORDS_MAX || line->deny_count == WORDS_MAX)
    return "too many methods";
  if (denied)
    line->deny[line->deny_count++] = word;
  else
    line->allow[line->allow_count++] = word;
  return NULL;
}

/* Cuts the next word off; NULL: there is none. */
static char *
next_word(char **rest)
{
  char *word = *rest + strspn(*rest, " \t\r"), *end = word + strcspn(word, " \t\r");

  if (word == end)
    return NULL;
  *rest = *end == '\0' ? end : end + 1;
  *end = '\0';
  return word;
}

/* NULL, or what is wrong; *blank: there is nothing in it. */
static const char *
read_line(struct line *line, char *rest, bool *blank)
{
  const char *word = next_word(&rest), *why = NULL;

  *blank = word == NULL || word[0] == '#';
  if (*blank)
    return NULL;
  line->name = word;
  line->expires = GRANT_FOR_EVER;
  line->allow_count = line->deny_count = 0;
  if (!grant_name_valid(word))
    return "the name is not 1 to 64 letters, digits and \"._-@\"";
  word = next_word(&rest);
  if (word == NULL || strncmp(word, "sha256:", 7) != 0 ||
      keys_read_hex(word + 7, strlen(word + 7), line->digest) < 0)
    return "no \"sha256:\" and 64 hex digits behind the name";
  while (why == NULL && (word = next_word(&rest)) != NULL)
    why = read_word(line, word);
  return why;
}

/* --- all of them ------------------------------------------------------------------------- */

static const char *
added_why(enum keys_added added)
{
  switch (added) {
  case KEYS_ADDED: return NULL;
  case KEYS_TWICE: return "the key is there already";
  case KEYS_TOO_MANY: return "too many keys: more than 16384";
  case KEYS_NO_MEMORY: break;
  }
  return sorry;
}

static struct egw_strings
keep(struct keyfile *file, const char **words, size_t n)
{
  struct egw_strings list = { file->words + file->count, n };

  if (n > 0)
    memcpy(file->words + file->count, words, n * sizeof *words);
  file->count += n;
  return list;
}

static const char *
add_line(struct keyfile *file, const struct line *line, struct keys *keys)
{
  struct grant grant = { .name = line->name, .expires = line->expires };

  if (line->allow_count + line->deny_count > file->room - file->count)
    return sorry;
  grant.allow = keep(file, (const char **)line->allow, line->allow_count);
  grant.deny = keep(file, (const char **)line->deny, line->deny_count);
  return added_why(keys_add(keys, line->digest, &grant));
}

/* Room for all words, so that they never move: a word takes two bytes of the text at least. */
static struct keyfile *
make(char *text)
{
  struct keyfile *file = calloc(1, sizeof *file);

  if (file == NULL) {
    free(text);
    return NULL;
  }
  file->text = text;
  file->room = 1;
  for (const char *p = text; *p != '\0'; p++)
    file->room += *p == ' ' || *p == '\t';
  file->words = calloc(file->room, sizeof *file->words);
  if (file->words != NULL)
    return file;
  keyfile_free(file);
  return NULL;
}

struct keyfile *
keyfile_parse(char *text, struct keys *keys, char why[KEYFILE_WHY])
{
  struct keyfile *file = make(text);
  struct line *line = calloc(1, sizeof *line);
  const char *wrong = file == NULL || line == NULL ? sorry : NULL;
  unsigned number = 0;

  for (char *next = text; wrong == NULL && next != NULL;) {
    char *now = next, *end = strchr(now, '\n');
    bool blank;

    next = end == NULL ? NULL : end + 1;
    if (end != NULL)
      *end = '\0';
    number++;
    wrong = read_line(line, now, &blank);
    if (wrong == NULL && !blank)
      wrong = add_line(file, line, keys);
  }
  free(line);
  if (wrong == NULL)
    return file;
  (void)snprintf(why, KEYFILE_WHY, "line %u: %s", number, wrong);
  keyfile_free(file);
  return NULL;
}

static char *
read_all(int fd, size_t size)
{
  char *text = malloc(size + 1);
  size_t at = 0;

  while (text != NULL && at < size) {
    ssize_t n = read(fd, text + at, size - at);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    at += (size_t)n;
  }
  if (text != NULL)
    text[at] = '\0';
  return text;
}

struct keyfile *
keyfile_read(const char *path, struct keys *keys, char why[KEYFILE_WHY])
{
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const char *wrong = NULL;
  char *text = NULL;
  struct stat st;

  if (fd < 0)
    wrong = strerror(errno);
  else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
    wrong = "it is not a regular file";
  else if (st.st_size > (off_t)KEYFILE_MAX)
    wrong = "it is larger than 16 MiB";
  else if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    wrong = "others than its owner may write it (chmod go-w)";
  else if ((text = read_all(fd, (size_t)st.st_size)) == NULL)
    wrong = sorry;
  if (fd >= 0)
    (void)close(fd);
  if (wrong == NULL)
    return keyfile_parse(text, keys, why);
  (void)snprintf(why, KEYFILE_WHY, "%s", wrong);
  return NULL;
}
