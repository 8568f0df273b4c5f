# SPDX-License-Identifier: MIT
# The demo chain, served when no node is named and none is found.
pkgdata_DATA = etc/demo.io
EXTRA_DIST += etc/demo.io
