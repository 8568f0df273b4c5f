# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/auth/auth.so
auth_parts = \
	plugins/middleware/auth/base64.c \
	plugins/middleware/auth/base64.h \
	plugins/middleware/auth/credential.c \
	plugins/middleware/auth/credential.h \
	plugins/middleware/auth/grant.c \
	plugins/middleware/auth/grant.h \
	plugins/middleware/auth/issuer.c \
	plugins/middleware/auth/issuer.h \
	plugins/middleware/auth/jwt-key.c \
	plugins/middleware/auth/jwt.c \
	plugins/middleware/auth/jwt.h \
	plugins/middleware/auth/keyfile.c \
	plugins/middleware/auth/keyfile.h \
	plugins/middleware/auth/keys.c \
	plugins/middleware/auth/keys.h \
	plugins/middleware/auth/tokens.c \
	plugins/middleware/auth/tokens.h \
	$(NULL)
plugins_middleware_auth_auth_so_SOURCES = \
	plugins/middleware/auth/auth.c \
	plugins/middleware/auth/auth.h \
	plugins/middleware/auth/config.c \
	$(auth_parts)
plugins_middleware_auth_auth_so_CFLAGS = $(plugin_cflags)
plugins_middleware_auth_auth_so_LDFLAGS = $(plugin_ldflags)
plugins_middleware_auth_auth_so_LDADD = $(OPENSSL_LIBS)
dist_man_pods += plugins/middleware/auth/ethrpc-gw-auth.pod
