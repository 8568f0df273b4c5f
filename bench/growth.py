# SPDX-License-Identifier: MIT
"""For bench/memory.py: what millions of mixed calls leave behind."""
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import time

from peers import BUILD, LOAD_CPU, SERVER_CPU, Servers, free_port
from proxy import thousands
from walk import TAIL, head_known, start, write_recording

MIB = 2.0 ** 20
BLOCKS = 20                      # full ones, of 200 to 490 kB
ACCOUNTS = 20000                 # more than the cache has room for
MEMBERS = 20                     # calls of an array
ARRAYS = 0.2                     # the part of the calls that comes in arrays
MARKS = (0.1, 0.2, 0.5, 1.0)     # of all calls: where the table has a row

NODE = """workers = 1;
log = { level = "warn"; };
limits = { max_in_flight = 10000; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = %(port)d; }, { path = "%(path)s"; } );
networks = ( { name = "main"; middleware = ( );
               upstreams = ( { name = "recording"; url = "replay:%(recording)s"; } ); } );
"""

GATEWAY = """workers = 1;
listen = ( { name = "tcp"; address = "127.0.0.1"; port = 0; }, { path = "%(path)s"; } );
admin = { address = "127.0.0.1"; port = %(admin)d; };
networks = ( { name = "main"; middleware = ( { use = "methods"; },
                 { use = "cache"; memory = "4MiB"; }, { use = "coalesce"; } );
               upstreams = ( { name = "node"; url = "%(url)s"; } ); } );
"""


def account(n):
    return "0x%040x" % (0xdead0000 + n)


def request(method, *params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}


def mixture():
    """The calls, about as often as they are in the list."""
    calls = [request("eth_getBalance", account(n), "0x5") for n in range(ACCOUNTS)]
    usual = [request("eth_chainId"), request("eth_blockNumber"),
             request("eth_getBlockByNumber", "latest", False),
             request("eth_getBlockByNumber", "0x7", False)]
    calls += usual * (ACCOUNTS // len(usual))
    for n in range(ACCOUNTS // 10):
        # an error of the node, which knows no such call; and two of the gateway
        calls.append(request("eth_call", {"to": account(n), "data": "0x"}, "latest"))
        calls.append(request("admin_peers"))
        calls.append(request("eth_getBlockByNumber", "no number", n))
    calls += [request("eth_getBlockByNumber", hex(1 + n), True) for n in range(BLOCKS)] * 2
    return calls


def record(path):
    """What the node knows."""
    write_recording(path, BLOCKS)
    with open(path, "a", encoding="utf-8") as file:
        for n in range(ACCOUNTS):
            file.write(">> %s\n<< %s\n" % (
                json.dumps(request("eth_getBalance", account(n), "0x5")),
                json.dumps({"jsonrpc": "2.0", "id": 1, "result": hex(10 ** 18 + n)})))


def load(servers, options, kind, where, count, calls):
    """A bench/load that asks so many: those of the file, or an array."""
    what = ["--requests", calls] if isinstance(calls, str) else []
    body = [] if what else [json.dumps(calls, separators=(",", ":"))]
    return subprocess.Popen(
        ["taskset", "-c", LOAD_CPU, os.path.join(BUILD, "bench", "load"), *what, "--calls",
         str(max(1, int(count))), "--seconds", "86400", "--connections", str(options.connections),
         kind, str(where), *body],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=open(os.path.join(servers.dir, "load-%s.log" % time.monotonic_ns()), "wb"))


def loads(servers, options, port, path):
    calls = mixture()
    name = servers.config("requests.ndjson", "".join(json.dumps(c) + "\n" for c in calls))
    array = random.Random(1).sample(calls, MEMBERS)
    array = [dict(call, id=n) for n, call in enumerate(array)]
    out = []
    for kind, where in (("http", port), ("ws", port), ("ipc", path)):
        out.append(load(servers, options, kind, where, options.calls * (1 - ARRAYS) / 3, name))
        out.append(load(servers, options, kind, where, options.calls * ARRAYS / 3 / MEMBERS, array))
    return out


def metrics(admin):
    """{outcome or counter of the cache: value}"""
    with socket.create_connection(("127.0.0.1", admin)) as sock:
        sock.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        text = b"".join(iter(lambda: sock.recv(65536), b"")).decode()
    out = {}
    for outcome, value in re.findall(r'^ethrpcgw_calls_total\{[^}]*outcome="(\w+)"\} (\d+)', text,
                                     re.M):
        out[outcome] = out.get(outcome, 0) + int(value)
    out["calls"] = sum(out.values())
    for name, value in re.findall(r"^ethrpcgw_cache_(hits|misses|evicted)_total\{[^}]*\} (\d+)",
                                  text, re.M):
        out[name] = int(value)
    return out


def watch(options, rss, process, admin, running):
    """[(calls, resident bytes)] until all loads have ended."""
    points, told = [], time.monotonic()
    while any(p.poll() is None for p in running):
        time.sleep(min(0.5, options.calls / 1e6))
        if process.poll() is not None:
            raise SystemExit("the gateway ended with %d" % process.returncode)
        points.append((metrics(admin)["calls"], rss(process.pid)))
        if time.monotonic() - told > 5:
            told = time.monotonic()
            print("  %s of %s calls: %.1f MiB" % (thousands(points[-1][0]), thousands(
                options.calls), points[-1][1] / MIB), file=sys.stderr)
    points.append((metrics(admin)["calls"], rss(process.pid)))
    return points


def slope(points, after):
    """KiB for each million calls, after this part of them."""
    part = [(calls / 1e6, size / 1024) for calls, size in points
            if calls >= points[-1][0] * after]
    x0, y0 = (statistics.mean(values) for values in zip(*part))
    below = sum((x - x0) ** 2 for x, _ in part)
    return sum((x - x0) * (y - y0) for x, y in part) / below if below else 0.0


def measure(options, start_gateway, rss):
    """(resident bytes before, points, counters)"""
    servers = Servers()
    running = []
    try:
        recording = os.path.join(servers.dir, "node.io")
        record(recording)
        node = start(servers, "node", NODE, recording=recording)[0]
        admin = free_port()
        port, path, process = start_gateway(servers, GATEWAY, admin=admin, url="ipc://" + node[1])
        head_known(admin, BLOCKS + TAIL)
        time.sleep(0.3)
        before = rss(process.pid)
        running = loads(servers, options, port, path)
        points = watch(options, rss, process, admin, running)
        for each in running:
            if each.returncode != 0:
                raise SystemExit("bench/load failed: see what it said:\n" + said(servers))
        return before, points, metrics(admin)
    finally:
        for each in running:
            if each.poll() is None:
                each.kill()
            each.wait()
        servers.close()


def said(servers):
    out = []
    for name in sorted(os.listdir(servers.dir)):
        if name.startswith("load-"):
            with open(os.path.join(servers.dir, name), encoding="utf-8", errors="replace") as file:
                out.append(file.read())
    return "".join(out)


def many_calls(report, options, start_gateway, rss):
    before, points, counted = measure(options, start_gateway, rss)
    total = points[-1][0]
    lines = ["### %s mixed calls" % thousands(total), "",
             "Of them %s had a result, %s an error of the node, %s one of the gateway; the cache "
             "(4 MiB) had %s hits and %s misses, and %s answers had to go for others. Processors: "
             "gateway and node %s, load %s." % (
                 *(thousands(counted.get(k, 0)) for k in ("result", "error")),
                 thousands(counted.get("denied", 0) + counted.get("fault", 0)),
                 *(thousands(counted.get(k, 0)) for k in ("hits", "misses", "evicted")),
                 SERVER_CPU, LOAD_CPU), "",
             "| calls so far | MiB | more than before them |", "|---:|---:|---:|",
             "| 0 | %.1f | |" % (before / MIB)]
    for mark in MARKS:
        calls, size = next(p for p in points if p[0] >= mark * total)
        lines.append("| %s | %.1f | %+.1f |" % (thousands(calls), size / MIB,
                                               (size - before) / MIB))
    lines += ["", "KiB for each million calls: after the first fifth %+.1f, after the first half "
              "**%+.1f** (target: no growth)." % (slope(points, 0.2), slope(points, 0.5))]
    report.add("\n".join(lines))
    step = max(1, len(points) // 60)
    report.lines("memory-growth", "Memory over %s mixed calls" % thousands(total),
                 "million calls", "MiB resident", {"ethrpc-gw": {
                     0: [before / MIB], **{calls / 1e6: [size / MIB]
                                           for calls, size in points[::step]}}}, log_x=False)
