/* SPDX-License-Identifier: MIT */
/* Finds and opens plugins. A plugin runs with all rights of the gateway, so a file that others
 * could have put there, or could replace, is not opened. */
#include "plugin/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef EGW_PLUGINDIR
#define EGW_PLUGINDIR "/usr/local/lib/ethrpc-gw"
#endif

EGW_PRINTF(3, 4) static void
say(char *why, size_t cap, const char *fmt, ...)
{
  va_list ap;

  va_start(ap, fmt);
  (void)vsnprintf(why, cap, fmt, ap);
  va_end(ap);
}

/* A program that stands in its build tree, with plugins/ beside it, uses that one's. */
static bool
build_tree(char *path, size_t cap)
{
  static const char probe[] = "/transport/ipc/ipc.so";
  char exe[PATH_MAX], *slash;
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  int len;

  if (n <= 0)
    return false;
  exe[n] = '\0';
  slash = strrchr(exe, '/');
  if (slash == NULL)
    return false;
  *slash = '\0';
  len = snprintf(path, cap, "%s/plugins%s", exe, probe);
  if (len < 0 || (size_t)len >= cap || access(path, R_OK) != 0)
    return false;
  path[(size_t)len - (sizeof probe - 1)] = '\0';
  return true;
}

int
loader_init(struct loader *loader, const char *path)
{
  const char *from_env = secure_getenv("EGW_PLUGIN_PATH");
  char beside[PATH_MAX];

  memset(loader, 0, sizeof *loader);
  if (path == NULL && from_env != NULL && from_env[0] != '\0')
    path = from_env;
  if (path == NULL && build_tree(beside, sizeof(beside)))
    path = beside;
  loader->path = strdup(path == NULL ? EGW_PLUGINDIR : path);
  return loader->path == NULL ? -1 : 0;
}

/* Leak reports of sanitizers and valgrind name functions by the code that is still mapped. */
static bool
keep_code(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#endif
#endif
  const char *preload = getenv("LD_PRELOAD");

  return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

static void
plugin_free(struct plugin *plugin)
{
  if (plugin == NULL)
    return;
  if (plugin->handle != NULL && !keep_code())
    (void)dlclose(plugin->handle);
  free(plugin->path);
  free(plugin);
}

void
loader_free(struct loader *loader)
{
  struct plugin *plugin;

  while ((plugin = loader->plugins) != NULL) {
    loader->plugins = plugin->next;
    plugin_free(plugin);
  }
  free(loader->path);
  loader->path = NULL;
}

/* --- who may write to it ----------------------------------------------------------------- */

/* A sticky directory (/tmp) lets others add files, but not replace ours. */
static bool
is_ours(const struct stat *st)
{
  if (st->st_uid != 0 && st->st_uid != geteuid())
    return false;
  if ((st->st_mode & (S_IWGRP | S_IWOTH)) == 0)
    return true;
  return S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0;
}

/* `path` is real: absolute, without links. 0, or -1 with a reason. */
static int
check_safe(const char *path, char *why, size_t cap)
{
  char part[PATH_MAX];
  struct stat st;
  size_t len = strlen(path);

  if (len >= sizeof part) {
    say(why, cap, "%s: the path is too long", path);
    return -1;
  }
  memcpy(part, path, len + 1);
  for (;;) {
    if (lstat(part[0] == '\0' ? "/" : part, &st) < 0) {
      say(why, cap, "%s: %s", part, strerror(errno));
      return -1;
    }
    if (strcmp(part, path) == 0 && !S_ISREG(st.st_mode)) {
      say(why, cap, "%s is not a file", path);
      return -1;
    }
    if (!is_ours(&st)) {
      say(why, cap, "%s: refused, since others than root and this user may write to %s", path,
          part[0] == '\0' ? "/" : part);
      return -1;
    }
    if (part[0] == '\0')
      return 0;
    *strrchr(part, '/') = '\0';
  }
}

/* --- where it is ------------------------------------------------------------------------- */

/* Below a directory of the path: installed, and as in a build tree. */
static const struct {
  const char *dir;
  bool own_dir;         /* NAME/NAME.so */
  unsigned type;        /* 0: any */
} places[] = {
  { "", false, 0 },
  { "middleware/", false, EGW_TYPE_MIDDLEWARE },
  { "transport/", false, EGW_TYPE_TRANSPORT },
  { "middleware/", true, EGW_TYPE_MIDDLEWARE },
  { "transport/", true, EGW_TYPE_TRANSPORT },
  { "example/", false, 0 },
};

/* The real path (malloc'ed) of NAME.so below the directory, or NULL. */
static char *
find_in(const char *dir, size_t len, enum egw_type type, const char *name)
{
  char path[PATH_MAX];

  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    int n;

    if (places[i].type != 0 && places[i].type != (unsigned)type)
      continue;
    n = snprintf(path, sizeof path, "%.*s/%s%s%s%s.so", (int)len, dir, places[i].dir,
                 places[i].own_dir ? name : "", places[i].own_dir ? "/" : "", name);
    if (n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0)
      return realpath(path, NULL);
  }
  return NULL;
}

static bool
is_plain_name(const char *name)
{
  size_t len = strlen(name);

  return len > 0 && len <= 64 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static char *
find(const struct loader *loader, enum egw_type type, const char *name, char *why, size_t cap)
{
  char *path = NULL;

  if (strchr(name, '/') != NULL) {
    path = realpath(name, NULL);
    if (path == NULL)
      say(why, cap, "%s: %s", name, strerror(errno));
    return path;
  }
  if (!is_plain_name(name)) {
    say(why, cap, "a plugin's name has a-z, 0-9 and '-' only");
    return NULL;
  }
  for (const char *p = loader->path; *p != '\0' && path == NULL;) {
    size_t len = strcspn(p, ":");

    if (len > 0 && len < PATH_MAX)
      path = find_in(p, len, type, name);
    p += len + (p[len] == ':' ? 1 : 0);
  }
  if (path == NULL)
    say(why, cap, "there is no plugin \"%s\" in %s", name, loader->path);
  return path;
}

/* --- opening ----------------------------------------------------------------------------- */

/* Why dlopen() failed. An undefined symbol often means a plugin for a newer gateway: its
 * descriptor can be read if functions are bound lazily. */
static void
say_dlerror(const char *path, char *why, size_t cap)
{
  char reason[512];
  const char *error = dlerror(), *at;
  const struct egw_plugin *const *entry = NULL;
  void *handle;

  (void)snprintf(reason, sizeof reason, "%s", error == NULL ? "unknown error" : error);
  at = strstr(reason, ": ");
  at = at == NULL ? reason : at + 2;
  if (strstr(reason, "undefined symbol") == NULL) {
    say(why, cap, "%s: %s", path, at);
    return;
  }
  handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (handle != NULL)
    entry = dlsym(handle, "egw_plugin_entry");
  if (entry != NULL && *entry != NULL && (*entry)->magic == EGW_MAGIC &&
      (*entry)->abi_minor > EGW_ABI_MINOR)
    say(why, cap, "%s: %s; it needs ethrpc-gw >= ABI %u.%u, this one has %u.%u", path, at,
        (*entry)->abi_major, (*entry)->abi_minor, EGW_ABI_MAJOR, EGW_ABI_MINOR);
  else
    say(why, cap, "%s: %s; this ethrpc-gw has ABI %u.%u", path, at, EGW_ABI_MAJOR,
        EGW_ABI_MINOR);
  if (handle != NULL)
    (void)dlclose(handle);
}

/* Copies what the plugin has of its descriptor; the rest stays zero. */
static void
copy_descriptor(struct plugin *plugin, const struct egw_plugin *head)
{
  size_t known = head->type == EGW_TYPE_MIDDLEWARE ? sizeof plugin->middleware
                                                   : sizeof plugin->transport;

  memcpy(&plugin->middleware, head, head->struct_size < known ? head->struct_size : known);
  plugin->head = &plugin->middleware.plugin;
  for (const struct egw_metric *m = head->metrics; m != NULL && m->kind != EGW_METRIC_END; m++)
    plugin->metric_count++;
}

static int
open_plugin(struct plugin *plugin, enum egw_type type, char *why, size_t cap)
{
  const struct egw_plugin *const *entry;
  char reason[512];

  if (check_safe(plugin->path, why, cap) < 0)
    return -1;
  plugin->handle = dlopen(plugin->path, RTLD_NOW | RTLD_LOCAL);
  if (plugin->handle == NULL) {
    say_dlerror(plugin->path, why, cap);
    return -1;
  }
  entry = dlsym(plugin->handle, "egw_plugin_entry");
  if (entry == NULL) {
    say(why, cap, "%s: it is no ethrpc-gw plugin (no symbol egw_plugin_entry)", plugin->path);
    return -1;
  }
  if (plugin_check(*entry, type, reason, sizeof reason) != NULL) {
    say(why, cap, "%s: %s", plugin->path, reason);
    return -1;
  }
  copy_descriptor(plugin, *entry);
  return 0;
}

/* By file: the name asked for may be a path. */
static const struct plugin *
loaded(const struct loader *loader, const char *path, uint32_t type)
{
  for (const struct plugin *p = loader->plugins; p != NULL; p = p->next)
    if (strcmp(p->path, path) == 0 && p->head->type == type)
      return p;
  return NULL;
}

const struct plugin *
loader_get(struct loader *loader, enum egw_type type, const char *name, char *why, size_t cap)
{
  char *path = find(loader, type, name, why, cap);
  const struct plugin *known = path == NULL ? NULL : loaded(loader, path, (uint32_t)type);
  struct plugin *plugin;

  if (path == NULL || known != NULL) {
    free(path);
    return known;
  }
  plugin = calloc(1, sizeof *plugin);
  if (plugin == NULL) {
    free(path);
    say(why, cap, "out of memory");
    return NULL;
  }
  plugin->path = path;
  if (open_plugin(plugin, type, why, cap) < 0) {
    plugin_free(plugin);
    return NULL;
  }
  if (strchr(name, '/') == NULL && strcmp(name, plugin->head->name) != 0) {
    say(why, cap, "%s: it calls itself \"%s\"", plugin->path, plugin->head->name);
    plugin_free(plugin);
    return NULL;
  }
  plugin->next = loader->plugins;
  loader->plugins = plugin;
  egw_log(EGW_DEBUG, "plugin", "loaded %s %s from %s", plugin->head->name,
          plugin->head->version, plugin->path);
  return plugin;
}

/* --- transports by scheme ---------------------------------------------------------------- */

static bool
has_scheme(const char *schemes, const char *scheme)
{
  size_t len = strlen(scheme);

  while (*schemes != '\0') {
    size_t n = strcspn(schemes, " ");

    if (n == len && memcmp(schemes, scheme, n) == 0)
      return true;
    schemes += n + (schemes[n] == ' ' ? 1 : 0);
  }
  return false;
}

const struct plugin *
loader_transport(struct loader *loader, const char *scheme, char *why, size_t cap)
{
  static const char *const known[][2] = { { "https", "http" }, { "wss", "ws" } };
  const char *name = scheme;
  const struct plugin *plugin;

  for (plugin = loader->plugins; plugin != NULL; plugin = plugin->next)
    if (plugin->head->type == EGW_TYPE_TRANSPORT &&
        has_scheme(plugin->transport.schemes, scheme))
      return plugin;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strcmp(scheme, known[i][0]) == 0)
      name = known[i][1];
  plugin = loader_get(loader, EGW_TYPE_TRANSPORT, name, why, cap);
  if (plugin != NULL && !has_scheme(plugin->transport.schemes, scheme)) {
    say(why, cap, "%s: it does not serve %s:// but \"%s\"", plugin->path, scheme,
        plugin->transport.schemes);
    return NULL;
  }
  return plugin;
}
