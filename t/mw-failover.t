#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware failover in the whole program: wire cases E13, I1-I4, I6, I7, I12, I16, I17, I19, I20,
J3, S4, S12, S13, S25, and what its options do."""
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
from fakenode import raw, reset, silent
from wire import row

SEND, ASK = "eth_sendRawTransaction", "eth_getTransactionByHash"


def stage(network=None, **options):
    """A gateway of its own for each case, with failover so configured."""
    return {"middleware": [{"use": "methods"}, dict({"use": "failover"}, **options)],
            "fresh": True, "network": dict({"poll_interval": "200ms"}, **(network or {}))}


def reads(env, client, count=20, start=0):
    for i in range(start, start + count):
        tap.eq(client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i), "read %d" % i)


def all_stay(env, client):
    """None of the nodes is passed over."""
    before = [node.count("eth_call") for node in env.nodes]

    def used():
        reads(env, client, 4)
        return all(node.count("eth_call") > n for node, n in zip(env.nodes, before))
    tap.eventually(used, 5, "all nodes are used")


def head_known(env):
    """The gateway knows the tip, and that each node has it (or what it sees of the chain)."""
    def known():
        network = env.gw.status_page()["networks"][0]
        return network.get("head") and int(network["head"]["tip"]["number"]) == env.chain.number() \
            and all("head" in upstream for upstream in network["upstreams"])
    tap.eventually(known, 8, "the head is known", 0.05)


def count(env, name):
    return env.gw.metric("ethrpcgw_failover_%s_total" % name)


def for_reads(answer):
    """A script that answers eth_call so."""
    return lambda req: answer(req) if req.method == "eth_call" else None


def one_copy_each(env):
    for node in env.nodes:
        tap.at_most(node.count(SEND), 1, "copies at %s" % node.name)


# --- what errors mean ----------------------------------------------------------------------

@row("E13", "429 with Retry-After", clients="http ws", upstreams="http+http", **stage())
def e13(env, client):
    busy = env.nodes[0]
    busy.script = for_reads(lambda req: raw(b"slow down", status=429, headers=["Retry-After: 2"]))
    reads(env, client, 28)
    tap.at_most(busy.count("eth_call"), 4, "calls at the busy one")
    busy.script = None
    tap.eventually(lambda: client.call("eth_call", [1]).ok() and busy.count("eth_call") > 4, 8,
                   "it is used again")


@row("E13", "the only upstream limits: it is asked when it said", clients="http", upstreams="http",
     **stage())
def e13_only(env, client):
    seen = []

    def script(req):
        seen.append(time.monotonic())
        return raw(b"", status=429, headers=["Retry-After: 1"]) if len(seen) == 1 else None

    env.node.script = for_reads(script)
    reads(env, client, 1)
    tap.eq(len(seen), 2, "attempts")
    tap.at_least(seen[1] - seen[0], 0.95, "seconds between")


@row("I3", "%s", clients="http ws", upstreams="http+http",
     each=["insufficient funds for gas * price + value", "replacement transaction underpriced",
           "intrinsic gas too low"], **stage())
def i3(env, client, text):
    for node in env.nodes:
        node.script = lambda req: req.error(-32000, text) if req.method == SEND else None
    reply = client.call(SEND, ["0x02c0"])
    tap.eq(rawjson.parse(reply.error), {"code": -32000, "message": text}, "the error")
    tap.eq(env.asked(SEND), 1, "attempts")
    all_stay(env, client)


@row("I4", "%s", clients="http ws ipc", upstreams="http+http",
     each=[("a tempting reason", 3, "execution reverted: deposit limit exceeded", "0x08c379a0"),
           ("as -32000", -32000, "execution reverted: too many requests", None),
           ("Parity's", -32015, "VM execution error.", "Reverted 0x08c379a0"),
           ("out of gas", -32000, "EVM error: OutOfGas", None)], **stage())
def i4(env, client, code, text, data):
    for node in env.nodes:
        node.script = lambda req: req.error(code, text, data) if req.params == b'["revert"]' else None
    for _ in range(100):
        got = rawjson.parse(client.call("eth_call", ["revert"]).error)
        tap.eq((got["code"], got["message"], got.get("data")), (code, text, data), "verbatim")
    tap.eq(env.asked("eth_call"), 100, "one attempt each")
    tap.eq(count(env, "reverts"), 100, "counted as reverts")
    all_stay(env, client)


@row("I7", "results that look like none: %s", clients="http ws ipc", upstreams="http http+http",
     each=[b'"0x0"', b'"0x"', b"[]", b"false", b'""', b"0", b"null", b"{}"], **stage())
def i7(env, client, value):
    for node in env.nodes:
        node.script = lambda req: req.result(value) if req.params == b'["odd"]' else None
    for method in ("eth_call", "eth_getTransactionReceipt"):
        began = time.monotonic()
        tap.eq(client.call(method, ["odd"]).ok(), value, "as it is")
        tap.at_most(time.monotonic() - began, tap.limit(0.5), "seconds")
        tap.at_most(env.asked(method), 2, "attempts")


@row("I16", "a limit on logs: %s", clients="http", upstreams="http+http",
     each=[("too many results", -32005, "query returned more than 10000 results"),
           ("range", -32602, "eth_getLogs block range too large"),
           ("invalid", -32600, "block range is too wide"),
           ("too big", -32008, "Response is too big"),
           ("maximum range", -32000, "exceed maximum block range: 5000")], **stage())
def i16(env, client, code, text):
    for node in env.nodes:
        node.script = lambda req: req.error(code, text) if req.method == "eth_getLogs" else None
    got = rawjson.parse(client.call("eth_getLogs", [{"fromBlock": "0x0", "toBlock": "0x1"}]).error)
    tap.eq((got["code"], got["message"]), (code, text), "verbatim")
    tap.eq(env.asked("eth_getLogs"), 1, "attempts")
    all_stay(env, client)


@row("I20", "one of 20 is limited at first, one is a transaction", clients="http ws",
     upstreams="http", **stage())
def i20(env, client):
    seen = []

    def script(req):
        if req.params == b"[7]":
            seen.append(req)
            return req.error(-32005, "limit exceeded") if len(seen) == 1 else None
        return None

    env.node.script = script
    calls = [request("eth_call", [i], i) for i in range(19)] + [request(SEND, ["0x02c0"], 19)]
    replies = client.batch(calls)
    for i in range(19):
        tap.eq(replies[i].ok(), env.want("eth_call", b"[%d]" % i), "read %d" % i)
    tap.eq(replies[19].ok(), env.want(SEND, b'["0x02c0"]'), "the transaction")
    tap.eq((env.asked("eth_call"), env.asked(SEND), len(seen)), (20, 1, 2), "sent")


@row("rules", "a saying of one's own, and what no rule knows", clients="http", upstreams="http+http",
     **stage(rules=[{"class": "server", "text": "moon*full", "methods": ["eth_call"]}]))
def rules(env, client):
    env.nodes[0].script = for_reads(lambda req: req.error(-5, "the Moon is full"))
    reads(env, client)
    tap.at_most(env.nodes[0].count("eth_call"), 4, "calls at the one with a moon")
    for node in env.nodes:
        node.script = lambda req: req.error(-5, "never heard of it")
    client.call("eth_getCode", ["0x1"]).refused(-5)
    tap.eq(count(env, "unmatched"), 1, "counted")
    tap.contains(env.gw.log(), "no rule for the error code=-5", "log")


@row("explain", "the story", clients="-", upstreams="http+http", **stage())
def explain(env):
    for node in env.nodes:
        node.script = for_reads(lambda req: req.error(-32603, "sick") if req.node is env.nodes[0] else None)
    with env.client("http", headers=[("X-Ethrpc-Gw-Explain", "1")]) as client:
        def told():
            client.call("eth_call", [1])
            return b"failover judged n0: server by rule server_code" in client.last.header("X-Ethrpc-Gw-Explain")
        tap.eventually(told, 3, "a header says so")


# --- upstreams that fail -----------------------------------------------------------------

@row("I12", "the only node fails every second call: %s", clients="http", upstreams="http",
     each=["status 500", "reset", "garbage"], **stage())
def i12(env, client, how):
    seen = [0]

    def script(_):
        seen[0] += 1
        return None if seen[0] % 2 else {"status 500": raw(b"oops", status=500), "reset": reset(),
                                         "garbage": raw(b'{"jsonrpc":"2.0","id":1,"resu')}[how]

    env.node.script = for_reads(script)
    good = sum(client.call("eth_call", [i]).error is None for i in range(60))
    tap.at_least(good, 58, "successes of 60")
    env.node.script = None
    reads(env, client)


@row("I17", "three nodes that fail a third of the time", clients="http ws", upstreams="http+ws+http",
     **stage({"attempt_timeout": "700ms"}))
def i17(env, client):
    dice = random.Random(17)

    def script(req):
        if dice.random() > 0.33:
            return None
        return dice.choice([lambda: req.later(0.2), silent, reset,
                            lambda: raw(b"oops", status=500), lambda: raw(b"{nonsense")])()

    for node in env.nodes:
        node.script = for_reads(script)

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


@row("J3", "a node answers 500 to everything", clients="http", upstreams="http+http",
     **stage(breaker_open="1s"))
def j3(env, client):
    bad = env.nodes[0]
    bad.script = lambda req: raw(b"oops", status=500)
    reads(env, client, 100)
    tap.at_most(bad.count("eth_call"), 4, "calls at the bad one")
    before = len(bad.seen())
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        reads(env, client, 10)
    tap.at_most(len(bad.seen()) - before, 24, "requests in a second and a half")
    bad.script = None
    before = bad.count("eth_call")
    tap.eventually(lambda: client.call("eth_call", [1]).ok() and bad.count("eth_call") > before + 3, 12,
                   "it is used again")


@row("S12", "a node answers probes only", clients="http", upstreams="http+http",
     **stage({"attempt_timeout": "400ms"}))
def s12(env, client):
    env.nodes[0].script = for_reads(lambda req: silent())
    slow = 0
    for i in range(24):
        began = time.monotonic()
        tap.eq(client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i), "read")
        slow += time.monotonic() - began > 0.35
    tap.at_most(slow, 4, "reads that waited for it")
    tap.at_most(env.nodes[0].count("eth_call"), 4, "calls there")


@row("S13", "one of 100 is never answered", clients="ws ipc", upstreams="ws ipc http",
     **stage({"attempt_timeout": "700ms", "timeout": "2500ms"}))
def s13(env, client):
    env.node.script = lambda req: silent() if req.params == b"[50]" else None
    began = time.monotonic()
    for i in range(100):
        client.send(request("eth_call", [i], i))
    got = {}
    for i in range(99):
        reply = Reply(client.recv(5))
        got[int(reply.id)] = reply.ok()
    tap.at_most(time.monotonic() - began, tap.limit(1.5), "seconds for 99")
    tap.eq(sorted(set(range(100)) - set(got)), [50], "missing")
    tap.check(Reply(client.recv(5)).error is not None, "an error for the last")
    tap.at_most(time.monotonic() - began, tap.limit(3.2), "seconds for all")


@row("slow", "a slow node of a tier is left alone", clients="http", upstreams="http+http", **stage())
def slow(env, client):
    env.nodes[0].script = for_reads(lambda req: req.later(0.12))
    tap.eventually(lambda: reads(env, client, 4) or "n0 is slow" in env.gw.log(), 15, "it is known")
    before = env.nodes[0].count("eth_call")
    reads(env, client, 40)
    tap.at_most(env.nodes[0].count("eth_call") - before, 3, "calls there after that")


# --- blocks ------------------------------------------------------------------------------------

@row("missing", "a node that lags, and one that has the block", clients="http ws", upstreams="http+http",
     live=True, views=[{"lag": 3}, {}], **stage())
def missing(env, client):
    head_known(env)
    for _ in range(20):
        block = rawjson.parse(client.call("eth_getBlockByNumber", ["latest", False]).ok())
        tap.eq(block["number"], hex(env.chain.number()), "latest")
        tap.check(rawjson.parse(client.call("eth_getBlockByNumber", [hex(env.chain.number()), False]).ok()),
                  "a block that exists")
        client.call("eth_getBalance", ["0x01", hex(env.chain.number())]).ok()


@row("missing", "a block that is announced before it can be had", clients="http", upstreams="http+ws",
     live=True, **stage())
def announced(env, client):
    late = []

    def script(req):
        if req.method == "eth_getBalance" and len(late) < 5:
            late.append(req)
            return req.error(-32000, "header not found")
        return None

    head_known(env)
    for node in env.nodes:
        node.script = script
    client.call("eth_getBalance", ["0x01", hex(env.chain.number())]).ok()
    tap.eq(len(late), 5, "times it was not there")
    client.call("eth_getBalance", ["0x01", hex(env.chain.number() + 1000)]).refused(-32000)


@row("missing", "a node that is pruned", clients="http", upstreams="http+ws", live=True, **stage())
def pruned(env, client):
    for _ in range(200):
        env.chain.mine()
    head_known(env)
    env.nodes[0].script = lambda req: req.error(-32000, "missing trie node 12ab (path ) <nil>") \
        if req.method == "eth_getBalance" and int(req.args()[1], 16) < 100 else None
    for i in range(40):
        params = ["0x%02x" % i, "0x10"]
        tap.eq(client.call("eth_getBalance", params).ok(),
               env.want("eth_getBalance", rawjson.compact(params)), "an old balance")
    tap.at_most(env.nodes[0].count("eth_getBalance"), 2, "questions that taught it")
    tap.eventually(lambda: client.call("eth_getBalance", ["0x01", hex(env.chain.number())]).ok() and
                   env.nodes[0].count("eth_getBalance") > 2, 5, "it is asked for newer ones")


# --- hedging ------------------------------------------------------------------------------------

@row("I6", "null does not win: %s", clients="http ws", upstreams="http+http",
     each=["eth_getBlockByHash", "eth_getTransactionByHash", "eth_getTransactionReceipt"],
     **stage(hedge=True, hedge_min="20ms"))
def i6(env, client, method):
    block = env.chain.block(env.chain.find("0x5"))
    what = block["hash"] if method == "eth_getBlockByHash" else block["transactions"][0]
    env.nodes[0].script = lambda req: req.later(0.005, req.result(b"null")) if req.method == method else None
    env.nodes[1].script = lambda req: req.later(0.06) if req.method == method else None
    for _ in range(12):
        tap.check(rawjson.parse(client.call(method, [what, False][:1 + (method == "eth_getBlockByHash")]).ok())
                  is not None, "the object")


@row("hedge", "a node that is slow at times", clients="http ws", upstreams="http+http",
     **stage(hedge=True, hedge_min="20ms", hedge_quantile=0.9, hedge_cost=10))
def hedge(env, client):
    dice = random.Random(5)
    for node in env.nodes:
        node.script = lambda req: req.later(1.0) if dice.random() < 0.1 and req.method in (
            "eth_call", "eth_getLogs") else None
    slow_ones = 0
    for i in range(100):
        began = time.monotonic()
        reads(env, client, 1, i)
        slow_ones += time.monotonic() - began > 0.9
    tap.at_most(slow_ones, 5, "slow reads of 100, of which ten would be")
    tap.at_least(count(env, "hedge_wins"), 2, "hedges that won")


# --- transactions --------------------------------------------------------------------------------

def keeps(env, then):
    """The first copy is taken and answered so; of all others the script says nothing."""
    taken = []

    def script(req):
        if req.method != SEND or taken:
            return None
        taken.append(req)
        env.chain.do_eth_sendRawTransaction(req.args())
        return then(req)

    for node in env.nodes:
        node.script = script
    return taken


def known(req):
    return req.error(-32000, "already known") if req.method == SEND else None


@row("I1", "taken, then the connection is reset; the other knows it", clients="http ws ipc",
     upstreams="http+http ws+http", **stage())
def i1(env, client):
    first = []

    def script(req):
        if req.method != SEND:
            return None
        if first:
            return known(req)
        first.append(req)
        env.chain.do_eth_sendRawTransaction(req.args())
        return reset()

    for node in env.nodes:
        node.script = script
    tap.eq(client.call(SEND, ["0x02c0"]).ok(), env.want(SEND, b'["0x02c0"]'), "hash")
    one_copy_each(env)


@row("I2", "one says %s at once, the other takes it later", clients="http ws", upstreams="http+http",
     each=["already known", "nonce too low"], **stage(broadcast="all"))
def i2(env, client, text):
    env.nodes[0].script = lambda req: req.error(-32000, text) if req.method == SEND else None
    env.nodes[1].script = lambda req: req.later(0.15) if req.method == SEND else None
    tap.eq(client.call(SEND, ["0x02c0"]).ok(), env.want(SEND, b'["0x02c0"]'), "hash")
    tap.eventually(lambda: all(node.count(SEND) == 1 for node in env.nodes), 2, "both have a copy")


@row("I19", "between reads; taken, then the connection is reset", clients="http ws", upstreams="http+http",
     **stage())
def i19(env, client):
    keeps(env, lambda req: reset())
    got = client.batch([request("eth_call", [1], 1), request(SEND, ["0x02c0"], 2),
                        request("eth_getBalance", ["0x02", "0x1"], 3)])
    tap.eq(got[0].ok(), env.want("eth_call", b"[1]"), "first read")
    tap.eq(got[2].ok(), env.want("eth_getBalance", b'["0x02","0x1"]'), "second read")
    tap.eq(got[1].ok(), env.want(SEND, b'["0x02c0"]'), "the transaction's hash")
    one_copy_each(env)


@row("S4", "the first node keeps it and says nothing", clients="http ws", upstreams="http+http ws+ws http",
     **stage({"timeout": "2500ms"}))
def s4(env, client):
    keeps(env, lambda req: silent())
    began = time.monotonic()
    tap.eq(client.call(SEND, ["0x02c0"]).ok(), env.want(SEND, b'["0x02c0"]'), "hash")
    tap.at_most(time.monotonic() - began, tap.limit(2.5), "seconds")
    one_copy_each(env)


@row("S4", "all nodes are silent and know nothing", clients="http", upstreams="http+http",
     **stage({"timeout": "1500ms"}))
def s4_lost(env, client):
    for node in env.nodes:
        node.script = lambda req: silent() if req.method == SEND else None
    began = time.monotonic()
    client.call(SEND, ["0x02c0"]).refused(-32053)
    tap.at_most(time.monotonic() - began, tap.limit(1.6), "seconds")
    one_copy_each(env)
    tap.eq(count(env, "tx_unknown"), 1, "counted")


@row("S25", "all answer 503 in plain text", clients="http ws ipc", upstreams="http+http", **stage())
def s25(env, client):
    for node in env.nodes:
        node.script = lambda req: raw(b"not now", status=503)
    client.call("eth_call", [1], 5).refused()
    reply = client.call(SEND, ["0x02c0"], 6)
    reply.refused()
    tap.eq(reply.id, b"6", "id")
    one_copy_each(env)


@row("tx", "another hash is not passed on", clients="http", upstreams="http",
     **stage({"timeout": "1500ms"}))
def mismatch(env, client):
    env.node.script = lambda req: req.result(b'"0x%s"' % (b"ab" * 32)) if req.method == SEND else None
    client.call(SEND, ["0x02c0"]).refused(-32053)
    tap.eq(count(env, "tx_mismatch"), 1, "counted")


@row("nonce", "the highest of all", clients="http ipc", upstreams="http+http", **stage(nonce="max"))
def nonce(env, client):
    for i, node in enumerate(env.nodes):
        node.script = lambda req, i=i: req.result(b'"0x%x"' % (5 + i)) \
            if req.method == "eth_getTransactionCount" else None
    for _ in range(5):
        tap.eq(client.call("eth_getTransactionCount", ["0x01", "pending"]).ok(), b'"0x6"', "nonce")
    env.nodes[1].stop()
    tap.eq(client.call("eth_getTransactionCount", ["0x01", "pending"]).ok(), b'"0x5"', "of those there are")


wire.main()
