/* SPDX-License-Identifier: MIT */
/* What goes with an answer beside its bytes: words and stories of the members, bounded. */
#include "rpc/notes.h"

#include <stdlib.h>
#include "../lib/tap.h"

#define MANY 200u

static struct member members[MANY];
static struct call_note notes[MANY];

static void
is_text(char *got, const char *want, const char *name)
{
  if (!ok(want == NULL ? got == NULL : got != NULL && strcmp(got, want) == 0, "%s", name))
    printf("#   got \"%s\", want \"%s\"\n", got == NULL ? "(none)" : got,
           want == NULL ? "(none)" : want);
  free(got);
}

static void
reset(void)
{
  memset(members, 0, sizeof members);
  memset(notes, 0, sizeof notes);
}

static void
test_cache(void)
{
  char want[64 * 6 + 8] = "", *got;

  reset();
  is_text(notes_cache(members, notes, 0), NULL, "no member");
  is_text(notes_cache(members, notes, 1), "none", "no cache");
  notes[0].cache = "hit";
  is_text(notes_cache(members, notes, 1), "hit", "one");
  notes[2].cache = "bypass";
  is_text(notes_cache(members, notes, 3), "hit, none, bypass", "three");
  members[0].silent = true;
  is_text(notes_cache(members, notes, 3), "none, bypass", "a notification has no word");
  is_text(notes_cache(members, notes, 1), NULL, "alone neither");
  notes[0].cache = "a word that is too long";
  members[0].silent = false;
  is_text(notes_cache(members, notes, 1), "a word that is t", "a long word is cut");
  reset();
  for (size_t i = 0; i < MANY; i++)
    notes[i].cache = "hit";
  for (size_t i = 0; i < NOTES_CACHE_MAX; i++)
    strcat(want, i == 0 ? "hit" : ", hit");
  is_text(notes_cache(members, notes, NOTES_CACHE_MAX), want, "as many as there may be");
  members[NOTES_CACHE_MAX].silent = true;
  is_text(notes_cache(members, notes, NOTES_CACHE_MAX + 1), want, "and a notification");
  strcat(want, ", ...");
  got = notes_cache(members, notes, MANY);
  is_text(got, want, "more");
}

static void
test_story(void)
{
  static char text[2 * NOTES_STORY_MAX];
  char *got;

  reset();
  is_text(notes_story(members, notes, 1), NULL, "no story");
  notes[0].story = "+0.1ms a";
  is_text(notes_story(members, notes, 1), "+0.1ms a", "alone");
  notes[2].story = "+0.2ms b";
  is_text(notes_story(members, notes, 3), "#0 +0.1ms a | #2 +0.2ms b", "in an array");
  members[0].silent = true;
  is_text(notes_story(members, notes, 3), "#2 +0.2ms b", "a notification's is left out");
  reset();
  /* Every length around the limit; a sanitizer sees a byte too many. */
  for (size_t len = NOTES_STORY_MAX - 40; len < NOTES_STORY_MAX + 8; len++) {
    memset(text, 'x', len);
    text[len] = '\0';
    notes[0].story = text;
    notes[1].story = "second";
    got = notes_story(members, notes, 2);
    ok(got != NULL && strlen(got) < NOTES_STORY_MAX &&
           (strstr(got, "x | #1 second") != NULL || strstr(got, "x...") != NULL ||
            strstr(got, "x | ...") != NULL),
       "a story of %zu bytes and another", len);
    free(got);
  }
  got = notes_story(members, notes, 1);
  ok(got != NULL && strlen(got) < NOTES_STORY_MAX && strcmp(got + strlen(got) - 4, "x...") == 0,
     "one that is too long is cut");
  free(got);
}

int
main(void)
{
  test_cache();
  test_story();
  done_testing();
}
