/* SPDX-License-Identifier: MIT */
/* The middleware `methods`: what is denied never reaches the node, in any spelling and of any
 * kind; rules and their order; the default policy over the whole method table. */
#include "../lib/tap.h"

#include "../lib/plugtest.h"
#include "rpc/method.h"

static char so[1000];

static struct plugtest *
host_with(const char *options)
{
  struct plugtest *host = plugtest_new(so, options);

  if (!plugtest_refused(host))
    return host;
  printf("Bail out! %s\n", plugtest_messages(host));
  exit(1);
}

static void
done(struct plugtest *host)
{
  is_int(plugtest_free(host), 0, "no rule was broken");
}

enum where { LOCAL, REMOTE, LISTENER_X };

static const struct plugtest_end *
ask(struct plugtest *host, const char *method, enum where where)
{
  struct plugtest_spec spec = { .method = method, .remote = where != LOCAL,
                                .listener = where == LISTENER_X ? "x" : "main" };

  return plugtest_ask(host, &spec);
}

static bool
is_denied(const struct plugtest_end *e)
{
  return e->over && e->outcome == EGW_OK && e->is_error && e->code == -32601 && e->sent == 0;
}

static bool
is_allowed(const struct plugtest_end *e)
{
  return e->over && e->outcome == EGW_OK && !e->is_error && e->sent == 1;
}

static void
allowed(struct plugtest *host, const char *method, enum where where)
{
  ok(is_allowed(ask(host, method, where)), "%s is allowed%s", method,
     where == LOCAL ? " here" : where == REMOTE ? " from outside" : " on x");
}

static void
denied(struct plugtest *host, const char *method, enum where where)
{
  ok(is_denied(ask(host, method, where)), "%s is denied%s", method,
     where == LOCAL ? " here" : where == REMOTE ? " from outside" : " on x");
}

/* --- the default policy ------------------------------------------------------------------ */

static const char *const for_all[] = {
  "eth_blockNumber",
  "eth_call",
  "eth_chainId",
  "eth_getLogs",
  "eth_getBlockByNumber",
  "eth_sendRawTransaction",
  "eth_sendRawTransactionSync",
  "eth_fillTransaction",
  "eth_simulateV1",
  "eth_subscribe",
  "eth_unsubscribe",
  "eth_newFilter",
  "eth_getFilterChanges",
  "eth_sendBundle",
  "eth_callBundle",
  "eth_someNewRead",
  "net_version",
  "web3_sha3",
  "web3_clientVersion",
  "rpc_modules",
  "mev_simBundle",
  "mev_sendBundle",
  "erigon_getHeaderByNumber",
  "zks_estimateFee",
  "bor_getAuthor",
  "linea_estimateGas",
  "foo_bar",
  "foo_settings",
  "foo_signal",
  "foo_minerals",
};

static const char *const for_locals[] = {
  "debug_traceTransaction",
  "debug_traceBlockByNumber",
  "debug_traceCall",
  "debug_getRawReceipts",
  "debug_executionWitness",
  "trace_block",
  "trace_filter",
  "trace_someNewOne",
  "txpool_content",
  "txpool_status",
  "ots_getApiLevel",
  "ots_someNewOne",
  "reth_getBalanceChangesInBlock",
  "erigon_nodeInfo",
};

static const char *const for_nobody[] = {
  "admin_peers",
  "admin_nodeInfo",
  "admin_addPeer",
  "admin_someNewOne",
  "personal_unlockAccount",
  "miner_start",
  "engine_newPayloadV3",
  "engine_getPayloadV9",
  "account_list",
  "clique_propose",
  "les_addBalance",
  "eth_accounts",
  "eth_coinbase",
  "eth_sign",
  "eth_signTransaction",
  "eth_signTypedData",
  "eth_signTypedData_v4",
  "eth_signUserOperation",
  "eth_sendTransaction",
  "eth_resend",
  "eth_submitWork",
  "eth_submitHashrate",
  "anvil_setBalance",
  "anvil_nodeInfo",
  "hardhat_mine",
  "evm_mine",
  "evm_snapshot",
  "evm_revert",
  "ganache_setTime",
  "tenderly_setBalance",
  "testing_buildBlockV1",
  "parity_setMode",
  "parity_newAccountFromPhrase",
  "signer_requestsToConfirm",
  "debug_setHead",
  "debug_freeOSMemory",
  "debug_standardTraceBlockToFile",
  "debug_traceBlockFromFile",
  "debug_writeMemProfile",
  "debug_chaindbCompact",
  "debug_someNewOne",
  "reth_newPayload",
  "reth_forkchoiceUpdated",
  "reth_jit",
  "reth_someNewOne",
  "flashbots_validateBuilderSubmissionV3",
  "wallet_sendTransaction",
  "foo_setBalance",
  "foo_sign",
  "foo_signTransaction",
  "foo_sendTransaction",
  "foo_impersonateAccount",
  "foo_mine",
  "foo_shutdown",
  "foo_unlockAccount",
  "foo_accounts",
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void
test_defaults(void)
{
  struct plugtest *host = host_with("");

  for (size_t i = 0; i < COUNT(for_all); i++) {
    allowed(host, for_all[i], LOCAL);
    allowed(host, for_all[i], REMOTE);
  }
  for (size_t i = 0; i < COUNT(for_locals); i++) {
    allowed(host, for_locals[i], LOCAL);
    denied(host, for_locals[i], REMOTE);
  }
  for (size_t i = 0; i < COUNT(for_nobody); i++) {
    denied(host, for_nobody[i], LOCAL);
    denied(host, for_nobody[i], REMOTE);
  }
  done(host);
}

/* Everything in the method table that changes the node is denied, everything of a namespace as
 * the manual says. */
static void
test_table(void)
{
  static const char *const never[] = { "admin_",   "personal_", "miner_",   "engine_",
                                       "clique_",  "les_",      "anvil_",   "hardhat_",
                                       "evm_",     "ganache_",  "testing_", "flashbots_",
                                       "account_", NULL };
  static const char *const local[] = { "debug_", "trace_", "txpool_", "ots_", NULL };
  struct plugtest *host = host_with("");
  unsigned wrong = 0;

  for (unsigned i = 0; i < method_count(); i++) {
    const struct egw_method_info *m = method_row(i);
    bool here = is_allowed(ask(host, m->name, LOCAL)),
         there = is_allowed(ask(host, m->name, REMOTE));
    bool may_here = !m->changes_node, may_there = !m->changes_node;

    for (size_t j = 0; never[j] != NULL; j++)
      if (strncmp(m->name, never[j], strlen(never[j])) == 0)
        may_here = may_there = false;
    for (size_t j = 0; local[j] != NULL; j++)
      if (strncmp(m->name, local[j], strlen(local[j])) == 0)
        may_there = false;
    if ((here && !may_here) || (there && !may_there) || (there && !here)) {
      wrong++;
      printf("# %s: here %d, from outside %d\n", m->name, here, there);
    }
    /* and reads of eth_ are not lost */
    if (strncmp(m->name, "eth_get", 7) == 0 && !(here && there)) {
      wrong++;
      printf("# %s is denied\n", m->name);
    }
  }
  ok(method_count() > 250 && wrong == 0, "the policy holds for %u methods", method_count());
  done(host);
}

/* --- spellings and kinds ----------------------------------------------------------------- */

static void
test_spellings(void)
{
  static const struct {
    const char *name;
    size_t len;
  } names[] = {
    { "ADMIN_peers", 0 },
    { "Admin_peers", 0 },
    { " admin_peers", 0 },
    { "admin_peers ", 0 },
    { "admin_peers\0", 12 },
    { "\0admin_peers", 12 },
    { "admin\0_peers", 12 },
    { "admin_", 0 },
    { "_admin", 0 },
    { "admin", 0 },
    { "", 0 },
    { "_", 0 },
    { "a_", 0 },
    { "9_a", 0 },
    { "eth-call", 0 },
    { "eth_call\n", 0 },
    { "eth_call\0", 9 },
    { "eth.call", 0 },
    { "eth_c\xc3\xa4ll", 0 },
    { "rpc.discover", 0 },
    { "eth_call;", 0 },
  };
  struct plugtest *host = host_with("");
  char name[200];

  for (size_t i = 0; i < COUNT(names); i++) {
    struct plugtest_spec spec = { .method = names[i].name, .method_len = names[i].len };
    const struct plugtest_end *e = plugtest_ask(host, &spec);

    /* a capital letter makes another namespace, which is as unknown to the node as to us */
    if (strncmp(names[i].name, "ADMIN", 5) == 0 || strncmp(names[i].name, "Admin", 5) == 0)
      continue;
    ok(is_denied(e), "spelling %zu is denied", i);
    ok(strcmp(e->message, "the method does not exist/is not available") == 0,
       "and not repeated: %s", e->message);
  }
  memset(name, 'a', sizeof name);
  memcpy(name, "eth_", 4);
  name[128] = '\0';
  allowed(host, name, REMOTE);
  name[128] = 'a';
  name[129] = '\0';
  denied(host, name, REMOTE);
  done(host);
}

static void
test_kinds(void)
{
  struct plugtest *host = host_with("");

  for (uint32_t kind = EGW_KIND_CALL; kind <= EGW_KIND_SUBCALL; kind *= 2) {
    struct plugtest_spec spec = { .method = "admin_peers", .kind = kind };

    ok(is_denied(plugtest_ask(host, &spec)), "kind %u is denied", (unsigned)kind);
  }
  is_int(plugtest_reached(host), 0, "nothing reached the node");
  is_int(plugtest_metric(host, "denied"), 5, "each is counted");
  done(host);
}

static void
test_message(void)
{
  struct plugtest *host = host_with("");
  const struct plugtest_end *e = ask(host, "admin_peers", LOCAL);

  ok(strcmp(e->message, "the method admin_peers does not exist/is not available") == 0,
     "the message is go-ethereum's: %s", e->message);
  ok(plugtest_logged(host, "denied method=admin_peers peer=127.0.0.1"), "it is logged");
  done(host);
}

/* --- rules ------------------------------------------------------------------------------- */

static void
test_allow(void)
{
  struct plugtest *host =
      host_with("allow = ( \"admin_peers\", \"anvil_*\", \"debug_trace*\" );");

  allowed(host, "admin_peers", REMOTE);
  denied(host, "admin_peersX", REMOTE);
  denied(host, "admin_peer", REMOTE);
  denied(host, "admin_addPeer", REMOTE);
  allowed(host, "anvil_setBalance", REMOTE);
  allowed(host, "anvil_", REMOTE);
  denied(host, "anvi", REMOTE);
  allowed(host, "debug_traceTransaction", REMOTE);
  denied(host, "debug_getRawBlock", REMOTE);
  allowed(host, "eth_call", REMOTE);
  done(host);
}

static void
test_deny(void)
{
  struct plugtest *host =
      host_with("deny = ( \"eth_getLogs\", \"trace_*\", \"admin_addPeer\" );\n"
                "allow = ( \"*\" );");

  denied(host, "eth_getLogs", LOCAL);
  allowed(host, "eth_getLogsX", LOCAL);
  denied(host, "trace_block", LOCAL);
  denied(host, "admin_addPeer", LOCAL);
  allowed(host, "admin_peers", LOCAL);
  allowed(host, "personal_unlockAccount", REMOTE);
  allowed(host, "rpc.discover", REMOTE);
  done(host);
}

static void
test_others(void)
{
  struct plugtest *host = host_with("others = \"deny\"; allow = ( \"eth_call\", \"net_*\" );");

  allowed(host, "eth_call", LOCAL);
  allowed(host, "net_version", LOCAL);
  denied(host, "eth_blockNumber", LOCAL);
  denied(host, "foo_bar", LOCAL);
  done(host);
  host = host_with("others = \"allow\"; deny = ( \"admin_*\" );");
  denied(host, "admin_peers", LOCAL);
  allowed(host, "debug_setHead", REMOTE);
  allowed(host, "anything at all", REMOTE);
  done(host);
}

static void
test_listeners(void)
{
  struct plugtest *host = host_with(
      "deny = ( \"eth_getLogs\", \"eth_call\" ); allow = ( \"admin_peers\" );\n"
      "listeners = ( { listener = \"x\"; allow = ( \"eth_getLogs\", \"debug_*\" );\n"
      "                deny = ( \"admin_*\", \"eth_chainId\", \"debug_setHead\" ); },\n"
      "              { listener = \"y\"; } );");

  allowed(host, "eth_getLogs", LISTENER_X);
  denied(host, "eth_getLogs", LOCAL);
  denied(host, "eth_call", LISTENER_X);
  denied(host, "admin_peers", LISTENER_X);
  allowed(host, "admin_peers", REMOTE);
  denied(host, "eth_chainId", LISTENER_X);
  allowed(host, "eth_chainId", REMOTE);
  allowed(host, "debug_traceCall", LISTENER_X);
  denied(host, "debug_traceCall", REMOTE);
  denied(host, "debug_setHead", LISTENER_X);
  done(host);
}

/* What nobody is denied is not seen by the stage. */
static void
test_wants(void)
{
  struct plugtest *host = host_with("");

  ok(ask(host, "eth_call", REMOTE)->skipped, "eth_call passes unseen");
  ok(!ask(host, "debug_traceCall", LOCAL)->skipped, "debug_traceCall does not");
  ok(!ask(host, "admin_peers", LOCAL)->skipped, "nor admin_peers");
  ok(!ask(host, "eth_notInTheTable", LOCAL)->skipped, "nor what is not in the table");
  done(host);
  host = host_with("listeners = ( { listener = \"x\"; deny = ( \"eth_call\" ); } );");
  ok(!ask(host, "eth_call", REMOTE)->skipped, "unless one listener denies it");
  allowed(host, "eth_call", REMOTE);
  denied(host, "eth_call", LISTENER_X);
  done(host);
  host = host_with("deny = ( \"*\" );");
  denied(host, "eth_call", LOCAL);
  done(host);
}

/* --- configuration ----------------------------------------------------------------------- */

static void
test_bad_options(void)
{
  static const char *const bads[][2] = {
    { "allow = \"eth_call\";", "test.allow" },
    { "allow = ( \"\" );", "\"\" is neither" },
    { "deny = ( \"*_x\" );", "\"*_x\" is neither" },
    { "deny = ( \"a*b*\" );", "\"a*b*\" is neither" },
    { "allow = ( \"eth_call, eth_x\" );", "is neither" },
    { "others = \"perhaps\";", "must be one of \"safe\", \"deny\", \"allow\"" },
    { "listeners = ( { allow = (); } );", "listener is missing" },
    { "listeners = ( { listener = \"x\"; }, { listener = \"x\"; } );", "has rules already" },
    { "listeners = ( { listener = \"x\"; alow = (); } );", "did you mean \"allow\"?" },
    { "listeners = ( { listener = \"x\"; deny = ( \"a b\" ); } );", "is neither" },
    { "listeners = { listener = \"x\"; };", "must be a list of groups" },
    { "alow = ();", "did you mean \"allow\"?" },
  };

  for (size_t i = 0; i < COUNT(bads); i++) {
    struct plugtest *host = plugtest_new(so, bads[i][0]);

    ok(plugtest_refused(host), "refused: %s", bads[i][0]);
    if (i > 0 && !ok(strstr(plugtest_messages(host), bads[i][1]) != NULL, "and why"))
      printf("#   %s\n", plugtest_messages(host));
    is_int(plugtest_free(host), 0, "no rule was broken");
  }
}

static void
report(bool pass, const char *what)
{
  ok(pass, "%s", what);
}

int
main(void)
{
  const char *build = getenv("EGW_BUILD");
  struct plugtest_spec call = { .method = "debug_traceCall" },
                       admin = { .method = "admin_peers" };

  snprintf(so, sizeof so, "%s/plugins/middleware/methods/methods.so",
           build == NULL ? "." : build);
  test_defaults();
  test_table();
  test_spellings();
  test_kinds();
  test_message();
  test_allow();
  test_deny();
  test_others();
  test_listeners();
  test_wants();
  test_bad_options();
  plugtest_generic(so, "", &call, report);
  plugtest_generic(so, "listeners = ( { listener = \"x\"; allow = ( \"a_*\" ); } );", &admin,
                   report);
  return done_testing();
}
