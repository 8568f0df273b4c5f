/* SPDX-License-Identifier: MIT */
/* The classifier. A revert is an answer and is found first: its text is the contract's, which
 * may say anything. Then the configured rules, then the table. */
#include "classify.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/json.h>
#include "../../common/pattern.h"

#define TEXT_MAX 1024u  /* bytes of a message that are looked at */
#define REVERT_DATA 10u /* "0x" and a selector */

enum scope {
  SCOPE_ANY,
  SCOPE_TX,    /* sends a signed transaction */
  SCOPE_EXEC,  /* runs code for the caller */
  SCOPE_RANGE, /* answers with very much */
  SCOPE_BLOCK  /* names a block or a transaction */
};

struct row {
  const char *name;
  enum error_class class;
  enum scope scope;
  int64_t code;
  int http;
  const char *texts;
};

static const struct row rows[] = {
#define ROW(name, class, scope, code, http, texts)                                            \
  { #name, CLASS_##class, SCOPE_##scope, code, http, texts },
#include "errors.def"
#undef ROW
};

static const struct class_info classes[CLASS_COUNT] = {
#define X(class, name, follows, mark, rank) { name, FOLLOWS_##follows, MARK_##mark, rank },
  ERROR_CLASSES(X)
#undef X
};

const struct class_info *
class_info(enum error_class class)
{
  return &classes[class];
}

enum error_class
class_find(const char *name)
{
  unsigned i;

  for (i = 0; i < CLASS_COUNT; i++)
    if (strcmp(classes[i].name, name) == 0)
      return (enum error_class)i;
  return CLASS_COUNT;
}

/* --- scopes ------------------------------------------------------------------------------ */

static bool
is_exec(const char *name)
{
  static const char *const names[] = {
    "eth_call",
    "eth_estimateGas",
    "eth_createAccessList",
    "eth_callMany",
    "eth_callBundle",
    "eth_simulateV1",
    "eth_multicallV1",
    "eth_fillTransaction",
    "debug_traceCall",
    "debug_traceCallMany",
    "trace_call",
    "trace_callMany",
    "trace_rawTransaction",
    "mev_simBundle",
  };
  size_t i;

  for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (strcmp(names[i], name) == 0)
      return true;
  return false;
}

static bool
in_scope(enum scope scope, const struct egw_method_info *info)
{
  if (scope == SCOPE_ANY)
    return true;
  if (info == NULL)
    return false;
  switch (scope) {
  case SCOPE_TX:
    return info->method_class == EGW_CLASS_BROADCAST;
  case SCOPE_EXEC:
    return is_exec(info->name);
  case SCOPE_RANGE:
    return info->method_class == EGW_CLASS_RANGE ||
           (info->cost >= 25 && info->block_kind != EGW_BLOCK_NONE && !is_exec(info->name));
  case SCOPE_BLOCK:
    return info->block_kind != EGW_BLOCK_NONE || is_exec(info->name);
  case SCOPE_ANY:
    break;
  }
  return true;
}

/* --- texts ------------------------------------------------------------------------------- */

/* The message in lower case; what is too long is cut, undecoded. */
static void
lower_text(struct egw_slice message, char text[TEXT_MAX])
{
  long n = message.ptr != NULL ? egw_json_string(message, text, TEXT_MAX - 1) : 0;
  size_t i;

  if (n < 0) {
    n = (long)(message.len < TEXT_MAX - 1 ? message.len : TEXT_MAX - 1);
    memcpy(text, message.ptr, (size_t)n);
  }
  text[n] = '\0';
  for (i = 0; i < (size_t)n; i++)
    text[i] = text[i] == '\0' ? ' ' : (char)tolower((unsigned char)text[i]);
}

static const char *
find_piece(const char *text, const char *piece, size_t len)
{
  for (; *text != '\0'; text++)
    if (strncmp(text, piece, len) == 0)
      return text;
  return NULL;
}

/* One alternative: pieces that come in this order. */
static bool
matches_one(const char *text, const char *pattern, size_t len)
{
  bool front = len != 0 && *pattern == '^';
  const char *end = pattern + len;

  if (front)
    pattern++;
  while (pattern < end) {
    const char *star = memchr(pattern, '*', (size_t)(end - pattern));
    size_t piece = (size_t)((star != NULL ? star : end) - pattern);

    if (front && strncmp(text, pattern, piece) != 0)
      return false;
    text = front ? text : find_piece(text, pattern, piece);
    if (text == NULL)
      return false;
    text += piece;
    front = false;
    pattern += piece + (star != NULL);
  }
  return true;
}

static bool
matches_text(const char *text, const char *patterns)
{
  while (*patterns != '\0') {
    size_t len = strcspn(patterns, "|");

    if (len != 0 && matches_one(text, patterns, len))
      return true;
    patterns += len + (patterns[len] == '|');
  }
  return false;
}

/* --- reverts ----------------------------------------------------------------------------- */

static bool
begins(const char *text, const char *with)
{
  return strncmp(text, with, strlen(with)) == 0;
}

/* What a contract gave back, as geth and as Parity and its heirs show it. */
static bool
has_revert_data(struct egw_slice data)
{
  size_t i;

  if (data.ptr == NULL || egw_json_kind(data) != EGW_JSON_STRING)
    return false;
  if (data.len > 10 && memcmp(data.ptr, "\"Reverted ", 10) == 0)
    return true;
  if (data.len < REVERT_DATA + 2 || memcmp(data.ptr, "\"0x", 3) != 0)
    return false;
  for (i = 3; i + 1 < data.len; i++)
    if (!isxdigit((unsigned char)data.ptr[i]))
      return false;
  return true;
}

static bool
is_revert(const struct egw_reply *reply, const char *text)
{
  return reply->code == 3 || begins(text, "execution reverted") ||
         begins(text, "vm execution error") || begins(text, "evm error") ||
         has_revert_data(reply->data);
}

/* --- rules of the configuration ---------------------------------------------------------- */

struct rule {
  const char *class, *text;
  int64_t code, http;
  struct egw_strings methods;
  enum error_class found;
};

struct rules {
  size_t count;
  struct rule rule[];
};

static const struct egw_option rule_options[] = {
  { .name = "class", .type = EGW_OPT_STRING, .offset = offsetof(struct rule, class),
    .flags = EGW_OPTION_REQUIRED, .help = "what such an error means" },
  { .name = "text", .type = EGW_OPT_STRING, .offset = offsetof(struct rule, text),
    .help = "parts of the message, alternatives divided by |" },
  { .name = "methods", .type = EGW_OPT_LIST, .offset = offsetof(struct rule, methods),
    .help = "the methods it is about; none: all" },
  { .name = "code", .type = EGW_OPT_INT, .offset = offsetof(struct rule, code),
    .help = "the error's code; 0: any" },
  { .name = "http", .type = EGW_OPT_INT, .offset = offsetof(struct rule, http), .min = 0,
    .max = 599, .help = "the HTTP status; 0: any" },
  EGW_OPTION_END
};

static int
read_rule(struct egw_conf *section, struct rule *rule)
{
  if (egw_conf_read(section, rule_options, rule) < 0)
    return -1;
  rule->found = class_find(rule->class);
  if (rule->found == CLASS_COUNT || rule->found == CLASS_RESULT ||
      rule->found == CLASS_UNMATCHED || rule->found == CLASS_STALE ||
      rule->found >= CLASS_SILENT)
    return egw_conf_error(section, "class", "\"%s\" is no class of errors", rule->class);
  if (rule->code == 0 && rule->http == 0 && (rule->text == NULL || *rule->text == '\0'))
    return egw_conf_error(section, NULL, "a rule needs a text, a code or an HTTP status");
  return 0;
}

int
rules_read(struct egw_conf *section, struct rules **out)
{
  size_t i, n = egw_conf_count(section, "rules");
  int r = 0;

  *out = NULL;
  if (n == 0)
    return 0;
  *out = n < 10000 ? calloc(1, sizeof(**out) + n * sizeof((*out)->rule[0])) : NULL;
  if (*out == NULL)
    return egw_conf_error(section, "rules", "out of memory");
  for (i = 0; i < n; i++) {
    struct egw_conf *element = egw_conf_element(section, "rules", i);

    if (element == NULL)
      r = egw_conf_error(section, "rules", "element %zu is not a group", i + 1);
    else if (read_rule(element, &(*out)->rule[i]) < 0)
      r = -1;
  }
  (*out)->count = n;
  return r;
}

void
rules_free(struct rules *rules)
{
  free(rules);
}

/* The text of a configuration may have upper case. */
static bool
matches_rule(const struct rule *rule, struct egw_slice method, const struct egw_reply *reply,
             const char *text)
{
  char lower[TEXT_MAX];
  size_t i;

  if ((rule->code != 0 && rule->code != reply->code) ||
      (rule->http != 0 && rule->http != reply->http_status) ||
      (rule->methods.n != 0 && !pattern_listed(&rule->methods, method)))
    return false;
  if (rule->text == NULL || *rule->text == '\0')
    return true;
  for (i = 0; rule->text[i] != '\0' && i < sizeof(lower) - 1; i++)
    lower[i] = (char)tolower((unsigned char)rule->text[i]);
  lower[i] = '\0';
  return matches_text(text, lower);
}

/* --- the verdict ------------------------------------------------------------------------- */

/* No valid reply: the HTTP status may tell more than the outcome. */
static struct verdict
by_outcome(const struct egw_reply *reply)
{
  size_t i;

  for (i = 0; i < sizeof(rows) / sizeof(rows[0]) && reply->outcome == EGW_BAD_REPLY; i++)
    if (rows[i].http != 0 && rows[i].http == reply->http_status)
      return (struct verdict){ rows[i].class, rows[i].name, (unsigned)i + 1 };
  switch (reply->outcome) {
  case EGW_NOT_SENT:
    return (struct verdict){ CLASS_UNREACHABLE, "", 0 };
  case EGW_TIMED_OUT:
    return (struct verdict){ CLASS_SILENT, "", 0 };
  case EGW_OK:
  case EGW_MAYBE_SENT:
  case EGW_BAD_REPLY:
  case EGW_ABORTED:
    break;
  }
  return (struct verdict){ CLASS_BROKEN, "", 0 };
}

static bool
matches_row(const struct row *row, const struct egw_method_info *info,
            const struct egw_reply *reply, const char *text)
{
  return (row->code == 0 || row->code == reply->code) &&
         (row->http == 0 || row->http == reply->http_status) && in_scope(row->scope, info) &&
         (row->texts == NULL || matches_text(text, row->texts));
}

struct verdict
classify(const struct rules *rules, struct egw_slice method,
         const struct egw_method_info *info, const struct egw_reply *reply)
{
  char text[TEXT_MAX];
  size_t i;

  if (reply->outcome == EGW_OK && !reply->is_error)
    return (struct verdict){ CLASS_RESULT, "", 0 };
  lower_text(reply->outcome == EGW_OK ? reply->message : (struct egw_slice){ 0 }, text);
  if (reply->outcome == EGW_OK && is_revert(reply, text))
    return (struct verdict){ CLASS_REVERT, "revert", 0 };
  for (i = 0; rules != NULL && i < rules->count; i++)
    if ((reply->outcome == EGW_OK || rules->rule[i].http != 0) &&
        matches_rule(&rules->rule[i], method, reply, text))
      return (struct verdict){ rules->rule[i].found, "configured", ROW_COUNT + 1 };
  if (reply->outcome != EGW_OK)
    return by_outcome(reply);
  for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (matches_row(&rows[i], info, reply, text))
      return (struct verdict){ rows[i].class, rows[i].name, (unsigned)i + 1 };
  return (struct verdict){ CLASS_UNMATCHED, "unmatched", 0 };
}
