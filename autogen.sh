#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes ./configure from configure.ac.
set -e
cd "$(dirname "$0")"
mkdir -p build-aux m4
exec autoreconf --install --force
