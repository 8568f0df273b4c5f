/* SPDX-License-Identifier: MIT */
/* Notices to systemd. */
#include "config.h"
#include "gateway/notify.h"

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>

void
notify_ready(void)
{
  sd_notify(0, "READY=1");
}

void
notify_stopping(void)
{
  sd_notify(0, "STOPPING=1");
}
#else
void
notify_ready(void)
{
}

void
notify_stopping(void)
{
}
#endif
