/* SPDX-License-Identifier: MIT */
/* The two halves of the gate as they see each other: gate.c reads a head, gate-policy.c judges
 * it. Pure; any thread. */
#ifndef LISTEN_GATE_H
#define LISTEN_GATE_H

#include "listen/parts.h"

/* RFC 9110 5.6.2 and 5.5. */
bool gate_is_token(struct egw_slice text);
bool gate_is_value(struct egw_slice text);

/* A value without the white space behind it; that of a field which tells where the body ends
 * keeps it and is thereby refused, since libmicrohttpd 0.9.75 reads it differently. */
struct egw_slice gate_trim(struct egw_slice name, struct egw_slice value);

/* Notes the refusal in `head`; always false. */
bool gate_refuse(struct gate_head *head, int status, enum refusal refusal, const char *why);

/* Judges a head whose method, target, version and headers are filled in; fills in the rest.
 * Never GATE_MORE. */
enum gate_kind gate_judge(const struct listener *listener, struct gate_head *head);

/* The path of a request target without its authority and query; "/" for an empty one. */
struct egw_slice gate_path(struct egw_slice target);

#endif
