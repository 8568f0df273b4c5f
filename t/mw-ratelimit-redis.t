#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gateways that have their limits in common by a Redis server, in the whole program: what one lets
through the others count; a server that is away, stalls or refuses costs nobody a call."""
import os
import shutil
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import realredis
import tap
import wire
from clients import dial_unix, request
from gateway import PROGRAM, Gateway, need_program
from wire import row


class Redis(realredis.Redis):
    def keys(self, pattern="ethrpc-gw:limit:main:*"):
        return self.ask("KEYS", pattern).split(b"\r\n")[2::2]

    def owed(self):
        """In how many seconds nothing is owed, by the client that owes most."""
        return max(int(self.ask("PTTL", key.decode())[1:]) / 1000 for key in self.keys())


class Liar:
    """A server that answers PING rightly and everything else by the same bytes."""

    def __init__(self, answer):
        self.folder = tempfile.mkdtemp(prefix="egw-redis-")
        self.path = os.path.join(self.folder, "sock")
        self.answer, self.asked, self.over = answer, 0, False
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        while True:
            conn = self.listener.accept()[0]
            if self.over:
                return
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        with conn:
            while True:
                try:
                    data = conn.recv(65536)
                    if not data:
                        return
                    if b"PING" in data:
                        conn.sendall(b"+PONG\r\n")
                    for _ in range(data.count(b"EVAL\r\n")):
                        self.asked += 1
                        conn.sendall(self.answer)
                except OSError:
                    return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        dial_unix(self.path).close()
        self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def gateways(env, redis, count=2, **options):
    upstream = {"name": "n0", "url": env.node.url()}
    stage = dict({"use": "ratelimit", "redis": "unix:" + redis.path, "http_status": False},
                 **options)
    made = []
    for _ in range(count):
        made.append(Gateway([upstream], middleware=[{"use": "methods"}, stage]))
    for gw in made:
        connected(gw)
    return made


def connected(gw):
    """Until a call has been told."""
    with gw.http() as client:
        def settled():
            if shared(gw) == 0: # the limit itself may be small: no more calls than it takes
                client.call("net_version")
            return shared(gw) > 0
        tap.eventually(settled, 10, "a counter is settled", 0.1)


def shared(gw, name="shared"):
    return gw.metric("ethrpcgw_ratelimit_%s_total" % name)


def passed(gw, kind, count):
    with gw.client(kind) as client:
        got = client.batch([request("eth_call", [i], i) for i in range(count)])
    for reply in got:
        if reply.error is not None:
            reply.refused(-32005)
    return sum(r.error is None for r in got)


def stop(made):
    for gw in made:
        gw.stop()


def without_hiredis():
    """What a gateway says that was built without it."""
    stage = {"use": "ratelimit", "redis": "unix:/x"}
    gw = Gateway([{"name": "n0", "url": "ipc:///x"}], middleware=[stage], start=False)
    said = subprocess.run([PROGRAM, "--config", gw.config, "--check-config"], env=gw.env,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
                          timeout=30).stderr
    gw.discard()
    return b"built without hiredis" in said


need_program()
if without_hiredis():
    tap.skip_all("built without hiredis")

LIMIT = {"per_client": "2000/h", "burst": 2000}
USED_UP = {"per_client": "60/h", "burst": 60}


@row("R5", "what one gateway let through counts at the other, %s", clients="-", upstreams="http",
     each=["http", "ws", "ipc"])
def common(env, kind):
    with Redis() as redis:
        made = gateways(env, redis, **USED_UP)
        tap.at_least(passed(made[0], kind, 100), 40)
        tap.eventually(lambda: redis.owed() >= 40 * 60, 5, "it is told")
        # some calls may be let through by who has not heard of it yet
        late = []
        tap.eventually(lambda: late.append(passed(made[1], kind, 1)) or late[-1] == 0, 5,
                       "the other has heard of it", 0.02)
        tap.at_most(sum(late), 20)
        tap.eq(passed(made[1], kind, 50), 0, "and lets nothing through")
        tap.eq(len(redis.keys()), 1 if kind != "ipc" else 2, "keys in Redis")
        stop(made)


@row("R5", "and what is left stays", clients="-", upstreams="http")
def left(env):
    with Redis() as redis:
        made = gateways(env, redis, **LIMIT)
        tap.eq(passed(made[0], "http", 500), 500, "at one")
        tap.eq(passed(made[1], "http", 500), 500, "at the other")
        stop(made)


@row("R5", "the total is common too", clients="-", upstreams="http")
def total(env):
    with Redis() as redis:
        made = gateways(env, redis, per_client="none", total="60/h")
        tap.eq(redis.keys(), redis.keys("*:total:*"), "keys in Redis")
        tap.eq(len(redis.keys()), 1, "their number")
        stop(made)


@row("R5", "gateways with another prefix have nothing to do with it", clients="-",
     upstreams="http")
def prefix(env):
    with Redis() as redis:
        one = gateways(env, redis, 1, redis_prefix="a:", **USED_UP)
        other = gateways(env, redis, 1, redis_prefix="b:", **USED_UP)
        tap.at_least(passed(one[0], "http", 100), 20)
        tap.at_least(passed(other[0], "http", 100), 20)
        tap.eq(len(redis.keys("a:main:*")), 1, "keys of the first")
        tap.eq(len(redis.keys("b:main:*")), 1, "keys of the second")
        stop(one + other)


@row("R5", "a server that is killed, and comes back", clients="-", upstreams="http")
def killed(env):
    with Redis() as redis:
        made = gateways(env, redis, 1, **LIMIT)
        redis.stop()
        with made[0].http() as client:
            for i in range(200):
                client.call("eth_call", [i]).ok()
        redis.start()
        told = shared(made[0])
        with made[0].http() as client:
            def settled():
                client.call("eth_call", [1]).ok()
                return shared(made[0]) > told
            tap.eventually(settled, 20, "counters are settled again", 0.05)
        stop(made)


@row("R5", "a server that stalls holds no call up", clients="-", upstreams="http")
def stalled(env):
    with Redis() as redis:
        made = gateways(env, redis, 1, **LIMIT)
        redis.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        with made[0].http() as client:
            for i in range(300):
                client.call("eth_call", [i], timeout=4).ok()
        took = time.monotonic() - began
        tap.at_most(took, tap.limit(3))
        redis.process.send_signal(signal.SIGCONT)
        stop(made)


@row("R5", "a server that refuses", clients="-", upstreams="http")
def refusing(env):
    with Redis() as redis:
        made = gateways(env, redis, 1, **LIMIT)
        key = redis.keys()[0].decode()
        redis.ask("DEL", key)
        redis.ask("LPUSH", key, "x")
        with made[0].http() as client:
            def failed():
                client.call("eth_call", [1]).ok()
                return shared(made[0], "unshared") > 0
            tap.eventually(failed, 5, "it is counted", 0.02)
        tap.check("redis can't keep the common counters" in made[0].log(), "it is logged")
        stop(made)


@row("R5", "a server that answers %s", clients="-", upstreams="http", each=[
    ("zero", b":0\r\n", 0), ("a negative number", b":-5\r\n", 1), ("text", b"$2\r\n99\r\n", 1),
    ("nil", b"$-1\r\n", 1), ("a list", b"*2\r\n:1\r\n:2\r\n", 1),
    ("an error", b"-ERR no {such} \"thing\"\r\n", 1), ("nonsense", b"HTTP/1.1 400\r\n\r\n", 1),
    ("twice", b":1\r\n:2\r\n", 0)])
def lying(env, answer, bad):
    upstream = {"name": "n0", "url": env.node.url()}
    with Liar(answer) as liar:
        stage = {"use": "ratelimit", "redis": "unix:" + liar.path, "http_status": False,
                 "per_client": "100/h", "burst": 100}
        with Gateway([upstream], middleware=[{"use": "methods"}, stage]) as gw:
            with gw.http() as client:
                for i in range(40):
                    client.call("eth_call", [i]).ok()
                tap.eventually(lambda: client.call("eth_call", [1]).ok() and liar.asked > 0, 5,
                               "it was asked")
            if bad:
                tap.eventually(lambda: shared(gw, "unshared") > 0, 5, "it is counted")
            tap.at_most(passed(gw, "ws", 100), 60)


@row("R5", "a server that claims the worst", clients="-", upstreams="http")
def worst(env):
    upstream = {"name": "n0", "url": env.node.url()}
    with Liar(b":9223372036854775807\r\n") as liar:
        stage = {"use": "ratelimit", "redis": "unix:" + liar.path, "http_status": False,
                 "per_client": "36000/h", "burst": 10}
        with Gateway([upstream], middleware=[{"use": "methods"}, stage]) as gw, \
                gw.http() as client:
            tap.eventually(lambda: client.call("eth_call", [1]).error is not None, 5, "a refusal")
            reply = client.call("eth_call", [1])
            wait = int(re.search(r"in (\d+)ms", reply.message).group(1))
            tap.at_most(wait, 4 * 1000 + 5000)


@row("R5", "without a server each limits alone", clients="-", upstreams="http")
def alone(env):
    upstream = {"name": "n0", "url": env.node.url()}
    stage = {"use": "ratelimit", "redis": "unix:/nonexistent/egw.sock", "per_client": "5/h",
             "burst": 5}
    with Gateway([upstream], middleware=[{"use": "methods"}, stage]) as gw:
        tap.eq(passed(gw, "http", 20), 5, "calls")
        tap.eq(shared(gw), 0, "settled")


wire.main()
