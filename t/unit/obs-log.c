/* SPDX-License-Identifier: MIT */
/* The logger: form of the lines, escaping, cutting, rate limit, stalled readers, secrets. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "../lib/tap.h"
#include "obs/log.h"

static int reader, writer;
static char got[1 << 20];

/* Everything that is in the pipe, as text. */
static const char *
drain(void)
{
  size_t len = 0;
  ssize_t n;

  while ((n = read(reader, got + len, sizeof got - 1 - len)) > 0)
    len += (size_t)n;
  got[len] = '\0';
  return got;
}

static void
open_pipe(enum egw_level level, enum log_format format)
{
  int fds[2];

  if (pipe2(fds, O_CLOEXEC) != 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0)
    exit(2);
  reader = fds[0];
  writer = fds[1];
  log_setup(level, format, writer);
}

static void
close_pipe(void)
{
  log_setup(EGW_INFO, LOG_TEXT, 2);
  close(reader);
  close(writer);
}

static bool
stamp_is_right(const char *line)
{
  int y, mo, d, h, mi, s, ms, n = 0;

  (void)sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &y, &mo, &d, &h, &mi, &s, &ms, &n);
  return n == 24 && y >= 2024 && mo >= 1 && mo <= 12 && d >= 1 && d <= 31 && h < 24 && mi < 60;
}

/* The text of the single line there is, without time, level and area. */
static const char *
logged(const char *prefix)
{
  char *line = (char *)(size_t)drain(), *text = strstr(line, prefix);

  if (text == NULL || strchr(line, '\n') != line + strlen(line) - 1)
    return line;
  line[strlen(line) - 1] = '\0';
  return text + strlen(prefix);
}

static void
test_lines(void)
{
  int before;
  time_t now = time(NULL);
  struct tm tm;
  char day[16];

  open_pipe(EGW_INFO, LOG_TEXT);
  errno = EBADF;
  egw_log(EGW_WARN, "ipc", "connection lost upstream=%s", "reth");
  before = errno;
  drain();
  ok(before == EBADF, "errno is left alone");
  gmtime_r(&now, &tm);
  strftime(day, sizeof day, "%Y-%m-%dT", &tm);
  ok(strncmp(got, day, 11) == 0, "the date is today's");
  ok(stamp_is_right(got), "the line begins with a time stamp");
  ok(strcmp(got + 24, " warn ipc: connection lost upstream=reth\n") == 0, "level, area, text");
  egw_log(EGW_DEBUG, "ipc", "no");
  ok(drain()[0] == '\0', "lines below the level are not written");
  ok(egw_log_on(EGW_INFO) && !egw_log_on(EGW_DEBUG), "egw_log_on() tells");
  close_pipe();
  is_int(log_level_parse("trace"), EGW_TRACE, "level words are parsed");
  is_int(log_level_parse("Warn"), -1, "other words are refused");
  is_int(log_level_parse(log_level_name(EGW_DEBUG)), EGW_DEBUG, "names and words agree");
}

static void
test_escapes(void)
{
  const char *text;

  open_pipe(EGW_INFO, LOG_TEXT);
  egw_log(EGW_INFO, "a",
          "x\ny\r\t\"q\" \\ \x01 \x7f \xff z\xc3\xa9 \xe2\x80\xae \xc2\x9b \xed\xa0\x80");
  text = logged("a: ");
  is_bytes(text, strlen(text),
           "x\\ny\\r\\t\\\"q\\\" \\\\ \\x01 \\x7f \\xff "
           "z\xc3\xa9 \\u202e \\u009b \\xed\\xa0\\x80",
           "text form: controls, quotes, bad UTF-8, bidi marks");
  close_pipe();
  open_pipe(EGW_INFO, LOG_JSON);
  egw_log(EGW_ERROR, "a", "x\n\"\x01\xff\x7f");
  drain();
  ok(strncmp(got, "{\"time\":\"", 9) == 0 && stamp_is_right(got + 9),
     "JSON form: begins with time");
  ok(strcmp(got + 33, "\",\"level\":\"error\",\"area\":\"a\",\"text\":"
                      "\"x\\n\\\"\\u0001\\ufffd\\u007f\"}\n") == 0,
     "JSON form: escapes");
  close_pipe();
}

static void
test_cut(void)
{
  static char big[9000];
  size_t i, n;
  bool whole = true;

  memset(big, 'x', sizeof big - 1);
  open_pipe(EGW_INFO, LOG_TEXT);
  for (n = 1018; n < 1030; n++) {
    egw_log(EGW_INFO, "a", "%.*s", (int)n, big);
    const char *text = logged("a: ");

    if (n <= LOG_TEXT_MAX)
      whole = whole && strlen(text) == n && strchr(text, '.') == NULL;
    else
      whole = whole && strlen(text) == LOG_TEXT_MAX && strcmp(text + 1021, "...") == 0;
  }
  ok(whole, "texts up to the limit are whole, longer ones are cut with a mark");
  egw_log(EGW_INFO, "a", "%s", big);
  ok(strlen(logged("a: ")) == LOG_TEXT_MAX, "a text of 9000 bytes is cut");
  for (i = 0; i + 3 < sizeof big; i += 3)
    memcpy(big + i, "\xe2\x82\xac", 3);
  egw_log(EGW_INFO, "a", "%s", big);
  const char *text = logged("a: ");
  n = strlen(text);
  ok(n <= LOG_TEXT_MAX && (n - 3) % 3 == 0 && strstr(text, "\\x") == NULL,
     "a cut does not split a character");
  memset(big, 1, sizeof big - 1);
  egw_log(EGW_INFO, "a", "%s", big);
  n = strlen(logged("a: "));
  ok(n <= LOG_TEXT_MAX && n > 1000, "a text that grows by escapes is cut too");
  close_pipe();
}

static void
test_rate(void)
{
  unsigned i, errors = 0, warnings = 0, others = 0;
  const char *at;

  open_pipe(EGW_INFO, LOG_TEXT);
  for (i = 0; i < 1200; i++) {
    egw_log(EGW_ERROR, "flood", "e");
    egw_log(EGW_WARN, "flood", "w");
    egw_log(EGW_WARN, i % 100 == 0 ? "other" : "flood", "o");
    if (i % 100 == 99) {
      for (at = drain(); (at = strstr(at, " flood: e\n")) != NULL; at++)
        errors++;
      for (at = got; (at = strstr(at, " flood: w\n")) != NULL; at++)
        warnings++;
      for (at = got; (at = strstr(at, " other: o\n")) != NULL; at++)
        others++;
    }
  }
  is_int(errors, 1200, "errors are never held back");
  ok(warnings >= 50 && warnings <= 400, "warnings are (%u of 1200)", warnings);
  is_int(others, 12, "another area is not hit");
  /* The next second reports it: a bounded number of looks. */
  for (i = 0, at = NULL; i < 300 && at == NULL; i++) {
    (void)poll(NULL, 0, 10);
    egw_log(EGW_INFO, "tick", "t");
    at = strstr(drain(), " warn flood: suppressed ");
  }
  ok(at != NULL && strtoul(at + 24, NULL, 10) > 500, "what was held back is reported");
  close_pipe();
}

static void
test_stalled(void)
{
  unsigned long long lost = log_lost();
  unsigned i;
  const char *line;
  bool clean = true;

  open_pipe(EGW_INFO, LOG_TEXT);
  for (i = 0; i < 3000; i++)
    egw_log(EGW_ERROR, "a", "%060d", (int)i);
  ok(log_lost() > lost, "a full pipe loses lines instead of waiting");
  ok((fcntl(writer, F_GETFL) & O_NONBLOCK) == 0,
     "the descriptor we were given stays blocking");
  for (line = drain(); *line != '\0'; line = strchr(line, '\n') + 1)
    clean = clean && stamp_is_right(line) && strchr(line, '\n') - line == 24 + 10 + 60;
  ok(clean, "the lines that came through are whole");
  egw_log(EGW_ERROR, "a", "again");
  ok(strstr(drain(), "again") != NULL, "and it goes on once there is room");
  close_pipe();
}

static void
test_socket(void)
{
  int fds[2];
  unsigned i;
  unsigned long long lost = log_lost();

  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    exit(2);
  (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
  reader = fds[0];
  log_setup(EGW_INFO, LOG_TEXT, fds[1]);
  egw_log(EGW_INFO, "a", "to a socket");
  ok(strstr(drain(), "to a socket\n") != NULL, "sockets (the journal) are written to");
  for (i = 0; i < 10000; i++)
    egw_log(EGW_ERROR, "a", "%060d", (int)i);
  ok(log_lost() > lost, "without waiting for their reader");
  close(fds[0]);
  egw_log(EGW_ERROR, "a", "nobody reads");
  ok(true, "a closed peer raises no signal");
  log_setup(EGW_INFO, LOG_TEXT, 2);
  close(fds[1]);
}

static bool
scrubbed(const char *in, const char *want)
{
  char text[4096];

  (void)snprintf(text, sizeof text, "%s", in);
  log_scrub(text);
  if (strcmp(text, want) != 0)
    printf("#   got  '%s'\n#   want '%s'\n", text, want);
  return strcmp(text, want) == 0;
}

static void
test_secrets(void)
{
  static char text[6000];
  const char *line;

  ok(scrubbed("yet /v2/Sec+ret/Key", "yet /v2/Sec+ret/Key"), "no secret, no change");
  is_int(log_secret("/v2/Sec+ret/Key"), 0, "a path is registered");
  is_int(log_secret("pass:word"), 0, "a password");
  is_int(log_secret("short"), 0, "a short one is ignored");
  is_int(log_secret("Key7890abc"), 0, "one that overlaps another");
  is_int(log_secret("a%2Fb%40c%21d"), 0, "one with escapes in it");
  ok(scrubbed("GET /v2/Sec+ret/Key?", "GET ***?"), "as it is");
  ok(scrubbed("a short word", "a short word"), "short ones stay");
  ok(scrubbed("%2Fv2%2fSec%2Bret%2FKey pass%3aword %70ass:wor%64", "*** *** ***"),
     "percent-encoded");
  ok(scrubbed("/v2/Sec+ret/Key7890abc.", "***."), "overlapping ones");
  ok(scrubbed("a/b@c!d a%2fb%40c%21d", "*** ***"), "decoded form of one with escapes");
  /* base64("pass:word"), base64("u:pass:word"), base64("us:pass:wordx") */
  ok(scrubbed("Basic cGFzczp3b3Jk", "Basic ***"), "base64 of it alone");
  ok(scrubbed("dTpwYXNzOndvcmQ=", "dTp***Q="), "base64 behind two other bytes");
  ok(scrubbed("OnBhc3M6d29yZDo=", "On***Do="), "base64 between two bytes");
  ok(scrubbed("dXM6cGFzczp3b3JkeA==", "dXM6***eA=="), "base64 behind three other bytes");
  ok(log_has_secret(EGW_LIT("x cGFzczp3b3Jk y")), "log_has_secret() finds base64");
  ok(log_has_secret(EGW_LIT("pass%3Aword")), "and percent");
  ok(!log_has_secret(EGW_LIT("pass:wor")), "but no part");
  ok(!log_has_secret((struct egw_slice){ NULL, 0 }), "nor anything in nothing");
  open_pipe(EGW_INFO, LOG_TEXT);
  egw_log(EGW_INFO, "a", "url=%s", "http://u:pass:word@h/v2/Sec+ret/Key");
  ok(strcmp(logged("a: "), "url=http://u:***@h***") == 0, "the log scrubs");
  /* Secrets replaced at the front move a cut-off one into view. */
  for (size_t i = 0; i + 15 < 4090; i += 15)
    memcpy(text + i, "/v2/Sec+ret/Key", 15);
  memcpy(text + 4080, "/v2/Sec+ret/Key", 16);
  egw_log(EGW_INFO, "a", "%s", text);
  line = logged("a: ");
  ok(strstr(line, "/v2/S") == NULL && strstr(line, "***") != NULL,
     "the end of a long text too");
  close_pipe();
}

int
main(void)
{
  test_lines();
  test_escapes();
  test_cut();
  test_rate();
  test_stalled();
  test_socket();
  test_secrets();
  return done_testing();
}
