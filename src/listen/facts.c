/* SPDX-License-Identifier: MIT */
/* See facts.h. */
#include "listen/facts.h"

#include <string.h>
#include "listen/parts.h"

void
facts_read(struct client_facts *facts, const struct gate_head *head)
{
  *facts = (struct client_facts){
    .authorization = head->fields[FIELD_AUTHORIZATION],
    .api_key = head->fields[FIELD_API_KEY],
    .user_agent = head->fields[FIELD_USER_AGENT],
    .path_key = head->path_key,
  };
}

bool
facts_empty(const struct client_facts *facts)
{
  return !facts->forwarded && facts->authorization.ptr == NULL && facts->api_key.ptr == NULL &&
         facts->user_agent.ptr == NULL && facts->path_key.ptr == NULL;
}

/* A head has 16 KiB at most: the sum is small. */
size_t
facts_size(const struct client_facts *facts)
{
  return sizeof *facts + facts->authorization.len + facts->api_key.len +
         facts->user_agent.len + facts->path_key.len;
}

static char *
move(struct egw_slice *slice, char *to)
{
  if (slice->ptr == NULL)
    return to;
  memcpy(to, slice->ptr, slice->len);
  slice->ptr = to;
  return to + slice->len;
}

struct client_facts *
facts_copy(void *memory, const struct client_facts *facts)
{
  struct client_facts *copy = memory;
  char *at = (char *)(copy + 1);

  *copy = *facts;
  at = move(&copy->authorization, at);
  at = move(&copy->api_key, at);
  at = move(&copy->user_agent, at);
  move(&copy->path_key, at);
  return copy;
}
