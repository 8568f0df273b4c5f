/* SPDX-License-Identifier: MIT */
/* Log filters: which logs a client wants (execution-apis, eth_newFilter; the same for the
 * subscription "logs"), and whether a block's bloom speaks of any (yellow paper 4.3.1). */
#ifndef PUSH_MATCH_H
#define PUSH_MATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>
#include "push/logs.h"

#define FILTER_ALTERNATIVES_MAX 4096u  /* addresses and topics of one filter */

struct log_filter;

/* From the filter object (raw JSON); a missing slice, null or {} matches every log. NULL: *why says
 * what is wrong with it (a literal), or that memory is short. */
struct log_filter *log_filter_new(struct egw_slice object, const char **why);
void log_filter_free(struct log_filter *filter);

bool log_filter_matches(const struct log_filter *filter, const struct log_entry *log);

/* Whether a block with this bloom (256 bytes) may hold a log for the filter. */
bool log_filter_bloom(const struct log_filter *filter, const unsigned char bloom[256]);

/* Reads "logsBloom" of a raw header. false: it has none of the right form. */
bool bloom_read(struct egw_slice header, unsigned char bloom[256]);

#endif
