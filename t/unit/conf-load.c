/* SPDX-License-Identifier: MIT */
/* Reading configurations: each mistake with its line, all of them at once, and what comes out
 * of good ones. */
#include "conf-kit.h"

#include <inttypes.h>
#include "obs/log.h"

#define UP "upstreams = ( { url = \"http://h\"; } );"
#define NET "name = \"n\"; " UP

/* A text and the messages it gives: each line of `want` is the beginning of one. */
struct wrong {
  const char *what, *text, *want;
};

static const struct wrong wrongs[] = {
  /* the text */
  { "nothing", "", " no upstream is given" },
  { "a syntax error", UP "\n\nworkers = ;\n", "3: syntax error" },
  { "commas without elements", "upstreams = ( ,\n );\n",
    "1: a comma without anything before" },
  { "two commas", "upstreams = ( { url = \"http://h\"; }, # a\n , );\n",
    "2: a comma without anything before" },
  { "the same key twice", UP "\nworkers = 1;\nworkers = 2;", "3: duplicate setting name" },
  { "an open string", UP "\nmemory = \"1MiB;\ndrain_timeout = \"5s\";",
    "2: a text does not end in its line" },
  { "an open comment", UP "\n/* x\ny\n", "2: the comment that begins here does not end" },
  { "@include", UP "\n@include \"x\"\n", "2: @include is not supported" },
  { "@include behind blanks", UP "\n  @include \"x\"\n", "2: @include is not supported" },
  { "\\x00 in a text", UP "\nmemory = \"a\\x00b\";", "2: \\x00 in a text" },
  { "too deep",
    "a = ((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))));",
    "1: groups and lists are nested too deeply" },
  { "integers of more than 32 bits", UP "\nworkers = 4294967296;\nchain_id = 2147483648;\n",
    "2: the number 4294967296 is too large: write it with an L\n"
    "3: the number 2147483648 is too large: write it with an L" },
  { "integers of more than 64 bits", UP "\nchain_id = 9223372036854775808L;\n",
    "2: the number 9223372036854775808L is too large" },
  { "hex of more than 32 bits", UP "\nchain_id = 0x1FFFFFFFF;\n",
    "2: the number 0x1FFFFFFFF is too large: write it with an L" },
  { "negative beyond 32 bits", UP "\nworkers = -2147483649;\n",
    "2: the number 2147483649 is too large" },

  /* the top level */
  { "unknown keys", "wrokers = 2;\n" UP "\nfoo = 1;\nlisten_ = ();",
    "1: wrokers: unknown option; did you mean \"workers\"?\n3: foo: unknown option\n"
    "4: listen_: unknown option; did you mean \"listen\"?" },
  { "wrong types",
    UP "\nworkers = \"2\";\nmemory = 5;\ndrain_timeout = true;\nplugin_path = 3;\n"
       "log = 1;\nlimits = ();\n",
    "2: workers: must be a whole number without quotes\n"
    "3: memory: must be a size in quotes, such as \"64MiB\", \"10kB\" or \"512\", not a bare "
    "number\n"
    "4: drain_timeout: must be a time in quotes, such as \"250ms\"\n"
    "5: plugin_path: must be text in quotes, not a bare number\n"
    "6: log: must be a group { ... } or a list\n"
    "7: limits: must be a group { ... }" },
  { "bad ranges", UP "\nworkers = 257;\nmemory = \"1kB\";\ndrain_timeout = \"25h\";",
    "2: workers: must be from 0 to 256\n3: memory: must be from \"1MiB\" to \"1TiB\"\n"
    "4: drain_timeout: must be from \"0\" to \"1h\"" },
  { "bad texts",
    UP "\nmemory = \"64Mb\";\ndrain_timeout = \"5\";\nlog = {\n level = \"loud\";\n"
       " format = \"xml\";\n};",
    "2: memory: must be a size in quotes\n3: drain_timeout: must be a time in quotes\n"
    "5: log.level: must be one of \"error\", \"warn\", \"info\", \"debug\", \"trace\"\n"
    "6: log.format: must be one of \"text\", \"json\"" },
  { "unknown key in log", UP "\nlog = { levl = \"info\"; };",
    "2: log.levl: unknown option; did you mean \"level\"?" },
  { "a float for a number", UP "\nworkers = 1.5;", "2: workers: must be a whole number" },
  { "a group for a number", UP "\nworkers = { a = 1; };",
    "2: workers: must be a whole number" },

  /* listeners */
  { "listen is no list", UP "\nlisten = { port = 1; };",
    "2: listen: must be a list of groups" },
  { "listen is empty", UP "\nlisten = ();", "2: listen: needs at least one listener" },
  { "an element is no group", UP "\nlisten = ( { }, 5,\n \"x\" );",
    "2: listen: element 1 must be a group\n2: listen: element 2 must be a group" },
  { "port out of range", UP "\nlisten = ( { port = 65536; } );",
    "2: listen[0].port: must be from 0 to 65535" },
  { "a name for an address", UP "\nlisten = ( { address = \"localhost\"; } );",
    "2: listen[0].address: \"localhost\" is not an IP address (write \"127.0.0.1\")" },
  { "half an address", UP "\nlisten = ( { address = \"127.1\"; } );",
    "2: listen[0].address: \"127.1\" is not an IP address" },
  { "address and path",
    UP "\nlisten = ( { path = \"/x\";\n address = \"::1\";\n port = 1;\n"
       " http = false; } );",
    "3: listen[0].address: has no meaning on a unix socket\n4: listen[0].port: has no "
    "meaning\n"
    "5: listen[0].http: has no meaning" },
  { "options of unix sockets",
    UP "\nlisten = ( {\n mode = \"0600\";\n uids = ();\n group = \"x\"; } );",
    "3: listen[0].mode: is for unix sockets\n4: listen[0].uids: is for unix sockets\n"
    "5: listen[0].group: is for unix sockets" },
  { "a long path",
    UP "\nlisten = ( { path = \"/1234567890123456789012345678901234567890123456789012345"
       "67890123456789012345678901234567890123456789012345678\"; } );",
    "2: listen[0].path: is 109 bytes long; a unix socket's may have 107" },
  { "a bad mode",
    UP "\nlisten = ( { path = \"/x\"; mode = \"0999\"; }, { path = \"/y\";\n mode = \"\"; },"
       "\n { path = \"/z\"; mode = \"01777\"; } );",
    "2: listen[0].mode: must be octal\n3: listen[1].mode: must be octal\n"
    "4: listen[2].mode: must be octal" },
  { "half of TLS",
    UP "\nlisten = ( { tls_certificate = \"/c\"; },\n { port = 1; tls_key = \"/k\"; } );",
    "2: listen[0].tls_certificate: needs tls_key\n3: listen[1].tls_key: needs "
    "tls_certificate" },
  { "nothing is served", UP "\nlisten = ( { http = false; websocket = false; } );",
    "2: listen[0].http: and websocket are both off" },
  { "hosts and origins",
    UP "\nlisten = ( { hosts = ( \"a b\", \"http://x\", \"ok\" );\n"
       " origins = ( \"x\", \"http://a/b\", \"http://a/\", \"https://ok:1\", \"null\", \"*\" "
       "); } );",
    "2: listen[0].hosts: \"a b\" is no host\n2: listen[0].hosts: \"http://x\" is no host\n"
    "3: listen[0].origins: \"x\" is no origin\n3: listen[0].origins: \"http://a/b\" is no\n"
    "3: listen[0].origins: \"http://a/\" is no" },
  { "hosts that are no list",
    UP "\nlisten = ( { hosts = \"x\"; }, { port = 2; hosts = ( 1 ); } );",
    "2: listen[0].hosts: must be a list of texts\n2: listen[1].hosts: must be a list of "
    "texts" },
  { "the same place twice",
    UP "\nlisten = ( { port = 5; },\n { port = 5; },\n { path = \"/x\"; },\n"
       " { path = \"/x\"; } );",
    "3: listen[1].port: listener \"127.0.0.1:5\" already listens there\n"
    "5: listen[3].path: listener \"/x\" already listens there" },
  { "the same name twice",
    UP "\nlisten = ( { port = 5; name = \"a\"; },\n { port = 6; name = \"a\"; } );",
    "3: listen[1].name: another listener is called \"a\"" },
  { "bad names", UP "\nlisten = ( { name = \"\"; },\n { port = 2; name = \"a b\"; } );",
    "2: listen[0].name: a name can't be empty\n3: listen[1].name: a name has only printable" },
  { "unknown keys in listeners",
    UP "\nlisten = ( { prot = 1;\n limits = { max_conections = 1; }; } );",
    "2: listen[0].prot: unknown option; did you mean \"port\"?\n"
    "3: listen[0].limits.max_conections: unknown option; did you mean \"max_connections\"?" },
  { "bad limits",
    UP "\nlimits = { max_request = 10;\n idle_timeout = \"0\";\n max_connections = 0; };",
    "2: limits.max_request: must be a size in quotes\n3: limits.idle_timeout: must be from "
    "\"1ms\"\n"
    "4: limits.max_connections: must be from 1 to" },
  { "admin is a list", UP "\nadmin = ( { port = 1; } );", "2: admin: must be a group" },
  { "admin where a listener is", UP "\nadmin = { port = 8645; };",
    "2: admin.port: listener \"127.0.0.1:8645\" already listens there" },
  { "admin serves no calls", UP "\nadmin = { websocket = true; };",
    "2: admin.websocket: unknown option" },
  { "admin in the open", UP "\nadmin = { address = \"0.0.0.0\"; };",
    "2: warning: admin.address: the admin listener can be reached from other machines" },

  /* networks */
  { "no upstream", "networks = ( {\n name = \"n\"; } );",
    "1: networks[0]: the network has no upstream" },
  { "an empty list of upstreams", "networks = ( {\n upstreams = ();\n } );",
    "2: networks[0].upstreams: the network has no upstream" },
  { "no network", "networks = ();", "1: networks: no upstream is given" },
  { "upstreams is a group", "upstreams = { url = \"http://h\"; };",
    "1: upstreams: must be a list of groups" },
  { "both forms", UP "\nnetworks = ( { " NET " } );", "1: upstreams: stands beside networks" },
  { "a network's option beside networks", "networks = ( { " NET " } );\ntimeout = \"5s\";",
    "2: timeout: unknown option" },
  { "url is missing", "upstreams = ( { name = \"a\"; },\n { ulr = \"http://h\"; } );",
    "1: upstreams[0]: url is missing\n2: upstreams[1]: url is missing\n"
    "2: upstreams[1].ulr: unknown option; did you mean \"url\"?" },
  { "bad URLs",
    "upstreams = ( { url = \"h:80\"; },\n { url = \"http://h:0\"; },\n { url = 5; } );",
    "1: upstreams[0].url: bad URL: it begins with no scheme\n2: upstreams[1].url: bad URL: "
    "the port\n"
    "3: upstreams[2].url: must be text in quotes" },
  { "upstreams of the same name",
    "upstreams = ( { name = \"a\"; url = \"http://h\"; },\n"
    "{ name = \"a\"; url = \"http://i\"; } );",
    "2: upstreams[1].name: another upstream of this network is called \"a\"" },
  { "unknown keys in upstreams",
    "upstreams = ( { url = \"http://h\"; teir = 1;\n zzz = 2; } );",
    "1: upstreams[0].teir: unknown option; did you mean \"tier\"?\n"
    "2: upstreams[0].zzz: unknown option" },
  { "a second URL that is no WebSocket's",
    "upstreams = ( { url = \"http://h\";\n ws = \"http://h\"; },\n"
    "{ url = \"http://i\";\n ws = \"wss://\"; } );",
    "2: upstreams[0].ws: is for ws:// and wss:// URLs\n4: upstreams[1].ws: bad URL" },
  { "bad values in upstreams",
    "upstreams = ( { url = \"http://h\"; tier = -1;\n timeout = 5;\n"
    " connect_timeout = \"0\"; } );",
    "1: upstreams[0].tier: must be from 0 to\n2: upstreams[0].timeout: must be a time\n"
    "3: upstreams[0].connect_timeout: must be from \"1ms\"" },
  { "networks of the same name", "networks = ( { " NET " },\n { " NET " } );",
    "2: networks[1].name: another network is called \"n\"" },
  { "networks of the same chain",
    "networks = ( { chain_id = 1; " NET " },\n"
    " { name = \"o\"; chain_id = 1; " UP " } );",
    "2: networks[1].chain_id: network \"n\" has the same" },
  { "bad names of networks",
    "networks = ( { name = \"a/b\"; " UP " },\n { name = \"\"; " UP " },\n"
    " { name = \"5\"; chain_id = 6; " UP " } );",
    "1: networks[0].name: must be 1 to 64 letters\n2: networks[1].name: must be 1 to 64\n"
    "3: networks[2].name: a name of digits must be the network's chain_id" },
  { "bad values in networks",
    "networks = ( { " NET " chain_id = \"1\";\n timeout = \"0\";\n"
    " stream_threshold = 1; } );",
    "1: networks[0].chain_id: must be a whole number\n2: networks[0].timeout: must be from "
    "\"1ms\"\n"
    "3: networks[0].stream_threshold: must be a size" },
  { "stages",
    UP
    "\nmiddleware = ( { use = \"methods\"; },\n { us = \"log\"; },\n { use = \"methods\"; },\n"
    " 5,\n { use = \"x\"; frob = 1; } );",
    "2: middleware: element 3 must be a group\n"
    "3: middleware[1]: use is missing\n"
    "3: middleware[1].us: unknown option; did you mean \"use\"?\n"
    "4: middleware[2].name: another stage of this network is called \"methods\"\n"
    "6: middleware[4].frob: unknown option" },
  { "no gate keeper", UP "\nmiddleware = ( { use = \"log\"; } );",
    "2: warning: middleware: has no stage \"methods\"" },
  { "many at once",
    "a = 1;\nb = 2;\nworkers = \"x\";\nlisten = ( { port = -1; } );\nnetworks = 7;\n",
    "1: a: unknown option\n2: b: unknown option\n3: workers: must be\n"
    "4: listen[0].port: must be\n5: networks: must be" },
  { "what --dump-config blanked", "upstreams = ( { url = \"https://***\"; } );",
    "1: warning: upstreams[0].url: was blanked by --dump-config" },
};

/* Whether the messages begin as they should, line by line, and are as many. */
static bool
same_messages(const char *got, const char *want)
{
  while (*want != '\0') {
    size_t len = strcspn(want, "\n");

    if (strncmp(got, want, len) != 0)
      return false;
    got += strcspn(got, "\n");
    got += *got == '\n';
    want += len;
    want += *want == '\n';
  }
  return *got == '\0';
}

static void
test_wrong(const struct wrong *w)
{
  struct conf *conf = kit_load(w->text);
  size_t errors = 0;
  char *got;

  conf_check_unknown(conf);
  conf_check_unknown(conf); /* nothing is said twice */
  got = kit_errors(conf, kit_path("x.conf"));
  if (!ok(same_messages(got, w->want), "%s", w->what))
    printf("#   got:\n%s#   want:\n%s\n", got, w->want);
  for (const char *p = got; *p != '\0'; p += strcspn(p, "\n"), p += *p == '\n')
    errors += strstr(p, "warning: ") == NULL || strstr(p, "warning: ") > strchr(p, '\n');
  is_int(conf_errors(conf), errors, "the errors are counted");
  free(got);
  conf_free(conf);
}

/* --- good ones --------------------------------------------------------------------------- */

static void
no_messages(struct conf *conf, const char *name)
{
  char *got = kit_errors(conf, name);

  if (!ok(got[0] == '\0' && conf_errors(conf) == 0, "no message"))
    printf("#   got: %s", got);
  free(got);
}

static void
test_defaults(void)
{
  struct conf *conf = kit_load(UP);
  const struct conf_limits *l = &conf->listeners[0].limits;

  conf_check_unknown(conf);
  no_messages(conf, kit_path("x.conf"));
  ok(conf->workers == 0 && conf->memory == UINT64_C(512) << 20 &&
         conf->drain_timeout == 10000 && conf->log_level == EGW_INFO &&
         conf->log_format == LOG_TEXT && conf->log_file == NULL && conf->plugin_path == NULL &&
         !conf->has_admin,
     "defaults of the top level");
  is_int(conf->listener_count, 1, "one listener");
  ok(strcmp(conf->listeners[0].name, "127.0.0.1:8645") == 0 &&
         strcmp(conf->listeners[0].address, "127.0.0.1") == 0 &&
         conf->listeners[0].port == 8645 && conf->listeners[0].http &&
         conf->listeners[0].websocket && conf->listeners[0].path == NULL &&
         conf->listeners[0].tls_key == NULL,
     "the default listener");
  ok(l->max_connections == 10000 && l->max_connections_per_client == 0 &&
         l->max_request == 5u << 20 && l->max_batch_items == 1000 &&
         l->max_batch_reply == 25u << 20 && l->max_reply == 256u << 20 &&
         l->max_queue == 4u << 20 && l->max_in_flight == 256 && l->max_subscriptions == 128,
     "default limits");
  ok(l->head_timeout == 5000 && l->body_timeout == 20000 && l->handshake_timeout == 5000 &&
         l->idle_timeout == 60000 && l->write_timeout == 20000 && l->ping_interval == 30000,
     "default times");
  is_int(conf->network_count, 1, "one network");
  ok(strcmp(conf->networks[0].name, "default") == 0 && conf->networks[0].chain_id == 0 &&
         conf->networks[0].timeout == 30000 && conf->networks[0].attempt_timeout == 0 &&
         conf->networks[0].stream_threshold == 4u << 20,
     "the default network");
  ok(conf->networks[0].stage_count == 1 &&
         strcmp(conf->networks[0].stages[0].use, "methods") == 0 &&
         strcmp(conf->networks[0].stages[0].name, "methods") == 0 &&
         conf->networks[0].stages[0].section != NULL,
     "the default chain");
  ok(conf->networks[0].upstream_count == 1 &&
         strcmp(conf->networks[0].upstreams[0].name, "h:80") == 0 &&
         conf->networks[0].upstreams[0].tier == 0 &&
         conf->networks[0].upstreams[0].connect_timeout == 3000 &&
         conf->networks[0].upstreams[0].timeout == 0 &&
         conf->networks[0].upstreams[0].max_reply == 256u << 20,
     "defaults of an upstream");
  conf_free(conf);
}

static void
test_limits(void)
{
  struct conf *conf = kit_load(
      UP "limits = { max_request = \"1MiB\"; max_in_flight = 7; };\n"
         "listen = ( { port = 1; },\n"
         "  { port = 2; limits = { max_request = \"2MiB\"; max_connections_per_client = 3; }; "
         "},\n"
         "  { address = \"0.0.0.0\"; port = 3; }, { path = \"/x\"; },\n"
         "  { address = \"::\"; port = 3; limits = { max_connections_per_client = 0; }; },\n"
         "  { address = \"::ffff:127.0.0.1\"; port = 4; },\n"
         "  { port = 0; }, { port = 0; } );\n"
         "admin = { };");
  struct conf_listener *l = conf->listeners;

  no_messages(conf, kit_path("x.conf"));
  is_int(conf->listener_count, 8, "all listeners");
  ok(l[0].limits.max_request == 1u << 20 && l[1].limits.max_request == 2u << 20 &&
         l[1].limits.max_in_flight == 7 && conf->admin.limits.max_request == 1u << 20,
     "limits of all listeners, and of one");
  is_int(l[0].limits.max_connections_per_client, 0, "no cap for a loopback client");
  is_int(l[1].limits.max_connections_per_client, 3, "but the one that is set");
  is_int(l[2].limits.max_connections_per_client, 1000, "a cap for others");
  is_int(l[3].limits.max_connections_per_client, 0, "none on a unix socket");
  is_int(l[4].limits.max_connections_per_client, 0, "0 can be set");
  is_int(l[5].limits.max_connections_per_client, 0, "a mapped loopback address is one");
  ok(strcmp(l[3].name, "/x") == 0 && strcmp(l[3].mode, "0600") == 0 && l[3].address == NULL &&
         l[3].port == 0,
     "a unix socket");
  ok(strcmp(l[4].name, "[::]:3") == 0 && strcmp(l[6].name, l[7].name) != 0,
     "names: %s, %s, %s", l[4].name, l[6].name, l[7].name);
  ok(conf->has_admin && conf->admin.port == 8646 && conf->admin.http, "admin with defaults");
  conf_free(conf);
}

static void
test_networks(void)
{
  struct conf *conf = kit_load(
      "networks = ( { name = \"mainnet\"; chain_id = 1; timeout = \"5s\";\n"
      "  upstreams = ( { url = \"http://a/x\"; }, { url = \"http://a/y\"; }, { url = "
      "\"/run/a.ipc\"; },\n"
      "    { name = \"z\"; url = \"wss://b\"; tier = 2; timeout = \"1s\"; max_reply = "
      "\"1MiB\"; } );\n"
      "  middleware = ( { use = \"methods\"; name = \"gate\"; }, { use = \"log\"; },\n"
      "    { use = \"/x/y.so\"; } ); },\n"
      "  { name = \"big\"; chain_id = 4294967296L; middleware = ( );\n"
      "    " UP " } );");
  struct conf_network *n = conf->networks;
  char *got = kit_errors(conf, kit_path("x.conf"));

  ok(conf_errors(conf) == 0 && strstr(got, "6: warning: networks[1].middleware") == got,
     "only a warning");
  free(got);
  is_int(conf->network_count, 2, "two networks");
  is_int(n[1].chain_id, INT64_C(4294967296), "a chain id of more than 32 bits");
  ok(strcmp(n[0].upstreams[0].name, "a:80") == 0 &&
         strcmp(n[0].upstreams[1].name, "a:80-2") == 0 &&
         strcmp(n[0].upstreams[2].name, "a.ipc") == 0 &&
         strcmp(n[0].upstreams[3].name, "z") == 0,
     "names of upstreams");
  ok(n[0].upstreams[3].tier == 2 && n[0].upstreams[3].timeout == 1000 &&
         n[0].upstreams[3].max_reply == 1u << 20,
     "options of an upstream");
  ok(n[0].stage_count == 3 && strcmp(n[0].stages[0].name, "gate") == 0 &&
         strcmp(n[0].stages[1].name, "log") == 0 && strcmp(n[0].stages[2].name, "y.so") == 0,
     "stages");
  is_int(n[1].stage_count, 0, "an empty chain can be asked for");
  conf_free(conf);
}

static void
test_integers(void)
{
  struct conf *conf = kit_load(UP "chain_id = 9223372036854775807L;\nworkers = 0x10;\n"
                                  "# 99999999999\n/* 99999999999 */ // 99999999999\n"
                                  "plugin_path = \"99999999999\";");

  no_messages(conf, kit_path("x.conf"));
  is_int(conf->networks[0].chain_id, INT64_MAX, "the largest integer");
  is_int(conf->workers, 16, "hex");
  conf_free(conf);
}

/* A comma behind the last element, which libconfig 1.5 itself refuses. */
static void
test_commas(void)
{
  struct conf *conf = kit_load("upstreams = ( { url = \"http://h\"; }, { url = \"http://i\"; "
                               "}, # a comment, with a comma,\n"
                               " /* , ) */ );\nlisten = ( { port = 1; hosts = ( \"a,\", \"b\" "
                               ", ); origins = [ \"null\",\n ]; }, );"
                               "middleware = ( { use = \"methods\"; deny = ( ); } );");

  no_messages(conf, kit_path("x.conf"));
  ok(conf->networks[0].upstream_count == 2 && conf->listeners[0].hosts.n == 2 &&
         strcmp(conf->listeners[0].hosts.v[0], "a,") == 0 && conf->listeners[0].origins.n == 1,
     "commas behind the last element");
  conf_free(conf);
}

/* --- secrets ----------------------------------------------------------------------------- */

static bool
is_secret(const char *text)
{
  return log_has_secret((struct egw_slice){ text, strlen(text) });
}

static void
test_secrets(void)
{
  const char *text =
      "upstreams = ( { url = \"http://user12:passw0rd@h/v2/abcdefghijklmnop\"; } );";
  struct conf *conf = conf_load(kit_file("x.conf", text, strlen(text), 0644));
  char *got = kit_errors(conf, kit_path("x.conf"));

  ok(conf_errors(conf) == 0 && strstr(got, "1: warning: upstreams[0].url: everybody") == got,
     "a secret in a file that everybody can read");
  ok(strstr(got, "passw0rd") == NULL, "is not shown");
  free(got);
  ok(is_secret("user12") && is_secret("passw0rd") && is_secret("/v2/abcdefghijklmnop") &&
         is_secret("abcdefghijklmnop"),
     "user, password, path and key are registered");
  conf_free(conf);

  text = "upstreams = ( { url = \"http://h/\"; }, { url = "
         "\"ipc:///run/a-long-name-of-a-node.ipc\"; } );";
  conf = conf_load(kit_file("x.conf", text, strlen(text), 0644));
  no_messages(conf, kit_path("x.conf"));
  ok(!is_secret("/run/a-long-name-of-a-node.ipc"), "a socket's path is none");
  conf_free(conf);
}

static void
load_secret(const char *content, const char *want)
{
  char text[200];
  struct conf *conf;
  char *got;

  snprintf(text, sizeof text, "upstreams = ( { url = \"file:%s\"; } );",
           kit_file("secret", content, strlen(content), 0600));
  conf = conf_load(kit_file("x.conf", text, strlen(text), 0644));
  got = kit_errors(conf, kit_path("x.conf"));
  if (!ok(same_messages(got, want), "a URL from a file: %s", want[0] == '\0' ? "good" : want))
    printf("#   got: %s\n", got);
  if (want[0] == '\0')
    ok(strcmp(conf->networks[0].upstreams[0].url, "https://h/v3/qrstuvwxyz0123") == 0 &&
           is_secret("qrstuvwxyz0123"),
       "is its first line");
  free(got);
  conf_free(conf);
}

static void
test_secret_files(void)
{
  const char *text =
      "upstreams = ( { url = \"file:/nonexistent\"; },\n { url = \"file:x\"; },\n"
      " { url = \"file:/\"; } );";
  struct conf *conf;
  char *got;

  load_secret("https://h/v3/qrstuvwxyz0123\nmore", "");
  load_secret("https://h/v3/qrstuvwxyz0123\r\n", "");
  load_secret("\nhttps://h/",
              "1: upstreams[0].url: can't read the secret from its file: its first");
  load_secret("h:7", "1: upstreams[0].url: bad URL: it begins with no scheme");
  conf = kit_load(text);
  got = kit_errors(conf, kit_path("x.conf"));
  ok(same_messages(
         got, "1: upstreams[0].url: can't read the secret from its file: No such file\n"
              "2: upstreams[1].url: can't read the secret from its file: the path behind\n"
              "3: upstreams[2].url: can't read the secret from its file: it is not a file"),
     "files that can't be read");
  free(got);
  conf_free(conf);
}

/* --- files that are none ----------------------------------------------------------------- */

static void
test_files(void)
{
  struct conf *conf = conf_load(kit_path("none"));
  char *got = kit_errors(conf, kit_path("none"));

  ok(same_messages(got, " can't open it: No such file or directory"), "no file");
  free(got);
  conf_free(conf);
  conf = conf_load(kit_dir);
  got = kit_errors(conf, kit_dir);
  ok(same_messages(got, " it is not a file"), "a directory");
  free(got);
  conf_free(conf);
  conf = conf_load(kit_file("x.conf", "a = 1;\n\0b", 9, 0600));
  got = kit_errors(conf, kit_path("x.conf"));
  ok(same_messages(got, "2: the file holds a NUL byte"), "a NUL byte");
  free(got);
  conf_free(conf);
  conf = kit_load(UP);
  conf_error(conf, "no line %d", 5);
  got = kit_errors(conf, kit_path("x.conf"));
  ok(same_messages(got, " no line 5") && conf_errors(conf) == 1, "conf_error()");
  free(got);
  conf_free(conf);
}

/* --- the command line -------------------------------------------------------------------- */

struct place {
  const char *text, *address;
  int64_t port;
  const char *path;
};

static const struct place places[] = {
  { "127.0.0.1:99", "127.0.0.1", 99, NULL }, { "[::1]:99", "::1", 99, NULL },
  { ":99", "127.0.0.1", 99, NULL },          { "99", "127.0.0.1", 99, NULL },
  { "0", "127.0.0.1", 0, NULL },             { "0.0.0.0:0", "0.0.0.0", 0, NULL },
  { "/run/x.ipc", NULL, 0, "/run/x.ipc" },   { "unix:/run/x.ipc", NULL, 0, "/run/x.ipc" },
};

static const char *const bad_places[][2] = {
  { "", " \"\" is nothing to listen on" },
  { "x", " \"x\" is nothing to listen on" },
  { "127.0.0.1:", " \"127.0.0.1:\" is nothing to listen on" },
  { "127.0.0.1:x", " \"127.0.0.1:x\" is nothing to listen on" },
  { "127.0.0.1:123456", " \"127.0.0.1:123456\" is nothing to listen on" },
  { "127.0.0.1:65536", " listen[0].port: must be from 0 to 65535" },
  { "::1:80", " \"::1:80\" is nothing to listen on" },
  { "localhost:80", " listen[0].address: \"localhost\" is not an IP address" },
  { "unix:", " listen[0].path: can't be empty" },
};

static void
test_args(void)
{
  const char *urls[] = { "http://a", "http://a", "ipc:///x/y.ipc" }, *bad[] = { "nonsense" };
  struct conf *conf;
  char *got;

  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    const struct place *p = &places[i];
    const struct conf_listener *l;

    conf = conf_from_args(urls, 3, &p->text, 1, p->text);
    l = &conf->listeners[0];
    ok((p->path == NULL ? l->path == NULL && strcmp(l->address, p->address) == 0
                        : l->address == NULL && strcmp(l->path, p->path) == 0) &&
           l->port == p->port,
       "--listen %s", p->text);
    ok(conf->has_admin && conf->admin.port == p->port, "--admin %s", p->text);
    conf_free(conf);
  }
  for (size_t i = 0; i < sizeof bad_places / sizeof bad_places[0]; i++) {
    conf = conf_from_args(urls, 3, bad_places[i], 1, NULL);
    got = kit_errors(conf, "command line");
    if (!ok(same_messages(got, bad_places[i][1]), "--listen %s is refused", bad_places[i][0]))
      printf("#   got: %s", got);
    free(got);
    conf_free(conf);
  }
  conf = conf_from_args(urls, 3, NULL, 0, NULL);
  conf_check_unknown(conf);
  no_messages(conf, "command line");
  ok(conf->listener_count == 1 && conf->listeners[0].port == 8645 && !conf->has_admin,
     "the default listener, no admin");
  ok(conf->network_count == 1 && conf->networks[0].upstream_count == 3 &&
         strcmp(conf->networks[0].upstreams[1].name, "a:80-2") == 0 &&
         conf->networks[0].upstreams[2].section != NULL && conf->networks[0].stage_count == 1,
     "upstreams and the default chain");
  conf_free(conf);
  conf = conf_from_args(bad, 1, NULL, 0, NULL);
  got = kit_errors(conf, "command line");
  ok(same_messages(got, " upstreams[0].url: bad URL"), "a bad URL");
  free(got);
  conf_free(conf);
  conf = conf_from_args(NULL, 0, NULL, 0, NULL);
  ok(conf_errors(conf) == 1, "no upstream is an error");
  conf_free(conf);
}

int
main(void)
{
  kit_begin();
  for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++)
    test_wrong(&wrongs[i]);
  test_defaults();
  test_limits();
  test_networks();
  test_integers();
  test_commas();
  test_secrets();
  test_secret_files();
  test_files();
  test_args();
  kit_end();
  return done_testing();
}
