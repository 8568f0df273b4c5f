#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What arrays are worth: calls that share requests to a node over HTTP, and clients' own arrays.

    make bench-batch [BENCH_FLAGS="--rounds 5 --seconds 3"]

First small distinct calls on many connections: asked directly, through HAProxy, and through
ethrpc-gw over an HTTP upstream without and with the middleware `batch` (and over IPC). The node
answers at once; then the same with a node that takes a while for each call. Then one client's array
of 100 calls at 2 ms each, on a node that answers the members of an array one after the other.
The variants take turns; medians, with lowest and highest. Needs wrk and taskset, as bench/proxy.py.
"""
import argparse
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

import peers
from peers import BUILD, Servers, listening
from proxy import thousands
from report import HAPROXY, WRK, Report, need, options_of

DISTINCT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local n = 0
function request()
  n = n + 1
  return wrk.format(nil, nil, nil, string.format(
    '{"jsonrpc":"2.0","id":%d,"method":"eth_getBalance","params":["0x%040x","latest"]}', n, n))
end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), summary.bytes,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""

CONF = """workers = 1;
log = { level = "warn"; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = %d; } );
networks = ( { name = "main"; middleware = ( { use = "methods"; }%s );
               upstreams = ( { name = "node"; url = "%s"; } ); } );
"""

STAGE = ', { use = "batch"; %s }'


def start_node(servers, name, service_us=0):
    path = os.path.join(servers.dir, name + ".ipc")
    process = servers.start([os.path.join(BUILD, "bench", "node"), "--ipc", path, "--service-us",
                             str(service_us)], stdout=subprocess.PIPE)
    return int(re.match(rb"port=(\d+)", process.stdout.readline()).group(1)), path


def start_gateway(servers, url, stage=None):
    port = peers.free_port()
    conf = servers.config("gw-%d.conf" % port, CONF % (
        port, "" if stage is None else STAGE % stage, url))
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    listening(port, servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf], env=env))
    return port


def wrk(servers, port, connections, seconds, tries=3):
    """One run. On a busy machine a short one may pass without any answer: then once more."""
    script = servers.config("distinct.lua", DISTINCT)
    done = subprocess.run(["taskset", "-c", peers.LOAD_CPU, "wrk", "-t1", "-c%d" % connections,
                           "-d%ds" % seconds, "--timeout", "30s", "-s", script,
                           "http://127.0.0.1:%d/" % port],
                          capture_output=True, text=True, timeout=seconds + 60, check=False)
    found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", done.stdout)
    if not found:
        raise SystemExit("wrk failed: " + done.stdout + done.stderr)
    requests, micros, p50, p99, _, errors = (int(x) for x in found.groups())
    if not errors and not requests and tries > 1:
        return wrk(servers, port, connections, seconds, tries - 1)
    if errors or not requests:
        raise SystemExit("errors on port %d: %s" % (port, done.stdout))
    return requests / (micros / 1e6), p50, p99


def ways_to(servers, node, stage):
    port, path = node
    url = "http://127.0.0.1:%d" % port
    out = [("node, directly", port)]
    if shutil.which("haproxy"):
        out.append(("HAProxy", peers.start_haproxy(servers, port)[0]))
    out.append(("ethrpc-gw over HTTP, each call alone", start_gateway(servers, url)))
    out.append(("ethrpc-gw over HTTP, `batch`", start_gateway(servers, url, stage)))
    out.append(("ethrpc-gw over IPC", start_gateway(servers, "ipc://" + path)))
    return out


def load(report, options, service_us):
    servers = Servers()
    try:
        ways = ways_to(servers, start_node(servers, "node", service_us), options.stage)
        got = {name: [] for name, _ in ways}
        for _, port in ways if not options.quick else ():
            wrk(servers, port, options.connections, 1)
        for at in range(options.rounds):
            for name, port in ways[at % len(ways):] + ways[:at % len(ways)]:
                got[name].append(wrk(servers, port, options.connections, options.seconds))
    finally:
        servers.close()
    base = statistics.median(x[0] for x in got.get("HAProxy", got["node, directly"]))
    lines = ["### Small distinct calls, %d connections, %s" % (
        options.connections, "node answers at once" if not service_us
        else "node takes %d us for each" % service_us), "",
        "| way | requests/s (lowest-highest) | of HAProxy | p50 | p99 |", "|---|---:|---:|---:|---:|"]
    for name, runs in got.items():
        rates = [x[0] for x in runs]
        lines.append("| %s | %s (%s-%s) | %.2f | %d us | %d us |" % (
            name, thousands(statistics.median(rates)), thousands(min(rates)), thousands(max(rates)),
            statistics.median(rates) / base, statistics.median(x[1] for x in runs),
            statistics.median(x[2] for x in runs)))
    report.add("\n".join(lines))
    rates = {name: [x[0] for x in runs] for name, runs in got.items()}
    title = "small distinct calls, node takes %d us for each" % service_us
    report.raw(title, rates, "requests/s")
    report.bars("batch-%dus" % service_us, title.capitalize(), "requests/s", rates)


def ask_array(port, count):
    """Seconds for one array of `count` calls, on a new connection."""
    body = json.dumps([{"jsonrpc": "2.0", "id": i, "method": "eth_getBalance",
                        "params": ["0x%040x" % i, "latest"]} for i in range(count)])
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    began = time.monotonic()
    conn.request("POST", "/", body, {"Content-Type": "application/json"})
    answers = json.loads(conn.getresponse().read())
    took = time.monotonic() - began
    conn.close()
    if [x["id"] for x in answers] != list(range(count)) or any("result" not in x for x in answers):
        raise SystemExit("wrong answers on port %d" % port)
    return took


def arrays(report, options, count=100, service_us=2000):
    servers = Servers()
    try:
        ways = ways_to(servers, start_node(servers, "slow", service_us), options.stage)
        got = {name: [] for name, _ in ways}
        for _ in range(max(5, options.rounds) + 2):
            for name, port in ways:
                got[name].append(ask_array(port, count))
    finally:
        servers.close()
    direct = statistics.median(got["node, directly"])
    lines = ["### One array of %d calls, node takes %d us for each, one after the other" % (
        count, service_us), "", "| way | time (lowest-highest) | times as fast |", "|---|---:|---:|"]
    for name, runs in got.items():
        runs = [1000 * x for x in runs[2:]]
        lines.append("| %s | %.1f ms (%.1f-%.1f) | %.1f |" % (
            name, statistics.median(runs), min(runs), max(runs),
            1000 * direct / statistics.median(runs)))
    report.add("\n".join(lines))
    times = {name: [1000 * x for x in runs[2:]] for name, runs in got.items()}
    report.raw("one array of %d calls" % count, times, "ms")
    report.bars("batch-array", "One array of %d calls" % count, "ms", times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--service-us", default="0,100,2000", help="of the nodes, by commas")
    parser.add_argument("--stage", default="", help="options of the stage `batch`")
    parser.add_argument("--only", choices=["load", "arrays"])
    options = options_of(parser, {"rounds": 1, "seconds": 1, "connections": 4, "service_us": "100"})
    need("wrk", "taskset")
    report = Report("batch", "Calls that share requests", __doc__, options.write, [HAPROXY, WRK],
                    options.quick)
    if options.only != "arrays":
        for text in options.service_us.split(","):
            load(report, options, int(text))
    if options.only != "load":
        arrays(report, options)
    report.close()


if __name__ == "__main__":
    sys.exit(main())
