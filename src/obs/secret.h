/* SPDX-License-Identifier: MIT */
/* What the logger needs of the list of secrets (see log_secret() in obs/log.h). */
#ifndef OBS_SECRET_H
#define OBS_SECRET_H

#include <stddef.h>

/* Replaces secrets in `len` bytes in place and returns the new length, which is not larger. Any
 * thread. */
size_t secret_scrub(char *text, size_t len);

/* Upper bound of the bytes a secret may take in any of its forms; 0: there are none. */
size_t secret_longest(void);

#endif
