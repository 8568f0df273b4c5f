/* SPDX-License-Identifier: MIT */
/* The http transport: what a request looks like on the wire, and how each kind of answer ends
 * an exchange. */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "http-node.h"
#include "tap.h"
#include "transport-host.h"

static struct thost *host;
static struct hnode node;

static struct egw_link *
open_path(const char *path)
{
  char url[256];

  snprintf(url, sizeof url, "http://127.0.0.1:%u%s", node.port, path);
  return thost_open(host, url, NULL);
}

/* One exchange on a link of its own. */
static void
ask(struct thost_call *call, const char *path)
{
  struct egw_link *link = open_path(path);

  call->idempotent = true;
  thost_submit(link, call, "eth_blockNumber", "[]");
  thost_wait(host, call, 5000);
  thost_close(link);
}

/* The request as the node saw it has the header line, in any case of letters. */
static bool
saw(const char *line)
{
  return strcasestr(node.head, line) != NULL;
}

static void
start(const char *const *options)
{
  host = thost_new("http", options);
  if (host == NULL || hnode_start(&node, thost_uv(host), 0) != 0) {
    printf("Bail out! no host or no node\n");
    exit(1);
  }
}

static void
stop(const char *what)
{
  hnode_stop(&node);
  is_int(thost_free(host), 0, "%s: no rule broken, nothing left on the loop", what);
  memset(&node, 0, sizeof node);
}

/* --- requests ------------------------------------------------------------------------- */

static void
test_request(void)
{
  struct thost_call call = { .idempotent = true };
  struct egw_link *link;
  char url[128];

  start(NULL);
  snprintf(url, sizeof url, "http://user:pass%%word@127.0.0.1:%u/ok", node.port);
  link = thost_open(host, url, NULL);
  thost_submit(link, &call, "eth_call", "[{\"to\":\"0x1\"},\"latest\"]");
  ok(thost_wait(host, &call, 5000), "a request is answered");
  is_int(call.outcome, EGW_OK, "outcome");
  is_int(call.status, 200, "status");
  is_bytes(call.data, call.len, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"0x1\"}", "body");
  ok(strncmp(node.head, "POST /ok HTTP/1.1\r\n", 19) == 0, "request line");
  is_bytes(node.body, node.body_len,
           "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_call\","
           "\"params\":[{\"to\":\"0x1\"},\"latest\"]}",
           "request body");
  ok(saw("\r\nContent-Type: application/json\r\n"), "content type");
  ok(saw("\r\nUser-Agent: ethrpc-gw/"), "user agent");
  ok(saw("\r\nAuthorization: Basic dXNlcjpwYXNzJXdvcmQ=\r\n"), "user and password of the URL");
  ok(!saw("\r\nExpect:") && !saw("\r\nAccept-Encoding:") && !saw("\r\nTE:"), "nothing odd");
  thost_call_free(&call);
  stop("request");
}

static void
test_paths(void)
{
  static const char *const paths[] = { "/ok/../a/./b//c", "/ok?key=%2F%41&x=a%20b",
                                       "/ok/%2e%2E/A;b=,c", "/?../ok", "/ok@x:y" };
  char line[200];

  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    struct thost_call call = { .idempotent = true };

    start(NULL);
    ask(&call, paths[i]);
    snprintf(line, sizeof line, "POST %s HTTP/1.1\r\n", paths[i]);
    ok(strncmp(node.head, line, strlen(line)) == 0, "path as it is: %s", paths[i]);
    thost_call_free(&call);
    stop("path");
  }
}

static void
test_large_request(void)
{
  struct thost_call call = { .id = 7, .idempotent = true };
  struct egw_link *link;
  size_t n = 3 << 20;
  char *body = malloc(n + 64);
  int at;

  if (body == NULL)
    abort();
  at = snprintf(body, 64, "{\"jsonrpc\":\"2.0\",\"id\":7,\"params\":[\"");
  memset(body + at, 'b', n);
  memcpy(body + at + n, "\"]}", 4);
  start(NULL);
  link = open_path("/ok");
  thost_submit_raw(link, &call, body, strlen(body));
  ok(thost_wait(host, &call, 5000) && call.outcome == EGW_OK, "a request of 3 MiB");
  ok(node.body_len == strlen(body) && memcmp(node.body, body, node.body_len) == 0,
     "it arrived as it was");
  ok(!saw("\r\nExpect:"), "without Expect");
  free(body);
  thost_call_free(&call);
  stop("large request");
}

static void
test_headers(void)
{
  static const char *const options[] = { "headers", "X-Api-Key: KEY1", "headers", "X-Two: 2",
                                         "bearer",  "TOKEN1",          "user_agent", "me/1",
                                         NULL };
  struct thost_call call = { 0 };

  start(options);
  ask(&call, "/ok");
  ok(saw("\r\nX-Api-Key: KEY1\r\n") && saw("\r\nX-Two: 2\r\n"), "configured headers");
  ok(saw("\r\nAuthorization: Bearer TOKEN1\r\n"), "bearer token");
  ok(saw("\r\nUser-Agent: me/1\r\n"), "configured user agent");
  thost_call_free(&call);
  stop("headers");
}

/* Whether the text between `from` and `to` is the base64 of `bytes`, as in URLs. */
static bool
is_base64(const char *from, const char *to, const unsigned char *bytes, int len)
{
  char want[256];
  int n = EVP_EncodeBlock((unsigned char *)want, bytes, len);

  while (n > 0 && want[n - 1] == '=')
    n--;
  for (int i = 0; i < n; i++)
    want[i] = want[i] == '+' ? '-' : want[i] == '/' ? '_' : want[i];
  return to - from == n && memcmp(from, want, (size_t)n) == 0;
}

static void
check_jwt(const char *token, const unsigned char *key)
{
  const char *first = strchr(token, '.'), *second, *end = strchr(token, '\r');
  unsigned char mac[EVP_MAX_MD_SIZE], claims[64];
  time_t now = time(NULL);
  bool fits = false;
  unsigned n = 0;

  second = first == NULL ? NULL : strchr(first + 1, '.');
  if (!ok(second != NULL && end != NULL, "it has three parts"))
    return;
  ok(is_base64(token, first, (const unsigned char *)"{\"alg\":\"HS256\",\"typ\":\"JWT\"}", 27),
     "its head");
  for (time_t t = now - 5; t <= now && !fits; t++) {
    int len = snprintf((char *)claims, sizeof claims, "{\"iat\":%lld}", (long long)t);

    fits = is_base64(first + 1, second, claims, len);
  }
  ok(fits, "issued now");
  HMAC(EVP_sha256(), key, 32, (const unsigned char *)token, (size_t)(second - token), mac, &n);
  ok(is_base64(second + 1, end, mac, (int)n), "its signature");
}

static void
test_jwt(void)
{
  static const char *const options[] = {
    "jwt_secret", "0x000102030405060708090A0b0c0d0e0f101112131415161718191a1b1c1d1e1f", NULL
  };
  struct thost_call call = { 0 };
  unsigned char key[32];
  const char *token;

  for (unsigned char i = 0; i < sizeof key; i++)
    key[i] = i;
  start(options);
  ask(&call, "/ok");
  token = strcasestr(node.head, "\r\nAuthorization: Bearer ");
  if (ok(token != NULL, "a token is sent"))
    check_jwt(token + 24, key);
  thost_call_free(&call);
  stop("jwt");
}

static void
refused(const char *name, const char *value, const char *other, const char *why)
{
  const char *options[] = { name, value, other, "x", NULL };

  if (other == NULL)
    options[2] = NULL;
  host = thost_new("http", options);
  ok(host == NULL && strstr(thost_refusal(), why) != NULL, "refused: %s", thost_refusal());
  if (host != NULL)
    thost_free(host);
}

static void
test_refusals(void)
{
  refused("headers", "no colon", NULL, "form");
  refused("headers", "X-A: b\r\nX-B: c", NULL, "control");
  refused("headers", "Content-Length: 3", NULL, "transport itself");
  refused("headers", "X-Empty:  ", NULL, "no value");
  refused("headers", "authorization: x", "bearer", "already");
  refused("jwt_secret", "0x1234", NULL, "32 bytes");
  refused("jwt_secret", "zz0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
          NULL, "32 bytes");
  refused("bearer", "a\nb", NULL, "control");
  refused("ca_file", "/nonexistent/ca.pem", NULL, "can't be read");
  refused("user_agent", "a\rb", NULL, "control");
}

/* --- answers -------------------------------------------------------------------------- */

struct expected {
  const char *path;
  enum egw_outcome outcome;
  int status;
  const char *body;
};

#define ANSWER "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":\"0x1\"}"
#define REFUSAL "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":{\"code\":3,\"message\":\"m\"}}"

static const struct expected answers[] = {
  { "/ok", EGW_OK, 200, ANSWER },
  { "/close", EGW_OK, 200, ANSWER },
  { "/chunked", EGW_OK, 200, ANSWER },
  { "/delimited", EGW_OK, 200, ANSWER },
  { "/html", EGW_OK, 200, "<html>down</html>" },
  { "/status/400", EGW_OK, 400, REFUSAL },
  { "/status/500", EGW_OK, 500, REFUSAL },
  { "/status/404", EGW_OK, 404, REFUSAL },
  { "/moved/ok", EGW_OK, 302, "moved" },
  { "/drop", EGW_MAYBE_SENT, 0, NULL },
  { "/droprst", EGW_MAYBE_SENT, 0, NULL },
  { "/short", EGW_BAD_REPLY, 200, NULL },
  { "/shortrst", EGW_BAD_REPLY, 200, NULL },
  { "/chunkcut", EGW_BAD_REPLY, 200, NULL },
  { "/garbage", EGW_BAD_REPLY, 0, NULL },
};

static void
test_answers(void)
{
  start(NULL);
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    const struct expected *e = &answers[i];
    struct thost_call call = { .fresh = true };
    unsigned before = node.requests;
    char want[128];

    ask(&call, e->path);
    ok(call.done && call.outcome == e->outcome, "%s: outcome %d (%s)", e->path,
       (int)call.outcome, call.why);
    is_int(call.status, e->status, "%s: status", e->path);
    ok((call.outcome == EGW_OK) == (call.why[0] == 0), "%s: a reason if and only if it failed",
       e->path);
    is_int(node.requests - before, 1, "%s: one request", e->path);
    if (e->body != NULL) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      snprintf(want, sizeof want, e->body, (unsigned long long)call.id);
#pragma GCC diagnostic pop
      is_bytes(call.data, call.len, want, e->path);
    }
    thost_call_free(&call);
  }
  stop("answers");
}

static void
test_retry_after(void)
{
  struct thost_call call = { 0 };

  start(NULL);
  ask(&call, "/later/2");
  is_int(call.status, 429, "429");
  is_int(call.retry_after_ms, 2000, "Retry-After in seconds");
  thost_call_free(&call);
  call = (struct thost_call){ 0 };
  ask(&call, "/later/date");
  ok(call.retry_after_ms >= 80000 && call.retry_after_ms <= 91000, "Retry-After as a date: %u",
     call.retry_after_ms);
  thost_call_free(&call);
  call = (struct thost_call){ 0 };
  ask(&call, "/later/99999999999");
  ok(call.retry_after_ms >= 21600000, "an absurd one is capped: %u", call.retry_after_ms);
  thost_call_free(&call);
  call = (struct thost_call){ 0 };
  ask(&call, "/ok");
  is_int(call.retry_after_ms, 0, "none");
  thost_call_free(&call);
  stop("Retry-After");
}

static void
test_down(void)
{
  struct thost_call call = { 0 };
  unsigned port;

  start(NULL);
  port = node.port;
  hnode_stop(&node);
  thost_turn(host, 1);
  ask(&call, "/ok");
  ok(call.done && call.outcome == EGW_NOT_SENT, "nobody listens: not sent (%s)", call.why);
  ok(strstr(call.why, "127.0.0.1") == NULL, "the reason names no address");
  is_int(call.status, 0, "no status");
  thost_call_free(&call);
  (void)port;
  stop("down");
}

static void
test_connect_timeout(void)
{
  struct egw_link_limits limits = { .connect_timeout_ms = 150, .max_reply = 1 << 20 };
  struct thost_call call = { .idempotent = true };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), full[8], n;
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t len = sizeof in;
  struct egw_link *link;
  uint64_t began;
  char url[64];

  /* A backlog that is full drops further attempts: the connect hangs. */
  if (fd < 0 || bind(fd, (struct sockaddr *)&in, len) != 0 || listen(fd, 0) != 0
      || getsockname(fd, (struct sockaddr *)&in, &len) != 0)
    abort();
  for (n = 0; n < 8; n++) {
    full[n] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    connect(full[n], (struct sockaddr *)&in, len);
  }
  start(NULL);
  snprintf(url, sizeof url, "http://127.0.0.1:%u/", (unsigned)ntohs(in.sin_port));
  link = thost_open(host, url, &limits);
  began = uv_hrtime();
  thost_submit(link, &call, "eth_blockNumber", "[]");
  ok(thost_wait(host, &call, 5000) && call.outcome == EGW_NOT_SENT,
     "connecting takes too long: not sent (%s)", call.why);
  ok(uv_hrtime() - began < 2000000000, "within the link's limit");
  thost_call_free(&call);
  while (n > 0)
    close(full[--n]);
  close(fd);
  stop("connect timeout");
}

static void
test_stall(void)
{
  static const char *const options[] = { "stall_timeout", "200ms", NULL };
  struct thost_call call = { 0 };

  start(options);
  ask(&call, "/stall");
  ok(call.done && call.outcome == EGW_TIMED_OUT, "a reply that stalls ends (%s)", call.why);
  is_int(call.status, 200, "its status is known");
  thost_call_free(&call);
  stop("stall");
}

static void
test_refused_reply(void)
{
  struct thost_call call = { .refuse_at = 100000 };

  start(NULL);
  ask(&call, "/big/5000000");
  ok(call.done && call.outcome == EGW_BAD_REPLY, "a reply that the reader refuses ends");
  ok(call.len < 1000000, "without being read to its end");
  thost_call_free(&call);
  stop("refused reply");
}

/* --- the environment, names ----------------------------------------------------------- */

static void
test_proxies(void)
{
  struct thost_call call = { 0 };

  setenv("http_proxy", "http://127.0.0.1:1/", 1);
  setenv("all_proxy", "socks5://127.0.0.1:1/", 1);
  start(NULL);
  ask(&call, "/ok");
  ok(call.outcome == EGW_OK, "proxies of the environment are not used (%s)", call.why);
  unsetenv("http_proxy");
  unsetenv("all_proxy");
  thost_call_free(&call);
  stop("proxies");
}

static void
test_names(void)
{
  struct thost_call call = { .idempotent = true };
  struct egw_link *link;
  char url[128];

  start(NULL);
  thost_name(host, "node.test", "127.0.0.2 127.0.0.1");
  thost_name(host, "gone.test", "");
  thost_name(host, "cloud.test", "169.254.169.254");
  snprintf(url, sizeof url, "http://node.test:%u/ok", node.port);
  link = thost_open(host, url, NULL);
  for (int i = 0; i < 3; i++) {
    call = (struct thost_call){ .idempotent = true, .fresh = true };
    thost_submit(link, &call, "eth_blockNumber", "[]");
    ok(thost_wait(host, &call, 5000) && call.outcome == EGW_OK,
       "a name with two addresses, the first of which is dead (%s)", call.why);
    thost_call_free(&call);
  }
  is_int(thost_resolved(host), 1, "it is asked for once");
  ok(saw("\r\nHost: node.test:"), "Host has the name");
  for (int i = 0; i < 2; i++) {
    snprintf(url, sizeof url, "http://%s.test:%u/ok", i == 0 ? "gone" : "cloud", node.port);
    link = thost_open(host, url, NULL);
    call = (struct thost_call){ .idempotent = true };
    thost_submit(link, &call, "eth_blockNumber", "[]");
    ok(thost_wait(host, &call, 5000) && call.outcome == EGW_NOT_SENT,
       "%s: not sent (%s)", i == 0 ? "an unknown name" : "a link-local address", call.why);
    ok(strstr(call.why, ".test") == NULL, "the reason does not have the name");
    thost_call_free(&call);
  }
  stop("names");
}

static void
test_secrets(void)
{
  static const char *const options[] = { "headers", "X-Key: CANARYheader", "bearer",
                                         "CANARYbearer", NULL };
  static const char *const paths[] = { "/CANARYpath?k=CANARYquery", "/drop?k=CANARYquery",
                                       "/garbage", "/silent" };
  struct thost_call call;
  struct egw_link *link;
  char url[256];

  start(options);
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    call = (struct thost_call){ .idempotent = true };
    snprintf(url, sizeof url, "http://u:CANARYpassword@127.0.0.1:%u%s", node.port, paths[i]);
    link = thost_open(host, url, NULL);
    thost_submit(link, &call, "eth_blockNumber", "[]");
    if (i < 3)
      thost_wait(host, &call, 5000);
    else
      thost_close(link);
    ok(strstr(call.why, "CANARY") == NULL, "%zu: no secret in the reason", i);
    thost_call_free(&call);
  }
  ok(!thost_logged(host, "CANARY"), "no secret in the log");
  stop("secrets");
}

int
main(void)
{
  test_request();
  test_paths();
  test_large_request();
  test_headers();
  test_jwt();
  test_refusals();
  test_answers();
  test_retry_after();
  test_down();
  test_connect_timeout();
  test_stall();
  test_refused_reply();
  test_proxies();
  test_names();
  test_secrets();
  return done_testing();
}
