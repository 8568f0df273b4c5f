/* SPDX-License-Identifier: MIT */
/* The gate: which request heads come in, which do not, with which status. */
#include "listen/gate.h"

#include <ethrpc-gw/json.h>
#include "rpc-data.h"
#include "../lib/tap.h"

#define POST "POST / HTTP/1.1\r\nHost: localhost\r\n"
#define GET "GET / HTTP/1.1\r\nHost: localhost\r\n"
#define WS GET "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define END "\r\n"

static const char *const hosts[] = { "localhost", "127.0.0.1", "[::1]", "gw.example",
                                     "far.example:443", "odd.example:9000" };
static const char *const origins[] = { "http://good.example", "https://wallet.example:8443/" };

static struct conf_listener conf = {
  .http = true,
  .websocket = true,
  .origins = { origins, 2 },
};
static struct listener listener = { .conf = &conf, .port = 8645, .hosts = { hosts, 6 } };

static enum gate_kind
check(const char *bytes, size_t len, struct gate_head *head)
{
  char *copy = data_exact(bytes, len);
  enum gate_kind kind = gate_check(&listener, copy, len, head);

  free(copy); /* its slices are not looked at */
  return kind;
}

/* --- whole heads ---------------------------------------------------------------------- */

struct head_case {
  const char *name;
  struct egw_slice text;
  enum gate_kind kind;
  int status;                  /* GATE_REFUSED */
};

#define GOOD(name, text) { name, { text, sizeof(text) - 1 }, GATE_HTTP, 0 }
#define SOCKET(name, text) { name, { text, sizeof(text) - 1 }, GATE_WEBSOCKET, 0 }
#define BAD(status, name, text) { name, { text, sizeof(text) - 1 }, GATE_REFUSED, status }

static const struct head_case cases[] = {
  GOOD("a POST", POST "Content-Type: application/json\r\nContent-Length: 3\r\n" END),
  GOOD("no space after the colon",
       "POST / HTTP/1.1\r\nHost:localhost\r\nContent-Length:0\r\n" END),
  GOOD("tabs and spaces around a value",
       "POST / HTTP/1.1\r\nHost: \t localhost \t\r\nContent-Length: 0\r\n" END),
  GOOD("chunked", POST "Transfer-Encoding: chunked\r\n" END),
  GOOD("Chunked in capitals", POST "TRANSFER-ENCODING: CHUNKED\r\n" END),
  GOOD("neither length nor chunks", POST END),
  GOOD("GET", GET END),
  GOOD("GET with a length of 0", GET "Content-Length: 0\r\n" END),
  GOOD("HEAD", "HEAD / HTTP/1.1\r\nHost: localhost\r\n" END),
  GOOD("OPTIONS", "OPTIONS / HTTP/1.1\r\nHost: localhost\r\n" END),
  GOOD("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n" END),
  GOOD("HTTP/1.0", "POST / HTTP/1.0\r\nHost: localhost\r\nContent-Length: 2\r\n" END),
  GOOD("a path and a query", "POST /mainnet?a=b&c=%20 HTTP/1.1\r\nHost: localhost\r\n" END),
  GOOD("absolute form", "POST http://localhost/x HTTP/1.1\r\nHost: LOCALHOST\r\n" END),
  GOOD("absolute form without a path",
       "GET http://localhost HTTP/1.1\r\nHost: localhost\r\n" END),
  GOOD("an empty line in front", "\r\n" POST END),
  GOOD("expectation", POST "Expect: 100-Continue\r\nContent-Length: 9\r\n" END),
  GOOD("Connection: upgrade alone", POST "Connection: upgrade\r\n" END),
  GOOD("other upgrades are overlooked", POST "Connection: upgrade\r\nUpgrade: h2c\r\n" END),
  GOOD("an upgrade by POST is overlooked",
       POST "Connection: upgrade\r\nUpgrade: websocket\r\n" END),
  GOOD("TE: trailers", POST "TE: trailers\r\n" END),
  GOOD("high bytes in a value", POST "X: \xc3\xa4\xff\r\n" END),
  GOOD("an empty value", POST "X:\r\n" END),
  GOOD("a good Origin", POST "Origin: http://good.example\r\n" END),
  GOOD("a good Origin with a port", POST "Origin: https://wallet.example:8443\r\n" END),
  GOOD("cross-site with a good Origin",
       POST "Origin: http://good.example\r\nSec-Fetch-Site: cross-site\r\n" END),
  GOOD("same-origin", POST "Sec-Fetch-Site: same-origin\r\n" END),

  BAD(400, "both lengths", POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n" END),
  BAD(400, "both lengths, the other way",
      POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n" END),
  BAD(400, "two lengths", POST "Content-Length: 3\r\nContent-Length: 4\r\n" END),
  BAD(400, "two equal lengths", POST "Content-Length: 3\r\nContent-Length: 3\r\n" END),
  BAD(400, "a list of lengths", POST "Content-Length: 3, 3\r\n" END),
  BAD(400, "a signed length", POST "Content-Length: +3\r\n" END),
  BAD(400, "a negative length", POST "Content-Length: -3\r\n" END),
  BAD(400, "a length in hex", POST "Content-Length: 0x3\r\n" END),
  BAD(400, "a length with a space", POST "Content-Length: 1 3\r\n" END),
  BAD(400, "an empty length", POST "Content-Length:\r\n" END),
  BAD(400, "a length that overflows", POST "Content-Length: 99999999999999999999\r\n" END),
  BAD(400, "a NUL in the length", POST "Content-Length: 3\0 99\r\n" END),
  BAD(400, "xchunked", POST "Transfer-Encoding: xchunked\r\n" END),
  BAD(400, "gzip, chunked", POST "Transfer-Encoding: gzip, chunked\r\n" END),
  BAD(400, "chunked, chunked", POST "Transfer-Encoding: chunked, chunked\r\n" END),
  BAD(400, "chunked twice",
      POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END),
  BAD(400, "white space behind chunked", POST "Transfer-Encoding: chunked \r\n" END),
  BAD(400, "white space behind a length", POST "Content-Length: 3\t\r\n" END),
  BAD(400, "identity", POST "Transfer-Encoding: identity\r\n" END),
  BAD(400, "an empty coding", POST "Transfer-Encoding:\r\n" END),
  BAD(400, "a coding with a parameter", POST "Transfer-Encoding: chunked;q=1\r\n" END),
  BAD(400, "a vertical tab before chunked", POST "Transfer-Encoding: \x0b" "chunked\r\n" END),
  BAD(400, "a space before the colon", POST "Transfer-Encoding : chunked\r\n" END),
  BAD(400, "a tab before the colon", POST "Content-Length\t: 3\r\n" END),
  BAD(400, "chunks in HTTP/1.0",
      "POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" END),
  BAD(400, "a folded line", POST "X: a\r\n b\r\n" END),
  BAD(400, "a folded first line", "POST / HTTP/1.1\r\n Host: localhost\r\n" END),
  BAD(400, "a bare line feed", POST "X: a\nContent-Length: 3\r\n" END),
  BAD(400, "a bare carriage return", POST "X: a\rb\r\n" END),
  BAD(400, "bare line feeds only", "POST / HTTP/1.1\nHost: localhost\n\n"),
  BAD(400, "a NUL in a name", POST "X\0: a\r\n" END),
  BAD(400, "a control byte in a value", POST "X: a\x01\r\n" END),
  BAD(400, "DEL in a value", POST "X: \x7f\r\n" END),
  BAD(400, "a line without a colon", POST "X\r\n" END),
  BAD(400, "an empty name", POST ": x\r\n" END),
  BAD(400, "a name with a space", POST "X Y: z\r\n" END),
  BAD(400, "a name with high bytes", POST "X\xc3: z\r\n" END),
  BAD(400, "GET with a body", GET "Content-Length: 3\r\n" END),
  BAD(400, "GET with chunks", GET "Transfer-Encoding: chunked\r\n" END),
  BAD(400, "OPTIONS with a body",
      "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n" END),
  BAD(400, "no Host", "POST / HTTP/1.1\r\n" END),
  BAD(400, "no Host in HTTP/1.0", "POST / HTTP/1.0\r\n" END),
  BAD(400, "two Hosts", POST "Host: localhost\r\n" END),
  BAD(400, "another authority in the target",
      "POST http://evil.com/ HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "a target without a slash", "POST x HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "no target", "POST  HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "two spaces", "POST  / HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "a space in the target", "POST /a b HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "a fragment", "POST /#a HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "high bytes in the target", "POST /\xc3\xa4 HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "%00", "POST /a%00b HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "//", "POST // HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "/..", "POST /a/../b HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "/..%2f", "GET /..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "GET *", "GET * HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "a trailing space", "POST / HTTP/1.1 \r\nHost: localhost\r\n" END),
  BAD(400, "no version", "POST /\r\nHost: localhost\r\n" END),
  BAD(400, "a version in lower case", "POST / http/1.1\r\nHost: localhost\r\n" END),
  BAD(400, "HTTP/1.10", "POST / HTTP/1.10\r\nHost: localhost\r\n" END),
  BAD(505, "HTTP/1.2", "POST / HTTP/1.2\r\nHost: localhost\r\n" END),
  BAD(505, "HTTP/2 by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  BAD(400, "a TLS handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
  BAD(400, "an SSH banner", "SSH-2.0-OpenSSH_9.2\r\n"),
  BAD(405, "PUT", "PUT / HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(405, "DELETE", "DELETE / HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(405, "post in lower case", "post / HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(405, "CONNECT", "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(405, "TRACE", "TRACE / HTTP/1.1\r\nHost: localhost\r\n" END),
  BAD(417, "another expectation", POST "Expect: 200-ok\r\nContent-Length: 1\r\n" END),
  BAD(417, "two expectations", POST "Expect: 100-continue\r\nExpect: 100-continue\r\n" END),
  BAD(403, "a foreign Origin", POST "Origin: http://evil.example\r\n" END),
  BAD(403, "Origin null", POST "Origin: null\r\n" END),
  BAD(403, "https instead of http", POST "Origin: https://good.example\r\n" END),
  BAD(403, "another port", POST "Origin: http://good.example:81\r\n" END),
  BAD(403, "an Origin that begins right", POST "Origin: http://good.example.evil.com\r\n" END),
  BAD(403, "an Origin with user info", POST "Origin: http://good.example@evil.com\r\n" END),
  BAD(403, "an Origin cut short", POST "Origin: http://good.exampl\r\n" END),
  BAD(403, "an empty Origin", POST "Origin:\r\n" END),
  BAD(403, "two Origins",
      POST "Origin: http://good.example\r\nOrigin: http://good.example\r\n" END),
  BAD(403, "cross-site without an Origin", POST "Sec-Fetch-Site: cross-site\r\n" END),
  BAD(403, "a WebSocket of a foreign page", WS KEY "Origin: http://evil.example\r\n" END),

  SOCKET("a handshake", WS KEY END),
  SOCKET("a handshake with lists and capitals",
         "GET /x HTTP/1.1\r\nHOST: localhost:8645\r\nUPGRADE: foo, WebSocket\r\n"
         "Connection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n" KEY END),
  SOCKET("a handshake of a good page", WS KEY "Origin: http://good.example\r\n" END),
  BAD(400, "a handshake without a key", WS END),
  BAD(400, "a handshake with two keys", WS KEY KEY END),
  BAD(400, "a short key", WS "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j\r\n" END),
  BAD(400, "a key that is not base64",
      WS "Sec-WebSocket-Key: dGhlIHNhbXBs!SBub25jZQ==\r\n" END),
  BAD(400, "a key without padding", WS "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQab\r\n" END),
  BAD(400, "a handshake with a body", WS KEY "Content-Length: 0\r\n" END),
  BAD(400, "a handshake without Connection",
      GET "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" KEY END),
  BAD(400, "a handshake without a version",
      GET "Upgrade: websocket\r\nConnection: upgrade\r\n" KEY END),
  BAD(400, "a handshake with two versions", WS "Sec-WebSocket-Version: 13\r\n" KEY END),
  BAD(426, "version 12",
      GET "Upgrade: websocket\r\nConnection: upgrade\r\n"
      "Sec-WebSocket-Version: 12\r\n" KEY END),
  BAD(400, "a handshake in HTTP/1.0",
      "GET / HTTP/1.0\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
      "Sec-WebSocket-Version: 13\r\n" KEY END),
};

static const char *const kinds[] = { "more", "HTTP", "WebSocket", "refused" };

static bool
fits(const struct head_case *c, enum gate_kind kind, const struct gate_head *head)
{
  if (kind == c->kind && (kind != GATE_REFUSED || head->status == c->status))
    return true;
  printf("#   %s: got %s %d (%s)\n", c->name, kinds[kind], head->status,
         head->why == NULL ? "" : head->why);
  return false;
}

static void
test_cases(void)
{
  struct gate_head head;

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    enum gate_kind kind = check(cases[i].text.ptr, cases[i].text.len, &head);

    ok(fits(&cases[i], kind, &head), "%s: %s", cases[i].name, kinds[cases[i].kind]);
  }
}

/* A head that comes in bit by bit is never judged differently. */
static void
test_prefixes(void)
{
  struct gate_head head;
  unsigned wrong = 0;

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t len = 0; len < cases[i].text.len; len++) {
      enum gate_kind kind = check(cases[i].text.ptr, len, &head);

      if (kind != GATE_MORE && !fits(&cases[i], kind, &head))
        wrong++;
      if (cases[i].kind != GATE_REFUSED && kind != GATE_MORE)
        wrong++;
    }
  is_int(wrong, 0, "a part of a good head is never judged, a part of a bad one as the whole");
}

static void
test_findings(void)
{
  static const char text[] = "POST /mainnet?x HTTP/1.1\r\nHost: localhost:8645\r\n"
                             "Content-Type: application/json \r\nContent-Length: 17\r\n"
                             "Content-Encoding: gzip\r\nExpect: 100-continue\r\n"
                             "Origin: http://good.example\r\n\r\n{\"a\":1}";
  struct gate_head head;

  is_int(gate_check(&listener, text, sizeof text - 1, &head), GATE_HTTP,
         "a head with everything");
  is_int(head.length, strstr(text, "{") - text, "its length does not take in the body");
  is_slice(head.method, "POST", "method");
  is_slice(head.target, "/mainnet?x", "target");
  is_slice(head.host, "localhost:8645", "host");
  is_slice(head.origin, "http://good.example", "origin");
  is_slice(head.content_type, "application/json", "content type without white space");
  is_slice(head.content_encoding, "gzip", "content encoding");
  is_int(head.body_length, 17, "length of the body");
  ok(head.expects && !head.chunked, "expectation");
  is_int(head.header_count, 6, "number of headers");
  is_int(check(POST "Content-Type: a\r\nContent-Type: b\r\n\r\n",
               strlen(POST "Content-Type: a\r\nContent-Type: b\r\n\r\n"), &head),
         GATE_HTTP, "two content types are a matter of the request");
  ok(head.content_type.ptr == NULL, "and count as none");
}

/* Fields that are kept for others: with the first value, and only when it is the only one. */
static void
test_fields(void)
{
  static const char text[] = POST "AUTHORIZATION: Bearer a.b.c \r\nX-Api-Key:k1\r\n"
                             "User-Agent: \r\nx-ethrpc-gw-cache: 1\r\n"
                             "X-Ethrpc-Gw-Explain: 1\r\nX-Ethrpc-Gw-Other: 2\r\n" END;
  static const char twice[] = GET "x-api-key: a\r\nX-API-KEY: a\r\nUser-Agents: b\r\n" END;
  struct gate_head head;

  is_int(gate_check(&listener, text, sizeof text - 1, &head), GATE_HTTP, "fields that are kept");
  is_slice(head.fields[FIELD_AUTHORIZATION], "Bearer a.b.c", "authorization");
  is_slice(head.fields[FIELD_API_KEY], "k1", "x-api-key");
  ok(head.fields[FIELD_USER_AGENT].ptr != NULL && head.fields[FIELD_USER_AGENT].len == 0,
     "user-agent: there and empty");
  is_slice(head.fields[FIELD_CACHE], "1", "x-ethrpc-gw-cache");
  is_slice(head.fields[FIELD_EXPLAIN], "1", "x-ethrpc-gw-explain");
  is_int(gate_check(&listener, twice, sizeof twice - 1, &head), GATE_HTTP, "one sent twice");
  for (int i = 0; i < GATE_FIELDS; i++)
    ok(head.fields[i].ptr == NULL, "field %d is missing", i);
}

/* --- sizes ---------------------------------------------------------------------------- */

static int
status_of(const char *text, size_t len)
{
  struct gate_head head;

  return gate_check(&listener, text, len, &head) == GATE_REFUSED ? head.status : 0;
}

static void
test_sizes(void)
{
  static char text[4 * GATE_HEAD_MAX];
  size_t at;

  at = (size_t)snprintf(text, sizeof text, "GET /");
  memset(text + at, 'a', sizeof text - at);
  is_int(status_of(text, GATE_HEAD_MAX - 1), 0, "a long target is waited for");
  is_int(status_of(text, GATE_HEAD_MAX), 414, "up to the limit");
  at = (size_t)snprintf(text, sizeof text, GET "X: ");
  memset(text + at, 'a', sizeof text - at);
  is_int(status_of(text, GATE_HEAD_MAX - 1), 0, "a long header is waited for");
  is_int(status_of(text, sizeof text), 431, "up to the limit too");
  at = (size_t)snprintf(text, sizeof text, GET "X: ");
  memset(text + at, 'a', GATE_HTTP_HEAD_MAX - at - 4);
  memcpy(text + GATE_HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
  is_int(status_of(text, GATE_HTTP_HEAD_MAX), 0, "a complete head of HTTP may be this long");
  memcpy(text + GATE_HTTP_HEAD_MAX - 4, "a\r\n\r\n", 5);
  is_int(status_of(text, GATE_HTTP_HEAD_MAX + 1), 431, "and not longer");
  at = (size_t)snprintf(text, sizeof text, GET);
  for (int i = 1; i < GATE_HEADERS_MAX; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "X-%d: y\r\n", i);
  snprintf(text + at, sizeof text - at, "\r\n");
  is_int(status_of(text, strlen(text)), 0, "as many headers as there may be");
  snprintf(text + at, sizeof text - at, "X: y\r\n\r\n");
  is_int(status_of(text, strlen(text)), 431, "one more");
}

/* --- Host ----------------------------------------------------------------------------- */

static const char *const good_hosts[] = {
  "localhost", "LOCALHOST", "LocalHost:8645", "localhost:8645", "127.0.0.1", "127.0.0.1:8645",
  "[::1]", "[::1]:8645", "[0:0:0:0:0:0:0:1]", "[0000::0001]:8645", "gw.example",
      "GW.Example:8645",
  "far.example", "far.example:443", "odd.example:9000",
};
static const char *const bad_hosts[] = {
  "", "evil.com", "evil.com:8645", "localhost.evil.com", "localhost.evil.com:8645",
      "evil.localhost",
  "localhost.", "localhost.:8645", "l", "local", "localhos", "localhosts", "localhost:80",
  "localhost:", "localhost:0", "localhost:8645x", "localhost:+8645", "localhost:08645x",
  "localhost:864", "localhost:86455", "localhost:8645:8645", "localhost: 8645",
      "localhost :8645",
  "localhost/", "localhost#", "localhost?", "localhost,evil.com", "localhost evil.com",
  "localhost@evil.com", "evil.com@localhost", "user:pw@localhost", "local%68ost",
      "localhost%00",
  "\"localhost\"", "http://localhost", "127.1", "127.0.0.1.", "127.0.0.01", "127.000.000.001",
  "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.0.0.2", "0.0.0.0", "0.0.0.0:8645",
      "0",
  "10.0.0.1", "127.0.0.1:9999", "[::]", "[::1", "::1", "[::1]8645", "[::1]:", "[::1]:1",
  "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[fe80::1%25lo]", "[]", "[localhost]",
      "[127.0.0.1]",
  "far.example:8645", "far.example:80", "odd.example", "odd.example:8645", "gw.example:443",
  "xn--localhost-", "loc\xc3\xa4lhost", "localhost\tx", "*", ".", "-", ":", ":8645",
};

static void
test_hosts(void)
{
  for (size_t i = 0; i < sizeof good_hosts / sizeof *good_hosts; i++)
    ok(gate_host_allowed(&listener, (struct egw_slice){ good_hosts[i],
                                                       strlen(good_hosts[i]) }),
       "Host '%s' is one of ours", good_hosts[i]);
  for (size_t i = 0; i < sizeof bad_hosts / sizeof *bad_hosts; i++)
    ok(!gate_host_allowed(&listener, (struct egw_slice){ bad_hosts[i], strlen(bad_hosts[i]) }),
       "Host '%s' is not", bad_hosts[i]);
  ok(!gate_host_allowed(&listener, (struct egw_slice){ "localhost\0.evil", 15 }),
     "nor is one with a NUL");
}

static void
test_any(void)
{
  static const char *const star[] = { "*" };
  struct conf_listener open_conf = { .http = true, .origins = { star, 1 } };
  struct listener open = { .conf = &open_conf, .port = 1, .hosts = { star, 1 } };

  ok(gate_host_allowed(&open, EGW_LIT("evil.com:99")), "'*' lets any Host in");
  ok(!gate_host_allowed(&open, EGW_LIT("evil.com/")), "that is one");
  ok(gate_origin_allowed(&open, EGW_LIT("http://evil.com")), "'*' lets any Origin in");
  ok(gate_origin_allowed(&open, EGW_LIT("null")), "even null");
}

/* --- kinds of listeners --------------------------------------------------------------- */

static void
test_listeners(void)
{
  struct conf_listener only_ws = { .websocket = true }, only_http = { .http = true };
  struct listener l = { .conf = &only_ws, .port = 8645, .hosts = { hosts, 3 } };
  struct gate_head head;

  is_int(gate_check(&l, POST END, strlen(POST END), &head), GATE_REFUSED, "no HTTP is served");
  is_int(head.status, 426, "but something else is");
  is_int(gate_check(&l, WS KEY END, strlen(WS KEY END), &head), GATE_WEBSOCKET,
         "WebSocket is");
  l.conf = &only_http;
  is_int(gate_check(&l, WS KEY END, strlen(WS KEY END), &head), GATE_HTTP,
         "without WebSocket the upgrade is overlooked");
  l.conf = &conf;
  l.admin = true;
  is_int(gate_check(&l, WS KEY END, strlen(WS KEY END), &head), GATE_HTTP,
         "the admin listener has no WebSocket");
  is_int(gate_check(&l, POST END, strlen(POST END), &head), GATE_REFUSED, "nor POST");
  is_int(head.status, 405, "as a matter of the method");
}

/* --- fields parsed by somebody else --------------------------------------------------- */

static bool
check_field(const char *name, size_t name_len, const char *value, size_t value_len)
{
  struct gate_head head = {
    .method = EGW_LIT("POST"), .target = EGW_LIT("/"), .version = EGW_LIT("HTTP/1.1"),
    .header_count = 2,
  };

  head.headers[0] = (struct gate_header){ EGW_LIT("host"), EGW_LIT("localhost") };
  head.headers[1] = (struct gate_header){ { name, name_len }, { value, value_len } };
  return gate_check_headers(&listener, &head);
}

static void
test_parsed(void)
{
  ok(check_field("X", 1, "y", 1), "a good field");
  ok(!check_field("X ", 2, "y", 1), "a name with a space");
  ok(!check_field("", 0, "y", 1), "no name");
  ok(!check_field("X", 1, "a\0b", 3), "a NUL in a value");
  ok(!check_field("X", 1, "a\nb", 3), "a line end in a value");
  ok(!check_field("Host", 4, "localhost", 9), "a second Host");
  ok(!check_field("Content-Length", 14, "3\0", 2), "a NUL behind a length");
}

/* --- the cases of llhttp -------------------------------------------------------------- */

static size_t
decode(struct egw_slice text, char *out)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                               "0123456789+/";
  unsigned bits = 0, have = 0;
  size_t n = 0;

  for (size_t i = 0; i < text.len; i++) {
    const char *p = text.ptr[i] == '\0' ? NULL : strchr(digits, text.ptr[i]);

    if (p == NULL)
      continue;
    bits = bits << 6 | (unsigned)(p - digits);
    have += 6;
    if (have >= 8) {
      have -= 8;
      out[n++] = (char)(bits >> have & 0xff);
    }
  }
  return n;
}

/* Not of the head: what is wrong with the body or behind it, and what is no error here. */
static bool
is_elsewhere(const char *reason)
{
  static const char *const parts[] = { "chunk", "Data after", "Pause on" };

  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strstr(reason, parts[i]) != NULL)
      return true;
  return false;
}

/* The case such that only what it is about can be refused: a Host, and a method that is
 * served. */
static size_t
adapt(const char *text, size_t len, char *out)
{
  const char *line = memmem(text, len, "\r\n", 2);
  bool put = len > 4 && memcmp(text, "PUT ", 4) == 0;
  size_t n = 0, first;

  if (put) {
    memcpy(out, "POST ", 5);
    text += 4;
    len -= 4;
    n = 5;
  }
  if (line == NULL || memmem(text, len, "Host:", 5) != NULL) {
    memcpy(out + n, text, len);
    return n + len;
  }
  first = (size_t)(line - text) + 2;
  memcpy(out + n, text, first);
  n += first;
  memcpy(out + n, "Host: localhost\r\n", 17);
  n += 17;
  memcpy(out + n, text + first, len - first);
  return n + len - first;
}

static void
test_llhttp_line(const char *text, size_t len, unsigned *count, unsigned *passed)
{
  static const char *const star[] = { "*" };
  struct listener any = { .conf = &conf, .port = 80, .hosts = { star, 1 } };
  static char raw[65536], adapted[65536 + 64];
  struct egw_slice line = { text, len }, type = egw_json_member(line, "type");
  char reason[256] = "";
  struct gate_head head;
  enum gate_kind kind;
  size_t n;

  if (!egw_json_equals(egw_json_member(line, "expect"), "error") ||
      type.len < 9 || memcmp(type.ptr, "\"request", 8) != 0)
    return;
  egw_json_string(egw_json_member(egw_json_member(line, "error"), "reason"), reason,
                  sizeof reason - 1);
  if (is_elsewhere(reason))
    return;
  n = decode(egw_json_member(line, "input_b64"), raw);
  n = adapt(raw, n, adapted);
  kind = gate_check(&any, adapted, n, &head);
  (*count)++;
  if (kind == GATE_REFUSED || kind == GATE_MORE)
    (*passed)++;
  else
    printf("#   let in (%s): %.*s\n", reason, (int)(n < 200 ? n : 200), adapted);
}

static void
test_llhttp(void)
{
  FILE *file = fopen(data_path("llhttp/cases.jsonl"), "re");
  unsigned count = 0, passed = 0;
  char *line = NULL;
  size_t cap = 0;
  ssize_t len;

  if (file == NULL) {
    tap_skip("no llhttp cases in the test data");
    return;
  }
  while ((len = getline(&line, &cap, file)) > 0)
    test_llhttp_line(line, (size_t)len, &count, &passed);
  free(line);
  fclose(file);
  ok(count > 30 && passed == count, "%u of %u heads that llhttp refuses are refused", passed,
     count);
}

/* Each byte at each place of texts of each length up to 20, against the grammar's own words: RFC 9110
 * 5.6.2 (token) and 5.5 (field-value). */
static void
test_bytes(void)
{
  static const char others[] = "!#$%&'*+-.^_`|~";
  char text[20];
  int token_wrong = 0, value_wrong = 0;

  for (unsigned c = 0; c < 256; c++) {
    bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    bool token = alnum || (c != 0 && memchr(others, (int)c, sizeof others - 1) != NULL);
    bool value = c == '\t' || (c >= 0x20 && c != 0x7f);

    for (size_t len = 1; len <= sizeof text; len++)
      for (size_t at = 0; at < len; at++) {
        memset(text, at % 3 == 0 ? 'Z' : at % 3 == 1 ? '-' : '0', len);
        text[at] = (char)c;
        token_wrong += gate_is_token((struct egw_slice){ text, len }) != token;
        value_wrong += gate_is_value((struct egw_slice){ text, len }) != value;
      }
  }
  is_int(token_wrong, 0, "tokens");
  is_int(value_wrong, 0, "values");
  ok(!gate_is_token((struct egw_slice){ text, 0 }), "no empty token");
  ok(gate_is_value((struct egw_slice){ text, 0 }), "an empty value");
}

int
main(void)
{
  test_bytes();
  test_cases();
  test_prefixes();
  test_findings();
  test_fields();
  test_sizes();
  test_hosts();
  test_any();
  test_listeners();
  test_parsed();
  test_llhttp();
  return done_testing();
}
