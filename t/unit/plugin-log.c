/* SPDX-License-Identifier: MIT */
/* The middleware `log`: one line a call, whatever clients put into it; which calls are logged;
 * a file that is moved away, a pipe that nobody reads. */
#include "../lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ethrpc-gw/json.h>
#include "../lib/plugtest.h"

static char so[1000], dir[64], file[100], moved[100], options[300];

static struct plugtest *
host_with(const char *more)
{
  struct plugtest *host;

  snprintf(options, sizeof options, "file = \"%s\"; %s", file, more);
  unlink(file);
  host = plugtest_new(so, options);
  if (!plugtest_refused(host))
    return host;
  printf("Bail out! %s\n", plugtest_messages(host));
  exit(1);
}

static void
done(struct plugtest *host)
{
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static char *
read_file(const char *path)
{
  static char text[1 << 20];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

  text[n < 0 ? 0 : n] = '\0';
  if (fd >= 0)
    close(fd);
  return text;
}

static unsigned
count_lines(const char *text)
{
  unsigned n = 0;

  for (; *text != '\0'; text++)
    n += *text == '\n';
  return n;
}

/* The writer is another thread: waits until it has written `lines`, 5 s at most. */
static const char *
wait_lines(const char *path, unsigned lines)
{
  const char *text = read_file(path);

  for (unsigned i = 0; i < 500 && count_lines(text) < lines; i++) {
    (void)poll(NULL, 0, 10);
    text = read_file(path);
  }
  if (!ok(count_lines(text) == lines, "%u lines are there", lines))
    printf("#   %u: %s\n", count_lines(text), text);
  return text;
}

static void
has(const char *text, const char *part)
{
  if (!ok(strstr(text, part) != NULL, "it has %s", part))
    printf("#   %s\n", text);
}

static void
ask(struct plugtest *host, struct plugtest_spec spec, struct plugtest_reply reply)
{
  plugtest_script(host, &reply, 1);
  (void)plugtest_call(host, &spec);
  plugtest_advance(host, reply.delay_ms);
}

#define SPEC(...) ((struct plugtest_spec){ __VA_ARGS__ })
#define REPLY(...) ((struct plugtest_reply){ __VA_ARGS__ })

/* --- what a line says -------------------------------------------------------------------- */

static void
test_text(void)
{
  struct plugtest *host = host_with("");
  struct plugtest_call *call;
  const char *text;

  ask(host, SPEC(.method = "eth_call", .id = "7", .session = 5),
      REPLY(.result = "\"0x12\"", .delay_ms = 250, .upstream = "reth"));
  ask(host, SPEC(.method = "eth_x", .transport = "ipc", .peer = "uid 1000", .id = "\"a b\""),
      REPLY(.is_error = true, .code = -32000, .message = "secret message"));
  ask(host, SPEC(.method = "eth_y", .kind = EGW_KIND_NOTIFICATION),
      REPLY(.outcome = EGW_TIMED_OUT, .why = "no answer"));
  ask(host, SPEC(.method = "eth_z"), REPLY(.big = 100000, .partial = true));
  plugtest_script(host, &REPLY(.never = true), 1);
  call = plugtest_call(host, &SPEC(.method = "eth_w"));
  plugtest_run(host);
  plugtest_cancel(call);
  plugtest_advance(host, 200);
  text = wait_lines(file, 5);
  has(text,
      "Z method=eth_call end=result us=250000 bytes=6 upstream=reth network=test kind=call "
      "id=7 transport=http peer=127.0.0.1 listener=127.0.0.1:8645 session=5\n");
  has(text, " method=eth_x end=error code=-32000 us=0 ");
  has(text, " id=\"\\\"a b\\\"\" transport=ipc peer=\"uid 1000\" ");
  has(text,
      " method=eth_y end=fault us=0 bytes=0 upstream=node why=\"no answer\" network=test "
      "kind=notification transport=");
  has(text, " method=eth_z end=result us=0 bytes=4096 streamed=true ");
  has(text, " method=eth_w end=fault ");
  has(text, "why=\"the client left\"");
  ok(strstr(text, "secret message") == NULL, "messages of nodes are not logged");
  ok(text[4] == '-' && text[10] == 'T' && text[19] == '.' && text[23] == 'Z', "a time: %.24s",
     text);
  is_int(plugtest_metric(host, "lines"), 5, "lines are counted");
  is_int(plugtest_metric(host, "lost"), 0, "none is lost");
  done(host);
}

static const struct plugtest_spec hostile[] = {
  { .method = "a\nb\r\x1b[31m\x7f\x01 method=eth_call", .id = "\"\xe2\x80\xa8\"" },
  { .method = "x\" y=\"z\\", .id = "\"\\n\"" },
  { .method = "eth=call", .id = "null" },
  { .method = "\xff\xfe\xc3", .id = "1e5" },
  { .method = "nul\0byte",
    .method_len = 8,
    .id = "123456789012345678901234567890123456789012345678901234"
          "5678901234567890" },
  { .method =
        "eth_"
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901"
        "234567890123456789012345678901234567890123456789\n" },
};
#define HOSTILE (sizeof hostile / sizeof hostile[0])

static void
test_escapes(void)
{
  struct plugtest *host = host_with("");
  const char *text;

  for (size_t i = 0; i < HOSTILE; i++)
    (void)plugtest_ask(host, &hostile[i]);
  plugtest_advance(host, 200);
  text = wait_lines(file, HOSTILE);
  has(text, " method=\"a\\x0ab\\x0d\\x1b[31m\\x7f\\x01 method=eth_call\" end=");
  has(text, " method=\"x\\\" y=\\\"z\\\\\" end=");
  has(text, " method=\"eth=call\" end=");
  has(text, " method=\"\\xff\\xfe\\xc3\" end=");
  has(text, " method=\"nul\\x00byte\" end=");
  for (const char *p = text; *p != '\0'; p++)
    if ((*p < 0x20 && *p != '\n') || *p > 0x7e) {
      ok(false, "byte %02x in the log", (unsigned)(unsigned char)*p);
      break;
    }
  done(host);
}

/* What others add to a story is tested in t/client-facts.t. */
static void
test_no_story(void)
{
  struct plugtest *host = host_with("explain = true;");
  const char *text;

  ask(host, SPEC(.method = "eth_call"), REPLY(.result = "1"));
  plugtest_advance(host, 200);
  text = wait_lines(file, 1);
  ok(strstr(text, "explain=") == NULL, "nothing to tell, no field");
  done(host);
}

static void
test_json(void)
{
  struct plugtest *host = host_with("format = \"json\";");
  char *text, *line, *rest;
  unsigned good = 0;

  for (size_t i = 0; i < HOSTILE; i++)
    (void)plugtest_ask(host, &hostile[i]);
  ask(host, SPEC(.method = "eth_call", .id = "\"x\""), REPLY(.is_error = true, .code = 3));
  plugtest_advance(host, 200);
  text = (char *)(uintptr_t)wait_lines(file, HOSTILE + 1);
  for (line = text; (rest = strchr(line, '\n')) != NULL; line = rest + 1) {
    struct egw_slice object = { line, (size_t)(rest - line) };
    char method[200];
    long n = egw_json_string(egw_json_member(object, "method"), method, sizeof method);
    uint64_t us;

    good += egw_json_kind(object) == EGW_JSON_OBJECT && n > 0 &&
            egw_json_u64(egw_json_member(object, "us"), &us) == 0 &&
            egw_json_kind(egw_json_member(object, "time")) == EGW_JSON_STRING;
    if (rest[1] == '\0') {
      is_slice(egw_json_member(object, "method"), "\"eth_call\"", "the method");
      is_slice(egw_json_member(object, "end"), "\"error\"", "the end");
      is_slice(egw_json_member(object, "code"), "3", "the code");
      is_slice(egw_json_member(object, "id"), "\"\\\"x\\\"\"", "the id, as text");
      is_slice(egw_json_member(object, "session"), "1", "the session");
    } else if (line == text) {
      is_bytes(method, (size_t)n, "a\nb\r\x1b[31m\xef\xbf\xbd\x01 method=eth_call",
               "a hostile name comes back");
    }
  }
  is_int(good, HOSTILE + 1, "each line is one object");
  done(host);
}

/* --- which calls ------------------------------------------------------------------------- */

static void
some_calls(struct plugtest *host)
{
  ask(host, SPEC(.method = "fast_result"), REPLY(.delay_ms = 99));
  ask(host, SPEC(.method = "slow_result"), REPLY(.delay_ms = 100));
  ask(host, SPEC(.method = "fast_error"), REPLY(.is_error = true, .code = 1));
  ask(host, SPEC(.method = "fast_fault"), REPLY(.outcome = EGW_NOT_SENT));
  plugtest_advance(host, 200);
}

static void
test_only(void)
{
  struct plugtest *host = host_with("only = \"errors\";");
  const char *text;

  some_calls(host);
  text = wait_lines(file, 2);
  has(text, "fast_error");
  has(text, "fast_fault");
  done(host);
  host = host_with("only = \"errors\"; slow = \"100ms\";");
  some_calls(host);
  text = wait_lines(file, 3);
  has(text, "slow_result");
  done(host);
  host = host_with("only = \"slow\"; slow = \"100ms\";");
  some_calls(host);
  text = wait_lines(file, 1);
  has(text, "slow_result");
  done(host);
  host = host_with("only = \"all\"; slow = \"100ms\";");
  some_calls(host);
  (void)wait_lines(file, 4);
  done(host);
}

static void
test_gateway_log(void)
{
  struct plugtest *host = plugtest_new(so, "");

  ask(host, SPEC(.method = "eth\ncall"), REPLY(.result = "1"));
  ok(plugtest_logged(host, "access: method=\"eth\\x0acall\" end=result us="),
     "without a file the lines go to the gateway's log");
  done(host);
}

/* --- the file ---------------------------------------------------------------------------- */

static void
test_flush(void)
{
  struct plugtest *host = host_with("");

  (void)plugtest_ask(host, &SPEC(.method = "eth_one"));
  plugtest_advance(host, 199);
  is_int(count_lines(read_file(file)), 0, "lines are gathered");
  plugtest_advance(host, 1);
  has(wait_lines(file, 1), "eth_one");
  for (unsigned i = 0; i < 1000; i++)
    (void)plugtest_ask(host, &SPEC(.method = "eth_many"));
  done(host); /* a chunk is full long before, and the rest is written at the end */
  is_int(count_lines(read_file(file)), 1001, "nothing is lost at the end");
}

static void
test_rotation(void)
{
  struct plugtest *host = host_with("");
  struct stat st;

  (void)plugtest_ask(host, &SPEC(.method = "eth_one"));
  plugtest_advance(host, 200);
  (void)wait_lines(file, 1);
  ok(stat(file, &st) == 0 && (st.st_mode & 0777 & ~0640u) == 0, "others can't read it");
  if (rename(file, moved) < 0)
    exit(1);
  (void)plugtest_ask(host, &SPEC(.method = "eth_two"));
  plugtest_advance(host, 200);
  has(wait_lines(file, 1), "eth_two");
  has(read_file(moved), "eth_one");
  is_int(count_lines(read_file(moved)), 1, "the old file stays as it was");
  unlink(file);
  (void)plugtest_ask(host, &SPEC(.method = "eth_three"));
  plugtest_advance(host, 200);
  has(wait_lines(file, 1), "eth_three");
  done(host);
  unlink(moved);
}

static void
test_stalled_pipe(void)
{
  struct plugtest *host;
  int fd;

  snprintf(options, sizeof options, "file = \"%s\";", file);
  unlink(file);
  if (mkfifo(file, 0600) < 0 || (fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
    exit(1);
  host = plugtest_new(so, options);
  ok(!plugtest_refused(host), "a pipe can be a file");
  for (unsigned i = 0; i < 200000; i++) { /* 30 MB; a pipe has 64 kB, 16 MB may wait */
    struct plugtest_call *call = plugtest_call(host, &SPEC(.method = "eth_chainId"));

    plugtest_run(host);
    plugtest_forget(call);
  }
  ok(plugtest_metric(host, "lost") > 10000,
     "nobody reads: %lld of 200,000 lines are lost, and "
     "nobody waited",
     (long long)plugtest_metric(host, "lost"));
  done(host);
  close(fd);
  unlink(file);
}

static void
test_bad_file(void)
{
  struct plugtest *host = plugtest_new(so, "file = \"/nonexistent/x\";");

  ok(plugtest_refused(host) &&
         plugtest_logged(host, "can't open the access log /nonexistent/x"),
     "a file that can't be opened: the worker does not start");
  (void)plugtest_free(host);
}

static void
test_bad_options(void)
{
  static const char *const bads[][2] = {
    { "file = \"x.log\";", "file: must be an absolute path" },
    { "format = \"json\";", "format: is for a file only" },
    { "only = \"slow\";", "only: is \"slow\": slow must say" },
    { "only = \"some\";", "must be one of" },
    { "slow = 5;", "must be a time in quotes" },
    { "fiel = \"/x\";", "did you mean \"file\"?" },
  };

  for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
    struct plugtest *host = plugtest_new(so, bads[i][0]);

    ok(plugtest_refused(host), "refused: %s", bads[i][0]);
    has(plugtest_messages(host), bads[i][1]);
    is_int(plugtest_free(host), 0, "no rule was broken");
  }
}

static void
report(bool pass, const char *what)
{
  ok(pass, "%s", what);
}

int
main(void)
{
  const char *build = getenv("EGW_BUILD");
  struct plugtest_spec call = { .method = "eth_call" };

  snprintf(so, sizeof so, "%s/plugins/middleware/log/log.so", build == NULL ? "." : build);
  strcpy(dir, "/tmp/egw-log-XXXXXX");
  if (mkdtemp(dir) == NULL)
    exit(1);
  snprintf(file, sizeof file, "%s/access.log", dir);
  snprintf(moved, sizeof moved, "%s/access.log.1", dir);
  test_text();
  test_escapes();
  test_no_story();
  test_json();
  test_only();
  test_gateway_log();
  test_flush();
  test_rotation();
  test_stalled_pipe();
  test_bad_file();
  test_bad_options();
  snprintf(options, sizeof options, "file = \"%s\";", file);
  plugtest_generic(so, options, &call, report);
  plugtest_generic(so, "", &call, report);
  unlink(file);
  rmdir(dir);
  return done_testing();
}
