/* SPDX-License-Identifier: MIT */
/* ethrpc-gw: the command line. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "conf/conf.h"
#include "gateway/discover.h"
#include "gateway/gateway.h"
#include "gateway/version.h"
#include "obs/log.h"
#include "plugin/loader.h"

#define NAMES_MAX 64u

enum mode { MODE_RUN, MODE_CHECK, MODE_DUMP_CONFIG, MODE_DUMP_PLUGIN, MODE_VERSION, MODE_HELP };

struct arguments {
  enum mode mode;
  const char *config, *plugin, *admin, *log_level, *plugin_path, *workers;
  const char *upstreams[NAMES_MAX], *listens[NAMES_MAX];
  size_t upstream_count, listen_count;
};

static const char help[] =
    "Usage: ethrpc-gw [--upstream URL]... [--listen ADDRESS]... [--admin ADDRESS]\n"
    "       ethrpc-gw -c FILE\n"
    "A local endpoint for Ethereum JSON-RPC in front of one or more nodes.\n"
    "\n"
    "  -u, --upstream URL     a node: http://, https://, ws://, wss://, ipc:///PATH, /PATH,\n"
    "                         or replay:FILE; may be given several times\n"
    "  -l, --listen ADDRESS   HOST:PORT (HTTP and WebSocket) or a socket's PATH (IPC); may be\n"
    "                         given several times; default 127.0.0.1:8645\n"
    "  -a, --admin ADDRESS    HOST:PORT for /health, /ready, /metrics and /status\n"
    "  -c, --config FILE      read the configuration from FILE instead\n"
    "  -w, --workers N        threads; default: one for each processor\n"
    "      --log-level LEVEL  error, warn, info (default), debug or trace\n"
    "      --plugin-path DIRS directories of plugins, joined by ':'\n"
    "      --check-config     read and check everything, say what is wrong, and end\n"
    "      --dump-config      print the configuration in effect, without secrets, and end\n"
    "      --dump-plugin NAME print what a plugin is and which options it has, and end\n"
    "  -V, --version          print the versions of program and libraries, and end\n"
    "  -h, --help             print this, and end\n"
    "\n"
    "With no node named it uses /tmp/reth.ipc or http://127.0.0.1:8545 if one is there, and else\n"
    "serves a small recorded demo chain.\n"
    "See ethrpc-gw(8), ethrpc-gw.conf(5), ethrpc-gw-plugin(3).\n";

enum { OPT_LOG_LEVEL = 256, OPT_PLUGIN_PATH, OPT_CHECK, OPT_DUMP_CONFIG, OPT_DUMP_PLUGIN };

static const struct option long_options[] = {
  { "upstream", required_argument, NULL, 'u' },
  { "listen", required_argument, NULL, 'l' },
  { "admin", required_argument, NULL, 'a' },
  { "config", required_argument, NULL, 'c' },
  { "workers", required_argument, NULL, 'w' },
  { "log-level", required_argument, NULL, OPT_LOG_LEVEL },
  { "plugin-path", required_argument, NULL, OPT_PLUGIN_PATH },
  { "check-config", no_argument, NULL, OPT_CHECK },
  { "dump-config", no_argument, NULL, OPT_DUMP_CONFIG },
  { "dump-plugin", required_argument, NULL, OPT_DUMP_PLUGIN },
  { "version", no_argument, NULL, 'V' },
  { "help", no_argument, NULL, 'h' },
  { NULL, 0, NULL, 0 },
};

static int
add_name(const char **names, size_t *count, const char *what)
{
  if (*count == NAMES_MAX) {
    fprintf(stderr, "ethrpc-gw: more than %u times %s\n", NAMES_MAX, what);
    return -1;
  }
  names[(*count)++] = optarg;
  return 0;
}

static int
take_option(struct arguments *a, int opt)
{
  switch (opt) {
  case 'u': return add_name(a->upstreams, &a->upstream_count, "--upstream");
  case 'l': return add_name(a->listens, &a->listen_count, "--listen");
  case 'a': a->admin = optarg; return 0;
  case 'c': a->config = optarg; return 0;
  case 'w': a->workers = optarg; return 0;
  case OPT_LOG_LEVEL: a->log_level = optarg; return 0;
  case OPT_PLUGIN_PATH: a->plugin_path = optarg; return 0;
  case OPT_CHECK: a->mode = MODE_CHECK; return 0;
  case OPT_DUMP_CONFIG: a->mode = MODE_DUMP_CONFIG; return 0;
  case OPT_DUMP_PLUGIN: a->mode = MODE_DUMP_PLUGIN; a->plugin = optarg; return 0;
  case 'V': a->mode = MODE_VERSION; return 0;
  case 'h': a->mode = MODE_HELP; return 0;
  default: return -1; /* getopt has said why */
  }
}

static int
parse_arguments(int argc, char **argv, struct arguments *a)
{
  int opt;

  while ((opt = getopt_long(argc, argv, "u:l:a:c:w:Vh", long_options, NULL)) != -1)
    if (take_option(a, opt) < 0)
      return -1;
  if (optind < argc) {
    fprintf(stderr, "ethrpc-gw: '%s' is not an option\n", argv[optind]);
    return -1;
  }
  if (a->config != NULL && (a->upstream_count != 0 || a->listen_count != 0 || a->admin != NULL)) {
    fprintf(stderr, "ethrpc-gw: --config does not go with --upstream, --listen or --admin\n");
    return -1;
  }
  return 0;
}

/* --- the configuration ------------------------------------------------------------------------ */

static struct conf *
make_conf(struct arguments *a, char *found, size_t cap)
{
  if (a->config != NULL)
    return conf_load(a->config);
  if (a->upstream_count == 0) {
    const char *words = discover_node(found, cap);

    if (words == NULL) {
      fprintf(stderr, "ethrpc-gw: no node was named and none was found; use --upstream URL\n");
      return NULL;
    }
    fprintf(stderr, "ethrpc-gw: %s\n", words);
    a->upstreams[a->upstream_count++] = found;
  }
  return conf_from_args(a->upstreams, a->upstream_count, a->listens, a->listen_count, a->admin);
}

/* Options of the command line that go before the configuration's. */
static int
override(struct conf *conf, const struct arguments *a)
{
  if (a->log_level != NULL) {
    conf->log_level = log_level_parse(a->log_level);
    if (conf->log_level < 0) {
      fprintf(stderr, "ethrpc-gw: '%s' is not a log level\n", a->log_level);
      return -1;
    }
  }
  if (a->workers != NULL) {
    char *end;

    errno = 0;
    conf->workers = strtol(a->workers, &end, 10);
    if (errno != 0 || *a->workers == '\0' || *end != '\0' || conf->workers < 1 ||
        conf->workers > 256) {
      fprintf(stderr, "ethrpc-gw: --workers takes a number from 1 to 256\n");
      return -1;
    }
  }
  if (a->plugin_path != NULL)
    conf->plugin_path = a->plugin_path;
  return 0;
}

static int
open_log(const struct conf *conf)
{
  int fd = STDERR_FILENO;

  if (conf->log_file != NULL) {
    fd = open(conf->log_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) {
      fprintf(stderr, "ethrpc-gw: %s: %s\n", conf->log_file, strerror(errno));
      return -1;
    }
  }
  log_setup((enum egw_level)conf->log_level, (enum log_format)conf->log_format, fd);
  return 0;
}

static const struct egw_option *
options_of(void *arg, const char *kind, const char *name)
{
  struct loader *loader = arg;
  char why[256];
  const struct plugin *plugin;

  if (strcmp(kind, "transport") == 0)
    plugin = loader_transport(loader, name, why, sizeof(why));
  else
    plugin = loader_get(loader, EGW_TYPE_MIDDLEWARE, name, why, sizeof(why));
  return plugin != NULL ? plugin->head->options : NULL;
}

static int
with_conf(struct arguments *a, struct conf *conf)
{
  struct gateway gateway;
  int status = 1;

  if (override(conf, a) < 0 || open_log(conf) < 0)
    return 1;
  if (gateway_build(&gateway, conf) < 0) {
    if (conf_errors(conf) == 0)
      conf_error(conf, "the configuration can't be used");
    conf_print_errors(conf, STDERR_FILENO);
    gateway_free(&gateway);
    return 1;
  }
  conf_print_errors(conf, STDERR_FILENO); /* warnings */
  if (a->mode == MODE_CHECK) {
    puts("the configuration is valid");
    status = 0;
  } else if (a->mode == MODE_DUMP_CONFIG) {
    status = conf_dump(conf, STDOUT_FILENO, options_of, &gateway.loader) < 0;
  } else {
    status = gateway_run(&gateway);
  }
  gateway_free(&gateway);
  return status;
}

static int
dump_plugin(const struct arguments *a)
{
  struct loader loader;
  char why[512], why_not[512];
  const struct plugin *plugin;
  int status = 1;

  if (loader_init(&loader, a->plugin_path) < 0)
    return 1;
  plugin = loader_get(&loader, EGW_TYPE_MIDDLEWARE, a->plugin, why, sizeof(why));
  if (plugin == NULL)
    plugin = loader_get(&loader, EGW_TYPE_TRANSPORT, a->plugin, why_not, sizeof(why_not));
  if (plugin == NULL)
    fprintf(stderr, "ethrpc-gw: %s\n", why_not);
  else
    status = plugin_dump(plugin, STDOUT_FILENO) < 0;
  loader_free(&loader);
  return status;
}

int
main(int argc, char **argv)
{
  struct arguments a = { .mode = MODE_RUN };
  char found[700];
  struct conf *conf;
  int status;

  if (parse_arguments(argc, argv, &a) < 0) {
    fputs("Try 'ethrpc-gw --help'.\n", stderr);
    return 2;
  }
  if (a.mode == MODE_HELP) {
    fputs(help, stdout);
    return 0;
  }
  if (a.mode == MODE_VERSION) {
    version_print(stdout);
    return 0;
  }
  if (a.mode == MODE_DUMP_PLUGIN)
    return dump_plugin(&a);
  conf = make_conf(&a, found, sizeof(found));
  if (conf == NULL)
    return 1;
  status = with_conf(&a, conf);
  conf_free(conf);
  return status;
}
