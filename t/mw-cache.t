#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware cache in the whole program, with two workers: what is kept, and how long. Wire area H
is in wire-h-cache.t, with all stages."""
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from chain import STATE, Chain, NodeError, word
from clients import HttpClient, request
from fakenode import Node
from gateway import Gateway
from wire import row


def cache(**options):
    return {"middleware": [{"use": "methods", "allow": ("evm_revert", "eth_accounts")},
                           dict({"use": "cache"}, **options)],
            "network": {"poll_interval": "100ms"}, "live": True, "fresh": True}


WITH = cache()
A, B = "0x" + "0a" * 20, "0x" + "0b" * 20


def settled(env, client):
    """Until the gateway knows the tip and what is final: a read at a low block is a hit."""
    def known():
        client.call("eth_getCode", [A, "0x1"])
        return env.gw.metric("ethrpcgw_cache_hits_total") > 0
    tap.eventually(known, 8, "finality is known", 0.05)
    on_tip(env)


def on_tip(env):
    """Until the gateway has the chain's tip, whatever way it learns of it, and what is safe and
    final."""
    want = [env.chain.find(tag)["hash"] for tag in ("latest", "safe", "finalized")]

    def there():
        head = env.gw.status_page()["networks"][0]["head"]
        return head is not None and \
            [head.get(k, {}).get("hash") for k in ("tip", "safe", "finalized")] == want
    tap.eventually(there, 8, "the tip is known", 0.02)


def same(env, client, method, params, times=1):
    """The answer is the chain's own."""
    for _ in range(times):
        tap.eq(client.call(method, params).ok(), env.want(method, rawjson.compact(params)),
               "%s %r" % (method, params))


def kept(env, client, method, params, name=None):
    """The answer is the chain's own, and no node was asked for it."""
    before = env.asked(method)
    same(env, client, method, params)
    tap.eq(env.asked(method), before, name or "%s %r is kept" % (method, params))


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


# --- blocks that are not final -------------------------------------------------------------------


FORMS = ("latest", None, "number", "hash", "object", "object of hash")


def of_form(env, form, head):
    """Params that name the block in one of these ways."""
    return {"latest": ["latest"], None: [], "number": [head["number"]], "hash": [head["hash"]],
            "object": [{"blockNumber": head["number"]}],
            "object of hash": [{"blockHash": head["hash"]}]}[form]


@row("cache", "all names of the newest block share an answer", clients="http ws ipc", upstreams="ws ipc",
     **WITH)
def forms(env, client):
    settled(env, client)
    head = env.chain.headers[-1]
    same(env, client, "eth_getBalance", [B])      # the node takes that
    same(env, client, "eth_getBalance", [A, "latest"])
    for form in FORMS:
        kept(env, client, "eth_getBalance", [A] + of_form(env, form, head))
    seen = [r.params for r in env.node.seen("eth_getBalance")]
    tap.eq(rawjson.parse(seen[-1])[1], {"blockHash": head["hash"]}, "how the node was asked")
    head = env.chain.mine()
    on_tip(env)
    same(env, client, "eth_getBalance", [A])
    kept(env, client, "eth_getBalance", [A, "latest"])
    kept(env, client, "eth_getBalance", [A, hex(int(head["number"], 16) - 1)], "the block before")


@row("cache", "what else there is of the newest block", clients="http", upstreams="ws", **WITH)
def newest(env, client):
    settled(env, client)
    number = env.chain.headers[-1]["number"]
    tx = env.chain.transactions(env.chain.headers[-1])[0]
    for method, params in (("eth_getBlockByNumber", ["latest", True]),
                           ("eth_getBlockByNumber", [number, False]),
                           ("eth_getBlockReceipts", [number]),
                           ("eth_getTransactionReceipt", [tx]),
                           ("eth_getTransactionByHash", [tx]),
                           ("eth_getLogs", [{"fromBlock": "latest", "toBlock": "latest"}]),
                           ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "latest"}]),
                           ("eth_getLogs", [{"fromBlock": "0x2", "toBlock": "0x3"}])):
        same(env, client, method, params)
        kept(env, client, method, params)
    same(env, client, "eth_blockNumber", [])
    kept(env, client, "eth_blockNumber", [])


@row("cache", "a reorg ends the answers of its blocks and no others", clients="http ws",
     upstreams="ws ipc", **WITH)
def reorged(env, client):
    settled(env, client)
    stays, goes = word("stays"), word("goes")
    env.chain.pool += [stays, goes]
    head = env.chain.mine()
    env.chain.mine()
    on_tip(env)
    number = head["number"]
    asks = [("eth_getBalance", [A, number]), ("eth_getBlockByNumber", [number, True]),
            ("eth_getTransactionReceipt", [stays]), ("eth_getTransactionReceipt", [goes])]
    low = ("eth_getBalance", [A, hex(int(number, 16) - 2)])
    for method, params in asks + [low]:
        same(env, client, method, params)
        kept(env, client, method, params)
    env.chain.reorg(3, drop=(goes,))
    on_tip(env)
    for method, params in asks:
        same(env, client, method, params, 2)
    kept(env, client, *low)
    tap.eq(client.call("eth_getTransactionReceipt", [goes]).ok(), b"null", "the one that is gone")
    tap.eq(env.gw.metric("ethrpcgw_cache_reorged_total"), 2, "dropped")


@row("cache", "a node that takes no block by hash", clients="http ipc", upstreams="ws", **WITH)
def refused(env, client):
    def script(req):
        if req.method == "eth_getBalance" and b"blockHash" in req.params:
            return req.error(-32602, "invalid argument 1: cannot unmarshal object")
        return None

    env.node.script = script
    settled(env, client)
    for _ in range(3):
        same(env, client, "eth_getBalance", [A, "latest"], 2)
        same(env, client, "eth_getBalance", [A, env.chain.headers[-1]["number"]], 2)
        same(env, client, "eth_getCode", [A, "latest"])
        kept(env, client, "eth_getCode", [A, "latest"], "other methods are not concerned")
    tap.at_most(env.gw.metric("ethrpcgw_cache_refused_total"), 2, "found out once by each worker")
    same(env, client, "eth_getBalance", [A, "0x1"])
    kept(env, client, "eth_getBalance", [A, "0x1"], "what is final")


@row("cache", "a node that wants the block to be named", clients="http ws ipc", upstreams="ws", **WITH)
def named(env, client):
    env.node.script = lambda req: req.error(-32602, "missing value for required argument 1") \
        if req.method == "eth_getBalance" and len(req.args()) < 2 else None
    settled(env, client)
    for _ in range(2):
        same(env, client, "eth_getBalance", [A, "latest"])
        client.call("eth_getBalance", [A]).refused(-32602)
    kept(env, client, "eth_getBalance", [A, "latest"])


@row("cache", "errors are those of the client's own words", clients="http", upstreams="ws", **WITH)
def errors(env, client):
    settled(env, client)
    env.node.script = lambda req: req.error(-32000, "as asked: " + req.params.decode()) \
        if req.method == "eth_call" else None
    said = client.call("eth_call", [{"to": A}, "latest"])
    said.refused(-32000)
    tap.contains(said.message, '"latest"', "the message")
    env.node.script = lambda req: req.error(3, "execution reverted", b'"0x08c379a0"') \
        if req.method == "eth_call" else None
    before = env.asked("eth_call")
    client.call("eth_call", [{"to": A}]).refused(3)
    tap.eq(env.asked("eth_call"), before + 1, "a revert is an answer")


# --- tags ------------------------------------------------------------------------------------------


def asked_as(env, client, params):
    """How a read by `params` got to the node; None: not at all."""
    before = env.asked("eth_getBalance")
    same(env, client, "eth_getBalance", params)
    new = env.node.params_seen("eth_getBalance")[before:]
    return rawjson.parse(new[0])[1:] if new else None


@row("cache", "tags with heads that are polled, by default", clients="http", upstreams="http", **WITH)
def polled(env, client):
    settled(env, client)
    for _ in range(2):
        tap.eq(asked_as(env, client, [A, "latest"]), ["latest"], "not resolved")
    tap.check(asked_as(env, client, [A, env.chain.headers[-1]["number"]]) is not None, "a number")
    kept(env, client, "eth_getBalance", [A, env.chain.headers[-1]["number"]])


@row("cache", "tags always", clients="http", upstreams="http", **cache(tags="always"))
def always(env, client):
    settled(env, client)
    head = env.chain.headers[-1]
    tap.eq(asked_as(env, client, [A, "latest"]), [{"blockHash": head["hash"]}], "resolved")
    tap.eq(asked_as(env, client, [A]), [], "as the node takes it")
    tap.eq(asked_as(env, client, [A]), None, "kept")
    env.chain.mine()
    tap.eventually(lambda: asked_as_new(env, client), 2, "the new head is polled for")


def asked_as_new(env, client):
    return client.call("eth_getBalance", [A]).ok() == env.want("eth_getBalance", b'["%s"]' % A.encode())


@row("cache", "tags never", clients="http", upstreams="ws", **cache(tags="never"))
def never(env, client):
    settled(env, client)
    for _ in range(2):
        tap.eq(asked_as(env, client, [A, "latest"]), ["latest"], "not resolved")
    before = env.asked("eth_blockNumber")
    same(env, client, "eth_blockNumber", [])
    tap.eq(env.asked("eth_blockNumber"), before + 1, "the node says its number itself")


@row("cache", "a sent transaction is followed by its block", clients="http ws ipc", upstreams="ws", **WITH)
def sent(env, client):
    settled(env, client)
    for i in range(5):
        same(env, client, "eth_getTransactionCount", [A])
        tx = rawjson.parse(client.call("eth_sendRawTransaction", ["0x02f8%02x" % i]).ok())
        env.node.push_heads = False   # as if the news were late
        env.chain.mine()
        env.node.push_heads = True
        same(env, client, "eth_getTransactionReceipt", [tx])
        same(env, client, "eth_getTransactionCount", [A])
        same(env, client, "eth_blockNumber", [])


# --- the rest ----------------------------------------------------------------------------------------


@row("S2", "what belongs to the node or the moment", clients="http", upstreams="http ws", **WITH)
def s2(env, client):
    settled(env, client)
    methods = ("eth_gasPrice", "eth_accounts", "eth_syncing", "net_peerCount",
               "eth_maxPriorityFeePerGas", "txpool_status")
    for value in (b'"0x1"', b'"0x2"'):
        env.node.script = lambda req, v=value: req.result(v) if req.method in methods or \
            req.method == "eth_feeHistory" else None
        for method in methods:
            tap.eq(client.call(method).ok(), value, method)
        tap.eq(client.call("eth_feeHistory", ["0x4", "latest", []]).ok(), value, "eth_feeHistory")
        env.chain.mine()


@row("cache", "what happened is told to those who ask", clients="-", upstreams="ws", **WITH)
def told(env):
    with env.client("http") as client:
        settled(env, client)
        said = []
        for params in ([A, "0x2"], [A, "0x2"], [A, "pending"]):
            answer = client.request(request("eth_getBalance", params),
                                    headers=[("X-Ethrpc-Gw-Cache", "1")])
            said.append(answer.header("X-Ethrpc-Gw-Cache"))
        tap.eq(said, [b"miss", b"hit", b"bypass"], "cache status")
        tap.eq(client.request(request("eth_getBalance", [A, "0x2"])).header("X-Ethrpc-Gw-Cache"),
               None, "not to others")


@row("cache", "a development node that is turned back", clients="http", upstreams="ws", **WITH)
def turned_back(env, client):
    settled(env, client)
    same(env, client, "eth_getBalance", [A, "0x1"], 2)
    env.node.script = lambda req: req.result(b"true") if req.method == "evm_revert" else \
        req.result(b'"0xbeef"') if req.method == "eth_getBalance" else None
    tap.eq(client.call("evm_revert", ["0x1"]).ok(), b"true", "reverted")
    tap.eq(client.call("eth_getBalance", [A, "0x1"]).ok(), b'"0xbeef"', "another state")


@row("cache", "two networks never share", clients="-", upstreams="http")
def networks(_):
    """Two networks in one gateway whose chains differ, with the same heights."""
    chains = [Chain(live=True), Chain(blocks=0, chain_id=2, live=True)]
    chains[1].headers.clear()
    chains[1].fork = 7
    for _ in range(21):
        chains[1].mine(quiet=True)
    nodes = [Node("ws", chain) for chain in chains]
    stages = [{"use": "methods"}, {"use": "cache"}]
    gw = Gateway([], top={"networks": [
        {"name": "n%d" % i, "upstreams": [{"name": "n%d" % i, "url": node.url()}],
         "middleware": stages} for i, node in enumerate(nodes)]})
    try:
        with HttpClient(gw.ports["rpc"], path="/n0") as one, \
                HttpClient(gw.ports["rpc"], path="/n1") as two:
            both(gw, chains, (one, two))
        gw.stop()
    finally:
        gw.discard()
        for node in nodes:
            node.close()


def both(gw, chains, clients):
    def hits():
        for client in clients:
            client.call("eth_getCode", [A, "0x1"])
        return gw.metric("ethrpcgw_cache_hits_total") > 10
    tap.eventually(hits, 8, "both are known", 0.02)
    for method, params in (("eth_getBalance", [A, "0x1"]), ("eth_getBlockByNumber", ["0x2", True]),
                           ("eth_chainId", []), ("net_version", []), ("eth_getBalance", [A])):
        for _ in range(2):
            for client, chain in zip(clients, chains):
                tap.eq(client.call(method, params).ok(),
                       chain.answer(method, rawjson.compact(params)), "%s %r" % (method, params))


def ask_at_random(env, client, rng):
    """A question whose answer must be that of the chain now."""
    heads = env.chain.headers
    head = heads[rng.choice((-1, -1, -2, -3, -5, rng.randrange(len(heads))))]
    number, who = head["number"], rng.choice((A, B))
    method = rng.choice(sorted(STATE) + ["eth_getBlockByNumber", "eth_getBlockByHash",
                                         "eth_getBlockReceipts", "eth_getTransactionReceipt",
                                         "eth_getTransactionByHash", "eth_getLogs"])
    if method in STATE:
        form = rng.choice((number, head["hash"], {"blockNumber": number},
                           {"blockHash": head["hash"]}, "latest", "safe", "finalized"))
        params = [who, "0x0"][:STATE[method]] + [form]
    elif method == "eth_getBlockByNumber":
        params = [rng.choice((number, "latest", "finalized", "safe")), rng.random() < 0.5]
    elif method == "eth_getBlockByHash":
        params = [head["hash"], rng.random() < 0.5]
    elif method == "eth_getBlockReceipts":
        params = [rng.choice((number, head["hash"], "latest"))]
    elif method == "eth_getLogs":
        low = rng.randrange(int(number, 16) + 1)
        params = [rng.choice(({"fromBlock": hex(low), "toBlock": number},
                              {"fromBlock": number, "toBlock": number},
                              {"fromBlock": hex(low)}, {"blockHash": head["hash"]},
                              {"fromBlock": "latest", "toBlock": "latest"}))]
    else:
        params = [rng.choice(env.chain.transactions(head) + env.txs)]
    same_or_refused(env, client, method, params)


def same_or_refused(env, client, method, params):
    try:
        want = env.want(method, rawjson.compact(params))
    except NodeError:
        client.call(method, params).refused()
        return
    tap.eq(client.call(method, params).ok(), want, "%s %r" % (method, params))


@row("cache", "a chain that grows and turns, asked at random", clients="http ws ipc",
     upstreams="http ws ipc", **WITH)
def at_random(env, client):
    settled(env, client)
    rng = random.Random(20)
    env.txs = [word("mine", i) for i in range(6)]
    for _ in range(25):
        what = rng.random()
        env.chain.pool += [tx for tx in env.txs if tx not in env.chain.pool and
                           env.chain.place(tx) is None and rng.random() < 0.5]
        if what < 0.5:
            env.chain.mine()
        elif what < 0.8:
            env.chain.reorg(rng.randrange(1, 5), drop=[t for t in env.txs if rng.random() < 0.3])
        on_tip(env)
        for _ in range(40):
            ask_at_random(env, client, rng)
    tap.check(env.gw.metric("ethrpcgw_cache_hits_total") > 200, "hits")


wire.main()
