/* SPDX-License-Identifier: MIT */
/* Keeps the best of the bad replies, by reference. */
#include "telling.h"

void
telling_free(struct telling *telling)
{
  egw_buf_unref(telling->buf);
  *telling = (struct telling){ 0 };
}

bool
telling_note(struct telling *telling, const struct egw_reply *reply, enum error_class class)
{
  bool words = reply->outcome == EGW_OK && reply->buf != NULL && !reply->partial;
  unsigned rank = class_info(class)->rank;

  if (!words && rank > 1)
    rank = 2; /* a status alone tells less than a node's words */
  if (telling->known && rank < telling->rank)
    return false;
  telling_free(telling);
  telling->known = true;
  telling->rank = rank;
  telling->is_error = reply->is_error;
  telling->fault = (int)reply->code;
  if (words) {
    telling->buf = egw_buf_ref(reply->buf);
    telling->part = reply->body;
  }
  return true;
}

bool
telling_has_words(const struct telling *telling)
{
  return telling->buf != NULL;
}

enum egw_verdict
telling_fault(struct egw_call *call, int code)
{
  static const struct {
    int code;
    const char *text;
  } faults[] = {
    { -32008, "response too large" },
    { -32050, "no upstream could be reached" },
    { -32051, "request timed out" },
    { -32052, "the upstream gave an unusable response" },
    { -32053, "the connection broke; the request may have been executed" },
    { -32055, "the gateway is overloaded, try again later" },
  };
  size_t i;

  for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
    if (faults[i].code == code)
      return egw_refuse(call, code, faults[i].text);
  return egw_refuse(call, -32603, "Internal error");
}

enum egw_verdict
telling_answer(struct telling *telling, struct egw_call *call)
{
  if (telling->buf != NULL)
    return egw_answer_part(call, egw_buf_ref(telling->buf), telling->part, telling->is_error);
  return telling_fault(call, telling->known ? telling->fault : -32050);
}
