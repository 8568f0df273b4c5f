/* SPDX-License-Identifier: MIT */
/* The loader: where plugins are found, which are refused and why, what --dump-plugin prints.
 * The plugins are made from t/unit/bad/plugin.c by the C compiler. */
#include "../lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "plugin/loader.h"

static char dir[64];

static const char *
path_of(const char *name)
{
  static char paths[4][200];
  static unsigned next;
  char *p = paths[next++ % 4];

  snprintf(p, sizeof paths[0], "%s/%s", dir, name);
  return p;
}

static void
must(bool done, const char *what)
{
  if (done)
    return;
  printf("Bail out! %s: %s\n", what, strerror(errno));
  exit(1);
}

/* Makes DIR/OUT from the source. */
static void
compile(const char *flags, const char *out)
{
  const char *cc = getenv("CC"), *source = getenv("EGW_SOURCE");
  char command[1000];

  if (source == NULL)
    source = ".";
  snprintf(command, sizeof command,
           "%s -std=gnu11 -fPIC -shared -I%s/include %s -o %s/%s %s/t/unit/bad/plugin.c",
           cc == NULL || cc[0] == '\0' ? "cc" : cc, source, flags, dir, out, source);
  must(system(command) == 0, command);
}

static void
make_dir(const char *name, mode_t mode)
{
  must(mkdir(path_of(name), 0700) == 0 && chmod(path_of(name), mode) == 0, name);
}

static void
rename_to(const char *from, const char *to)
{
  must(rename(path_of(from), path_of(to)) == 0, to);
}

/* A copy, so that the loader sees another file. */
static void
copy_to(const char *from, const char *to)
{
  char command[500];

  snprintf(command, sizeof command, "cp %s %s", path_of(from), path_of(to));
  must(system(command) == 0, command);
}

/* Loading `name` fails, and the reason has `part`. */
static void
refused(struct loader *l, enum egw_type type, const char *name, const char *part,
        const char *what)
{
  char why[600] = "";
  const struct plugin *p = loader_get(l, type, name, why, sizeof why);

  ok(p == NULL, "%s: refused", what);
  if (!ok(strstr(why, part) != NULL, "%s: the reason has '%s'", what, part))
    printf("#   it is: %s\n", why);
}

static const struct plugin *
taken(struct loader *l, enum egw_type type, const char *name, const char *what)
{
  char why[600] = "";
  const struct plugin *p = loader_get(l, type, name, why, sizeof why);

  if (!ok(p != NULL, "%s: loaded", what))
    printf("#   %s\n", why);
  return p;
}

/* --- places ------------------------------------------------------------------------------ */

static void
test_places(void)
{
  static const char *const places[] = { "good.so", "middleware/good.so",
                                        "middleware/good/good.so", "example/good.so" };
  char path[200];
  struct loader l;

  make_dir("middleware", 0755);
  make_dir("middleware/good", 0755);
  make_dir("transport", 0755);
  make_dir("transport/http", 0755);
  make_dir("example", 0755);
  snprintf(path, sizeof path, "/nonexistent::%s", dir);
  compile("", "good.so");
  for (size_t i = 0; i < 4; i++) {
    if (i > 0)
      rename_to(places[i - 1], places[i]);
    must(loader_init(&l, path) == 0, "loader_init");
    (void)taken(&l, EGW_TYPE_MIDDLEWARE, "good", places[i]);
    loader_free(&l);
  }
  rename_to("example/good.so", "transport/good.so");
  must(loader_init(&l, path) == 0, "loader_init");
  refused(&l, EGW_TYPE_MIDDLEWARE, "good", "there is no plugin \"good\" in /nonexistent::",
          "middleware among transports");
  (void)taken(&l, EGW_TYPE_MIDDLEWARE, path_of("transport/good.so"), "by its file");
  refused(&l, EGW_TYPE_MIDDLEWARE, "../transport/good.so", "No such file",
          "a file that is not there");
  refused(&l, EGW_TYPE_MIDDLEWARE, "Good", "a-z", "a name that can't be one");
  refused(&l, EGW_TYPE_MIDDLEWARE, "", "a-z", "no name");
  refused(&l, EGW_TYPE_MIDDLEWARE, "..", "a-z", "dots");
  loader_free(&l);
  rename_to("transport/good.so", "good.so");
  must(setenv("EGW_PLUGIN_PATH", dir, 1) == 0 && loader_init(&l, NULL) == 0, "loader_init");
  (void)taken(&l, EGW_TYPE_MIDDLEWARE, "good", "by EGW_PLUGIN_PATH");
  loader_free(&l);
  must(unsetenv("EGW_PLUGIN_PATH") == 0, "unsetenv");
}

static void
test_good(void)
{
  struct loader l;
  const struct plugin *p, *again;

  must(loader_init(&l, dir) == 0, "loader_init");
  p = taken(&l, EGW_TYPE_MIDDLEWARE, "good", "a good one");
  if (p != NULL) {
    again = taken(&l, EGW_TYPE_MIDDLEWARE, "good", "again");
    ok(again == p, "it is loaded once");
    ok(p->head == &p->middleware.plugin && strcmp(p->head->name, "good") == 0 &&
           p->middleware.request != NULL && p->middleware.call_size == 24 &&
           p->metric_count == 2 && p->middleware.wants == NULL &&
           strcmp(p->path, path_of("good.so")) == 0,
       "its descriptor");
  }
  refused(&l, EGW_TYPE_TRANSPORT, "good", "it is middleware, not transport", "as a transport");
  loader_free(&l);
}

/* --- bad files --------------------------------------------------------------------------- */

static const struct {
  const char *what, *flags, *part;
} bads[] = {
  { "another magic number", "-DMAGIC=1", "wrong magic number" },
  { "another major", "-DMAJOR=7 -DMINOR=3",
    "built for plugin ABI 7.3, this ethrpc-gw has 1.0" },
  { "a short descriptor", "-DBAD_OLD", "its descriptor has" },
  { "no entry", "-DBAD_NO_ENTRY", "no symbol egw_plugin_entry" },
  { "an entry that is NULL", "-DBAD_NULL_ENTRY", "is NULL" },
  { "an unknown function", "-DBAD_SYMBOL", "undefined symbol: egw_of_the_future" },
  { "an unknown function of a newer ABI", "-DBAD_SYMBOL -DMINOR=9",
    "egw_of_the_future; it needs ethrpc-gw >= ABI 1.9, this one has 1.0" },
  { "the same, bound at once", "-DBAD_SYMBOL -DMINOR=9 -Wl,-z,now", "egw_of_the_future" },
  { "another name", "-DNAME='\"other\"'", "it calls itself \"other\"" },
  { "a transport", "-DBAD_TRANSPORT", "it is transport, not middleware" },
};

static void
test_bad(void)
{
  struct loader l;
  int fd;

  must(loader_init(&l, dir) == 0, "loader_init");
  for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
    char name[20];

    snprintf(name, sizeof name, "bad-%zu.so", i);
    compile(bads[i].flags, name);
    name[strlen(name) - 3] = '\0';
    refused(&l, EGW_TYPE_MIDDLEWARE, name, bads[i].part, bads[i].what);
  }
  compile("-DMINOR=9 -DNAME='\"newer\"'", "newer.so");
  (void)taken(&l, EGW_TYPE_MIDDLEWARE, "newer", "a newer minor whose functions are all known");
  make_dir("dir.so", 0755);
  refused(&l, EGW_TYPE_MIDDLEWARE, "dir", "is not a file", "a directory");
  fd = open(path_of("text.so"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  must(fd >= 0 && write(fd, "hello\n", 6) == 6 && close(fd) == 0, "text.so");
  refused(&l, EGW_TYPE_MIDDLEWARE, "text", "text.so", "a text");
  loader_free(&l);
}

/* --- who may write ----------------------------------------------------------------------- */

static void
test_safety(void)
{
  struct loader l;

  must(loader_init(&l, dir) == 0, "loader_init");
  make_dir("open", 0777);
  copy_to("good.so", "open/good.so");
  refused(&l, EGW_TYPE_MIDDLEWARE, path_of("open/good.so"), "may write to",
          "a directory for all");
  must(chmod(path_of("open"), 0775) == 0, "chmod");
  refused(&l, EGW_TYPE_MIDDLEWARE, path_of("open/good.so"), "/open",
          "a directory for the group");
  must(chmod(path_of("open"), 01777) == 0, "chmod");
  (void)taken(&l, EGW_TYPE_MIDDLEWARE, path_of("open/good.so"), "a sticky directory");
  make_dir("open2", 0777);
  make_dir("open2/closed", 0755);
  copy_to("good.so", "open2/closed/good.so");
  refused(&l, EGW_TYPE_MIDDLEWARE, path_of("open2/closed/good.so"), "/open2",
          "a directory further up");
  must(symlink(path_of("open2/closed/good.so"), path_of("link.so")) == 0, "symlink");
  refused(&l, EGW_TYPE_MIDDLEWARE, path_of("link.so"), "/open2",
          "a link into such a directory");
  copy_to("good.so", "middleware/good.so");
  must(chmod(path_of("middleware/good.so"), 0666) == 0, "chmod");
  refused(&l, EGW_TYPE_MIDDLEWARE, path_of("middleware/good.so"), "may write to",
          "a file for all");
  must(chmod(path_of("middleware/good.so"), 0664) == 0, "chmod");
  refused(&l, EGW_TYPE_MIDDLEWARE, path_of("middleware/good.so"), "may write to",
          "a file for the group");
  must(chmod(path_of("middleware/good.so"), 0644) == 0, "chmod");
  if (geteuid() == 0) {
    must(chown(path_of("middleware/good.so"), 12345, 12345) == 0, "chown");
    refused(&l, EGW_TYPE_MIDDLEWARE, path_of("middleware/good.so"), "may write to",
            "somebody else's file");
    must(chown(path_of("middleware/good.so"), 0, 0) == 0, "chown");
  } else {
    tap_skip("only root can give a file away");
    tap_skip("only root can give a file away");
  }
  (void)taken(&l, EGW_TYPE_MIDDLEWARE, path_of("middleware/good.so"), "ours");
  loader_free(&l);
}

/* --- transports -------------------------------------------------------------------------- */

static void
test_transports(void)
{
  struct loader l;
  char why[600] = "";
  const struct plugin *p;

  compile("-DBAD_TRANSPORT -DNAME='\"http\"' -DSCHEMES='\"http https\"'",
          "transport/http/http.so");
  compile("-DBAD_TRANSPORT -DNAME='\"foo\"' -DSCHEMES='\"foo foos\"'", "transport/foo.so");
  compile("-DBAD_TRANSPORT -DNAME='\"ipc\"' -DSCHEMES='\"pipe\"'", "transport/ipc.so");
  must(loader_init(&l, dir) == 0, "loader_init");
  p = loader_transport(&l, "https", why, sizeof why);
  ok(p != NULL && strcmp(p->head->name, "http") == 0, "https is served by http%s%s",
     p == NULL ? ": " : "", why);
  ok(p == loader_transport(&l, "http", why, sizeof why), "and so is http");
  ok(loader_transport(&l, "foos", why, sizeof why) == NULL &&
         strstr(why, "there is no plugin \"foos\"") != NULL,
     "an unknown scheme: %s", why);
  p = loader_transport(&l, "foo", why, sizeof why);
  ok(p != NULL && p == loader_transport(&l, "foos", why, sizeof why),
     "a plugin's own scheme, and a second one of it");
  ok(loader_transport(&l, "ipc", why, sizeof why) == NULL &&
         strstr(why, "it does not serve ipc:// but \"pipe\"") != NULL,
     "a plugin that has the name but not the scheme: %s", why);
  ok(loader_transport(&l, "wss", why, sizeof why) == NULL && strstr(why, "\"ws\"") != NULL,
     "wss looks for ws: %s", why);
  loader_free(&l);
}

/* --- descriptors ------------------------------------------------------------------------- */

static enum egw_verdict
request(const struct egw_at *at, struct egw_call *call)
{
  (void)at;
  (void)call;
  return EGW_NEXT;
}

struct self {
  int64_t a, b;
};

static const char *const none[] = { NULL };

#define OPT(...) (const struct egw_option[]){ { __VA_ARGS__ }, EGW_OPTION_END }
#define OPT2(...)                                                                             \
  (const struct egw_option[])                                                                 \
  {                                                                                           \
    { __VA_ARGS__ }, { __VA_ARGS__ }, EGW_OPTION_END                                          \
  }
#define INT_A .name = "a", .type = EGW_OPT_INT, .help = "x"
#define MET(...) (const struct egw_metric[]){ { __VA_ARGS__ }, EGW_METRIC_TABLE_END }
#define MET2(...)                                                                             \
  (const struct egw_metric[])                                                                 \
  {                                                                                           \
    { __VA_ARGS__ }, { __VA_ARGS__ }, EGW_METRIC_TABLE_END                                    \
  }

/* Tables; NULL reason: good. */
static void
check_tables(const struct egw_option *options, const struct egw_metric *metrics,
             const char *part, const char *what)
{
  struct egw_middleware m = {
    .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "m",
                .version = "1", .summary = "s", .options = options, .metrics = metrics,
                .instance_size = sizeof(struct self) },
    .kinds = EGW_KIND_CALL,
    .request = request,
  };
  char buf[300];
  const char *why = plugin_check(&m.plugin, EGW_TYPE_MIDDLEWARE, buf, sizeof buf);

  if (part == NULL)
    ok(why == NULL, "%s: taken%s%s", what, why == NULL ? "" : ": ", why == NULL ? "" : why);
  else if (!ok(why != NULL && strstr(why, part) != NULL, "%s: refused", what))
    printf("#   reason: %s\n", why == NULL ? "none" : why);
}

static void
test_options(void)
{
  static struct egw_option endless[400];

  for (size_t i = 0; i < 400; i++) {
    static char names[400][8];

    snprintf(names[i], sizeof names[i], "o%zu", i);
    endless[i] = (struct egw_option){ .name = names[i], .type = EGW_OPT_INT, .help = "x" };
  }
  check_tables(OPT(INT_A), NULL, NULL, "an integer");
  check_tables(OPT(INT_A, .offset = 8), NULL, NULL, "the second one");
  check_tables(OPT(INT_A, .offset = 16), NULL, "outside", "a field behind the instance");
  check_tables(OPT(INT_A, .offset = 9), NULL, "outside", "a field over its end");
  check_tables(OPT(INT_A, .offset = (size_t)-8), NULL, "outside", "a field before it");
  check_tables(OPT(INT_A, .offset = 4), NULL, "aligned", "a field between");
  check_tables(OPT(.name = "l", .type = EGW_OPT_LIST, .help = "x", .offset = 8), NULL,
               "outside", "a list over the end");
  check_tables(OPT2(INT_A), NULL, "twice", "the same twice");
  check_tables(OPT(.name = NULL, .type = EGW_OPT_INT, .help = "x"), NULL, "name", "no name");
  check_tables(OPT(.name = "A", .type = EGW_OPT_INT, .help = "x"), NULL, "name", "a capital");
  check_tables(OPT(.name = "a-b", .type = EGW_OPT_INT, .help = "x"), NULL, "name", "a minus");
  check_tables(OPT(.name = "use", .type = EGW_OPT_INT, .help = "x"), NULL, "itself",
               "a taken name");
  check_tables(OPT(.name = "a", .type = EGW_OPT_INT), NULL, "help", "no help");
  check_tables(OPT(.name = "a", .type = (enum egw_option_type)77, .help = "x"), NULL,
               "type 77", "an unknown type");
  check_tables(OPT(INT_A, .min = 2, .max = 1), NULL, "range", "a range upside down");
  check_tables(OPT(INT_A, .min = 1, .max = 5, .fallback = "9"), NULL, "from 1 to 5",
               "a default out of range");
  check_tables(OPT(INT_A, .fallback = "x"), NULL, "the default \"x\" must be",
               "a bad default");
  check_tables(OPT(INT_A, .fallback = "1", .flags = EGW_OPTION_REQUIRED), NULL, "required",
               "required, with a default");
  check_tables(OPT(INT_A, .flags = 1024), NULL, "flags", "unknown flags");
  check_tables(OPT(INT_A, .flags = EGW_OPTION_SECRET), NULL, "only a list",
               "a secret integer");
  check_tables(OPT(.name = "a", .type = EGW_OPT_SIZE, .help = "x", .min = -1, .max = 5), NULL,
               "range", "a size below zero");
  check_tables(OPT(.name = "a", .type = EGW_OPT_SIZE, .help = "x", .fallback = "5k"), NULL,
               "size", "a bad size");
  check_tables(OPT(.name = "a", .type = EGW_OPT_ENUM, .help = "x"), NULL, "choices",
               "no choices");
  check_tables(OPT(.name = "a", .type = EGW_OPT_ENUM, .help = "x", .choices = none), NULL,
               "choices", "an empty list of choices");
  check_tables(OPT(.name = "a", .type = EGW_OPT_SECRET, .help = "x", .fallback = "x"), NULL,
               "default", "a secret with a default");
  check_tables(OPT(.name = "a", .type = EGW_OPT_SECTION, .help = "x", .offset = 999), NULL,
               NULL, "a section has no field");
  check_tables(endless, NULL, "no end", "a table without an end");
}

static void
test_metrics(void)
{
  check_tables(NULL, MET(.name = "a", .kind = EGW_METRIC_GAUGE, .help = "x"), NULL,
               "a metric");
  check_tables(NULL, MET2(.name = "a", .kind = EGW_METRIC_GAUGE, .help = "x"), "twice",
               "the same metric twice");
  check_tables(NULL, MET(.name = "A", .kind = EGW_METRIC_GAUGE, .help = "x"), "name",
               "a capital");
  check_tables(NULL, MET(.name = "a", .kind = (enum egw_metric_kind)9, .help = "x"), "kind 9",
               "an unknown kind");
  check_tables(NULL, MET(.name = "a", .kind = EGW_METRIC_GAUGE), "help",
               "a metric without help");
}

static void
check_middleware(struct egw_middleware m, const char *part, const char *what)
{
  char buf[300];
  const char *why = plugin_check(&m.plugin, EGW_TYPE_MIDDLEWARE, buf, sizeof buf);

  if (!ok(part == NULL ? why == NULL : why != NULL && strstr(why, part) != NULL, "%s: %s",
          what, part == NULL ? "taken" : "refused"))
    printf("#   reason: %s\n", why == NULL ? "none" : why);
}

static void
test_middleware(void)
{
  const struct egw_middleware good = {
    .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "m",
                .version = "1", .summary = "s" },
    .kinds = EGW_KIND_CALL,
    .request = request,
  };
  struct egw_middleware m;

#define WITH(change, part, what) m = good, m.change, check_middleware(m, part, what)
  check_middleware(good, NULL, "the smallest");
  WITH(request = NULL, "request()", "no request()");
  WITH(kinds = 0, "no kind", "no kinds");
  WITH(kinds = 64, "unknown kinds", "unknown kinds");
  WITH(flags = EGW_STAGE_GUARD, "GUARD", "a guard that sees calls only");
  m = good, m.flags = EGW_STAGE_GUARD, m.kinds = EGW_KIND_ALL;
  check_middleware(m, NULL, "a guard that sees all");
  m.kinds = EGW_KIND_ALL & ~(uint32_t)EGW_KIND_SUBCALL;
  check_middleware(m, "GUARD", "a guard that misses one kind");
  WITH(flags = 8, "flags", "unknown flags");
  WITH(need = EGW_NEED_HEAD, "reply()", "need without reply()");
  WITH(need = (enum egw_need)9, "need", "an unknown need");
  WITH(call_size = 1 << 20, "call_size", "a huge call_size");
  WITH(plugin.name = NULL, "name", "no name");
  WITH(plugin.name = "9x", "name", "a name that begins with a digit");
  WITH(plugin.version = NULL, "version", "no version");
  WITH(plugin.summary = "", "summary", "no summary");
  WITH(plugin.instance_size = (size_t)1 << 40, "instance_size", "a huge instance");
  WITH(plugin.struct_size += 8, "descriptor has", "a longer descriptor of the same minor");
  WITH(plugin.struct_size -= 8, "descriptor has", "a shorter one");
  m = good, m.plugin.struct_size += 8, m.plugin.abi_minor = EGW_ABI_MINOR + 1;
  check_middleware(m, NULL, "a longer one of a newer minor");
  m.kinds |= 1u << 20, m.flags = 1u << 20;
  check_middleware(m, NULL, "with kinds and flags of its own time");
#undef WITH
}

/* --- --dump-plugin ----------------------------------------------------------------------- */

static void
test_dump(void)
{
  static const char *const lines[] = {
    "name=good\n", "type=middleware\n", "version=1.2.3\n", "summary=A test\n", "abi=1.0\n",
    "option=flag type=bool default=true reload help=A flag\n",
    "option=size type=size default=1MiB min=1 max=1073741824 help=A size\n",
    "metric=seen type=counter help=Calls seen\n", "metric=held type=gauge help=Calls held\n",
    "kinds=call,notification,subscribe,unsubscribe,subcall\n", "flags=guard\n", "need=none\n",
    "call_size=24\n", "callbacks=request\n",
  };
  char text[4000] = "";
  struct loader l;
  const struct plugin *p;
  int fd = open(path_of("dump"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

  must(fd >= 0 && loader_init(&l, dir) == 0, "dump");
  p = taken(&l, EGW_TYPE_MIDDLEWARE, "good", "a good one");
  if (p == NULL)
    exit(1);
  is_int(plugin_dump(p, fd), 0, "it is described");
  must(pread(fd, text, sizeof text - 1, 0) > 0, "pread");
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
    if (!ok(strstr(text, lines[i]) != NULL, "a line about %.*s", (int)strcspn(lines[i], "= "),
            lines[i]))
      printf("#   no '%s' in:\n%s\n", lines[i], text);
  must(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0, "ftruncate");
  p = loader_get(&l, EGW_TYPE_TRANSPORT, "http", text, sizeof text);
  ok(p != NULL && plugin_dump(p, fd) == 0, "a transport is described");
  memset(text, 0, sizeof text);
  must(pread(fd, text, sizeof text - 1, 0) > 0, "pread");
  ok(strstr(text, "schemes=http https\n") != NULL && strstr(text, "caps=batch\n") != NULL &&
         strstr(text, "link_size=16\n") != NULL,
     "with its schemes, caps and sizes");
  close(fd);
  loader_free(&l);
}

static void
clean(void)
{
  char command[100];

  snprintf(command, sizeof command, "rm -rf %s", dir);
  if (system(command) != 0)
    printf("# could not remove %s\n", dir);
}

int
main(void)
{
  if (system("${CC:-cc} --version >/dev/null 2>&1") != 0)
    skip_all("no C compiler");
  /* functions that the plugins made here call must be in this program */
  if (egw_log_on(EGW_TRACE))
    egw_log(EGW_TRACE, "test", "a line");
  umask(022);
  strcpy(dir, "/tmp/egw-loader-XXXXXX");
  must(mkdtemp(dir) != NULL, "mkdtemp");
  test_places();
  test_good();
  test_bad();
  test_safety();
  test_transports();
  test_options();
  test_metrics();
  test_middleware();
  test_dump();
  clean();
  return done_testing();
}
