/* SPDX-License-Identifier: MIT */
/* One easy handle. What all exchanges of a link have in common is set once; a kept handle gets
 * only what differs.
 *
 * libcurl sends a request anew by itself when a kept connection turns out to be closed before
 * any byte of the answer came. That is wanted for idempotent exchanges only: the others get a
 * connection of their own (CURLOPT_FRESH_CONNECT), on which libcurl never does so. */
#include <stdlib.h>
#include "http.h"

#define RECEIVE_BUFFER 65536L
#define KEEPALIVE_IDLE 15L /* seconds */
#define KEEPALIVE_INTERVAL 5L

/* --- the reply ------------------------------------------------------------------------ */

void
easy_tell(struct http_job *job)
{
  curl_off_t seconds = 0;
  long status = 0;
  uint32_t ms;

  if (job->told || job->xchg == NULL)
    return;
  curl_easy_getinfo(job->easy, CURLINFO_RESPONSE_CODE, &status);
  if (status == 0)
    return;
  job->told = true;
  curl_easy_getinfo(job->easy, CURLINFO_RETRY_AFTER, &seconds);
  ms = seconds <= 0 ? 0 : seconds >= UINT32_MAX / 1000 ? UINT32_MAX : (uint32_t)seconds * 1000;
  egw_xchg_http(job->xchg, (int)status, ms);
}

/* After a pause libcurl gives the same bytes again, which the reader has already. */
static size_t
on_data(char *bytes, size_t size, size_t count, void *arg)
{
  struct http_job *job = arg;
  size_t len = size * count, known = job->skip < len ? job->skip : len;
  int full;

  job->skip -= known;
  if (job->xchg == NULL)
    return 0;
  if (known == len)
    return len;
  job->heard_ms = egw_now_ms(job->owner->hub->worker);
  easy_tell(job);
  full = egw_xchg_data(job->xchg, bytes + known, len - known);
  if (full < 0) {
    job->refused = true;
    return 0;
  }
  if (full == 0)
    return len;
  job->paused = true;
  job->skip = len;
  return CURL_WRITEFUNC_PAUSE;
}

/* --- settings ------------------------------------------------------------------------- */

static void
set_connection(struct http_job *job)
{
  const struct http_link *l = job->owner;
  CURL *easy = job->easy;

  curl_easy_setopt(easy, CURLOPT_SHARE, l->hub->share);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, hub_open_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, l->hub);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, hub_close_socket);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, l->hub);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   (long)egw_link_limits(l->link)->connect_timeout_ms);
  curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)(l->http->idle_timeout / 1000));
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  if (l->http->ca_file != NULL)
    curl_easy_setopt(easy, CURLOPT_CAINFO, l->http->ca_file);
  if (l->http->insecure_skip_verify) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
}

/* The node is reached directly and nothing else is: no proxy, no redirect, no .netrc, no other
 * protocol, whatever the environment or the answer says. */
static CURLcode
set_request(struct http_job *job)
{
  const struct http_link *l = job->owner;
  CURL *easy = job->easy;

  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, job);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, job);
  if (l->parsed != NULL)
    return curl_easy_setopt(easy, CURLOPT_CURLU, l->parsed);
  return curl_easy_setopt(easy, CURLOPT_URL, l->url); /* and each request says what is wrong */
}

struct http_job *
easy_new(struct http_link *l)
{
  struct http_job *job = calloc(1, sizeof *job);

  if (job == NULL)
    return NULL;
  list_init(&job->node);
  list_init(&job->later);
  job->owner = l;
  job->easy = curl_easy_init();
  if (job->easy != NULL) {
    set_connection(job);
    if (set_request(job) == CURLE_OK)
      return job;
  }
  easy_free(job);
  return NULL;
}

void
easy_free(struct http_job *job)
{
  curl_easy_cleanup(job->easy);
  http_list_unref(job->headers);
  http_list_unref(job->names);
  free(job);
}

static CURLcode
set_list(CURL *easy, CURLoption option, struct http_list **has, struct http_list *list)
{
  CURLcode code = CURLE_OK;

  if (*has == list)
    return CURLE_OK;
  code = curl_easy_setopt(easy, option, list->items);
  http_list_unref(*has);
  *has = http_list_ref(list);
  return code;
}

int
easy_prepare(struct http_job *job, struct egw_xchg *xchg)
{
  struct http_link *l = job->owner;
  bool fresh = egw_xchg_fresh(xchg) || !egw_xchg_idempotent(xchg);
  struct egw_slice body;
  curl_off_t size;

  job->body = egw_buf_ref(egw_xchg_body(xchg));
  body = egw_buf_slice(job->body);
  size = (curl_off_t)body.len;
  if (curl_easy_setopt(job->easy, CURLOPT_POSTFIELDS, body.ptr) != CURLE_OK
      || curl_easy_setopt(job->easy, CURLOPT_POSTFIELDSIZE_LARGE, size) != CURLE_OK
      || set_list(job->easy, CURLOPT_HTTPHEADER, &job->headers, l->headers) != CURLE_OK)
    return -1;
  if (l->names.list != NULL
      && set_list(job->easy, CURLOPT_RESOLVE, &job->names, l->names.list) != CURLE_OK)
    return -1;
  if (job->fresh != fresh)
    curl_easy_setopt(job->easy, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L);
  job->fresh = fresh;
  job->xchg = xchg;
  job->heard_ms = 0;
  job->skip = 0;
  job->paused = job->resume = job->refused = job->told = job->retried = false;
  return 0;
}

void
easy_clear(struct http_job *job)
{
  egw_buf_unref(job->body);
  job->body = NULL;
  job->xchg = NULL;
}

/* --- the end -------------------------------------------------------------------------- */

static long
info_of(const struct http_job *job, CURLINFO what)
{
  long n = 0;

  curl_easy_getinfo(job->easy, what, &n);
  return n;
}

/* libcurl's own repetition gives up after a few dead connections, though the pool may hold
 * many more after a restart of the node; it also misses some of the ways in which they die. */
bool
easy_may_retry(const struct http_job *job, CURLcode code)
{
  if (code != CURLE_SEND_ERROR && code != CURLE_RECV_ERROR && code != CURLE_GOT_NOTHING)
    return false;
  return !job->retried && !job->fresh && info_of(job, CURLINFO_NUM_CONNECTS) == 0
         && info_of(job, CURLINFO_HEADER_SIZE) == 0;
}

static const char *
reason_of(CURLcode code)
{
  static const struct {
    CURLcode code;
    const char *why;
  } table[] = {
    { CURLE_UNSUPPORTED_PROTOCOL, "the answer is not HTTP/1.x" },
    { CURLE_URL_MALFORMAT, "the URL is not usable" },
    { CURLE_COULDNT_RESOLVE_PROXY, "the name can't be resolved" },
    { CURLE_COULDNT_RESOLVE_HOST, "the name can't be resolved" },
    { CURLE_COULDNT_CONNECT, "connecting failed" },
    { CURLE_WEIRD_SERVER_REPLY, "the answer's head is not valid HTTP" },
    { CURLE_PARTIAL_FILE, "the reply was cut short" },
    { CURLE_WRITE_ERROR, "the reply was refused" },
    { CURLE_OUT_OF_MEMORY, "memory is short" },
    { CURLE_OPERATION_TIMEDOUT, "time-out" },
    { CURLE_SSL_CONNECT_ERROR, "the TLS handshake failed" },
#if LIBCURL_VERSION_NUM >= 0x080600
    { CURLE_TOO_LARGE, "the answer's head is too large" },
#endif
    { CURLE_GOT_NOTHING, "the connection was closed without an answer" },
    { CURLE_SEND_ERROR, "sending failed" },
    { CURLE_RECV_ERROR, "the connection broke" },
    { CURLE_PEER_FAILED_VERIFICATION, "the node's certificate is not accepted" },
    { CURLE_SSL_CACERT_BADFILE, "the file of authorities can't be read" },
    { CURLE_BAD_CONTENT_ENCODING, "the transfer encoding is broken" },
  };

  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (table[i].code == code)
      return table[i].why;
  return "libcurl failed";
}

/* Nothing counts as sent before the first byte of the request's head went out. From then on
 * the node may have acted; once an answer began, it is the answer that is broken. */
enum egw_outcome
easy_outcome(const struct http_job *job, CURLcode code, const char **why)
{
  *why = NULL;
  if (code == CURLE_OK)
    return EGW_OK;
  *why = reason_of(code);
  if (job->refused)
    return EGW_BAD_REPLY;
  if (info_of(job, CURLINFO_REQUEST_SIZE) == 0)
    return EGW_NOT_SENT;
  if (code == CURLE_OPERATION_TIMEDOUT)
    return EGW_TIMED_OUT;
  if (info_of(job, CURLINFO_HEADER_SIZE) > 0 || code == CURLE_UNSUPPORTED_PROTOCOL
      || code == CURLE_WEIRD_SERVER_REPLY)
    return EGW_BAD_REPLY;
  return EGW_MAYBE_SENT;
}
