/* SPDX-License-Identifier: MIT */
/* What a client shows to be let in. */
#include "credential.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <openssl/crypto.h>
#include "base64.h"

static struct egw_slice
trim(struct egw_slice text)
{
  while (text.len > 0 && (text.ptr[0] == ' ' || text.ptr[0] == '\t')) {
    text.ptr++;
    text.len--;
  }
  while (text.len > 0 && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\t'))
    text.len--;
  return text;
}

/* Visible ASCII without spaces: what can stand in a field or in a path. */
static void
set(struct credential *out, enum credential_kind kind, struct egw_slice text)
{
  out->kind = CREDENTIAL_BAD;
  if (text.len == 0 || text.len > CREDENTIAL_MAX)
    return;
  for (size_t i = 0; i < text.len; i++)
    if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
      return;
  out->kind = kind;
  out->text = text;
}

/* "USER:PASSWORD" in base64 (RFC 7617); the user's name says nothing that the key does not. */
static void
set_basic(struct credential *out, struct egw_slice text)
{
  long len = base64_decode(text, BASE64_PLAIN, out->decoded, sizeof out->decoded);
  const unsigned char *colon;

  out->kind = CREDENTIAL_BAD;
  if (len <= 0)
    return;
  colon = memchr(out->decoded, ':', (size_t)len);
  if (colon != NULL)
    set(out, CREDENTIAL_KEY,
        (struct egw_slice){ (const char *)colon + 1,
                            (size_t)(out->decoded + len - (colon + 1)) });
}

/* Takes "SCHEME " (RFC 9110 11.4, in any case) off the front. */
static bool
has_scheme(struct egw_slice *text, const char *scheme)
{
  size_t len = strlen(scheme);

  if (text->len <= len || strncasecmp(text->ptr, scheme, len) != 0 || text->ptr[len] != ' ')
    return false;
  *text = trim((struct egw_slice){ text->ptr + len, text->len - len });
  return true;
}

void
credential_read(struct credential *out, struct egw_slice authorization,
                struct egw_slice api_key, struct egw_slice path_key)
{
  out->kind = CREDENTIAL_NONE;
  out->text = (struct egw_slice){ NULL, 0 };
  if (authorization.ptr != NULL) {
    struct egw_slice text = trim(authorization);

    out->kind = CREDENTIAL_BAD;
    if (has_scheme(&text, "Bearer"))
      set(out, CREDENTIAL_BEARER, text);
    else if (has_scheme(&text, "Basic"))
      set_basic(out, text);
  } else if (api_key.ptr != NULL) {
    set(out, CREDENTIAL_KEY, trim(api_key));
  } else if (path_key.ptr != NULL) {
    set(out, CREDENTIAL_KEY, path_key);
  }
}

void
credential_forget(struct credential *credential)
{
  OPENSSL_cleanse(credential->decoded, sizeof credential->decoded);
}
