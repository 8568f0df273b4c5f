/* SPDX-License-Identifier: MIT */
/* What an upstream's reply means: a class, and by which row of errors.def (or rule of the
 * configuration) it was found. */
#ifndef FAILOVER_CLASSIFY_H
#define FAILOVER_CLASSIFY_H

#include <ethrpc-gw/middleware.h>

/* X(class, name in the configuration and the log, what follows, does the upstream's health
 * suffer, how much the client learns from it: when all fail, the highest is given) */
#define ERROR_CLASSES(X)                                                                      \
  X(RESULT, "result", ANSWER, GOOD, 9)                                                        \
  X(REVERT, "revert", ANSWER, GOOD, 9)   /* the contract's own word */                        \
  X(INVALID, "invalid", ANSWER, GOOD, 9) /* the request is wrong */                           \
  X(RANGE, "range-too-large", ANSWER, GOOD, 9)                                                \
  X(TX_KNOWN, "already-known", ANSWER, GOOD, 9)                                               \
  X(TX_NONCE, "nonce-too-low", ANSWER, GOOD, 8)                                               \
  X(TX_REFUSED, "tx-refused", ANSWER, GOOD, 9) /* the mempool's final word */                 \
  X(TX_BUSY, "tx-busy", ELSEWHERE, GOOD, 7)    /* this mempool's; others may differ */        \
  X(UNMATCHED, "unmatched", ANSWER, GOOD, 9)   /* an error that no row knows */               \
  X(STALE, "stale", MISSING, NONE, 8)          /* null for what exists; an old block */       \
  X(MISSING_BLOCK, "missing-block", MISSING, NONE, 7)                                         \
  X(MISSING_STATE, "missing-state", ELSEWHERE, NONE, 7)                                       \
  X(NODE_TIMEOUT, "node-timeout", ELSEWHERE, NONE, 6)                                         \
  X(SERVER, "server", AGAIN, BAD, 5)                                                          \
  X(RATE, "rate-limited", LATER, NONE, 4)                                                     \
  X(UNSUPPORTED, "unsupported", ELSEWHERE, NONE, 4)                                           \
  X(BILLING, "billing", ELSEWHERE, BAD, 3)                                                    \
  X(AUTH, "unauthorized", ELSEWHERE, BAD, 3)                                                  \
  X(SILENT, "silent", ELSEWHERE, BAD, 1) /* no answer in time */                              \
  X(BROKEN, "broken", AGAIN, BAD, 1)     /* connection lost, or no reply */                   \
  X(UNREACHABLE, "unreachable", AGAIN, BAD, 0)

enum error_class {
#define X(class, name, follows, mark, rank) CLASS_##class,
  ERROR_CLASSES(X)
#undef X
      CLASS_COUNT
};

/* What may be done after it, for calls that may be sent twice. */
enum follows {
  FOLLOWS_ANSWER,    /* nothing: the client gets it, verbatim */
  FOLLOWS_ELSEWHERE, /* another upstream; the same never */
  FOLLOWS_AGAIN,     /* another upstream, else the same after a pause */
  FOLLOWS_LATER,     /* another upstream, else the same when it will have us */
  FOLLOWS_MISSING    /* one that has the block, else at the pace of the chain */
};

enum mark { MARK_NONE, MARK_GOOD, MARK_BAD };

struct class_info {
  const char *name;
  enum follows follows;
  enum mark mark;
  unsigned rank;
};

const struct class_info *class_info(enum error_class class);

/* The class of that name; CLASS_COUNT: there is none. */
enum error_class class_find(const char *name);

struct verdict {
  enum error_class class;
  const char *row; /* name of the row; "" : by the outcome alone */
  unsigned number; /* 1 + the row's place in errors.def, 1 + ROW_COUNT: a rule of the configuration;
                      0: neither */
};

/* The rows of errors.def, for the metrics: each has a counter. */
enum error_row {
#define ROW(name, class, scope, code, http, texts) ROW_##name,
#include "errors.def"
#undef ROW
  ROW_COUNT
};

/* Rules of the configuration, before those of errors.def. */
struct rules;

/* Reads the list `rules` of the section: 0, or -1 after reporting. *out may be NULL (none). */
int rules_read(struct egw_conf *section, struct rules **out);
void rules_free(struct rules *rules);

/* Judges a reply to `method` (`info` NULL: not in the table). Results are CLASS_RESULT. */
struct verdict classify(const struct rules *rules, struct egw_slice method,
                        const struct egw_method_info *info, const struct egw_reply *reply);

#endif
