/* SPDX-License-Identifier: MIT */
/* Finding a node when none was named. */
#include "gateway/discover.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RETH_IPC "/tmp/reth.ipc"
#define NODE_PORT 8545

static bool
can_connect(const struct sockaddr *addr, socklen_t len)
{
  int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool yes = fd >= 0 && connect(fd, addr, len) == 0;

  if (fd >= 0)
    close(fd);
  return yes;
}

static bool
reth_ipc(void)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = RETH_IPC };

  return can_connect((const struct sockaddr *)&un, sizeof(un));
}

static bool
local_http(void)
{
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(NODE_PORT) };

  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return can_connect((const struct sockaddr *)&in, sizeof(in));
}

/* The source tree's etc/ relative to the program: in the tree, or one level up (build/). */
static bool
demo_beside_program(char *path, size_t cap)
{
  static const char *const tries[] = { "etc/demo.io", "../etc/demo.io" };
  char exe[512];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
  size_t i;
  char *slash;

  if (n <= 0)
    return false;
  exe[n] = '\0';
  slash = strrchr(exe, '/');
  if (slash == NULL)
    return false;
  *slash = '\0';
  for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
    if (snprintf(path, cap, "%s/%s", exe, tries[i]) < (int)cap && access(path, R_OK) == 0)
      return true;
  return false;
}

static bool
demo_file(char *path, size_t cap)
{
  const char *given = getenv("EGW_DEMO");

  if (given != NULL)
    return snprintf(path, cap, "%s", given) < (int)cap && access(path, R_OK) == 0;
  if (demo_beside_program(path, cap))
    return true;
  return snprintf(path, cap, "%s/demo.io", EGW_DATADIR) < (int)cap && access(path, R_OK) == 0;
}

const char *
discover_node(char *url, size_t cap)
{
  char path[600];

  if (getenv("EGW_NO_DISCOVER") == NULL) {
    if (reth_ipc()) {
      snprintf(url, cap, "ipc://%s", RETH_IPC);
      return "found a node at " RETH_IPC;
    }
    if (local_http()) {
      snprintf(url, cap, "http://127.0.0.1:%d", NODE_PORT);
      return "found a node at http://127.0.0.1:8545";
    }
  }
  if (demo_file(path, sizeof(path)) && snprintf(url, cap, "replay:%s", path) < (int)cap)
    return "found no node (/tmp/reth.ipc, http://127.0.0.1:8545): serving the demo chain";
  return NULL;
}
