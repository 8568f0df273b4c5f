/* SPDX-License-Identifier: MIT */
/* Reading raw JSON without a tree. Every slice given to these functions must be one valid
 * JSON value (params and results from the host are; egw_json_valid() tells of others). Nothing
 * here allocates or recurses. */
#ifndef ETHRPC_GW_JSON_H
#define ETHRPC_GW_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

enum egw_json_kind {
  EGW_JSON_NONE = 0, /* no value (empty or missing slice) */
  EGW_JSON_NULL,
  EGW_JSON_FALSE,
  EGW_JSON_TRUE,
  EGW_JSON_NUMBER,
  EGW_JSON_STRING,
  EGW_JSON_ARRAY,
  EGW_JSON_OBJECT
};

/* Whether any bytes are one JSON value (RFC 8259, UTF-8, nested no deeper than 64) with nothing but
 * white space around it. */
bool egw_json_valid(struct egw_slice bytes);

/* The kind of a value, by its first byte after white space. */
enum egw_json_kind egw_json_kind(struct egw_slice value);

/* The value of member `key` of an object (keys compare by decoded bytes; the first wins),
 * or a missing slice. Borrowed from `object`. */
struct egw_slice egw_json_member(struct egw_slice object, const char *key);

/* Element `index` of an array, or a missing slice. Borrowed from `array`. */
struct egw_slice egw_json_element(struct egw_slice array, size_t index);

/* Walks an array or object: start with *cursor = 0; true while there is a next one. For an
 * object `key` gets the raw key with its quotes; for an array it is missing. NULL: not wanted. */
bool egw_json_next(struct egw_slice container, size_t *cursor, struct egw_slice *key,
                   struct egw_slice *value);

/* Decodes a string value into `out` (cap bytes, not NUL-terminated). Returns the decoded
 * length, or -1 when it is not a string or does not fit. Lone surrogates become U+FFFD. */
long egw_json_string(struct egw_slice value, char *out, size_t cap);

/* Whether a string value equals `text` by decoded bytes. */
bool egw_json_equals(struct egw_slice value, const char *text);

/* Reads an integer: a JSON number without fraction or exponent, or a string "0x..." in hex.
 * 0, or -1 when it is neither or exceeds 64 bits. */
int egw_json_u64(struct egw_slice value, uint64_t *out);

/* Appends `text` as a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. 0 or -1. */
int egw_json_quote(struct egw_buf *out, struct egw_slice text) EGW_MUST_CHECK;

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
