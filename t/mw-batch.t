#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware batch in the whole program: arrays to nodes over HTTP, nodes that refuse them in
several ways (wire cases B7, B8, B10, E25, I20), and clients' own arrays, which run in parallel."""
import os
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
import wire
from clients import Reply, request
from fakenode import HANDLED, Answer, raw, reset
from wire import row

STAGES = [{"use": "methods"}, {"use": "batch", "max_calls": 200}]
WITH = {"middleware": STAGES, "fresh": True}
METRIC = "ethrpcgw_upstream_batch%s_total"


def reads(count, first=0):
    return [request("eth_call", [i], i) for i in range(first, first + count)]


def right(env, got, count):
    tap.eq([r.id for r in got], [b"%d" % i for i in range(count)], "ids in order")
    for i, reply in enumerate(got):
        tap.eq(reply.ok(), env.want("eth_call", b"[%d]" % i), "result %d" % i)


def usual(requests):
    return [r.node.usual(r).body for r in requests]


def arrays(env):
    return [len(a) for a in env.node.arrays]


@row("batch", "calls of one moment share requests", clients="http ws ipc", upstreams="http", **WITH)
def share(env, client):
    for _ in range(3):
        right(env, client.batch(reads(60)), 60)
    tap.check(env.node.arrays, "the node was sent arrays")
    tap.eq(env.node.count("eth_call"), 180, "each call once")
    tap.eq(env.gw.metric(METRIC % "es"), len(env.node.arrays), "arrays counted")
    tap.eq(env.gw.metric(METRIC % "ed_calls"), sum(arrays(env)), "calls in them counted")
    tap.eq(env.gw.metric(METRIC % "_refusals"), 0, "refusals")
    tap.at_least(env.gw.metric("ethrpcgw_batch_offered_total"), 180, "calls that might")
    tap.eq([a for a in env.node.arrays if len(a) < 2], [], "arrays of one")


@row("batch", "calls of several clients, each with its own id", clients="-", upstreams="http", **WITH)
def several(env):
    crowd = [env.client("ws") for _ in range(10)]
    for _ in range(5):
        for n, one in enumerate(crowd):
            for i in range(10):
                one.send(request("eth_call", [n * 10 + i], b'"%d of %d"' % (i, n)))
        for n, one in enumerate(crowd):
            got = {r.id: r.ok() for r in (Reply(one.recv(10)) for _ in range(10))}
            tap.eq(got, {b'"%d of %d"' % (i, n): env.want("eth_call", b"[%d]" % (n * 10 + i))
                         for i in range(10)}, "client %d" % n)
    tap.check(env.node.arrays, "the node was sent arrays")


@row("batch", "a lone call is no array", clients="http ws ipc", upstreams="http", **WITH)
def lone(env, client):
    for i in range(20):
        tap.eq(client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i), "result")
    tap.eq(env.node.arrays, [], "arrays")


@row("batch", "no arrays over connections that carry many calls", clients="http", upstreams="ws ipc", **WITH)
def not_needed(env, client):
    right(env, client.batch(reads(60)), 60)
    tap.eq(env.node.arrays, [], "arrays")


@row("batch", "max_batch 0: no arrays", clients="ws", upstreams="http", upstream={"max_batch": 0}, **WITH)
def never(env, client):
    right(env, client.batch(reads(60)), 60)
    tap.eq(env.node.arrays, [], "arrays")


@row("batch", "max_batch_bytes is kept", clients="ws", upstreams="http",
     upstream={"max_batch_bytes": "100"}, **WITH)
def short(env, client):
    right(env, client.batch(reads(60)), 60)
    tap.eq(env.node.arrays, [], "arrays: no two calls fit")


def body_error(code, message):
    return b'{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"%s"}}' % (code, message)


REFUSALS = [
    ("as a whole, too large", True, lambda _: raw(body_error(-32600, b"batch too large"))),
    ("limit exceeded", True, lambda _: raw(body_error(-32005, b"batch limit 1 exceeded"))),
    ("not supported", True, lambda _: raw(body_error(-32005, b"Batched requests are not supported by this server"))),
    ("jsonrpsee's limit", True, lambda _: raw(body_error(-32010, b"The batch request was too large"))),
    ("status 413", True, lambda _: raw(b"<html>too large</html>", status=413)),
    ("status 400", True, lambda _: raw(b"Bad Request", status=400)),
    ("status 405", True, lambda _: raw(b"", status=405)),
    ("status 500 and an error", True, lambda _: raw(body_error(-32603, b"Internal error"), status=500)),
    ("an error in an array", True, lambda r: raw(b'[{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,'
                                           b'"message":"batch too large"}}]' % r[0].id)),
    ("an error for each", True, lambda r: raw(b"[" + b",".join(
        b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"batch too large"}}' % x.id
        for x in r) + b"]")),
    ("no body", True, lambda _: raw(b"")),
    ("an empty array", True, lambda _: raw(b"[]")),
    ("rubbish", True, lambda _: raw(b"<html>hello</html>")),
    ("half an array", True, lambda r: raw(b"[" + r[0].node.usual(r[0]).body)),
    ("only the first answered", True, lambda r: raw(r[0].node.usual(r[0]).body)),
    ("rate limited", False, lambda _: raw(body_error(-32005, b"rate limit exceeded"), status=429)),
    ("a reset", False, lambda _: reset()),
    ("cut short", False, lambda r: raw(b"[" + b",".join(usual(r)) + b"]", cut=30)),
]


@row("B7", "the node refuses arrays: %s", clients="ws", upstreams="http", each=REFUSALS, **WITH)
def refused(env, client, learned, how):
    env.node.batch_script = how
    for _ in range(6):
        right(env, client.batch(reads(40)), 40)
    tap.check(env.node.arrays, "the node was sent arrays")
    if not learned:
        return
    tap.at_least(env.gw.metric(METRIC % "_refusals"), 1, "refusals counted")
    sent = len(env.node.arrays)
    right(env, client.batch(reads(40)), 40)
    tap.eq(len(env.node.arrays), sent, "it has been learned")


def doubled(requests):
    bodies = usual(requests)
    return raw(b"[" + b",".join(bodies[1:] + bodies[-1:]) + b',{"jsonrpc":"2.0","id":987654,"result":1}]')


MEMBERS = [
    ("missing, doubled, made up", doubled),
    ("reversed", lambda r: raw(b"[" + b",".join(reversed(usual(r))) + b"]")),
    ("ids as strings", lambda r: raw(b"[" + b",".join(
        b'{"result":%s,"id":"%s"}' % (x.node.chain.answer(x.method, x.params), x.id) for x in r) + b"]")),
    ("between spaces", lambda r: raw(b"\n [ " + b" ,\t".join(usual(r)) + b"\r\n]\n")),
    ("in single bytes", lambda r: raw(b"[" + b",".join(usual(r)) + b"]", mode="chunked", pieces=[1])),
    ("among rubbish", lambda r: raw(b'[1,null,"x",[],{},' + b",".join(usual(r)) + b',{"id":{}}]')),
]


@row("B8", "members %s", clients="http ws ipc", upstreams="http", each=MEMBERS, **WITH)
def members(env, client, how):
    env.node.batch_script = how
    right(env, client.batch(reads(40)), 40)
    tap.check(env.node.arrays, "the node was sent arrays")


@row("E25", "500 calls, the node takes arrays of 100, as configured", clients="http ws ipc",
     upstreams="http", upstream={"max_batch": 100}, **WITH)
def e25(env, client):
    env.node.batch_script = lambda r: raw(body_error(-32010, b"The batch request was too large")) \
        if len(r) > 100 else None
    for _ in range(3):
        right(env, client.batch(reads(500), timeout=30), 500)
    tap.eq(env.gw.metric(METRIC % "_refusals"), 0, "refusals")


@row("E25", "500 calls, the node takes arrays of 2, which has to be found out", clients="http ws ipc",
     upstreams="http", **WITH)
def found_out(env, client):
    env.node.batch_script = lambda r: raw(body_error(-32010, b"The batch request was too large")) \
        if len(r) > 2 else None
    for _ in range(3):
        right(env, client.batch(reads(500), timeout=30), 500)


@row("I20", "an array with a transaction; one read is limited the first time", clients="http ws",
     upstreams="http", **WITH)
def i20(env, client):
    limited = []

    def script(req):
        if req.method == "eth_sendRawTransaction":
            return req.result(b'"0xhash"')
        if req.params == b"[7]" and not limited:
            limited.append(req)
            return req.error(-32005, "daily request count exceeded, request rate limited")
        return None

    env.node.script = script
    asked = reads(20)
    asked[10] = request("eth_sendRawTransaction", ["0x12"], 10)
    got = client.batch(asked)
    tap.eq([r.id for r in got], [b"%d" % i for i in range(20)], "ids")
    for i, reply in enumerate(got):
        if i == 7 and reply.error is not None:
            tap.check(b"-32005" in reply.error, "the limited one")
        elif i == 10:
            tap.eq(reply.ok(), b'"0xhash"', "the transaction")
        else:
            tap.eq(reply.ok(), env.want("eth_call", b"[%d]" % i), "result %d" % i)
    tap.eq(env.node.count("eth_sendRawTransaction"), 1, "the transaction is sent once")
    tap.check(all(r.method == "eth_call" for a in env.node.arrays for r in a), "and in no array")
    seen = env.node.params_seen("eth_call")
    tap.eq([p for p in set(seen) if seen.count(p) > 1 and p != b"[7]"], [], "the others once each")


@row("batch", "a call that is given up does not disturb the others", clients="-", upstreams="http", **WITH)
def given_up(env):
    held = []

    def script(req):
        if req.batch is not None:
            held.append(req)
            return HANDLED
        return None

    env.node.script = script
    stays, leaves = env.client("ws"), env.client("ws")
    for i in range(30):
        leaves.send(request("eth_call", [100 + i], i))
        stays.send(request("eth_call", [i], i))
    tap.eventually(lambda: len(held) >= 2, 3, "calls are in arrays")
    leaves.close()
    tap.eventually(lambda: env.gw.metric("ethrpcgw_sessions") <= 2, 3, "one client is gone")
    env.node.script = None
    for req in list(held):
        req.respond(env.node.usual(req))
    got = {r.id: r.ok() for r in (Reply(stays.recv(10)) for _ in range(30))}
    tap.eq(got, {b"%d" % i: env.want("eth_call", b"[%d]" % i) for i in range(30)}, "the other's")
    stays.close()


@row("S13", "one call is never answered, which holds up its array", clients="ws", upstreams="http", **WITH)
def never_answered(env, client):
    def answer(requests):
        return Answer(None) if any(r.params == b"[7]" for r in requests) else None

    env.node.script = lambda req: Answer(None) if req.params == b"[7]" else None
    env.node.batch_script = answer
    got = client.batch(reads(20), timeout=20)
    tap.eq([r.id for r in got], [b"%d" % i for i in range(20)], "ids")
    for i, reply in enumerate(got):
        if i == 7:
            reply.refused(-32051)
        else:
            tap.eq(reply.ok(), env.want("eth_call", b"[%d]" % i), "result %d" % i)


class Crowd:
    """Holds calls until so many are at the node at the same time."""

    def __init__(self, want):
        self.want, self.held, self.most = want, [], 0
        self.lock = threading.Lock()

    def script(self, req):
        if req.method != "eth_call":
            return None
        with self.lock:
            if self.most >= self.want:
                return None
            self.held.append(req)
            self.most = len(self.held)
            if self.most < self.want:
                return HANDLED
            free, self.held = self.held, []
        for one in free:
            one.respond(one.node.usual(one))
        return HANDLED


@row("batch", "a client's array of 100 is at the node as many requests at a time", clients="http ws ipc",
     upstreams="http ws ipc", fresh=True)
def parallel(env, client):
    crowd = Crowd(30)
    env.node.script = crowd.script
    right(env, client.batch(reads(100), timeout=20), 100)
    tap.at_least(crowd.most, 30, "requests at the same time")
    tap.eq(env.node.arrays, [], "arrays")


def one_by_one(env, seconds):
    """The node takes so long for a call, and for each member of an array."""
    def answer(requests):
        body = b"[" + b",".join(usual(requests)) + b"]"
        conn = requests[0].conn
        env.node.at(seconds * len(requests), lambda: conn.answer(Answer(body)))
        return Answer(None)

    env.node.script = lambda req: req.later(seconds) if req.method == "eth_call" else None
    env.node.batch_script = answer


@row("batch", "arrays stop where a node answers their members one by one", clients="ws", upstreams="http",
     **WITH)
def paced(env, client):
    one_by_one(env, 0.03)
    for _ in range(10):
        right(env, client.batch(reads(8), timeout=20), 8)
    tap.check(env.node.arrays, "they were tried")
    tried = len(env.node.arrays)
    for _ in range(10):
        right(env, client.batch(reads(8), timeout=20), 8)
    tap.at_most(len(env.node.arrays) - tried, 3, "arrays in ten crowds, later")


wire.main()
