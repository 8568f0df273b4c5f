#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Answers from the cache beside nginx serving the same bytes, and what pollers cost the node.

    make bench-hits [BENCH_FLAGS="--rounds 5 --seconds 2 --only small"]

A scripted node pushes its heads over IPC, one every two seconds; ethrpc-gw (one worker) has the
middlewares methods, cache and coalesce. Asked are a constant, a balance at `latest` and a full
block of 300 kB, over HTTP, WebSocket and IPC; beside it nginx (one worker) answers the very bytes
of the HTTP bodies by `return 200`, and the block from a file in memory (that one asked by GET,
all else by the same POST). All by bench/load, closed loop; the servers have one processor, the
load the other one. The ways take turns; medians of the rounds with their lowest and highest, and
the server's processor time for each answer.

The last table counts: 50 clients ask the block number, a balance and a call every 250 ms, and the
node, which takes 20 ms for each, counts what comes to it, with and without coalesce and cache.

Needs taskset; nginx is left out where it is missing.
"""
import argparse
import http.client
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time

from peers import BUILD, HERE, LOAD_CPU, Servers, free_port, listening
from proxy import thousands
from push import cpu_ns
from report import NGINX, Report, need, options_of

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "t", "lib"))
from chain import Chain         # noqa: E402
from fakenode import Node       # noqa: E402
from walk import transactions   # noqa: E402
import rawjson                  # noqa: E402

BLOCK_TIME = 2.0
ADDRESS = "0x00000000000000000000000000000000deadbeef"

CONF = """workers = 1;
log = { level = "warn"; };
limits = { max_connections = 15000; max_connections_per_client = 15000; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = %d; }, { path = "%s"; } );
networks = ( { name = "main"; middleware = ( { use = "methods"; }%s );
               upstreams = ( { name = "node"; url = "%s"; } ); } );
"""

NGINX_CONF = """
worker_processes 1;
pid %(dir)s/nginx.pid;
error_log %(dir)s/nginx.log;
daemon off;
events { worker_connections 16384; }
http {
  access_log off;
  client_body_temp_path %(dir)s; proxy_temp_path %(dir)s; fastcgi_temp_path %(dir)s;
  uwsgi_temp_path %(dir)s; scgi_temp_path %(dir)s;
  keepalive_requests 100000000;
  default_type application/json;
  sendfile %(sendfile)s;
  open_file_cache max=10 inactive=10m;
  server {
    listen 127.0.0.1:%(port)d;
    location / { %(what)s }
  }
}
"""

CACHE, COALESCE = '{ use = "cache"; }', '{ use = "coalesce"; }'

CALLS = [("a constant", "eth_chainId", []),
         ("a balance, latest", "eth_getBalance", [ADDRESS, "latest"]),
         ("a full block of 300 kB", "eth_getBlockByNumber", ["0xa", True])]


def call(method, params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                      separators=(",", ":"))


class Miner(threading.Thread):
    """Heads, until close()."""

    def __init__(self, chain):
        super().__init__(daemon=True)
        self.chain, self.over = chain, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(BLOCK_TIME):
            self.chain.mine()

    def close(self):
        self.over.set()
        self.join()


def big_block(chain):
    """Makes block 10 one of 300 kB."""
    head = chain.headers[10]
    body = [dict(tx, blockHash=head["hash"]) for tx in transactions(10)]
    block = dict(head, transactions=body, uncles=[], size="0x220")
    block["extraData"] = "0x"
    block["extraData"] += "00" * ((300000 - len(rawjson.compact(block))) // 2)
    usual = chain.do_eth_getBlockByNumber
    chain.do_eth_getBlockByNumber = lambda p: block if p[:2] == ["0xa", True] else usual(p)


def start_gateway(servers, node, stages):
    """(port, path, process)"""
    port, path = free_port(), os.path.join(servers.dir, "gw-%d.ipc" % len(servers.processes))
    conf = servers.config("gw-%d.conf" % port, CONF % (
        port, path, "".join(", " + s for s in stages), node.url()))
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    process = servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf], env=env)
    listening(port, process)
    return port, path, process


def start_nginx(servers, what, sendfile="on"):
    port = free_port()
    path = servers.config("nginx-%d.conf" % port, NGINX_CONF % {
        "dir": servers.dir, "port": port, "what": what, "sendfile": sendfile})
    process = servers.start(["nginx", "-p", servers.dir, "-c", path, "-g",
                             "user root;" if os.getuid() == 0 else ""])
    listening(port, process)
    return port, process


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return [int(x) for x in file.read().split()]


def used_by(process):
    return sum(cpu_ns(pid) for pid in [process.pid] + children(process.pid))


def ask(port, body):
    """(body of the answer, what the cache said)"""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    conn.request("POST", "/", body, {"Content-Type": "application/json",
                                     "X-Ethrpc-Gw-Cache": "1"})
    reply = conn.getresponse()
    text = reply.read()
    conn.close()
    return text, reply.getheader("X-Ethrpc-Gw-Cache")


def await_hit(port, body):
    """Until the answer comes from the cache; its bytes."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        text, said = ask(port, body)
        if said == "hit":
            return text
        time.sleep(0.05)
    raise SystemExit("no hit: %s: %r" % (body, said))


def load(way, connections, seconds, tries=5):
    """One run. On a busy machine a short one may pass without any answer: then a longer one."""
    kind, where, body, process = way
    before = used_by(process)
    done = subprocess.run(
        ["taskset", "-c", LOAD_CPU, os.path.join(BUILD, "bench", "load"), kind, str(where),
         str(connections), str(int(seconds * 1000))] + ([body] if body else []),
        capture_output=True, text=True, timeout=seconds + 60, check=False)
    used = used_by(process) - before
    found = re.match(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+)", done.stdout)
    if not found and "no answer" in done.stderr and tries > 1:
        return load(way, connections, 2 * seconds, tries - 1)
    if not found:
        raise SystemExit("bench/load failed: " + done.stdout + done.stderr)
    count, micros, p50, p99, size = map(int, found.groups())
    return {"rate": count / (micros / 1e6), "p50": p50, "p99": p99, "bytes": size,
            "cpu": used / 1e3 / count}


def ways_to(servers, gateway, body):
    """{name: (kind, port or path, body of the request, process)}"""
    port, path, process = gateway
    text = await_hit(port, body)
    out = {}
    if shutil.which("nginx") and len(text) < 4096:
        at, nginx = start_nginx(servers, "return 200 '%s';" % text.decode())
        out["nginx, return 200"] = ("http", at, body, nginx)
    elif shutil.which("nginx"):
        folder = servers.memory
        with open(os.path.join(folder, "index.html"), "wb") as file:
            file.write(text)
        for send in ("on", "off"):
            at, nginx = start_nginx(servers, "root %s;" % folder, send)
            out["nginx, file in memory, sendfile " + send] = ("http", at, None, nginx)
    out["ethrpc-gw over HTTP"] = ("http", port, body, process)
    out["ethrpc-gw over WebSocket"] = ("ws", port, body, process)
    out["ethrpc-gw over IPC"] = ("ipc", path, body, process)
    return out


def hits(options, title, method, params):
    servers = Servers()
    servers.memory = os.path.join("/dev/shm", os.path.basename(servers.dir))
    os.mkdir(servers.memory)
    chain = Chain(live=True)
    big_block(chain)
    node = Node("ipc", chain, folder=servers.dir)
    miner = Miner(chain)
    got = {}
    try:
        gateway = start_gateway(servers, node, [CACHE, COALESCE])
        ways = ways_to(servers, gateway, call(method, params))
        for number in range(options.rounds + 1):
            names = list(ways)
            at = number % len(names)
            for name in names[at:] + names[:at]:
                run = load(ways[name], options.connections, options.seconds)
                if number > 0:
                    got.setdefault(name, []).append(run)
            print("  round %d of %d" % (number, options.rounds), file=sys.stderr)
        asked = sum(1 for r in node.seen(method) if r.args() == params)
    finally:
        miner.close()
        node.close()
        servers.close()
        shutil.rmtree(servers.memory, ignore_errors=True)
    return {name: got[name] for name in ways}, asked


def middle(runs, key):
    return statistics.median(r[key] for r in runs)


def hits_table(options, title, got, asked):
    first = next(iter(got.values()))
    lines = ["### A cached answer: %s, %d connections" % (title, options.connections), "",
        "| way | bytes | answers/s (lowest-highest) | of %s | processor time for each "
        "(lowest-highest) | of it | p50 | p99 |" % next(iter(got)),
        "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for name, runs in got.items():
        lines.append("| %s | %s | %s (%s-%s) | %.2f | %.1f us (%.1f-%.1f) | %.2f | %d us | %d us |"
                     % (
            name, thousands(runs[0]["bytes"]), thousands(middle(runs, "rate")),
            thousands(min(r["rate"] for r in runs)), thousands(max(r["rate"] for r in runs)),
            middle(runs, "rate") / middle(first, "rate"), middle(runs, "cpu"),
            min(r["cpu"] for r in runs), max(r["cpu"] for r in runs),
            middle(runs, "cpu") / middle(first, "cpu"), middle(runs, "p50"), middle(runs, "p99")))
    lines += ["", "The node was asked %d times meanwhile." % asked, ""]
    return "\n".join(lines)


def figures(report, title, got):
    """Every round's, and a chart of the processor time."""
    rates = {name: [r["rate"] for r in runs] for name, runs in got.items()}
    costs = {name: [r["cpu"] for r in runs] for name, runs in got.items()}
    report.raw(title, rates, "answers/s")
    report.raw(title + ": processor time", costs, "us an answer")
    name = "hits-" + title.split(",")[0].replace(" ", "-")
    report.bars(name + "-rate", "From the cache: " + title, "answers/s", rates)
    report.bars(name + "-cost", "From the cache: " + title, "us of processor time an answer",
                costs)


# --- pollers -------------------------------------------------------------------------------

POLLED = [("eth_blockNumber", []), ("eth_getBalance", [ADDRESS, "latest"]),
          ("eth_call", [{"to": ADDRESS, "data": "0x18160ddd"}, "latest"])]


def poll(port, start, until, counts):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    due, n = start, 0
    while due < until:
        time.sleep(max(0.0, due - time.monotonic()))
        for method, params in POLLED:
            conn.request("POST", "/", call(method, params), {"Content-Type": "application/json"})
            if b'"result"' not in conn.getresponse().read():
                raise SystemExit("a poller was refused")
            n += 1
        due += 0.25
    conn.close()
    counts.append(n)


def poll_through(options, stages):
    """(calls of the clients, such calls at the node, all that the node was asked)"""
    servers = Servers()
    chain = Chain(live=True)
    node = Node("ipc", chain, folder=servers.dir)
    methods = {m for m, _ in POLLED}
    node.script = lambda r: r.later(0.02) if r.method in methods else None
    miner = Miner(chain)
    counts = []
    try:
        port = start_gateway(servers, node, stages)[0]
        for method, params in POLLED:
            ask(port, call(method, params))
        if CACHE in stages:
            await_hit(port, call(*POLLED[0]))
        with node.lock:
            node.requests.clear()
        now = time.monotonic()
        clients = [threading.Thread(target=poll, args=(
            port, now + 0.25 * i / options.pollers, now + options.poll_seconds, counts))
            for i in range(options.pollers)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        seen = node.seen()
    finally:
        miner.close()
        node.close()
        servers.close()
    if len(counts) != options.pollers:
        raise SystemExit("a poller failed")
    return sum(counts), sum(1 for r in seen if r.method in methods), len(seen)


def pollers(options):
    lines = ["### %d clients ask the block number, a balance and a call every 250 ms for %d s, a "
             "block every %d s" % (options.pollers, options.poll_seconds, BLOCK_TIME), "",
             "| stages | calls of the clients | of them at the node | share | with the gateway's "
             "own |", "|---|---:|---:|---:|---:|"]
    for name, stages in (("none", []), ("coalesce", [COALESCE]), ("cache", [CACHE]),
                         ("cache, coalesce", [CACHE, COALESCE])):
        asked, came, every = poll_through(options, stages)
        lines.append("| %s | %s | %s | %.2f %% | %s |" % (
            name, thousands(asked), thousands(came), 100 * came / asked, thousands(every)))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--pollers", type=int, default=50)
    parser.add_argument("--poll-seconds", type=float, default=20)
    parser.add_argument("--only", choices=["small", "block", "pollers"])
    options = options_of(parser, {"rounds": 1, "seconds": 0.1, "connections": 4, "pollers": 5,
                                  "poll_seconds": 0.6})
    need("taskset")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    if os.cpu_count() > 1:
        os.sched_setaffinity(0, {int(LOAD_CPU)})
    report = Report("hits", "Answers from the cache", __doc__, options.write, [NGINX],
                    options.quick)
    for title, method, params in CALLS:
        if options.only in (None, "block" if params[-1:] == [True] else "small"):
            print(title, file=sys.stderr)
            got, asked = hits(options, title, method, params)
            report.add(hits_table(options, title, got, asked))
            figures(report, title, got)
    if options.only in (None, "pollers"):
        report.add(pollers(options))
    report.close()


if __name__ == "__main__":
    main()
