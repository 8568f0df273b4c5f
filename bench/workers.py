#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a second worker is worth: hits of the cache with one and with two of them.

    make bench-workers [BENCH_FLAGS="--rounds 5 --seconds 2 --connections 32"]

ethrpc-gw answers a constant from its cache (middlewares methods, cache, coalesce) over HTTP,
WebSocket and IPC, closed loop, with one worker and with two; for each worker there is one
bench/load with so many connections. One and two take turns, medians of the rounds with their
lowest and highest. Two things are compared. The plain rates; where there are fewer than four
processors, the workers share them with the load, so that two workers can't have twice of one's.
And the processor time of a call while all workers are busy: if a call costs c1 with one worker
and c2 with two, then two processors that do nothing else answer 2 x c1 / c2 times what one does,
which is the ratio of capacities that the table has. It counts what the workers cost each other
(locks, shared caches) and leaves out what the load takes; the share of the calls' time that fell
to the busier worker tells how even connections are spread.
Needs taskset.
"""
import argparse
import os
import re
import resource
import statistics
import subprocess
import sys

from hits import CACHE, CALLS, COALESCE, CONF, await_hit, call
from peers import BUILD, HERE, Servers, free_port, listening
from proxy import thousands
from report import Report, need, options_of

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "t", "lib"))
from chain import Chain         # noqa: E402
from fakenode import Node       # noqa: E402

KINDS = ("http", "ws", "ipc")
NAMES = {"http": "HTTP", "ws": "WebSocket", "ipc": "IPC"}
COUNTS = (1, 2)
TARGET = 1.7


def processors():
    """(of the gateway, of the load)"""
    count = os.cpu_count()
    if count < 4:
        return "0-%d" % (count - 1), "0-%d" % (count - 1)
    return "0,1", "2-%d" % (count - 1)


def start_gateway(servers, node, workers):
    """(port, path, process) of a gateway with a constant in its cache."""
    port, path = free_port(), os.path.join(servers.dir, "gw-%d.ipc" % workers)
    text = CONF % (port, path, ", %s, %s" % (CACHE, COALESCE), node.url())
    conf = servers.config("gw-%d.conf" % workers,
                          text.replace("workers = 1;", "workers = %d;" % workers))
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    process = servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf], env=env,
                            cpu=processors()[0])
    listening(port, process)
    await_hit(port, call(*CALLS[0][1:]))
    return port, path, process


def by_thread(pid):
    """Nanoseconds of processor time of each thread."""
    out = {}
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as file:
            out[task] = int(file.read().split()[0])
    return out


def load(options, gateway, kind, workers, tries=5):
    """{"rate", "cpu" (us of a call), "busier" (share)}. Without any answer: once more."""
    port, path, process = gateway
    before = by_thread(process.pid)
    loads = [subprocess.Popen(
        ["taskset", "-c", processors()[1], os.path.join(BUILD, "bench", "load"), kind,
         path if kind == "ipc" else str(port), str(options.connections),
         str(int(options.seconds * 1000)), call(*CALLS[0][1:])],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(workers)]
    said = [each.communicate(timeout=options.seconds + 60) for each in loads]
    used = [ns - before.get(task, 0) for task, ns in by_thread(process.pid).items()]
    found = [re.match(r"RESULT (\d+) (\d+) ", out) for out, _ in said]
    if not all(found) and any("no answer" in error for _, error in said) and tries > 1:
        return load(options, gateway, kind, workers, tries - 1)
    if not all(found):
        raise SystemExit("bench/load failed: " + "".join(out + error for out, error in said))
    count = sum(int(one.group(1)) for one in found)
    return {"rate": sum(int(one.group(1)) / (int(one.group(2)) / 1e6) for one in found),
            "cpu": sum(used) / 1e3 / count, "busier": max(used) / sum(used)}


def measure(options):
    """{(kind, workers): [what load() tells, ...]}"""
    servers = Servers()
    node = Node("ipc", Chain(), folder=servers.dir)
    got = {(kind, count): [] for kind in KINDS for count in COUNTS}
    try:
        gateways = {count: start_gateway(servers, node, count) for count in COUNTS}
        for number in range(options.rounds + (0 if options.quick else 1)):
            for kind in KINDS:
                for count in COUNTS[::1 if number % 2 else -1]:
                    run = load(options, gateways[count], kind, count)
                    if number > 0 or options.quick:
                        got[kind, count].append(run)
            print("  round %d of %d" % (number, options.rounds), file=sys.stderr)
    finally:
        node.close()
        servers.close()
    return got


def decimals(value):
    return "%.2f" % value


def spread(values, shape):
    return "%s (%s-%s)" % tuple(shape(v) for v in (statistics.median(values), min(values),
                                                  max(values)))


def table(report, options, got):
    lines = ["### A cached constant, %d connections for each worker" % options.connections, "",
             "Processors of the gateway: %s; of the load: %s." % processors(), "",
             "| over | workers | calls/s (lowest-highest) | of one | processor time of a call, us "
             "(lowest-highest) | ratio of capacities | target | the busier worker's share |",
             "|---|---:|---:|---:|---:|---:|---:|---:|"]
    ratios = {"rates": {}, "capacities": {}}
    for kind in KINDS:
        one, two = got[kind, 1], got[kind, 2]
        name = NAMES[kind]
        ratios["rates"][name] = [b["rate"] / a["rate"] for a, b in zip(one, two)]
        ratios["capacities"][name] = [2 * a["cpu"] / b["cpu"] for a, b in zip(one, two)]
        for count, runs in ((1, one), (2, two)):
            lines.append("| %s | %d | %s | %s | %s | %s | %s | %.0f %% |" % (
                name, count, spread([r["rate"] for r in runs], thousands),
                "1.00" if count == 1 else spread(ratios["rates"][name], decimals),
                spread([r["cpu"] for r in runs], decimals),
                "" if count == 1 else spread(ratios["capacities"][name], decimals),
                "" if count == 1 else "at least %.1f" % TARGET,
                100 * statistics.median(r["busier"] for r in runs)))
    report.add("\n".join(lines))
    for key, unit in (("rate", "calls/s"), ("cpu", "us of processor time a call")):
        report.raw("workers, " + unit, {
            "%s, %d worker%s" % (NAMES[kind], count, "s" if count > 1 else ""):
            [r[key] for r in runs] for (kind, count), runs in got.items()}, unit)
    report.bars("workers", "Two workers against one", "times one worker", {
        "%s, ratio of %s" % (name, what): values for name in NAMES.values()
        for what in ratios for values in [ratios[what][name]]})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--connections", type=int, default=32, help="for each worker")
    options = options_of(parser, {"rounds": 1, "seconds": 0.1, "connections": 8})
    need("taskset")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    report = Report("workers", "Workers", __doc__, options.write, quick=options.quick)
    table(report, options, measure(options))
    report.close()


if __name__ == "__main__":
    main()
