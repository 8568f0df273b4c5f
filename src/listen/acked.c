/* SPDX-License-Identifier: MIT */
/* A file of its own, since the kernel's struct tcp_info, which has the count, and the C
 * library's, which has not, can't be declared together. */
#include "listen/acked.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

bool
acked_bytes(int fd, uint64_t *bytes)
{
  struct tcp_info info;
  socklen_t len = sizeof info;

  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
      len < offsetof(struct tcp_info, tcpi_bytes_received))
    return false;
  *bytes = info.tcpi_bytes_acked;
  return true;
}
