/* SPDX-License-Identifier: MIT */
/* The JSON scanner: strict RFC 8259, iterative, resumable at any byte, O(n), no tree.
 *
 * It is fed bytes in pieces of any size and reports, through one callback, where the members
 * of the outermost object (or the elements of the outermost array) begin and end, as offsets
 * from the first byte ever fed. It checks everything below them too: grammar, UTF-8 (RFC 3629:
 * no overlong forms, no surrogates, nothing above U+10FFFF), escapes (\uXXXX with four hex
 * digits; lone surrogates are well-formed escapes and pass), no raw control characters, depth.
 * Numbers are checked by their grammar and never converted.
 *
 * The scan ends at the end of the outermost value: for a number at top level only
 * scan_finish() can tell. White space before the value is skipped; what follows the value
 * is the caller's affair.
 *
 * One thread; holds no memory of its own besides itself.
 */
#ifndef RPC_SCAN_H
#define RPC_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ethrpc-gw/json.h>

#define SCAN_DEPTH_MAX 512 /* bits of the container stack; depth 1 is the outermost value */

enum scan_event {
  SCAN_KEY,         /* from..to: a key of the outermost object, with its quotes */
  SCAN_VALUE_BEGIN, /* from: first byte of a member's value or an element; `kind` is known */
  SCAN_VALUE_END,   /* from..to: the whole member value or element */
};

enum scan_status {
  SCAN_MORE,        /* not at the end yet; everything fed was consumed */
  SCAN_DONE,        /* the outermost value is complete; *used tells where it ended */
  SCAN_BAD          /* not JSON; see why and offset */
};

struct scan;
typedef void scan_fn(struct scan *scan, enum scan_event event, enum egw_json_kind kind,
                     uint64_t from, uint64_t to, void *arg);

struct scan {
  scan_fn *fn;               /* may be NULL: check only */
  void *arg;
  uint64_t offset;           /* bytes consumed so far; in the callback: before this piece */
  uint64_t top_begin;        /* offset of the outermost value */
  enum egw_json_kind top;    /* its kind; EGW_JSON_NONE before it begins */
  const char *why;           /* SCAN_BAD: a constant reason */
  unsigned depth, max_depth; /* containers open now; deepest allowed */
  bool stop;                 /* set by the callback: end with SCAN_BAD */
  /* private */
  uint8_t state, sub, utf8_left, utf8_lo, utf8_hi, literal_at;
  enum egw_json_kind kind;
  uint64_t key_from, value_from;
  uint64_t stack[SCAN_DEPTH_MAX / 64]; /* 1: object, 0: array */
};

/* max_depth: 1..SCAN_DEPTH_MAX. */
void scan_init(struct scan *scan, unsigned max_depth, scan_fn *fn, void *arg);

/* Feeds bytes. *used gets how many were consumed: all of them for SCAN_MORE; up to and
 * including the last byte of the value for SCAN_DONE; up to the offending byte for
 * SCAN_BAD. */
enum scan_status scan_feed(struct scan *scan, const char *bytes, size_t len, size_t *used);

/* No more bytes will come: SCAN_DONE if a number at top level just ended, else SCAN_BAD. */
enum scan_status scan_finish(struct scan *scan);

/* Whether a key of the outermost object has begun (at scan->key_from) and has not ended. */
bool scan_in_key(const struct scan *scan);

/* One whole text in memory: a value, white space around it allowed, nothing else. */
bool scan_valid(struct egw_slice text, unsigned max_depth, const char **why);

/* Which string-scanning loop is in use: "avx2", "sse2" or "scalar"; scan_force("scalar") makes
 * tests compare them. Not thread-safe; before workers start. */
const char *scan_flavour(void);
bool scan_force(const char *flavour);

#endif
