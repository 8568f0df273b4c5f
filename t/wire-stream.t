#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replies longer than stream_threshold: passed on in pieces, in bounded memory, never cut short in
a way that looks whole."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
import wire
from clients import Closed, Failed, Reply, request
from fakenode import Answer
from gateway import sanitized
from wire import row

MIB = 1 << 20
# The scripted node needs its time to make so many bytes on a busy machine.
SMALL = {"stream_threshold": "256KiB", "timeout": "40s", "attempt_timeout": "30s"}


def big(size):
    """A raw JSON string of `size` bytes that is not the same everywhere."""
    unit = b"".join(b"%07x " % i for i in range(1 << 15))
    return b'"' + (unit * (size // len(unit) + 1))[:size - 2] + b'"'


def works(env, client, i=1):
    tap.eq(client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i), "an ordinary call")


@row("stream", "20 MiB, whole and in order", clients="http ws ipc", upstreams="http ws ipc",
     network=SMALL)
def whole(env, client):
    text = big(20 * MIB)
    env.node.script = lambda req: req.result(text) if req.params == b'["big"]' else None
    reply = client.call("eth_call", ["big"], b'"an id"', timeout=30)
    tap.eq(reply.id, b'"an id"', "id")
    tap.check(reply.ok() == text, "every byte of the result")
    works(env, client)


@row("stream", "a client that does not read", clients="http ws ipc", upstreams="http ws ipc",
     network=SMALL, fresh=True)
def slow(env, client):
    text = big(96 * MIB)
    env.node.script = lambda req: req.result(text) if req.params == b'["big"]' else None
    works(env, client)
    with env.client(client.kind) as other:
        works(env, other)
        before = env.gw.rss()
        client.send(request("eth_call", ["big"], b"7"))
        tap.eventually(lambda: env.asked("eth_call") > 2, 5, "it is under way")
        for i in range(200):
            works(env, other, i)
        if not sanitized():
            tap.at_most(env.gw.rss() - before, 16 * MIB, "growth of memory")
    reply = Reply(client.recv(60))
    tap.check(reply.ok() == text, "every byte of the result in the end")
    works(env, client)


def broken(env, client, answer):
    env.node.script = lambda req: answer(req) if req.params == b'["big"]' else None
    client.send(request("eth_call", ["big"], b"7"))
    try:
        got = client.recv(15)
    except (Closed, Failed):
        got = None
    if got is not None:
        Reply(got).refused()  # raises where it looks like a whole result
    env.node.script = None
    with env.client(client.kind) as other:
        works(env, other)


@row("stream", "cut after 2 MiB: %s", clients="http ws ipc", upstreams="http ws ipc",
     network=SMALL, fresh=True, each=[("end", False), ("reset", True)])
def cut(env, client, how):
    text = big(4 * MIB)
    broken(env, client, lambda req: req.result(text, cut=2 * MIB, reset=how))


@row("stream", "broken behind 2 MiB: %s", clients="http ws ipc", upstreams="http ws ipc",
     network=SMALL, fresh=True,
     each=[("bad escape", b'"\\x"'), ("raw control character", b'"\x01"'), ("bad UTF-8", b'"\xff"'),
           ("a second result", b'1,"result":2'), ("an error too", b'1,"error":{"code":1,"message":"m"}'),
           ("no end", b'["')])
def garbage(env, client, tail):
    text = big(2 * MIB)
    if tail.startswith(b"1,"):
        value = text + tail[1:]
    else:
        value = b"[" + text + b"," + tail + b"]"
    broken(env, client, lambda req: req.result(value))


@row("stream", "the client leaves in the middle", clients="http ws ipc", upstreams="http ws ipc",
     network=SMALL, fresh=True)
def leaves(env, client):
    text = big(12 * MIB)  # more than any queue; what is left of it is read to its end
    env.node.script = lambda req: req.result(text) if req.params == b'["big"]' else None
    works(env, client)
    for _ in range(3):
        with env.client(client.kind) as one:
            asked = env.asked("eth_call")
            one.send(request("eth_call", ["big"], b"7"))
            tap.eventually(lambda: env.asked("eth_call") > asked, 5, "it is under way")
            one.reset()
    works(env, client)
    tap.eventually(lambda: env.gw.metric("ethrpcgw_calls_in_flight") == 0, 8, "no call is left")


@row("stream", "members of an array are collected whole", clients="http ws ipc", upstreams="http ipc",
     network=SMALL)
def array(env, client):
    text = big(2 * MIB)
    env.node.script = lambda req: req.result(text) if req.params == b'["big"]' else None
    got = client.batch([request("eth_call", ["big"], b"1"), request("eth_call", [5], b"2"),
                        request("eth_call", ["big"], b"3")], timeout=30)
    tap.eq([r.id for r in got], [b"1", b"2", b"3"], "ids")
    tap.check(got[0].ok() == text and got[2].ok() == text, "the long ones")


wire.main()
