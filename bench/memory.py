#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The memory that ethrpc-gw takes: idle, with idle sessions, for a long reply, after many calls.

    make bench-memory [BENCH_FLAGS="--rounds 3 --idle 10000 --reply-mb 1000 --calls 10000000"]

All figures are resident bytes of ethrpc-gw with one worker. Idle: as it is after its start. Idle
sessions: 10,000 connections of each kind, each after one call (WebSocket: after the handshake).
A long reply: a node streams a result of 1 GB to a client that reads 100 MB a second and stops for
two seconds in the middle; the highest figure meanwhile (as the kernel keeps it, and sampled every
50 ms), less the one before, and the answer's length and checksum are looked at. Many calls: ten
million over HTTP, WebSocket and IPC at a time, hits and misses of a cache that is too small for
them, errors of the gateway and of the node, single calls and arrays; the figure as they go on, and
its slope when the first have filled what there is to fill. Needs taskset.
"""
import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import threading
import time

import bigreply
import growth
from peers import BUILD, LOAD_CPU, Servers
from proxy import start_node, thousands
from report import Report, need, options_of

MIB = 2.0 ** 20
KINDS = ("http", "ws", "ipc")
NAMES = {"http": "HTTP", "ws": "WebSocket", "ipc": "IPC"}
SAMPLE = 0.05

IDLE = """workers = 1;
limits = { max_connections = %(most)d; max_connections_per_client = %(most)d;
           idle_timeout = "10m"; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = 0; }, { path = "%(path)s"; } );
networks = ( { name = "main"; middleware = ( %(stages)s );
               upstreams = ( { name = "node"; url = "%(url)s"; } ); } );
"""

BIG = """workers = 1;
limits = { max_reply = "4GiB"; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = 0; }, { path = "%(path)s"; } );
networks = ( { name = "main"; timeout = "10m"; middleware = ( { use = "methods"; } );
               upstreams = ( { name = "node"; url = "%(url)s"; max_reply = "4GiB"; } ); } );
"""

STAGES = [("methods", '{ use = "methods"; }'),
          ("methods, ratelimit, prefetch, cache, coalesce",
           '{ use = "methods"; }, { use = "ratelimit"; }, { use = "prefetch"; }, '
           '{ use = "cache"; }, { use = "coalesce"; }')]


def rss(pid, field="VmRSS"):
    """Resident bytes of a process; VmHWM: the most so far."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        return int(re.search(field + r":\s+(\d+)", file.read()).group(1)) * 1024


def forget_highest(pid):
    """VmHWM begins anew; whether the kernel lets us."""
    try:
        with open("/proc/%d/clear_refs" % pid, "w", encoding="ascii") as file:
            file.write("5")
        return True
    except OSError:
        return False


class Sampler(threading.Thread):
    """The highest resident size, from now until close()."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.over = pid, threading.Event()
        self.exact = forget_highest(pid)
        self.highest = rss(pid)
        self.start()

    def run(self):
        while not self.over.wait(SAMPLE):
            self.highest = max(self.highest, rss(self.pid))

    def close(self):
        self.over.set()
        self.join()
        if self.exact:
            self.highest = max(self.highest, rss(self.pid, "VmHWM"))
        return self.highest


def start_gateway(servers, text, **values):
    """(port, path, process)"""
    path = os.path.join(servers.dir, "gw-%d.ipc" % time.monotonic_ns())
    conf = servers.config("gw-%d.conf" % time.monotonic_ns(), text % dict(values, path=path))
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    process = servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf], env=env)
    return port_of(servers, process), path, process


def port_of(servers, process):
    """The port that the gateway says it listens on, once it is ready."""
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


def spread(values, digits=1):
    return "%.*f (%.*f-%.*f)" % (digits, statistics.median(values), digits, min(values), digits,
                                 max(values))


# --- idle ----------------------------------------------------------------------------------------

def idle_once(servers, node, options, kind):
    """(resident bytes before, and with idle sessions)"""
    port, path, process = start_gateway(servers, IDLE, most=options.idle + 100,
                                        url="ipc://" + node, stages=STAGES[0][1])
    time.sleep(0.3)
    before = rss(process.pid)
    holder = subprocess.Popen(
        ["taskset", "-c", LOAD_CPU, os.path.join(BUILD, "bench", "idle"), kind,
         path if kind == "ipc" else str(port), str(options.idle)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if not holder.stdout.readline().startswith(b"ready"):
            raise SystemExit("bench/idle failed over " + kind)
        time.sleep(0.3)
        return before, rss(process.pid)
    finally:
        holder.stdin.close()
        holder.wait(30)
        servers.stop(process)


def idle(report, options):
    servers = Servers()
    alone = {name: [] for name, _ in STAGES}
    each = {kind: [] for kind in KINDS}
    total = {kind: [] for kind in KINDS}
    try:
        node = start_node(servers, 8)[1]
        for number in range(options.rounds):
            for name, stages in STAGES:
                process = start_gateway(servers, IDLE, most=1000, url="ipc://" + node,
                                        stages=stages)[2]
                time.sleep(0.5)
                alone[name].append(rss(process.pid) / MIB)
                servers.stop(process)
            for kind in KINDS:
                before, after = idle_once(servers, node, options, kind)
                total[kind].append(after / MIB)
                each[kind].append((after - before) / options.idle / 1024)
            print("  idle: round %d of %d" % (number + 1, options.rounds), file=sys.stderr)
    finally:
        servers.close()
    idle_tables(report, options, alone, each, total)


def idle_tables(report, options, alone, each, total):
    lines = ["### Idle", "", "| stages | MiB (lowest-highest) | target |", "|---|---:|---:|"]
    for number, (name, values) in enumerate(alone.items()):
        lines.append("| %s | %s | %s |" % (name, spread(values), "" if number else "under 12"))
    lines += ["", "### %s idle sessions" % thousands(options.idle), "",
              "| over | MiB in all | KiB each (lowest-highest) | target |", "|---|---:|---:|---:|"]
    for kind in KINDS:
        lines.append("| %s | %.1f | %s | %s |" % (
            NAMES[kind], statistics.median(total[kind]), spread(each[kind]),
            "under 12" if kind == "ws" else ""))
    report.add("\n".join(lines))
    report.raw("idle", alone, "MiB")
    each = {NAMES[kind]: values for kind, values in each.items()}
    report.raw("an idle session", each, "KiB")
    report.bars("memory-sessions", "Memory of an idle session, %s of them" % thousands(
        options.idle), "KiB each", each)


# --- a long reply --------------------------------------------------------------------------------

def long_reply(servers, options, big, kind, url):
    """(MiB added at the most, seconds)"""
    port, path, process = start_gateway(servers, BIG, url=url)
    client = bigreply.Client(kind, path if kind == "ipc" else port, options.pace * 1e6,
                             options.stall)
    try:
        small = dict(bigreply.CALL, method="eth_chainId", params=[])
        client.reader.stall, stall = 0, client.reader.stall
        client.ask(small, len('{"jsonrpc":"2.0","id":1,"result":"0x1"}'))
        client.reader.stall = stall
        time.sleep(0.3)
        before = rss(process.pid)
        sampler = Sampler(process.pid)
        began = time.monotonic()
        want = bigreply.expected(big)
        got = client.ask(bigreply.CALL, want[0])
        took = time.monotonic() - began
        highest = sampler.close()
    finally:
        client.close()
        servers.stop(process)
    if got != want:
        raise SystemExit("over %s the answer is not what the node said: %r, not %r" % (
            kind, got, want))
    return (highest - before) / MIB, took


def long_replies(report, options):
    servers = Servers()
    big = bigreply.Big(int(options.reply_mb * 1e6))
    node = bigreply.Node(servers.dir, big)
    added, took = {}, {}
    try:
        for number in range(options.rounds):
            for upstream, url in node.urls().items():
                for kind in KINDS:
                    name = "client over %s, node over %s" % (NAMES[kind], upstream)
                    mib, seconds = long_reply(servers, options, big, kind, url)
                    added.setdefault(name, []).append(mib)
                    took.setdefault(name, []).append(seconds)
                    print("  long reply: round %d of %d: %s" % (number + 1, options.rounds, name),
                          file=sys.stderr)
    finally:
        node.close()
        servers.close()
    lines = ["### A reply of %s MB to a slow client" % thousands(options.reply_mb), "",
             "The client reads %d MB a second, and stops for %g s in the middle." % (
                 options.pace, options.stall), "",
             "| way | MiB added at the most (lowest-highest) | target | seconds |",
             "|---|---:|---:|---:|"]
    for name, values in added.items():
        lines.append("| %s | %s | under 16 | %.1f |" % (name, spread(values),
                                                       statistics.median(took[name])))
    report.add("\n".join(lines))
    report.raw("a long reply", added, "MiB added")
    report.bars("memory-reply", "A reply of %s MB to a slow client" % thousands(options.reply_mb),
                "MiB added at the most", added)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="of all but the many calls")
    parser.add_argument("--idle", type=int, default=10000, help="idle sessions of each kind")
    parser.add_argument("--reply-mb", type=float, default=1000, help="the long reply")
    parser.add_argument("--pace", type=float, default=100, help="MB/s of the slow client")
    parser.add_argument("--stall", type=float, default=2, help="seconds it stops for")
    parser.add_argument("--calls", type=int, default=10000000, help="mixed calls in all")
    parser.add_argument("--connections", type=int, default=8, help="of each kind, for the calls")
    parser.add_argument("--only", choices=["idle", "reply", "calls"])
    options = options_of(parser, {"rounds": 1, "idle": 100, "reply_mb": 20, "stall": 0.1,
                                  "pace": 400, "calls": 20000})
    need("taskset")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    report = Report("memory", "Memory", __doc__, options.write, quick=options.quick)
    if options.only in (None, "idle"):
        idle(report, options)
    if options.only in (None, "reply"):
        long_replies(report, options)
    if options.only in (None, "calls"):
        growth.many_calls(report, options, start_gateway, rss)
    report.close()


if __name__ == "__main__":
    main()
