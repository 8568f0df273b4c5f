#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware logsplit in the whole program: ranges longer than a node takes, over each transport in
and out, with the cache and coalesce below it; and against anvil."""
import os
import sys

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


def stages(**options):
    return {"middleware": [{"use": "methods"}, dict({"use": "logsplit"}, **options),
                           {"use": "cache"}, {"use": "coalesce"}],
            "network": {"poll_interval": "100ms"}, "live": True, "fresh": True}


TENS = stages(max_range=10)
BLOCKS = 100


def known(env, which="tip"):
    """The number of this block of the head, as the gateway knows it."""
    head = rawjson.parse(env.gw.admin("/status")[1])["networks"][0]["head"] or {}
    return head.get(which, {}).get("number")


def grown(env):
    """A hundred blocks, and the gateway knows."""
    while env.chain.number() < BLOCKS - 1:
        env.chain.mine(quiet=True)
    env.chain.mine()
    tap.eventually(lambda: known(env) == BLOCKS and known(env, "finalized") == BLOCKS - env.chain.final,
                   8, "the gateway knows the head")


def span(first, last, **more):
    return [dict(more, fromBlock=hex(first), toBlock=last if isinstance(last, str) else hex(last))]


def windows(env):
    """The ranges that the node was asked for by numbers."""
    out = []
    for raw in env.node.params_seen("eth_getLogs"):
        what = rawjson.parse(raw)[0]
        if "fromBlock" in what:
            out.append((int(what["fromBlock"], 16), what["toBlock"]))
    return out


def limited(env, blocks, text):
    """The node takes so many blocks; text(first, last): its error."""
    def script(req):
        if req.method != "eth_getLogs" or "fromBlock" not in req.args()[0]:
            return None
        first, last = (int(env.chain.find(req.args()[0][k])["number"], 16)
                       for k in ("fromBlock", "toBlock"))
        return req.error(-32000, text(first, last)) if last - first + 1 > blocks else None
    env.node.script = script


@row("logsplit", "a long range is cut, joined in order", clients="http ws ipc",
     upstreams="http ws ipc", **TENS)
def long_range(env, client):
    grown(env)
    limited(env, 10, lambda a, b: "a range of %d" % (b - a + 1))
    for first, last in ((3, 97), (0, BLOCKS), (50, "latest"), (10, 19)):
        tap.eq(client.call("eth_getLogs", span(first, last)).ok(),
               env.want("eth_getLogs", rawjson.compact(span(first, last))), "%r to %r" % (first, last))
    tap.at_most(max(int(env.chain.find(b)["number"], 16) - a for a, b in windows(env)), 9)
    tap.at_least(env.gw.metric("ethrpcgw_logsplit_split_total"), 3)


@row("logsplit", "blocks above the tip are the node's business", clients="http", upstreams="http", **TENS)
def above(env, client):
    grown(env)
    reply = client.call("eth_getLogs", span(50, BLOCKS + 7))
    reply.refused(-32000)
    tap.eq(reply.message, "header not found", "as the node says")


@row("logsplit", "parts that were had come from the cache", upstreams="http", **TENS)
def cached(env, client):
    grown(env)
    client.call("eth_getLogs", span(10, 49)).ok()
    before = env.asked("eth_getLogs")
    tap.eq(client.call("eth_getLogs", span(20, 69)).ok(),
           env.want("eth_getLogs", rawjson.compact(span(20, 69))), "a range that overlaps")
    tap.eq(env.asked("eth_getLogs") - before, 2, "only what is new is asked for")


@row("logsplit", "several in one array, with other calls", clients="http ws ipc", upstreams="http",
     **TENS)
def array(env, client):
    grown(env)
    asks = [request("eth_getLogs", span(i, i + 30), i) for i in range(1, 40, 7)]
    asks.insert(2, request("eth_chainId", [], 900))
    for reply in client.batch(asks):
        n = int(reply.id)
        want = env.want("eth_chainId") if n == 900 else \
            env.want("eth_getLogs", rawjson.compact(span(n, n + 30)))
        tap.eq(reply.ok(), want, "reply %d" % n)


PROPOSALS = [
    ("Reth", lambda a, b: "query exceeds max results 20000, retry with the range %d-%d" % (a, a + 7)),
    ("Infura", lambda a, b: "query returned more than 10000 results. Try with this block range "
     "[0x%X, 0x%X]." % (a, a + 7)),
    ("a limit", lambda a, b: "exceed maximum block range: 8"),
    ("no proposal", lambda a, b: "block range is too wide"),
]


@row("logsplit", "a node's own limit: %s", clients="http ws", upstreams="http ipc", each=PROPOSALS,
     **stages())
def proposals(env, client, text):
    grown(env)
    limited(env, 8, text)
    want = env.want("eth_getLogs", rawjson.compact(span(5, 80)))
    for _ in range(2):
        tap.eq(client.call("eth_getLogs", span(5, 80)).ok(), want, "logs")
    tap.at_most(env.asked("eth_getLogs"), 50)


@row("logsplit", "a limit that was learned holds for the next call", upstreams="http", **stages())
def learned(env, client):
    grown(env)
    limited(env, 20, lambda a, b: "range %d exceeds limit of 20" % (b - a + 1))
    client.call("eth_getLogs", span(0, 59)).ok()
    tap.eq(env.gw.metric("ethrpcgw_logsplit_learned_total"), 1, "learned")
    before = len(windows(env))
    client.call("eth_getLogs", span(20, 79)).ok()
    tap.eq([b for b in windows(env)[before:] if int(env.chain.find(b[1])["number"], 16) - b[0] > 19],
           [], "ranges that are too long")


@row("logsplit", "an error of a part is the client's, as it is", clients="http ws ipc",
     upstreams="http", **TENS)
def errors(env, client):
    grown(env)
    env.node.script = lambda req: req.error(-32001, "no logs of that age \u00e4\"", {"a": [1, None]}) \
        if req.method == "eth_getLogs" and req.args()[0].get("fromBlock") == "0x1e" else None
    reply = client.call("eth_getLogs", span(0, 59))
    reply.refused(-32001)
    tap.eq(reply.message, "no logs of that age \u00e4\"", "message")
    tap.eq(rawjson.parse(reply.data), {"a": [1, None]}, "data")
    tap.eq(client.call("eth_getLogs", span(0, 25)).ok(),
           env.want("eth_getLogs", rawjson.compact(span(0, 25))), "other ranges")


@row("logsplit", "what is too much is refused with what to do", upstreams="http",
     **stages(max_range=10, max_parts=5, max_result="6kB"))
def caps(env, client):
    grown(env)
    reply = client.call("eth_getLogs", span(0, 90))
    reply.refused(-32012)
    tap.contains(reply.message, "max_parts")
    reply = client.call("eth_getLogs", span(0, 49))
    reply.refused(-32012)
    tap.contains(reply.message, "max_result")
    client.call("eth_getLogs", span(0, 9)).ok()


@row("logsplit", "the deadline ends all parts", clients="http ws", upstreams="http",
     **dict(TENS, network={"poll_interval": "100ms", "timeout": "700ms"}))
def deadline(env, client):
    grown(env)
    held = []

    def script(req):
        if req.method == "eth_getLogs":
            held.append(req)
            return HANDLED
        return None

    env.node.script = script
    client.call("eth_getLogs", span(0, 90)).refused(-32051)
    tap.at_least(len(held), 1)
    env.node.script = None
    for req in held:
        req.respond(b"[]")
    tap.eq(client.call("eth_getLogs", span(0, 25)).ok(),
           env.want("eth_getLogs", rawjson.compact(span(0, 25))), "the next call")
    tap.eventually(lambda: env.gw.metric("ethrpcgw_calls_in_flight") == 0, 5, "nothing is left")


@row("logsplit", "a reorg meanwhile: all logs are of one chain", clients="http ws",
     upstreams="ws", **stages(max_range=3))
def reorg(env, client):
    grown(env)
    held = []

    def script(req):
        if req.method == "eth_getLogs" and not held and "blockHash" in req.args()[0]:
            held.append(req)
            return HANDLED
        return None

    env.node.script = script
    client.send(request("eth_getLogs", span(80, BLOCKS), 5))
    tap.eventually(lambda: held, 5, "a block that is not final is asked for by its hash")
    env.chain.reorg(env.chain.final)
    last = env.chain.mine()
    tap.eventually(lambda: known(env) == int(last["number"], 16), 8, "the reorg is known")
    held[0].respond(held[0].normal())
    tap.eq(rawjson.member(client.recv(), "result"),
           env.want("eth_getLogs", rawjson.compact(span(80, BLOCKS))), "the logs of one chain")
    tap.at_least(env.gw.metric("ethrpcgw_logsplit_redone_total"), 1)


@row("logsplit", "while the chain moves", clients="http ws", upstreams="ws http", **stages(max_range=2))
def moving(env, client):
    grown(env)
    for i in range(40):
        if i % 4 == 3:
            env.chain.reorg(1 + i % 3)
        else:
            env.chain.mine()
        top = int(client.call("eth_blockNumber").ok().strip(b'"'), 16)
        reply = rawjson.parse(client.call("eth_getLogs", span(top - 12, top)).ok())
        blocks = [rawjson.parse(env.want("eth_getBlockByHash", rawjson.compact([log["blockHash"], False])))
                  for log in reply]
        tap.eq([int(log["blockNumber"], 16) for log in reply], list(range(top - 12, top + 1)), "blocks")
        if None not in blocks:
            tap.eq([b["parentHash"] for b in blocks[1:]], [b["hash"] for b in blocks[:-1]], "one chain")


@row("logsplit", "queries by hash and short ranges are one call", clients="http ws ipc",
     upstreams="http", **dict(TENS, middleware=[{"use": "logsplit", "max_range": 10}]))
def untouched(env, client):
    grown(env)
    for params in ([{"blockHash": env.chain.headers[7]["hash"]}], span(5, 14), span(95, "latest"),
                   span(5, 5, topics=[None, ["0x" + "11" * 32]])):
        before = env.asked("eth_getLogs")
        client.call("eth_getLogs", params).ok()
        tap.eq(env.asked("eth_getLogs") - before, 1, "calls at the node")
        tap.eq(env.node.params_seen("eth_getLogs")[-1], rawjson.compact(params), "as they came")


def against_anvil():
    """Real logs: each range through the gateway is what anvil says directly."""
    with nodes.Anvil() as node:
        nodes.furnish(node, big=30)
        for _ in range(40):
            node.ask("evm_mine")
        last = int(node.ask("eth_blockNumber"), 16)
        everything = [dict(fromBlock="0x0", toBlock=hex(last))]
        total = len(node.ask("eth_getLogs", everything[0]))
        tap.at_least(total, 3)
        asks = [everything[0], {"fromBlock": "0x1", "toBlock": "latest"}, {"fromBlock": "earliest"},
                {"fromBlock": "0x3", "toBlock": hex(last // 2)}]
        some = node.ask("eth_getLogs", everything[0])[0]
        asks.append({"fromBlock": "0x0", "address": some["address"]})
        asks.append({"fromBlock": "0x0", "topics": [[some["topics"][0]] if some["topics"] else None]})
        for kind in ("http", "ws", "ipc"):
            with gateway.Gateway([{"name": "anvil", "url": node.urls[kind]}],
                                 middleware=stages(max_range=3)["middleware"],
                                 network={"poll_interval": "100ms"}) as gw:
                with node.client("http") as direct, gw.client("http") as http, \
                        gw.client("ws") as ws, gw.client("ipc") as ipc:
                    known = lambda: rawjson.parse(  # noqa: E731
                        gw.admin("/status")[1])["networks"][0]["head"]
                    tap.eventually(known, 8, "the head is known")
                    for what in asks:
                        want = rawjson.parse(direct.call("eth_getLogs", [what]).ok())
                        for client in (http, ws, ipc):
                            tap.eq(rawjson.parse(client.call("eth_getLogs", [what]).ok()), want,
                                   "%s %r" % (kind, what))
                tap.at_least(gw.metric("ethrpcgw_logsplit_split_total"), 5)


gateway.need_program()
if nodes.program("anvil") is not None:
    tap.run("against anvil, over each transport", against_anvil)
wire.main(300)
