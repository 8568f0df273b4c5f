/* SPDX-License-Identifier: MIT */
/* Values of options: reading them from text, checking their range, putting them where an
 * option table says, writing them in the file's syntax. */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include <stdio.h>
#include <ethrpc-gw/plugin.h>

/* A value of any type but SECTION. Strings are borrowed from where they were read. */
union value {
  bool flag;              /* BOOL */
  int64_t number;         /* INT */
  uint64_t amount;        /* SIZE, DURATION */
  double ratio;           /* RATIO */
  const char *text;       /* STRING, SECRET */
  int choice;             /* ENUM */
  struct egw_strings list; /* LIST */
};

#define VALUE_WHY 256     /* room for a reason */

/* Reads `text` as a value of the option's type, and checks its range. 0, or -1 with a reason
 * in `why` (VALUE_WHY bytes), which shows the right form and quotes no secret. Not for LIST
 * and SECTION. */
int value_parse(const struct egw_option *option, const char *text, union value *out, char *why)
    EGW_MUST_CHECK;

/* The range of a value that was read otherwise. 0, or -1 with a reason. */
int value_check(const struct egw_option *option, const union value *value,
                char *why) EGW_MUST_CHECK;

/* Puts a value into the field of `target` that the option describes. */
void value_store(const struct egw_option *option, const union value *value, void *target);

/* How a value of this type is written in the file: "true or false", ... for messages. */
const char *value_form(enum egw_option_type type);

/* The word for a type, as shown by --dump-plugin: "bool", "int", ... */
const char *value_type_name(enum egw_option_type type);

/* Appends the value of the option's field at `field` in the file's syntax; secrets as "***".
 * Not for a text that is NULL, nor SECTION. 0 or -1. */
int value_print(struct egw_buf *out, const struct egw_option *option, const void *field)
    EGW_MUST_CHECK;

/* Appends `text` as a string of the file, with its quotes. 0 or -1. */
int value_quote(struct egw_buf *out, const char *text) EGW_MUST_CHECK;

/* Writes all of `text` to a blocking descriptor. 0 or -1. */
int value_write(int fd, struct egw_slice text) EGW_MUST_CHECK;

#endif
