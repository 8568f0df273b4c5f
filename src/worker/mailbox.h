/* SPDX-License-Identifier: MIT */
/* The worker's mailbox: how other threads reach it (egw_post). */
#ifndef WORKER_MAILBOX_H
#define WORKER_MAILBOX_H

struct egw_worker;

int mailbox_init(struct egw_worker *worker);
void mailbox_close(struct egw_worker *worker); /* worker's thread: later posts fail */
void mailbox_free(struct egw_worker *worker);  /* main thread, after join: drops what is left */

#endif
