/* SPDX-License-Identifier: MIT */
/* A node for tests: the WebSocket side (RFC 6455, as a server) and certificates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include "test-node-parts.h"

/* --- the handshake ---------------------------------------------------------------------- */

static bool
read_head(struct node_peer *p, char *head, size_t cap)
{
  size_t n = 0;

  while (n + 1 < cap && peer_read(p, head + n, 1)) {
    head[++n] = 0;
    if (n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0)
      return true;
  }
  return false;
}

static void
accept_key(const char *key, size_t len, unsigned char *out)
{
  static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  EVP_MD_CTX *md = EVP_MD_CTX_new();

  EVP_DigestInit_ex(md, EVP_sha1(), NULL);
  EVP_DigestUpdate(md, key, len);
  EVP_DigestUpdate(md, guid, sizeof guid - 1);
  EVP_DigestFinal_ex(md, sum, &n);
  EVP_MD_CTX_free(md);
  EVP_EncodeBlock(out, sum, (int)n);
}

bool
ws_accept(struct node_peer *p)
{
  static const char name[] = "Sec-WebSocket-Key: ";
  char head[sizeof p->node->head], reply[512];
  unsigned char sum[64];
  const char *key;
  int n;

  if (!read_head(p, head, sizeof head) || (key = strcasestr(head, name)) == NULL)
    return false;
  pthread_mutex_lock(&p->node->lock);
  memcpy(p->node->head, head, sizeof head);
  pthread_mutex_unlock(&p->node->lock);
  key += sizeof name - 1;
  accept_key(key, strcspn(key, "\r"), sum);
  if (p->mode == NODE_REDIRECT)
    n = snprintf(reply, sizeof reply, "HTTP/1.1 302 Found\r\nLocation: %s\r\n"
                 "Content-Length: 0\r\n\r\n", p->node->elsewhere);
  else if (p->mode == NODE_REFUSE)
    n = snprintf(reply, sizeof reply, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  else
    n = snprintf(reply, sizeof reply, "HTTP/1.1 101 Switching Protocols\r\n"
                 "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Accept: %s\r\n\r\n", (char *)sum);
  return peer_write(p, reply, (size_t)n) && p->mode == NODE_SERVE;
}

/* --- frames ----------------------------------------------------------------------------- */

static bool
send_frame(struct node_peer *p, unsigned first, const char *bytes, size_t len)
{
  unsigned char head[10] = { (unsigned char)first };
  size_t n = 2;

  if (len < 126) {
    head[1] = (unsigned char)len;
  } else if (len < 65536) {
    head[1] = 126;
    head[2] = (unsigned char)(len >> 8);
    head[3] = (unsigned char)len;
    n = 4;
  } else {
    head[1] = 127;
    for (int i = 0; i < 8; i++)
      head[2 + i] = (unsigned char)(len >> (56 - 8 * i));
    n = 10;
  }
  return peer_write(p, head, n) && peer_write(p, bytes, len);
}

bool
ws_send(struct node_peer *p, const char *text, size_t len, size_t piece)
{
  unsigned opcode = 1;

  if (piece == 1) { /* one frame, but written byte by byte */
    char *frame = malloc(len + 10);
    size_t n = len < 126 ? 2 : 4;
    bool sent = true;

    frame[0] = (char)0x81;
    frame[1] = (char)(len < 126 ? len : 126);
    frame[2] = (char)(len >> 8);
    frame[3] = (char)len;
    memcpy(frame + n, text, len);
    for (size_t i = 0; i < n + len && sent; i++)
      sent = peer_write(p, frame + i, 1);
    free(frame);
    return sent;
  }
  do {
    size_t n = piece == 0 || piece > len ? len : piece;

    if (!send_frame(p, opcode | (n == len ? 0x80 : 0), text, n))
      return false;
    text += n;
    len -= n;
    opcode = 0;
  } while (len > 0);
  return true;
}

/* Reads one frame, its payload appended to p->text. */
static bool
read_frame(struct node_peer *p, unsigned *first)
{
  unsigned char head[2], more[8], mask[4];
  size_t len, extra;

  if (!peer_read(p, head, 2) || !(head[1] & 0x80))
    return false;
  *first = head[0];
  len = head[1] & 0x7f;
  extra = len == 126 ? 2 : len == 127 ? 8 : 0;
  if (!peer_read(p, more, extra) || !peer_read(p, mask, 4))
    return false;
  if (extra > 0)
    len = 0;
  for (size_t i = 0; i < extra; i++)
    len = len << 8 | more[i];
  if (p->len + len + 1 > p->room)
    p->text = realloc(p->text, p->room = p->len + len + 4096);
  if (!peer_read(p, p->text + p->len, len))
    return false;
  for (size_t i = 0; i < len; i++)
    p->text[p->len + i] ^= (char)mask[i & 3];
  p->text[p->len + len] = 0;
  p->len += len;
  return true;
}

bool
ws_receive(struct node_peer *p)
{
  unsigned first;
  size_t before;

  p->len = 0;
  for (;;) {
    before = p->len;
    if (!read_frame(p, &first))
      return false;
    switch (first & 15) {
    case 8:
      p->node->closes++;
      send_frame(p, 0x88, p->text + before, p->len - before);
      return false;
    case 9:
      p->node->pings++;
      if (!send_frame(p, 0x8a, p->text + before, p->len - before))
        return false;
      p->len = before;
      break;
    case 10:
      p->len = before;
      break;
    default:
      if (first & 0x80)
        return true;
    }
  }
}

/* --- certificates ----------------------------------------------------------------------- */

static void
add_extension(X509 *cert, int nid, const char *value)
{
  X509V3_CTX ctx;
  X509_EXTENSION *ext;

  X509V3_set_ctx_nodb(&ctx);
  X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
  ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
  X509_add_ext(cert, ext, -1);
  X509_EXTENSION_free(ext);
}

void *
node_tls(const char *names, int from_days, int to_days, const char *pem)
{
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *cert = X509_new();
  SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
  FILE *file;

  X509_set_version(cert, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), from_days * 86400L);
  X509_gmtime_adj(X509_getm_notAfter(cert), to_days * 86400L);
  X509_set_pubkey(cert, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                             (const unsigned char *)"test node", -1, -1, 0);
  X509_set_issuer_name(cert, X509_get_subject_name(cert));
  add_extension(cert, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(cert, NID_subject_alt_name, names);
  X509_sign(cert, key, EVP_sha256());
  SSL_CTX_use_certificate(tls, cert);
  SSL_CTX_use_PrivateKey(tls, key);
  file = fopen(pem, "w");
  if (file != NULL) {
    PEM_write_X509(file, cert);
    fclose(file);
  }
  X509_free(cert);
  EVP_PKEY_free(key);
  return tls;
}

void
node_tls_free(void *tls)
{
  SSL_CTX_free(tls);
}
