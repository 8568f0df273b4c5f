/* SPDX-License-Identifier: MIT */
/* The worker: a thread with its loop. Everything here except egw_post() may be called only
 * on the worker's own thread. */
#ifndef ETHRPC_GW_LOOP_H
#define ETHRPC_GW_LOOP_H

#include <stdint.h>
#include <ethrpc-gw/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

struct egw_worker;
struct sockaddr;
struct uv_loop_s;

/* Milliseconds of a monotonic clock, as of the start of this loop turn. */
uint64_t egw_now_ms(const struct egw_worker *worker);

/* Number of this worker, from 0, and how many there are. */
unsigned egw_worker_index(const struct egw_worker *worker);
unsigned egw_worker_count(const struct egw_worker *worker);

/* The worker's libuv loop, for libraries that must join it. In-tree plugins only: this ties
 * the caller to the libuv the host was built with. Blocking it is a bug. */
struct uv_loop_s *egw_worker_uv(struct egw_worker *worker);

/* Runs fn(arg) on the worker soon. The only call for foreign threads. 0, or -1 when the
 * worker is gone or memory is short (fn is not called then). */
int egw_post(struct egw_worker *worker, void (*fn)(void *arg), void *arg);

/* Timers. `timer` is memory of the caller, zeroed before first use, that must stay valid
 * while armed; fn runs once on the worker, not before `ms` have passed. Starting an armed
 * timer moves it. Stopping an idle one does nothing. */
struct egw_timer {
  void (*fn)(struct egw_timer *timer);
  void *arg;
  void *host[6]; /* the host's; do not touch */
};
void egw_timer_start(struct egw_worker *worker, struct egw_timer *timer, uint64_t ms);
void egw_timer_stop(struct egw_worker *worker, struct egw_timer *timer);

/* Resolves `host` (a name or an IP literal) and `port` off the loop; fn is called once, never
 * from within this call, with `count` addresses, or with count 0 and a reason.
 * `addresses` is valid during fn. Returns a handle for egw_resolve_cancel(), after which
 * fn is not called; NULL when memory is short. */
struct egw_resolve;
struct egw_address {
  unsigned char bytes[28]; /* a sockaddr_in or sockaddr_in6 */
  uint32_t len;
};
typedef void egw_resolve_fn(void *arg, const struct egw_address *addresses, size_t count,
                            const char *why);
struct egw_resolve *egw_resolve(struct egw_worker *worker, const char *host, uint16_t port,
                                egw_resolve_fn *fn, void *arg);
void egw_resolve_cancel(struct egw_resolve *handle);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
