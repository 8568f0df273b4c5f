/* SPDX-License-Identifier: MIT */
/* Transport ipc: JSON-RPC over a unix stream socket (geth.ipc, reth.ipc). Requests go out one
 * after another, each followed by a newline; the core finds the ends of the replies.
 *
 * What is submitted in one turn of the loop is written together, at the beginning of the next,
 * by one system call where it fits. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>
#include <ethrpc-gw/version.h>
#include "../common/pool.h"

#define IPC_READ 65536u  /* bytes of one read */
#define IPC_READS 16     /* reads of one connection before others have their turn */
#define IPC_VECTORS 64   /* pieces of one write */

struct ipc {
  struct pool_options pool;
};

/* On one worker: what is read is handed on at once, so one buffer serves all. */
struct ipc_worker {
  char bytes[IPC_READ];
};

struct ipc_conn {
  struct pool_member member;   /* first */
  struct ipc_worker *worker;
  uv_poll_t poll;
  uv_idle_t soon;              /* writes at the beginning of the next turn */
  unsigned handles;            /* not yet closed */
  int fd;
  bool blocked;                /* the socket takes no more: wait until it does */
  struct egw_buf *rest;        /* partly written, or NULL */
  size_t rest_at;              /* bytes of it and its newline that are written */
};

static const struct egw_option options[] = {
  POOL_OPTIONS(ipc, pool),
  EGW_OPTION_END
};

static void ipc_polled(uv_poll_t *poll, int status, int events);

static struct ipc_conn *
ipc_of(struct pool_member *member)
{
  return container_of(member, struct ipc_conn, member);
}

/* --- ending ----------------------------------------------------------------------------- */

static void
ipc_handle_closed(uv_handle_t *handle)
{
  struct ipc_conn *c = handle->data;

  if (--c->handles == 0)
    free(c);
}

static void
ipc_drop(struct pool_member *member)
{
  struct ipc_conn *c = ipc_of(member);

  uv_close((uv_handle_t *)&c->poll, ipc_handle_closed);
  uv_close((uv_handle_t *)&c->soon, ipc_handle_closed);
  close(c->fd);
  c->fd = -1;
  egw_buf_unref(c->rest);
  c->rest = NULL;
}

static void
ipc_end(struct ipc_conn *c, const char *why)
{
  pool_gone(&c->member, why);
  ipc_drop(&c->member);
}

static const char *
ipc_reason(int error)
{
  switch (error) {
  case ENOENT: return "there is no such socket";
  case ECONNREFUSED: return "nobody listens on the socket";
  case EACCES: return "permission denied";
  case EAGAIN: return "the node takes no connections (backlog full)";
  case ECONNRESET:
  case EPIPE: return "the node closed the connection with requests unread";
  case EMFILE:
  case ENFILE: return "too many open files";
  case ENOMEM:
  case ENOBUFS: return "memory is short";
  case ENOTSOCK:
  case EPROTOTYPE: return "the file is not a stream socket";
  default: return "socket error";
  }
}

/* --- connecting ------------------------------------------------------------------------- */

/* A connected socket, or -1 with errno. Unix sockets connect at once or not at all. */
static int
ipc_socket(const char *path)
{
  struct sockaddr_un sa = { .sun_family = AF_UNIX };
  int fd, saved;

  memcpy(sa.sun_path, path, strlen(path) + 1); /* its length was checked by ipc_open() */
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return -1;
  if (connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0)
    return fd;
  saved = errno;
  close(fd);
  errno = saved;
  return -1;
}

static struct pool_member *
ipc_connect(struct egw_link *link, const char **why)
{
  uv_loop_t *loop = egw_worker_uv(egw_link_worker(link));
  struct ipc_conn *c = calloc(1, sizeof *c);

  *why = ipc_reason(ENOMEM);
  if (c == NULL)
    return NULL;
  c->fd = ipc_socket(egw_link_url(link)->path);
  if (c->fd < 0) {
    *why = ipc_reason(errno);
    free(c);
    return NULL;
  }
  if (uv_poll_init(loop, &c->poll, c->fd) != 0) {
    close(c->fd);
    free(c);
    return NULL;
  }
  uv_idle_init(loop, &c->soon);
  c->poll.data = c->soon.data = c;
  c->handles = 2;
  c->worker = egw_link_mine(link);
  pool_member_init(egw_link_state(link), &c->member);
  uv_poll_start(&c->poll, UV_WRITABLE, ipc_polled);
  return &c->member;
}

/* --- writing ---------------------------------------------------------------------------- */

static void
ipc_watch(struct ipc_conn *c)
{
  int events = (c->member.paused ? 0 : UV_READABLE) | (c->blocked ? UV_WRITABLE : 0);

  if (events == 0)
    uv_poll_stop(&c->poll);
  else
    uv_poll_start(&c->poll, events, ipc_polled);
}

static int
ipc_add(struct iovec *v, int n, struct egw_slice body, size_t from)
{
  static const char newline[] = "\n";

  if (from < body.len)
    v[n++] = (struct iovec){ (char *)(uintptr_t)body.ptr + from, body.len - from };
  v[n++] = (struct iovec){ (char *)(uintptr_t)newline, 1 };
  return n;
}

/* Fills `v` with what is to be written next; returns the number of pieces. */
static int
ipc_gather(struct ipc_conn *c, struct iovec *v)
{
  struct list *node;
  int n = 0;

  if (c->rest != NULL)
    n = ipc_add(v, n, egw_buf_slice(c->rest), c->rest_at);
  list_for_each(node, &c->member.queue) {
    struct pool_wait *wait = container_of(node, struct pool_wait, node);

    if (n + 2 > IPC_VECTORS)
      break;
    n = ipc_add(v, n, egw_buf_slice(egw_xchg_body(wait->xchg)), 0);
  }
  return n;
}

/* Accounts for `written` bytes: exchanges of which something went out are bound. */
static void
ipc_account(struct ipc_conn *c, size_t written)
{
  while (written > 0) {
    size_t whole, left;

    if (c->rest == NULL) {
      c->rest = egw_buf_ref(egw_xchg_body(pool_first(&c->member)));
      c->rest_at = 0;
      pool_sent(&c->member);
    }
    whole = egw_buf_slice(c->rest).len + 1;
    left = whole - c->rest_at;
    if (written < left) {
      c->rest_at += written;
      return;
    }
    written -= left;
    egw_buf_unref(c->rest);
    c->rest = NULL;
  }
}

static void
ipc_write(struct ipc_conn *c)
{
  struct iovec v[IPC_VECTORS];
  struct msghdr m = { .msg_iov = v };
  bool was_blocked = c->blocked;
  ssize_t n;

  c->blocked = false;
  while ((m.msg_iovlen = (size_t)ipc_gather(c, v)) > 0 && !c->blocked) {
    n = sendmsg(c->fd, &m, MSG_NOSIGNAL);
    if (n >= 0) {
      ipc_account(c, (size_t)n);
    } else if (errno == EAGAIN) {
      c->blocked = true;
    } else if (errno != EINTR) {
      ipc_end(c, ipc_reason(errno));
      return;
    }
  }
  if (c->blocked != was_blocked)
    ipc_watch(c);
}

static void
ipc_write_soon(uv_idle_t *soon)
{
  uv_idle_stop(soon);
  ipc_write(soon->data);
}

static void
ipc_flush(struct pool_member *member)
{
  struct ipc_conn *c = ipc_of(member);

  if (!c->blocked)
    uv_idle_start(&c->soon, ipc_write_soon);
}

/* --- reading ---------------------------------------------------------------------------- */

static void
ipc_resume(struct pool_member *member)
{
  ipc_watch(ipc_of(member));
}

/* Reads what is there. `all`: to the end, since the loop will not tell of more (the node is
 * gone, but its last words may be here). False: the connection ended. */
static bool
ipc_read(struct ipc_conn *c, bool all)
{
  for (int i = 0; all || i < IPC_READS; i++) {
    ssize_t n = recv(c->fd, c->worker->bytes, IPC_READ, 0);
    int verdict;

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN && !all)
      return true;
    if (n <= 0) {
      ipc_end(c, n == 0 ? "the node closed the connection"
                       : errno == EAGAIN ? "socket error" : ipc_reason(errno));
      return false;
    }
    verdict = pool_data(&c->member, c->worker->bytes, (size_t)n, EGW_CONN_STREAM);
    if (verdict < 0) {
      ipc_end(c, "what the node sends is not JSON");
      return false;
    }
    if (verdict > 0) {
      ipc_watch(c);
      return true;
    }
    if (!all && (size_t)n < IPC_READ)
      return true;
  }
  return true;
}

static void
ipc_polled(uv_poll_t *poll, int status, int events)
{
  struct ipc_conn *c = poll->data;

  if (c->member.state == POOL_CONNECTING) {
    if (pool_opened(&c->member) != 0)
      ipc_end(c, ipc_reason(ENOMEM));
    else
      ipc_watch(c);
    return;
  }
  if ((status != 0 || (events & UV_READABLE)) && !c->member.paused
      && !ipc_read(c, status != 0))
    return;
  if (events & UV_WRITABLE)
    ipc_write(c);
}

/* --- the transport ---------------------------------------------------------------------- */

static const struct pool_ops pool_ops = {
  .area = "ipc",
  .connect = ipc_connect,
  .flush = ipc_flush,
  .resume = ipc_resume,
  .drop = ipc_drop,
};

static int
ipc_open(struct egw_link *link)
{
  const struct ipc *self = egw_link_self(link);
  size_t len = strlen(egw_link_url(link)->path);

  if (len == 0 || len >= sizeof ((struct sockaddr_un *)0)->sun_path) {
    egw_log(EGW_ERROR, "ipc", "%s: the path of a socket has 1 to %zu bytes, not %zu",
            egw_link_name(link), sizeof ((struct sockaddr_un *)0)->sun_path - 1, len);
    return -1;
  }
  pool_init(egw_link_state(link), link, &pool_ops, &self->pool);
  return 0;
}

static void
ipc_close(struct egw_link *link)
{
  pool_close(egw_link_state(link));
  egw_link_closed(link);
}

static void
ipc_submit(struct egw_link *link, struct egw_xchg *xchg)
{
  pool_submit(egw_link_state(link), xchg);
}

static void
ipc_abort(struct egw_link *link, struct egw_xchg *xchg)
{
  pool_abort(egw_link_state(link), xchg);
}

static void
ipc_more(struct egw_link *link, struct egw_xchg *xchg, struct egw_conn *conn)
{
  (void)xchg;
  pool_more(egw_link_state(link), conn);
}

static const struct egw_transport ipc = {
  .plugin = { EGW_HEAD(struct egw_transport, EGW_TYPE_TRANSPORT),
              .name = "ipc", .version = EGW_VERSION,
              .summary = "JSON-RPC over a unix socket",
              .options = options, .instance_size = sizeof (struct ipc),
              .worker_size = sizeof (struct ipc_worker) },
  .schemes = "ipc",
  .caps = EGW_T_MULTIPLEX | EGW_T_PUSH,
  .link_size = sizeof (struct pool),
  .xchg_size = sizeof (struct pool_wait),
  .conn_size = POOL_CONN_SIZE,
  .open = ipc_open,
  .close = ipc_close,
  .submit = ipc_submit,
  .abort = ipc_abort,
  .more = ipc_more,
};

EGW_REGISTER(ipc)
