/* SPDX-License-Identifier: MIT */
/* The hash of a raw transaction. */
#ifndef FAILOVER_TXHASH_H
#define FAILOVER_TXHASH_H

#include <stdbool.h>
#include <ethrpc-gw/buf.h>

/* The hash by which nodes will know what eth_sendRawTransaction's `params` send. false: they
 * are nothing of which that is certain (no hex, another form of params, a type of transaction
 * that Ethereum does not have), or memory is short. */
bool txhash_of_params(struct egw_slice params, unsigned char hash[32]);

#endif
