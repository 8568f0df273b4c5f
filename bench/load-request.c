/* SPDX-License-Identifier: MIT */
/* What is asked. Requests of a file are put in the shape of the wire once, with a place of fixed
 * width for the id; a template is written anew for each call. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

#define HEX_MIN 7u           /* digits of a string that --distinct changes: no small quantity */
#define FRAME_MAX 65535u
#define SEED_STEP 1000000000u /* between the first numbers of templates of two seeds */

struct request {
  char *wire;
  size_t len, id_at;         /* id_at 0: none is put in */
  size_t hex_at;             /* three digits that --distinct changes; 0: none */
  unsigned int hex;          /* their value in the file */
};

#define PASSES 8u            /* through the file, before --distinct asks what another seed asked */

static struct request *list;
static size_t count, cap, turn;
static uint64_t pass, counter, dice;
static double *ranks;        /* --zipf: chances of the ranks up to here */
static char *scratch;        /* a template's text, and its wire */
static size_t scratch_cap;
static struct request drawn;

static void *
grown(void *ptr, size_t n, size_t size)
{
  ptr = reallocarray(ptr, n, size);
  if (ptr == NULL)
    die("memory");
  return ptr;
}

/* `body` as it goes over the wire, in `*out`; returns where it begins there. */
static size_t
frame(char **out, size_t *out_len, const char *body, size_t len)
{
  size_t head = 0, i, room = len + strlen(options.target) + 256;
  char *wire = grown(*out, room, 1);

  if (options.kind == HTTP && body == NULL) {
    head = (size_t)snprintf(wire, room, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                            options.target);
  } else if (options.kind == HTTP) {
    head = (size_t)snprintf(wire, room, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                            "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                            options.target, len);
  } else if (options.kind == WS) {
    size_t wide = len < 126 ? 0 : len <= FRAME_MAX ? 2 : 8;

    wire[head++] = (char)0x81;
    wire[head++] = (char)(0x80 | (wide == 0 ? len : wide == 2 ? 126u : 127u));
    for (i = wide; i > 0; i--)
      wire[head++] = (char)((uint64_t)len >> 8 * (i - 1));
    memset(wire + head, 0, 4);   /* the mask */
    head += 4;
  }
  if (body != NULL)
    memcpy(wire + head, body, len);
  *out_len = head + len;
  if (options.kind == IPC)
    wire[(*out_len)++] = '\n';
  *out = wire;
  return head;
}

/* --- requests of a file ---------------------------------------------------------------------- */

/* Where the value of the member "id" of a request begins and ends; 0 when it has none. */
static size_t
find_id(const char *text, size_t len, size_t *end)
{
  size_t i, began = 0;
  int depth = 0;
  bool string = false;

  for (i = 0; i < len; i++) {
    char c = text[i];
    if (string) {
      if (c == '\\')
        i++;
      else if (c == '"')
        string = false;
    } else if (c == '"') {
      string = true;
      if (depth == 1 && len - i > 5 && memcmp(text + i, "\"id\":", 5) == 0) {
        began = i + 5 + strspn(text + i + 5, " ");
        *end = began + (text[began] == '"' ? 2 + strcspn(text + began + 1, "\"")
                                           : strcspn(text + began, ",} "));
        return began;
      }
    } else if (c == '{' || c == '[') {
      depth++;
    } else if (c == '}' || c == ']') {
      depth--;
    }
  }
  return 0;
}

/* How many hexadecimal digits are at `at`. */
static size_t
count_hex(const char *at, const char *end)
{
  size_t n = 0;

  while (at + n < end && ((at[n] >= '0' && at[n] <= '9') || (at[n] >= 'a' && at[n] <= 'f')))
    n++;
  return n;
}

/* Three digits of the last long hexadecimal string, behind its first digit, which may not become
 * zero. */
static void
find_hex(struct request *request, size_t from)
{
  const char *end = request->wire + request->len, *at = end - 1;
  char digits[4] = "";

  request->hex_at = 0;
  while (--at > request->wire + from) {
    if (at[0] != '0' || at[1] != 'x' || count_hex(at + 2, end) < HEX_MIN)
      continue;
    request->hex_at = (size_t)(at + 3 - request->wire);
    memcpy(digits, at + 3, 3);
    request->hex = (unsigned int)strtoul(digits, NULL, 16);
    return;
  }
}

static void
add_line(const char *line, size_t len, unsigned long number)
{
  struct request *request;
  size_t id_end = 0, id_at = find_id(line, len, &id_end), body;
  char *text = grown(NULL, len + ID_LEN + 1, 1);

  if (line[0] != '{' || id_at == 0) {
    fprintf(stderr, "bench/load: %s:%lu: no request with an id\n", options.file, number);
    exit(1);
  }
  memcpy(text, line, id_at);
  memset(text + id_at, '0', ID_LEN);
  memcpy(text + id_at + ID_LEN, line + id_end, len - id_end);
  if (count == cap) {
    cap = cap != 0 ? cap * 2 : 1024;
    list = grown(list, cap, sizeof(*list));
  }
  request = &list[count++];
  memset(request, 0, sizeof(*request));
  len += ID_LEN - (id_end - id_at);
  body = frame(&request->wire, &request->len, text, len);
  request->id_at = body + id_at;
  if (options.distinct)
    find_hex(request, body);
  free(text);
}

/* By chance, but by the seed: a file is often in the order of its methods. */
static void
shuffle(void)
{
  size_t i;

  for (i = count; i > 1; i--) {
    size_t other = (size_t)(random_next(&dice) % i);
    struct request held = list[i - 1];

    list[i - 1] = list[other];
    list[other] = held;
  }
}

static void
read_file(void)
{
  FILE *file = fopen(options.file, "re");
  char *line = NULL;
  size_t room = 0;
  unsigned long number = 0;
  ssize_t len;

  if (file == NULL)
    die(options.file);
  while ((len = getline(&line, &room, file)) >= 0) {
    number++;
    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
      line[--len] = '\0';
    if (len > 0)
      add_line(line, (size_t)len, number);
  }
  if (ferror(file) || count == 0) {
    errno = ferror(file) ? EIO : ENODATA;
    die(options.file);
  }
  free(line);
  fclose(file);
}

static void
rank(void)
{
  double sum = 0;
  size_t i;

  ranks = grown(NULL, count, sizeof(*ranks));
  for (i = 0; i < count; i++)
    ranks[i] = sum += pow((double)(i + 1), -options.zipf);
  for (i = 0; i < count; i++)
    ranks[i] /= sum;
}

static size_t
pick_rank(void)
{
  double where = random_unit(&dice);
  size_t low = 0, high = count - 1;

  while (low < high) {
    size_t middle = (low + high) / 2;
    if (ranks[middle] < where)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static struct request *
pick(void)
{
  static const char digits[] = "0123456789abcdef";
  struct request *request;
  unsigned int value;

  if (ranks != NULL)
    return &list[pick_rank()];
  if (turn == count) {
    turn = 0;
    pass++;
  }
  request = &list[turn++];
  if (request->hex_at != 0) {
    value = (request->hex + (unsigned int)pass) & 0xfff;
    request->wire[request->hex_at] = digits[value >> 8];
    request->wire[request->hex_at + 1] = digits[value >> 4 & 15];
    request->wire[request->hex_at + 2] = digits[value & 15];
  }
  return request;
}

/* --- templates ------------------------------------------------------------------------------- */

static void
scratch_room(size_t len)
{
  if (len <= scratch_cap)
    return;
  scratch_cap = len * 2;
  scratch = grown(scratch, scratch_cap, 1);
}

/* %d, %x, %040x: the call's number; %%: a percent sign. */
static size_t
write_template(void)
{
  const char *at = options.template_text;
  size_t len = 0, width;
  char *end;

  scratch_room(strlen(at) + 1);
  for (; *at != '\0'; at++) {
    scratch_room(len + strlen(at) + 1);
    if (*at != '%' || at[1] == '%') {
      at += *at == '%';
      scratch[len++] = *at;
      continue;
    }
    width = strtoul(at + 1, &end, 10);
    at = end;
    if (width > 1024 || (*at != 'x' && *at != 'd'))
      fail("--template: what stands behind % is x or d, or 0, a width up to 1024 and x or d");
    scratch_room(len + width + 32 + strlen(at));
    len += (size_t)snprintf(scratch + len, scratch_cap - len, *at == 'x' ? "%0*llx" : "%0*llu",
                            (int)width, (unsigned long long)counter);
  }
  counter++;
  return len;
}

static struct request *
write_request(uint64_t id)
{
  size_t len = write_template(), id_end = 0, id_at, body;
  char digits[ID_LEN + 1];

  scratch_room(len + ID_LEN + 1);
  scratch[len] = '\0';
  id_at = find_id(scratch, len, &id_end);
  if (id_at == 0)
    fail("--template: a request with an id is needed");
  memmove(scratch + id_at + ID_LEN, scratch + id_end, len - id_end);
  snprintf(digits, sizeof(digits), "%016llu", (unsigned long long)id);
  memcpy(scratch + id_at, digits, ID_LEN);
  body = frame(&drawn.wire, &drawn.len, scratch, len + ID_LEN - (id_end - id_at));
  drawn.id_at = body + id_at;
  return &drawn;
}

/* --- all ------------------------------------------------------------------------------------- */

void
requests_open(void)
{
  dice = options.seed;
  if (options.file != NULL) {
    read_file();
    shuffle();
    pass = options.seed * PASSES;
    if (options.zipf > 0)
      rank();
  } else if (options.template_text != NULL) {
    (void)write_request(0);      /* to see whether it can be */
    counter = options.seed * SEED_STEP;
  } else {
    if (options.body == NULL && options.kind != HTTP)
      fail("a BODY, --requests or --template is needed");
    frame(&drawn.wire, &drawn.len, options.body,
          options.body != NULL ? strlen(options.body) : 0);
  }
}

bool
requests_have_ids(void)
{
  return options.file != NULL || options.template_text != NULL;
}

const char *
request_next(uint64_t id, size_t *len)
{
  struct request *request = &drawn;
  size_t i;

  if (options.template_text != NULL)
    request = write_request(id);
  else if (options.file != NULL)
    request = pick();
  if (options.file != NULL)
    for (i = ID_LEN; i > 0; i--, id /= 10)
      request->wire[request->id_at + i - 1] = (char)('0' + id % 10);
  *len = request->len;
  return request->wire;
}
