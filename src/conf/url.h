/* SPDX-License-Identifier: MIT */
/* URLs of upstreams: scheme://[user[:password]@]host[:port][/path][?query], scheme:///path or
 * scheme:path for files and sockets (ipc, replay), or a bare absolute path (ipc). RFC 3986,
 * strictly: no white space or control characters, brackets around IPv6 literals only, ports
 * 1..65535, no fragment. Percent-escapes in user and password are decoded. */
#ifndef CONF_URL_H
#define CONF_URL_H

#include <ethrpc-gw/transport.h>

/* Parses `text` into *out, whose strings are malloc()ed (free with url_free()). NULL, or a
 * constant reason that quotes nothing of the text. */
const char *url_parse(const char *text, struct egw_url *out);
void url_free(struct egw_url *url);

/* A name for an upstream that has none: the host and port, or the file's base name; never
 * user, password, path or query of a network URL. Appends to `out`. 0 or -1. */
int url_default_name(const struct egw_url *url, struct egw_buf *out) EGW_MUST_CHECK;

#endif
