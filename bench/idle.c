/* SPDX-License-Identifier: MIT */
/* Holds idle connections for a measurement of memory:
 *
 *   bench/idle http|ws|ipc PORT-OR-PATH COUNT
 *
 * Opens them one after the other, each with one request and its whole answer (ws: the handshake
 * alone), prints "ready COUNT", and holds them until its standard input ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char http_request[] =
  "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
  "Content-Length: 47\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\"}";
static const char ws_request[] =
  "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
static const char ipc_request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\"}\n";

static void
die(const char *what)
{
  fprintf(stderr, "bench/idle: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int
dial_tcp(const char *port)
{
  struct sockaddr_in in = { .sin_family = AF_INET };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  in.sin_port = htons((uint16_t)strtol(port, NULL, 10));
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0)
    die("connect");
  return fd;
}

static int
dial_unix(const char *path)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (strlen(path) >= sizeof(un.sun_path))
    die("path too long");
  memcpy(un.sun_path, path, strlen(path) + 1);
  if (fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
    die("connect");
  return fd;
}

/* Asks and reads until `end` stands in the answer. */
static void
converse(int fd, const char *request, const char *end)
{
  char reply[4096];
  size_t len = 0;
  ssize_t n;

  if (write(fd, request, strlen(request)) < 0)
    die("write");
  do {
    n = read(fd, reply + len, sizeof(reply) - 1 - len);
    if (n <= 0)
      die("read");
    len += (size_t)n;
    reply[len] = '\0';
  } while (strstr(reply, end) == NULL && len < sizeof(reply) - 1);
}

int
main(int argc, char **argv)
{
  struct rlimit limit;
  long i, count;
  char c;

  if (argc != 4) {
    fprintf(stderr, "usage: %s http|ws|ipc PORT-OR-PATH COUNT\n", argv[0]);
    return 2;
  }
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  count = strtol(argv[3], NULL, 10);
  for (i = 0; i < count; i++) {
    if (strcmp(argv[1], "ipc") == 0)
      converse(dial_unix(argv[2]), ipc_request, "}");
    else if (strcmp(argv[1], "ws") == 0)
      converse(dial_tcp(argv[2]), ws_request, "\r\n\r\n");
    else
      converse(dial_tcp(argv[2]), http_request, "}");
  }
  printf("ready %ld\n", count);
  fflush(stdout);
  while (read(STDIN_FILENO, &c, 1) > 0)
    ;
  return 0;
}
