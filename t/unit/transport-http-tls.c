/* SPDX-License-Identifier: MIT */
/* The http transport over TLS: which certificates are accepted, what is not spoken, kept and
 * resumed sessions, full readers. The node is a thread of this test. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <openssl/ssl.h>
#include "tap.h"
#include "test-node.h"
#include "transport-host.h"

#define BIG (5u << 20)

/* Serves one connection after the other: /ok, /close (kept, then closed), /big. */
struct server {
  int fd;
  unsigned port;
  SSL_CTX *tls;
  pthread_t thread;
  atomic_bool stopping;
  atomic_uint handshakes, resumed, requests;
};

static char dir[] = "/tmp/http-tls-XXXXXX", pem[64];
static struct thost *host;
static struct server server;

/* --- the node --------------------------------------------------------------------------- */

/* Reads one request; false: there is none. The path is in `path`. */
static bool
read_request(SSL *ssl, char *path, size_t cap)
{
  char text[8192], *end = NULL, *length;
  size_t len = 0, body;
  int n;

  while (end == NULL && len < sizeof text - 1) {
    n = SSL_read(ssl, text + len, (int)(sizeof text - 1 - len));
    if (n <= 0)
      return false;
    len += (size_t)n;
    text[len] = 0;
    end = strstr(text, "\r\n\r\n");
  }
  if (end == NULL || sscanf(text, "POST %63s", path) != 1 || cap < 64)
    return false;
  length = strcasestr(text, "content-length:");
  body = length == NULL ? 0 : strtoul(length + 15, NULL, 10);
  for (size_t have = len - (size_t)(end + 4 - text); have < body; have += (size_t)n) {
    n = SSL_read(ssl, text, sizeof text);
    if (n <= 0)
      return false;
  }
  return true;
}

static bool
write_all(SSL *ssl, const char *bytes, size_t len)
{
  return len == 0 || SSL_write(ssl, bytes, (int)len) == (int)len;
}

static bool
reply(SSL *ssl, size_t len)
{
  char head[128], *body = malloc(len + 1);
  bool good;
  int n = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", len);

  if (body == NULL)
    abort();
  memset(body, 'a', len);
  good = write_all(ssl, head, (size_t)n) && write_all(ssl, body, len);
  free(body);
  return good;
}

static void
serve_one(struct server *s, SSL *ssl)
{
  char path[64];

  if (SSL_accept(ssl) != 1)
    return;
  s->handshakes++;
  if (SSL_session_reused(ssl))
    s->resumed++;
  while (read_request(ssl, path, sizeof path)) {
    s->requests++;
    if (!reply(ssl, strcmp(path, "/big") == 0 ? BIG : 10) || strcmp(path, "/close") == 0)
      break;
  }
}

static void *
serve(void *arg)
{
  struct server *s = arg;

  while (!s->stopping) {
    struct pollfd p = { .fd = s->fd, .events = POLLIN };
    struct timeval bound = { .tv_sec = 1 };
    SSL *ssl;
    int fd;

    if (poll(&p, 1, 20) <= 0)
      continue;
    fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
      continue;
    /* A kept connection must not hold up the next one for long. */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    ssl = SSL_new(s->tls);
    SSL_set_fd(ssl, fd);
    serve_one(s, ssl);
    SSL_free(ssl);
    close(fd);
  }
  return NULL;
}

static void
start_server(const char *names, int from, int to)
{
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t len = sizeof in;

  memset(&server, 0, sizeof server);
  server.tls = node_tls(names, from, to, pem);
  server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server.tls == NULL || bind(server.fd, (struct sockaddr *)&in, len) != 0
      || listen(server.fd, 16) != 0
      || getsockname(server.fd, (struct sockaddr *)&in, &len) != 0)
    abort();
  server.port = ntohs(in.sin_port);
}

static void
run_server(void)
{
  if (pthread_create(&server.thread, NULL, serve, &server) != 0)
    abort();
}

/* --- the tests -------------------------------------------------------------------------- */

static void
start_host(bool trust, bool insecure)
{
  const char *options[] = { "ca_file", pem, "insecure_skip_verify", "true", NULL };

  if (insecure)
    host = thost_new("http", options + 2);
  else
    host = thost_new("http", trust ? (options[2] = NULL, options) : options + 4);
  if (host == NULL) {
    printf("Bail out! no host\n");
    exit(1);
  }
  thost_name(host, "node.test", "127.0.0.1");
}

static void
stop(const char *what)
{
  is_int(thost_free(host), 0, "%s: no rule broken, nothing left on the loop", what);
  server.stopping = true;
  pthread_join(server.thread, NULL);
  close(server.fd);
  node_tls_free(server.tls);
}

static struct egw_link *
open_url(const char *name, const char *path)
{
  char url[128];

  snprintf(url, sizeof url, "https://%s:%u%s", name, server.port, path);
  return thost_open(host, url, NULL);
}

static enum egw_outcome
ask(struct egw_link *link, bool fresh)
{
  struct thost_call call = { .idempotent = true, .fresh = fresh };

  thost_submit(link, &call, "eth_blockNumber", "[]");
  if (!thost_wait(host, &call, 5000))
    printf("# not done\n");
  if (call.outcome != EGW_OK)
    printf("# %s\n", call.why);
  ok(strstr(call.why, ".test") == NULL, "the reason does not have the name");
  thost_call_free(&call);
  return call.outcome;
}

static void
test_certificate(const char *what, const char *names, int from, int to, const char *url_name,
                 bool trust, bool good)
{
  start_server(names, from, to);
  run_server();
  start_host(trust, false);
  is_int(ask(open_url(url_name, "/ok"), false), good ? EGW_OK : EGW_NOT_SENT, "%s", what);
  is_int(server.requests, good ? 1 : 0, "%s: %s", what, good ? "served" : "nothing was sent");
  stop(what);
}

static void
test_insecure(void)
{
  start_server("DNS:else.test", -10, -5);
  run_server();
  start_host(false, true);
  is_int(ask(open_url("node.test", "/ok"), false), EGW_OK, "insecure_skip_verify");
  ok(thost_logged(host, "insecure_skip_verify"), "the log warns of it");
  stop("insecure");
}

static void
test_old_version(void)
{
  start_server("DNS:node.test", -1, 1);
  SSL_CTX_set_cipher_list(server.tls, "DEFAULT:@SECLEVEL=0");
  SSL_CTX_set_min_proto_version(server.tls, TLS1_VERSION);
  SSL_CTX_set_max_proto_version(server.tls, TLS1_1_VERSION);
  run_server();
  start_host(true, false);
  is_int(ask(open_url("node.test", "/ok"), false), EGW_NOT_SENT, "TLS 1.1 is not spoken");
  stop("old version");
}

static void
test_connections(void)
{
  struct egw_link *link;
  unsigned good = 0;

  start_server("DNS:node.test", -1, 1);
  run_server();
  start_host(true, false);
  link = open_url("node.test", "/ok");
  for (int i = 0; i < 10; i++)
    good += ask(link, false) == EGW_OK;
  is_int(good, 10, "ten reads");
  is_int(server.handshakes, 1, "over one connection");
  link = open_url("node.test", "/close");
  for (int i = 0; i < 10; i++)
    good += ask(link, false) == EGW_OK;
  is_int(good, 20, "ten reads of a node that closes after each");
  is_int(server.requests, 20, "each was sent once");
  ok(server.resumed >= 8, "sessions are resumed: %u of %u", server.resumed, server.handshakes);
  stop("connections");
}

static bool
is_done_or_paused(void *arg)
{
  struct thost_call *call = arg;

  return call->done || call->paused;
}

static void
test_pause(void)
{
  struct thost_call call = { .pause_every = 200000 };
  unsigned pauses = 0;

  start_server("IP:127.0.0.1", -1, 1);
  run_server();
  start_host(true, false);
  thost_submit(open_url("127.0.0.1", "/big"), &call, "x", "[]");
  while (thost_run(host, is_done_or_paused, &call, 5000) && !call.done) {
    pauses++;
    thost_more(&call);
  }
  ok(call.done && call.outcome == EGW_OK, "a reply of 5 MiB in pieces (%s)", call.why);
  ok(pauses > 10, "with %u pauses", pauses);
  is_int(call.len, BIG, "all of it, once");
  thost_call_free(&call);
  stop("pause");
}

int
main(void)
{
  signal(SIGPIPE, SIG_IGN);
  if (mkdtemp(dir) == NULL)
    abort();
  snprintf(pem, sizeof pem, "%s/ca.pem", dir);
  test_certificate("a good certificate", "DNS:node.test", -1, 1, "node.test", true, true);
  test_certificate("an address in it", "IP:127.0.0.1", -1, 1, "127.0.0.1", true, true);
  test_certificate("another name", "DNS:else.test", -1, 1, "node.test", true, false);
  test_certificate("another address", "IP:127.0.0.2", -1, 1, "127.0.0.1", true, false);
  test_certificate("expired", "DNS:node.test", -10, -5, "node.test", true, false);
  test_certificate("not yet valid", "DNS:node.test", 5, 10, "node.test", true, false);
  test_certificate("an unknown authority", "DNS:node.test", -1, 1, "node.test", false, false);
  test_insecure();
  test_old_version();
  test_connections();
  test_pause();
  unlink(pem);
  rmdir(dir);
  return done_testing();
}
