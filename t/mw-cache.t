#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware cache in the whole program, with two workers: wire cases H1-H5, H7, H9, S1, S2, S7, S27
as far as they concern answers that are kept for ever."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import Reply, request
from wire import row

WITH = {"middleware": [{"use": "methods"}, {"use": "cache"}],
        "network": {"poll_interval": "100ms"}, "fresh": True}
A, B = "0x" + "0a" * 20, "0x" + "0b" * 20


def settled(env, client):
    """Until the gateway knows what is final: a read at a low block is a hit."""
    def known():
        client.call("eth_getCode", [A, "0x1"])
        return env.gw.metric("ethrpcgw_cache_hits_total") > 0
    client.call("eth_getCode", [A, "0x1"])
    tap.eventually(known, 8, "finality is known", 0.05)


@row("S7", "what is final is asked for a few times at most", clients="http ws ipc",
     upstreams="http ws ipc", **WITH)
def s7(env, client):
    settled(env, client)
    head = env.chain.headers[5]
    asks = [("eth_getBlockByNumber", ["0x5", True]), ("eth_getBlockByHash", [head["hash"], False]),
            ("eth_getBalance", [A, "0x5"])]
    for method, params in asks:
        before = env.asked(method)
        first = client.call(method, params, b'"first"').ok()
        for i in range(15):
            reply = client.call(method, params, i)
            tap.eq(reply.id, b"%d" % i, "id")
            tap.eq(reply.ok(), first, method)
        tap.at_most(env.asked(method) - before, 4, "%s at the node (its own polls included)" % method)


@row("H5", "answers belong to their parameters", clients="http ws ipc", upstreams="http", **WITH)
def h5(env, client):
    settled(env, client)
    asks = [("eth_getBalance", [who, block]) for who in (A, B)
            for block in ("0x1", "0x2", "0x11", "0x12", env.chain.headers[2]["hash"],
                          {"blockNumber": "0x1"}, {"blockHash": env.chain.headers[1]["hash"]})]
    for _ in range(2):
        for method, params in asks:
            tap.eq(client.call(method, params).ok(),
                   env.want(method, rawjson.compact(params)), "%s %r" % (method, params))
    whole = client.call("eth_getBlockByNumber", ["0x3", True]).ok()
    hashes = client.call("eth_getBlockByNumber", ["0x3", False]).ok()
    tap.eq(client.call("eth_getBlockByNumber", ["0x3", True]).ok(), whole, "full")
    tap.eq(client.call("eth_getBlockByNumber", ["0x3", False]).ok(), hashes, "not full")


@row("S1", "parameters whose texts join to the same", clients="http ws", upstreams="http", **WITH)
def s1(env, client):
    settled(env, client)
    for params in ([A, "0x1", "0x1"], [A, "0x11", "0x1"], ["ab", "c", "0x1"], ["a", "bc", "0x1"],
                   [1, "0x1", "0x1"], ["1", "0x1", "0x1"], [[1], 2, "0x1"], [1, [2], "0x1"]):
        for _ in range(2):
            tap.eq(client.call("eth_getStorageAt", params).ok(),
                   env.want("eth_getStorageAt", rawjson.compact(params)), repr(params))


@row("H9", "an error is not kept", clients="http ws", upstreams="http ipc", **WITH)
def h9(env, client):
    settled(env, client)
    for code in (-32005, -32000, -32603, -32602):
        env.node.script = lambda req, c=code: req.error(c, "header not found") \
            if req.method == "eth_getBalance" else None
        client.call("eth_getBalance", [A, "0x%x" % (1 + (code & 7))]).refused()
        env.node.script = None
        params = [A, "0x%x" % (1 + (code & 7))]
        tap.eq(client.call("eth_getBalance", params).ok(),
               env.want("eth_getBalance", rawjson.compact(params)), "the result")


@row("H1", "null and what is not final are not kept", clients="http ws ipc", upstreams="http", **WITH)
def h1(env, client):
    settled(env, client)
    values = [b"null", b"null", b'{"blockNumber":"0x13","transactionHash":"0x%064x"}' % 7,
              b'{"blockNumber":"0x13","transactionHash":"0x%064x","x":2}' % 7]
    env.node.script = lambda req: req.result(values[0]) \
        if req.method == "eth_getTransactionReceipt" else None
    for value in list(values):
        tap.eq(client.call("eth_getTransactionReceipt", ["0x%064x" % 7]).ok(), value, "as the node says")
        values.pop(0)
    env.node.script = None
    head = len(env.chain.headers)
    for _ in range(2):
        tap.eq(client.call("eth_getBlockByNumber", [hex(head), False]).ok(), b"null", "a block to come")
    env.chain.mine()
    got = client.call("eth_getBlockByNumber", [hex(head), False]).ok()
    tap.eq(rawjson.member(got, "number"), b'"%s"' % hex(head).encode(), "it came")


@row("H3", "tags and left out blocks move", clients="http", upstreams="http ws", **WITH)
def h3(env, client):
    settled(env, client)
    count = [0]

    def script(req):
        if req.method == "eth_getBalance":
            count[0] += 1
            return req.result(b'"0x%x"' % count[0])
        return None

    env.node.script = script
    seen = []
    for block in ([], ["latest"], ["pending"], ["safe"], ["finalized"], ["earliest"]):
        for _ in range(2):
            seen.append(client.call("eth_getBalance", [A] + block).ok())
    tap.eq(len(set(seen)), 12, "different answers")


@row("H7", "a reorg below nothing final", clients="http ws", upstreams="http", **WITH)
def h7(env, client):
    settled(env, client)
    near = hex(len(env.chain.headers) - 2)
    old = client.call("eth_getBlockByNumber", [near, False]).ok()
    client.call("eth_getBlockByNumber", [near, False])
    env.chain.reorg(3)
    new = client.call("eth_getBlockByNumber", [near, False]).ok()
    tap.check(rawjson.member(new, "hash") != rawjson.member(old, "hash"), "the new block")


@row("S27", "one read with many ids, also in arrays", clients="http ws ipc", upstreams="http", **WITH)
def s27(env, client):
    settled(env, client)
    want = client.call("eth_getBlockByNumber", ["0x4", True]).ok()
    ids = [b"1", b'"a"', b"2.50", b'"null"', b"18446744073709551616"]
    for raw in ids:
        reply = client.call("eth_getBlockByNumber", ["0x4", True], raw)
        tap.eq((reply.id, reply.ok()), (raw, want), "one")
    got = client.batch([request("eth_getBlockByNumber", ["0x4", True], raw) for raw in ids])
    tap.eq([(r.id, r.ok()) for r in got], [(raw, want) for raw in ids], "array")


@row("cache", "the other worker and transports hit too", clients="-", upstreams="http", **WITH)
def shared(env):
    with env.client("http") as client:
        settled(env, client)
        want = client.call("eth_getBlockByNumber", ["0x2", True]).ok()
    before = env.asked("eth_getBlockByNumber")
    hits = env.gw.metric("ethrpcgw_cache_hits_total")
    for kind in ("http", "ws", "ipc"):
        for _ in range(8):
            with env.client(kind) as client:
                tap.eq(client.call("eth_getBlockByNumber", ["0x2", True]).ok(), want, "block")
    tap.eq(env.gw.metric("ethrpcgw_cache_hits_total") - hits, 24, "hits")
    polls = [r for r in env.node.seen("eth_getBlockByNumber")[before:] if b'"0x2"' in r.params]
    tap.eq(polls, [], "asked again")


@row("cache", "the node goes: what is kept is still served", clients="http", upstreams="http", **WITH)
def gone(env, client):
    settled(env, client)
    head = env.chain.headers[3]["hash"]
    want = client.call("eth_getBlockByHash", [head, False]).ok()
    env.node.stop()
    client.call("eth_blockNumber").refused()
    tap.eq(client.call("eth_getBlockByHash", [head, False]).ok(), want, "a block by its hash")


wire.main()
