/* SPDX-License-Identifier: MIT */
/* The logger: level check, rate limit, one escaped line, one write that never waits. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "obs/log.h"
#include "obs/secret.h"

#define LOG_RAW_MAX 4096u              /* text before escaping */
#define LOG_LINE_MAX (LOG_TEXT_MAX + 192u)
#define LOG_SLOTS 64u                  /* pairs of area and level told apart */
#define LOG_AREA_MAX 32

enum log_sink {
  SINK_FILE,     /* a write to it does not wait for a reader */
  SINK_SOCKET,   /* send() with MSG_DONTWAIT */
  SINK_OWN,      /* a description of our own, opened non-blocking */
  SINK_POLL      /* shared with others, so left blocking: asked before each write */
};

struct log_slot {
  const char *area;
  enum egw_level level;
  unsigned count, suppressed;
};

static struct {
  atomic_int level;
  atomic_ullong lost;
  pthread_mutex_t lock;
  atomic_int format;     /* enum log_format */
  enum log_sink sink;
  int fd;                /* where lines go */
  int own_fd;            /* SINK_OWN: the same, to be closed; else -1 */
  bool torn;             /* the last line went out in part only */
  uint64_t second;       /* of the counts in `slots` */
  struct log_slot slots[LOG_SLOTS];
} logger = {
  .level = EGW_INFO,
  .lock = PTHREAD_MUTEX_INITIALIZER,
  .sink = SINK_POLL,
  .fd = 2,
  .own_fd = -1
};

static const char *const level_names[] = { "error", "warn", "info", "debug", "trace" };

/* Lines a second of one area and level; errors always pass. */
static const unsigned level_rates[] = { UINT32_MAX, 100, 1000, 5000, 20000 };

int
log_level_parse(const char *word)
{
  int i;

  for (i = 0; i <= EGW_TRACE; i++)
    if (strcmp(word, level_names[i]) == 0)
      return i;
  return -1;
}

const char *
log_level_name(enum egw_level level)
{
  return level >= EGW_ERROR && level <= EGW_TRACE ? level_names[level] : "unknown";
}

unsigned long long
log_lost(void)
{
  return atomic_load_explicit(&logger.lost, memory_order_relaxed);
}

bool
egw_log_on(enum egw_level level)
{
  return (int)level <= atomic_load_explicit(&logger.level, memory_order_relaxed);
}

/* --- where it goes -------------------------------------------------------------------- */

/* A pipe or terminal is opened once more, since O_NONBLOCK on the one we were given would hit
 * every process that shares it. */
static void
sink_choose(int fd)
{
  struct stat st;
  char path[40];

  if (logger.own_fd >= 0)
    (void)close(logger.own_fd);
  logger.own_fd = -1;
  logger.fd = fd;
  logger.sink = SINK_POLL;
  if (fstat(fd, &st) != 0)
    return;
  if (S_ISREG(st.st_mode)) {
    logger.sink = SINK_FILE;
  } else if (S_ISSOCK(st.st_mode)) {
    logger.sink = SINK_SOCKET;
  } else if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    logger.own_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (logger.own_fd >= 0) {
      logger.fd = logger.own_fd;
      logger.sink = SINK_OWN;
    }
  }
}

void
log_setup(enum egw_level level, enum log_format format, int fd)
{
  pthread_mutex_lock(&logger.lock);
  atomic_store_explicit(&logger.level, (int)level, memory_order_relaxed);
  atomic_store_explicit(&logger.format, (int)format, memory_order_relaxed);
  logger.torn = false;
  sink_choose(fd);
  pthread_mutex_unlock(&logger.lock);
}

static ssize_t
sink_write(const char *bytes, size_t len)
{
  struct pollfd ask = { .fd = logger.fd, .events = POLLOUT };
  ssize_t n;

  do {
    if (logger.sink == SINK_SOCKET)
      n = send(logger.fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (logger.sink == SINK_POLL && poll(&ask, 1, 0) != 1)
      return 0;
    else
      n = write(logger.fd, bytes, len);
  } while (n < 0 && errno == EINTR);
  return n;
}

/* Writes one line, or counts it as lost. Under the lock. */
static void
line_write(const char *line, size_t len)
{
  ssize_t n;

  if (logger.torn && sink_write("\n", 1) == 1)
    logger.torn = false;
  n = logger.torn ? 0 : sink_write(line, len);
  if (n == (ssize_t)len)
    return;
  logger.torn = logger.torn || n > 0;
  atomic_fetch_add_explicit(&logger.lost, 1, memory_order_relaxed);
}

/* --- one line ------------------------------------------------------------------------- */

/* UTC by own arithmetic: gmtime_r() takes a lock of the C library. */
static int
line_time(char *out, size_t cap)
{
  struct timespec now;
  int64_t days, era, doe, yoe, doy, mp, secs;
  int year, month, day;

  (void)clock_gettime(CLOCK_REALTIME, &now);
  days = now.tv_sec / 86400;
  secs = now.tv_sec % 86400;
  days += 719468; /* counted from 0000-03-01, in eras of 400 years */
  era = days / 146097;
  doe = days % 146097;
  yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  mp = (5 * doy + 2) / 153;
  day = (int)(doy - (153 * mp + 2) / 5 + 1);
  month = (int)(mp < 10 ? mp + 3 : mp - 9);
  year = (int)(yoe + era * 400 + (month <= 2 ? 1 : 0));
  return snprintf(out, cap, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", year, month, day,
                  (int)(secs / 3600), (int)(secs / 60 % 60), (int)(secs % 60),
                  (int)(now.tv_nsec / 1000000));
}

/* Bytes of the well-formed UTF-8 sequence at `s` and its code point; 0: malformed. */
static size_t
utf8_decode(const unsigned char *s, size_t left, uint32_t *point)
{
  static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
  size_t n, i;

  if (s[0] < 0x80)
    n = 1;
  else if (s[0] < 0xc2)
    n = 0;
  else
    n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

  if (n == 0 || n > left)
    return 0;
  *point = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
  for (i = 1; i < n; i++) {
    if ((s[i] & 0xc0) != 0x80)
      return 0;
    *point = *point << 6 | (s[i] & 0x3f);
  }
  if (*point < smallest[n] || *point > 0x10ffff || (*point >= 0xd800 && *point < 0xe000))
    return 0;
  return n;
}

/* Characters that end lines or reorder text in terminals and viewers. */
static bool
point_is_unsafe(uint32_t point)
{
  return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
         point == 0x2028 || point == 0x2029 ||
         (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

/* Writes the character at `text` in its printable form to `out`; returns the bytes used up. */
static size_t
escape_one(const unsigned char *text, size_t left, enum log_format format, char out[12],
           size_t *len)
{
  uint32_t point = 0;
  size_t n = utf8_decode(text, left, &point);
  int made;

  if (n == 0)
    made = snprintf(out, 12, format == LOG_JSON ? "\\ufffd" : "\\x%02x", text[0]);
  else if (point == '"' || point == '\\')
    made = snprintf(out, 12, "\\%c", (int)point);
  else if (point == '\n' || point == '\r' || point == '\t')
    made = snprintf(out, 12, "\\%c", point == '\n' ? 'n' : point == '\r' ? 'r' : 't');
  else if (point_is_unsafe(point))
    made = snprintf(out, 12, format == LOG_TEXT && n == 1 ? "\\x%02x" : "\\u%04x", point);
  else {
    memcpy(out, text, n);
    made = (int)n;
  }
  *len = (size_t)made;
  return n == 0 ? 1 : n;
}

/* Appends the escaped text, at most LOG_TEXT_MAX bytes with the mark of a cut. */
static size_t
line_text(char *line, const char *text, size_t len, bool cut, enum log_format format)
{
  size_t at = 0, used = 0, keep = 0, n;
  char piece[12];

  while (at < len) {
    at += escape_one((const unsigned char *)text + at, len - at, format, piece, &n);
    if (used + n > LOG_TEXT_MAX) {
      cut = true;
      break;
    }
    memcpy(line + used, piece, n);
    used += n;
    if (used <= LOG_TEXT_MAX - 3)
      keep = used;
  }
  if (!cut)
    return used;
  memcpy(line + keep, "...", 3);
  return keep + 3;
}

#define LINE_JSON "{\"time\":\"%s\",\"level\":\"%s\",\"area\":\"%.*s\",\"text\":\""

static size_t
line_make(char line[LOG_LINE_MAX], enum egw_level level, const char *area, const char *text,
          size_t len, bool cut)
{
  enum log_format format =
      (enum log_format)atomic_load_explicit(&logger.format, memory_order_relaxed);
  const char *end = format == LOG_JSON ? "\"}\n" : "\n";
  char stamp[64];
  int head;
  size_t n;

  (void)line_time(stamp, sizeof stamp);
  head = snprintf(line, 160, format == LOG_JSON ? LINE_JSON : "%s %s %.*s: ", stamp,
                  log_level_name(level), LOG_AREA_MAX, area);
  n = (size_t)head;
  n += line_text(line + n, text, len, cut, format);
  memcpy(line + n, end, strlen(end));
  return n + strlen(end);
}

/* --- the rate limit --------------------------------------------------------------------- */

/* Reports what was held back in the second that is over. */
static void
rate_flush(uint64_t second)
{
  char line[LOG_LINE_MAX], text[64];
  size_t i;
  int n;

  for (i = 0; i < LOG_SLOTS; i++) {
    struct log_slot *slot = &logger.slots[i];

    if (slot->suppressed != 0) {
      n = snprintf(text, sizeof text, "suppressed %u lines", slot->suppressed);
      line_write(line, line_make(line, slot->level, slot->area, text, (size_t)n, false));
    }
    slot->area = NULL;
    slot->count = slot->suppressed = 0;
  }
  logger.second = second;
}

/* Whether one more line may pass now. Under the lock. */
static bool
rate_pass(enum egw_level level, const char *area)
{
  struct log_slot *slot;
  struct timespec now;
  size_t i;

  (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  if ((uint64_t)now.tv_sec != logger.second)
    rate_flush((uint64_t)now.tv_sec);
  if (level == EGW_ERROR)
    return true;
  /* Areas are literals: the same pointer is the same word. When the table is full the rest of
     this second is not limited. */
  for (i = 0; i < LOG_SLOTS; i++) {
    slot = &logger.slots[i];
    if (slot->area == NULL) {
      slot->area = area;
      slot->level = level;
    }
    if (slot->area == area && slot->level == level) {
      if (slot->count++ < level_rates[level])
        return true;
      slot->suppressed++;
      return false;
    }
  }
  return true;
}

/* --- egw_log ---------------------------------------------------------------------------- */

/* Formats into `raw` and takes secrets out; *cut: there was more text. */
EGW_PRINTF(3, 0) static size_t
text_make(char raw[LOG_RAW_MAX], bool *cut, const char *fmt, va_list ap)
{
  int made = vsnprintf(raw, LOG_RAW_MAX, fmt, ap);
  size_t len, tail;

  if (made < 0)
    return 0;
  *cut = (size_t)made >= LOG_RAW_MAX;
  len = secret_scrub(raw, *cut ? LOG_RAW_MAX - 1 : (size_t)made);
  if (*cut) {
    /* What is left at the end may be the beginning of a secret. */
    tail = secret_longest();
    len = tail < len ? len - tail : 0;
  }
  return len;
}

EGW_PRINTF(3, 0) static void
log_line(enum egw_level level, const char *area, const char *fmt, va_list ap)
{
  char raw[LOG_RAW_MAX], line[LOG_LINE_MAX];
  bool cut = false, pass;
  size_t len;

  pthread_mutex_lock(&logger.lock);
  pass = rate_pass(level, area);
  pthread_mutex_unlock(&logger.lock);
  if (!pass)
    return;
  len = text_make(raw, &cut, fmt, ap);
  len = line_make(line, level, area, raw, len, cut);
  pthread_mutex_lock(&logger.lock);
  line_write(line, len);
  pthread_mutex_unlock(&logger.lock);
}

void
egw_log(enum egw_level level, const char *area, const char *fmt, ...)
{
  int saved = errno;
  va_list ap;

  if (!egw_log_on(level) || level < EGW_ERROR || level > EGW_TRACE)
    return;
  va_start(ap, fmt);
  log_line(level, area, fmt, ap);
  va_end(ap);
  errno = saved;
}
