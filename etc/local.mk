# SPDX-License-Identifier: MIT
# The demo chain, served when no node is named and none is found.
dist_pkgdata_DATA = etc/demo.io
EXTRA_DIST += t/tools/demo-token.sol t/tools/make-demo-chain.py

# Examples of the configuration.
dist_doc_DATA = etc/ethrpc-gw.conf etc/minimal.conf

# The systemd unit; where the program is, is only known now.
EXTRA_DIST += etc/ethrpc-gw.service.in
systemdsystemunit_DATA = etc/ethrpc-gw.service
CLEANFILES += etc/ethrpc-gw.service
etc/ethrpc-gw.service: etc/ethrpc-gw.service.in Makefile
	@$(MKDIR_P) etc
	$(AM_V_GEN)$(SED) -e 's|@bindir[@]|$(bindir)|g' -e 's|@libdir[@]|$(libdir)|g' \
	  -e 's|@sysconfdir[@]|$(sysconfdir)|g' -e 's|@unit_type[@]|$(unit_type)|g' \
	  $(srcdir)/etc/ethrpc-gw.service.in > $@.tmp && mv $@.tmp $@
