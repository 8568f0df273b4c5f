/* SPDX-License-Identifier: MIT */
/* Full blocks by a client that decodes nothing:
 *
 *   bench/blocks/raw http|ws|ipc PORT-OR-PATH FIRST COUNT [WORKERS EACH]
 *
 * Without WORKERS one connection asks for each block when it has the one before. With it, so many
 * threads with a connection each take EACH blocks at a time from a common queue and ask for them
 * with one array. The id of a call is the block's number. Replies are read and dropped; their
 * lengths and first bytes are kept, and what those say is printed when the clock has stopped: one
 * JSON object with the seconds, what a call took, the processor time, and for each reply its first
 * block, its length and that block's number, hash and parent. An IPC reply ends with a newline. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ROOM 1048576u
#define KEEP 2048u           /* of a reply: the header of a block is in it, up to its number */
#define LINE_MAX_LEN 4096u
#define EACH_MAX 1000u
#define CALL_MAX 128u
#define PATIENCE 60          /* seconds without a byte */

enum kind { HTTP, WS, IPC };

struct reply {
  uint64_t first, length, micros;
  size_t kept;
  char head[KEEP + 1];
};

struct worker {
  pthread_t thread;
  int fd;
  size_t at, end;            /* bytes of `room` that were not taken yet */
  char last;                 /* the last byte taken */
  struct reply *reply;       /* that is being read */
  char *room, *request;
};

static enum kind kind;
static uint64_t first, count, each = 1;
static struct reply *replies;            /* by chunk */
static atomic_uint_least64_t next_chunk;
static pthread_barrier_t gate;

static void
die(const char *what)
{
  fprintf(stderr, "bench/blocks/raw: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void
refuse(const char *what)
{
  errno = EPROTO;
  die(what);
}

static uint64_t
now_us(void)
{
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static double
processor(void)
{
  struct rusage usage;

  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* --- reading ------------------------------------------------------------------------------- */

static void
fill(struct worker *worker)
{
  ssize_t n;

  do
    n = recv(worker->fd, worker->room, ROOM, 0);
  while (n < 0 && errno == EINTR);
  if (n < 0)
    die("no reply");
  if (n == 0)
    refuse("the connection ended");
  worker->at = 0;
  worker->end = (size_t)n;
}

static unsigned char
take_byte(struct worker *worker)
{
  if (worker->at == worker->end)
    fill(worker);
  return (unsigned char)worker->room[worker->at++];
}

/* A part of the reply itself, of which only the first bytes are kept. */
static void
take_part(struct worker *worker, uint64_t len)
{
  struct reply *reply = worker->reply;

  while (len > 0) {
    size_t n, keep;

    if (worker->at == worker->end)
      fill(worker);
    n = worker->end - worker->at;
    if (n > len)
      n = (size_t)len;
    keep = KEEP - reply->kept < n ? KEEP - reply->kept : n;
    memcpy(reply->head + reply->kept, worker->room + worker->at, keep);
    reply->kept += keep;
    worker->at += n;
    worker->last = worker->room[worker->at - 1];
    reply->length += n;
    len -= n;
  }
}

static void
take_line(struct worker *worker, char line[LINE_MAX_LEN])
{
  size_t len = 0;

  do {
    if (len == LINE_MAX_LEN - 1)
      refuse("a line of a head is too long");
    line[len++] = (char)take_byte(worker);
  } while (line[len - 1] != '\n');
  line[len] = '\0';
}

static void
take_chunked(struct worker *worker)
{
  char line[LINE_MAX_LEN];
  uint64_t size;

  do {
    take_line(worker, line);
    size = strtoull(line, NULL, 16);
    take_part(worker, size);
    take_line(worker, line);
  } while (size > 0);
}

static void
take_http(struct worker *worker)
{
  char line[LINE_MAX_LEN];
  uint64_t length = 0;
  bool chunked = false;

  take_line(worker, line);
  if (strncmp(line, "HTTP/1.1 200", 12) != 0)
    refuse(line);
  do {
    take_line(worker, line);
    if (strncasecmp(line, "content-length:", 15) == 0)
      length = strtoull(line + 15, NULL, 10);
    else if (strncasecmp(line, "transfer-encoding: chunked", 26) == 0)
      chunked = true;
  } while (line[0] != '\r' && line[0] != '\n');
  if (chunked)
    take_chunked(worker);
  else
    take_part(worker, length);
}

/* Frames up to the last one; those that are no data, as pings, are passed over. */
static void
take_ws(struct worker *worker)
{
  bool data, last;

  do {
    unsigned char start = take_byte(worker), code = take_byte(worker) & 0x7f;
    int wide = code == 126 ? 2 : code == 127 ? 8 : 0;
    uint64_t size = wide == 0 ? code : 0;

    while (wide-- > 0)
      size = size << 8 | take_byte(worker);
    data = (start & 0x0f) < 8;
    last = data && (start & 0x80) != 0;
    if ((start & 0x0f) == 8)
      refuse("the server closes the connection");
    if (data)
      take_part(worker, size);
    else
      while (size-- > 0)
        take_byte(worker);
  } while (!last);
}

static void
take_ipc(struct worker *worker)
{
  do {
    if (worker->at == worker->end)
      fill(worker);
    take_part(worker, worker->end - worker->at);
  } while (worker->last != '\n');
}

/* --- asking -------------------------------------------------------------------------------- */

static void
send_all(int fd, const char *data, size_t len)
{
  while (len > 0) {
    ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR)
      die("send");
    if (n < 0)
      continue;
    data += n;
    len -= (size_t)n;
  }
}

static size_t
put_head(char *head, size_t cap, size_t len)
{
  size_t n = 0, i, wide = len < 126 ? 0 : len < 65536 ? 2 : 8;

  if (kind == HTTP)
    return (size_t)snprintf(head, cap, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
                            "application/json\r\nContent-Length: %zu\r\n\r\n", len);
  if (kind == IPC)
    return 0;
  head[n++] = (char)0x81;
  head[n++] = (char)(0x80 | (wide == 0 ? len : wide == 2 ? 126 : 127));
  for (i = wide; i > 0; i--)
    head[n++] = (char)(len >> 8 * (i - 1));
  memset(head + n, 0, 4);    /* the mask: zero */
  return n + 4;
}

static void
ask(struct worker *worker, struct reply *reply, const char *body, size_t len)
{
  static void (*const take[])(struct worker *) = { take_http, take_ws, take_ipc };
  size_t room = 256 + len + 1, n = put_head(worker->request, room, len);

  memcpy(worker->request + n, body, len);
  n += len;
  if (kind == IPC)
    worker->request[n++] = '\n';
  reply->length = reply->kept = 0;
  worker->reply = reply;
  send_all(worker->fd, worker->request, n);
  take[kind](worker);
  while (worker->last == '\n' && reply->length > 0) {
    reply->length--;         /* not of the reply, over HTTP neither */
    worker->last = '}';
  }
}

static size_t
put_calls(char *body, size_t cap, uint64_t from, uint64_t many)
{
  size_t len = 0;
  uint64_t n;

  for (n = from; n < from + many; n++)
    len += (size_t)snprintf(body + len, cap - len, "%s{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64
                            ",\"method\":\"eth_getBlockByNumber\",\"params\":[\"0x%" PRIx64
                            "\",true]}", each == 1 ? "" : n == from ? "[" : ",", n, n);
  if (each > 1)
    len += (size_t)snprintf(body + len, cap - len, "]");
  return len;
}

static void *
work(void *context)
{
  struct worker *worker = context;
  size_t cap = (size_t)each * CALL_MAX + 2;
  char *body = malloc(cap);

  if (body == NULL)
    die("memory");
  pthread_barrier_wait(&gate);
  for (;;) {
    uint64_t chunk = atomic_fetch_add(&next_chunk, 1), at = chunk * each, began;
    struct reply *reply;

    if (at >= count)
      break;
    reply = &replies[chunk];
    reply->first = first + at;
    began = now_us();
    ask(worker, reply, body, put_calls(body, cap, first + at,
                                       count - at < each ? count - at : each));
    reply->micros = now_us() - began;
  }
  free(body);
  return NULL;
}

/* --- connections --------------------------------------------------------------------------- */

static int
dial_unix(const char *path)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (strlen(path) >= sizeof(un.sun_path))
    refuse("the path is too long");
  memcpy(un.sun_path, path, strlen(path) + 1);
  if (fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
    die("connect");
  return fd;
}

static int
dial_tcp(const char *port)
{
  struct sockaddr_in in = { .sin_family = AF_INET };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

  in.sin_port = htons((uint16_t)strtol(port, NULL, 10));
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0)
    die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  return fd;
}

static void
upgrade(struct worker *worker)
{
  static const char text[] =
    "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  char line[LINE_MAX_LEN];

  send_all(worker->fd, text, sizeof(text) - 1);
  take_line(worker, line);
  if (strncmp(line, "HTTP/1.1 101", 12) != 0)
    refuse(line);
  while (line[0] != '\r' && line[0] != '\n')
    take_line(worker, line);
}

/* Connected, and one small call done: what a first call costs is not measured. */
static void
prepare(struct worker *worker, const char *where)
{
  static const char hello[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"eth_chainId\","
                              "\"params\":[]}";
  struct timeval patience = { .tv_sec = PATIENCE };
  struct reply reply = { 0 };

  worker->room = malloc(ROOM);
  worker->request = malloc((size_t)each * CALL_MAX + 512);
  if (worker->room == NULL || worker->request == NULL)
    die("memory");
  worker->fd = kind == IPC ? dial_unix(where) : dial_tcp(where);
  setsockopt(worker->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (kind == WS)
    upgrade(worker);
  ask(worker, &reply, hello, sizeof(hello) - 1);
}

/* --- the report ---------------------------------------------------------------------------- */

static int
by_value(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

  return (x > y) - (x < y);
}

/* The text behind "name":" in a reply's first bytes; empty when there is none. */
static void
print_field(const char *head, const char *name)
{
  char key[32];
  const char *at;
  int len;

  len = snprintf(key, sizeof(key), "\"%s\":\"", name);
  at = strstr(head, key);
  if (at == NULL)
    printf(",\"\"");
  else
    printf(",\"%.*s\"", (int)strcspn(at + len, "\"\\"), at + len);
}

static void
report(uint64_t chunks, uint64_t took, double used)
{
  uint64_t *times = malloc(chunks * sizeof(*times)), bytes = 0, i;

  if (times == NULL)
    die("memory");
  for (i = 0; i < chunks; i++) {
    times[i] = replies[i].micros;
    bytes += replies[i].length;
  }
  qsort(times, chunks, sizeof(*times), by_value);
  printf("{\"seconds\":%.6f,\"cpu\":%.6f,\"p50\":%.6f,\"p99\":%.6f,\"count\":%" PRIu64
         ",\"bytes\":%" PRIu64 ",\"replies\":[", (double)took / 1e6, used,
         (double)times[chunks / 2] / 1e6, (double)times[chunks * 99 / 100] / 1e6, count, bytes);
  for (i = 0; i < chunks; i++) {
    printf("%s[%" PRIu64 ",%" PRIu64, i > 0 ? "," : "", replies[i].first, replies[i].length);
    print_field(replies[i].head, "number");
    print_field(replies[i].head, "hash");
    print_field(replies[i].head, "parentHash");
    printf("]");
  }
  printf("]}\n");
  free(times);
}

static uint64_t
number(const char *text, uint64_t least, uint64_t most)
{
  char *end;
  unsigned long long value = strtoull(text, &end, 10);

  if (*end != '\0' || value < least || value > most)
    refuse(text);
  return value;
}

int
main(int argc, char **argv)
{
  uint64_t workers = 1, chunks, began, took, i;
  struct worker *all;
  double used;

  if (argc != 5 && argc != 7) {
    fprintf(stderr, "usage: %s http|ws|ipc PORT-OR-PATH FIRST COUNT [WORKERS EACH]\n", argv[0]);
    return 2;
  }
  kind = strcmp(argv[1], "ipc") == 0 ? IPC : strcmp(argv[1], "ws") == 0 ? WS : HTTP;
  first = number(argv[3], 0, UINT32_MAX);
  count = number(argv[4], 1, 1000000);
  if (argc == 7) {
    workers = number(argv[5], 1, 1000);
    each = number(argv[6], 1, EACH_MAX);
  }
  chunks = (count + each - 1) / each;
  replies = calloc(chunks, sizeof(*replies));
  all = calloc(workers, sizeof(*all));
  if (replies == NULL || all == NULL ||
      pthread_barrier_init(&gate, NULL, (unsigned)workers + 1) != 0)
    die("memory");
  memset(replies, 0, chunks * sizeof(*replies));  /* no page of it comes while the clock runs */
  for (i = 0; i < workers; i++) {
    prepare(&all[i], argv[2]);
    if (pthread_create(&all[i].thread, NULL, work, &all[i]) != 0)
      die("thread");
  }
  used = processor();
  began = now_us();
  pthread_barrier_wait(&gate);
  for (i = 0; i < workers; i++)
    pthread_join(all[i].thread, NULL);
  took = now_us() - began;
  report(chunks, took, processor() - used);
  return 0;
}
