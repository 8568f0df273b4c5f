/* SPDX-License-Identifier: MIT */
/* The inside of conf/: the tree that libconfig made of the file, what has been read of it, the
 * messages, and the memory that lives as long as the configuration. */
#ifndef CONF_FILE_H
#define CONF_FILE_H

#include <libconfig.h>
#include "conf/value.h"
#include "conf/conf.h"

#define CONF_DEPTH_MAX 32     /* levels of groups and lists */
#define CONF_FILE_MAX (16u << 20)
#define SECTION_TABLES_MAX 8

struct conf_message {
  int line;                   /* 0: none */
  bool warning;
  char *text;                 /* without "file:line: " */
};

struct conf_file {
  char *name;                 /* of the file, or "command line" */
  config_t tree;
  struct conf_message *messages;
  size_t message_count, message_cap, error_count;
  bool no_memory;             /* something was lost: counts as an error */
  bool world_readable;        /* others may read the file */
  bool secret_warned;
  struct conf_block *blocks;  /* memory that ends with the configuration */
  struct egw_conf *sections;  /* all that were asked for */
  const struct conf *conf;    /* what became of it; NULL before that is read */
};

/* A group of the file and what is known about it. Which of its members have been read is
 * marked at the members, in libconfig's hooks: a section for a group, else one of conf_mark.
 */
struct egw_conf {
  struct conf_file *file;
  config_setting_t *group;    /* NULL: nothing is given, all options have their defaults */
  const struct egw_option *tables[SECTION_TABLES_MAX]; /* it was read by: for suggestions */
  unsigned table_count;
  bool open;                  /* a plugin may read more of it later */
  bool rejected;              /* its plugin was refused: nobody can tell what belongs in it */
  bool reported;              /* its unread members have been reported */
  struct egw_conf *next;
};

enum conf_mark { CONF_UNREAD, CONF_READ, CONF_READ_LIST, CONF_READ_SECRET };

enum conf_mark conf_mark_of(const config_setting_t *setting);
void conf_mark_set(config_setting_t *setting, enum conf_mark mark);

/* Whatever comes of it, the member counts as read, with all that is in it: one message about
 * it is enough. */
void conf_mark_read(struct egw_conf *section, config_setting_t *setting);

/* --- memory and messages: file.c --------------------------------------------------------- */

struct conf_file *conf_file_new(const char *name) EGW_MUST_CHECK;
void conf_file_free(struct conf_file *file);

/* Zeroed memory until conf_file_free(); NULL when memory is short (noted in the file). */
void *conf_memory(struct conf_file *file, size_t size) EGW_MUST_CHECK;
char *conf_copy(struct conf_file *file, const char *text) EGW_MUST_CHECK;
char *conf_printf(struct conf_file *file, const char *fmt, ...)
    EGW_PRINTF(2, 3) EGW_MUST_CHECK;

/* Adds a message; line 0: none. */
void conf_message(struct conf_file *file, bool warning, int line, const char *fmt, ...)
    EGW_PRINTF(4, 5);

/* Registers a secret with the log. */
void conf_secret(struct conf_file *file, const char *secret);

/* Registers what of an upstream's URL may be a secret; true when there is anything of the
 * kind. */
struct egw_url;
bool conf_url_secrets(struct conf_file *file, const struct egw_url *url);

/* --- the text before libconfig reads it: text.c ------------------------------------------ */

/* Reports what libconfig would take without a word: integers that it cuts (replaced by 0),
 * strings over several lines, @include, NUL bytes, deep nesting. False: do not parse it. */
bool conf_text_check(struct conf_file *file, char *text, size_t len);

/* --- sections: section.c ----------------------------------------------------------------- */

/* The section of a group; the same one each time. NULL when memory is short. */
struct egw_conf *conf_section_of(struct conf_file *file, config_setting_t *group);

/* A section in which nothing is given. */
struct egw_conf *conf_section_empty(struct conf_file *file);

/* The member `key`, or NULL. */
config_setting_t *conf_member(const struct egw_conf *section, const char *key);

/* Whether `key` is missing or an empty list; anything else is reported where it is read. */
bool conf_is_empty(const struct egw_conf *section, const char *key);

/* egw_conf_read(); keep: fields whose option is missing keep the value they have. */
int conf_read(struct egw_conf *section, const struct egw_option *options, void *target,
              bool keep);

/* Reads one option of a valid section into a value of its own (dump). Not for SECRET and
 * SECTION. False: it is not set and has no default. */
bool conf_peek(struct egw_conf *section, const struct egw_option *option, union value *value);

/* A secret stands in the file itself: warns once if others may read the file. */
void conf_secret_seen(struct egw_conf *section, const char *key);

/* --- unread keys: unknown.c -------------------------------------------------------------- */

/* Reports members that nobody has read: of sections that no plugin reads, or of all. */
void conf_report_unknown(struct conf_file *file, bool all);

/* --- the core's tables: schema.c, and what they are read into: read.c, listener.c,
 * network.c ------------------------------------------------------------------------------ */

extern const struct egw_option conf_top_options[], conf_log_options[], conf_listener_options[],
    conf_admin_options[], conf_limit_options[], conf_network_options[],
    conf_upstream_options[], conf_stage_options[];

/* An empty configuration; NULL when memory is short. */
struct conf *conf_new(const char *name) EGW_MUST_CHECK;

/* The whole tree into the structs, with all checks. */
void conf_read_all(struct conf *conf);
void conf_read_listeners(struct conf *conf, struct egw_conf *root,
                         const struct conf_limits *limits);
void conf_read_networks(struct conf *conf, struct egw_conf *root);

/* Names shown in logs and metrics. NULL, or a reason. */
const char *conf_bad_name(const char *name);

#endif
