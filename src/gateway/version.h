/* SPDX-License-Identifier: MIT */
/* --version: the program's version and those of the libraries it runs with. */
#ifndef GATEWAY_VERSION_H
#define GATEWAY_VERSION_H

#include <stdio.h>

void version_print(FILE *file);

#endif
