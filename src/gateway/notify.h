/* SPDX-License-Identifier: MIT */
/* Notices to systemd (sd_notify(3)); nothing happens without it. Main thread. */
#ifndef GATEWAY_NOTIFY_H
#define GATEWAY_NOTIFY_H

void notify_ready(void);
void notify_stopping(void);

#endif
