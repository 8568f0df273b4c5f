#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour I, what needs the head or knows transactions by their hash: nodes that lag,
lie about their head or end at a block, transactions sent to several nodes. All stages."""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from chain import tx_hash
from clients import request
from fakenode import HANDLED, reset
from wire import row

FULL = wire.full()
A = "0x" + "0a" * 20
RAW = "0x02f86b0180843b9aca00"
SEND = "eth_sendRawTransaction"
SOON = 1.2


def number_of(client):
    return int(rawjson.parse(client.call("eth_blockNumber").ok()), 16)


def right(env, client, method, params):
    tap.eq(client.call(method, params).ok(), env.want(method, rawjson.compact(params)),
           "%s %r" % (method, params))


def head_known(env, client):
    tap.eventually(lambda: number_of(client) == env.chain.number(), 8, "the head is known")


def both_used(env, client):
    """Reads of an old block go to both nodes."""
    before = [len(node.seen("eth_getCode")) for node in env.nodes]

    def asked():
        for i in range(10):
            client.call("eth_getCode", ["0x%040x" % time.monotonic_ns(), "0x%x" % i]).ok()
        return all(len(node.seen("eth_getCode")) > b for node, b in zip(env.nodes, before))
    tap.eventually(asked, 8, "both are used", 0.05)


# --- transactions -----------------------------------------------------------------------

@row("I1", "the first node takes a transaction and resets, the other knows it already",
     clients="http ws ipc", upstreams="http+http ws+http", **FULL)
def i1(env, client):
    first = []

    def script(req):
        if req.method != SEND:
            return None
        if not first:
            first.append(req)
            env.chain.do_eth_sendRawTransaction(req.args())
            return reset()
        return req.error(-32000, "already known")

    for node in env.nodes:
        node.script = script
    tap.eq(client.call(SEND, [RAW], b'"tx"').ok(), b'"%s"' % tx_hash(RAW).encode(), "the hash")
    for node in env.nodes:
        tap.at_most(node.count(SEND), 1, "copies at a node")


@row("I2", "sent to both nodes, one says: %s", clients="http ws", upstreams="http+http",
     each=["already known", "nonce too low"], **wire.full(failover={"broadcast": "all"}))
def i2(env, client, text):
    env.nodes[0].script = lambda req: req.error(-32000, text) if req.method == SEND else None

    def accepts(req):
        if req.method != SEND:
            return None
        def take():
            req.respond(rawjson.compact(env.chain.do_eth_sendRawTransaction(req.args())))
        env.nodes[1].at(0.15, take)
        return HANDLED

    env.nodes[1].script = accepts
    tap.eq(client.call(SEND, [RAW], b'"tx"').ok(), b'"%s"' % tx_hash(RAW).encode(), "the hash")
    tap.eventually(lambda: [node.count(SEND) for node in env.nodes] == [1, 1], 2, "a copy each")


@row("I20", "twenty in an array, one of them a transaction, one of them limited once",
     clients="http ws", upstreams="http", **FULL)
def i20(env, client):
    limited = []

    def script(req):
        if req.method == "eth_getCode" and req.args()[0] == "0x07" and not limited:
            limited.append(req)
            return req.error(-32005, "rate limit")
        return None

    env.node.script = script
    asks = [("eth_getCode", ["0x%02x" % i, "0x1"]) for i in range(20)]
    asks[11] = (SEND, [RAW])
    got = client.batch([request(m, p, i) for i, (m, p) in enumerate(asks)])
    for i, ((method, params), reply) in enumerate(zip(asks, got)):
        tap.eq(reply.id, b"%d" % i, "id")
        if i == 7 and reply.error is not None:
            tap.eq(reply.code, -32005, "the limited one's error")
        elif i == 11:
            tap.eq(reply.ok(), b'"%s"' % tx_hash(RAW).encode(), "the transaction's hash")
        else:
            tap.eq(reply.ok(), env.want(method, rawjson.compact(params)), "result %d" % i)
    tap.eq(env.node.count(SEND), 1, "copies of the transaction")
    for i in range(20):
        seen = sum(r.args()[0] == "0x%02x" % i for r in env.node.seen("eth_getCode"))
        tap.at_most(seen, 2 if i == 7 else 1, "times that call %d was sent" % i)


# --- heads ------------------------------------------------------------------------------

@row("I6", "hedging: the quick node has no %s, the slow one has it", clients="http ws",
     upstreams="http+http", each=["eth_getBlockByHash", "eth_getTransactionByHash",
                                  "eth_getTransactionReceipt", "eth_getBlockByNumber"],
     **wire.full(failover={"hedge": True, "hedge_min": "20ms"}))
def i6(env, client, method):
    head_known(env, client)
    head = env.chain.headers[-1]
    tx = env.chain.transactions(head)[0]
    env.nodes[0].script = lambda req: req.later(0.005, req.result(b"null")) \
        if req.method == method and req.args()[0] != "latest" else None
    env.nodes[1].script = lambda req: req.later(0.06) \
        if req.method == method and req.args()[0] != "latest" else None
    params = {"eth_getBlockByHash": [head["hash"], False],
              "eth_getBlockByNumber": [head["number"], False]}.get(method, [tx])
    for _ in range(6):
        right(env, client, method, params)


@row("I8", "one node is two blocks behind", clients="http ws ipc", upstreams="http+http",
     views=[{"lag": 0}, {"lag": 2}], **FULL)
def i8(env, client):
    for _ in range(10):
        env.chain.mine()
        number = hex(number_of(client))
        right(env, client, "eth_getBlockByNumber", [number, False])
        right(env, client, "eth_getBlockReceipts", [number])
        right(env, client, "eth_getBalance", [A, number])


@row("I9", "two nodes one block apart", clients="http ws ipc", upstreams="http+http",
     views=[{"lag": 0}, {"lag": 1}], **FULL)
def i9(env, client):
    seen = 0
    for i in range(40):
        if i % 3 == 0:
            env.chain.mine()
        number = number_of(client)
        tap.at_least(number, seen, "eth_blockNumber")
        block = rawjson.parse(client.call("eth_getBlockByNumber", ["latest", False]).ok())
        tap.at_least(int(block["number"], 16), number, "the latest block")
        seen = int(block["number"], 16)
    head = env.chain.mine()
    for _ in range(3):
        right(env, client, "eth_getBlockByNumber", [head["number"], False])
    right(env, client, "eth_getBlockByHash", [head["hash"], False])


@row("I10", "a node says once that it is at block 999999999", clients="http",
     upstreams="http+http ws+http", **FULL)
def i10(env, client):
    head_known(env, client)
    absurd = hex(999999999)
    lies = []

    def script(req):
        if req.method == "eth_blockNumber":
            lies.append(req)
            return req.result(b'"%s"' % absurd.encode())
        if req.method == "eth_getBlockByNumber" and req.args()[0] == "latest":
            lies.append(req)
            head = dict(env.chain.headers[-1], number=absurd, hash="0x" + "f9" * 32)
            return req.result(rawjson.compact(dict(head, transactions=[], uncles=[])))
        return None

    bad = env.nodes[0]
    bad.script = script
    if bad.kind == "ws":
        bad.notify_all("newHeads", dict(env.chain.headers[-1], number=absurd,
                                        hash="0x" + "f9" * 32))
    else:
        tap.eventually(lambda: lies, 8, "it is asked, and lies")
    bad.script = None
    env.chain.mine()

    def truth():
        block = rawjson.parse(client.call("eth_getBlockByNumber", ["latest", False]).ok())
        return number_of(client) == env.chain.number() == int(block["number"], 16)
    tap.eventually(truth, SOON, "the truth")
    both_used(env, client)


@row("I11", "two nodes that end at block 50, one that does not", clients="http",
     upstreams="http+http+http", views=[{"cap": 50}, {"cap": 50}, {}], **FULL)
def i11(env, client):
    while env.chain.number() < 100:
        env.chain.mine()
    head_known(env, client)
    for i in range(20):
        tap.eq(number_of(client), env.chain.number(), "the live head")
        right(env, client, "eth_getBlockByNumber", ["latest", False])
        right(env, client, "eth_getBalance", ["0x%040x" % i, "latest"])
        right(env, client, "eth_getBlockByNumber", ["0x10", i % 2 == 0])
        right(env, client, "eth_getBalance", ["0x%040x" % i, hex(40 + i)])
        if i % 5 == 4:
            env.chain.mine()
            tap.eventually(lambda: number_of(client) == env.chain.number(), SOON, "new head")


@row("I14", "filters over two nodes", clients="http ws ipc", upstreams="http+http ws+http")
def i14(env, client):
    name = rawjson.parse(client.call("eth_newBlockFilter").ok())
    want, got = [], []
    for _ in range(20):
        want.append(env.chain.mine()["hash"])
        got += rawjson.parse(client.call("eth_getFilterChanges", [name]).ok())
    tap.eventually(lambda: got.extend(rawjson.parse(
        client.call("eth_getFilterChanges", [name]).ok())) or len(got) >= 20, 8, "all are told")
    tap.eq(got, want, "each new block once and in order")
    tap.eq(client.call("eth_uninstallFilter", [name]).ok(), b"true", "uninstalled")
    tap.eq(client.call("eth_getFilterChanges", [name]).refused(), -32000, "then there is none")
    tap.eq(client.call("eth_uninstallFilter", [name]).ok(), b"false", "nor again")


# A filter made by one client is there for all.
@row("I14", "filters of other connections", clients="http ws ipc", upstreams="http+http", live=True)
def i14_others(env, client):
    name = rawjson.parse(client.call("eth_newFilter", [{}]).ok())
    env.chain.mine()
    with env.client("http") as one, env.client("ipc") as two:
        logs = tap.eventually(lambda: rawjson.parse(
            one.call("eth_getFilterChanges", [name]).ok()), 8, "another client polls it")
        tap.eq({log["blockNumber"] for log in logs}, {hex(env.chain.number())}, "its logs")
        tap.eq(two.call("eth_getFilterChanges", [name]).ok(), b"[]", "once")
        tap.eq(rawjson.parse(two.call("eth_getFilterLogs", [name]).ok()),
               rawjson.parse(env.want("eth_getLogs", b"[{}]")), "eth_getFilterLogs asks for all")
        tap.eq(two.call("eth_uninstallFilter", [name]).ok(), b"true", "and a third ends it")



# A node without old state is asked for such only until it has said so.
@row("I+", "one node is pruned: %s", clients="http", upstreams="http+http", live=True, fresh=True,
     each=["missing trie node 1234 (path )", "historical state 0xab is not available"])
def pruned(env, client, words):
    def script(req):
        if req.method == "eth_getBalance" and int(req.args()[1], 16) < 15:
            return req.error(-32000, words)
        return None

    tap.eventually(lambda: rawjson.parse(env.gw.admin("/status")[1])["networks"][0]["head"], 8,
                   "the head is known")
    env.nodes[1].script = script
    for i in range(30):
        params = b'["0x%040x","0x%x"]' % (i, i % 15)
        tap.eq(client.call("eth_getBalance", params).ok(), env.want("eth_getBalance", params),
               "an old balance")
    tap.at_most(env.nodes[1].count("eth_getBalance"), 15, "what the pruned one was asked")

    def asked_for_newer():
        client.call("eth_getBalance", b'["0x%040x","0x12"]' % env.nodes[0].count("eth_getBalance"))
        return any(b'"0x12"' in p for p in env.nodes[1].params_seen("eth_getBalance"))

    tap.eventually(asked_for_newer, 8, "for newer state it is asked")

wire.main()
