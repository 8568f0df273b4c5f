/* SPDX-License-Identifier: MIT */
/* What the head of a request tells of who sent it: from the gate's findings to where the calls
 * can ask for it. Nothing here is ever logged. Any thread. */
#ifndef LISTEN_FACTS_H
#define LISTEN_FACTS_H

#include "listen/session.h"

struct gate_head;

/* Points into the head's bytes. */
void facts_read(struct client_facts *facts, const struct gate_head *head);

/* Whether the head told nothing. */
bool facts_empty(const struct client_facts *facts);

/* Bytes that facts_copy() needs. */
size_t facts_size(const struct client_facts *facts);

/* A copy in `memory` (aligned for any type) that depends on nothing else. */
struct client_facts *facts_copy(void *memory, const struct client_facts *facts);

#endif
