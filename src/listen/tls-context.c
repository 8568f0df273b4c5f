/* SPDX-License-Identifier: MIT */
/* What all TLS connections of a listener share: certificate, key, protocol versions. */
#include "listen/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

/* OpenSSL's first error tells most: "No such file or directory", "key values mismatch". */
static SSL_CTX *
complain(SSL_CTX *ctx, const char *name, const char *what, const char *file)
{
  unsigned long code = ERR_peek_error();
  const char *why = ERR_SYSTEM_ERROR(code) ? strerror((int)ERR_GET_REASON(code))
                                           : ERR_reason_error_string(code);

  egw_log(EGW_ERROR, "tls", "%s: %s%s%s: %s", name, what, file == NULL ? "" : " ",
          file == NULL ? "" : file, why == NULL ? "failed" : why);
  ERR_clear_error();
  SSL_CTX_free(ctx);
  return NULL;
}

/* RFC 7301: HTTP/1.1 is all there is, WebSocket included (RFC 6455 by way of it). */
static int
choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                const unsigned char *in, unsigned in_len, void *arg)
{
  static const unsigned char ours[] = "\x08http/1.1";
  unsigned char *found;

  (void)ssl;
  (void)arg;
  if (SSL_select_next_proto(&found, out_len, ours, sizeof ours - 1, in, in_len) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *out = found;
  return SSL_TLSEXT_ERR_OK;
}

void *
tls_context_new(const char *name, const char *certificate, const char *key)
{
  SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

  if (ctx == NULL)
    return complain(NULL, name, "TLS", NULL);
  if (key == NULL)
    key = certificate; /* one file may hold both */
  SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                               SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
  if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
    return complain(ctx, name, "TLS 1.2", NULL);
  if (SSL_CTX_use_certificate_chain_file(ctx, certificate) != 1)
    return complain(ctx, name, "certificate", certificate);
  if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
    return complain(ctx, name, "key", key);
  if (SSL_CTX_check_private_key(ctx) != 1)
    return complain(ctx, name, "this key does not fit the certificate:", key);
  return ctx;
}

void
tls_context_free(void *context)
{
  SSL_CTX_free(context);
}
