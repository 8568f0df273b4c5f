#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour H: nothing old, missing or passing is served from a cache. All stages, nodes
whose state is that of blocks."""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from chain import word
from wire import row

FULL = wire.full()
A, B = "0x" + "0a" * 20, "0x" + "0b" * 20
SOON = 1.2          # "within about a second"


def ask(env, client, method, params, times=1):
    """The answer, which must be the chain's own at this moment."""
    for _ in range(times):
        tap.eq(client.call(method, params).ok(), env.want(method, rawjson.compact(params)),
               "%s %r" % (method, params))


def soon(env, client, method, params, within=SOON):
    """The chain's own answer comes within the time."""
    def right():
        return client.call(method, params).result == env.want(method, rawjson.compact(params))
    tap.eventually(right, within, "the new answer to %s %r" % (method, params))


def head_known(env):
    """The gateway has heard of the tip."""
    tap.eventually(lambda: env.asked("eth_getBlockByNumber", "eth_subscribe") > 0, 8, "polls")
    with env.client("http") as client:
        tap.eventually(lambda: client.call("eth_blockNumber").ok() ==
                       b'"%s"' % hex(env.chain.number()).encode(), 8, "the head is known")


@row("H1", "what is to be mined yet", clients="http ws ipc", upstreams="http", **FULL)
def h1(env, client):
    head_known(env)
    tx = rawjson.parse(client.call("eth_sendRawTransaction", ["0x02f801"]).ok())
    number = hex(env.chain.number() + 1)
    for _ in range(2):
        tap.eq(client.call("eth_getTransactionReceipt", [tx]).ok(), b"null", "no receipt")
        tap.eq(client.call("eth_getBlockByNumber", [number, False]).ok(), b"null", "no block")
        ask(env, client, "eth_getTransactionByHash", [tx])
    env.chain.mine()
    for method, params in (("eth_getTransactionReceipt", [tx]),
                           ("eth_getBlockByNumber", [number, False]),
                           ("eth_getTransactionByHash", [tx])):
        ask(env, client, method, params, 2)


@row("H2", "a transaction that is mined", clients="http ws ipc", upstreams="http", **FULL)
def h2(env, client):
    head_known(env)
    tx = word("waits")
    env.chain.pool.append(tx)
    for _ in range(2):
        got = rawjson.parse(client.call("eth_getTransactionByHash", [tx]).ok())
        tap.eq((got["hash"], got["blockHash"]), (tx, None), "it waits")
    head = env.chain.mine()
    for _ in range(2):
        got = rawjson.parse(client.call("eth_getTransactionByHash", [tx]).ok())
        tap.eq((got["blockHash"], got["blockNumber"]), (head["hash"], head["number"]), "mined")


TAGGED = [("eth_getBalance", [A] + block)
          for block in ([], ["latest"], ["pending"], ["safe"], ["finalized"],
                        [{"blockNumber": "latest"}])] + \
         [("eth_getLogs", [{"fromBlock": "0x10"}]),
          ("eth_getLogs", [{"fromBlock": "safe", "toBlock": "latest"}])]


@row("H3", "tags and left out blocks, 40 blocks later", clients="http ws ipc",
     upstreams="http", **FULL)
def h3(env, client):
    head_known(env)
    for method, params in TAGGED:
        ask(env, client, method, params, 2)
    for _ in range(40):
        env.chain.mine()
    began = time.monotonic()
    for method, params in TAGGED:
        soon(env, client, method, params, max(0.3, SOON - (time.monotonic() - began)))


@row("H4", "%s, 40 blocks later", clients="http", upstreams="http", each=["finalized", "safe"],
     **FULL)
def h4(env, client, tag):
    head_known(env)
    ask(env, client, "eth_getBlockByNumber", [tag, False], 2)
    for _ in range(40):
        env.chain.mine()
    soon(env, client, "eth_getBlockByNumber", [tag, False])


@row("H5", "answers belong to their parameters", clients="http ws", upstreams="http", **FULL)
def h5(env, client):
    head_known(env)
    blocks = []
    for number in (1, 2, 0x11, 0x12):
        name = env.chain.headers[number]["hash"]
        blocks += [hex(number), {"blockNumber": hex(number)}, {"blockHash": name},
                   {"blockHash": name, "requireCanonical": True}]
    for _ in range(2):
        for block in blocks:
            for who in (A, B):
                ask(env, client, "eth_getBalance", [who, block])
        for whole in (True, False):
            for number in ("0x1", "0x11", "0x14"):
                ask(env, client, "eth_getBlockByNumber", [number, whole])


@row("H6", "a block that must be canonical, and is no longer", clients="http",
     upstreams="http", **FULL)
def h6(env, client):
    head_known(env)
    block = {"blockHash": env.chain.headers[-2]["hash"], "requireCanonical": True}
    ask(env, client, "eth_getBalance", [A, block], 2)
    env.chain.reorg(3)
    for _ in range(3):
        client.call("eth_getBalance", [A, block]).refused()


@row("H7", "a reorg of three blocks", clients="http ws", upstreams="http ws", **FULL)
def h7(env, client):
    head_known(env)
    stays, goes = word("stays"), word("goes")
    env.chain.pool += [stays, goes]
    head = env.chain.mine()
    env.chain.mine()
    number = head["number"]
    asks = [("eth_getBlockByNumber", [number, False]), ("eth_getBlockReceipts", [number]),
            ("eth_getLogs", [{"fromBlock": number, "toBlock": number}]),
            ("eth_getBalance", [A, number]), ("eth_getBlockByNumber", [number, True]),
            ("eth_getTransactionReceipt", [stays]), ("eth_getTransactionByHash", [stays]),
            ("eth_getTransactionReceipt", [goes]), ("eth_getTransactionByHash", [goes])]
    for method, params in asks:
        soon(env, client, method, params)
        ask(env, client, method, params, 2)
    env.chain.reorg(3, drop=(goes,))
    began = time.monotonic()
    for method, params in asks:
        soon(env, client, method, params, max(0.3, SOON - (time.monotonic() - began)))
        ask(env, client, method, params)
    got = rawjson.parse(client.call("eth_getTransactionReceipt", [stays]).ok())
    tap.check(got["blockHash"] != head["hash"], "the one that stays is in another block")
    tap.eq(client.call("eth_getTransactionReceipt", [goes]).ok(), b"null", "the one that goes")


@row("H8", "one node is five blocks behind", clients="http ws ipc", upstreams="http+http",
     views=[{"lag": 0}, {"lag": 5}], **FULL)
def h8(env, client):
    seen = []
    for i in range(40):
        seen.append(int(rawjson.parse(client.call("eth_blockNumber").ok()), 16))
        if i % 8 == 4:
            env.chain.mine()
    tap.eq(seen, sorted(seen), "block numbers")
    tap.eventually(lambda: client.call("eth_blockNumber").ok() ==
                   b'"%s"' % hex(env.chain.number()).encode(), SOON, "the head of the first")


@row("H10", "the count of transactions", clients="http ws", upstreams="http", **FULL)
def h10(env, client):
    head_known(env)
    for block in ("pending", "latest"):
        ask(env, client, "eth_getTransactionCount", [A, block], 2)
    for i in range(3):
        env.chain.pool.append(word("pending", i))
        ask(env, client, "eth_getTransactionCount", [A, "pending"], 2)
    env.chain.mine()
    soon(env, client, "eth_getTransactionCount", [A, "latest"])
    ask(env, client, "eth_getTransactionCount", [A, "pending"])


@row("H11", "a node that indexes its newest block: %s", clients="http", upstreams="http",
     each=["eth_getBlockReceipts", "eth_getLogs"], **FULL)
def h11(env, client, method):
    head_known(env)
    head = env.chain.mine()
    number = head["number"]
    params = [number]
    if method == "eth_getLogs":
        params = [{"fromBlock": number, "toBlock": number}]
    env.node.script = lambda req: req.result(b"[]") if req.method == method else None
    for _ in range(2):
        client.call(method, params).ok()
    env.node.script = None
    soon(env, client, method, params)


@row("H12", "all nodes are gone", clients="http", upstreams="http+http ws", **FULL)
def h12(env, client):
    head_known(env)
    ask(env, client, "eth_getBalance", [A, "latest"], 2)
    for node in env.nodes:
        node.stop()
    for method, params in (("eth_blockNumber", []), ("eth_getBalance", [A, "latest"]),
                           ("eth_getBlockByNumber", ["latest", False])):
        tap.eventually(lambda: client.call(method, params, timeout=9).error is not None, 8,
                       "an error to %s" % method, 0.1)
        client.call(method, params, timeout=9).refused()


wire.main()
