/* SPDX-License-Identifier: MIT */
/* docs/errors.md has a row for each of the gateway's own errors, with its code, label, message and
 * meaning, and no row for anything else. */
#include "../lib/tap.h"
#include "rpc/error.h"

static char text[65536];

static bool
read_doc(void)
{
  const char *source = getenv("EGW_SOURCE");
  char path[4096];
  FILE *file;
  size_t n;

  snprintf(path, sizeof(path), "%s/docs/errors.md", source != NULL ? source : ".");
  file = fopen(path, "r");
  if (file == NULL)
    return false;
  n = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  text[n] = '\0';
  return n > 0;
}

int
main(void)
{
  unsigned rows = 0, expected = 0;
  const char *at;
  int fault;

  if (!read_doc())
    skip_all("docs/errors.md is not here (EGW_SOURCE names the source tree)");
  for (fault = RPC_FAULT_PARSE; fault < RPC_FAULT_CANCELLED; fault++) {
    const struct rpc_fault_info *info = rpc_fault_info((enum rpc_fault)fault);
    char row[1024];

    snprintf(row, sizeof(row), "\n| %d | %s | %s | %s. |\n", info->code, info->label,
             info->message, info->help);
    ok(strstr(text, row) != NULL, "%s is documented", info->label);
    ok(strpbrk(info->message, "{}\"\\") == NULL, "%s has no braces or quotes", info->label);
    expected++;
  }
  for (at = text; (at = strstr(at, "\n| -32")) != NULL; at++)
    rows++;
  is_int(rows, expected, "no row too many");
  return done_testing();
}
