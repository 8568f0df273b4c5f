/* SPDX-License-Identifier: MIT */
/* What nobody has read of the file: mistyped keys, with the name that was probably meant. */
#include "conf/file.h"

#include <string.h>

#define WORD_MAX 48

/* Edit distance with transpositions of neighbours, for short words; large when too different.
 */
static unsigned
distance(const char *a, const char *b)
{
  unsigned rows[3][WORD_MAX + 1];
  size_t la = strlen(a), lb = strlen(b);

  if (la > WORD_MAX || lb > WORD_MAX)
    return 99;
  for (size_t j = 0; j <= lb; j++)
    rows[0][j] = (unsigned)j;
  for (size_t i = 1; i <= la; i++) {
    unsigned *now = rows[i % 3], *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];

    now[0] = (unsigned)i;
    for (size_t j = 1; j <= lb; j++) {
      unsigned best = up[j - 1] + (a[i - 1] != b[j - 1]);

      if (up[j] + 1 < best)
        best = up[j] + 1;
      if (now[j - 1] + 1 < best)
        best = now[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          up2[j - 2] + 1 < best)
        best = up2[j - 2] + 1;
      now[j] = best;
    }
  }
  return rows[la % 3][lb];
}

/* The option of the section that `word` is nearest to, or NULL. */
static const char *
suggestion(const struct egw_conf *section, const char *word)
{
  const char *name = NULL;
  unsigned best = strlen(word) < 5 ? 2 : 3;

  for (unsigned t = 0; t < section->table_count; t++)
    for (const struct egw_option *o = section->tables[t]; o->type != EGW_OPT_END; o++) {
      unsigned d = distance(word, o->name);

      if (d < best) {
        best = d;
        name = o->name;
      }
    }
  return name;
}

/* Elements of a list of groups that are something else, or that nobody asked for. */
static void
report_elements(struct egw_conf *section, config_setting_t *list)
{
  int n = config_setting_length(list);

  for (int i = 0; i < n; i++) {
    config_setting_t *e = config_setting_get_elem(list, (unsigned)i);

    if (conf_mark_of(e) != CONF_UNREAD)
      continue;
    (void)egw_conf_error(section, config_setting_name(list),
                         "element %d must be a group { ... }", i);
    if (config_setting_type(e) != CONFIG_TYPE_GROUP)
      conf_mark_set(e, CONF_READ);
  }
}

static void
report_members(struct egw_conf *section)
{
  int n = config_setting_length(section->group);

  for (int i = 0; i < n; i++) {
    config_setting_t *m = config_setting_get_elem(section->group, (unsigned)i);
    const char *name = config_setting_name(m), *meant;

    if (conf_mark_of(m) == CONF_READ_LIST)
      report_elements(section, m);
    if (conf_mark_of(m) != CONF_UNREAD)
      continue;
    meant = suggestion(section, name);
    if (meant != NULL && strcmp(meant, name) != 0)
      (void)egw_conf_error(section, name, "unknown option; did you mean \"%s\"?", meant);
    else if (!section->rejected)
      (void)egw_conf_error(section, name, "unknown option");
  }
}

void
conf_report_unknown(struct conf_file *file, bool all)
{
  for (struct egw_conf *s = file->sections; s != NULL; s = s->next) {
    if (s->reported || (s->open && !all))
      continue;
    s->reported = true;
    report_members(s);
  }
}

void
conf_check_unknown(struct conf *conf)
{
  conf_report_unknown(conf->file, true);
}
