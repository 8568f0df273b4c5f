/* SPDX-License-Identifier: MIT */
/* The method table: facts about JSON-RPC methods as data (methods.def), found by a perfect or
 * sorted lookup. Unknown methods have no row: they pass, and are never cached or retried. */
#ifndef RPC_METHOD_H
#define RPC_METHOD_H

#include <ethrpc-gw/middleware.h>

/* The row for `name`, or NULL. Rows are static; any thread. */
const struct egw_method_info *method_find(struct egw_slice name);

/* Rows are numbered 0..method_count()-1; method_index() of a row. */
unsigned method_count(void);
unsigned method_index(const struct egw_method_info *row);
const struct egw_method_info *method_row(unsigned index);

/* The word for a class, as in the manual ("by-block"). */
const char *method_class_name(enum egw_class method_class);

#endif
