/* SPDX-License-Identifier: MIT */
/* Where a Redis server is: its URL, and whether it is near enough to be talked to in the
 * clear. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "conf/url.h"
#include "parts.h"

#define DEFAULT_PORT 6379u
#define PATH_MAX_BYTES 107u     /* of sockaddr_un */

static bool
near4(uint32_t a)
{
  return a >> 24 == 127 || a >> 24 == 10 || a >> 20 == 0xac1 || a >> 16 == 0xc0a8 ||
         a >> 16 == 0xa9fe || a >> 22 == 0x191; /* 100.64/10 */
}

static bool
near6(const unsigned char *b)
{
  static const unsigned char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
  static const unsigned char loopback[16] = { [15] = 1 };

  if (memcmp(b, mapped, sizeof mapped) == 0)
    return near4((uint32_t)b[12] << 24 | (uint32_t)b[13] << 16 | (uint32_t)b[14] << 8 | b[15]);
  return memcmp(b, loopback, sizeof loopback) == 0 || (b[0] & 0xfe) == 0xfc ||
         (b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
}

bool
redis_address_near(const struct sockaddr *sa)
{
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;

  if (sa->sa_family == AF_INET) {
    memcpy(&v4, sa, sizeof v4);
    return near4(ntohl(v4.sin_addr.s_addr));
  }
  if (sa->sa_family != AF_INET6)
    return false;
  memcpy(&v6, sa, sizeof v6);
  return near6(v6.sin6_addr.s6_addr);
}

/* A literal that is far away; names are looked at later. */
static bool
is_far_literal(const char *host)
{
  struct in_addr v4;
  struct in6_addr v6;

  if (inet_pton(AF_INET, host, &v4) == 1)
    return !near4(ntohl(v4.s_addr));
  return inet_pton(AF_INET6, host, &v6) == 1 && !near6(v6.s6_addr);
}

/* The number of the database: "", "/" or "/7". */
static bool
read_db(const char *path, uint32_t *db)
{
  *db = 0;
  if (path == NULL || *path == '\0')
    return true;
  if (*path++ != '/')
    return false;
  for (; *path >= '0' && *path <= '9'; path++) {
    *db = *db * 10 + (uint32_t)(*path - '0');
    if (*db > 65535)
      return false;
  }
  return *path == '\0';
}

/* NULL stays NULL; "" too if `some`. false: memory is short. */
static bool
copy(const char *text, bool some, char **out)
{
  if (text == NULL || (some && *text == '\0'))
    return true;
  *out = strdup(text);
  return *out != NULL;
}

static const char *
take_tcp(const struct egw_url *url, struct redis_address *out)
{
  if (url->host == NULL || *url->host == '\0')
    return "no host is named";
  if (!read_db(url->path, &out->db))
    return "behind the host there may only be the number of a database";
  if (is_far_literal(url->host))
    return "the address is neither this machine's nor private, and there is no TLS to Redis; "
           "use a tunnel";
  if (*url->user != '\0' && *url->password == '\0')
    return "a user is named without a password";
  out->port = url->port != 0 ? url->port : DEFAULT_PORT;
  return copy(url->host, false, &out->host) && copy(url->user, true, &out->user) &&
                 copy(url->password, true, &out->password)
             ? NULL
             : "memory is short";
}

const char *
redis_address_read(const char *text, struct redis_address *out)
{
  struct egw_url url;
  const char *why;

  memset(out, 0, sizeof *out);
  if (strncmp(text, "unix:", 5) == 0) {
    if (text[5] != '/' || strlen(text + 5) > PATH_MAX_BYTES)
      return "behind \"unix:\" there must be an absolute path of at most 107 bytes";
    return copy(text + 5, false, &out->path) ? NULL : "memory is short";
  }
  if (strncmp(text, "rediss://", 9) == 0)
    return "this build can't do TLS to Redis (hiredis without TLS); use a tunnel";
  if (strncmp(text, "redis://", 8) != 0)
    return "it must begin with \"redis://\" or \"unix:/\"";
  why = url_parse(text, &url);
  if (why != NULL)
    return why;
  why = take_tcp(&url, out);
  url_free(&url);
  return why;
}

void
redis_address_free(struct redis_address *address)
{
  free(address->host);
  free(address->path);
  free(address->user);
  if (address->password != NULL)
    explicit_bzero(address->password, strlen(address->password));
  free(address->password);
  memset(address, 0, sizeof *address);
}
