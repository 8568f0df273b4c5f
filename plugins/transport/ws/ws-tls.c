/* SPDX-License-Identifier: MIT */
/* TLS towards the node. Certificates are judged here and not by libwebsockets, whose own rules
 * take one that is not valid yet for a sign of a wrong clock and accept it, and can't check an
 * IPv6 literal. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include "ws.h"

static bool
tls_is_literal(const char *host)
{
  unsigned char address[16];

  return *host == '[' || inet_pton(AF_INET, host, address) == 1
         || inet_pton(AF_INET6, host, address) == 1;
}

/* The name that OpenSSL is told to expect: the site's, as an address where it is one. */
static int
tls_expect(X509_VERIFY_PARAM *param, const char *host)
{
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (tls_is_literal(host))
    return X509_VERIFY_PARAM_set1_ip_asc(param, host);
  return X509_VERIFY_PARAM_set1_host(param, host, strlen(host));
}

static int
tls_no_exceptions(int good, X509_STORE_CTX *store)
{
  (void)store;
  return good;
}

/* In the place of OpenSSL's own verification, so that the callback that libwebsockets sets on
 * the connection has no say. 1: accepted. */
static int
tls_verify(X509_STORE_CTX *store, void *arg)
{
  struct ws_site *site = arg;

  if (site->insecure) {
    X509_STORE_CTX_set_error(store, X509_V_OK);
    return 1;
  }
  X509_STORE_CTX_set_verify_cb(store, tls_no_exceptions);
  if (tls_expect(X509_STORE_CTX_get0_param(store), site->host) != 1)
    X509_STORE_CTX_set_error(store, X509_V_ERR_UNSPECIFIED);
  else if (X509_verify_cert(store) == 1)
    return 1;
  site->tls_fault = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
  return 0;
}

/* An address is no server name (RFC 6066 section 3), but libwebsockets sends it as one. */
static void
tls_event(const SSL *ssl, int where, int value)
{
  const char *name;

  (void)value;
  if (where != SSL_CB_HANDSHAKE_START)
    return;
  name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name != NULL && tls_is_literal(name))
    SSL_set_tlsext_host_name((SSL *)(uintptr_t)ssl, NULL);
}

int
tls_check_file(const char *ca_file, char *why, size_t cap)
{
  SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
  int good = tls != NULL && SSL_CTX_load_verify_locations(tls, ca_file, NULL) == 1;
  unsigned long error = ERR_peek_last_error();
  const char *reason = ERR_SYSTEM_ERROR(error) ? strerror((int)ERR_GET_REASON(error))
                                               : ERR_reason_error_string(error);

  if (!good)
    snprintf(why, cap, "%s", reason == NULL ? "can't be read" : reason);
  ERR_clear_error();
  SSL_CTX_free(tls);
  return good ? 0 : -1;
}

void *
tls_new(struct ws_site *site, const struct ws *ws)
{
  SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
  int good = tls != NULL && SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) == 1;

  if (good && ws->ca_file != NULL)
    good = SSL_CTX_load_verify_locations(tls, ws->ca_file, NULL) == 1;
  else if (good)
    good = SSL_CTX_set_default_verify_paths(tls) == 1;
  ERR_clear_error();
  if (!good) {
    SSL_CTX_free(tls);
    return NULL;
  }
  SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_cert_verify_callback(tls, tls_verify, site);
  SSL_CTX_set_info_callback(tls, tls_event);
  SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
  return tls;
}

void
tls_free(void *tls)
{
  SSL_CTX_free(tls);
}
