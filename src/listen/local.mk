# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/listen/acceptor.c \
	src/listen/acked.c \
	src/listen/acked.h \
	src/listen/door.h \
	src/listen/facts.c \
	src/listen/facts.h \
	src/listen/gate-names.c \
	src/listen/gate-policy.c \
	src/listen/gate.c \
	src/listen/gate.h \
	src/listen/hosts.c \
	src/listen/hosts.h \
	src/listen/http-reply.c \
	src/listen/http-request.c \
	src/listen/http-sweep.c \
	src/listen/http.c \
	src/listen/http.h \
	src/listen/limits.c \
	src/listen/limits.h \
	src/listen/linger.c \
	src/listen/linger.h \
	src/listen/listen.c \
	src/listen/listen.h \
	src/listen/parts.h \
	src/listen/proxies.c \
	src/listen/proxies.h \
	src/listen/refusal.c \
	src/listen/route.c \
	src/listen/route.h \
	src/listen/session.c \
	src/listen/session.h \
	src/listen/socket-unix.c \
	src/listen/sockets.c \
	src/listen/sockets.h \
	src/listen/tls-context.c \
	src/listen/tls.c \
	src/listen/tls.h \
	src/listen/visitor.c \
	$(NULL)

# WebSocket and IPC.
src_libegw_a_SOURCES += \
	src/listen/ipc-frame.c \
	src/listen/ipc-frame.h \
	src/listen/ipc-session.c \
	src/listen/ipc.c \
	src/listen/ipc.h \
	src/listen/stream.c \
	src/listen/stream.h \
	src/listen/ws-recv.c \
	src/listen/ws-send.c \
	src/listen/ws-session.c \
	src/listen/ws.c \
	src/listen/ws.h \
	$(NULL)
