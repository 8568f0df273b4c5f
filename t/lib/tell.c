/* SPDX-License-Identifier: MIT */
/* A stage for tests: shows what a stage is told about a call's client, and does what can be seen
 * from outside, as its methods say:
 *
 *   tell_client            what egw_client() and egw_header() say, as an object
 *   tell_identity [name]   sets the identity; the stage below (option deep) tells
 *   tell_sub [name]        the same, told by a sub-call
 *   tell_status [n, fail]  egw_http_status(n); refused if `fail` is true, else answered
 *   tell_cache [word]      egw_set_cache_status(word), null: none; answered
 *   tell_step [text]       egw_explain(text); goes on below
 *   tell_steps [text...]   the same for each
 *   tell_hold              never answers; what is known at its end goes to the log             */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/json.h>
#include <ethrpc-gw/middleware.h>

#define LOGGED 40

struct tell {
  bool deep;
};

/* --- the object ----------------------------------------------------------------------- */

static int
put(struct egw_buf *out, const char *key, struct egw_slice text)
{
  if (egw_buf_printf(out, ",\"%s\":", key) != 0)
    return -1;
  return text.ptr == NULL ? egw_buf_append(out, "null", 4) : egw_json_quote(out, text);
}

static struct egw_slice
text_of(const char *text)
{
  return (struct egw_slice){ text, text == NULL ? 0 : strlen(text) };
}

static int
print(struct egw_buf *out, const struct egw_call *call)
{
  struct egw_client c;

  egw_client(call, &c);
  if (egw_buf_printf(out, "{\"local\":%s,\"uid\":%" PRId64, c.local ? "true" : "false",
                     c.uid) != 0 ||
      put(out, "transport", text_of(c.transport)) != 0 ||
      put(out, "peer", text_of(c.peer)) != 0 ||
      put(out, "listener", text_of(c.listener)) != 0 ||
      put(out, "identity", text_of(c.identity)) != 0 ||
      put(out, "path_key", c.path_key) != 0 ||
      put(out, "authorization", egw_header(call, "authorization")) != 0 ||
      put(out, "x-api-key", egw_header(call, "x-api-key")) != 0 ||
      put(out, "user-agent", egw_header(call, "user-agent")) != 0 ||
      put(out, "host", egw_header(call, "host")) != 0)
    return -1;
  return egw_buf_append(out, "}", 1);
}

static enum egw_verdict
tell_client(struct egw_call *call)
{
  struct egw_buf *out = egw_buf_new(256);

  if (out != NULL && print(out, call) == 0)
    return egw_answer(call, out);
  egw_buf_unref(out);
  return egw_refuse(call, -32603, "out of memory");
}

/* --- the other methods ---------------------------------------------------------------- */

static enum egw_verdict
answer_true(struct egw_call *call)
{
  struct egw_buf *out = egw_buf_copy(EGW_LIT("true"));

  return out == NULL ? egw_refuse(call, -32603, "out of memory") : egw_answer(call, out);
}

/* The first parameter, with a NUL. */
static void
first(const struct egw_call *call, char *out, size_t cap)
{
  long len = egw_json_string(egw_json_element(egw_params(call), 0), out, cap - 1);

  out[len < 0 ? 0 : len] = '\0';
}

static enum egw_verdict
tell_identity(struct egw_call *call)
{
  char name[64];

  first(call, name, sizeof name);
  if (egw_set_identity(call, name) != 0)
    return egw_refuse(call, -32603, "out of memory");
  return EGW_NEXT;
}

static void
on_told(void *arg, const struct egw_reply *reply)
{
  struct egw_call *call = arg;

  egw_resume(call, reply->outcome == EGW_OK
                       ? egw_answer_part(call, egw_buf_ref(reply->buf), reply->body,
                                         reply->is_error)
                       : egw_refuse(call, -32000, "no answer"));
}

static enum egw_verdict
tell_sub(const struct egw_at *at, struct egw_call *call)
{
  struct egw_subcall what = { .method = EGW_LIT("tell_client"), .params = EGW_LIT("[]") };

  if (tell_identity(call) == EGW_NEXT && egw_subcall(at, call, &what, on_told, call) == 0)
    return EGW_WAIT;
  return egw_refuse(call, -32603, "out of memory");
}

static enum egw_verdict
tell_status(struct egw_call *call)
{
  struct egw_slice number = egw_json_element(egw_params(call), 0);
  struct egw_slice fail = egw_json_element(egw_params(call), 1);
  uint64_t status;

  if (egw_json_u64(number, &status) == 0)
    egw_http_status(call, (int)status);
  return egw_json_kind(fail) == EGW_JSON_TRUE ? egw_refuse(call, -32000, "told to")
                                              : answer_true(call);
}

static enum egw_verdict
tell_cache(struct egw_call *call)
{
  static const char *const words[] = { "hit", "miss", "bypass" };
  struct egw_slice word = egw_json_element(egw_params(call), 0);

  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (egw_json_equals(word, words[i]))
      egw_set_cache_status(call, words[i]);
  return answer_true(call);
}

static enum egw_verdict
tell_steps(struct egw_call *call)
{
  struct egw_slice key, value;
  size_t cursor = 0;
  char text[256];

  while (egw_json_next(egw_params(call), &cursor, &key, &value)) {
    long len = egw_json_string(value, text, sizeof text);

    if (len >= 0)
      egw_explain(call, "%.*s", (int)len, text);
  }
  return EGW_NEXT;
}

/* --- callbacks ------------------------------------------------------------------------ */

static bool
is(const struct egw_call *call, const char *method)
{
  struct egw_slice name = egw_method(call);

  return name.len == strlen(method) && memcmp(name.ptr, method, name.len) == 0;
}

static enum egw_verdict
tell_request(const struct egw_at *at, struct egw_call *call)
{
  const struct tell *self = at->self;

  if (is(call, "tell_client") || (self->deep && is(call, "tell_identity")))
    return tell_client(call);
  if (self->deep)
    return EGW_NEXT;
  if (is(call, "tell_identity"))
    return tell_identity(call);
  if (is(call, "tell_sub"))
    return tell_sub(at, call);
  if (is(call, "tell_status"))
    return tell_status(call);
  if (is(call, "tell_cache"))
    return tell_cache(call);
  if (is(call, "tell_step") || is(call, "tell_steps"))
    return tell_steps(call);
  return is(call, "tell_hold") ? EGW_WAIT : EGW_NEXT;
}

static void
tell_cancel(const struct egw_at *at, struct egw_call *call)
{
  (void)at;
  (void)call;
}

/* Only a test plugin may do this with a header. */
static void
tell_finish(const struct egw_at *at, struct egw_call *call)
{
  const struct tell *self = at->self;
  struct egw_slice agent = egw_header(call, "user-agent");
  struct egw_client c;

  if (self->deep || !is(call, "tell_hold"))
    return;
  egw_client(call, &c);
  egw_log(EGW_INFO, "tell", "end transport=%s peer=%s agent=%.*s key=%zu", c.transport, c.peer,
          agent.len > LOGGED ? LOGGED : (int)agent.len, agent.ptr, c.path_key.len);
}

static const struct egw_option options[] = {
  { .name = "deep", .type = EGW_OPT_BOOL, .offset = offsetof(struct tell, deep),
    .fallback = "false", .help = "The one below" },
  EGW_OPTION_END
};

static const struct egw_middleware tell = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "tell",
              .version = "1", .summary = "For tests", .options = options,
              .instance_size = sizeof(struct tell) },
  .kinds = EGW_KIND_ALL,
  .request = tell_request,
  .cancel = tell_cancel,
  .finish = tell_finish,
};

EGW_REGISTER(tell)
