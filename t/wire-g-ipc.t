#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour G: IPC."""
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import Closed, Reply, replies, request
from fakenode import HANDLED
from wire import row

A, B = request("eth_call", [1], 1), request("eth_call", [2], 2)


def works(env, client, i=7):
    tap.eq(client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i), "a call")


def both(env, client):
    got = {}
    while len(got) < 2:
        answer = client.recv()
        for reply in replies(answer) if rawjson.is_array(answer) else [Reply(answer)]:
            got[reply.id] = reply.ok()
    tap.eq(got, {
        b"1": env.want("eth_call", b"[1]"),
        b"2": env.want("eth_call", b"[2]")
    }, "results")


@row("G1", "one request %s", clients="ipc", upstreams="http",
     each=[("without newline", b"%s"), ("with LF", b"%s\n"), ("with CR LF", b"%s\r\n"),
           ("behind white space", b" \t\r\n\n%s")])
def g1(env, client, form):
    for _ in range(2):
        tap.eq(Reply(client.raw(form % A)).ok(), env.want("eth_call", b"[1]"), "result")


@row("G1", "two requests %s", clients="ipc", upstreams="http",
     each=[("back to back", A + B), ("with white space between", A + b" \r\n\t" + B),
           ("an array behind an object", A + b"[" + B + b"]"),
           ("an object behind an array", b"[" + A + b"]" + B)])
def g1_two(env, client, text):
    client.send(text)
    both(env, client)


@row("G1", "one request in three writes", clients="ipc", upstreams="http")
def g1_pieces(env, client):
    client.send(A[:9])
    client.quiet(0.05)
    client.send(A[9:-1])
    client.quiet(0.05)
    client.send(A[-1:])
    tap.eq(Reply(client.recv()).ok(), env.want("eth_call", b"[1]"), "result")
    client.stream.send_slowly(A, 1)
    tap.eq(Reply(client.recv()).ok(), env.want("eth_call", b"[1]"), "result")


def texts():
    rng = random.Random(7)
    pieces = ["é", "漢", "😀", "\\n", "\\u00e9", "\\\"", "\\\\", "x", "]}", "[{", "0"]
    small = '{"a":"%s","n":[1.25e-7,-0,12345678901234567890]}' % "".join(
        rng.choice(pieces) for _ in range(700))
    return {"5 MB": (b'"' + b"y" * 5000000 + b'"', [65536]),
            "1.2 MB": (('["%s"]' % ("é\\u00e9漢😀" * 60000)).encode(), [4096]),
            "2 KB": (small.encode(), [1])}


@row("G2", "node writes %s in pieces", clients="ipc http", upstreams="ipc",
     each=[(k,) + v for k, v in texts().items()])
def g2(env, client, result, pieces):
    env.node.script = lambda req: req.result(result, pieces=pieces) \
        if req.method == "eth_call" else None
    tap.check(client.call("eth_call", [1], timeout=20).ok() == result, "the result")
    env.node.script = None
    works(env, client)


@row("G4", "a reply over the limit", clients="ipc http", upstreams="ipc http ws",
     upstream={"max_reply": "1MiB"})
def g4(env, client):
    big = b'"' + b"z" * 3000000 + b'"'
    env.node.script = lambda req: req.result(big) if req.params == b"[3]" else None
    for _ in range(2):
        client.call("eth_call", [3], b'"g4"').refused()
        works(env, client)
    env.node.script = None
    works(env, client)


@row("G5", "half-closed: %s", clients="ipc", upstreams="http ipc",
     each=[("one request", A), ("two requests", A + b"\n" + B + b"\n")])
def g5(env, client, text):
    env.node.script = lambda req: req.later(0.2) if req.method == "eth_call" else None
    client.send(text)
    client.stream.shutdown_write()
    if text == A:
        tap.eq(Reply(client.recv()).ok(), env.want("eth_call", b"[1]"), "result")
    else:
        both(env, client)
    tap.check(client.stream.at_end(3), "the connection is closed")


@row("G6", "node's socket goes away and comes back, idle", clients="ipc http", upstreams="ipc",
     fresh=True)
def g6(env, client):
    works(env, client)
    env.node.stop()
    if client.kind == "ipc":
        client.quiet(0.1)
    env.node.listen()
    tap.eventually(lambda: client.call("eth_call", [1]).error is None, 5,
                   "calls succeed again")
    for i in range(5):
        works(env, client, i)


@row("G6", "node's socket goes away with a read in flight", clients="ipc http",
     upstreams="ipc", fresh=True)
def g6_flight(env, client):
    works(env, client)
    env.node.script = lambda req: HANDLED if req.params == b"[6]" else None
    client.send(request("eth_call", [6]))
    tap.eventually(lambda: b"[6]" in env.node.params_seen("eth_call"), 3, "it is in flight")
    env.node.script = None
    env.node.stop()
    env.node.at(0.1, env.node.listen)
    reply = Reply(client.recv())
    if reply.error is None:
        tap.eq(reply.result, env.want("eth_call", b"[6]"), "result")
    tap.eventually(lambda: client.call("eth_call", [1]).error is None, 5,
                   "calls succeed again")
    works(env, client)
    if client.kind == "ipc":
        client.quiet(0.1)


@row("G7", "500 connections come and go", clients="-", upstreams="http", fresh=True)
def g7(env):
    with env.client("ipc") as client:
        works(env, client)
    tap.eventually(lambda: env.gw.metric("ethrpcgw_sessions", client="ipc") == 0, 3)
    fds = env.gw.fds()
    for i in range(500):
        client = env.client("ipc")
        if i % 10 != 9:
            client.send(request("eth_call", [i]))
            if i % 10 == 8:
                client.stream.shutdown_write()
            if i % 10 != 7:
                tap.eq(Reply(client.recv()).ok(), env.want("eth_call", b"[%d]" % i), "result")
        client.close()
    # One more connection to the node may have been made.
    env.gw.settled_fds(fds, 2)
    with env.client("ipc") as client:
        works(env, client)


@row("G+", "rubbish in a stream: %s", clients="ipc", upstreams="http",
     each=[b"xyz\n", b"}\n", b"]]\n", b"\x00\n", b"nul\n", b"1 2 3\n"])
def g_rubbish(env, client, text):
    try:
        client.send(text)
        client.send(A + b"\n")
        while True:
            reply = Reply(client.recv())
            if reply.error is None:
                tap.eq(reply.ok(), env.want("eth_call", b"[1]"), "result")
                break
            reply.refused(-32700, -32600)
            tap.eq(reply.id, b"null", "id")
    except Closed:
        tap.fail("the connection was closed")


wire.main()
