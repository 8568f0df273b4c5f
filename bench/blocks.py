#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The last thousand full blocks by real clients: straight from a node, and through the gateway.

    make bench-blocks [BENCH_FLAGS="--chains geth,replay --clients raw,alloy --rounds 5"]

Clients are Alloy (a release build) and web3.py, which decode each block, and a raw client that
decodes nothing. Each asks for full blocks over HTTP, WebSocket and IPC, one by one and with many
workers, of which each takes some blocks at a time: one array, or with Alloy over WebSocket and IPC
as many calls at once, since it sends no arrays there. They ask the node directly (IPC of the node
for IPC, and so on); through the gateway with the middlewares methods, cache and coalesce, which
was started for this and has an empty cache (cold); and the same once more (warm). All clients are
connected before the clock starts; blocks are checked when it has stopped: numbers, the chain of
parent hashes, the sum of transactions and, with the raw client, the length of each reply, equal
over all ways. The ways take turns in each round; medians of the rounds with their lowest and
highest values, and processor seconds of a run. One by one, the servers share one processor and the
client has the other one; with many workers all share all. web3.py gets fewer blocks, since it is
slow by itself. The chains: `geth` is geth --dev with blocks of 150 transfers and a few empty ones
(it has 256 blocks in memory; of those before it finds out each sender anew); `anvil` is anvil with
the like, which finds out the senders anew for each reply; `replay` is a stand-in, ethrpc-gw itself
with a recording of generated blocks of 200 to 490 kB and 150 transactions; `mainnet` the same with
recorded blocks of 200 to 1,150 kB, renumbered to be a chain. Unlike a real node a stand-in spends
no processor time on an answer but waits, and with many calls at once waits for all side by side:
with many workers it is faster than any real node. Needs taskset; clients
and nodes that are missing (t/interop/install, bench/blocks/install) are left out.
"""
import argparse
import json
import os
import socket
import statistics
import sys
import time

from peers import BUILD, HERE, Servers, free_port, listening
from proxy import thousands
from push import cpu_ns
from report import Report, need, options_of

sys.path.insert(0, os.path.join(HERE, "blocks"))
from chains import CHAINS, Missing, program, start_mainnet, start_replay     # noqa: E402
from fetchers import CLIENTS, Reference, alloy_version, place, web3_python   # noqa: E402

ALL = set(os.sched_getaffinity(0))
PLACES = {"sequential": ({min(ALL)}, {max(ALL)}), "parallel": (ALL, ALL)}
WAYS = ("directly", "cold", "warm")
WORDS = {"http": "HTTP", "ws": "WebSocket", "ipc": "IPC"}
BLOCKS = {"geth": 240, "anvil": 40, "replay": 1000, "mainnet": 300}   # unless told
GOALS = {"raw": 0.3, "alloy": 0.7, "web3py": 1.0}

GATEWAY = """workers = %(workers)d;
log = { level = "warn"; };
limits = { max_in_flight = 100000; max_connections_per_client = 1000; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = %(port)d; }, { path = "%(path)s"; } );
admin = { address = "127.0.0.1"; port = %(admin)d; };
networks = ( { name = "main"; middleware = ( { use = "methods"; }%(stage)s,
                 { use = "cache"; memory = "2GiB"; }, { use = "coalesce"; } );
               upstreams = ( { name = "node"; url = "%(url)s"; } ); } );
"""


class Gateway:
    """A fresh one that knows the head of its node."""

    def __init__(self, servers, options, node, mode, prefetch=False):
        self.servers, self.port, self.admin = servers, free_port(), free_port()
        self.path = os.path.join(servers.dir, "gateway-%d.ipc" % self.port)
        url = {"ipc": "ipc://" + node.path, "ws": "ws://127.0.0.1:%d" % node.port,
               "http": "http://127.0.0.1:%d" % node.port}[options.upstream]
        conf = servers.config("gateway.conf", GATEWAY % {
            "workers": options.servers, "port": self.port, "path": self.path, "url": url,
            "admin": self.admin, "stage": ', { use = "prefetch"; }' if prefetch else ""})
        env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
        self.process = servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf],
                                     ",".join(map(str, PLACES[mode][0])), env=env)
        for port in (self.port, self.admin):
            listening(port, self.process)
        self.await_head(node)

    def fetch(self, path):
        with socket.create_connection(("127.0.0.1", self.admin)) as sock:
            sock.sendall(b"GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" % path)
            return b"".join(iter(lambda: sock.recv(65536), b"")).partition(b"\r\n\r\n")[2]

    def await_head(self, node):
        """Until it knows the head and what is final: what is asked for can then be kept."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            head = json.loads(self.fetch(b"/status"))["networks"][0]["head"] or {}
            final = (head.get("finalized") or {}).get("number")
            if final == node.final:
                return
            time.sleep(0.02)
        raise SystemExit("the gateway does not get to know the head: %s" % head)

    def stop(self):
        self.servers.stop(self.process)


class Bench:
    """One node with its chain, the clients, and what was measured: {way: [outcome, ...]}."""

    def __init__(self, servers, options, clients, node):
        self.servers, self.options, self.clients, self.node = servers, options, clients, node
        self.reference = Reference(node, options.blocks)

    def workers(self, client, mode):
        """How many, and blocks of a call: not so many that some worker has none."""
        if mode != "parallel":
            return ()
        return self.options.workers, max(1, min(
            self.options.each, client.blocks(self.options) // self.options.workers))

    def run(self, client, kind, mode, server, words):
        """One verified run; the outcome has the processor seconds of all."""
        numbers = self.reference.last(client.blocks(self.options))
        workers, pids = self.workers(client, mode), {"node": self.node.process.pid}
        if server is not self.node:
            pids["gateway"] = server.process.pid
        before = {name: cpu_ns(pid) for name, pid in pids.items()}
        got = client.run(kind, server, numbers, workers, PLACES[mode][1])
        for name, pid in pids.items():
            got[name] = (cpu_ns(pid) - before[name]) / 1e9
        self.reference.check(client, got, numbers, workers, "%s over %s, %s" % (
            client.label, kind, words))
        got.pop("replies", None)
        return dict(got, each=workers[1] if workers else 1)

    def turn(self, job, client, kind, mode, again):
        """{way: outcome} of one of the things that take turns; again: once more, warm."""
        if job == "directly":
            return {job: self.run(client, kind, mode, self.node, job)}
        gateway = Gateway(self.servers, self.options, self.node, mode, job == "prefetch")
        try:
            out = {job: self.run(client, kind, mode, gateway, job)}
            if again and job == "cold":
                out["warm"] = self.run(client, kind, mode, gateway, "warm")
        finally:
            gateway.stop()
        return out

    def measure(self, mode, kinds, ways):
        """{(client, kind, way): [outcome, ...]}"""
        place(self.node.process.pid, PLACES[mode][0])
        out, jobs, again = {}, [x for x in ways if x != "warm"], "warm" in ways
        for number in range(self.options.rounds):
            began = time.monotonic()
            for client in self.clients:
                for kind in kinds:
                    at = number % len(jobs)
                    for job in jobs[at:] + jobs[:at]:
                        for way, got in self.turn(job, client, kind, mode, again).items():
                            out.setdefault((client, kind, way), []).append(got)
            print("  %s, round %d of %d, %.0f s" % (mode, number + 1, self.options.rounds,
                                                    time.monotonic() - began), file=sys.stderr)
        return out


# --- tables -----------------------------------------------------------------------------------


def middle(outcomes, key="seconds"):
    return statistics.median(x[key] for x in outcomes)


def ratio(out, client, kind, way):
    return middle(out[client, kind, way]) / middle(out[client, kind, "directly"])


def words_of(mode, options):
    return "one by one" if mode == "sequential" else "%d workers, %d blocks a call" % (
        options.workers, options.each)


def summary(report, title, options, clients, reference, found):
    """Ratios of all modes in one table."""
    modes, kinds, numbers = list(found), options.transports, reference.numbers
    lines = ["### " + title, "",
             "A block has %.0f kB and %.0f transactions on average; the gateway, with %d worker%s, "
             "asks the node over %s. The time, of the time straight to the node:" % (
                 reference.sum(numbers, 0) / len(numbers) / 1e3,
                 reference.sum(numbers, 3) / len(numbers), options.servers,
                 "s"[:options.servers - 1], WORDS[options.upstream]), "",
             "| client | transport | " + " | ".join(
                 "%s: %s" % (words_of(mode, options), way) for mode in modes for way in WAYS[1:])
             + " |", "|---|---|" + "---:|" * (2 * len(modes))]
    for client in clients:
        for kind in kinds:
            lines.append("| %s | %s | %s |" % (client.label, WORDS[kind], " | ".join(
                "%.3f" % ratio(found[mode], client, kind, way)
                for mode in modes for way in WAYS[1:])))
    lines += ["", "What is aimed at: cold at most 1.05; warm at most %s." % ", ".join(
        "%.1f with %s" % (GOALS[client.name], client.label) for client in clients)]
    report.add("\n".join(lines))


def row(out, key):
    client, kind, way = key
    got = out[key]
    seconds = [x["seconds"] for x in got]
    return "| " + " | ".join([
        client.label, WORDS[kind], way, thousands(got[0]["count"]), str(got[0]["each"]),
        "%.3f (%.3f-%.3f)" % (middle(got), min(seconds), max(seconds)),
        "%.3f" % ratio(out, client, kind, way),
        "%.2f ms" % (1e3 * middle(got, "p50")), "%.2f ms" % (1e3 * middle(got, "p99")),
        *("%.2f s" % middle(got, who) if who in got[0] else ""
          for who in ("cpu", "gateway", "node"))]) + " |"


def details(report, title, out, ways):
    """Seconds, and where they went."""
    lines = ["#### " + title, "",
             "| client | transport | way | blocks | of a call | seconds (lowest-highest) | "
             "of direct | a call p50 | p99 | processor: client | gateway | node |",
             "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for key in sorted(out, key=lambda x: order(x, ways)):
        lines.append(row(out, key))
    report.add("\n".join(lines))
    report.raw(title, {"%s, %s, %s" % (client.label, WORDS[kind], way): [x["seconds"] for x in got]
                       for (client, kind, way), got in out.items()}, "seconds")


def order(key, ways):
    client, kind, way = key
    return list(CLIENTS).index(client.name), list(WORDS).index(kind), ways.index(way)


def chart(report, name, title, client, out, ways):
    """Of one client, or the first where it was left out."""
    clients = {key[0].name: key[0] for key in out}
    client = clients.get(client) or next(iter(clients.values()))
    keys = sorted((key for key in out if key[0] is client), key=lambda x: order(x, ways))
    report.bars(name, "%s, %s" % (client.label, title), "s", {
        "%s, %s" % (WORDS[kind], way): [x["seconds"] for x in out[client, kind, way]]
        for client, kind, way in keys})


# --- parts ------------------------------------------------------------------------------------


TITLES = {"geth": "geth --dev", "anvil": "anvil",
          "replay": "A stand-in with generated blocks, %g ms for a call",
          "mainnet": "A stand-in with recorded blocks of mainnet, %g ms for a call"}


def changed(options, **values):
    return argparse.Namespace(**dict(vars(options), **values))


def one_chain(report, options, clients, name):
    """All modes at one node."""
    servers = Servers()
    options = changed(options, blocks=options.blocks or BLOCKS[name])
    try:
        print(name, file=sys.stderr)
        bench = Bench(servers, options, clients, CHAINS[name](servers, options, cpu_list(ALL)))
        found = {mode: bench.measure(mode, options.transports, WAYS)
                 for mode in options.modes}
        title = TITLES[name] % options.service_ms if "%" in TITLES[name] else TITLES[name]
        summary(report, "%s: %s blocks" % (title, thousands(options.blocks)), options, clients,
                bench.reference, found)
        for mode, out in found.items():
            words = "%s, %s" % (title, words_of(mode, options))
            details(report, words, out, WAYS)
            chart(report, "blocks-%s-%s" % (name, mode), "%s blocks: %s" % (
                thousands(options.blocks), words), "alloy", out, WAYS)
    finally:
        servers.close()


def far_away(report, options, clients):
    """One by one, a long way from the node, where prefetch is for."""
    servers = Servers()
    few = changed(options, blocks=options.far_blocks)
    start = start_mainnet if options.chains == ["mainnet"] else start_replay
    ways = ("directly", "cold", "prefetch")
    try:
        print("%d ms from the node" % options.far_ms, file=sys.stderr)
        bench = Bench(servers, few, [x for x in clients if x.name != "web3py"],
                      start(servers, few, cpu_list(ALL), options.far_ms))
        out = bench.measure("sequential", options.far_transports, ways)
        title = "%d ms from the node, %s blocks one by one, cold, without and with prefetch" % (
            options.far_ms, thousands(few.blocks))
        details(report, title, out, ways)
        report.add("\n".join("With prefetch, %s over %s is %.1f times as fast as directly." % (
            client.label, WORDS[kind], 1 / ratio(out, client, kind, way))
            for client, kind, way in out if way == "prefetch"))
        chart(report, "blocks-far", title, "alloy", out, ways)
    finally:
        servers.close()


def cpu_list(cpus):
    return ",".join(map(str, sorted(cpus)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])

    def several(names):
        def parse(text):
            found = [x for x in text.split(",") if x]
            if set(found) - set(names):
                raise argparse.ArgumentTypeError("of " + ", ".join(names))
            return found
        return parse
    kinds = several(WORDS)
    parser.add_argument("--chains", type=several(CHAINS), default=["geth", "replay"],
                        help="of geth, anvil, replay, mainnet, joined by commas")
    parser.add_argument("--clients", type=several(CLIENTS), default=list(CLIENTS),
                        help="of raw, alloy, web3py")
    parser.add_argument("--transports", type=kinds, default=list(WORDS), help="of http, ws, ipc")
    parser.add_argument("--modes", type=several(PLACES), default=list(PLACES),
                        help="of sequential, parallel")
    parser.add_argument("--blocks", type=int, help="default: by chain, %s" % ", ".join(
        "%s %d" % pair for pair in BLOCKS.items()))
    parser.add_argument("--web3py-blocks", type=int, default=40, help="of them with web3.py")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=8, help="in parallel")
    parser.add_argument("--each", type=int, default=10, help="blocks of a call, in parallel")
    parser.add_argument("--upstream", default="ipc", choices=list(WORDS),
                        help="how the gateway asks the node")
    parser.add_argument("--servers", type=int, default=1,
                        help="worker threads of the gateway, and of a stand-in")
    parser.add_argument("--service-ms", type=int, default=2, help="of a stand-in, for each call")
    parser.add_argument("--far-ms", type=int, default=20, help="0: no part with prefetch")
    parser.add_argument("--far-blocks", type=int, default=200)
    parser.add_argument("--far-transports", type=kinds, default=["http"])
    return options_of(parser, {"chains": ["replay"], "blocks": 5, "far_blocks": 5, "rounds": 1,
                               "workers": 2, "each": 2})


def main():
    options = arguments()
    need("taskset")
    clients, left_out = [], []
    for name in options.clients:
        client = CLIENTS[name](options)
        if client.missing:
            left_out.append("%s: %s" % (client.label, client.missing))
        else:
            clients.append(client)
    if not clients:
        raise SystemExit("no client is there: " + "; ".join(left_out))
    programs = [(name, (program(name), word)) for name, word in
                (("geth", "version"), ("anvil", "--version"))
                if name in options.chains and program(name)]
    programs += [("web3.py", (web3_python(), "-c", "import web3; print(web3.__version__)"))
                 for client in clients if client.name == "web3py"]
    report = Report("blocks", "A thousand full blocks", __doc__, options.write, programs,
                    options.quick)
    if any(client.name == "alloy" for client in clients):
        report.add("Alloy %s." % alloy_version())
    try:
        for name in options.chains:
            try:
                one_chain(report, options, clients, name)
            except Missing as why:
                left_out.append("%s: %s" % (name, why))
        if options.far_ms:
            far_away(report, options, clients)
        for line in left_out:
            report.add("Left out: %s." % line)
        report.close()
    finally:
        for client in clients:
            client.close()


if __name__ == "__main__":
    main()
