/* SPDX-License-Identifier: MIT */
/* What a request tells of who sent it: keys in paths, and copies that outlive the request. */
#include <stdlib.h>
#include <string.h>
#include "chain/chain.h"
#include "gateway/gateway.h"
#include "listen/facts.h"
#include "listen/parts.h"
#include "listen/route.h"
#include "../lib/tap.h"

/* --- paths ---------------------------------------------------------------------------- */

struct path_case {
  const char *path;
  const char *network;         /* NULL: none */
  const char *key;             /* NULL: missing */
};

static const struct path_case with_keys[] = {
  { "/", "mainnet", NULL },
  { "/mainnet", "mainnet", NULL },
  { "/mainnet/", "mainnet", NULL },
  { "/1", "mainnet", NULL },
  { "/base", "base", NULL },
  { "/8453", "base", NULL },
  { "/k", "mainnet", "k" },
  { "/Ab0.-_~", "mainnet", "Ab0.-_~" },
  { "/2", "mainnet", "2" },
  { "/key/", "mainnet", "key" },
  { "/mainnet/key", "mainnet", "key" },
  { "/base/key", "base", "key" },
  { "/base/key/", "base", "key" },
  { "/8453/key", "base", "key" },
  { "/Base", "mainnet", "Base" },
  { "/other/key", NULL, NULL },
  { "/base/base", NULL, NULL },
  { "/base/1", NULL, NULL },
  { "/key/base", NULL, NULL },
  { "/base/key/more", NULL, NULL },
  { "/a%20b", NULL, NULL },
  { "/a+b", NULL, NULL },
  { "/a=", NULL, NULL },
  { "/base/a:b", NULL, NULL },
  { "/base/a;b", NULL, NULL },
};

static const struct path_case without_keys[] = {
  { "/", "mainnet", NULL },     { "/base", "base", NULL }, { "/base/", "base", NULL },
  { "/key", NULL, NULL },       { "/base/key", NULL, NULL },
};

static struct conf_network confs[2] = { { .name = "mainnet", .chain_id = 1 },
                                        { .name = "base", .chain_id = 8453 } };
static struct network networks[2] = { { .name = "mainnet", .conf = &confs[0] },
                                      { .name = "base", .conf = &confs[1] } };
static struct gateway gateway = { .networks = networks, .network_count = 2 };
static struct conf_listener conf;
static struct listener listener = { .conf = &conf };

static void
is_routed(const char *path, size_t len, const char *network, const char *key)
{
  struct egw_slice found, text = { path, len };
  struct network *got = route_path(&gateway, &listener, text, &found);

  ok(network == NULL ? got == NULL : got != NULL && strcmp(got->name, network) == 0,
     "%.40s%s: network %s", path, conf.key_in_path ? " (keys)" : "",
     network == NULL ? "none" : network);
  if (key == NULL)
    ok(found.ptr == NULL, "no key");
  else
    ok(found.len == strlen(key) && memcmp(found.ptr, key, found.len) == 0, "its key");
}

static void
test_paths(void)
{
  char text[300];

  conf.key_in_path = true;
  for (size_t i = 0; i < sizeof with_keys / sizeof *with_keys; i++)
    is_routed(with_keys[i].path, strlen(with_keys[i].path), with_keys[i].network,
              with_keys[i].key);
  memset(text, 'k', sizeof text);
  text[0] = '/';
  text[257] = '\0';
  is_routed(text, 257, "mainnet", text + 1);
  is_routed(text, 258, NULL, NULL);
  conf.key_in_path = false;
  for (size_t i = 0; i < sizeof without_keys / sizeof *without_keys; i++)
    is_routed(without_keys[i].path, strlen(without_keys[i].path), without_keys[i].network,
              without_keys[i].key);
}

/* --- copies --------------------------------------------------------------------------- */

static void
test_copies(void)
{
  char bytes[] = "Bearer x|k1|path";
  struct gate_head head = {
    .fields = { [FIELD_AUTHORIZATION] = { bytes, 8 }, [FIELD_API_KEY] = { bytes + 9, 2 } },
    .path_key = { bytes + 12, 4 },
  };
  struct gate_head bare = { .fields = { [FIELD_CACHE] = { bytes, 1 } } };
  struct client_facts facts, *copy;
  void *memory;

  facts_read(&facts, &bare);
  ok(facts_empty(&facts), "a head that tells nothing");
  facts_read(&facts, &head);
  ok(!facts_empty(&facts), "a head that tells something");
  memory = malloc(facts_size(&facts)); /* not a byte more: a sanitizer would find it */
  if (memory == NULL)
    return;
  copy = facts_copy(memory, &facts);
  memset(bytes, 'x', sizeof bytes);
  ok(copy->authorization.len == 8 && memcmp(copy->authorization.ptr, "Bearer x", 8) == 0,
     "the copy is of its own");
  ok(copy->api_key.len == 2 && memcmp(copy->api_key.ptr, "k1", 2) == 0, "each part");
  ok(copy->path_key.len == 4 && memcmp(copy->path_key.ptr, "path", 4) == 0, "of it");
  ok(copy->user_agent.ptr == NULL, "what is missing stays missing");
  free(memory);
}

int
main(void)
{
  test_paths();
  test_copies();
  done_testing();
}
