#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A mixed load of real traffic through the gateway, nginx, HAProxy, eRPC and proxyd.

    make bench-mix [BENCH_FLAGS="--rounds 5 --seconds 1 --only closed --ways nginx;HAProxy"]

bench/node answers as a chain's node with results of mainnet's sizes (balances of bytes, blocks and
receipts of 100 to 300 kB), at once or after a service time; bench/load asks it over HTTP, directly
and through each proxy, what mainnet clients asked: 11 methods, in an order by chance, either all
distinct or by Zipf rank (s = 1.0). All servers share one processor, bench/load has the other one,
each proxy has one thread; nothing is cached or asked twice by any of them, except where a row
says so. Closed loop: each connection asks when it has its answer. Open loop: calls are due by a
Poisson process whatever the answers, and their latency counts from then on; what is not answered
at the end counts with its time so far. The ways take turns; medians of the rounds, with their
lowest and highest, the processor time of the proxy for each call, and what went wrong in all
rounds. Needs taskset; nginx, haproxy, erpc and proxyd are left out where they are not on the PATH.
"""
import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys

from peers import (BUILD, HERE, LOAD_CPU, Servers, free_port, listening, start_erpc,
                   start_haproxy, start_nginx, start_proxyd)
from proxy import thousands
from push import cpu_ns
from report import HAPROXY, NGINX, Report, need, options_of

CONF = """workers = 1;
memory = "4GiB";
log = { level = "warn"; };
limits = { max_connections = 15000; max_connections_per_client = 15000; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = %d; } );
networks = ( { name = "main"; middleware = ( { use = "methods"; }%s );
               upstreams = ( { name = "node"; url = "%s"; } ); } );
"""

CACHE = ', { use = "cache"; memory = "1GiB"; }, { use = "coalesce"; }'
BATCH = ', { use = "batch"; }'
DIRECT = "node, directly"
HTTP, IPC = "ethrpc-gw, HTTP", "ethrpc-gw, IPC"

# Shares of the generated mix, where the real one is not there: those of its methods.
SHARES = [("eth_call", 8000), ("eth_getBlockReceipts", 8000), ("debug_storageRangeAt", 4000),
          ("debug_traceCall", 4000), ("eth_getProof", 4000), ("eth_getTransactionByHash", 4000),
          ("eth_getTransactionReceipt", 4000), ("ots_getBlockTransactions", 4000),
          ("eth_getBlockByNumber", 3374), ("eth_getBlockByHash", 3095)]

ERPC = ("eRPC", ("erpc", "--version"))
MANY, LONGER = 5000, 3           # so many connections are measured so many times as long

SMALL = '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x%040x","latest"]}'


# --- what is asked ----------------------------------------------------------------------------


def word(rnd, size=32):
    return "0x" + rnd.randbytes(size).hex()


def made_up(rnd, method):
    """Params of a call."""
    block = hex(20000000 + rnd.randrange(1000000))
    to = {"from": word(rnd, 20), "to": word(rnd, 20), "gas": "0xf778",
          "data": word(rnd, 4 + 32 * rnd.choice((1, 2, 2, 3, 8)))}
    return {"eth_call": [to, "latest"], "eth_getBlockReceipts": [block],
            "debug_storageRangeAt": [word(rnd), 7, word(rnd, 20), word(rnd), 1024],
            "debug_traceCall": [to, block], "eth_getProof": [word(rnd, 20), [], "latest"],
            "ots_getBlockTransactions": [int(block, 16), 0, 10],
            "eth_getBlockByNumber": [block, True], "eth_getBlockByHash": [word(rnd), True]}.get(
                method, [word(rnd)])


def generate(path):
    rnd = random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        for method, count in SHARES:
            for _ in range(count):
                file.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                                       "params": made_up(rnd, method)},
                                      separators=(",", ":")) + "\n")


def find_requests(folder):
    """(path, what to say of it)"""
    data = os.environ.get("EGW_TEST_DATA") or os.path.join(os.path.dirname(HERE), "..", "shared",
                                                           "data")
    path = os.path.join(data, "loadmix", "requests.ndjson")
    if os.path.exists(path):
        with open(path, "rb") as file:
            count = sum(1 for _ in file)
        return path, "The mix: %s requests of mainnet clients." % thousands(count)
    path = os.path.join(folder, "requests.ndjson")
    generate(path)
    return path, "The mix: GENERATED, with the shares of the methods in real traffic, which was " \
        "not there."


# --- ways -------------------------------------------------------------------------------------


class Way:
    def __init__(self, name, port, process=None):
        self.name, self.port, self.process = name, port, process

    def used(self):
        """Processor time of the proxy so far, in ns."""
        if self.process is None:
            return 0
        pid = self.process.pid
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
            return sum(cpu_ns(p) for p in [pid] + [int(x) for x in file.read().split()])


def start_node(servers, *flags):
    """bench/node: (port, ipc path)."""
    path = os.path.join(servers.dir, "node.ipc")
    process = servers.start([os.path.join(BUILD, "bench", "node"), "--ipc", path, *flags],
                            stdout=subprocess.PIPE)
    return int(process.stdout.readline().partition(b"=")[2]), path


def start_gateway(servers, url, stages=""):
    port = free_port()
    conf = servers.config("gw-%d.conf" % port, CONF % (port, stages, url))
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    process = servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf], env=env)
    listening(port, process)
    return port, process


def ways_to(servers, node, wanted):
    """Those that are there, and wanted (None: all)."""
    port, path = node
    http, ipc = "http://127.0.0.1:%d" % port, "ipc://" + path
    makers = [
        (DIRECT, None, lambda: (port, None)),
        ("nginx", "nginx", lambda: start_nginx(servers, port, 4096)),
        ("HAProxy", "haproxy", lambda: start_haproxy(servers, port, 10100)),
        (HTTP, None, lambda: start_gateway(servers, http)),
        (HTTP + ", batch", None, lambda: start_gateway(servers, http, BATCH)),
        (IPC, None, lambda: start_gateway(servers, ipc)),
        (IPC + ", cache, coalesce", None, lambda: start_gateway(servers, ipc, CACHE)),
        ("eRPC", "erpc", lambda: start_erpc(servers, port)),
        ("eRPC, its cache", "erpc", lambda: start_erpc(servers, port, cache=True)),
        ("proxyd", "proxyd", lambda: start_proxyd(servers, port))]
    return [Way(name, *make()) for name, program, make in makers
            if (program is None or shutil.which(program)) and
            (wanted is None or name in wanted)]


# --- runs -------------------------------------------------------------------------------------


class Asker:
    """Runs bench/load; each run has another seed, so that what is distinct stays so."""

    def __init__(self, options, requests):
        self.options, self.requests, self.seed = options, requests, 0

    def what(self, mix):
        self.seed += 1
        if mix == "small":
            return ["--template", SMALL, "--seed", str(self.seed)]
        if mix == "distinct":
            return ["--requests", self.requests, "--distinct", "--seed", str(self.seed)]
        return ["--requests", self.requests, "--zipf", "1.0", "--seed", "1"]

    def run(self, way, mix, connections, rate=None, seconds=None):
        """What bench/load found, with "cpu" (us of a call); or {"failed": why}."""
        seconds = seconds or self.options.seconds
        argv = ["taskset", "-c", LOAD_CPU, os.path.join(BUILD, "bench", "load"),
                "--connections", str(connections), "--seconds", str(seconds),
                "--warmup", str(min(0.5, seconds / 4)), *self.what(mix)]
        if rate is not None:
            argv += ["--rate", "%.2f" % rate]
        before = way.used()
        done = subprocess.run(argv + ["http", str(way.port)], capture_output=True, text=True,
                              timeout=seconds + 120, check=False)
        if done.returncode != 0:
            return {"failed": done.stderr.strip().rpartition("bench/load: ")[2]}
        got = json.loads(done.stdout)
        warm = 1 + min(0.5, seconds / 4) / seconds      # calls of the warm-up are not counted
        got["cpu"] = (way.used() - before) / 1e3 / max(1, got["calls"] * warm)
        return got


def turns(options, ways, one, warm=True):
    """{name: [run, ...]}; one(way, whether it only warms) measures; warm: a round of such first."""
    got = {way.name: [] for way in ways}
    for number in range(0 if warm else 1, options.rounds + 1):
        at = number % len(ways)
        for way in ways[at:] + ways[:at]:
            run = one(way, number == 0)
            if number > 0:
                got[way.name].append(run)
    return got


def good(runs, key):
    return [run[key] for run in runs if "failed" not in run]


def wrong(runs):
    """What went wrong in all rounds, in a few words."""
    sums = {}
    for run in runs:
        if "failed" in run:
            sums["failed: " + run["failed"]] = sums.get("failed: " + run["failed"], 0) + 1
            continue
        for code, count in run["errors"].items():
            sums["error " + code] = sums.get("error " + code, 0) + count
        for code, count in run["http"].items():
            sums["status " + code] = sums.get("status " + code, 0) + count
        for key in ("transport_errors", "lost", "refused", "strays"):
            sums[key.replace("_", " ")] = sums.get(key.replace("_", " "), 0) + run[key]
    return ", ".join("%s %s" % (thousands(n), what) for what, n in sums.items() if n)


def time_of(us):
    return "%.1f ms" % (us / 1e3) if us >= 9999.5 else "%d us" % us


def spread(values, show=thousands):
    return "%s (%s-%s)" % (show(statistics.median(values)), show(min(values)), show(max(values)))


def row(name, runs, first, before):
    """A row of a table of rates and latencies."""
    rates = good(runs, "rate")
    if not rates:
        return "| %s%s | | | | | | | %s |" % (before, name, wrong(runs))
    cpu = good(runs, "cpu")
    whole = statistics.median(first) if first else 0
    return "| %s%s | %s | %s | %s | %s | %s | %s | %s |" % (
        before, name, spread(rates), "%.2f" % (statistics.median(rates) / whole) if whole else "",
        *(time_of(statistics.median(good(runs, key))) for key in ("p50", "p99", "p99.9")),
        spread(cpu, lambda v: "%.1f" % v) if max(cpu) > 0 else "", wrong(runs))


HEAD = ("| %sway | calls/s (lowest-highest) | of %s | p50 | p99 | p99.9 | proxy, us of a call "
        "(lowest-highest) | wrong |\n|%s---|---:|---:|---:|---:|---:|---:|---|")


# --- (a) closed loop --------------------------------------------------------------------------


def closed(options, report, asker, service, mix):
    """Medians of the rates at the connections that the open loop begins from."""
    title = "%s, closed loop, %s" % (title_of(mix), node_of(service))
    print(title, file=sys.stderr)
    servers = Servers()
    rates, lines = {}, ["### " + title, "", HEAD % ("connections | ", "direct", "---:|")]
    found = {}
    try:
        ways = ways_to(servers, start_node(servers, "--mix", "--chain", "--service-us",
                                           str(service)), options.ways)
        for count in options.connections:
            long = options.seconds * (LONGER if count >= MANY else 1)
            got = turns(options, ways, lambda way, warm, n=count, s=long: asker.run(
                way, mix, n, seconds=min(0.5, s) if warm else s))
            first = good(got.get(DIRECT, []), "rate")
            for name, runs in got.items():
                lines.append(row(name, runs, first, thousands(count) + " | "))
                if good(runs, "rate"):
                    rates.setdefault(name, {})[count] = good(runs, "rate")
            found[count] = {n: statistics.median(good(r, "rate")) for n, r in got.items()
                            if good(r, "rate")}
            print("  %d connections" % count, file=sys.stderr)
    finally:
        servers.close()
    report.add("\n".join(lines))
    for count in options.connections:
        report.raw("%s, %s connections" % (title, thousands(count)),
                   {n: rates[n][count] for n in rates if count in rates[n]}, "calls/s")
    report.lines("mix-closed-%s-%d" % (mix, service), title, "connections", "calls/s", rates)
    return found


def title_of(mix):
    return {"distinct": "Distinct calls", "zipf": "Calls by Zipf rank"}[mix]


def node_of(service):
    return "node answers at once" if service == 0 else "node takes %g ms for each" % (
        service / 1e3)


# --- (b) open loop ----------------------------------------------------------------------------


def base_rate(found, options):
    """The lowest closed-loop rate, but for balancers that are far below all others."""
    rates = found.get(options.open_base) or found[max(found)]
    return min((rate for name, rate in rates.items()
                if rate > 0 and "eRPC" not in name and name != "proxyd"), default=1.0)


def opened(options, report, asker, service, mix, base):
    title = "%s, open loop over at most %s connections, %s" % (
        title_of(mix), thousands(options.open_connections), node_of(service))
    print(title, file=sys.stderr)
    servers = Servers()
    late, raw = {}, {}
    lines = ["### " + title, "", HEAD % ("asked/s | ", "asked", "---:|")]
    try:
        ways = ways_to(servers, start_node(servers, "--mix", "--chain", "--service-us",
                                           str(service)), options.ways)
        for share in options.shares:
            rate = max(1.0, base * share)
            got = turns(options, ways, lambda way, warm, r=rate: asker.run(
                way, mix, options.open_connections, rate=r,
                seconds=min(0.5, options.seconds) if warm else None),
                        warm=share == options.shares[0])
            for name, runs in got.items():
                lines.append(row(name, runs, [rate], "%s (%g %%) | " % (
                    thousands(rate), share * 100)))
                if good(runs, "p99"):
                    late.setdefault(name, {})[round(rate)] = [
                        us / 1e3 for us in good(runs, "p99")]
                    raw.setdefault(share, {})[name] = good(runs, "p99")
            print("  %.0f calls/s" % rate, file=sys.stderr)
    finally:
        servers.close()
    report.add("\n".join(lines))
    report.add("100 %% is the lowest rate of the closed loop at %s connections, leaving out eRPC "
               "and proxyd." % thousands(options.open_base))
    for share, ways in raw.items():
        report.raw("%s, p99 at %g %%" % (title, share * 100), ways, "p99, us")
    report.lines("mix-open-%s-%d" % (mix, service), title, "calls/s asked", "p99, ms", late,
                 log_x=False, log_y=True)


# --- (c) added latency ------------------------------------------------------------------------


def added(got, key):
    """{way: what it adds to asking directly, in each round}"""
    direct = [run[key] for run in got[DIRECT]]
    return {name: [run[key] - d for run, d in zip(runs, direct)]
            for name, runs in got.items() if name != DIRECT}


def ratios(values, of):
    return [a / b for a, b in zip(values, of) if b > 0] or [float("nan")]


def target_rows(got, many):
    """One connection's p50 added, and the p99 of many, each beside HAProxy's of the same round."""
    more = added(got, "p50")
    base = more.get("HAProxy")
    tail = many["HAProxy"] if "HAProxy" in many else None
    for name, runs in got.items():
        p99 = [run["p99"] for run in many[name]]
        one = "" if name == DIRECT else spread(more[name], lambda v: "%+.1f" % v)
        beside = "" if base is None or name == DIRECT else spread(
            ratios(more[name], base), lambda v: "%.2f" % v)
        tails = "" if tail is None else spread(
            ratios(p99, [run["p99"] for run in tail]), lambda v: "%.2f" % v)
        yield "| %s | %s | %s | %s | %s | %s | %s | %s |" % (
            name, spread([run["p50"] for run in runs], lambda v: "%.1f" % v), one, beside,
            spread([run["rate"] for run in many[name]]),
            spread([run["p50"] for run in many[name]], time_of), spread(p99, time_of), tails)


def target(options, report, asker):
    title = "Small distinct calls: added latency beside HAProxy"
    print(title, file=sys.stderr)
    servers = Servers()
    try:
        wanted = options.ways or [DIRECT, "nginx", "HAProxy", HTTP, HTTP + ", batch", IPC, "eRPC",
                                  "proxyd"]
        ways = ways_to(servers, start_node(servers, "--chain"), wanted)
        got, many = [turns(options, ways, lambda way, warm, n=n: asker.run(
            way, "small", n, seconds=min(0.5, options.seconds) if warm else None))
            for n in (1, options.many)]
    finally:
        servers.close()
    broken = [wrong(r) for runs in (got, many) for r in runs.values()
              if any("failed" in x for x in r)]
    if broken or DIRECT not in got:
        raise SystemExit("; ".join(broken) or "--ways: %s is needed" % DIRECT)
    n = thousands(options.many)
    lines = ["### " + title, "",
             "| way | p50 of 1 connection, us | added, us | of HAProxy's | calls/s, %s connections "
             "| p50 | p99 | of HAProxy's |" % n, "|---|---:|---:|---:|---:|---:|---:|---:|"]
    report.add("\n".join(lines + list(target_rows(got, many))))
    report.add("Medians (lowest-highest); what is beside HAProxy's is of the same round. Aims: "
               "added p50 at most HAProxy's over IPC, at most 1.5 of it over HTTP; p99 of %s "
               "connections at most HAProxy's." % n)
    report.raw(title + ", p50 of 1 connection added", added(got, "p50"), "us")
    report.raw("%s, p99 of %s connections" % (title, n),
               {name: [run["p99"] for run in runs] for name, runs in many.items()}, "us")
    report.bars("mix-added", "Added latency, one connection, p50", "us", added(got, "p50"))
    report.bars("mix-tail", "p99 of %s connections, small distinct calls" % n, "us",
                {name: [run["p99"] for run in runs] for name, runs in many.items()})


# --- all --------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = lambda text: [int(x) for x in text.split(",") if x]          # noqa: E731
    names = lambda text: [x.strip() for x in text.split(";")]              # noqa: E731
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    parser.add_argument("--connections", type=numbers, default=[1, 64, 1000, 10000],
                        help="of the closed loop, joined by commas")
    parser.add_argument("--service-us", type=numbers, default=[0, 1000],
                        help="times that the node takes")
    parser.add_argument("--mixes", type=lambda t: t.split(","), default=["distinct", "zipf"],
                        help="with the first service time; the first of them with all")
    parser.add_argument("--shares", type=lambda t: [float(x) for x in t.split(",")],
                        default=[0.5, 0.8, 1.2], help="of the open loop: of the lowest rate")
    parser.add_argument("--open-connections", type=int, default=256)
    parser.add_argument("--open-base", type=int, default=64,
                        help="connections of the closed loop whose lowest rate is 1")
    parser.add_argument("--many", type=int, default=64, help="connections of the p99 aim")
    parser.add_argument("--only", choices=["closed", "open", "target"],
                        help="open: with as much of the closed loop as it needs")
    parser.add_argument("--ways", type=names, help="names of rows, joined by semicolons")
    parser.add_argument("--note", help="a line for the head of the part")
    return options_of(parser, {"rounds": 1, "seconds": 0.2, "service_us": [0],
                               "connections": [1, 64], "mixes": ["zipf"], "shares": [0.5]})


def loops(options, report, asker, service, mix):
    wanted = options.connections
    if options.only == "open":
        options.connections = [options.open_base]
    quiet = Report("mix", "", __doc__, os.devnull) if options.only == "open" else report
    found = closed(options, quiet, asker, service, mix)
    options.connections = wanted
    if options.only != "closed":
        opened(options, report, asker, service, mix, base_rate(found, options))


def main():
    options = parse()
    need("taskset")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    if os.cpu_count() > 1:
        os.sched_setaffinity(0, {int(LOAD_CPU)})
    report = Report("mix", "A mixed load", __doc__, options.write, [NGINX, HAPROXY, ERPC],
                    quick=options.quick)
    scratch = Servers()
    try:
        requests, said = find_requests(scratch.dir)
        missing = [name for name in ("nginx", "haproxy", "erpc", "proxyd")
                   if not shutil.which(name)]
        report.add(" ".join([said] + ["Not there: %s." % ", ".join(missing)] * bool(missing)
                            + [options.note or ""]))
        asker = Asker(options, requests)
        if options.only in (None, "target"):
            target(options, report, asker)
        if options.only != "target":
            for service in options.service_us:
                # By rank, what differs is what caches do; a slower node shows that no better.
                for mix in options.mixes[:1 if service != options.service_us[0] else None]:
                    loops(options, report, asker, service, mix)
    finally:
        scratch.close()
    report.close()


if __name__ == "__main__":
    main()
