/* SPDX-License-Identifier: MIT */
/* Names to addresses off the loop: egw_resolve() of ethrpc-gw/loop.h. */
#ifndef WORKER_RESOLVE_H
#define WORKER_RESOLVE_H

struct egw_worker;

int resolver_init(struct egw_worker *worker);
void resolver_close(struct egw_worker *worker); /* cancels what is under way */
void resolver_free(struct egw_worker *worker);

#endif
