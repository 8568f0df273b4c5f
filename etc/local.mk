# SPDX-License-Identifier: MIT
# The demo chain, served when no node is named and none is found.
dist_pkgdata_DATA = etc/demo.io
EXTRA_DIST += t/tools/demo-token.sol t/tools/make-demo-chain.py

# Examples of the configuration.
dist_doc_DATA = etc/ethrpc-gw.conf etc/minimal.conf
