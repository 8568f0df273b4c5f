/* SPDX-License-Identifier: MIT */
/* --version. */
#include "gateway/version.h"

#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <libconfig.h>
#include <libwebsockets.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <uv.h>
#include <ethrpc-gw/version.h>
#include "plugin/loader.h"

/* libcurl comes with the http transport, so that is where it is asked for. */
static void
print_curl(FILE *file)
{
  struct loader loader;
  const struct plugin *http;
  const char *(*curl_version)(void);
  char why[256];

  if (loader_init(&loader, NULL) < 0)
    return;
  http = loader_get(&loader, EGW_TYPE_TRANSPORT, "http", why, sizeof(why));
  if (http != NULL) {
    *(void **)&curl_version = dlsym(http->handle, "curl_version");
    fprintf(file, "  libcurl        %s\n", curl_version != NULL ? curl_version() : "unknown");
  } else {
    fprintf(file, "  libcurl        none (no http transport)\n");
  }
  loader_free(&loader);
}

void
version_print(FILE *file)
{
  fprintf(file, "ethrpc-gw %s (plugin ABI %d.%d)\n", EGW_VERSION, EGW_ABI_MAJOR, EGW_ABI_MINOR);
  fprintf(file, "  libuv          %s\n", uv_version_string());
  fprintf(file, "  libmicrohttpd  %s\n", MHD_get_version());
  fprintf(file, "  libwebsockets  %s\n", lws_get_library_version());
  print_curl(file);
  fprintf(file, "  cJSON          %s\n", cJSON_Version());
  fprintf(file, "  libconfig      %d.%d.%d\n", LIBCONFIG_VER_MAJOR, LIBCONFIG_VER_MINOR,
          LIBCONFIG_VER_REVISION);
  fprintf(file, "  OpenSSL        %s\n", OpenSSL_version(OPENSSL_VERSION));
}
