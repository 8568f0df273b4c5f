/* SPDX-License-Identifier: MIT */
/* The admin listener's answers: GET /health, /ready, /metrics, /status. Called by the HTTP
 * listener on worker 0. */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include <ethrpc-gw/buf.h>

struct gateway;

struct admin_answer {
  int status;                  /* HTTP */
  const char *content_type;    /* constant */
  struct egw_buf *body;        /* the caller's reference */
};

/* Answers `method` ("GET", "HEAD" -> as GET, ...) on `path` (without the query). -1: no memory. */
int admin_answer(struct gateway *gateway, const char *method, const char *path,
                 struct admin_answer *out) EGW_MUST_CHECK;

#endif
