/* SPDX-License-Identifier: MIT */
/* --dump-config: what is printed parses again and comes out the same; secrets stay inside. */
#include "conf-kit.h"

#include "obs/log.h"

/* A plugin with an option of each type. */
struct all {
  bool flag;
  int64_t number;
  uint64_t size, time;
  double ratio;
  const char *text, *none, *secret;
  int word;
  struct egw_strings list, empty, headers;
};

static const char *const words[] = { "red", "blue", NULL };

#define ROW(n, t, ...)                                                                        \
  {                                                                                           \
    .name = #n, .type = (t), .offset = offsetof(struct all, n), .help = "x", __VA_ARGS__      \
  }
static const struct egw_option all_options[] = {
  ROW(flag, EGW_OPT_BOOL, .fallback = "true"),
  ROW(number, EGW_OPT_INT, .fallback = "5000000000"),
  ROW(size, EGW_OPT_SIZE, .fallback = "1.5KiB"),
  ROW(time, EGW_OPT_DURATION, .fallback = "1.5s"),
  ROW(ratio, EGW_OPT_RATIO, .fallback = "12.5%"),
  ROW(text, EGW_OPT_STRING, .fallback = "a \"b\""),
  ROW(none, EGW_OPT_STRING),
  ROW(secret, EGW_OPT_SECRET),
  ROW(word, EGW_OPT_ENUM, .fallback = "blue", .choices = words),
  ROW(list, EGW_OPT_LIST, .fallback = "a, b"),
  ROW(empty, EGW_OPT_LIST),
  ROW(headers, EGW_OPT_LIST, .flags = EGW_OPTION_SECRET),
  { .name = "rules", .type = EGW_OPT_SECTION, .help = "x" },
  EGW_OPTION_END
};

struct rule {
  const char *name, *key;
  struct egw_strings who;
  int64_t n;
};

#define RULE(n, t) { .name = #n, .type = (t), .offset = offsetof(struct rule, n), .help = "x" }
static const struct egw_option rule_options[] = {
  RULE(name, EGW_OPT_STRING), RULE(key, EGW_OPT_SECRET), RULE(who, EGW_OPT_LIST),
  RULE(n, EGW_OPT_INT), EGW_OPTION_END
};

static const struct egw_option transport_options[] = {
  { .name = "pool", .type = EGW_OPT_INT, .fallback = "8", .help = "x" },
  EGW_OPTION_END
};

static const struct egw_option *
options_of(void *arg, const char *kind, const char *name)
{
  (void)arg;
  if (strcmp(kind, "middleware") == 0 && strcmp(name, "all") == 0)
    return all_options;
  if (strcmp(kind, "transport") == 0 && strcmp(name, "https") == 0)
    return transport_options;
  return NULL;
}

/* As the gateway does when it makes the instances. */
static void
configure(struct conf *conf)
{
  struct all all;
  struct rule rule;
  struct { int64_t pool; } t;

  for (size_t i = 0; i < conf->network_count; i++) {
    struct conf_network *net = &conf->networks[i];

    for (size_t j = 0; j < net->upstream_count; j++)
      if (net->upstreams[j].url != NULL && strncmp(net->upstreams[j].url, "https", 5) == 0)
        (void)egw_conf_read(net->upstreams[j].section, transport_options, &t);
    for (size_t j = 0; j < net->stage_count; j++) {
      struct egw_conf *section = net->stages[j].section;

      if (strcmp(net->stages[j].use, "all") != 0)
        continue;
      memset(&all, 0, sizeof all);
      (void)egw_conf_read(section, all_options, &all);
      for (size_t k = 0; k < egw_conf_count(section, "rules"); k++) {
        memset(&rule, 0, sizeof rule);
        (void)egw_conf_read(egw_conf_element(section, "rules", k), rule_options, &rule);
      }
    }
  }
  conf_check_unknown(conf);
}

static void
write_dump(void *conf, int fd)
{
  if (conf_dump(conf, fd, options_of, NULL) < 0)
    exit(1);
}

/* Whether two texts are the same but for comments. */
static bool
same_but_comments(const char *a, const char *b)
{
  for (;;) {
    while (a[strspn(a, " ")] == '#')
      a += strcspn(a, "\n") + 1;
    while (b[strspn(b, " ")] == '#')
      b += strcspn(b, "\n") + 1;
    if (strcspn(a, "\n") != strcspn(b, "\n") || strncmp(a, b, strcspn(a, "\n")) != 0)
      return false;
    if (*a == '\0')
      return true;
    a += strcspn(a, "\n") + 1;
    b += strcspn(b, "\n") + 1;
  }
}

/* Dumps `conf`, loads what came out, dumps that: the first dump (malloc'ed). */
static char *
round_trip(struct conf *conf, const char *what)
{
  char *first, *second, *errors;
  struct conf *again;

  configure(conf);
  errors = kit_errors(conf, kit_path("x.conf"));
  if (!ok(conf_errors(conf) == 0, "%s: it is good", what))
    printf("#   %s\n", errors);
  free(errors);
  first = kit_written(write_dump, conf);
  conf_free(conf);
  again = kit_load(first);
  configure(again);
  errors = kit_errors(again, kit_path("x.conf"));
  if (!ok(conf_errors(again) == 0, "%s: what is printed is good", what))
    printf("#   %s\n%s", errors, first);
  free(errors);
  second = kit_written(write_dump, again);
  if (!ok(same_but_comments(first, second), "%s: and comes out the same", what))
    printf("#   first:\n%s\n#   second:\n%s\n", first, second);
  free(second);
  conf_free(again);
  return first;
}

static void
has(const char *text, const char *part)
{
  ok(strstr(text, part) != NULL, "it has '%s'", part);
}

static const char everything[] =
    "workers = 3; memory = \"64MiB\"; drain_timeout = \"90s\"; plugin_path = \"/a:/b\";\n"
    "log = { level = \"debug\"; format = \"json\"; file = \"/tmp/l\"; };\n"
    "limits = { max_request = \"1MB\"; };\n"
    "listen = ( { name = \"tcp\"; address = \"::1\"; port = 0; hosts = ( \"a\", \"*\" );\n"
    "  origins = [ \"https://x\" ]; tls_certificate = \"/c\"; tls_key = \"/k\"; http = false; "
    "},\n"
    "  { path = \"/run/x.ipc\"; mode = \"0660\"; group = \"g\"; uids = ( \"root\", \"1000\" "
    ");\n"
    "    limits = { ping_interval = \"0\"; }; } );\n"
    "admin = { path = \"/run/admin\"; };\n"
    "networks = ( { name = \"one\"; chain_id = 4294967296L; timeout = \"1m\";\n"
    "  upstreams = ( { url = \"https://me:hunter2x@h:7/v2/aVeryLongAccessKey?k=1\"; pool = 3; "
    "},\n"
    "    { url = \"ipc:///run/node.ipc\"; tier = 1; }, { name = \"r\"; url = \"replay:a/b\"; "
    "} );\n"
    "  middleware = ( { use = \"methods\"; }, { use = \"all\"; name = \"first\"; },\n"
    "    { use = \"all\"; name = \"second\"; flag = false; number = -7; size = \"3MiB\"; time "
    "= \"0\";\n"
    "      ratio = 0.5; text = \"\"; none = \"x\\n\\\"\\\\\"; secret = \"pst-pst-pst\"; word "
    "= \"red\";\n"
    "      list = (); empty = ( \"q\" ); headers = ( \"X-Key: do-not-tell\", \"a: b\" );\n"
    "      rules = ( { name = \"r1\"; key = \"inner-secret\"; who = ( \"a\", \"b\" ); n = "
    "4294967297L; },\n"
    "        { } ); } ); },\n"
    "  { name = \"two\"; upstreams = ( { url = \"http://h\"; } ); } );\n";

static void
test_everything(void)
{
  static const char *const secrets[] = { "hunter2x", "aVeryLongAccessKey", "pst-pst-pst",
                                         "do-not-tell", "inner-secret", "node.ipc\"" };
  char *text = round_trip(kit_load(everything), "everything");

  for (size_t i = 0; i < sizeof secrets / sizeof secrets[0] - 1; i++)
    ok(strstr(text, secrets[i]) == NULL, "'%s' is not shown", secrets[i]);
  has(text, "workers = 3;");
  has(text, "memory = \"64MiB\";");
  has(text, "drain_timeout = \"90s\";");
  has(text, "level = \"debug\";");
  has(text, "max_request = \"1000000B\";");
  has(text, "ping_interval = \"0\";");
  has(text, "chain_id = 4294967296L;");
  has(text, "url = \"https://***\";");
  has(text, "url = \"ipc:///***\";");
  has(text, "url = \"replay:///***\";");
  has(text, "name = \"h:7\";");
  has(text, "pool = 3;");
  has(text, "number = 5000000000L;");
  has(text, "number = -7;");
  has(text, "size = \"1536B\";");
  has(text, "time = \"1500ms\";");
  has(text, "ratio = 0.125000;");
  has(text, "text = \"a \\\"b\\\"\";");
  has(text, "none = \"x\\x0a\\\"\\\\\";");
  has(text, "# none is not set");
  has(text, "secret = \"***\";");
  has(text, "# headers: 2, not shown");
  has(text, "list = ( \"a\", \"b\" );");
  has(text, "n = 4294967297L;");
  has(text, "key = \"***\";");
  has(text, "name = \"r1\";");
  ok(strstr(text, "who = (\n") != NULL && strstr(text, "\"b\"\n") != NULL,
     "a list in a plugin's group");
  free(text);
}

static void
test_unread_texts(void)
{
  struct conf *conf =
      kit_load("upstreams = ( { url = \"http://h\"; } );\nmiddleware = ( { use = "
               "\"all\"; rules = ( { name = \"nobody-asked\"; n = 1; } ); } );");
  char *text = kit_written(write_dump, conf);

  ok(strstr(text, "nobody-asked") == NULL, "texts that no plugin has read yet are not shown");
  has(text, "n = 1;");
  free(text);
  conf_free(conf);
}

int
main(void)
{
  const char *urls[] = { "http://h", "/run/x y.ipc" };

  kit_begin();
  free(round_trip(kit_load("upstreams = ( { url = \"http://h\"; } );"), "the shortest"));
  free(round_trip(conf_from_args(urls, 2, NULL, 0, "/run/admin"), "the command line"));
  test_everything();
  test_unread_texts();
  kit_end();
  return done_testing();
}
