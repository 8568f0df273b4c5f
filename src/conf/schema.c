/* SPDX-License-Identifier: MIT */
/* The core's option tables: every key of the file that is not a plugin's. The manual page
 * ethrpc-gw.conf(5) and etc/ethrpc-gw.conf are tested against them. */
#include "conf/file.h"

#include <stddef.h>
#include <ethrpc-gw/plugin.h>

#define SECOND 1000
#define HOUR (3600 * SECOND)
#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static const char *const level_words[] = { "error", "warn", "info", "debug", "trace", NULL };
static const char *const explain_words[] = { "local", "all", "none", NULL };
static const char *const format_words[] = { "text", "json", NULL };

#define ROW(word, kind, structure, field, ...)                                              \
  { .name = (word), .type = (kind), .offset = offsetof(structure, field), __VA_ARGS__ }
#define PART(word, ...) { .name = (word), .type = EGW_OPT_SECTION, __VA_ARGS__ }

#define TOP(word, kind, field, ...) ROW(word, kind, struct conf, field, __VA_ARGS__)

const struct egw_option conf_top_options[] = {
  TOP("workers", EGW_OPT_INT, workers, .fallback = "0", .max = 256,
      .help = "Number of worker threads; 0: one for each processor, at most 8"),
  TOP("memory", EGW_OPT_SIZE, memory, .fallback = "512MiB", .min = MIB, .max = 1024 * GIB,
      .help = "Byte budget of all buffers together; beyond it new requests are refused"),
  TOP("drain_timeout", EGW_OPT_DURATION, drain_timeout, .fallback = "10s", .max = HOUR,
      .help = "How long calls in flight may finish after SIGTERM"),
  TOP("plugin_path", EGW_OPT_STRING, plugin_path,
      .help = "Directories of plugins, joined by ':'; default: where they were installed"),
  PART("log", .help = "What is logged, how and where"),
  PART("limits", .help = "Limits for all listeners"),
  PART("listen", .help = "Listeners: where clients come in"),
  PART("admin", .help = "Listener for metrics, health and status"),
  PART("networks", .help = "Networks: chains of stages and their upstreams"),
  EGW_OPTION_END
};

const struct egw_option conf_log_options[] = {
  TOP("level", EGW_OPT_ENUM, log_level, .fallback = "info", .choices = level_words,
      .help = "How much is logged"),
  TOP("format", EGW_OPT_ENUM, log_format, .fallback = "text", .choices = format_words,
      .help = "Form of a line: key=value text or JSON"),
  TOP("file", EGW_OPT_STRING, log_file,
      .help = "File the log is appended to; default: stderr"),
  EGW_OPTION_END
};

#define LIMIT(word, kind, low, high, default_text, text)                                    \
  ROW(#word, kind, struct conf_limits, word, .fallback = (default_text), .min = (low),      \
      .max = (high), .help = (text))

const struct egw_option conf_limit_options[] = {
  LIMIT(max_connections, EGW_OPT_INT, 1, 1000000, "10000", "Open connections of a listener"),
  LIMIT(max_connections_per_client, EGW_OPT_INT, 0, 1000000, NULL,
        "Open connections of one client address; 0: as many as the listener has"),
  LIMIT(max_request, EGW_OPT_SIZE, 1, GIB, "5MiB", "Bytes of one message of a client"),
  LIMIT(max_batch_items, EGW_OPT_INT, 1, 1000000, "1000", "Calls in one batch"),
  LIMIT(max_batch_reply, EGW_OPT_SIZE, 1, 16 * GIB, "25MiB",
        "Bytes of the answer to one batch"),
  LIMIT(max_reply, EGW_OPT_SIZE, 1, 16 * GIB, "256MiB", "Bytes of one answer to a client"),
  LIMIT(max_queue, EGW_OPT_SIZE, 1, 16 * GIB, "4MiB",
        "Bytes of output waiting in one session"),
  LIMIT(max_in_flight, EGW_OPT_INT, 1, 1000000, "256",
        "Calls of one session that run at a time; further ones wait"),
  LIMIT(max_subscriptions, EGW_OPT_INT, 0, 1000000, "128", "Subscriptions of one session"),
  LIMIT(head_timeout, EGW_OPT_DURATION, 1, HOUR, "5s", "Time for a whole request head"),
  LIMIT(body_timeout, EGW_OPT_DURATION, 1, HOUR, "20s", "Time for a whole request body"),
  LIMIT(handshake_timeout, EGW_OPT_DURATION, 1, HOUR, "5s", "Time for a TLS handshake"),
  LIMIT(idle_timeout, EGW_OPT_DURATION, 1, 24 * HOUR, "60s",
        "Time an HTTP connection may stay open without a request"),
  LIMIT(write_timeout, EGW_OPT_DURATION, 1, HOUR, "20s",
        "Time a client may take nothing of the output waiting for it"),
  LIMIT(ping_interval, EGW_OPT_DURATION, 0, HOUR, "30s",
        "Time between pings on a WebSocket; 0: none"),
  EGW_OPTION_END
};

#define LISTENER(word, kind, field, ...)                                                      \
  ROW(word, kind, struct conf_listener, field, __VA_ARGS__)

#define LISTENER_COMMON(port_text)                                                            \
  LISTENER("name", EGW_OPT_STRING, name,                                                      \
           .help = "Name in logs and rules; default: address and port, or the path"),         \
      LISTENER("address", EGW_OPT_STRING, address, .fallback = "127.0.0.1",                   \
               .help = "IP address to listen on"),                                            \
      LISTENER("port", EGW_OPT_INT, port, .fallback = (port_text), .max = 65535,              \
               .help = "Port to listen on; 0: any free one"),                                 \
      LISTENER("path", EGW_OPT_STRING, path,                                                  \
               .help = "Unix socket, instead of address and port"),                           \
      LISTENER("mode", EGW_OPT_STRING, mode, .fallback = "0600",                              \
               .help = "Permissions of the unix socket, octal"),                              \
      LISTENER("group", EGW_OPT_STRING, group, .help = "Group of the unix socket"),           \
      LISTENER(                                                                               \
          "uids", EGW_OPT_LIST, uids,                                                         \
          .help = "Users that may use the unix socket; default: the gateway's own and root"), \
      LISTENER("tls_certificate", EGW_OPT_STRING, tls_certificate,                            \
               .help = "PEM file with the certificate chain"),                                \
      LISTENER("tls_key", EGW_OPT_STRING, tls_key, .help = "PEM file with the private key"),  \
      LISTENER("hosts", EGW_OPT_LIST, hosts,                                                  \
               .help = "Further names allowed in the Host header; \"*\": any"),               \
      LISTENER("origins", EGW_OPT_LIST, origins,                                              \
               .help = "Origins of web pages that may call; \"*\": any"),                     \
      PART("limits", .help = "Limits of this listener")

const struct egw_option conf_listener_options[] = {
  LISTENER_COMMON("8645"),
  LISTENER("http", EGW_OPT_BOOL, http, .fallback = "true", .help = "Serve HTTP"),
  LISTENER("websocket", EGW_OPT_BOOL, websocket, .fallback = "true",
           .help = "Serve WebSocket"),
  LISTENER("key_in_path", EGW_OPT_BOOL, key_in_path, .fallback = "false",
           .help = "Paths may end in a client's key: /KEY, /NETWORK/KEY"),
  LISTENER("trusted_proxies", EGW_OPT_LIST, trusted_proxies,
           .help = "Addresses and networks of proxies that are believed whom they forward for"),
  LISTENER("explain", EGW_OPT_ENUM, explain, .fallback = "local", .choices = explain_words,
           .help = "Who may ask what happened to a call: local clients, all, or none"),
  EGW_OPTION_END
};

const struct egw_option conf_admin_options[] = { LISTENER_COMMON("8646"), EGW_OPTION_END };

#define NETWORK(word, kind, field, ...)                                                       \
  ROW(word, kind, struct conf_network, field, __VA_ARGS__)

static const char *const push_words[] = { "served", "passed", NULL };

const struct egw_option conf_network_options[] = {
  NETWORK("name", EGW_OPT_STRING, name, .fallback = "default",
          .help = "Name of the network; it is reached by the path /NAME"),
  NETWORK("chain_id", EGW_OPT_INT, chain_id, .fallback = "0", .max = INT64_MAX,
          .help = "Chain id; the network is also reached by the path /ID. 0: not given"),
  NETWORK("timeout", EGW_OPT_DURATION, timeout, .fallback = "30s", .min = 1, .max = HOUR,
          .help = "Time for a call, all attempts together"),
  NETWORK("attempt_timeout", EGW_OPT_DURATION, attempt_timeout, .fallback = "0", .max = HOUR,
          .help = "Time for one attempt at an upstream; 0: half of what is left while others are"
                  " untried"),
  NETWORK("stream_threshold", EGW_OPT_SIZE, stream_threshold, .fallback = "4MiB", .min = 1,
          .max = GIB, .help = "Replies longer than this are passed on in pieces"),
  NETWORK("poll_interval", EGW_OPT_DURATION, poll_interval, .fallback = "1s", .min = 10,
          .max = HOUR, .help = "How often a node that does not push its heads is asked for its"
                               " newest block, at most; half of the time between blocks if less"),
  NETWORK("max_subscriptions", EGW_OPT_INT, max_subscriptions, .fallback = "100000", .min = 1,
          .max = 10000000, .help = "Served subscriptions and filters of all clients together"),
  NETWORK("subscriptions", EGW_OPT_ENUM, subscriptions, .fallback = "served",
          .choices = push_words,
          .help = "Heads, logs, pending transactions and filters: served by the gateway itself, or"
                  " passed to one node"),
  PART("upstreams", .help = "The nodes"),
  PART("middleware", .help = "The stages a call passes; default: ( { use = \"methods\"; } )"),
  EGW_OPTION_END
};

#define UPSTREAM(word, kind, field, ...)                                                      \
  ROW(word, kind, struct conf_upstream, field, __VA_ARGS__)

const struct egw_option conf_upstream_options[] = {
  UPSTREAM("name", EGW_OPT_STRING, name,
           .help = "Name in logs and metrics; default: host and port, or the file's name"),
  UPSTREAM("url", EGW_OPT_STRING, url, .flags = EGW_OPTION_REQUIRED,
           .help = "Where the node is: http, https, ws, wss or ipc; \"file:PATH\" reads it"),
  UPSTREAM("ws", EGW_OPT_STRING, ws,
           .help = "The same node's WebSocket URL: an upstream more, called NAME-ws"),
  UPSTREAM("tier", EGW_OPT_INT, tier, .fallback = "0", .max = 1000,
           .help = "Upstreams of a higher tier are used when none of a lower one can be"),
  UPSTREAM("connect_timeout", EGW_OPT_DURATION, connect_timeout, .fallback = "3s", .min = 1,
           .max = HOUR, .help = "Time to connect"),
  UPSTREAM("timeout", EGW_OPT_DURATION, timeout, .fallback = "0", .max = HOUR,
           .help = "Time for one attempt here; 0: the network's attempt_timeout"),
  UPSTREAM("max_reply", EGW_OPT_SIZE, max_reply, .fallback = "256MiB", .min = 1,
           .max = 16 * GIB, .help = "Bytes of one reply of the node"),
  UPSTREAM("max_batch", EGW_OPT_INT, max_batch, .fallback = "100", .max = 10000,
           .help = "Calls of one array sent to the node, where a stage lets calls travel"
                   " together; 0: no arrays"),
  UPSTREAM("max_batch_bytes", EGW_OPT_SIZE, max_batch_bytes, .fallback = "1MiB", .min = 1,
           .max = GIB, .help = "Bytes of one array sent to the node"),
  EGW_OPTION_END
};

#define STAGE(word, kind, field, ...) ROW(word, kind, struct conf_stage, field, __VA_ARGS__)

const struct egw_option conf_stage_options[] = {
  STAGE("use", EGW_OPT_STRING, use, .flags = EGW_OPTION_REQUIRED, .help = "The plugin"),
  STAGE("name", EGW_OPT_STRING, name,
        .help = "Name of this instance in logs and metrics; default: the plugin's"),
  EGW_OPTION_END
};

static const struct conf_table tables[] = {
  { "", conf_top_options },
  { "log", conf_log_options },
  { "limits", conf_limit_options },
  { "listen", conf_listener_options },
  { "admin", conf_admin_options },
  { "networks", conf_network_options },
  { "upstreams", conf_upstream_options },
  { "middleware", conf_stage_options },
};

const struct conf_table *
conf_tables(size_t *count)
{
  *count = sizeof tables / sizeof tables[0];
  return tables;
}
