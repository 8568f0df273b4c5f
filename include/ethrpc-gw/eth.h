/* SPDX-License-Identifier: MIT */
/* What is Ethereum's own: its hash, and bytes as JSON-RPC writes them. Any thread. */
#ifndef ETHRPC_GW_ETH_H
#define ETHRPC_GW_ETH_H

#include <ethrpc-gw/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Keccak-256 of `bytes` as Ethereum uses it: the submission's padding, not that of FIPS 202.
 */
void egw_keccak256(struct egw_slice bytes, unsigned char out[32]);

/* Reads a raw JSON string of "0x" and an even number of hex digits into `out`. Returns the
 * number of bytes, or -1 when it is anything else or they are more than `cap`. `out` NULL:
 * only counts. */
long egw_hex_read(struct egw_slice value, unsigned char *out, size_t cap);

/* Writes "0x", 2 * len lower-case digits and a NUL. */
void egw_hex_print(const unsigned char *bytes, size_t len, char *out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
