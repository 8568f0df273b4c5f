/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target on its corpus without libFuzzer: it is linked with one fuzz/fuzz-NAME.c, and
 * as fuzz/replay-NAME.t (its own name says which) reads $EGW_SOURCE/fuzz/corpus/NAME; further files
 * or folders may be named on the command line. An input that a fuzzer found stays right this
 * way in every build. A target aborts when something is wrong. */
#include <dirent.h>
#include <stdint.h>
#include <sys/stat.h>
#include "../t/lib/tap.h"

#define PATH_LEN 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In a block of just its size, so that a sanitizer sees a read beyond it. */
static void
replay_file(const char *path)
{
  FILE *file = fopen(path, "rbe");
  uint8_t *data = NULL;
  struct stat st;
  size_t len = 0;

  if (file != NULL && fstat(fileno(file), &st) == 0 && st.st_size >= 0) {
    len = (size_t)st.st_size;
    data = malloc(len != 0 ? len : 1);
  }
  if (!ok(data != NULL && fread(data, 1, len, file) == len, "%s is read", path)) {
    free(data);
    if (file != NULL)
      fclose(file);
    return;
  }
  fclose(file);
  ok(LLVMFuzzerTestOneInput(data, len) == 0, "%s", path);
  free(data);
}

static void
replay_folder(const char *path)
{
  struct dirent **names;
  int count = scandir(path, &names, NULL, alphasort), i;
  char file[PATH_LEN];

  ok(count > 2, "%s has inputs", path);
  for (i = 0; i < count; i++) {
    if (names[i]->d_name[0] != '.' &&
        ok(snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name) < PATH_LEN, "a path"))
      replay_file(file);
    free(names[i]);
  }
  if (count >= 0)
    free(names);
}

/* The corpus of replay-NAME.t. */
static void
replay_own(const char *program)
{
  const char *source = getenv("EGW_SOURCE"), *base = strrchr(program, '/');
  const char *name = strstr(base != NULL ? base : program, "replay-");
  char path[PATH_LEN];
  int len;

  if (source == NULL)
    skip_all("EGW_SOURCE does not name the source tree");
  if (name == NULL)
    return;
  name += strlen("replay-");
  len = (int)strcspn(name, ".");
  if (ok(snprintf(path, sizeof(path), "%s/fuzz/corpus/%.*s", source, len, name) < PATH_LEN,
         "a path"))
    replay_folder(path);
}

int
main(int argc, char **argv)
{
  struct stat st;
  int i;

  if (argc == 1)
    replay_own(argv[0]);
  for (i = 1; i < argc; i++) {
    if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
      replay_folder(argv[i]);
    else
      replay_file(argv[i]);
  }
  return done_testing();
}
