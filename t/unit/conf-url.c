/* SPDX-License-Identifier: MIT */
/* URLs of upstreams: what is taken, what is refused and why, names made from them. */
#include "../lib/tap.h"

#include "conf/url.h"

struct good {
  const char *text, *scheme, *user, *password, *host;
  unsigned port;
  const char *path;
  bool tls;
  const char *name;
};

static const struct good goods[] = {
  { "http://localhost", "http", "", "", "localhost", 80, "/", false, "localhost:80" },
  { "http://localhost/", "http", "", "", "localhost", 80, "/", false, "localhost:80" },
  { "HTTPS://Node.Example:8443/v2/KEY?x=1&y=%20", "https", "", "", "node.example", 8443,
    "/v2/KEY?x=1&y=%20", true, "node.example:8443" },
  { "https://node.example", "https", "", "", "node.example", 443, "/", true,
    "node.example:443" },
  { "ws://127.0.0.1:8546", "ws", "", "", "127.0.0.1", 8546, "/", false, "127.0.0.1:8546" },
  { "wss://h?key=1", "wss", "", "", "h", 443, "/?key=1", true, "h:443" },
  { "http://[::1]:8545/a", "http", "", "", "::1", 8545, "/a", false, "[::1]:8545" },
  { "http://[2001:DB8::1]", "http", "", "", "2001:db8::1", 80, "/", false,
    "[2001:db8::1]:80" },
  { "http://u:p@h/", "http", "u", "p", "h", 80, "/", false, "h:80" },
  { "http://u@h/", "http", "u", "", "h", 80, "/", false, "h:80" },
  { "http://:p@h/", "http", "", "p", "h", 80, "/", false, "h:80" },
  { "http://a%40b:c%3Ad%2f@h/", "http", "a@b", "c:d/", "h", 80, "/", false, "h:80" },
  { "http://u:p:q@h/", "http", "u", "p:q", "h", 80, "/", false, "h:80" },
  { "http://h:1/", "http", "", "", "h", 1, "/", false, "h:1" },
  { "http://h:65535/", "http", "", "", "h", 65535, "/", false, "h:65535" },
  { "http://***", "http", "", "", "***", 80, "/", false, "***:80" },
  { "ipc:///run/reth.ipc", "ipc", "", "", "", 0, "/run/reth.ipc", false, "reth.ipc" },
  { "ipc:/run/reth.ipc", "ipc", "", "", "", 0, "/run/reth.ipc", false, "reth.ipc" },
  { "ipc:reth.ipc", "ipc", "", "", "", 0, "reth.ipc", false, "reth.ipc" },
  { "/tmp/my node/reth.ipc", "ipc", "", "", "", 0, "/tmp/my node/reth.ipc", false,
    "reth.ipc" },
  { "ipc:///a%20b.ipc", "ipc", "", "", "", 0, "/a b.ipc", false, "a b.ipc" },
  { "replay:t/demo.io", "replay", "", "", "", 0, "t/demo.io", false, "demo.io" },
  { "replay:///x/", "replay", "", "", "", 0, "/x/", false, "replay" },
  { "my-thing://h:7/p", "my-thing", "", "", "h", 7, "/p", false, "h:7" },
  { "my-thing:some/file", "my-thing", "", "", "", 0, "some/file", false, "file" },
};

static void
test_good(const struct good *g)
{
  struct egw_url url;
  const char *why = url_parse(g->text, &url);
  struct egw_buf *name;

  if (!ok(why == NULL, "%s is a URL", g->text)) {
    printf("#   %s\n", why);
    return;
  }
  ok(strcmp(url.scheme, g->scheme) == 0 && strcmp(url.user, g->user) == 0 &&
         strcmp(url.password, g->password) == 0 && strcmp(url.host, g->host) == 0 &&
         url.port == g->port && strcmp(url.path, g->path) == 0 && url.tls == g->tls,
     "%s: its parts", g->text);
  name = egw_buf_new(0);
  if (!ok(name != NULL && url_default_name(&url, name) == 0, "%s: a name", g->text))
    exit(1);
  is_slice(egw_buf_slice(name), g->name, "it is the expected one");
  egw_buf_unref(name);
  url_free(&url);
  ok(url.scheme == NULL && url.path == NULL, "%s: freed", g->text);
}

/* Each with a part of the reason. */
static const char *const bads[][2] = {
  { "", "empty" },
  { "localhost:8545", "no scheme" },
  { "node.example:8545/path", "no scheme" },
  { "127.0.0.1:8545", "no scheme" },
  { "http:", "two slashes" },
  { "http:/h", "two slashes" },
  { "http://", "host is missing" },
  { "http:///p", "host is missing" },
  { "http://:80", "host is missing" },
  { "http://h:", "port" },
  { "http://h:0", "port" },
  { "http://h:65536", "port" },
  { "http://h:99999999999", "port" },
  { "http://h:8a", "port" },
  { "http://h:-1", "port" },
  { "http://h: 80", "port" },
  { "http://h h/", "character" },
  { " http://h/", "no scheme" },
  { "http://h/ ", "path" },
  { "http://h/a b", "path" },
  { "http://h/\t", "path" },
  { "http://h/\n", "path" },
  { "http://h/\x7f", "path" },
  { "http://h/\xc3\xa9", "path" },
  { "http://h/%", "path" },
  { "http://h/%1", "path" },
  { "http://h/%zz", "path" },
  { "http://h/<x>", "path" },
  { "http://h/#frag", "fragment" },
  { "http://h#frag", "fragment" },
  { "http://h?q#frag", "fragment" },
  { "http://h\\x/", "character" },
  { "http://h%41/", "character" },
  { "http://h\xc3\xa9/", "character" },
  { "http://1.2.3/", "IPv4" },
  { "http://1.2.3.4.5/", "IPv4" },
  { "http://256.1.1.1/", "IPv4" },
  { "http://01.2.3.4/", "IPv4" },
  { "http://.h/", "empty part" },
  { "http://a..b/", "empty part" },
  { "http://::1/", "brackets" },
  { "http://::1:80/", "brackets" },
  { "http://[::1/", "bracket" },
  { "http://[1.2.3.4]/", "brackets" },
  { "http://[]/", "brackets" },
  { "http://[fe80::1%25eth0]/", "brackets" },
  { "http://[::1]x/", "between" },
  { "http://[::1]80/", "between" },
  { "http://u%00:p@h/", "control" },
  { "http://u:p%0a@h/", "control" },
  { "http://u p@h/", "percent-encoded" },
  { "http://u:p%4@h/", "percent-encoded" },
  { "ipc:", "file name" },
  { "ipc://", "three slashes" },
  { "ipc://tmp/reth.ipc", "three slashes" },
  { "ipc:///a%00b", "control" },
  { "/", "file name" },
  { "/a\nb", "control" },
  { "://h", "no scheme" },
  { "1http://h", "no scheme" },
  { "ht_tp://h", "no scheme" },
};

/* For the name of a test: without control characters. */
static const char *
shown(const char *text)
{
  static char out[200];
  size_t i;

  for (i = 0; text[i] != '\0' && i < sizeof out - 1; i++)
    out[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
  out[i] = '\0';
  return out;
}

static void
test_bad(const char *text, const char *part)
{
  struct egw_url url;
  const char *why = url_parse(text, &url);

  if (!ok(why != NULL, "'%s' is refused", shown(text))) {
    url_free(&url);
    return;
  }
  ok(strstr(why, part) != NULL, "'%s': the reason has '%s'", shown(text), part);
  if (strstr(why, part) == NULL)
    printf("#   it is: %s\n", why);
  ok(url.scheme == NULL && url.host == NULL && url.path == NULL, "'%s': nothing is left",
     shown(text));
}

static void
test_quotes_nothing(void)
{
  struct egw_url url;
  const char *why = url_parse("http://user:hunter2hunter2@host:port/secretpath", &url);

  ok(why != NULL && strstr(why, "hunter2") == NULL && strstr(why, "secret") == NULL,
     "the reason shows nothing of the URL");
}

static void
test_long(void)
{
  struct egw_url url;
  char *text = malloc(10001);

  if (text == NULL)
    exit(1);
  memset(text, 'a', 10000);
  memcpy(text, "http://h/", 9);
  text[10000] = '\0';
  ok(url_parse(text, &url) != NULL, "10,000 bytes are too long");
  text[8000] = '\0';
  ok(url_parse(text, &url) == NULL, "8,000 bytes are not");
  url_free(&url);
  memset(text + 7, 'h', 300);
  text[307] = '\0';
  ok(url_parse(text, &url) != NULL, "a host of 300 bytes is too long");
  free(text);
}

/* Pieces of URLs put together at random: whatever is taken has whole parts. */
static void
test_random(void)
{
  static const char *const pieces[] = {
    "http", "ipc", "wss",       "x-y",       ":",    "//",    "/",   "@",   "[",
    "]",    "::1", "127.0.0.1", "h.example", "8545", "65536", "%41", "%00", "%",
    "?",    "#",   "a b",       "\x01",      "\xff", "-",     "..",  "***"
  };
  unsigned seed = 7, good = 0, wrong = 0;

  for (unsigned i = 0; i < 300000; i++) {
    char text[200] = "";
    struct egw_url url;

    for (unsigned n = 1 + i % 9; n > 0; n--) {
      seed = seed * 1103515245u + 12345u;
      strcat(text, pieces[(seed >> 16) % (sizeof pieces / sizeof pieces[0])]);
    }
    if (url_parse(text, &url) != NULL) {
      wrong += url.scheme != NULL || url.path != NULL;
      continue;
    }
    good++;
    wrong += url.scheme[0] == '\0' || url.path[0] == '\0' ||
             (url.host[0] != '\0' && url.path[0] != '/') ||
             strpbrk(url.host, "@/?#% []") != NULL || strpbrk(url.path, "\n\x01") != NULL;
    url_free(&url);
  }
  ok(good > 1000 && wrong == 0, "300,000 random texts, %u of them URLs", good);
}

int
main(void)
{
  for (size_t i = 0; i < sizeof goods / sizeof goods[0]; i++)
    test_good(&goods[i]);
  for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++)
    test_bad(bads[i][0], bads[i][1]);
  test_quotes_nothing();
  test_long();
  test_random();
  return done_testing();
}
