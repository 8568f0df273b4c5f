/* SPDX-License-Identifier: MIT */
/* The shape of a call: its params around the block number, so that the same call can be
 * made for another block. Pure; any thread. */
#ifndef PREFETCH_SHAPE_H
#define PREFETCH_SHAPE_H

#include <ethrpc-gw/middleware.h>

#define SHAPE_TEXT_MAX 4096u        /* longer params are not looked at */
#define SHAPE_NUMBER_MAX (UINT64_C(1) << 62) /* below: no sum overflows */

/* A place where the number stands, and how it is written there. */
struct shape_slot {
  size_t at, len;               /* with the quotes */
  uint64_t plus;                /* what stands there is the call's number and so much */
  uint8_t width;                /* hex digits at least: more than one for leading zeros */
  bool quoted, upper;           /* "0x1a" or 26; with the digits A-F */
};

struct shape {
  struct egw_slice method, params; /* borrowed */
  struct shape_slot slots[2];   /* in the order of the text */
  unsigned count;               /* of slots: 1, or 2 for a window */
  uint64_t number;              /* the block, or the first one of the window */
  uint64_t unit;                /* blocks covered: 1, or the length of the window */
};

/* Reads the shape of a call. false: it has no number of a block, or none that can be told. */
bool shape_read(struct shape *shape, const struct egw_method_info *method,
                struct egw_slice params);

/* A hash of all but the number. */
uint64_t shape_hash(const struct shape *shape, uint64_t seed);

/* The params for `number`. 0, or -1 when memory is short. */
int shape_print(const struct shape *shape, uint64_t number,
                struct egw_buf *out) EGW_MUST_CHECK;

/* Gives a shape memory of its own, which shape_free() frees; its method stays borrowed from
 * the method table. 0, or -1 when memory is short. */
int shape_keep(struct shape *kept, const struct shape *shape,
               const struct egw_method_info *method) EGW_MUST_CHECK;
void shape_free(struct shape *kept);

#endif
