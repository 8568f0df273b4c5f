/* SPDX-License-Identifier: MIT */
/* Example 5: a transport. Its node is made up: eth_chainId is answered with an option, and
 * everything else with an error, without leaving the process.
 *
 *   upstreams = ( { name = "toy"; url = "example5-transport:toy"; chain_id = 31337; } );
 *
 * A plugin that serves the scheme "x" is called "x", so that it can be found.             */
#include <ethrpc-gw/json.h>
#include <ethrpc-gw/transport.h>

struct toy {
  int64_t chain_id;
};

static const struct egw_option options[] = {
  { .name = "chain_id", .type = EGW_OPT_INT, .offset = offsetof(struct toy, chain_id),
    .fallback = "1", .min = 1, .max = INT64_MAX, .help = "What eth_chainId says" },
  EGW_OPTION_END
};

/* Nothing to prepare. A transport that keeps connections would begin to connect here. */
static int
toy_open(struct egw_link *link)
{
  (void)link;
  return 0;
}

/* Every exchange ends within submit() or more(), or was taken back: none is left here. */
static void
toy_close(struct egw_link *link)
{
  egw_link_closed(link);
}

static int
toy_reply(const struct toy *self, struct egw_slice request, struct egw_buf *out)
{
  struct egw_slice id = egw_json_member(request, "id");
  bool known = egw_json_equals(egw_json_member(request, "method"), "eth_chainId");

  if (egw_buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,", (int)id.len, id.ptr) != 0)
    return -1;
  if (known)
    return egw_buf_printf(out, "\"result\":\"0x%llx\"}", (unsigned long long)self->chain_id);
  return egw_buf_printf(out, "\"error\":{\"code\":-32601,\"message\":\"unknown to a toy\"}}");
}

static void
toy_submit(struct egw_link *link, struct egw_xchg *xchg)
{
  struct egw_slice request = egw_buf_slice(egw_xchg_body(xchg)), reply;
  struct egw_buf *out = egw_buf_new(128);
  int verdict;

  if (out == NULL || toy_reply(egw_link_self(link), request, out) != 0) {
    egw_buf_unref(out);
    egw_xchg_done(xchg, EGW_NOT_SENT, "out of memory");
    return;
  }
  reply = egw_buf_slice(out);
  verdict = egw_xchg_data(xchg, reply.ptr, reply.len);
  egw_buf_unref(out);
  if (verdict < 0)
    egw_xchg_done(xchg, EGW_BAD_REPLY, "the reply was refused");
  else if (verdict == 0)
    egw_xchg_done(xchg, EGW_OK, NULL); /* the exchange is gone after this */
  /* verdict 1: its reader is full; the end is told in more(). */
}

static void
toy_more(struct egw_link *link, struct egw_xchg *xchg, struct egw_conn *conn)
{
  (void)link;
  (void)conn; /* of transports with EGW_T_MULTIPLEX only */
  egw_xchg_done(xchg, EGW_OK, NULL);
}

/* The core takes an exchange back. We keep no list of them, so there is nothing to forget. */
static void
toy_abort(struct egw_link *link, struct egw_xchg *xchg)
{
  (void)link;
  (void)xchg;
}

static const struct egw_transport toy = {
  .plugin = { EGW_HEAD(struct egw_transport, EGW_TYPE_TRANSPORT), .name = "example5-transport",
              .version = "1.0", .summary = "A node that is made up", .options = options,
              .instance_size = sizeof(struct toy) },
  .schemes = "example5-transport",
  .open = toy_open,
  .close = toy_close,
  .submit = toy_submit,
  .abort = toy_abort,
  .more = toy_more,
};

EGW_REGISTER(toy)
