/* SPDX-License-Identifier: MIT */
/* The client of http-kit.h. */
#include "http-kit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

int
kit_connect(uint16_t port)
{
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (fd >= 0 && connect(fd, (struct sockaddr *)(void *)&in, sizeof in) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

void
kit_send_bytes(int fd, const void *bytes, size_t len)
{
  const char *p = bytes;

  while (len > 0) {
    ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

    if (n <= 0)
      return;
    p += n;
    len -= (size_t)n;
  }
}

void
kit_send(int fd, const char *text)
{
  kit_send_bytes(fd, text, strlen(text));
}

void
kit_post(int fd, const char *lines, const char *body)
{
  char head[2048];

  snprintf(head, sizeof head,
           "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
           "Content-Length: %zu\r\n%s\r\n",
           strlen(body), lines);
  kit_send(fd, head);
  kit_send(fd, body);
}

/* Up to `len` bytes; 0 at the end or when nothing comes. */
static size_t
receive(int fd, char *to, size_t len)
{
  struct pollfd p = { .fd = fd, .events = POLLIN };
  ssize_t n;

  if (poll(&p, 1, KIT_WAIT) <= 0)
    return 0;
  n = recv(fd, to, len, 0);
  return n <= 0 ? 0 : (size_t)n;
}

static bool
receive_line(int fd, char *line, size_t cap)
{
  size_t len = 0;

  while (len + 1 < cap && receive(fd, line + len, 1) == 1) {
    len++;
    if (len >= 2 && line[len - 2] == '\r' && line[len - 1] == '\n') {
      line[len - 2] = '\0';
      return true;
    }
  }
  line[len] = '\0';
  return false;
}

static bool
receive_all(int fd, struct reply *reply, size_t len)
{
  char *body = realloc(reply->body, reply->len + len + 1);

  if (body == NULL)
    abort();
  reply->body = body;
  while (len > 0) {
    size_t n = receive(fd, reply->body + reply->len, len);

    if (n == 0)
      break;
    reply->len += n;
    len -= n;
  }
  reply->body[reply->len] = '\0';
  return len == 0;
}

static bool
receive_chunks(int fd, struct reply *reply)
{
  char line[256];
  size_t len;

  do {
    if (!receive_line(fd, line, sizeof line))
      return false;
    len = strtoul(line, NULL, 16);
    if (!receive_all(fd, reply, len) || !receive_line(fd, line, sizeof line) ||
        line[0] != '\0')
      return false;
  } while (len > 0);
  return true;
}

static bool
receive_head(int fd, struct reply *reply)
{
  size_t at = 0;

  do {
    if (!receive_line(fd, reply->head + at, sizeof reply->head - at - 2))
      return false;
    at += strlen(reply->head + at);
    reply->head[at++] = '\n';
  } while (at < 2 || reply->head[at - 2] != '\n');
  reply->head[at] = '\0';
  return true;
}

const char *
reply_header(const struct reply *reply, const char *name)
{
  static char value[512];
  size_t len = strlen(name), to;
  const char *line = strchr(reply->head, '\n');

  for (; line != NULL; line = strchr(line + 1, '\n'))
    if (strncasecmp(line + 1, name, len) == 0 && line[1 + len] == ':') {
      line += 1 + len + 1;
      line += strspn(line, " ");
      to = strcspn(line, "\n");
      snprintf(value, sizeof value, "%.*s", (int)to, line);
      return value;
    }
  return NULL;
}

void
reply_free(struct reply *reply)
{
  free(reply->body);
  memset(reply, 0, sizeof *reply);
}

void
kit_read(int fd, struct reply *reply, bool head)
{
  const char *coding, *length;

  reply_free(reply);
  do {
    if (!receive_head(fd, reply) || sscanf(reply->head, "HTTP/1.1 %d", &reply->status) != 1) {
      reply->status = 0;
      return;
    }
  } while (reply->status == 100);
  coding = reply_header(reply, "Transfer-Encoding");
  reply->chunked = coding != NULL && strcmp(coding, "chunked") == 0;
  length = reply_header(reply, "Content-Length");
  if (head || reply->status == 204)
    reply->whole = receive_all(fd, reply, 0);
  else if (reply->chunked)
    reply->whole = receive_chunks(fd, reply);
  else if (length != NULL)
    reply->whole = receive_all(fd, reply, strtoul(length, NULL, 10));
  if (reply->body == NULL)
    receive_all(fd, reply, 0);
}

bool
kit_closed(int fd)
{
  char c;
  struct pollfd p = { .fd = fd, .events = POLLIN };

  return poll(&p, 1, KIT_WAIT) > 0 && recv(fd, &c, 1, 0) <= 0;
}
