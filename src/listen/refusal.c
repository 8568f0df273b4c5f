/* SPDX-License-Identifier: MIT */
/* The text of a refusal; see linger.h. */
#include "listen/linger.h"

#include <stdio.h>
#include <string.h>
#include "rpc/error.h"

struct phrase {
  int status;
  const char *text;
};

static const struct phrase phrases[] = {
  { 400, "Bad Request" },
  { 403, "Forbidden" },
  { 404, "Not Found" },
  { 405, "Method Not Allowed" },
  { 408, "Request Timeout" },
  { 413, "Content Too Large" },
  { 414, "URI Too Long" },
  { 415, "Unsupported Media Type" },
  { 417, "Expectation Failed" },
  { 426, "Upgrade Required" },
  { 431, "Request Header Fields Too Large" },
  { 500, "Internal Server Error" },
  { 503, "Service Unavailable" },
  { 505, "HTTP Version Not Supported" },
};

static const char *
phrase_of(int status)
{
  for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
    if (phrases[i].status == status)
      return phrases[i].text;
  return "Error";
}

/* Headers that belong to a status (RFC 9110 15.5.6, 15.5.22, 10.2.3; RFC 6455 4.4). */
static const char *
extra_of(const struct refusal_text *text)
{
  switch (text->status) {
  case 405:
    return text->admin ? "Allow: GET, HEAD\r\n" : "Allow: GET, HEAD, POST, OPTIONS\r\n";
  case 426:
    return "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  case 503:
    return "Retry-After: 1\r\n";
  default:
    return "";
  }
}

/* The JSON-RPC error that goes with a status: with a code of its own, or "invalid request"
 * with the reason. */
static int
print_body(const struct refusal_text *text, char *out, size_t cap)
{
  enum rpc_fault fault = text->status == 413   ? RPC_FAULT_REQUEST_TOO_LARGE
                         : text->status == 503 ? RPC_FAULT_OVERLOADED
                         : text->status == 500 ? RPC_FAULT_INTERNAL
                                               : RPC_FAULT_INVALID_REQUEST;
  const struct rpc_fault_info *info = rpc_fault_info(fault);

  return snprintf(out, cap,
                  "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":%d,"
                  "\"message\":\"%s\"}}\n",
                  info->code, fault == RPC_FAULT_INVALID_REQUEST ? text->why : info->message);
}

size_t
refusal_print(const struct refusal_text *text, char *out, size_t cap)
{
  char body[384], cors[384] = "";
  int body_len = print_body(text, body, sizeof body);
  int n;

  if (text->origin.ptr != NULL) {
    n = snprintf(cors, sizeof cors, "Access-Control-Allow-Origin: %.*s\r\nVary: Origin\r\n",
                 (int)text->origin.len, text->origin.ptr);
    if (n < 0 || (size_t)n >= sizeof cors)
      return 0;
  }
  n = snprintf(out, cap,
               "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
               "Connection: close\r\n%s%s\r\n%s",
               text->status, phrase_of(text->status), body_len, extra_of(text), cors,
               text->no_body ? "" : body);
  return n < 0 || (size_t)n >= cap ? 0 : (size_t)n;
}

void
refusal_send(int fd, const struct refusal_text *text)
{
  char out[REFUSAL_MAX];
  size_t len = refusal_print(text, out, sizeof out);

  /* A socket that has not room for this much has other troubles; the close that follows says
   * the same in fewer words. */
  if (send(fd, out, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    egw_log(EGW_DEBUG, "listen", "a refusal could not be sent");
}
