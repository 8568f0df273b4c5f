/* SPDX-License-Identifier: MIT */
/* Memory for long values that are kept: slots of spans that the kernel can back with huge pages.
 *
 * Memory that is new to the process costs a page fault for each 4 KiB: some 200 us for a block of 350 kB,
 * several times what copying it costs. A span is 4 MiB at a multiple of that, so that two faults give
 * all of it. Each span has slots of one size; sizes are an eighth apart. A span without slots in
 * use goes back to the kernel. Any thread. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#define SPAN_MIN ((size_t)64 << 10)   /* bytes: what is shorter does not come from here, */
#define SPAN_MAX ((size_t)1 << 20)    /* nor what is longer */

/* Memory for `size` bytes, SPAN_MIN <= size <= SPAN_MAX; for span_free(). NULL: there is none. */
void *span_alloc(size_t size);
/* `size` as it was asked for. */
void span_free(void *memory, size_t size);

/* Spans that there are now. For tests. */
size_t span_count(void);

#endif
