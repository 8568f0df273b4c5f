/* SPDX-License-Identifier: MIT */
/* An open connection: messages out and in, and whether the node is still there. */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include "ws.h"

static struct ws_conn *
io_of(struct pool_member *member)
{
  return container_of(member, struct ws_conn, member);
}

static const struct ws *
io_self(const struct ws_conn *c)
{
  return egw_link_self(c->link->link);
}

static void
io_set_timer(struct ws_conn *c, uint64_t ms)
{
  egw_timer_start(c->hub->worker, &c->timer, ms);
}

static void
io_heard(struct ws_conn *c)
{
  c->heard_ms = egw_now_ms(c->hub->worker);
  c->pinged_ms = 0;
}

/* --- out -------------------------------------------------------------------------------- */

/* One message or ping for each time the socket is writable, as lws wants it. */
static int
io_write_ping(struct ws_conn *c)
{
  unsigned char bytes[LWS_PRE + 1];

  c->ping_due = false;
  if (lws_write(c->wsi, bytes + LWS_PRE, 0, LWS_WRITE_PING) < 0) {
    c->why = "writing failed";
    return -1;
  }
  return 0;
}

static int
io_write_message(struct ws_conn *c, struct egw_xchg *xchg)
{
  struct egw_slice body = egw_buf_slice(egw_xchg_body(xchg));
  unsigned char *out = hub_out(c->hub, body.len);
  int n;

  if (out == NULL) {
    c->why = "memory is short";
    return -1;
  }
  memcpy(out, body.ptr, body.len); /* lws masks it in place */
  n = lws_write(c->wsi, out, body.len, LWS_WRITE_TEXT);
  /* Of a write that failed without TLS nothing is gone, so the exchange can go elsewhere. */
  if (n >= 0 || c->link->site->tls != NULL)
    pool_sent(&c->member);
  if (n < 0) {
    c->why = "writing failed";
    return -1;
  }
  return 0;
}

int
io_write(struct ws_conn *c)
{
  struct egw_xchg *xchg = pool_first(&c->member);
  int rc = 0;

  if (c->ping_due)
    rc = io_write_ping(c);
  else if (xchg != NULL)
    rc = io_write_message(c, xchg);
  if (rc == 0 && pool_first(&c->member) != NULL)
    lws_callback_on_writable(c->wsi);
  return rc;
}

void
io_flush(struct pool_member *member)
{
  lws_callback_on_writable(io_of(member)->wsi);
}

/* --- in --------------------------------------------------------------------------------- */

/* Some nodes (anvil) leave Nagle's algorithm on: what they send next waits until we have acknowledged the
 * last message, which the kernel puts off by up to 40 ms when we have nothing to send. The kernel forgets
 * this wish after a while, so it is told with each message. */
static void
acknowledge(const struct ws_conn *c)
{
#ifdef TCP_QUICKACK
  int on = 1;

  (void)setsockopt(lws_get_socket_fd(c->wsi), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
#else
  (void)c;
#endif
}

int
io_read(struct ws_conn *c, const char *bytes, size_t len)
{
  unsigned flags = (lws_is_first_fragment(c->wsi) ? EGW_CONN_FIRST : 0u)
                   | (lws_is_final_fragment(c->wsi) ? EGW_CONN_LAST : 0u);
  int verdict;

  io_heard(c);
  if ((flags & EGW_CONN_LAST) != 0)
    acknowledge(c);
  verdict = pool_data(&c->member, bytes == NULL ? "" : bytes, len, flags);
  if (verdict < 0) {
    c->why = "what the node sends can't be understood";
    return -1;
  }
  if (verdict > 0)
    lws_rx_flow_control(c->wsi, 0);
  return 0;
}

void
io_resume(struct pool_member *member)
{
  struct ws_conn *c = io_of(member);

  io_heard(c); /* nothing was read while it was held */
  lws_rx_flow_control(c->wsi, 1);
  hub_poke(c->hub);
}

/* --- is the node there? ----------------------------------------------------------------- */

void
io_pong(struct ws_conn *c)
{
  io_heard(c);
}

/* Milliseconds since the kernel got something from the node: a large message may take longer
 * than any ping, and is handed on in pieces only. */
static uint64_t
io_silence(const struct ws_conn *c)
{
  uint64_t silence = egw_now_ms(c->hub->worker) - c->heard_ms;
  struct tcp_info info;
  socklen_t len = sizeof info;

  if (getsockopt(lws_get_socket_fd(c->wsi), IPPROTO_TCP, TCP_INFO, &info, &len) == 0
      && info.tcpi_last_data_recv < silence)
    return info.tcpi_last_data_recv;
  return silence;
}

void
io_tick(struct ws_conn *c)
{
  const struct ws *ws = io_self(c);
  uint64_t now = egw_now_ms(c->hub->worker), silence;

  if (c->member.paused) { /* it is us who do not listen */
    io_heard(c);
    io_set_timer(c, ws->ping_interval);
    return;
  }
  silence = io_silence(c);
  if (c->pinged_ms != 0 && silence < now - c->pinged_ms)
    c->pinged_ms = 0;
  if (c->pinged_ms != 0) {
    if (now - c->pinged_ms >= ws->pong_timeout)
      conn_kill(c, "the node does not answer pings");
    else
      io_set_timer(c, ws->pong_timeout - (now - c->pinged_ms));
  } else if (silence < ws->ping_interval) {
    io_set_timer(c, ws->ping_interval - silence);
  } else {
    c->pinged_ms = now;
    c->ping_due = true;
    lws_callback_on_writable(c->wsi);
    io_set_timer(c, ws->pong_timeout);
  }
}

/* --- beginning -------------------------------------------------------------------------- */

int
io_open(struct ws_conn *c)
{
  int fd = lws_get_socket_fd(c->wsi), on = 1;

  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  c->state = WS_OPEN;
  io_heard(c);
  if (pool_opened(&c->member) != 0) {
    c->why = "memory is short";
    return -1;
  }
  if (io_self(c)->ping_interval > 0)
    io_set_timer(c, io_self(c)->ping_interval);
  else
    egw_timer_stop(c->hub->worker, &c->timer);
  return 0;
}
