#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The admin listener: /health, /ready, /metrics, /status; and what it does not serve."""
import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
from clients import HttpClient, Reply, request
from fakenode import Node
from gateway import Gateway, has_transport, need_program

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(r"^(%s)(\{%s(?:,%s)*\})? ([+-]?(?:[0-9.]+(?:e[+-]?[0-9]+)?|Inf|NaN))$"
                    % (NAME, LABEL, LABEL))


def check_metrics(text):
    """Prometheus text format 0.0.4, strictly; {series: value}."""
    tap.check(text.endswith("\n"), "the last line has an end")
    types, series, family, helped = {}, {}, None, None
    for line in text[:-1].split("\n"):
        match = re.match(r"^# HELP (%s) (.+)$" % NAME, line)
        if match:
            tap.check(match.group(1) not in types, "family twice: " + line)
            helped = match.group(1)
            continue
        match = re.match(r"^# TYPE (%s) (counter|gauge|histogram)$" % NAME, line)
        if match:
            family = match.group(1)
            tap.eq(helped, family, "HELP before TYPE")
            types[family] = match.group(2)
            tap.eq(family.endswith("_total"), types[family] == "counter",
                   "suffix of " + family)
            continue
        match = SAMPLE.match(line)
        tap.check(match, "line: %r" % line)
        name = match.group(1)
        base = re.sub("_(bucket|sum|count)$", "",
                      name) if types.get(family) == "histogram" else name
        tap.eq(base, family, "family of %r" % line)
        key = name + (match.group(2) or "")
        tap.check(key not in series, "series twice: " + key)
        series[key] = float(match.group(3))
    for name, kind in types.items():
        if kind == "histogram":
            check_histogram(series, name)
    return series


def check_histogram(series, name):
    groups = {}
    for key, value in series.items():
        match = re.match(r'^%s_bucket\{(.*?),?le="([^"]+)"\}$' % name, key)
        if match:
            groups.setdefault(match.group(1), []).append((float(match.group(2)), value))
    tap.check(groups, "buckets of " + name)
    for labels, buckets in groups.items():
        bounds = [b for b, _ in buckets]
        counts = [c for _, c in buckets]
        tap.eq(bounds, sorted(bounds), "bounds of " + name)
        tap.eq(counts, sorted(counts), "counts of " + name)
        tap.eq(bounds[-1], float("inf"), "last bound")
        tap.eq(series["%s_count{%s}" % (name, labels)], counts[-1], "count")
        tap.check("%s_sum{%s}" % (name, labels) in series, "sum")


def scrape(gw):
    status, body = gw.admin("/metrics")
    tap.eq(status, 200, "status")
    return check_metrics(body.decode("utf-8"))


def health(gw):
    tap.eq(gw.admin("/health"), (200, b"ok\n"), "/health")


def ready(gw, node):
    tap.eq(gw.admin("/ready")[0], 200, "/ready")
    node.stop()
    with gw.http() as client:
        tap.eventually(lambda: (client.call("eth_call", [1]), gw.admin("/ready"))[1][0] == 503,
                       6, "/ready with the only node down")
        tap.contains(gw.admin("/ready")[1], b"upstream", "reason")
        tap.eq(gw.admin("/health")[0], 200, "/health with the node down")
        node.listen()
        tap.eventually(lambda: (client.call("eth_call", [1]), gw.admin("/ready"))[1][0] == 200,
                       8, "/ready with the node back")


def metrics(gw):
    before = scrape(gw)
    with gw.http() as http, gw.ws() as ws, gw.ipc() as ipc:
        for client in (http, ws, ipc):
            client.call("eth_chainId").ok()
        ws.batch([request("eth_call", [i], i) for i in range(4)])
        http.call("eth_noSuchMethod", []).refused()
        ipc.call("admin_peers", []).refused()
        with gw.http() as other:
            other.open().send(
                b"POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n")
            tap.eq(other.response().status, 403, "a foreign host")
        for kind in ("http", "ws", "ipc"):
            tap.eventually(
                lambda k=kind: scrape(gw)['ethrpcgw_sessions{client="%s"}' % k] == 1, 3,
                "open sessions of " + kind)
        after = scrape(gw)

    def grew(series):
        return after.get(series, 0) - before.get(series, 0)

    tap.eq(grew('ethrpcgw_calls_total{method="eth_chainId",outcome="result"}'), 3,
           "eth_chainId")
    tap.eq(grew('ethrpcgw_calls_total{method="eth_call",outcome="result"}'), 4, "eth_call")
    tap.eq(grew('ethrpcgw_calls_total{method="admin_peers",outcome="denied"}'), 1, "denied")
    tap.check(not any("noSuchMethod" in s for s in after), "clients can't make series")
    tap.eq(sum(grew('ethrpcgw_calls_total{method="unknown",outcome="%s"}' % o)
               for o in ("error", "denied", "fault", "result")), 1, "unknown method")
    tap.eq(grew('ethrpcgw_refused_total{reason="host"}'), 1, "refused by host")
    tap.eq(grew('ethrpcgw_call_duration_seconds_count{client="ws"}'), 5, "durations")
    tap.at_least(
        grew('ethrpcgw_upstream_requests_total{network="main",upstream="n0",outcome="ok"}'), 7,
        "requests to the node")
    tap.eq(after['ethrpcgw_upstream_up{network="main",upstream="n0"}'], 1, "up")
    tap.check(any(s.startswith("ethrpcgw_build_info{version=") for s in after), "build info")
    tap.at_least(after["process_resident_memory_bytes"], 1 << 20, "memory")
    tap.eq(grew('ethrpcgw_methods_denied_total{network="main",instance="methods"}') >= 1, True,
           "a metric of a stage")
    tap.eventually(lambda: scrape(gw)["ethrpcgw_queue_bytes"] == 0, 3, "queues are empty")
    tap.eq(scrape(gw)["ethrpcgw_calls_in_flight"], 0, "calls in flight")


def status(gw):
    page = gw.status_page()
    tap.check(re.match(r"^\d+\.\d+\.\d+", page["version"]), "version")
    tap.eq(page["state"], "ready", "state")
    for library in ("libuv", "libmicrohttpd", "libwebsockets", "openssl", "cjson"):
        tap.check(page["libraries"][library], library)
    tap.eq(len(page["workers"]), 2, "workers")
    ports = {x["name"]: x.get("port") for x in page["listeners"]}
    tap.eq(ports["rpc"], gw.port, "port of the listener")
    tap.eq(ports["admin"], gw.ports["admin"], "port of the admin listener")
    tap.eq(page["networks"][0]["name"], "main", "network")
    node = page["networks"][0]["upstreams"][0]
    tap.eq((node["name"], node["state"], node["in_flight"]), ("n0", "up", 0), "upstream")
    tap.lacks(repr(page), "127.0.0.1:%d" % the_node.port, "status page")
    tap.at_least(page["memory"]["resident_bytes"], 1 << 20, "memory")
    tap.at_least(page["descriptors"]["open"], 5, "descriptors")
    tap.at_least(page["uptime_seconds"], 0, "uptime")


def others(gw):
    tap.eq(gw.admin("/nothing")[0], 404, "unknown path")
    tap.eq(gw.admin("/")[0], 404, "/")
    for method in ("POST", "PUT", "DELETE"):
        tap.eq(gw.admin("/health", method)[0], 405, method)
    tap.eq(gw.admin("/metrics", "HEAD"), (200, b""), "HEAD")
    with HttpClient(gw.ports["admin"]) as client:
        response = client.request(request("eth_chainId"))
        tap.among(response.status, (404, 405), "JSON-RPC on the admin listener")
        response = client.request(method="GET", path="/health")
        tap.eq(response.status, 200, "the connection is in sync")
        response = client.request(method="GET", path="/health?x=1")
        tap.eq(response.status, 200, "with a query")
    with gw.http() as client:
        for path in ("/metrics", "/status", "/health"):
            response = client.request(method="GET", path=path)
            tap.lacks(response.body, b"ethrpcgw_", "pages on the RPC listener")
            tap.lacks(response.body, b"libuv", "pages on the RPC listener")
        Reply(client.raw(request("eth_chainId"))).ok()
    with HttpClient(gw.ports["admin"]) as client:
        client.open().send(b"GET /status HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        tap.among(client.response("GET").status, (400, 403, 421), "foreign Host")


need_program()
tap.watchdog(60)
folder = tempfile.mkdtemp(prefix="egw-admin-")
the_node = Node("http" if has_transport("http") else "ws", None, folder, "n0")
gateway = Gateway([{"name": "n0", "url": the_node.url()}])
tap.run("/health", health, gateway)
tap.run("/metrics", metrics, gateway)
tap.run("/status", status, gateway)
tap.run("other paths and methods", others, gateway)
tap.run("/ready", ready, gateway, the_node)
tap.run("the gateway ends properly", gateway.stop)
the_node.close()
shutil.rmtree(folder, ignore_errors=True)
tap.done()
