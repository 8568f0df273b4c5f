/* SPDX-License-Identifier: MIT */
/* methods: which methods clients may call. The gate keeper of a chain: what it denies is
 * answered with -32601 and never reaches a node.
 *
 * A method is judged by the rules of the client's listener, then by the instance's own, then
 * by the default policy below; the first that names it decides. Methods that nobody is denied
 * are not seen at all (wants), so that the usual call does not pay for the rules. */
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/middleware.h>
#include <ethrpc-gw/version.h>
#include "../../common/pattern.h"

#define NAME_MAX_LEN 128
#define METHOD_NOT_FOUND (-32601)

enum others { OTHERS_SAFE, OTHERS_DENY, OTHERS_ALLOW };

/* Rules of one listener. */
struct listener_rules {
  const char *listener;
  struct egw_strings allow, deny;
};

struct methods {
  struct egw_strings allow, deny;
  int others;                       /* enum others */
  struct listener_rules *listeners;
  size_t listener_count;
};

enum metric { METRIC_DENIED };

/* --- the default policy ------------------------------------------------------------------ */

enum access { ACCESS_DENY, ACCESS_LOCAL, ACCESS_ALLOW };

/* By name, or by what a name begins with; the first match decides. */
struct policy {
  const char *pattern;
  enum access access;
};

static const struct policy policies[] = {
  /* accounts and keys of the node */
  { "eth_accounts", ACCESS_DENY },
  { "eth_coinbase", ACCESS_DENY },
  { "eth_requestAccounts", ACCESS_DENY },
  { "eth_sign*", ACCESS_DENY },
  { "eth_sendTransaction", ACCESS_DENY },
  { "eth_resend", ACCESS_DENY },
  { "eth_submit*", ACCESS_DENY },
  { "eth_*", ACCESS_ALLOW },
  { "net_*", ACCESS_ALLOW },
  { "web3_*", ACCESS_ALLOW },
  { "rpc_modules", ACCESS_ALLOW },
  /* looking closely: heavy, or more than a stranger need know */
  { "debug_*", ACCESS_LOCAL },
  { "trace_*", ACCESS_LOCAL },
  { "txpool_*", ACCESS_LOCAL },
  { "ots_*", ACCESS_LOCAL },
  { "reth_get*", ACCESS_LOCAL },
  { "reth_subscribe*", ACCESS_LOCAL },
  { "reth_unsubscribe*", ACCESS_LOCAL },
  { "parity_listStorageKeys", ACCESS_LOCAL },
  { "wallet_getCapabilities", ACCESS_ALLOW },
  { "erigon_nodeInfo", ACCESS_LOCAL },
  { "erigon_*", ACCESS_ALLOW },
  { "mev_*", ACCESS_ALLOW },
  /* the node itself, its keys, its consensus, development nodes */
  { "account_*", ACCESS_DENY },
  { "admin_*", ACCESS_DENY },
  { "anvil_*", ACCESS_DENY },
  { "author_*", ACCESS_DENY },
  { "clique_*", ACCESS_DENY },
  { "db_*", ACCESS_DENY },
  { "dev_*", ACCESS_DENY },
  { "engine_*", ACCESS_DENY },
  { "evm_*", ACCESS_DENY },
  { "flashbots_*", ACCESS_DENY },
  { "ganache_*", ACCESS_DENY },
  { "hardhat_*", ACCESS_DENY },
  { "ibft_*", ACCESS_DENY },
  { "internal_*", ACCESS_DENY },
  { "les_*", ACCESS_DENY },
  { "miner_*", ACCESS_DENY },
  { "opp2p_*", ACCESS_DENY },
  { "parity_*", ACCESS_DENY },
  { "perm_*", ACCESS_DENY },
  { "personal_*", ACCESS_DENY },
  { "plugins_*", ACCESS_DENY },
  { "priv_*", ACCESS_DENY },
  { "qbft_*", ACCESS_DENY },
  { "reth_*", ACCESS_DENY },
  { "shh_*", ACCESS_DENY },
  { "signer_*", ACCESS_DENY },
  { "tenderly_*", ACCESS_DENY },
  { "testing_*", ACCESS_DENY },
  { "wallet_*", ACCESS_DENY },
};

/* In a namespace that is not listed above, what the part behind '_' begins with when a method
 * signs, or sets something. */
static const char *const control_verbs[] = {
  "accounts",  "addPeer",  "coinbase",        "impersonate", "importRaw", "lockAccount",
  "mine",      "newAccount", "removePeer",    "sendTransaction", "sendUnsigned", "set",
  "shutdown",  "sign",     "start",           "stop",        "submitWork", "unlock",
};

static bool
is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* NAMESPACE_NAME of letters, digits and '_', as every method of a node is called. */
static bool
well_formed(struct egw_slice name)
{
  size_t joint = 0;

  if (name.len < 3 || name.len > NAME_MAX_LEN || !is_letter(name.ptr[0]))
    return false;
  for (size_t i = 0; i < name.len; i++) {
    char c = name.ptr[i];

    if (c == '_' && joint == 0)
      joint = i;
    else if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '_')
      return false;
  }
  return joint > 0 && joint + 1 < name.len;
}

/* A verb counts when no small letter follows: "setHead" but not "settings". */
static bool
looks_like_control(struct egw_slice name)
{
  const char *joint = memchr(name.ptr, '_', name.len);
  struct egw_slice verb = { joint + 1, name.len - (size_t)(joint + 1 - name.ptr) };

  for (size_t i = 0; i < sizeof control_verbs / sizeof control_verbs[0]; i++) {
    size_t len = strlen(control_verbs[i]);

    if (verb.len >= len && memcmp(verb.ptr, control_verbs[i], len) == 0 &&
        (verb.len == len || !(verb.ptr[len] >= 'a' && verb.ptr[len] <= 'z')))
      return true;
  }
  return false;
}

/* `info` NULL: the method is not in the table. */
static enum access
default_access(struct egw_slice name, const struct egw_method_info *info)
{
  if (!well_formed(name) || (info != NULL && info->changes_node))
    return ACCESS_DENY;
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    if (!pattern_matches(policies[i].pattern, name))
      continue;
    /* debug_ has much that changes the node, and grows: only what is known to read passes */
    if (info == NULL && pattern_matches("debug_*", name))
      return ACCESS_DENY;
    return policies[i].access;
  }
  return info == NULL && looks_like_control(name) ? ACCESS_DENY : ACCESS_ALLOW;
}

/* --- rules ------------------------------------------------------------------------------- */

static bool
listed(const struct egw_strings *list, struct egw_slice name)
{
  for (size_t i = 0; i < list->n; i++)
    if (pattern_matches(list->v[i], name))
      return true;
  return false;
}

/* `rules` NULL: the listener has none of its own. */
static enum access
judge(const struct methods *self, const struct listener_rules *rules, struct egw_slice name,
      const struct egw_method_info *info)
{
  if (rules != NULL && listed(&rules->deny, name))
    return ACCESS_DENY;
  if (rules != NULL && listed(&rules->allow, name))
    return ACCESS_ALLOW;
  if (listed(&self->deny, name))
    return ACCESS_DENY;
  if (listed(&self->allow, name))
    return ACCESS_ALLOW;
  if (self->others == OTHERS_SAFE)
    return default_access(name, info);
  return self->others == OTHERS_ALLOW ? ACCESS_ALLOW : ACCESS_DENY;
}

static const struct listener_rules *
rules_of(const struct methods *self, const char *listener)
{
  for (size_t i = 0; i < self->listener_count && listener != NULL; i++)
    if (strcmp(self->listeners[i].listener, listener) == 0)
      return &self->listeners[i];
  return NULL;
}

/* --- callbacks --------------------------------------------------------------------------- */

static bool
methods_wants(const void *mine, const struct egw_method_info *info)
{
  const struct methods *self = mine;
  struct egw_slice name;

  if (info == NULL)
    return true;
  name = (struct egw_slice){ info->name, strlen(info->name) };
  for (size_t i = 0; i < self->listener_count; i++)
    if (judge(self, &self->listeners[i], name, info) != ACCESS_ALLOW)
      return true;
  return judge(self, NULL, name, info) != ACCESS_ALLOW;
}

/* In the words of go-ethereum, which client libraries look for. A name that is none is not
 * repeated. */
static enum egw_verdict
refuse(struct egw_call *call, struct egw_slice name)
{
  static const char before[] = "the method ", behind[] = " does not exist/is not available";
  char text[sizeof before + NAME_MAX_LEN + sizeof behind];
  char *p = text;

  if (!well_formed(name))
    return egw_refuse(call, METHOD_NOT_FOUND, "the method does not exist/is not available");
  memcpy(p, before, sizeof before - 1);
  p += sizeof before - 1;
  memcpy(p, name.ptr, name.len);
  p += name.len;
  memcpy(p, behind, sizeof behind);
  return egw_refuse(call, METHOD_NOT_FOUND, text);
}

static enum egw_verdict
methods_request(const struct egw_at *at, struct egw_call *call)
{
  const struct methods *self = at->self;
  struct egw_slice name = egw_method(call);
  struct egw_client client;
  enum access access;

  egw_client(call, &client);
  access = judge(self, rules_of(self, client.listener), name, egw_method_info(call));
  if (access == ACCESS_ALLOW || (access == ACCESS_LOCAL && client.local))
    return EGW_NEXT;
  egw_count(at, METRIC_DENIED, 1);
  if (egw_log_on(EGW_DEBUG))
    egw_log(EGW_DEBUG, "methods", "denied method=%.*s peer=%s listener=%s",
            (int)(name.len > NAME_MAX_LEN ? NAME_MAX_LEN : name.len), name.ptr, client.peer,
            client.listener == NULL ? "-" : client.listener);
  return refuse(call, name);
}

/* --- configuration ----------------------------------------------------------------------- */

static const struct egw_option listener_options[] = {
  { .name = "listener", .type = EGW_OPT_STRING, .flags = EGW_OPTION_REQUIRED,
    .offset = offsetof(struct listener_rules, listener), .help = "Name of a listener" },
  { .name = "allow", .type = EGW_OPT_LIST, .offset = offsetof(struct listener_rules, allow),
    .help = "Methods allowed there" },
  { .name = "deny", .type = EGW_OPT_LIST, .offset = offsetof(struct listener_rules, deny),
    .help = "Methods denied there" },
  EGW_OPTION_END
};

/* A name, the beginning of one with '*' behind, or "*". */
static int
check_patterns(struct egw_conf *section, const char *key, const struct egw_strings *list)
{
  int r = 0;

  for (size_t i = 0; i < list->n; i++) {
    size_t len = strlen(list->v[i]), star = strcspn(list->v[i], "*");

    if (len == 0 || len > NAME_MAX_LEN || star + 1 < len ||
        strpbrk(list->v[i], " \t,;") != NULL)
      r = egw_conf_error(section, key,
                         "\"%s\" is neither a method, nor the beginning of one and a \"*\"",
                         list->v[i]);
  }
  return r;
}

static int
read_listener(struct methods *self, struct egw_conf *section)
{
  struct listener_rules *rules = &self->listeners[self->listener_count];

  if (egw_conf_read(section, listener_options, rules) < 0)
    return -1;
  if (rules_of(self, rules->listener) != NULL)
    return egw_conf_error(section, "listener", "has rules already");
  if (!egw_conf_has_listener(section, rules->listener))
    egw_conf_warn(section, "listener", "there is no listener \"%s\"", rules->listener);
  self->listener_count++;
  return check_patterns(section, "allow", &rules->allow) |
         check_patterns(section, "deny", &rules->deny);
}

static int
methods_configure(void *mine, struct egw_conf *section)
{
  struct methods *self = mine;
  size_t n = egw_conf_count(section, "listeners");
  int r = check_patterns(section, "allow", &self->allow) |
          check_patterns(section, "deny", &self->deny);

  if (n == 0)
    return r;
  self->listeners = calloc(n, sizeof *self->listeners);
  if (self->listeners == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  for (size_t i = 0; i < n; i++) {
    struct egw_conf *element = egw_conf_element(section, "listeners", i);

    if (element == NULL || read_listener(self, element) < 0)
      r = -1;
  }
  return r;
}

static void
methods_unconfigure(void *mine)
{
  struct methods *self = mine;

  free(self->listeners);
  self->listeners = NULL;
  self->listener_count = 0;
}

static const char *const others_words[] = { "safe", "deny", "allow", NULL };

static const struct egw_option options[] = {
  { .name = "allow",
    .type = EGW_OPT_LIST,
    .offset = offsetof(struct methods, allow),
    .flags = EGW_OPTION_RELOAD,
    .help = "Methods that are allowed whatever the default policy says" },
  { .name = "deny",
    .type = EGW_OPT_LIST,
    .offset = offsetof(struct methods, deny),
    .flags = EGW_OPTION_RELOAD,
    .help = "Methods that are denied, even if allow names them" },
  { .name = "others",
    .type = EGW_OPT_ENUM,
    .offset = offsetof(struct methods, others),
    .fallback = "safe",
    .choices = others_words,
    .flags = EGW_OPTION_RELOAD,
    .help = "What becomes of methods that no rule names: the default policy, or one word for "
            "all" },
  { .name = "listeners",
    .type = EGW_OPT_SECTION,
    .flags = EGW_OPTION_RELOAD,
    .help =
        "Rules of single listeners: ( { listener = NAME; allow = (...); deny = (...); } )" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  [METRIC_DENIED] = { .name = "denied", .kind = EGW_METRIC_COUNTER, .help = "Calls denied" },
  EGW_METRIC_TABLE_END
};

static const struct egw_middleware methods = {
  .plugin = {
    EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
    .name = "methods",
    .version = EGW_VERSION,
    .summary = "Decides which methods clients may call",
    .options = options,
    .metrics = metrics,
    .instance_size = sizeof(struct methods),
    .configure = methods_configure,
    .unconfigure = methods_unconfigure,
  },
  .kinds = EGW_KIND_ALL,
  .flags = EGW_STAGE_GUARD,
  .need = EGW_NEED_NONE,
  .request = methods_request,
  .wants = methods_wants,
};

EGW_REGISTER(methods)
