#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour L: memory, descriptors, time."""
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import Closed, NoAnswer, Reply, event_parts, request
from fakenode import silent
from gateway import sanitized
from wire import row


def works(env, client, i=1):
    tap.eq(
        client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i),
        "an ordinary call")


@row("L1", "clients that do not read", clients="-", upstreams="ws", fresh=True)
def l1(env):
    count, size = 300, 40000
    slow = []
    for _ in range(10):
        client = env.client("ws", rcvbuf=4096)
        client.subscribe("newHeads")
        slow.append(client)
    reader = env.client("ws")
    sub = reader.subscribe("newHeads")
    before = env.gw.rss()
    peak = [before]
    mined = []
    worker = threading.Thread(
        daemon=True, target=lambda: [
            mined.append(env.chain.mine(extraData="0x" + "ab" * (size // 2)))
            for _ in range(count)
        ])
    worker.start()
    for i in range(count):
        name, result = event_parts(reader.event(15))
        tap.eq(name, sub, "subscription")
        tap.eq(rawjson.member(result, "number"), b'"0x%x"' % (21 + i), "head")
        peak[0] = max(peak[0], env.gw.rss()) if i % 10 == 0 else peak[0]
    worker.join(15)
    peak[0] = max(peak[0], env.gw.rss())
    if not sanitized():
        tap.at_most(peak[0] - before, 64 << 20, "growth of memory")
    for client in slow:
        got = []
        try:
            while len(got) < count:
                got.append(int(rawjson.parse(rawjson.member(event_parts(client.event(5))[1],
                                                            "number")), 16))
        except Closed:
            pass
        tap.eq(got, list(range(21, 21 + len(got))), "what a slow client got, without gaps")
        client.close()
    reader.close()


@row("L2", "1500 reads, every tenth client leaves early", clients="http ws ipc",
     upstreams="http", fresh=True)
def l2(env, client):
    def round_(n):
        kept = [env.client(client.kind) for _ in range(5)]
        for i in range(n):
            if i % 10 == 9:
                one = env.client(client.kind)
                one.send(request("eth_call", [i]))
                one.reset() if i % 20 == 9 else one.close()
            elif i % 3 == 0:
                with env.client(client.kind) as one:
                    works(env, one, i)
            else:
                works(env, kept[i % 5], i)
        for one in kept:
            one.close()

    works(env, client)
    round_(300)
    tap.eventually(lambda: _sessions(env) <= 1, 5, "sessions end")
    fds, rss = env.gw.fds(), env.gw.rss()
    round_(1200)
    # An HTTP link may hold one idle connection more or less.
    env.gw.settled_fds(fds, 4)
    works(env, client)
    if not sanitized():
        tap.at_most(env.gw.rss() - rss, 6 << 20, "growth of memory")
    tap.eq(env.gw.metric("ethrpcgw_calls_in_flight"), 0, "calls in flight")


def _sessions(env):
    return sum(
        env.gw.metric("ethrpcgw_sessions", client=kind) for kind in ("http", "ws", "ipc"))


@row("L3", "node is silent: an error soon after the limit", clients="http ws ipc",
     upstreams="http ws ipc", fresh=True, network={
         "timeout": "1200ms",
         "attempt_timeout": "1200ms"
     })
def l3(env, client):
    env.node.script = lambda req: silent() if req.params == b'["never"]' else None
    began = time.monotonic()
    client.send(request("eth_call", ["never"], b'"l3"'))
    tap.eventually(lambda: env.asked("eth_call"), 1, "it is in flight")
    other = env.client("http") if client.kind == "http" else client
    for i in range(10):
        quick = time.monotonic()
        works(env, other, i)
        tap.at_most(time.monotonic() - quick, tap.limit(0.5), "seconds of another call")
    reply = Reply(client.recv())
    took = time.monotonic() - began
    reply.refused()
    tap.eq(reply.id, b'"l3"', "id")
    tap.at_least(took, 1.1, "seconds")
    tap.at_most(took, tap.limit(2.0), "seconds")
    other.close()


@row("L6", "descriptors run out", clients="http", upstreams="http", fresh=True,
     descriptors=128)
def l6(env, client):
    works(env, client)
    crowd = []
    for _ in range(250):
        try:
            one = env.client("http", timeout=5)
            one.open()
            crowd.append(one)
        except OSError:
            pass
    for i in range(20):
        works(env, client, i)
    for one in crowd[::25]:
        try:
            response = one.request(request("eth_call", [1]))
            tap.among(response.status, (200, 429, 503), "HTTP status")
        except (Closed, NoAnswer, OSError):
            pass
    used = env.gw.cpu()
    tap.never(lambda: not env.gw.alive(), 0.6, "the end of the gateway")
    if not sanitized():
        tap.at_most(env.gw.cpu() - used, 0.3, "processor time while nothing happens")
    for one in crowd:
        one.close()

    def again():
        try:
            with env.client("http", timeout=2) as late:
                return late.call("eth_call", [1]).error is None
        except (Closed, NoAnswer, OSError):
            return False

    tap.eventually(again, 6, "new clients are served afterwards", 0.05)
    for i in range(20):
        works(env, client, i)


@row("L7", "1500 connections come and go", clients="-", upstreams="http", fresh=True)
def l7(env):
    def round_(n):
        for i in range(n):
            one = env.client("http")
            if i % 10 == 9:
                one.open()
            elif i % 2:
                response = one.request(request("eth_call", [i]),
                                       headers=[("Connection", "close")])
                tap.eq(response.status, 200, "HTTP status")
            else:
                works(env, one, i)
            one.close()

    round_(100)
    tap.eventually(lambda: _sessions(env) == 0, 6, "sessions end")
    fds = env.gw.fds()
    round_(1400)
    env.gw.settled_fds(fds, 2)


wire.main()
