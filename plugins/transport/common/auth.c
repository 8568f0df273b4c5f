/* SPDX-License-Identifier: MIT */
/* Credentials and further headers. See auth.h. */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "auth.h"

#define AUTH_PART_MAX 4096u /* bytes of a user, password or token */

/* --- configuration ---------------------------------------------------------------------- */

static bool
auth_is_printable(const char *text)
{
  for (; *text != 0; text++)
    if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
      return false;
  return true;
}

static bool
auth_names(const char *header, size_t len, const char *name)
{
  return strlen(name) == len && strncasecmp(header, name, len) == 0;
}

/* What is wrong with a header (RFC 9110 section 5), or NULL. */
static const char *
auth_header_fault(const struct auth *auth, const char *text, const char *const *reserved)
{
  static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz";
  size_t len = strspn(text, token), i;

  if (len == 0 || text[len] != ':')
    return "is not of the form \"Name: value\"";
  if (!auth_is_printable(text + len))
    return "has a control character";
  if (text[len + 1 + strspn(text + len + 1, " \t")] == 0)
    return "has no value";
  for (i = 0; reserved[i] != NULL; i++)
    if (auth_names(text, len, reserved[i]))
      return "is set by the transport itself";
  if (auth_names(text, len, "Authorization") && (auth->bearer != NULL || auth->has_jwt))
    return "is already set by bearer or jwt_secret";
  return NULL;
}

static int
auth_hex(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int
auth_read_key(struct auth *auth)
{
  const char *hex = auth->jwt_secret;

  if (strncasecmp(hex, "0x", 2) == 0)
    hex += 2;
  if (strlen(hex) != 2 * AUTH_JWT_BYTES)
    return -1;
  for (size_t i = 0; i < AUTH_JWT_BYTES; i++) {
    int high = auth_hex(hex[2 * i]), low = auth_hex(hex[2 * i + 1]);

    if (high < 0 || low < 0)
      return -1;
    auth->jwt_key[i] = (unsigned char)(high * 16 + low);
  }
  auth->has_jwt = true;
  return 0;
}

int
auth_configure(struct auth *auth, struct egw_conf *section, const char *const *reserved)
{
  int status = 0;

  if (auth->jwt_secret != NULL && auth_read_key(auth) != 0)
    status = egw_conf_error(section, "jwt_secret", "is not 32 bytes in hex");
  if (auth->bearer != NULL && auth->jwt_secret != NULL)
    status = egw_conf_error(section, "bearer", "can't be used together with jwt_secret");
  if (auth->bearer != NULL && (*auth->bearer == 0 || !auth_is_printable(auth->bearer)))
    status = egw_conf_error(section, "bearer", "is empty or has a control character");
  for (size_t i = 0; i < auth->headers.n; i++) {
    const char *fault = auth_header_fault(auth, auth->headers.v[i], reserved);

    if (fault != NULL)
      status = egw_conf_error(section, "headers", "header %zu %s", i + 1, fault);
  }
  return status;
}

bool
auth_is_secret(const struct auth *auth, const struct egw_url *url)
{
  return auth->has_jwt || auth->bearer != NULL || auth->headers.n > 0 || url->user[0] != 0
         || url->password[0] != 0;
}

/* --- tokens ----------------------------------------------------------------------------- */

/* Appends base64; the variant of URLs has no padding (RFC 4648 section 5). */
static int
auth_base64(struct egw_buf *out, struct egw_slice in, bool for_url)
{
  char *to;
  size_t n;

  if (in.len > 4 * AUTH_PART_MAX)
    return -1;
  to = egw_buf_room(out, (in.len + 2) / 3 * 4 + 1);
  if (to == NULL)
    return -1;
  n = (size_t)EVP_EncodeBlock((unsigned char *)to, (const unsigned char *)in.ptr, (int)in.len);
  for (size_t i = 0; for_url && i < n; i++)
    to[i] = to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i];
  while (for_url && n > 0 && to[n - 1] == '=')
    n--;
  egw_buf_commit(out, n);
  return 0;
}

/* HS256 over the time of issue, which nodes let be a minute off. */
static int
auth_jwt(const struct auth *auth, struct egw_buf *out)
{
  struct egw_buf *claims = egw_buf_new(64);
  size_t start = egw_buf_slice(out).len;
  unsigned char mac[EVP_MAX_MD_SIZE];
  struct egw_slice text;
  unsigned n = 0;
  bool good;

  good = claims != NULL && egw_buf_printf(claims, "{\"iat\":%lld}", (long long)time(NULL)) == 0
         && auth_base64(out, EGW_LIT("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"), true) == 0
         && egw_buf_append(out, ".", 1) == 0
         && auth_base64(out, egw_buf_slice(claims), true) == 0;
  egw_buf_unref(claims);
  if (!good)
    return -1;
  text = egw_buf_slice(out);
  if (HMAC(EVP_sha256(), auth->jwt_key, AUTH_JWT_BYTES,
           (const unsigned char *)text.ptr + start, text.len - start, mac, &n) == NULL
      || egw_buf_append(out, ".", 1) != 0)
    return -1;
  return auth_base64(out, (struct egw_slice){ (const char *)mac, n }, true);
}

static int
auth_basic(const struct egw_url *url, struct egw_buf *out)
{
  struct egw_buf *pair = egw_buf_new(128);
  int rc = -1;

  if (pair != NULL && egw_buf_printf(pair, "%s:%s", url->user, url->password) == 0)
    rc = auth_base64(out, egw_buf_slice(pair), false);
  egw_buf_unref(pair);
  return rc;
}

static int
auth_authorization(const struct auth *auth, const struct egw_url *url, struct egw_buf *out)
{
  int rc;

  if (!auth->has_jwt && auth->bearer == NULL && url->user[0] == 0 && url->password[0] == 0)
    return 0;
  if (egw_buf_append(out, "Authorization: ", 15) != 0)
    return -1;
  if (auth->has_jwt)
    rc = egw_buf_append(out, "Bearer ", 7) != 0 ? -1 : auth_jwt(auth, out);
  else if (auth->bearer != NULL)
    rc = egw_buf_printf(out, "Bearer %s", auth->bearer);
  else
    rc = egw_buf_append(out, "Basic ", 6) != 0 ? -1 : auth_basic(url, out);
  return rc != 0 ? -1 : egw_buf_append(out, "\r\n", 2);
}

int
auth_print(const struct auth *auth, const struct egw_url *url, struct egw_buf *out)
{
  if (auth_authorization(auth, url, out) != 0)
    return -1;
  for (size_t i = 0; i < auth->headers.n; i++)
    if (egw_buf_printf(out, "%s\r\n", auth->headers.v[i]) != 0)
      return -1;
  return 0;
}
