/* SPDX-License-Identifier: MIT */
/* A file of API keys: one a line, "NAME sha256:HEX [expires=DATE] [METHOD | !METHOD]...".
 * Empty lines and lines that begin with '#' are skipped. */
#ifndef AUTH_KEYFILE_H
#define AUTH_KEYFILE_H

#include "keys.h"

#define KEYFILE_MAX (16u << 20) /* bytes */
#define KEYFILE_WHY 160u

struct keyfile;

/* Reads the file at `path` and adds its keys to `keys`, which points into what is returned.
 * NULL with a reason ("line 3: ...") in `why`. Main thread. */
struct keyfile *keyfile_read(const char *path, struct keys *keys, char why[KEYFILE_WHY]);
void keyfile_free(struct keyfile *file); /* NULL is allowed */

/* The same for text in memory, which is taken (malloc) and changed. */
struct keyfile *keyfile_parse(char *text, struct keys *keys, char why[KEYFILE_WHY]);

#endif
