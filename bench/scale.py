#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a call costs the gateway when there is more of everything.

    make bench-scale [BENCH_FLAGS="--rounds 5 --seconds 2"]

The processor time of ethrpc-gw (one worker) for each call, closed loop by bench/load: hits of
the cache on more and more connections (beside them nginx, one worker, that answers the same bytes
by `return 200`: what more connections cost the machine) and behind more and more stages that let
everything pass (the first of the example plugins); calls that go to the node with more and more
upstreams (over IPC, all to one ethrpc-gw with a recording); and the lookup alone (bench/micro-cache) among more
and more answers. The server has one processor, node and load the other one; the sizes take
turns, medians of the rounds with their lowest and highest. Needs taskset.
"""
import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys

from hits import ADDRESS, CACHE, CALLS, CONF, await_hit, call, load, start_nginx
from peers import BUILD, HERE, LOAD_CPU, Servers, free_port, listening
from proxy import thousands
from report import NGINX, Report, need, options_of
from walk import write_recording

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "t", "lib"))
from chain import Chain         # noqa: E402
from fakenode import Node       # noqa: E402

MANY = """workers = 1;
log = { level = "warn"; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = %d; } );
networks = ( { name = "main"; middleware = ( { use = "methods"; } ); upstreams = ( %s ); } );
"""

NODE = """workers = 1;
log = { level = "warn"; };
limits = { max_in_flight = 10000; };
listen = ( { path = "%s"; } );
networks = ( { name = "main"; middleware = ( );
               upstreams = ( { name = "recording"; url = "replay:%s"; missing = "notfound"; } ); } );
"""


def start(servers, text, cpu="0"):
    conf = servers.config("%d.conf" % len(servers.processes), text)
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    return servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf], env=env, cpu=cpu)


def turns(options, sizes, one):
    """{size: [us of a call]}; one(size) measures."""
    got = {size: [] for size in sizes}
    for number in range(options.rounds + 1):
        at = number % len(sizes)
        for size in sizes[at:] + sizes[:at]:
            cost = one(size)
            if number > 0:
                got[size].append(cost)
        print("  round %d of %d" % (number, options.rounds), file=sys.stderr)
    return got


def rows(name, got, costs):
    costs[name] = got
    first = statistics.median(next(iter(got.values())))
    for size, costs in got.items():
        yield "| %s | %s | %.2f us (%.2f-%.2f) | %.2f |" % (
            thousands(size), name, statistics.median(costs), min(costs), max(costs),
            statistics.median(costs) / first)


def hit_gateway(servers, node, passes):
    """(kind, port, body, process) of a gateway with a constant in its cache."""
    port = free_port()
    stage = ', { use = "%s"; name = "pass%%d"; }' % os.path.join(
        BUILD, "plugins", "example", "example1-pass.so")
    stages = "".join(stage % i for i in range(passes)) + ", " + CACHE
    process = start(servers, CONF % (port, os.path.join(servers.dir, "gw-%d.ipc" % port), stages,
                                     node.url()))
    listening(port, process)
    body = call(*CALLS[0][1:])
    await_hit(port, body)
    return port, body, process


def hits(options, costs):
    servers = Servers()
    node = Node("ipc", Chain(), folder=servers.dir)
    try:
        port, body, process = hit_gateway(servers, node, 0)
        ways = {"hits over HTTP": ("http", port, body, process),
                "hits over WS": ("ws", port, body, process)}
        if shutil.which("nginx"):
            at, nginx = start_nginx(servers, "return 200 '%s';" % await_hit(port, body).decode())
            ways["nginx over HTTP"] = ("http", at, body, nginx)
        for name, way in ways.items():
            got = turns(options, options.connections, lambda n, w=way: load(
                w, n, options.seconds)["cpu"])
            yield from rows("connections, " + name, got, costs)
        ways = {n: hit_gateway(servers, node, n) for n in options.stages}
        got = turns(options, options.stages, lambda n: load(
            ("ws", *ways[n]), 64, options.seconds)["cpu"])
        yield from rows("further stages, hits over WS", got, costs)
    finally:
        node.close()
        servers.close()


def upstreams(options, costs):
    servers = Servers()
    try:
        recording = os.path.join(servers.dir, "blocks.io")
        write_recording(recording, 1)
        with open(recording, "a", encoding="utf-8") as file:
            file.write('>> %s\n<< {"jsonrpc":"2.0","id":1,"result":"0x1234"}\n'
                       % call("eth_getBalance", [ADDRESS, "earliest"]))
        path = os.path.join(servers.dir, "node.ipc")
        start(servers, NODE % (path, recording), LOAD_CPU)
        ways = {}
        for size in options.upstreams:
            ways[size] = free_port()
            process = start(servers, MANY % (ways[size], ", ".join(
                '{ name = "n%d"; url = "ipc://%s"; }' % (i, path) for i in range(size))))
            listening(ways[size], process)
            ways[size] = (ways[size], call("eth_getBalance", [ADDRESS, "earliest"]), process)
        got = turns(options, options.upstreams, lambda n: load(
            ("ws", *ways[n]), 64, options.seconds)["cpu"])
        yield from rows("upstreams, calls over WS", got, costs)
    finally:
        servers.close()


def lookup(entries):
    done = subprocess.run(["taskset", "-c", "0", os.path.join(BUILD, "bench", "micro-cache"),
                           "--gets", str(entries)], capture_output=True, text=True, timeout=120,
                          check=True)
    return float(re.search(r"eth_getBalance, latest +(\d+) ns", done.stdout).group(1)) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = lambda text: [int(x) for x in text.split(",") if x]   # noqa: E731
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--connections", type=numbers, default=[10, 100, 1000, 10000])
    parser.add_argument("--stages", type=numbers, default=[0, 1, 16])
    parser.add_argument("--upstreams", type=numbers, default=[1, 8, 64])
    parser.add_argument("--entries", type=numbers, default=[1000, 1000000])
    options = options_of(parser, {
        "rounds": 1, "seconds": 0.1, "connections": [4, 8], "stages": [0, 2], "upstreams": [1, 2],
        "entries": []})
    need("taskset")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    if os.cpu_count() > 1:
        os.sched_setaffinity(0, {int(LOAD_CPU)})
    report = Report("scale", "More of everything", __doc__, options.write, [NGINX],
                    quick=options.quick)
    lines = ["| how many | of what | processor time of a call (lowest-highest) | of the first |",
             "|---:|---|---:|---:|"]
    costs = {}
    lines += hits(options, costs)
    lines += upstreams(options, costs)
    if options.entries:
        lines += rows("answers in the cache, the lookup alone", turns(
            options, options.entries, lookup), costs)
    report.add("\n".join(lines))
    report.raw("the processor time of a call", {
        "%s %s" % (thousands(size), name): values
        for name, got in costs.items() for size, values in got.items()}, "us")
    for what in ("connections", "further stages", "upstreams"):
        report.lines("scale-" + what.split()[-1], "More %s" % what.split()[-1], what,
                     "us of processor time a call",
                     {name.partition(", ")[2]: got for name, got in costs.items()
                      if name.startswith(what)}, log_x=what != "further stages")
    report.close()


if __name__ == "__main__":
    main()
