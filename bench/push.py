#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What it takes to tell a new head to thousands of subscribers over WebSocket.

    make bench-push [BENCH_FLAGS="--rounds 5 --heads 40 --subscribers 1000,10000"]

A scripted node pushes heads at a fixed pace over IPC; ethrpc-gw (one worker) has so many
subscriptions to newHeads, one on each connection, or 100. Measured: the time from the node's
event until the last subscriber has it, and the gateway's processor time for each delivered
event; beside it a bare loop that sends messages of the same length on as many sockets, one send()
each (bench/fanout). The servers have one processor, the node and the subscribers the other one.
They take turns; the tables have medians over the rounds. Needs taskset.
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

from peers import BUILD, HERE, LOAD_CPU, SERVER_CPU, Servers, free_port, listening
from proxy import thousands
from report import Report, need, options_of

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "t", "lib"))
from chain import Chain, word   # noqa: E402
from fakenode import Node       # noqa: E402
import rawjson                  # noqa: E402

WARM = 2                         # heads that are not counted

CONF = """workers = 1;
memory = "1GiB";
log = { level = "warn"; };
limits = { max_connections = 15000; max_connections_per_client = 15000; max_subscriptions = 1000;
           max_in_flight = 1000; idle_timeout = "10m"; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = %d; } );
networks = ( { name = "main"; middleware = ( { use = "methods"; } );
               upstreams = ( { name = "node"; url = "%s"; } ); } );
"""


def header_extra(number):
    """What a header of a real chain has beside what the scripted one has."""
    return {"transactionsRoot": word("txs", number), "receiptsRoot": word("receipts", number),
            "sha3Uncles": word("uncles"), "mixHash": word("mix", number), "difficulty": "0x0",
            "nonce": "0x0000000000000000", "withdrawalsRoot": word("withdrawals", number),
            "parentBeaconBlockRoot": word("beacon", number), "blobGasUsed": "0x20000",
            "excessBlobGas": "0x0", "requestsHash": word("requests", number)}


def cpu_ns(pid):
    """Processor time of a process, all threads."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def start_subscribers(port, connections, each, heads):
    process = subprocess.Popen(
        ["taskset", "-c", LOAD_CPU, os.path.join(BUILD, "bench", "fanout"), "get", str(port),
         str(connections), str(each), str(heads)], stdout=subprocess.PIPE, text=True)
    return process


def await_ready(process):
    if process.stdout.readline() != "ready\n":
        raise SystemExit("the subscribers failed")


def deliver(subscribers, pid, heads, pace, push):
    """Lets `push` send heads; ([seconds to the last subscriber], ns of processor, bytes)."""
    took, size = [], 0
    begun = None
    due = time.monotonic()
    for number in range(heads):
        due += pace
        time.sleep(max(0.0, due - time.monotonic()))
        if number == WARM:
            begun = cpu_ns(pid)
        at = push(number)
        line = subscribers.stdout.readline().split()
        if len(line) != 4 or line[0] != "head":
            raise SystemExit("the subscribers failed")
        if number >= WARM:
            took.append((int(line[2]) - at) / 1e9)
            size = int(line[3])
    used = cpu_ns(pid) - begun
    subscribers.wait(30)
    return took, used, size


def one_gateway(options, connections, each, heads):
    servers = Servers()
    chain = Chain()
    node = Node("ipc", chain, folder=servers.dir)
    try:
        port = free_port()
        env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
        conf = servers.config("gw.conf", CONF % (port, node.url()))
        process = servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf], env=env)
        listening(port, process)
        subscribers = start_subscribers(port, connections, each, heads)
        await_ready(subscribers)

        def push(number):
            at = time.monotonic_ns()
            chain.mine(**header_extra(number))
            return at
        return deliver(subscribers, process.pid, heads, options.pace, push)
    finally:
        node.close()
        servers.close()


def one_bare(options, connections, each, heads):
    servers = Servers()
    try:
        chain = Chain()
        path = servers.config("headers", "".join(
            rawjson.compact(chain.mine(quiet=True, **header_extra(n))).decode() + "\n"
            for n in range(heads)))
        sender = subprocess.Popen(
            ["taskset", "-c", SERVER_CPU, os.path.join(BUILD, "bench", "fanout"), "send",
             str(connections), str(each), path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        servers.processes.append(sender)
        port = int(sender.stdout.readline().partition("=")[2])
        subscribers = start_subscribers(port, connections, each, heads)
        if sender.stdout.readline() != "ready\n":
            raise SystemExit("bench/fanout failed")
        await_ready(subscribers)

        def push(_):
            at = time.monotonic_ns()
            sender.stdin.write("\n")
            sender.stdin.flush()
            return at
        return deliver(subscribers, sender.pid, heads, options.pace, push)
    finally:
        servers.close()


def at_share(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def measure(options, connections, each):
    heads = options.heads + WARM
    got = {"bare send()": [], "ethrpc-gw": []}
    run = {"bare send()": one_bare, "ethrpc-gw": one_gateway}
    for number in range(options.rounds):
        for name in sorted(got, reverse=number % 2 == 0):
            got[name].append(run[name](options, connections, each, heads))
        print("  round %d of %d" % (number + 1, options.rounds), file=sys.stderr)
    return got


def cost(options, events, got):
    """Microseconds of processor time for each event that was delivered: {sender: [...]}."""
    return {name: [used / 1e3 / events / options.heads for _, used, _ in runs]
            for name, runs in got.items()}


def rows(options, connections, each, got):
    events = connections * each
    costs = cost(options, events, got)
    bare = statistics.median(costs["bare send()"])
    for name, runs in got.items():
        took = [x * 1e3 for times, _, _ in runs for x in times]
        yield "| %s | %s | %s | %d | %.1f ms | %.1f ms | %.2f us (%.2f-%.2f) | %.2f |" % (
            thousands(events), thousands(connections), name, runs[0][2] / events,
            at_share(took, 0.5), at_share(took, 0.99), statistics.median(costs[name]),
            min(costs[name]), max(costs[name]), statistics.median(costs[name]) / bare)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--heads", type=int, default=30, help="of each measurement")
    parser.add_argument("--subscribers", default="1000,10000", help="numbers, joined by commas")
    parser.add_argument("--each", default="1,100", help="subscriptions of a connection")
    parser.add_argument("--pace", type=float, default=0.25, help="seconds between heads")
    options = options_of(parser, {"rounds": 1, "heads": 2, "subscribers": "100", "pace": 0.02})
    need("taskset")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    if os.cpu_count() > 1:
        os.sched_setaffinity(0, {int(LOAD_CPU)})
    report = Report("push", "Heads told to subscribers", __doc__, options.write,
                    quick=options.quick)
    costs = {}
    lines = ["### One head to many subscribers over WebSocket, %d rounds of %d heads" % (
        options.rounds, options.heads), "",
        "| subscriptions | connections | sender | bytes | last one has it, p50 | p99 | processor "
        "time for each event (lowest-highest) | of bare |", "|---:|---:|---|---:|---:|---:|---:|---:|"]
    for count in map(int, options.subscribers.split(",")):
        for each in map(int, options.each.split(",")):
            if each > count:
                continue
            print("%d subscriptions, %d on each connection" % (count, each), file=sys.stderr)
            got = measure(options, count // each, each)
            lines += rows(options, count // each, each, got)
            for name, values in cost(options, count, got).items():
                costs["%s subscriptions, %d on each connection, %s" % (
                    thousands(count), each, name)] = values
    report.add("\n".join(lines))
    report.raw("the processor time of an event", costs, "us")
    report.bars("push", "A head to many subscribers", "us of processor time each", costs)
    report.close()


if __name__ == "__main__":
    main()
