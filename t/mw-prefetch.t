#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware prefetch in the whole program, above cache and coalesce: walks over each transport in
and out, and against anvil."""
import os
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import gateway
import nodes
import rawjson
import tap
import wire
from clients import request
from fakenode import HANDLED
from wire import row

BLOCKS = 150
SLOW = 0.02                      # seconds the node takes


def stages(**options):
    return {"middleware": [{"use": "methods"}, dict({"use": "prefetch"}, **options),
                           {"use": "cache"}, {"use": "coalesce"}],
            "network": {"poll_interval": "100ms"}, "live": True, "fresh": True, "workers": 1}


WITH = stages()


def known(env, which="tip"):
    head = rawjson.parse(env.gw.admin("/status")[1])["networks"][0]["head"] or {}
    return head.get(which, {}).get("number")


def grown(env):
    while env.chain.number() < BLOCKS - 1:
        env.chain.mine(quiet=True)
    env.chain.mine()
    tap.eventually(lambda: known(env) == BLOCKS and
                   known(env, "finalized") == BLOCKS - env.chain.final, 8,
                   "the gateway knows the head")


def metric(env, name):
    full = "ethrpcgw_prefetch_" + name
    return env.gw.metric(full if name in ("walking", "in_flight") else full + "_total")


class Slow:
    """The node takes its time for a method; notes what it is asked for, and how much at once."""

    def __init__(self, env, method="eth_getBlockByNumber", seconds=SLOW):
        self.env, self.method, self.seconds = env, method, seconds
        self.lock = threading.Lock()
        self.open, self.most, self.params = 0, 0, []
        env.node.script = self.script

    def script(self, req):
        if req.method != self.method or not self.counts(req.args()[0]):
            return None
        with self.lock:
            self.open += 1
            self.most = max(self.most, self.open)
            self.params.append(req.params)
        self.env.node.at(self.seconds, lambda: self.end(req))
        return HANDLED

    @staticmethod
    def counts(first):
        return isinstance(first, dict) or first.startswith("0x")

    def end(self, req):
        with self.lock:
            self.open -= 1
        req.respond(self.env.node.usual(req))

    def numbers(self):
        with self.lock:
            return [int(rawjson.parse(p)[0], 16) for p in self.params]


def walk(env, client, numbers, method="eth_getBlockByNumber", rest=(True,)):
    for n in numbers:
        params = [hex(n), *rest]
        tap.eq(client.call(method, params, n).ok(), env.want(method, rawjson.compact(params)),
               "block %d" % n)


def right_numbers(env, slow, numbers):
    """Each block was asked for once, and few that nobody wanted."""
    seen = slow.numbers()
    tap.eq(sorted(set(numbers) - set(seen)), [], "blocks that were never asked for")
    tap.at_most(len(seen) - len(set(seen)), 2)
    tap.at_most(len(set(seen) - set(numbers)), 32)
    tap.check(all(0 <= n <= BLOCKS for n in seen), "no block that is not there")


@row("prefetch", "a walk upward", clients="http ws ipc", upstreams="http ws ipc", **WITH)
def upward(env, client):
    grown(env)
    slow = Slow(env)
    numbers = range(20, 100)
    walk(env, client, numbers)
    right_numbers(env, slow, numbers)
    tap.at_least(metric(env, "used"), 70)
    tap.at_least(slow.most, 4)
    tap.eq(metric(env, "walks"), 1, "walks")


@row("prefetch", "a walk downward, to the first block", clients="http ws", upstreams="http", **WITH)
def downward(env, client):
    grown(env)
    slow = Slow(env)
    numbers = range(60, -1, -1)
    walk(env, client, numbers)
    right_numbers(env, slow, numbers)
    tap.eq(metric(env, "wasted"), 0, "wasted")
    tap.at_least(metric(env, "used"), 50)


@row("prefetch", "a walk up to the tip and on with it", clients="http ws", upstreams="ws", **WITH)
def to_the_tip(env, client):
    grown(env)
    slow = Slow(env)
    walk(env, client, range(BLOCKS - 30, BLOCKS + 1))
    tap.eq(max(slow.numbers()), BLOCKS, "the highest block that was asked for")
    for n in range(BLOCKS + 1, BLOCKS + 6):
        env.chain.mine()
        tap.eventually(lambda: known(env) == n, 5, "the next block")  # pylint: disable=cell-var-from-loop
        walk(env, client, [n])
    tap.eq(max(slow.numbers()), BLOCKS + 5, "still")


@row("prefetch", "receipts, state, and windows of logs", clients="http ipc", upstreams="http", **WITH)
def methods(env, client):
    grown(env)
    for method, rest in (("eth_getBlockReceipts", ()), ("eth_getBlockByNumber", (False,))):
        slow = Slow(env, method)
        before = metric(env, "used")
        walk(env, client, range(10, 50), method, rest)
        tap.at_least(metric(env, "used") - before, 30)
        tap.at_least(slow.most, 3)
    before = metric(env, "used")
    Slow(env, "eth_getLogs")
    for n in range(0, 120, 5):
        params = [{"fromBlock": hex(n), "toBlock": hex(n + 4)}]
        tap.eq(client.call("eth_getLogs", params).ok(),
               env.want("eth_getLogs", rawjson.compact(params)), "logs from %d on" % n)
    tap.at_least(metric(env, "used") - before, 18)


@row("prefetch", "a new connection for each call", clients="-", upstreams="http", **WITH)
def connections(env):
    grown(env)
    Slow(env)
    for n in range(20, 70):
        with env.client("http") as client:
            walk(env, client, [n])
    tap.at_least(metric(env, "used"), 40)


@row("prefetch", "workers of one client side by side", clients="ws ipc", upstreams="http", **WITH)
def side_by_side(env, client):
    grown(env)
    slow = Slow(env)
    wanted = list(range(10, 90))
    for i in range(0, len(wanted), 8):
        for n in wanted[i + 1:i + 8] + wanted[i:i + 1]:
            client.send(request("eth_getBlockByNumber", [hex(n), True], n))
        for _ in range(8):
            reply = client.recv()
            n = int(rawjson.member(reply, "id"))
            tap.eq(rawjson.member(reply, "result"),
                   env.want("eth_getBlockByNumber", b'["%s",true]' % hex(n).encode()), "block %d" % n)
    right_numbers(env, slow, wanted)
    tap.at_least(metric(env, "used"), 50)


@row("prefetch", "arrays of blocks one after the other", clients="http ws ipc", upstreams="http",
     **WITH)
def arrays(env, client):
    grown(env)
    slow = Slow(env)
    wanted = list(range(10, 110))
    for i in range(0, len(wanted), 10):
        got = client.batch([request("eth_getBlockByNumber", [hex(n), True], n)
                            for n in wanted[i:i + 10]])
        for n, reply in zip(wanted[i:i + 10], got):
            tap.eq(reply.ok(), env.want("eth_getBlockByNumber", b'["%s",true]' % hex(n).encode()),
                   "block %d" % n)
    right_numbers(env, slow, wanted)
    tap.at_least(metric(env, "used"), 60)


@row("prefetch", "a call for what is being fetched joins it", clients="http ws", upstreams="http",
     **WITH)
def joins(env, client):
    grown(env)
    walk(env, client, (30, 31))
    held = []

    def script(req):
        if req.method != "eth_getBlockByNumber" or req.args()[0] not in ("0x21", "0x22"):
            return None
        held.append(req)
        return HANDLED

    env.node.script = script
    walk(env, client, [32])
    tap.eventually(lambda: len(held) == 2, 5, "the next two are fetched")
    with env.client("http") as other:
        other.send(request("eth_getBlockByNumber", ["0x21", True], 1))
        tap.eventually(lambda: env.gw.metric("ethrpcgw_coalesce_waiting") == 1, 5, "a call waits")
        for req in list(held):
            req.respond(env.node.usual(req))
        tap.eq(rawjson.member(other.recv(), "result"),
               env.want("eth_getBlockByNumber", b'["0x21",true]'), "the block")
    env.node.script = None
    walk(env, client, [33, 34])
    tap.eq([r.args()[0] for r in held].count("0x21"), 1, "times it was asked for")


@row("prefetch", "a walk that stops leaves nothing behind", clients="http ws", upstreams="http",
     **stages(idle="300ms"))
def stops(env, client):
    grown(env)
    slow = Slow(env, seconds=30)
    for n in (30, 31, 32):
        env.node.script = None if n < 32 else slow.script
        client.send(request("eth_getBlockByNumber", [hex(n), True], n))
        if n < 32:
            client.recv()
    tap.eventually(lambda: metric(env, "in_flight") == 2, 5, "two are fetched")
    client.reset()
    tap.eventually(lambda: metric(env, "walking") == 0 and metric(env, "in_flight") == 0, 8,
                   "the walk is over, what was under way is given up")
    tap.eventually(lambda: env.gw.metric("ethrpcgw_calls_in_flight") == 0, 8, "nothing is left")
    tap.eq(metric(env, "wasted"), 2, "wasted")


@row("prefetch", "without a cache it gives up", clients="http", upstreams="http",
     **dict(WITH, middleware=[{"use": "prefetch"}]))
def no_cache(env, client):
    grown(env)
    Slow(env, seconds=0.002)
    walk(env, client, range(10, 90))
    tap.eq(metric(env, "walking"), 0, "walks going on")
    tap.at_most(metric(env, "fetched"), 20)


@row("prefetch", "new heads are fetched once for all", clients="ws", upstreams="http ws",
     **stages(on_head=["block", "full", "receipts", "logs"]))
def on_head(env, client):
    grown(env)
    tap.eventually(lambda: metric(env, "warmed") >= 4, 5, "the head is fetched")
    before = metric(env, "warmed")
    head = env.chain.mine()
    tap.eventually(lambda: metric(env, "warmed") == before + 4, 5, "the new one as well")
    asks = [("eth_getBlockByNumber", [head["number"], False]),
            ("eth_getBlockByNumber", [head["number"], True]),
            ("eth_getBlockReceipts", [head["number"]]), ("eth_getLogs", [{"blockHash": head["hash"]}])]
    hits = env.gw.metric("ethrpcgw_cache_hits_total")
    for method, params in asks:
        tap.eq(client.call(method, params).ok(), env.want(method, rawjson.compact(params)), method)
    tap.at_least(env.gw.metric("ethrpcgw_cache_hits_total") - hits, 3)


def against_anvil():
    """Real blocks and receipts, each as anvil says directly."""
    with nodes.Anvil() as node:
        nodes.furnish(node, big=5)
        for _ in range(60):
            node.ask("evm_mine")
        last = int(node.ask("eth_blockNumber"), 16)
        for kind in ("http", "ws", "ipc"):
            with gateway.Gateway([{"name": "anvil", "url": node.urls[kind]}],
                                 middleware=WITH["middleware"], workers=1,
                                 network={"poll_interval": "100ms"}) as gw:
                tap.eventually(lambda: rawjson.parse(gw.admin("/status")[1])  # pylint: disable=cell-var-from-loop
                               ["networks"][0]["head"], 8, "the head is known")
                with node.client("http") as direct:
                    for own in ("http", "ws", "ipc"):
                        with gw.client(own) as client:
                            for n in range(0, last + 2):
                                for method, params in (("eth_getBlockByNumber", [hex(n), True]),
                                                       ("eth_getBlockReceipts", [hex(n)])):
                                    want = direct.call(method, params)
                                    got = client.call(method, params)
                                    tap.eq(got.error is None and rawjson.parse(got.result),
                                           want.error is None and rawjson.parse(want.result),
                                           "%s %s %d" % (own, method, n))
                tap.at_least(gw.metric("ethrpcgw_prefetch_used_total"), 30)


gateway.need_program()
if nodes.program("anvil") is not None:
    tap.run("against anvil, over each transport", against_anvil)
wire.main(300)
