#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware coalesce in the whole program, with two workers: wire cases H16, H17, S28."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
import wire
from clients import Reply, request
from fakenode import reset
from wire import row

WITH = {"middleware": [{"use": "methods"}, {"use": "coalesce"}], "fresh": True}
MORE = "http ws ipc"


def together(env, kind, count, params="same", first=None):
    """So many clients ask the same; their answers are not read yet."""
    crowd = [env.client(kind) for _ in range(count)]
    for i, one in enumerate(crowd):
        one.send(request("eth_call", [params], b'"id %d"' % i))
        if i == 0 and first is not None:
            first()
    return crowd


@row("H16", "100 identical reads of 300 kB, the first client leaves", clients="-", upstreams=MORE, **WITH)
def h16(env):
    text = b'"' + b"ab" * 150000 + b'"'
    held = []

    def script(req):
        if req.params == b'["same"]':
            held.append(req)
            return req.later(0.3, req.result(text))
        return None

    env.node.script = script
    for kind in ("http", "ws", "ipc"):
        del held[:]
        crowd = together(env, kind, 40, first=lambda: tap.eventually(lambda: held, 3, "the first is under way"))
        tap.eventually(lambda: env.gw.metric("ethrpcgw_coalesce_waiting") >= 30, 3, "others wait")
        crowd[0].reset()
        for i, one in enumerate(crowd[1:], 1):
            reply = Reply(one.recv(10))
            tap.eq(reply.id, b'"id %d"' % i, "id")
            tap.check(reply.ok() == text, "the whole result")
            one.close()
        tap.at_most(len(held), 12, "%s: calls at the node for 40 clients" % kind)
    tap.eq(env.gw.metric("ethrpcgw_coalesce_waiting"), 0, "nobody waits any more")


@row("H17", "20 identical reads, the node resets the first", clients="-", upstreams="http ws ipc", **WITH)
def h17(env):
    seen = []

    def script(req):
        if req.params != b'["same"]':
            return None
        seen.append(req)
        return req.later(0.15, reset()) if len(seen) == 1 else req.later(0.05)

    env.node.script = script
    crowd = together(env, "ws", 20)
    for i, one in enumerate(crowd):
        reply = Reply(one.recv(10))
        tap.eq(reply.id, b'"id %d"' % i, "id")
        tap.eq(reply.ok(), env.want("eth_call", b'["same"]'), "result")
        one.close()
    with env.client("http") as client:
        tap.eq(client.call("eth_call", ["same"]).ok(), env.want("eth_call", b'["same"]'), "the next one")


@row("S28", "different reads with one id at the same moment", clients="http ws ipc", upstreams=MORE, **WITH)
def s28(env, client):
    env.node.script = lambda req: req.later(0.05)
    crowd = [env.client(client.kind) for _ in range(20)]
    for i, one in enumerate(crowd):
        one.send(request("eth_call", [i % 5], 1))
    for i, one in enumerate(crowd):
        tap.eq(Reply(one.recv(10)).ok(), env.want("eth_call", b"[%d]" % (i % 5)), "its own answer")
        one.close()


@row("coalesce", "a thousand equal calls on few connections", clients="ws ipc", upstreams="http ipc", **WITH)
def thousand(env, client):
    env.node.script = lambda req: req.later(0.2)
    other = env.client(client.kind)
    for i in range(500):
        client.send(request("eth_call", ["same"], i))
        other.send(request("eth_call", ["same"], i))
    got = sorted(int(Reply(one.recv(10)).id) for one in (client, other) for _ in range(500))
    tap.eq(got, sorted(list(range(500)) * 2), "each id once")
    tap.at_most(env.asked("eth_call"), 60, "calls at the node")
    other.close()


@row("coalesce", "errors of the node are shared, transactions are not", clients="http", upstreams="http", **WITH)
def errors(env, client):
    env.node.script = lambda req: req.later(0.2, req.error(3, "execution reverted", "0x08")) \
        if req.method == "eth_call" else req.later(0.1, req.result(b'"0xhash"')) \
        if req.method == "eth_sendRawTransaction" else None
    crowd = together(env, "ws", 10)
    for one in crowd:
        reply = Reply(one.recv(10))
        tap.check(b'"data":"0x08"' in reply.error, "revert data")
        one.close()
    tap.at_most(env.asked("eth_call"), 3, "calls at the node")
    crowd = [env.client("ws") for _ in range(5)]
    for one in crowd:
        one.send(request("eth_sendRawTransaction", ["0x1234"], 1))
    for one in crowd:
        Reply(one.recv(10))
        one.close()
    tap.eq(env.asked("eth_sendRawTransaction"), 5, "each transaction is sent")


wire.main()
