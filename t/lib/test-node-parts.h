/* SPDX-License-Identifier: MIT */
/* Inside of the test node. */
#ifndef T_LIB_TEST_NODE_PARTS_H
#define T_LIB_TEST_NODE_PARTS_H

#include <stdint.h>
#include <openssl/ssl.h>
#include "test-node.h"

struct node_peer {
  struct node_peer *next;
  struct node *node;
  pthread_t thread;
  int fd;                     /* -1: ended */
  int mode;
  bool ws;
  atomic_bool killed;
  SSL *ssl;
  char *text;                 /* the message read last */
  size_t len, room;
  unsigned long long late[4096];
  unsigned late_count;
};

bool peer_read(struct node_peer *p, void *bytes, size_t len);
bool peer_write(struct node_peer *p, const void *bytes, size_t len);

/* Answers the handshake; false: it was refused. */
bool ws_accept(struct node_peer *p);
/* The next text message into p->text; answers pings and closes. */
bool ws_receive(struct node_peer *p);
/* One text message in frames of `piece` bytes (0: one frame). */
bool ws_send(struct node_peer *p, const char *text, size_t len, size_t piece);

#endif
