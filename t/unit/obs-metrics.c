/* SPDX-License-Identifier: MIT */
/* Metric cells and the Prometheus text made of them, which must pass a strict checker. */
#include <ctype.h>
#include "../lib/tap.h"
#include "chain/chain.h"
#include "gateway/gateway.h"
#include "obs/print.h"
#include "rpc/method.h"
#include "upstream/upstream.h"

/* --- a checker of text format 0.0.4 ----------------------------------------------- */

#define SEEN_MAX 4096

static struct {
  char family[128], type[16];
  char *seen[SEEN_MAX];      /* families, then series */
  unsigned seen_count;
  double le, bucket;         /* of the histogram's current run of buckets */
  double inf;
  const char *why;
} check;

static bool
fail(const char *why)
{
  check.why = why;
  return false;
}

/* false: `text` was there before. */
static bool
note(const char *kind, const char *text, size_t len)
{
  char line[512];
  unsigned i;

  (void)snprintf(line, sizeof line, "%s %.*s", kind, (int)len, text);
  for (i = 0; i < check.seen_count; i++)
    if (strcmp(check.seen[i], line) == 0)
      return false;
  if (check.seen_count < SEEN_MAX)
    check.seen[check.seen_count++] = strdup(line);
  return true;
}

static size_t
name_length(const char *s)
{
  size_t n = 0;

  if (!isalpha((unsigned char)s[0]) && s[0] != '_')
    return 0;
  while (isalnum((unsigned char)s[n]) || s[n] == '_')
    n++;
  return n;
}

/* Checks "{name="value",...}" and returns its end; NULL: malformed. */
static const char *
check_labels(const char *s)
{
  size_t n;

  for (s++;; s++) {
    if ((n = name_length(s)) == 0 || s[n] != '=' || s[n + 1] != '"')
      return NULL;
    if (n == 2 && strncmp(s, "le", 2) == 0)
      check.le = s[4] == '+' ? 1e300 : strtod(s + 4, NULL);
    for (s += n + 2; *s != '"'; s++) {
      if (*s == '\n' || *s == '\0' || (signed char)*s < 0)
        return NULL;
      if (*s == '\\' && strchr("n\"\\", *++s) == NULL)
        return NULL;
    }
    s++;
    if (*s == '}')
      return s + 1;
    if (*s != ',')
      return NULL;
  }
}

/* Whether the sample's name belongs to the family that is being printed. */
static bool
in_family(const char *name, size_t len)
{
  size_t family = strlen(check.family);
  const char *rest = name + family;

  if (len < family || strncmp(name, check.family, family) != 0)
    return false;
  if (len == family)
    return strcmp(check.type, "histogram") != 0;
  return strcmp(check.type, "histogram") == 0 &&
         (strncmp(rest, "_bucket", len - family) == 0 ||
          strncmp(rest, "_sum", len - family) == 0 ||
          strncmp(rest, "_count", len - family) == 0);
}

static bool
check_sample(const char *line)
{
  size_t n = name_length(line);
  const char *s = line + n;
  static double last_le;
  double value;
  char *end;

  if (n == 0 || !in_family(line, n))
    return fail("sample outside of its family");
  if (*s == '{' && (s = check_labels(s)) == NULL)
    return fail("labels");
  if (!note("series", line, (size_t)(s - line)))
    return fail("series twice");
  if (*s++ != ' ')
    return fail("no space before the value");
  value = strtod(s, &end);
  if (end == s || *end != '\n')
    return fail("value");
  if (strcmp(check.type, "counter") == 0 && value < 0)
    return fail("negative counter");
  if (strstr(line, "_bucket{") != NULL && strstr(line, "_bucket{") < s) {
    if (check.le > last_le && value < check.bucket)
      return fail("buckets are not cumulative");
    last_le = check.le;
    check.bucket = value;
    if (check.le >= 1e300)
      check.inf = value;
  } else if (strncmp(line + strlen(check.family), "_count", 6) == 0 && value != check.inf) {
    return fail("count differs from the last bucket");
  }
  return true;
}

static bool
check_line(const char *line, const char *before)
{
  char family[128], type[16];

  if (sscanf(line, "# HELP %127[a-zA-Z0-9_] ", family) == 1) {
    if (!note("family", family, strlen(family)))
      return fail("family in two runs");
    (void)snprintf(check.family, sizeof check.family, "%s", family);
    check.type[0] = '\0';
    return true;
  }
  if (sscanf(line, "# TYPE %127[a-zA-Z0-9_] %15[a-z]\n", family, type) == 2) {
    if (strcmp(family, check.family) != 0 || strncmp(before, "# HELP ", 7) != 0)
      return fail("TYPE without its HELP");
    if (strcmp(type, "counter") != 0 && strcmp(type, "gauge") != 0 &&
        strcmp(type, "histogram") != 0)
      return fail("unknown type");
    if ((strcmp(type, "counter") == 0) !=
        (strlen(family) > 6 && strcmp(family + strlen(family) - 6, "_total") == 0))
      return fail("counters end in _total, and they only");
    (void)snprintf(check.type, sizeof check.type, "%s", type);
    return true;
  }
  return line[0] == '#' ? fail("comment") : check.type[0] == '\0' ? fail("no TYPE")
                                                                  : check_sample(line);
}

static bool
text_is_valid(const char *text)
{
  const char *line = text, *before = text, *end;

  while (check.seen_count > 0)
    free(check.seen[--check.seen_count]);
  check.why = NULL;
  for (; *line != '\0'; before = line, line = end + 1)
    if ((end = strchr(line, '\n')) == NULL || !check_line(line, before)) {
      printf("# %s: %.*s\n", check.why == NULL ? "no line end" : check.why,
             (int)strcspn(line, "\n"), line);
      return false;
    }
  return true;
}

static void
test_checker(void)
{
  static const char *const bad[] = {
    "a 1\n", "# HELP a x\n# TYPE a gauge\na 1", "# HELP a x\n# TYPE a gauge\nb 1\n",
    "# HELP a x\n# TYPE a gauge\na{b=\"x} 1\n", "# HELP a x\n# TYPE a gauge\na 1\na 2\n",
    "# HELP a x\n# TYPE a gauge\na one\n", "# HELP a x\n# TYPE a counter\na 1\n",
    "# HELP a x\n# TYPE a gauge\na{b=\"\\x\"} 1\n", "# HELP a x\na 1\n",
    "# HELP a x\n# TYPE a gauge\na{b=\"\xff\"} 1\n",
    "# HELP a x\n# TYPE a gauge\na {b=\"1\"} 1\n",
    "# HELP a x\n# TYPE a gauge\na 1\n# HELP b x\n# TYPE b gauge\n# HELP a x\n",
    "# HELP a x\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 2\na_sum 0\na_count 3\n",
  };
  unsigned refused = 0;
  size_t i;

  for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
    refused += !text_is_valid(bad[i]);
  is_int(refused, sizeof bad / sizeof bad[0], "the checker refuses broken texts");
  ok(text_is_valid("# HELP a x\n# TYPE a gauge\na{b=\"\\n\\\\\\\"\"} 1.5\na{b=\"2\"} -1\n"),
     "and takes a right one");
}

/* --- a gateway that is not running ------------------------------------------------ */

static struct egw_worker workers[2];
static struct conf_network conf;
static struct network network = { .conf = &conf, .name = "main \"net\"\\\n" };
static struct upstream upstreams[2];
static struct egw_link links[2][2];
static struct egw_link *tables[2][2] = { { &links[0][0], &links[0][1] },
                                         { &links[1][0], NULL } };
static const struct egw_metric table[] = {
  { .name = "hits", .kind = EGW_METRIC_COUNTER, .help = "Hits, a line\nfeed and \"quotes\"" },
  { .name = "size", .kind = EGW_METRIC_GAUGE, .help = "Size" },
  EGW_METRIC_TABLE_END,
};
static const struct egw_plugin head = { .name = "my-cache", .metrics = table };
static struct plugin plugin = { .head = &head, .metric_count = 2 };
static struct egw_stage stages[2];
static metric_cell stage_cells[2][2];
static struct stage_mine mine[2] = { { .metrics = stage_cells[0] },
                                     { .metrics = stage_cells[1] } };
static struct gateway gateway;

static char *
printed(void)
{
  struct egw_buf *out = egw_buf_new(0);
  char *text = NULL;

  if (out != NULL && metrics_print(&gateway, out) == 0 && egw_buf_append(out, "", 1) == 0)
    text = strdup(egw_buf_slice(out).ptr);
  egw_buf_unref(out);
  if (text == NULL)
    exit(2);
  return text;
}

static void
has(const char *text, const char *line)
{
  char whole[256];

  (void)snprintf(whole, sizeof whole, "\n%s\n", line);
  ok(strstr(text, whole) != NULL, "%s", line);
}

static void
test_setup(void)
{
  unsigned i;

  for (i = 0; i < 2; i++) {
    workers[i].metrics = metrics_new();
    workers[i].links = tables[i];
    upstreams[i] = (struct upstream){ .name = i == 0 ? "reth" : "geth", .network = &network,
                                      .index = i };
    stages[i] = (struct egw_stage){ .plugin = &plugin, .name = i == 0 ? "one" : "two",
                                    .index = i };
  }
  if (workers[0].metrics == NULL || workers[1].metrics == NULL)
    exit(2);
  workers[0].stages = mine;
  network.stages = stages;
  network.stage_count = 2;
  gateway.networks = &network;
  gateway.network_count = 1;
  gateway.upstreams = upstreams;
  gateway.upstream_count = 2;
  gateway.workers = workers;
  gateway.worker_count = 2;
  gateway.loader.plugins = &plugin;
  atomic_store(&gateway.started, true);
}

static void
test_idle(void)
{
  char *text = printed();

  ok(text_is_valid(text), "an idle gateway's metrics are valid text");
  ok(strstr(text, "ethrpcgw_calls_total{") == NULL, "methods nobody called are not there");
  has(text, "ethrpcgw_ready 0");
  has(text, "ethrpcgw_refused_total{reason=\"host\"} 0");
  has(text, "ethrpcgw_upstream_up{network=\"main \\\"net\\\"\\\\\\n\",upstream=\"reth\"} 0");
  has(text, "# HELP ethrpcgw_my_cache_hits_total Hits, a line\\nfeed and \"quotes\"");
  free(text);
}

static void
test_calls(void)
{
  struct metrics *a = workers[0].metrics, *b = workers[1].metrics;
  const struct egw_method_info *row = method_find(EGW_LIT("eth_chainId"));
  char *text;

  metrics_call(a, method_index(row), CALL_RESULT, CLIENT_HTTP, 0);
  metrics_call(a, method_index(row), CALL_RESULT, CLIENT_HTTP, 50);
  metrics_call(b, method_index(row), CALL_RESULT, CLIENT_HTTP, 51);
  metrics_call(b, method_index(row), CALL_RESULT, CLIENT_HTTP, 100);
  metrics_call(b, method_count(), CALL_DENIED, CLIENT_HTTP, 101);
  metrics_call(b, method_count(), CALL_FAULT, CLIENT_WS, UINT64_C(1) << 62);
  text = printed();
  ok(text_is_valid(text), "with calls they are valid too");
  has(text, "ethrpcgw_calls_total{method=\"eth_chainId\",outcome=\"result\"} 4");
  has(text, "ethrpcgw_calls_total{method=\"unknown\",outcome=\"denied\"} 1");
  has(text, "ethrpcgw_call_duration_seconds_bucket{client=\"http\",le=\"0.000050\"} 2");
  has(text, "ethrpcgw_call_duration_seconds_bucket{client=\"http\",le=\"0.000100\"} 4");
  has(text, "ethrpcgw_call_duration_seconds_bucket{client=\"http\",le=\"0.000200\"} 5");
  has(text, "ethrpcgw_call_duration_seconds_bucket{client=\"http\",le=\"+Inf\"} 5");
  has(text, "ethrpcgw_call_duration_seconds_sum{client=\"http\"} 0.000302");
  has(text, "ethrpcgw_call_duration_seconds_count{client=\"http\"} 5");
  has(text, "ethrpcgw_call_duration_seconds_bucket{client=\"ws\",le=\"52.428800\"} 0");
  has(text, "ethrpcgw_call_duration_seconds_bucket{client=\"ws\",le=\"+Inf\"} 1");
  free(text);
}

static void
test_cells(void)
{
  struct metrics *a = workers[0].metrics, *b = workers[1].metrics;
  char *text;

  metric_add(&a->sessions_opened[CLIENT_IPC], 5);
  metric_add(&b->sessions_opened[CLIENT_IPC], 2);
  metric_add(&b->sessions_closed[CLIENT_IPC], 3);
  metric_add(&a->refused[REFUSED_SLOW_READER], 2);
  metric_add(&a->queue_bytes, 1000);
  metric_add(&b->queue_bytes, -1);
  metric_max(&a->loop_stall_max_us, 7000);
  metric_max(&b->loop_stall_max_us, 6000);
  budget_force(&gateway.budget, 4096);
  atomic_store(&gateway.state, GATEWAY_READY);
  metric_add(&links[0][0].metrics.outcomes[EGW_OK], 2);
  metric_add(&links[1][0].metrics.outcomes[EGW_OK], 3);
  metric_add(&links[1][0].metrics.up, 1);
  metric_add(&links[0][0].metrics.up, 1);
  metric_add(&links[0][1].metrics.up, 1);
  metric_add(&links[1][0].metrics.latency_sum_us, 2500000);
  metric_add(&stage_cells[1][0], 9);
  text = printed();
  network.name = "main";
  free(text);
  text = printed();
  ok(text_is_valid(text), "valid text");
  has(text, "ethrpcgw_sessions{client=\"ipc\"} 4");
  has(text, "ethrpcgw_sessions_total{client=\"ipc\"} 7");
  has(text, "ethrpcgw_refused_total{reason=\"slow_reader\"} 2");
  has(text, "ethrpcgw_queue_bytes 999");
  has(text, "ethrpcgw_loop_stall_max_seconds 0.007000");
  has(text, "ethrpcgw_buffer_bytes 4096");
  has(text, "ethrpcgw_ready 1");
  has(text, "ethrpcgw_upstream_requests_total{network=\"main\",upstream=\"reth\","
            "outcome=\"ok\"} 5");
  has(text, "ethrpcgw_upstream_up{network=\"main\",upstream=\"reth\"} 1");
  has(text, "ethrpcgw_upstream_up{network=\"main\",upstream=\"geth\"} 0");
  has(text, "ethrpcgw_upstream_latency_seconds_total{network=\"main\",upstream=\"reth\"} "
            "2.500000");
  has(text, "ethrpcgw_my_cache_hits_total{network=\"main\",instance=\"two\"} 9");
  has(text, "ethrpcgw_my_cache_size{network=\"main\",instance=\"one\"} 0");
  free(text);
}

static void
test_process(void)
{
  struct process_facts facts;

  process_facts(&facts);
  ok(facts.resident_bytes > 100000 && facts.resident_bytes <= facts.virtual_bytes, "memory");
  ok(facts.open_fds >= 3 && facts.open_fds < facts.max_fds, "descriptors");
  ok(facts.start_time > 1.6e9, "start time");
}

int
main(void)
{
  test_checker();
  test_setup();
  test_idle();
  test_calls();
  test_cells();
  test_process();
  metrics_free(workers[0].metrics);
  metrics_free(workers[1].metrics);
  metrics_free(NULL);
  return done_testing();
}
