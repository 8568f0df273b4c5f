/* SPDX-License-Identifier: MIT */
/* Transactions of EIP-2718 and legacy ones. Their hash is that of the bytes as sent, but for
 * blobs (EIP-4844, EIP-7594): they come along in a wrapper of which only the transaction
 * counts. Other chains have types of their own, some of them hashed otherwise; those are left
 * alone. */
#include "txhash.h"

#include <stdint.h>
#include <stdlib.h>
#include <ethrpc-gw/eth.h>
#include <ethrpc-gw/json.h>

#define TYPE_BLOB 0x03
#define TYPE_LAST 0x04   /* EIP-7702 */
#define LIST_SHORT 0xc0u /* RLP: a list of up to 55 bytes */
#define LIST_LONG 0xf7u  /* the bytes that its length has are added to this */

/* An RLP list at `at`: where its first item begins, and where it ends. */
static bool
list_at(const unsigned char *bytes, size_t len, size_t at, size_t *first, size_t *end)
{
  size_t size = 0, digits, i;

  if (at >= len || bytes[at] < LIST_SHORT)
    return false;
  digits = bytes[at] > LIST_LONG ? bytes[at] - LIST_LONG : 0;
  if (digits > 4 || digits >= len - at)
    return false;
  if (digits == 0)
    size = bytes[at] - LIST_SHORT;
  for (i = 1; i <= digits; i++)
    size = size << 8 | bytes[at + i];
  *first = at + 1 + digits;
  if (size > len - *first)
    return false;
  *end = *first + size;
  return true;
}

/* The part of the bytes (which it may change) that is hashed; missing: not known. */
static struct egw_slice
hashed_part(unsigned char *bytes, size_t len)
{
  struct egw_slice all = { (const char *)bytes, len }, none = { NULL, 0 };
  size_t inside, end, item, item_end;

  if (bytes[0] >= LIST_SHORT)
    return all;
  if (bytes[0] == 0 || bytes[0] > TYPE_LAST)
    return none;
  if (bytes[0] != TYPE_BLOB || len < 2)
    return all;
  if (!list_at(bytes, len, 1, &inside, &end))
    return none;
  if (inside == end || bytes[inside] < LIST_SHORT)
    return all; /* it begins with the chain's id: no wrapper */
  if (!list_at(bytes, end, inside, &item, &item_end))
    return none;
  bytes[inside - 1] = TYPE_BLOB;
  return (struct egw_slice){ (const char *)bytes + inside - 1, item_end - inside + 1 };
}

bool
txhash_of_params(struct egw_slice params, unsigned char hash[32])
{
  struct egw_slice raw, part = { NULL, 0 };
  unsigned char *bytes;
  long len;

  if (egw_json_kind(params) != EGW_JSON_ARRAY || egw_json_element(params, 1).ptr != NULL)
    return false;
  raw = egw_json_element(params, 0);
  len = egw_hex_read(raw, NULL, 0);
  if (len < 1)
    return false;
  bytes = malloc((size_t)len);
  if (bytes != NULL && egw_hex_read(raw, bytes, (size_t)len) == len)
    part = hashed_part(bytes, (size_t)len);
  if (part.ptr != NULL)
    egw_keccak256(part, hash);
  free(bytes);
  return part.ptr != NULL;
}
