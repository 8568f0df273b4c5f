/* SPDX-License-Identifier: MIT */
/* The status document: what runs, on which ports, with which upstreams. */
#ifndef ADMIN_STATUS_H
#define ADMIN_STATUS_H

#include <ethrpc-gw/buf.h>

struct gateway;

/* Appends the document as JSON. It holds no upstream URL and no secret. 0 or -1 (memory). On
 * worker 0, or before the workers run. */
int status_print(struct gateway *gateway, struct egw_buf *out) EGW_MUST_CHECK;

#endif
