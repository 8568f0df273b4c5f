/* SPDX-License-Identifier: MIT */
/* See notes.h. */
#include "rpc/notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 16   /* of a cache status */
#define MORE_ROOM 8   /* for " | ..." and a NUL */

char *
notes_cache(const struct member *members, const struct call_note *notes, size_t count)
{
  size_t cap = (count < NOTES_CACHE_MAX ? count : NOTES_CACHE_MAX) * (WORD_MAX + 2) + MORE_ROOM;
  char *text = malloc(cap);
  size_t at = 0, told = 0;

  for (size_t i = 0; text != NULL && i < count; i++) {
    const char *word = notes[i].cache != NULL ? notes[i].cache : "none";

    if (members[i].silent)
      continue;
    if (told == NOTES_CACHE_MAX) {
      snprintf(text + at, cap - at, ", ...");
      return text;
    }
    at += (size_t)snprintf(text + at, cap - at, "%s%.*s", told == 0 ? "" : ", ", WORD_MAX, word);
    told++;
  }
  if (told > 0)
    return text;
  free(text);
  return NULL;
}

/* Adds a story, or "..." where it does not fit. false: that was it. */
static bool
add_story(char *text, size_t *at, size_t index, bool numbered, const char *story)
{
  size_t cap = NOTES_STORY_MAX - MORE_ROOM - *at;
  const char *between = *at == 0 ? "" : " | ";
  int n = numbered ? snprintf(text + *at, cap, "%s#%zu %s", between, index, story)
                   : snprintf(text + *at, cap, "%s", story);

  if (n >= 0 && (size_t)n < cap) {
    *at += (size_t)n;
    return true;
  }
  if (*at == 0)
    *at = strlen(text); /* the first one is cut */
  snprintf(text + *at, MORE_ROOM, "%s...", between);
  return false;
}

char *
notes_story(const struct member *members, const struct call_note *notes, size_t count)
{
  char *text = malloc(NOTES_STORY_MAX);
  size_t at = 0;

  for (size_t i = 0; text != NULL && i < count; i++)
    if (!members[i].silent && notes[i].story != NULL &&
        !add_story(text, &at, i, count > 1, notes[i].story))
      return text;
  if (at > 0)
    return text;
  free(text);
  return NULL;
}
