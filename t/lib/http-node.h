/* SPDX-License-Identifier: MIT */
/* A scripted HTTP/1.1 node on the test's own libuv loop: what it does with a request is chosen
 * by the path. It answers JSON-RPC with {"jsonrpc":"2.0","id":<id>,"result":"0x1"}, the id
 * taken from the request's text.
 *
 *   /ok            the answer, connection kept
 *   /close         the answer, then FIN without having announced it
 *   /reset         the answer, then RST
 *   /idle50        the answer; the connection is closed 50 ms later unless a request comes
 *   /drop          FIN without a byte; /droprst: RST
 *   /short         Content-Length 10 too large, then FIN; /shortrst: then RST
 *   /chunked       one byte a chunk; /chunkcut: FIN before the last chunk
 *   /delimited     HTTP/1.0, ended by FIN
 *   /status/NNN    that status; the body is an error object with code 3
 *   /later/S       429 with Retry-After: S ("date": a date 90 s ahead)
 *   /moved/PATH    302 to this server's PATH
 *   /garbage       not HTTP
 *   /silent        nothing
 *   /stall         a head, some of the body, then nothing
 *   /big/N         N bytes of result
 *   /html          200 with a page
 */
#ifndef T_LIB_HTTP_NODE_H
#define T_LIB_HTTP_NODE_H

#include <stdbool.h>
#include <uv.h>
#include "base/list.h"

struct hnode {
  uv_loop_t *loop;
  uv_tcp_t listener;
  struct list conns;
  unsigned port;
  unsigned accepted, open, requests;
  char head[8192];               /* of the last request */
  char *body;                    /* of the last request */
  size_t body_len;
  bool listening;
};

/* Listens on 127.0.0.1, a port of the kernel's choice, or `port` if it is not 0. 0 or -1. */
int hnode_start(struct hnode *node, uv_loop_t *loop, unsigned port);

/* Ends all connections: by RST, or by FIN. */
void hnode_end_all(struct hnode *node, bool reset);

/* Closes the listener and all connections; the loop must run on for them to be freed. */
void hnode_stop(struct hnode *node);

#endif
