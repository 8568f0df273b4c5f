/* SPDX-License-Identifier: MIT */
/* Loads plugins: finds NAME.so, checks the descriptor, keeps each once. Main thread.
 *
 * Where NAME is looked for, in each directory of the path: DIR/NAME.so,
 * DIR/middleware/NAME.so, DIR/transport/NAME.so, and as in a build tree
 * DIR/middleware/NAME/NAME.so, DIR/transport/NAME/NAME.so, DIR/example/NAME.so. A NAME with a
 * '/' is a file. A file, or a directory on the way, that others may write to is refused unless
 * it belongs to a build tree of the same user (checked by owner: root or the effective uid;
 * not group- or other-writable, sticky directories excepted). */
#ifndef PLUGIN_LOADER_H
#define PLUGIN_LOADER_H

#include <ethrpc-gw/middleware.h>
#include <ethrpc-gw/transport.h>

struct plugin {
  const struct egw_plugin *head;        /* = &middleware.plugin or &transport.plugin below */
  union {
    struct egw_middleware
        middleware; /* the plugin's descriptor, copied up to its struct_size; */
    struct egw_transport transport;     /* members it does not have are zero */
  };
  unsigned metric_count;
  char *path;
  void *handle;
  struct plugin *next;
};

struct loader {
  char *path;                           /* directories joined by ':' */
  struct plugin *plugins;
};

/* path: NULL for the default: $EGW_PLUGIN_PATH, else plugins/ beside the program (a build
 * tree), else the compiled-in directory. */
int loader_init(struct loader *loader, const char *path) EGW_MUST_CHECK;
/* Closes all plugins (not under sanitizers or valgrind, whose reports need the code). */
void loader_free(struct loader *loader);

/* The plugin of that type and name; loaded at first use. NULL, with the reason in `why` (cap
 * bytes): not found (naming where it was looked for), not a plugin (missing egw_plugin_entry),
 * wrong magic, another ABI major (naming both), wrong type, wrong struct size, missing
 * mandatory callback, unresolved symbol (names it, and "needs ethrpc-gw >= ABI 1.N" when its
 * minor is newer), bad option or metric table, a GUARD that does not declare every kind. */
const struct plugin *loader_get(struct loader *loader, enum egw_type type, const char *name,
                                char *why, size_t cap);

/* The transport whose `schemes` has `scheme`: by the names of the built-in ones (http, https
 * -> http; ws, wss -> ws; ipc -> ipc; replay -> replay), else a plugin named as the scheme. */
const struct plugin *loader_transport(struct loader *loader, const char *scheme, char *why,
                                      size_t cap);

/* Checks a descriptor as loader_get() does after dlopen; for tests. NULL or a reason. */
const char *plugin_check(const struct egw_plugin *head, enum egw_type type, char *why,
                         size_t cap);

/* --dump-plugin: key=value lines about the plugin, its options, metrics and callbacks. */
int plugin_dump(const struct plugin *plugin, int fd);

#endif
