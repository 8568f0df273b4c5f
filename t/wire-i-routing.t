#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour I and J, as far as it needs no head tracker: what is an answer, what is tried
again, which node is asked."""
import os
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import Reply, request
from fakenode import HANDLED, raw, reset, silent
from gateway import Gateway
from wire import row


def reads(env, client, count=20, start=0):
    for i in range(start, start + count):
        tap.eq(client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i), "read %d" % i)


@row("I3", "a node's word on a transaction: %s", clients="http ws", upstreams="http+http",
     each=["insufficient funds for gas * price + value", "replacement transaction underpriced",
           "intrinsic gas too low"])
def i3(env, client, text):
    for node in env.nodes:
        node.script = lambda req: req.error(-32000, text) \
            if req.method == "eth_sendRawTransaction" else None
    reply = client.call("eth_sendRawTransaction", ["0x01"])
    tap.eq(rawjson.parse(reply.error), {"code": -32000, "message": text}, "the error")
    tap.eq(env.asked("eth_sendRawTransaction"), 1, "attempts")
    reads(env, client)
    tap.check(all(node.count("eth_call") for node in env.nodes), "both are used")


@row("I4", "%s", clients="http ws ipc", upstreams="http+http",
     each=[("revert with data", 3, "execution reverted: nope", "0x08c379a0"),
           ("revert as -32000", -32000, "execution reverted", None),
           ("Parity's revert", -32015, "VM execution error.", "Reverted 0x"),
           ("out of gas", -32000, "EVM error: OutOfGas", None)])
def i4(env, client, code, text, data):
    for node in env.nodes:
        node.script = lambda req: req.error(code, text, data) if req.params == b'["revert"]' else None
    for _ in range(100):
        got = rawjson.parse(client.call("eth_call", ["revert"]).error)
        tap.eq((got["code"], got["message"], got.get("data")), (code, text, data), "verbatim")
    tap.eq(env.asked("eth_call"), 100, "one attempt each")
    reads(env, client)
    tap.check(all(node.count("eth_call") > 20 for node in env.nodes), "both stay in use")


@row("I7", "results that look like none: %s", clients="http ws ipc", upstreams="http",
     each=[b'"0x0"', b'"0x"', b"[]", b"false", b'""', b"0", b"null", b"{}"])
def i7(env, client, value):
    env.node.script = lambda req: req.result(value) if req.params == b'["odd"]' else None
    began = time.monotonic()
    tap.eq(client.call("eth_call", ["odd"]).ok(), value, "as it is")
    tap.at_most(time.monotonic() - began, tap.limit(0.5), "seconds")
    tap.eq(env.asked("eth_call"), 1, "attempts")


@row("I12", "the only node fails every second call: %s", clients="http", upstreams="http", fresh=True,
     each=["status 500", "reset", "garbage"])
def i12(env, client, how):
    count = [0]

    def script(req):
        if req.method != "eth_call":
            return None
        count[0] += 1
        if count[0] % 2:
            return None
        return {"status 500": raw(b"oops", status=500), "reset": reset(),
                "garbage": raw(b'{"jsonrpc":"2.0","id":1,"resu')}[how]

    env.node.script = script
    good = sum(client.call("eth_call", [i]).error is None for i in range(60))
    tap.at_least(good, 28, "successes of 60")
    env.node.script = None
    reads(env, client)


@row("I16", "a node's limit on logs: %s", clients="http", upstreams="http+http",
     each=[("too many results", -32005, "query returned more than 10000 results"),
           ("range", -32602, "eth_getLogs block range too large"),
           ("invalid", -32600, "block range is too wide"),
           ("too big", -32008, "Response is too big"),
           ("maximum range", -32000, "exceed maximum block range: 5000")])
def i16(env, client, code, text):
    for node in env.nodes:
        node.script = lambda req: req.error(code, text) if req.method == "eth_getLogs" else None
    got = rawjson.parse(client.call("eth_getLogs", [{"fromBlock": "0x0", "toBlock": "0x1"}]).error)
    tap.eq((got["code"], got["message"]), (code, text), "verbatim")
    tap.eq(env.asked("eth_getLogs"), 1, "attempts")
    reads(env, client)
    tap.check(all(node.count("eth_call") for node in env.nodes), "no penalty")


@row("I17", "three nodes that fail a third of the time", clients="http ws", upstreams="http+ws+http",
     fresh=True, network={"attempt_timeout": "700ms"})
def i17(env, client):
    dice = random.Random(17)

    def script(req):
        if req.method != "eth_call" or dice.random() > 0.33:
            return None
        return dice.choice([lambda: req.later(0.2), silent, reset,
                            lambda: raw(b"oops", status=500), lambda: raw(b"{nonsense")])()

    for node in env.nodes:
        node.script = script

    def some(worker):
        right = answered = 0
        with env.client(client.kind) as one:
            for i in range(10):
                reply = one.call("eth_call", [worker, i], i, timeout=10)
                tap.eq(reply.id, b"%d" % i, "id")
                answered += 1
                if reply.error is None:
                    tap.eq(reply.result, env.want("eth_call", b"[%d,%d]" % (worker, i)), "a right value")
                    right += 1
        return right, answered

    got = tap.parallel([lambda w=w: some(w) for w in range(30)], 60)
    tap.eq(sum(n for _, n in got), 300, "answers")
    tap.at_least(sum(n for n, _ in got), 285, "right ones of 300")


@row("I19", "a transaction between reads; its node accepts it and resets", clients="http ws",
     upstreams="http+http", fresh=True)
def i19(env, client):
    first = []

    def script(req):
        if req.method != "eth_sendRawTransaction" or first:
            return None
        first.append(req)
        return reset()

    for node in env.nodes:
        node.script = script
    got = client.batch([request("eth_call", [1], 1), request("eth_sendRawTransaction", ["0x01"], 2),
                        request("eth_getBalance", ["0x02", "0x1"], 3)])
    tap.eq(got[0].ok(), env.want("eth_call", b"[1]"), "first read")
    tap.eq(got[2].ok(), env.want("eth_getBalance", b'["0x02","0x1"]'), "second read")
    tap.eq(got[1].id, b"2", "the transaction is answered")
    tap.check(all(node.count("eth_sendRawTransaction") <= 1 for node in env.nodes),
              "sent at most once to each")


@row("J3", "a node answers 500 to everything", clients="http", upstreams="http+http", fresh=True)
def j3(env, client):
    bad, good = env.nodes
    bad.script = lambda req: raw(b"oops", status=500)
    reads(env, client, 100)
    tap.at_most(bad.count("eth_call"), 4, "calls at the bad one")
    before = len(bad.seen())
    tap.never(lambda: len(bad.seen()) - before > 12, 1.0, "many probes within a second")
    bad.script = None
    tap.eventually(lambda: client.call("eth_call", [1]).ok() and bad.count("eth_call") > 4, 12,
                   "it is used again")


@row("J4", "a node that refuses what is usual for probes", clients="http ws", upstreams="http ws http+http",
     fresh=True)
def j4(env, client):
    odd = ("net_peerCount", "net_listening", "eth_syncing", "web3_clientVersion", "eth_chainId")
    env.nodes[0].script = lambda req: req.error(-32601, "no such method") if req.method in odd else None
    reads(env, client, 40)
    tap.at_least(env.nodes[0].count("eth_call"), 40 // len(env.nodes) - 8, "its share")


@row("tiers", "the second tier is asked when the first is gone", clients="http", upstreams="http+http",
     fresh=True)
def tiers(env, client):
    first, second = env.nodes
    with_tier = Gateway([{"name": "a", "url": first.url()},
                         {"name": "b", "url": second.url(), "tier": 1}])
    try:
        with with_tier.client("http") as one:
            for i in range(20):
                one.call("eth_call", [i]).ok()
            tap.eq(second.count("eth_call"), 0, "calls at the second tier")
            first.stop()
            for i in range(20):
                one.call("eth_call", [i]).ok()
            tap.eq(second.count("eth_call"), 20, "calls at the second tier now")
            first.listen()
            tap.eventually(lambda: one.call("eth_call", [1]).ok() and first.count("eth_call") > 20, 12,
                           "the first one is back")
    finally:
        with_tier.stop()


def i13():
    gateway = Gateway([], start=False)
    try:
        gateway.start_only()
        status = gateway.wait()
        tap.eq(status, 1, "exit status")
        tap.contains(gateway.log(), "upstream", "message")
    finally:
        gateway.discard()


tap.run("I13 no upstream is a refusal to start", i13)
wire.main()
