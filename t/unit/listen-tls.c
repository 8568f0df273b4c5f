/* SPDX-License-Identifier: MIT */
/* TLS in front of the listeners: the same answers as in the clear, back-pressure both ways,
 * ends. */
#include "../lib/http-kit.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include "listen/tls.h"
#include "../lib/tap.h"

static struct kit kit;
static struct conf_limits limits; /* of its listener */
static SSL_CTX *client;
static char folder[] = "/tmp/listen-tls-XXXXXX";
static char certificate[64], key[64], other_key[64];

/* --- a certificate -------------------------------------------------------------------- */

static EVP_PKEY *
make_key(const char *path)
{
  EVP_PKEY *pkey = EVP_EC_gen("P-256");
  FILE *file = fopen(path, "we");

  if (pkey == NULL || file == NULL || !PEM_write_PrivateKey(file, pkey, NULL, NULL, 0, NULL,
                                                            NULL))
    abort();
  fclose(file);
  return pkey;
}

static void
make_files(void)
{
  X509 *x = X509_new();
  EVP_PKEY *pkey;
  X509_NAME *name;
  FILE *file;

  if (mkdtemp(folder) == NULL)
    abort();
  snprintf(certificate, sizeof certificate, "%s/cert.pem", folder);
  snprintf(key, sizeof key, "%s/key.pem", folder);
  snprintf(other_key, sizeof other_key, "%s/other.pem", folder);
  EVP_PKEY_free(make_key(other_key));
  pkey = make_key(key);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x), 86400);
  X509_set_pubkey(x, pkey);
  name = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1,
                             -1, 0);
  X509_set_issuer_name(x, name);
  file = fopen(certificate, "we");
  if (X509_sign(x, pkey, EVP_sha256()) == 0 || file == NULL || !PEM_write_X509(file, x))
    abort();
  fclose(file);
  X509_free(x);
  EVP_PKEY_free(pkey);
}

static void
remove_files(void)
{
  unlink(certificate);
  unlink(key);
  unlink(other_key);
  rmdir(folder);
}

/* --- a client ------------------------------------------------------------------------- */

static SSL *
connect_tls(void)
{
  struct timeval patience = { .tv_sec = KIT_WAIT / 1000 };
  int fd = kit_connect(kit_port(&kit));
  SSL *ssl = SSL_new(client);

  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (ssl == NULL || SSL_set_fd(ssl, fd) != 1)
    abort();
  if (SSL_connect(ssl) != 1) {
    SSL_free(ssl);
    close(fd);
    return NULL;
  }
  return ssl;
}

static void
disconnect(SSL *ssl)
{
  int fd = SSL_get_fd(ssl);

  SSL_free(ssl);
  close(fd);
}

static void
send_tls(SSL *ssl, const char *text)
{
  SSL_write(ssl, text, (int)strlen(text));
}

static void
post_tls(SSL *ssl, const char *host, const char *body)
{
  char text[512];

  snprintf(text, sizeof text,
           "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
           "Content-Length: %zu\r\n\r\n%s",
           host, strlen(body), body);
  send_tls(ssl, text);
}

/* Reads a response of known length: its status; the body's length. -1: it did not come. */
static int
read_tls(SSL *ssl, size_t *len)
{
  char head[4096];
  size_t at = 0, left;
  int status = -1;
  const char *p;

  *len = 0;
  while (at + 1 < sizeof head && (at < 4 || memcmp(head + at - 4, "\r\n\r\n", 4) != 0)) {
    if (SSL_read(ssl, head + at, 1) != 1)
      return -1;
    head[++at] = '\0';
  }
  p = strstr(head, "Content-Length: ");
  if (sscanf(head, "HTTP/1.1 %d", &status) != 1 || p == NULL)
    return -1;
  for (left = strtoul(p + 16, NULL, 10); left > 0;) {
    char block[16384];
    int n = SSL_read(ssl, block, (int)(left < sizeof block ? left : sizeof block));

    if (n <= 0)
      return -1;
    left -= (size_t)n;
    *len += (size_t)n;
  }
  return status;
}

/* Whether the connection ends properly, with a close_notify. */
static bool
ends_well(SSL *ssl)
{
  char c;
  int n = SSL_read(ssl, &c, 1);

  return n <= 0 && SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN;
}

/* --- tests ---------------------------------------------------------------------------- */

static void
test_calls(void)
{
  SSL *ssl = connect_tls();
  size_t len;

  ok(ssl != NULL && SSL_version(ssl) >= TLS1_2_VERSION, "a handshake");
  for (int i = 0; i < 20; i++) {
    post_tls(ssl, "localhost", i % 2 == 0 ? "echo 12345" : "slow 3");
    if (read_tls(ssl, &len) != 200)
      break;
  }
  is_int(len, strlen("slow 3"), "twenty calls on it");
  post_tls(ssl, "localhost", "big 10000000");
  ok(read_tls(ssl, &len) == 200 && len == 10000000, "a large answer");
  post_tls(ssl, "evil.com", "echo");
  is_int(read_tls(ssl, &len), 403, "a foreign Host on a later request");
  ok(ends_well(ssl), "ends the connection properly");
  disconnect(ssl);
  ssl = connect_tls();
  post_tls(ssl, "evil.com", "echo");
  is_int(read_tls(ssl, &len), 403, "a foreign Host on the first");
  ok(ends_well(ssl), "ends it too");
  disconnect(ssl);
}

static void
test_large_request(void)
{
  SSL *ssl = connect_tls();
  static char block[65536];
  size_t len;

  memset(block, 'x', sizeof block);
  send_tls(ssl, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Content-Length: 1048576\r\n\r\n");
  for (int i = 0; i < 16; i++)
    SSL_write(ssl, block, sizeof block);
  ok(read_tls(ssl, &len) == 200 && len == 1048576, "a large request");
  send_tls(ssl, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Content-Length: 1048577\r\n\r\n");
  SSL_write(ssl, block, sizeof block);
  is_int(read_tls(ssl, &len), 413, "one that is too large");
  disconnect(ssl);
}

/* Bytes in flight are bounded: the worker's side does not take more than its buffers hold. */
static void
test_back_pressure(void)
{
  SSL *ssl = connect_tls();
  size_t len;

  for (int i = 0; i < 20; i++)
    post_tls(ssl, "localhost", "big 1000000");
  for (int i = 0; i < 20; i++)
    if (read_tls(ssl, &len) != 200 || len != 1000000)
      len = 0;
  is_int(len, 1000000, "answers wait for a client that asks first and reads later");
  disconnect(ssl);
}

static void
test_websocket(void)
{
  SSL *ssl = connect_tls();
  size_t len;

  send_tls(ssl,
           "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  is_int(read_tls(ssl, &len), 101, "a WebSocket handshake");
  ok(ends_well(ssl), "whose server ends it");
  disconnect(ssl);
  ssl = connect_tls();
  send_tls(ssl,
         "GET /no HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  is_int(read_tls(ssl, &len), 404, "one for a network that is not there");
  disconnect(ssl);
}

static void
test_strangers(void)
{
  int64_t before = kit_refused(&kit, REFUSED_TLS);
  int fd = kit_connect(kit_port(&kit));
  SSL *ssl;

  kit_send(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ok(kit_closed(fd) || kit_closed(fd), "HTTP in the clear is not served");
  close(fd);
  ok(kit_refused(&kit, REFUSED_TLS) == before + 1, "and is counted");
  SSL_CTX_set_min_proto_version(client, TLS1_VERSION);
  SSL_CTX_set_max_proto_version(client, TLS1_1_VERSION);
  SSL_CTX_set_security_level(client, 0);
  ssl = connect_tls();
  ok(ssl == NULL, "TLS 1.1 is not spoken");
  if (ssl != NULL)
    disconnect(ssl);
  SSL_CTX_set_min_proto_version(client, TLS1_2_VERSION);
  SSL_CTX_set_max_proto_version(client, 0);
}

static void
test_gone(void)
{
  int cancelled = atomic_load(&kit_cancelled), started = atomic_load(&kit_started);
  SSL *ssl = connect_tls();

  post_tls(ssl, "localhost", "hold");
  kit_wait(&kit_started, started + 1);
  disconnect(ssl);
  ok(kit_wait(&kit_cancelled, cancelled + 1), "a client that leaves cancels its call");
}

static void
test_slow_handshake(void)
{
  int fd;

  limits.handshake_timeout = 200;
  kit_limit(&kit, &limits);
  fd = kit_connect(kit_port(&kit));
  ok(kit_closed(fd), "a handshake must come in time");
  close(fd);
}

static void
test_slow_reader(void)
{
  int64_t before = kit_refused(&kit, REFUSED_SLOW_READER);
  SSL *ssl;

  limits.write_timeout = 300;
  kit_limit(&kit, &limits);
  ssl = connect_tls();
  post_tls(ssl, "localhost", "big 30000000");
  for (int i = 0; i < KIT_WAIT && kit_refused(&kit, REFUSED_SLOW_READER) == before; i++)
    kit_sessions(&kit);
  ok(kit_refused(&kit, REFUSED_SLOW_READER) > before, "who does not read is cut off");
  disconnect(ssl);
  limits.write_timeout = 10000;
  kit_limit(&kit, &limits);
}

static void
test_end(void)
{
  int started = atomic_load(&kit_started);
  SSL *busy = connect_tls(), *held = connect_tls();
  size_t len;

  post_tls(busy, "localhost", "slow 200");
  post_tls(held, "localhost", "hold");
  kit_wait(&kit_started, started + 2);
  kit_drain(&kit);
  ok(read_tls(busy, &len) == 200 && len == strlen("slow 200"), "a call in flight is answered");
  ok(ends_well(busy), "before its connection ends");
  is_int(kit_connect(kit_port(&kit)), -1, "nobody else gets in");
  kit_stop(&kit);
  ok(!ends_well(held), "what is left is cut");
  disconnect(busy);
  disconnect(held);
}

static void
test_configuration(void)
{
  void *ctx = tls_context_new("test", certificate, key);

  ok(ctx != NULL, "certificate and key");
  tls_context_free(ctx);
  ok(tls_context_new("test", certificate, other_key) == NULL, "a key of another certificate");
  ok(tls_context_new("test", key, key) == NULL, "a key in the certificate's place");
  ok(tls_context_new("test", "/nonexistent.pem", key) == NULL, "no certificate");
  ok(tls_context_new("test", certificate, "/nonexistent.pem") == NULL, "no key");
}

int
main(void)
{
  make_files();
  test_configuration();
  client = SSL_CTX_new(TLS_client_method());
  kit_init(&kit);
  kit.listeners[0].tls_certificate = certificate;
  kit.listeners[0].tls_key = key;
  limits = kit.listeners[0].limits;
  kit_start(&kit);
  test_calls();
  test_large_request();
  test_back_pressure();
  test_websocket();
  test_strangers();
  test_gone();
  test_slow_reader();
  test_slow_handshake();
  test_end();
  SSL_CTX_free(client);
  remove_files();
  return done_testing();
}
