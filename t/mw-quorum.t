#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware quorum in the whole program, with nodes on all transports: agreement, an upstream
that stands alone, disagreement, reverts, nodes that cannot answer, tags."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from fakenode import hangup, silent
from wire import row

A = "0x" + "0a" * 20
THREE = "http+ws+ipc"


def stages(**options):
    return {"middleware": [{"use": "methods"}, dict({"use": "quorum"}, **options)],
            "live": True}


def head_known(env, client):
    """Until a tag can be voted on."""
    def voted():
        before = env.gw.metric("ethrpcgw_quorum_asked_total")
        client.call("eth_getBalance", [A, "latest"]).ok()
        return env.gw.metric("ethrpcgw_quorum_asked_total") > before
    tap.eventually(voted, 8, "the head is known", 0.05)


def says(node, value):
    """From now on the node gives its own answer to balances."""
    node.script = lambda req: req.result(value) if req.method == "eth_getBalance" else None


@row("agree", "two of three are enough, whoever is slow or dead", clients="http ws ipc",
     upstreams=THREE, **stages())
def agree(env, client):
    for slow in env.nodes:
        slow.script = lambda req: silent() if req.method == "eth_getBalance" else None
        for i in range(3):
            tap.eq(client.call("eth_getBalance", [A, hex(i)], i).ok(),
                   env.want("eth_getBalance", rawjson.compact([A, hex(i)])), "balance")
        slow.script = None
    for node in env.nodes:
        node.script = lambda req: hangup() if req.method == "eth_getBalance" else None
        tap.eq(client.call("eth_getBalance", [A, "0x5"]).ok(),
               env.want("eth_getBalance", rawjson.compact([A, "0x5"])), "balance")
        node.script = None


@row("alone", "one that lies is outvoted, named and counted", clients="http ws ipc",
     upstreams=THREE, fresh=True, **stages())
def alone(env, client):
    says(env.nodes[1], b'"0xbad"')
    for node in (env.nodes[0], env.nodes[2]):
        node.script = lambda req: req.later(0.05) if req.method == "eth_getBalance" else None
    want = env.want("eth_getBalance", rawjson.compact([A, "0x5"]))
    for i in range(4):
        tap.eq(client.call("eth_getBalance", [A, "0x5"], i).ok(), want, "the truth")
    tap.eq(env.gw.metric("ethrpcgw_quorum_alone_total"), 4, "counted")
    tap.contains(env.gw.log(), "upstream=n1 agreed=", "who")
    tap.lacks(env.gw.log(), "0xbad", "what")


@row("differ", "no two agree: refused", clients="http ws ipc", upstreams=THREE, fresh=True,
     **stages())
def differ(env, client):
    for i, node in enumerate(env.nodes):
        says(node, b'"0x%d"' % (i + 1))
    tap.eq(client.call("eth_getBalance", [A, "0x5"]).refused(), -32058, "code")
    tap.eq(env.gw.metric("ethrpcgw_quorum_disagreed_total"), 1, "counted")


@row("majority", "two against one where three must agree", clients="http ws ipc",
     upstreams=THREE, **stages(agree=3, on_disagreement="majority"))
def majority(env, client):
    for node, value in zip(env.nodes, (b'"0x1"', b'"0x2"', b'"0x2"')):
        says(node, value)
    tap.eq(client.call("eth_getBalance", [A, "0x5"]).ok(), b'"0x2"', "what most say")


@row("first", "the one asked first decides; that turns", clients="http",
     upstreams=THREE, **stages(agree=3, on_disagreement="first"))
def first(env, client):
    for node, value in zip(env.nodes, (b'"0x1"', b'"0x2"', b'"0x3"')):
        says(node, value)
    got = {client.call("eth_getBalance", [A, "0x5"]).ok() for _ in range(12)}
    tap.eq(got, {b'"0x1"', b'"0x2"', b'"0x3"'}, "answers")


@row("words", "brands that write the same answer differently", clients="http ws",
     upstreams=THREE, **stages(agree=3))
def words(env, client):
    texts = (b'{"number":"0x5","size":"0x1","to":null,"gas":"0x0A"}',
             b'{ "gas": "0xa", "number": "0x5" }',
             b'{"totalDifficulty":"0x9","number":"0x05","gas":"0x0a"}')
    for node, text in zip(env.nodes, texts):
        node.script = lambda req, text=text: req.result(text) \
            if req.params == b'["0x5",false]' else None
    tap.among(client.call("eth_getBlockByNumber", ["0x5", False]).ok(),
              texts, "one of them, byte for byte")


@row("reverts", "reverts agree by their data", clients="http ws ipc", upstreams=THREE,
     **stages(agree=3))
def reverts(env, client):
    ways = ((3, "execution reverted: no", "0x08c379a0"),
            (-32000, "execution reverted", "0x08C379A0"),
            (-32015, "VM execution error.", "Reverted 0x08c379a0"))
    for node, way in zip(env.nodes, ways):
        node.script = lambda req, way=way: \
            req.error(*way) if req.method == "eth_call" else None
    reply = client.call("eth_call", [{"to": A}, "0x5"])
    tap.among((reply.code, reply.message, rawjson.parse(reply.data)), ways, "the revert")
    env.nodes[0].script = lambda req: req.error(3, "execution reverted", "0x1234") \
        if req.method == "eth_call" else None
    tap.eq(client.call("eth_call", [{"to": A}, "0x5"]).refused(), -32058, "other data")


@row("few", "too few can answer: refused", clients="http ws ipc", upstreams=THREE, fresh=True,
     **stages())
def few(env, client):
    env.nodes[0].script = lambda req: req.error(-32000, "header not found") \
        if req.method == "eth_getBalance" else None
    env.nodes[1].script = lambda req: hangup() if req.method == "eth_getBalance" else None
    tap.eq(client.call("eth_getBalance", [A, "0x5"]).refused(), -32059, "code")


@row("pass", "too few can answer: what there is", clients="http ws ipc", upstreams=THREE,
     **stages(too_few="pass"))
def passing(env, client):
    for node in env.nodes[:2]:
        node.script = lambda req: hangup() if req.method == "eth_getBalance" else None
    tap.eq(client.call("eth_getBalance", [A, "0x5"]).ok(),
           env.want("eth_getBalance", rawjson.compact([A, "0x5"])), "the one answer")


@row("tags", "all are asked about one block", clients="http ws ipc", upstreams=THREE,
     fresh=True, **stages(agree=3))
def tags(env, client):
    head_known(env, client)
    for node in env.nodes:
        node.requests = []
    for _ in range(5):
        client.call("eth_getBalance", [A, "latest"]).ok()
        client.call("eth_getBalance", [A]).ok()
        env.chain.mine()
    blocks = [r.args()[1:] for node in env.nodes for r in node.seen("eth_getBalance")]
    tap.eq(len(blocks), 30, "votes")
    tap.check(all(b and b[0].startswith("0x") for b in blocks), "by number: %r" % blocks)


@row("lag", "two of three get each block later than the first", clients="http ws ipc",
     upstreams=THREE, views=[{"lag": 0}, {"lag": 0}, {"lag": 0}], fresh=True, **stages())
def lag(env, client):
    head_known(env, client)
    for i in range(5):
        for node in env.nodes[1:]:
            node.chain.set_lag(1)
        env.chain.mine()
        number = b'"%s"' % hex(env.chain.number()).encode()
        env.nodes[0].at(0.2, lambda: [n.chain.set_lag(0) for n in env.nodes[1:]])
        tap.eventually(lambda: client.call("eth_blockNumber").ok() == number, 2, "the head")
        for method, params in (("eth_getBlockByNumber", ["latest", False]),
                               ("eth_getBalance", [A, "latest"])):
            tap.eq(client.call(method, params, i).ok(),
                   env.want(method, rawjson.compact(params)), method)


@row("others", "what is not listed, and what must not be sent twice, goes once",
     clients="http ws", upstreams=THREE, **stages(methods=["eth_*"]))
def others(env, client):
    client.call("eth_sendRawTransaction", ["0x0102"]).ok()
    client.call("net_version").ok()
    tap.eq(env.asked("eth_sendRawTransaction"), 1, "copies of the transaction")
    tap.eq(env.asked("eth_getBalance"), 0, "votes")


wire.main()
