#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests per second and added latency of the gateway beside nginx and HAProxy, in one run.

    make bench-proxy [BENCH_FLAGS="--rounds 5 --seconds 3 --write docs/benchmarks.md"]

A node answers; wrk asks it directly, through nginx, through HAProxy, and through ethrpc-gw over
an HTTP and over an IPC upstream. All servers share one processor, wrk has another one, each proxy
has one thread. The variants take turns in each round, and the table has medians of the rounds
with their lowest and highest values, and ratios to asking the node directly. The nodes are
bench/node (answers at once) and, where it is installed, anvil. Needs wrk, taskset; nginx, haproxy
and anvil are left out where they are missing.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

from peers import (BUILD, LOAD_CPU, Servers, free_port, listening, start_haproxy,
                   start_nginx)
from report import HAPROXY, NGINX, Report, WRK, need, options_of

WRK_SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [[%s]]
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("RESULT %%d %%d %%d %%d %%d %%d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), summary.bytes,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def start_node(servers, size):
    """bench/node: (port, ipc path)."""
    path = os.path.join(servers.dir, "node-%d.ipc" % size)
    process = servers.start([os.path.join(BUILD, "bench", "node"), "--ipc", path, "--bytes",
                             str(size)], stdout=subprocess.PIPE)
    port = int(re.match(rb"port=(\d+)", process.stdout.readline()).group(1))
    return port, path


def start_anvil(servers, program):
    path = os.path.join(servers.dir, "anvil.ipc")
    port = free_port()
    process = servers.start([program, "--port", str(port), "--ipc", path, "--silent",
                             "--timestamp", "1700000000"])
    listening(port, process)
    return port, path


def start_gateway(servers, url, extra=()):
    """ethrpc-gw, one worker: (port, process)."""
    port = free_port()
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    process = servers.start([os.path.join(BUILD, "ethrpc-gw"), "--workers", "1", "--upstream", url,
                             "--listen", "127.0.0.1:%d" % port, "--log-level", "warn", *extra],
                            env=env)
    listening(port, process)
    return port, process


def variants(servers, node):
    """(name, port) of each way to the node."""
    port, path = node
    out = [("node, directly", port)]
    if shutil.which("nginx"):
        out.append(("nginx", start_nginx(servers, port)[0]))
    if shutil.which("haproxy"):
        out.append(("HAProxy", start_haproxy(servers, port)[0]))
    out.append(("ethrpc-gw, upstream over HTTP",
                start_gateway(servers, "http://127.0.0.1:%d" % port)[0]))
    out.append(("ethrpc-gw, upstream over IPC", start_gateway(servers, "ipc://" + path)[0]))
    return out


def wrk(servers, port, body, connections, seconds, tries=3):
    """One run. A slow node may still be busy with what an earlier run gave up: then again."""
    script = servers.config("ask.lua", WRK_SCRIPT % body)
    done = subprocess.run(["taskset", "-c", LOAD_CPU, "wrk", "-t1", "-c%d" % connections,
                           "-d%ds" % seconds, "--timeout", "30s", "-s", script,
                           "http://127.0.0.1:%d/" % port],
                          capture_output=True, text=True, timeout=seconds + 60, check=False)
    found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", done.stdout)
    if not found:
        raise SystemExit("wrk failed: " + done.stdout + done.stderr)
    requests, micros, p50, p99, _, errors = (int(x) for x in found.groups())
    if not errors and not requests and tries > 1:
        return wrk(servers, port, body, connections, seconds, tries - 1)
    if errors or not requests:
        raise SystemExit("errors on port %d: %s" % (port, done.stdout))
    return {"rate": requests / (micros / 1e6), "p50": p50, "p99": p99}


def measure(servers, ways, body, connections, options):
    """{way: {"rate": [...], "p50": [...], "p99": [...]}} over the rounds, variants taking turns."""
    out = {name: {"rate": [], "p50": [], "p99": []} for name, _ in ways}
    for name, port in ways if not options.quick else ():
        wrk(servers, port, body, min(16, connections), 1)
    for at in range(options.rounds):
        turn = ways[at % len(ways):] + ways[:at % len(ways)]
        for name, port in turn:
            many = wrk(servers, port, body, connections, options.seconds)
            single = many if options.quick else wrk(servers, port, body, 1,
                                                    max(2, options.seconds // 2))
            out[name]["rate"].append(many["rate"])
            out[name]["p50"].append(single["p50"])
            out[name]["p99"].append(single["p99"])
        print("  round %d of %d" % (at + 1, options.rounds), file=sys.stderr)
    return out


def table(title, result, connections):
    direct = result["node, directly"]
    rate0 = statistics.median(direct["rate"])
    p0 = statistics.median(direct["p50"])
    lines = ["### " + title, "",
             "| way | requests/s, %d connections (lowest-highest) | of direct | latency p50, 1 "
             "connection | added | p99 |" % connections, "|---|---:|---:|---:|---:|---:|"]
    for name, values in result.items():
        rate = statistics.median(values["rate"])
        p50 = statistics.median(values["p50"])
        lines.append("| %s | %s (%s-%s) | %.2f | %d us | %s | %d us |" % (
            name, thousands(rate), thousands(min(values["rate"])),
            thousands(max(values["rate"])), rate / rate0, p50,
            "" if values is direct else "%+d us" % (p50 - p0), statistics.median(values["p99"])))
    return "\n".join(lines) + "\n"


def thousands(value):
    return "{:,.0f}".format(value)


def anvil_program():
    return os.environ.get("EGW_ANVIL") or shutil.which("anvil")


def call(method, *params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)},
                      separators=(",", ":"))


def fill_anvil(port):
    """One block of 150 transfers."""
    import http.client
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(method, *params):
        conn.request("POST", "/", call(method, *params), {"Content-Type": "application/json"})
        return json.loads(conn.getresponse().read()).get("result")
    who = ask("eth_accounts")[0]
    ask("evm_setAutomine", False)
    for nonce in range(150):
        ask("eth_sendTransaction", {"from": who, "to": who, "value": "0x1", "gas": "0x5208",
                                    "nonce": hex(nonce)})
    ask("evm_mine")
    conn.close()


def part(report, title, result, connections):
    """A table, all of its figures, and two charts."""
    report.add(table(title, result, connections))
    rates = {name: values["rate"] for name, values in result.items()}
    report.raw(title + ", %d connections" % connections, rates, "requests/s")
    report.raw(title + ", one connection", {
        "%s, %s" % (name, key): values[key] for name, values in result.items()
        for key in ("p50", "p99")}, "us")
    name = "way-" + re.sub(r"\W+", "-", title.partition(" (")[0].lower())
    report.bars(name + "-rate", title + ": %d connections" % connections, "requests/s", rates)
    report.bars(name + "-p50", title + ": one connection", "latency, us, median of each round",
                {name: values["p50"] for name, values in result.items()})


def with_stand_in(report, options):
    jobs = [("bench/node, a small call (8-byte result)", 8, call("eth_chainId")),
            ("bench/node, a full block (300 kB result)", 300000,
             call("eth_getBlockByNumber", "0x10", True))]
    for title, size, body in jobs:
        print(title, file=sys.stderr)
        servers = Servers()
        try:
            ways = variants(servers, start_node(servers, size))
            part(report, title, measure(servers, ways, body, options.connections, options),
                 options.connections)
        finally:
            servers.close()


def with_anvil(report, options):
    servers = Servers()
    try:
        node = start_anvil(servers, anvil_program())
        fill_anvil(node[0])
        ways = variants(servers, node)
        for title, body, many in (
                ("anvil, a small call", call("eth_chainId"), options.connections),
                ("anvil, a full block of 150 transfers",
                 call("eth_getBlockByNumber", "0x1", True), 4)):
            print(title, file=sys.stderr)
            part(report, title, measure(servers, ways, body, many, options), many)
    finally:
        servers.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement")
    parser.add_argument("--connections", type=int, default=32)
    options = options_of(parser, {"rounds": 1, "seconds": 1, "connections": 1})
    need("wrk", "taskset")
    report = Report("proxy", "The way to the node", __doc__, options.write,
                    [NGINX, HAPROXY, WRK], options.quick)
    with_stand_in(report, options)
    if anvil_program() and not options.quick:
        with_anvil(report, options)
    report.close()


if __name__ == "__main__":
    main()
