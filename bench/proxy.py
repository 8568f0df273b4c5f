#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests per second and added latency of the gateway beside nginx and HAProxy, in one run.

    make bench-proxy [BENCH_FLAGS="--rounds 5 --seconds 3 --write docs/benchmarks.md"]

A node answers; wrk asks it directly, through nginx, through HAProxy, and through ethrpc-gw over
an HTTP and over an IPC upstream. All servers share one processor, wrk has another one, each proxy
has one thread. The variants take turns in each round, and the table has medians of the rounds
with their lowest and highest values, and ratios to asking the node directly. The nodes are
bench/node (answers at once) and, where it is installed, anvil. Needs wrk, taskset; nginx, haproxy
and anvil are left out where they are missing. The last table is memory: idle, and with 10,000
idle connections.
"""
import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

from peers import (BUILD, HERE, LOAD_CPU, SERVER_CPU, Servers, free_port, listening,
                   start_haproxy, start_nginx)
from report import rest_of, version

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
                           "-d%ds" % seconds, "--timeout", "30s", "-s", script, "http://127.0.0.1:%d/" % port],
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
    for name, port in ways:
        wrk(servers, port, body, min(16, connections), 1)
    for at in range(options.rounds):
        turn = ways[at % len(ways):] + ways[:at % len(ways)]
        for name, port in turn:
            out[name]["rate"].append(wrk(servers, port, body, connections,
                                         options.seconds)["rate"])
            single = wrk(servers, port, body, 1, max(2, options.seconds // 2))
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


def rss(pid):
    """Resident bytes of a process."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) * 1024


def gateway_pid(process):
    """taskset becomes the program, so the process is the program."""
    return process.pid


def memory(servers, options):
    """Idle, and with many idle connections of each kind."""
    node = start_node(servers, 8)
    lines = ["### Memory of ethrpc-gw, one worker", "",
             "| state | resident | for each connection |", "|---|---:|---:|"]
    for kind in ("http", "ws", "ipc"):
        path = os.path.join(servers.dir, "gw-%s.ipc" % kind)
        conf = servers.config("idle-%s.conf" % kind, idle_conf(path, node[1], options.idle))
        process = start_idle_gateway(servers, conf)
        where = path if kind == "ipc" else idle_port(servers, process)
        time.sleep(0.3)
        before = rss(gateway_pid(process))
        if kind == "http":
            lines.append("| idle | %.1f MiB | |" % (before / 2 ** 20))
        holder = subprocess.Popen([os.path.join(BUILD, "bench", "idle"), kind, str(where),
                                   str(options.idle)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        if not holder.stdout.readline().startswith(b"ready"):
            raise SystemExit("bench/idle failed over " + kind)
        after = rss(gateway_pid(process))
        lines.append("| %s idle connections over %s | %.1f MiB | %.1f KiB |" % (
            thousands(options.idle), kind, after / 2 ** 20, (after - before) / options.idle / 1024))
        holder.stdin.close()
        holder.wait(30)
        servers.stop(process)
    return "\n".join(lines) + "\n"


def idle_conf(path, ipc, count):
    return """workers = 1;
limits = { max_connections = %d; max_connections_per_client = %d; idle_timeout = "10m"; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = 0; }, { path = "%s"; } );
networks = ( { name = "main"; upstreams = ( { name = "node"; url = "ipc://%s"; } ); } );
""" % (count + 100, count + 100, path, ipc)


def start_idle_gateway(servers, conf):
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    process = servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf], env=env)
    idle_port(servers, process)
    return process


def idle_port(servers, process):
    """The port that the gateway says it listens on."""
    log = os.path.join(servers.dir, "%d.log" % servers.processes.index(process))
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
        found = re.search(r"listening name=tcp address=\S+ port=(\d+)", text)
        if found and "ready" in text:
            return int(found.group(1))
        if process.poll() is not None:
            raise SystemExit("the gateway ended: " + text)
        time.sleep(0.05)
    raise SystemExit("the gateway does not get ready: " + text)


def heading(options):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    return """# Benchmarks

Written by the scripts in bench/, each by the command that its part names; run them to get your own
numbers (BENCH_FLAGS="--write docs/benchmarks.md" puts them here, `make bench` runs all). All values of a
table are from one run on one machine, in turns, so compare within a table.

Where the load average of a part is above about 1, other programs were on the machine's two processors: its
rates and latencies then say little (see how far lowest and highest are apart), its processor times more.

## The way to the node

`make bench-proxy`:

- Machine: %s, %d processors, Linux %s; the node and the proxy share processor %s, wrk has
  processor %s.
- ethrpc-gw with one worker and no cache; nginx %s with one worker and kept-alive upstream
  connections; HAProxy %s with one thread; wrk %s.
- %d rounds of %d s for each value: the median, and the lowest and highest.
- bench/node answers at once with a fixed result, so that what is measured is the way to the node.
%s
""" % (model.group(1) if model else platform.machine(), os.cpu_count(), platform.release(),
       SERVER_CPU, LOAD_CPU, version("nginx", "-v"), version("haproxy", "-v"), version("wrk", "-v"),
       options.rounds, options.seconds, "- %s\n" % options.note if options.note else "")


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


def run(options):
    text = heading(options)
    jobs = [("bench/node, a small call (8-byte result)", 8, call("eth_chainId")),
            ("bench/node, a full block (300 kB result)", 300000,
             call("eth_getBlockByNumber", "0x10", True))]
    for title, size, body in jobs:
        print(title, file=sys.stderr)
        servers = Servers()
        try:
            ways = variants(servers, start_node(servers, size))
            text += table(title, measure(servers, ways, body, options.connections, options),
                          options.connections) + "\n"
        finally:
            servers.close()
    if anvil_program():
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
                text += table(title, measure(servers, ways, body, many, options), many) + "\n"
        finally:
            servers.close()
    servers = Servers()
    try:
        text += memory(servers, options)
    finally:
        servers.close()
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--idle", type=int, default=10000, help="idle connections")
    parser.add_argument("--note", help="a line for the head of the file")
    parser.add_argument("--write", help="the file to write; default: standard output")
    options = parser.parse_args()
    for name in ("wrk", "taskset"):
        if not shutil.which(name):
            raise SystemExit("%s is needed" % name)
    text = run(options)
    if options.write:
        text = text.rstrip("\n") + "\n\n" + rest_of(options.write)
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(text.rstrip("\n") + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
