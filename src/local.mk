# SPDX-License-Identifier: MIT
include src/base/local.mk
include src/rpc/local.mk
include src/conf/local.mk
include src/obs/local.mk
include src/worker/local.mk
include src/chain/local.mk
include src/upstream/local.mk
include src/head/local.mk
include src/push/local.mk
include src/listen/local.mk
include src/plugin/local.mk
include src/admin/local.mk
include src/gateway/local.mk

bin_PROGRAMS += ethrpc-gw
ethrpc_gw_SOURCES = src/main.c
# The whole library goes in, and its public functions out, since plugins call them.
ethrpc_gw_LDADD = $(WHOLE_BEGIN) src/libegw.a $(WHOLE_END) $(core_libs)
ethrpc_gw_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--dynamic-list=$(top_srcdir)/src/plugin/ethrpc-gw.syms
ethrpc_gw_DEPENDENCIES = src/libegw.a src/plugin/ethrpc-gw.syms

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = src/ethrpc-gw.pc
pkginclude_HEADERS = \
	include/ethrpc-gw/buf.h \
	include/ethrpc-gw/eth.h \
	include/ethrpc-gw/head.h \
	include/ethrpc-gw/json.h \
	include/ethrpc-gw/loop.h \
	include/ethrpc-gw/middleware.h \
	include/ethrpc-gw/plugin.h \
	include/ethrpc-gw/route.h \
	include/ethrpc-gw/transport.h \
	$(NULL)
nodist_pkginclude_HEADERS = include/ethrpc-gw/version.h
