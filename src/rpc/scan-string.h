/* SPDX-License-Identifier: MIT */
/* Skipping the plain bytes of a string: inside of the scanner, shared with json.c. */
#ifndef RPC_SCAN_STRING_H
#define RPC_SCAN_STRING_H

#include "rpc/scan.h"

/* States of the scanner between two bytes. */
enum scan_state {
  SCAN_ST_VALUE = 0,     /* a value must come */
  SCAN_ST_VALUE_OR_END,  /* after '[' */
  SCAN_ST_KEY,           /* after ',' in an object */
  SCAN_ST_KEY_OR_END,    /* after '{' */
  SCAN_ST_COLON,
  SCAN_ST_AFTER,         /* after a value: ',' or the end of the container */
  SCAN_ST_STRING,        /* in a string, between characters */
  SCAN_ST_ESCAPE,        /* after '\' */
  SCAN_ST_HEX,           /* in \uXXXX: utf8_left digits are missing */
  SCAN_ST_UTF8,          /* in a character: utf8_left bytes are missing */
  SCAN_ST_MINUS,         /* numbers, by what was read last */
  SCAN_ST_ZERO,
  SCAN_ST_INT,
  SCAN_ST_DOT,
  SCAN_ST_FRACTION,
  SCAN_ST_E,
  SCAN_ST_E_SIGN,
  SCAN_ST_EXPONENT,
  SCAN_ST_LITERAL,       /* in true, false, null: literal_at letters were read */
  SCAN_ST_DONE,
  SCAN_ST_BAD
};

/* Where the run of plain bytes from `p` on ends: the first quote, backslash, control character
 * or non-ASCII byte, or `end`. Uses the flavour in force. */
const unsigned char *scan_plain(const unsigned char *p, const unsigned char *end);

/* The scanner's loop in the flavour in force; the arguments are scan_feed()'s. */
enum scan_status scan_run(struct scan *scan, const unsigned char *bytes, size_t len,
                          size_t *used);

#endif
