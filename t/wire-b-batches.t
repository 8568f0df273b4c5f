#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour B: batches."""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import Reply, event_parts, replies, request
from fakenode import raw
from wire import row

BATCH_ERROR = b'{"jsonrpc":"2.0","id":null,' \
    b'"error":{"code":-32600,"message":"batch too large"}}'


def reads(ids):
    return [request("eth_call", b"[%d]" % i, i) for i in ids]


def all_right(env, got, ids):
    tap.eq([r.id for r in got], [b"%d" % i for i in ids], "ids")
    tap.eq([r.ok() for r in got], [env.want("eth_call", b"[%d]" % i) for i in ids], "results")


def right_or_error(env, got, ids):
    tap.eq([r.id for r in got], [b"%d" % i for i in ids], "ids")
    for reply, i in zip(got, ids):
        if reply.error is None:
            tap.eq(reply.result, env.want("eth_call", b"[%d]" % i), "result of %d" % i)


def invalid(reply):
    reply.refused(-32600)
    tap.eq(reply.id, b"null", "id")


@row("B1", "empty batch: %s", clients="http ws ipc", upstreams="http",
     each=[b"[]", b"[ ]", b"[[]]"])
def b1(env, client, text):
    answer = client.raw(text)
    if text == b"[[]]":
        got = replies(answer)
        tap.eq(len(got), 1, "answers")
        invalid(got[0])
    else:
        invalid(Reply(answer))
    env.untouched()


@row("B2", "notifications in a batch", clients="http ws ipc", upstreams="http ws ipc")
def b2(env, client):
    got = client.batch([request("eth_call", [1], None), request("eth_call", [2], 1)])
    tap.eq([(r.id, r.ok()) for r in got], [(b"1", env.want("eth_call", b"[2]"))], "answers")
    client.silent(b"[" + request("eth_call", [3], None) + b"," +
                  request("eth_call", [4], None) + b"]")
    tap.eventually(lambda: {b"[3]", b"[4]"} <= set(env.node.params_seen("eth_call")), 3,
                   "the notifications were executed")
    tap.eq(client.call("eth_chainId").ok(), b'"0x1"', "afterwards")


@row("B3", "node answers batches with nothing", clients="http ws", upstreams="http ws")
def b3(env, client):
    env.node.batch_script = lambda requests: raw(b"")
    got = client.batch(reads(range(4)))
    right_or_error(env, got, range(4))
    tap.check(all(env.node.arrays), "no empty batch is sent")


@row("B4", "members that are no requests", clients="http ws ipc", upstreams="http")
def b4(env, client):
    got = replies(client.raw(b"[null,null]"))
    tap.eq(len(got), 2, "answers")
    for reply in got:
        invalid(reply)
    got = replies(client.raw(b'[1,"x",{},[],true,' + request("eth_call", [9], 9) + b", null]"))
    tap.eq(len(got), 7, "answers")
    for i in (0, 1, 2, 3, 4, 6):
        invalid(got[i])
    tap.eq((got[5].id, got[5].ok()), (b"9", env.want("eth_call", b"[9]")), "the good one")


@row("B5", "notifications at any place", clients="http ws ipc", upstreams="http")
def b5(env, client):
    note = request("eth_call", [0], None)
    for members, ids in [([request("eth_call", [1], 32), note], [b"32"]),
                         ([note, request("eth_call", [1], 32)], [b"32"]),
                         ([note, request("eth_call", [1], 1), note, note,
                           request("eth_call", [2], 2), note], [b"1", b"2"])]:
        got = client.batch(members)
        tap.eq([r.id for r in got], ids, "ids")
        for reply in got:
            reply.ok()


@row("B6", "all nodes down", clients="http ws ipc", upstreams="http ws ipc", fresh=True)
def b6(env, client):
    env.node.stop()
    got = client.batch(reads(range(3)))
    tap.eq([r.id for r in got], [b"0", b"1", b"2"], "ids")
    for reply in got:
        reply.refused()


@row("B7", "node refuses batches as a whole", clients="http", upstreams="http ws ipc")
def b7(env, client):
    env.node.batch_script = lambda requests: raw(BATCH_ERROR)
    right_or_error(env, client.batch(reads(range(5))), range(5))


@row("B8", "node answers batches with members missing, doubled, made up", clients="http",
     upstreams="http ws")
def b8(env, client):
    def answer(requests):
        bodies = [r.node.usual(r).body for r in requests]
        return raw(b"[" + b",".join(bodies[1:] + bodies[-1:]) +
                   b',{"jsonrpc":"2.0","id":987654,"result":1}]')

    env.node.batch_script = answer
    right_or_error(env, client.batch(reads(range(5))), range(5))


@row("B9", "an error among results stays verbatim", clients="http ws ipc",
     upstreams="http ws ipc")
def b9(env, client):
    error = b'{"code":3,"message":"execution reverted: nope","data":"0x08c379a0"}'
    env.node.script = lambda req: req.error_object(error) if req.params == b"[2]" else None
    got = client.batch(reads([1, 2, 3]))
    tap.eq([r.id for r in got], [b"1", b"2", b"3"], "ids")
    tap.eq(got[1].error, error, "the error")
    for i in (1, 3):
        tap.eq(got[i - 1].ok(), env.want("eth_call", b"[%d]" % i), "the others")


@row("B10", "node answers in another order", clients="http ws ipc", upstreams="http ws ipc")
def b10(env, client):
    env.node.script = lambda req: req.later(0.12 - 0.02 * int(req.params[1:-1])) \
        if req.method == "eth_call" else None
    env.node.batch_script = lambda requests: raw(
        b"[" + b",".join(r.node.usual(r).body for r in reversed(requests)) + b"]")
    all_right(env, client.batch(reads(range(6))), range(6))


@row("B11", "ten calls, ids from 0", clients="http ws ipc", upstreams="http ws ipc")
def b11(env, client):
    all_right(env, client.batch(reads(range(10))), range(10))


@row("B12", "subscriptions in a batch", clients="ws ipc", upstreams="ws ipc")
def b12(env, client):
    got = client.batch([
        request("eth_subscribe", ["newHeads"], 1),
        request("eth_subscribe", ["newPendingTransactions"], 2),
        request("eth_chainId", [], 3),
        request("eth_subscribe", ["syncing"], 4)
    ])
    tap.eq(client.order, ["reply"], "messages")
    tap.eq([r.id for r in got], [b"1", b"2", b"3", b"4"], "ids")
    tap.eq(got[2].ok(), b'"0x1"', "eth_chainId")
    heads = got[0].ok()
    known = [r.result for r in got if r.error is None]
    for _ in range(2):
        head = env.chain.mine()
        sub, result = event_parts(client.event())
        tap.check(sub in known, "subscription %r" % sub)
        tap.eq((sub, rawjson.parse(result)["hash"]), (heads, head["hash"]), "event")


@row("B13", "node answers a single call with an array", clients="http", upstreams="ws ipc")
def b13(env, client):
    client.call("eth_chainId")
    stay = env.connections_stay()
    env.node.script = lambda req: raw(b"[" + req.normal().body + b"]") \
        if req.method == "eth_call" else None
    reply = client.call("eth_call", [1])
    if reply.error is None:
        tap.eq(reply.result, env.want("eth_call", b"[1]"), "result")
    env.node.script = None
    for i in range(4):
        tap.eq(client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i), "later")
    stay()


@row("B14", "limit of 10 members", clients="http ws ipc", upstreams="http",
     limits={"max_batch_items": 10})
def b14(env, client):
    all_right(env, client.batch(reads(range(10))), range(10))
    before = env.asked("eth_call")
    answer = client.raw(b"[" + b",".join(reads(range(11))) + b"]")
    for reply in replies(answer) if rawjson.is_array(answer) else [Reply(answer)]:
        reply.refused()
    tap.eq(env.asked("eth_call"), before, "calls that reached the node")
    all_right(env, client.batch(reads([1])), [1])


@row("B15", "rate limit counts members", upstreams="http", fresh=True,
     middleware=[{"use": "ratelimit", "per_client": "10/s", "burst": 10}])
def b15(env, client):
    began = time.monotonic()
    got = client.batch(reads(range(50)))
    most = 10 + 10 * (time.monotonic() - began) + 1
    right_or_error(env, got, range(50))
    good = sum(r.error is None for r in got)
    tap.at_least(good, 10)
    tap.at_most(good, most)
    tap.eq(env.asked("eth_call"), good, "calls that reached the node")
    for reply in got:
        if reply.error is not None:
            reply.refused(-32005)


wire.main()
