/* SPDX-License-Identifier: MIT */
/* HTTP over real sockets: framing, several requests on a connection, refusals that a client
 * can read, answers whole and in pieces. */
#include "../lib/http-kit.h"

#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "listen/parts.h"
#include "../lib/tap.h"

#define JSON "Host: localhost\r\nContent-Type: application/json\r\n"
#define POST "POST / HTTP/1.1\r\n" JSON

static struct kit kit;
static struct reply reply;

/* Debian 12's libmicrohttpd, whose lenient parser the gate makes up for. Newer ones are strict
 * by themselves (and cut the connection without a word for some faults), trim white space as
 * they should, and up to 1.0.1 can't read chunk extensions. */
static bool
is_lenient_library(void)
{
  return strncmp(MHD_get_version(), "0.9.7", 5) == 0 && MHD_get_version()[5] < '7';
}

static int
fresh(void)
{
  return kit_connect(kit_port(&kit));
}

/* One request on a connection of its own, which must be closed after it. */
static void
ask_refused(const char *text, int status, const char *name)
{
  int before = atomic_load(&kit_started), fd = fresh();

  kit_send(fd, text);
  kit_read(fd, &reply, strncmp(text, "HEAD", 4) == 0);
  is_int(reply.status, status, "%s", name);
  ok(kit_closed(fd), "%s: closed", name);
  is_int(atomic_load(&kit_started), before, "%s: nothing is executed", name);
  close(fd);
}

/* --- calls ---------------------------------------------------------------------------- */

static void
test_calls(void)
{
  int fd = fresh();

  kit_post(fd, "", "echo 1");
  kit_read(fd, &reply, false);
  is_int(reply.status, 200, "a call is answered");
  is_bytes(reply.body, reply.len, "echo 1", "with its result");
  is_bytes(reply_header(&reply, "Content-Type"), strlen("application/json"),
           "application/json",
           "as JSON");
  ok(reply_header(&reply, "Content-Length") != NULL, "of known length");
  for (int i = 0; i < 50; i++) {
    kit_post(fd, "", i % 3 == 0 ? "echo again" : "slow 2");
    kit_read(fd, &reply, false);
    if (reply.status != 200)
      break;
  }
  is_int(reply.status, 200, "fifty more on the same connection");
  kit_post(fd, "", "none");
  kit_read(fd, &reply, false);
  is_int(reply.status, 204, "nothing to say is 204");
  kit_post(fd, "", "");
  kit_read(fd, &reply, false);
  ok(reply.status == 200 && reply.len == 0, "an empty body goes to the core as it is");
  kit_post(fd, "Connection: close\r\n", "echo last");
  kit_read(fd, &reply, false);
  is_bytes(reply.body, reply.len, "echo last", "Connection: close is answered");
  ok(kit_closed(fd), "and obeyed");
  close(fd);
}

/* More requests than run together are there when the worker looks: the others are answered within
 * libmicrohttpd's call of the handler, or end their session there. */
static void
test_crowd(void)
{
  enum { CROWD = 300 };
  int gate = fresh(), fds[CROWD], right = 0, shut = 0, i;
  char text[32];

  for (i = 0; i < CROWD; i++) {
    fds[i] = fresh();
    kit_post(fds[i], "", "echo first");
    kit_read(fds[i], &reply, false);
    right += reply.status == 200;
  }
  is_int(right, CROWD, "each of a crowd is answered");
  kit_post(gate, "", "gate");
  ok(kit_wait(&kit_gated, 1), "the worker stands still");
  for (i = 0; i < CROWD; i++) {
    snprintf(text, sizeof(text), "echo %d", i);
    kit_post(fds[i], "", i % 10 == 9 ? "shut" : text);
  }
  sem_post(&kit_gate);
  for (i = 0, right = 0; i < CROWD; i++) {
    snprintf(text, sizeof(text), "echo %d", i);
    if (i % 10 == 9) {
      shut += kit_closed(fds[i]);
    } else {
      kit_read(fds[i], &reply, false);
      right += reply.status == 200 && strcmp(reply.body, text) == 0;
    }
    close(fds[i]);
  }
  is_int(right, CROWD - CROWD / 10, "all at a time: each gets its own answer");
  is_int(shut, CROWD / 10, "and those whose session ends are closed");
  kit_read(gate, &reply, false);
  is_int(reply.status, 200, "and the server goes on");
  close(gate);
}

static void
test_types(void)
{
  static const char *const good[] = { "application/json;charset=utf-8", "Application/JSON",
                                      "application/json ; charset=\"utf-8\"",
                                          "application/json-rpc",
                                      "application/jsonrequest" };
  static const char *const bad[] = { "text/plain", "application/x-www-form-urlencoded",
                                     "multipart/form-data; boundary=x",
                                         "text/plain;application/json",
                                     "application/jsonx", "application/json, text/plain", "" };
  char text[512];
  int fd = fresh();

  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    snprintf(text, sizeof text,
             "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
             "Content-Length: 4\r\n\r\necho",
             good[i]);
    kit_send(fd, text);
    kit_read(fd, &reply, false);
    is_int(reply.status, 200, "type %s", good[i]);
  }
  close(fd);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    snprintf(text, sizeof text,
             "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
             "Content-Length: 4\r\n\r\necho",
             bad[i]);
    ask_refused(text, 415, bad[i]);
  }
  ask_refused("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\necho", 415,
              "no type");
  ask_refused(POST "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\necho", 415,
              "an encoding");
  ask_refused(POST "Content-Type: text/plain\r\nContent-Length: 4\r\n\r\necho",
              415, "two types");
  is_bytes(reply_header(&reply, "Content-Type"), strlen("application/json"),
           "application/json",
           "a refusal is JSON too");
  ok(strstr(reply.body, "\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600") != NULL,
     "and a JSON-RPC error");
}

/* --- bodies --------------------------------------------------------------------------- */

static void
test_chunks(void)
{
  static const char text[] = "echo in small chunks";
  int fd = fresh();

  kit_send(fd, POST "Transfer-Encoding: chunked\r\n\r\n");
  for (const char *p = text; *p != '\0'; p++) {
    char chunk[32];

    snprintf(chunk, sizeof chunk, "1%s\r\n%c\r\n", is_lenient_library() ? ";name=value" : "",
             *p);
    kit_send(fd, chunk);
  }
  kit_send(fd, "0\r\nX-Trailer: a\r\nContent-Length: 9\r\n\r\n");
  kit_read(fd, &reply, false);
  is_bytes(reply.body, reply.len, text,
           "a body in chunks of a byte, with extensions and trailers");
  kit_post(fd, "", "echo next");
  kit_read(fd, &reply, false);
  is_bytes(reply.body, reply.len, "echo next", "the connection is in step after it");
  close(fd);
}

static void
test_expect(void)
{
  static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
  char got[sizeof interim] = "";
  int fd = fresh();

  kit_send(fd, POST "Expect: 100-continue\r\nContent-Length: 6\r\n\r\n");
  recv(fd, got, sizeof got - 1, MSG_WAITALL);
  is_bytes(got, strlen(got), interim, "100 Continue comes before the body");
  kit_send(fd, "echo 9");
  kit_read(fd, &reply, false);
  is_bytes(reply.body, reply.len, "echo 9", "then the answer");
  close(fd);
  ask_refused(POST "Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n",
              413, "too much to expect");
  ok(strncmp(reply.head, "HTTP/1.1 413", 12) == 0, "without 100 Continue");
}

/* A body of `len` bytes, all sent before the answer is read. */
static int
send_large(size_t len, bool chunked, const char **name)
{
  static char block[65536], text[256];
  int fd = fresh();

  memset(block, 'x', sizeof block);
  snprintf(text, sizeof text, POST "%s%.0zu\r\n\r\n",
           chunked ? "Transfer-Encoding: chunked\r\nX: " : "Content-Length: ", len);
  kit_send(fd, text);
  for (size_t left = len; left > 0;) {
    size_t n = left < sizeof block ? left : sizeof block;

    if (chunked) {
      snprintf(text, sizeof text, "%zx\r\n", n);
      kit_send(fd, text);
    }
    kit_send_bytes(fd, block, n);
    if (chunked)
      kit_send(fd, "\r\n");
    left -= n;
  }
  if (chunked)
    kit_send(fd, "0\r\n\r\n");
  kit_read(fd, &reply, false);
  *name = chunked ? "in chunks" : "of known length";
  return fd;
}

static void
test_sizes(void)
{
  const char *name;
  size_t limit = kit.listeners[0].limits.max_request;
  int fd;

  for (int chunked = 0; chunked < 2; chunked++) {
    fd = send_large(limit, chunked, &name);
    ok(reply.status == 200 && reply.len == limit, "a body as large as may be, %s", name);
    close(fd);
    fd = send_large(limit + 1, chunked, &name);
    is_int(reply.status, 413, "one byte more, %s", name);
    ok(strstr(reply.body, "-32007") != NULL, "is a JSON-RPC error that the client can read");
    ok(kit_closed(fd), "and the end of the connection");
    close(fd);
    fd = send_large(3 * limit, chunked, &name);
    is_int(reply.status, 413, "three times as much, %s", name);
    close(fd);
  }
}

static void
test_budget(void)
{
  const char *name;
  int fd;

  kit.gateway.budget.limit = 100000;
  fd = send_large(400000, false, &name);
  is_int(reply.status, 503, "a body that memory is not granted for");
  ok(strstr(reply.body, "-32055") != NULL, "is refused as overload");
  close(fd);
  fd = send_large(60000, false, &name);
  is_int(reply.status, 200, "a smaller one fits");
  close(fd);
  kit_sessions(&kit); /* the worker has gone on since */
  is_int(atomic_load(&kit.gateway.budget.used), 0, "nothing stays reserved");
  kit.gateway.budget.limit = 0;
}

/* --- smuggling ------------------------------------------------------------------------ */

static void
test_pipelining(void)
{
  int fd = fresh();

  kit_send(fd, POST "Content-Length: 7\r\n\r\nslow 30"
               POST "Content-Length: 6\r\n\r\necho 2"
               "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  kit_read(fd, &reply, false);
  is_bytes(reply.body, reply.len, "slow 30", "pipelined: first");
  kit_read(fd, &reply, false);
  is_bytes(reply.body, reply.len, "echo 2", "pipelined: second");
  kit_read(fd, &reply, false);
  is_int(reply.status, 200, "pipelined: third");
  close(fd);
}

static const char *const smuggled[] = {
  POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  POST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
  POST "Content-Length: 4\r\nContent-Length: 5\r\n\r\necho",
  POST "Transfer-Encoding: xchunked\r\n\r\n",
  POST "Transfer-Encoding: gzip, chunked\r\n\r\n",
  POST "Transfer-Encoding: identity\r\n\r\n",
  POST "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
  POST "X: a\r\n Content-Length: 9\r\nContent-Length: 4\r\n\r\necho",
  POST "X: a\nContent-Length: 4\r\n\r\necho",
  "POST / HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
  "Content-Length: 4\n\necho",
  "POST  / HTTP/1.1\r\n" JSON "Content-Length: 4\r\n\r\necho",
  POST "Host: localhost\r\nContent-Length: 4\r\n\r\necho",
  "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\necho",
  "POST /a%00b HTTP/1.1\r\n" JSON "Content-Length: 4\r\n\r\necho",
  "POST http://evil.com/ HTTP/1.1\r\n" JSON "Content-Length: 4\r\n\r\necho",
};
static const char *const foreign[] = {
  "POST / HTTP/1.1\r\nHost: evil.com\r\nContent-Type: application/json\r\n"
  "Content-Length: 4\r\n\r\necho",
  POST "Origin: http://evil.com\r\nContent-Length: 4\r\n\r\necho",
  POST "Sec-Fetch-Site: cross-site\r\nContent-Length: 4\r\n\r\necho",
};

/* For the name of a test: line ends and NUL bytes as dots. */
static const char *
show(const char *text, size_t len)
{
  static char shown[256];
  size_t i;

  for (i = 0; i < len && i + 1 < sizeof shown; i++)
    shown[i] = text[i] < ' ' ? '.' : text[i] == '#' ? '_' : text[i];
  shown[i] = '\0';
  return shown;
}

/* The request comes first, and second on its connection, where libmicrohttpd reads it: each
 * time exactly one refusal, and what follows is not executed. */
static void
check_smuggling(const char *text, size_t len, int status)
{
  static const char hidden[] = POST "Content-Length: 6\r\n\r\necho!!";
  int started;

  for (int second = 0; second < 2; second++) {
    int fd = fresh();

    if (second) {
      kit_post(fd, "", "echo first");
      kit_read(fd, &reply, false);
    }
    started = atomic_load(&kit_started);
    kit_send_bytes(fd, text, len);
    kit_send(fd, hidden);
    kit_read(fd, &reply, false);
    ok(reply.status == status || (second && reply.status == 0 && !is_lenient_library()),
       "%s: %d for %s", second ? "second" : "first", reply.status,
       show(text, len));
    ok(kit_closed(fd) && atomic_load(&kit_started) == started, "and that is all");
    close(fd);
  }
}

static void
test_smuggling(void)
{
  static const char space[] = POST "Transfer-Encoding: chunked \r\n\r\n"
                              "0\r\n\r\n";
  static const char nul[] = POST "Content-Length: 4\0 99\r\n\r\necho";
  static const char nul_host[] = "POST / HTTP/1.1\r\nHost: localhost\0.evil\r\n"
                                 "Content-Type: application/json\r\n"
                                 "Content-Length: 4\r\n\r\necho";
  static const char nul_target[] = "POST /\0x HTTP/1.1\r\n" JSON
                                   "Content-Length: 4\r\n\r\necho";
  static const char nul_last[] = POST "Content-Length: 4\r\nX: y\0z\r\n\r\necho";

  for (size_t i = 0; i < sizeof smuggled / sizeof *smuggled; i++)
    check_smuggling(smuggled[i], strlen(smuggled[i]), 400);
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    check_smuggling(foreign[i], strlen(foreign[i]), 403);
  if (is_lenient_library())
    check_smuggling(space, sizeof space - 1, 400);
  check_smuggling(nul, sizeof nul - 1, 400);
  check_smuggling(nul_host, sizeof nul_host - 1, 400);
  check_smuggling(nul_target, sizeof nul_target - 1, 400);
  check_smuggling(nul_last, sizeof nul_last - 1, 400);
}

/* Well-formed variations are no faults on later requests either. */
static void
test_variations(void)
{
  int fd = fresh();

  kit_post(fd, "", "echo");
  kit_read(fd, &reply, false);
  kit_send(fd,
       "\r\nPOST /main?a=1&b HTTP/1.1\r\nHost:localhost\r\ncontent-type:\tapplication/json\r\n"
               "X-Empty:\r\nX-Spaces:   \r\nX-Trail: y  \r\nCookie: a=b; c=d\r\n"
               "Content-Length: 5"
               "\r\n\r\necho2");
  kit_read(fd, &reply, false);
  is_bytes(reply.body, reply.len, "echo2", "white space, empty values, cookies, a query");
  kit_send(fd, "POST http://localhost/ HTTP/1.1\r\n" JSON "Content-Length: 5\r\n\r\necho3");
  kit_read(fd, &reply, false);
  is_bytes(reply.body, reply.len, "echo3", "absolute form");
  close(fd);
}

static void
check_long_head(const char *name, size_t len)
{
  static char text[GATE_HTTP_HEAD_MAX + 64];
  size_t at = (size_t)snprintf(text, sizeof text, "POST / HTTP/1.1\r\n" JSON
                                                  "Content-Length: 4\r\n%s: a=", name);
  int fd = fresh();

  memset(text + at, 'c', len - at);
  memcpy(text + len - 4, "\r\n\r\necho", 8);
  for (int i = 0; i < 2; i++) {
    kit_send_bytes(fd, text, len + 4);
    kit_read(fd, &reply, false);
    ok(reply.status == 200 && reply.len == 4, "a head of %zu bytes (%s)", len, name);
  }
  close(fd);
}

/* The longest head that the gate lets in is read by the server behind it, too. It takes
 * cookies apart in a copy, so that there is room for fewer of these. */
static void
test_long_head(void)
{
  check_long_head("X-Long", GATE_HTTP_HEAD_MAX);
  check_long_head("Cookie", 5000);
}

/* --- other methods -------------------------------------------------------------------- */

static void
test_methods(void)
{
  int fd = fresh();

  kit_send(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  kit_read(fd, &reply, false);
  ok(reply.status == 200 && reply.len > 0, "GET");
  kit_send(fd, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  kit_read(fd, &reply, true);
  ok(reply.status == 200 && atol(reply_header(&reply, "Content-Length")) > 0, "HEAD");
  kit_send(fd, "OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  kit_read(fd, &reply, false);
  is_int(reply.status, 204, "OPTIONS, without anything stray before it");
  ok(reply_header(&reply, "Access-Control-Allow-Origin") == NULL, "without an Origin no CORS");
  kit_send(fd, "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://good.example\r\n"
               "Access-Control-Request-Method: POST\r\n"
               "Access-Control-Request-Headers: content-type, x-requested-with\r\n\r\n");
  kit_read(fd, &reply, false);
  ok(strcmp(reply_header(&reply, "Access-Control-Allow-Origin"), "http://good.example") == 0 &&
         strcmp(reply_header(&reply, "Vary"), "Origin") == 0,
     "preflight of a good page");
  ok(strstr(reply_header(&reply, "Access-Control-Allow-Methods"), "POST") != NULL &&
         strstr(reply_header(&reply, "Access-Control-Allow-Headers"), "content-type") != NULL,
     "may POST JSON");
  kit_post(fd, "Origin: http://good.example\r\n", "echo cors");
  kit_read(fd, &reply, false);
  ok(reply.len == 9 && reply_header(&reply, "Access-Control-Allow-Origin") != NULL,
     "its calls may be read by it");
  kit_send(fd, "POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://good.example\r\n"
               "Content-Type: text/plain\r\nContent-Length: 1\r\n\r\nx");
  kit_read(fd, &reply, false);
  ok(reply.status == 415 && reply_header(&reply, "Access-Control-Allow-Origin") != NULL,
     "its errors too");
  close(fd);
  ask_refused("OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
              "Access-Control-Request-Method: POST\r\n\r\n", 403, "preflight of another page");
  ok(reply_header(&reply, "Access-Control-Allow-Origin") == NULL, "has no CORS headers");
  ask_refused("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx", 405, "PUT");
  ok(strstr(reply_header(&reply, "Allow"), "POST") != NULL, "names what is allowed");
  ask_refused("POST /nowhere HTTP/1.1\r\n" JSON "Content-Length: 4\r\n\r\necho", 404,
              "another path");
  ask_refused("GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "GET of another path");
  ask_refused("HEAD /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", 404,
              "HEAD of another path");
}

static void
test_websocket(void)
{
  static const char text[] = "GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                             "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  char request[512];
  int fd = fresh(), before = atomic_load(&kit_websockets);

  snprintf(request, sizeof request, text, "/main");
  for (const char *p = request; *p != '\0'; p++)
    kit_send_bytes(fd, p, 1);
  kit_read(fd, &reply, false);
  is_int(atomic_load(&kit_websockets), before + 1, "a handshake goes to the WebSocket server");
  close(fd);
  snprintf(request, sizeof request, text, "/nowhere");
  ask_refused(request, 404, "a WebSocket on another path");
}

/* --- answers -------------------------------------------------------------------------- */

static void
check_answer(const char *what, const char *body, size_t len, const char *begins)
{
  int fd = fresh();

  for (int i = 0; i < 2; i++) {
    kit_post(fd, "", body);
    kit_read(fd, &reply, false);
    ok(reply.status == 200 && reply.whole && reply.len == len &&
           strncmp(reply.body, begins, strlen(begins)) == 0,
       "%s: %zu bytes", what, reply.len);
  }
  close(fd);
}

static void
test_answers(void)
{
  check_answer("a small piece", "big 1", 1, "b");
  check_answer("a large piece", "big 3000000", 3000000, "bbb");
  check_answer("a few pieces", "many 5", 30, "piece;piece;");
  check_answer("more pieces than a vector has, small", "many 1000", 6000, "piece;piece;");
  check_answer("more pieces than a vector has, large", "many 20000", 120000, "piece;piece;");
  check_answer("a stream of one piece", "stream 1", 10000, "sss");
  check_answer("a stream", "stream 300", 3000000, "sss");
  ok(reply.chunked, "comes in chunks");
  check_answer("a stream that waits", "drip 20", 100, "sss");
  check_answer("a stream that begins late", "late 3", 15, "sss");
}

static void
test_broken_stream(void)
{
  int fd = fresh();

  kit_post(fd, "", "break");
  kit_read(fd, &reply, false);
  ok(reply.status == 200 && !reply.whole && reply.len == 5, "a broken stream is cut");
  close(fd);
}

static void
test_http_1_0(void)
{
  char text[256];
  ssize_t n;
  int fd = fresh();

  kit_send(fd, "POST / HTTP/1.0\r\n" JSON "Content-Length: 4\r\n\r\necho");
  kit_read(fd, &reply, false);
  ok(reply.status == 200 && reply.len == 4, "HTTP/1.0");
  ok(kit_closed(fd), "has one answer on a connection");
  close(fd);
  fd = fresh();
  kit_send(fd, "POST / HTTP/1.0\r\n" JSON "Content-Length: 6\r\n\r\ndrip 3");
  kit_read(fd, &reply, false);
  ok(!reply.chunked, "no chunks");
  n = recv(fd, text, sizeof text, MSG_WAITALL);
  is_int(n, 15, "a stream up to the end of the connection");
  close(fd);
}

int
main(void)
{
  static const char *const origins[] = { "http://good.example" };

  kit_init(&kit);
  kit.listeners[0].origins = (struct egw_strings){ origins, 1 };
  kit_start(&kit);
  test_calls();
  test_crowd();
  test_types();
  test_chunks();
  test_expect();
  test_sizes();
  test_budget();
  test_pipelining();
  test_smuggling();
  test_variations();
  test_long_head();
  test_methods();
  test_websocket();
  test_answers();
  test_broken_stream();
  test_http_1_0();
  reply_free(&reply);
  kit_stop(&kit);
  return done_testing();
}
