/* SPDX-License-Identifier: MIT */
/* The parts of bench/node: node.c, connections; node-result.c, what is answered. */
#ifndef BENCH_NODE_H
#define BENCH_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
  char *data;
  size_t len, cap;
};

/* --- node.c --------------------------------------------------------------------------------- */

_Noreturn void die(const char *what);
void text_room(struct text *text, size_t more);
void text_add(struct text *text, const char *data, size_t len);

/* --- node-result.c -------------------------------------------------------------------------- */

void result_make(size_t bytes, bool mix, bool chain);
/* The member "result" (or "error") of the answer to a request. */
void result_add(struct text *out, const char *request, size_t len);

#endif
