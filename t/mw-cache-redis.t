#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware cache: the tier in Redis, in the whole program, with a real server: shared by
gateways; stopped, stalled, refusing and wrong, which costs hits only."""
import os
import random
import shutil
import socket
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from gateway import Gateway, need_program, run_program
from realredis import Redis
from wire import row

A = "0x" + "0a" * 20
ASKS = [("eth_getBalance", [A, hex(n)]) for n in range(1, 9)] + \
       [("eth_getBlockByNumber", [hex(n), True]) for n in range(1, 9)]


def built_without():
    """Whether the build lacks the tier."""
    gw = Gateway([{"name": "n0", "url": "ipc:///x"}],
                 middleware=[{"use": "cache", "redis": "unix:/x"}], start=False)
    said = run_program("--check-config", "--config", gw.config)[1]
    gw.discard()
    return "built without" in said


need_program()
if built_without():
    tap.skip_all("built without hiredis")

PLAIN = {"fresh": True, "live": True, "clients": "-", "upstreams": "http"}


def gateway(env, redis, url=None, **options):
    stage = dict({"use": "cache", "redis": url or "unix:" + redis.path,
                  "redis_timeout": "50ms"}, **options)
    return Gateway([{"name": "n0", "url": env.node.url()}],
                   middleware=[{"use": "methods", "allow": ("evm_revert",)}, stage],
                   network={"poll_interval": "100ms"})


def count(gw, name):
    return gw.metric("ethrpcgw_cache_redis_%s_total" % name)


def want(env, method, params):
    return env.chain.answer(method, rawjson.compact(params))


def fresh_ask():
    """A question nobody has asked."""
    return "eth_getCode", ["0x%040x" % random.getrandbits(160), "0x1"]


def used(gw, client):
    """Until finality is known and lookups go to Redis, from both workers."""
    def looks():
        for _ in range(4):
            client.call(*fresh_ask())
        return count(gw, "misses") + count(gw, "hits") > 0
    tap.eventually(looks, 10, "Redis is asked", 0.02)


def ask_all(env, client):
    for method, params in ASKS:
        tap.eq(client.call(method, params).ok(), want(env, method, params), method)


def fill(env, gw):
    with gw.http() as client:
        used(gw, client)
        ask_all(env, client)
        tap.eventually(lambda: client.call(*fresh_ask()) and
                       count(gw, "stored") + count(gw, "dropped") >= len(ASKS), 10,
                       "they are in Redis", 0.02)


def forbid(env):
    names = {method for method, _ in ASKS} - {"eth_getBlockByNumber"}
    low = {rawjson.compact(params) for method, params in ASKS
           if method == "eth_getBlockByNumber"}
    env.node.script = lambda req: req.error(-32000, "not here") \
        if req.method in names or req.params in low else None


@row("cache", "in Redis: what one gateway was told, another one knows", **PLAIN)
def shared(env):
    with Redis() as redis, gateway(env, redis) as one:
        fill(env, one)
        tap.eq(count(one, "dropped"), 0, "answers not put there")
        tap.at_least(len(redis.keys("ethrpc-gw:1:0:*")), len(ASKS), "keys")
        with gateway(env, redis) as other, other.http() as client:
            used(other, client)
            before = count(other, "hits")
            forbid(env)
            ask_all(env, client)
            tap.eq(count(other, "hits") - before, len(ASKS), "hits")
            tap.at_least(count(other, "hit_bytes"), 1000, "their bytes")
            ask_all(env, client)
            tap.eq(count(other, "hits") - before, len(ASKS), "hits, they are in memory now")
            tap.eq(count(other, "errors"), 0, "errors")


@row("cache", "in Redis: stopped and started again while clients ask", **PLAIN)
def stopped(env):
    with Redis() as redis, gateway(env, redis) as gw, gw.http() as client:
        used(gw, client)
        redis.stop()
        for _ in range(300):
            method, params = fresh_ask()
            tap.eq(client.call(method, params).ok(), want(env, method, params), method)
        tap.at_least(count(gw, "skipped"), 200, "calls that went without")
        redis.start()
        before = count(gw, "misses")

        def again():
            client.call(*fresh_ask()).ok()
            return count(gw, "misses") > before
        tap.eventually(again, 15, "it is used again", 0.02)


@row("cache", "in Redis: stalled while clients ask: few calls wait, and not for long", **PLAIN)
def stalled(env):
    with Redis() as redis, gateway(env, redis) as gw, gw.http() as client:
        used(gw, client)
        redis.freeze()
        end = time.monotonic() + 3

        def ask():
            took = []
            with gw.http() as own:
                while time.monotonic() < end:
                    method, params = fresh_ask()
                    began = time.monotonic()
                    tap.eq(own.call(method, params).ok(), want(env, method, params), method)
                    took.append(time.monotonic() - began)
            return took

        took = sum(tap.parallel([ask] * 4), [])
        late = count(gw, "timeouts")
        tap.at_most(late, 20, "calls that waited in vain")
        tap.at_most(sum(t > tap.limit(0.045) for t in took), late + len(took) // 50,
                    "slow calls of %d" % len(took))
        tap.check("it does not answer in time" in gw.log(), "it is logged")
        redis.thaw()
        before = count(gw, "misses")

        def again():
            client.call(*fresh_ask()).ok()
            return count(gw, "misses") > before
        tap.eventually(again, 15, "it is used again", 0.02)


@row("cache", "in Redis: stalled, a call waits for redis_timeout", **PLAIN)
def timeout(env):
    for limit, least, most in (("600ms", 0.6, 2.0), ("5ms", 0.0, 0.5)):
        with Redis() as redis, gateway(env, redis, redis_timeout=limit) as gw, \
                gw.http() as client:
            used(gw, client)
            redis.freeze()
            began = time.monotonic()
            client.call(*fresh_ask()).ok()
            took = time.monotonic() - began
            tap.check(least <= took < tap.limit(most),
                      "with %s it took %.3f s" % (limit, took))


@row("cache", "in Redis: what is wrong there is not believed", **PLAIN)
def wrong(env):
    with Redis() as redis, gateway(env, redis) as one:
        fill(env, one)
        keys = redis.keys("ethrpc-gw:1:*")
        values = [redis.ask("GET", key).partition(b"\r\n")[2][:-2] for key in keys]
        dice = random.Random(3)
        for i, key in enumerate(keys):
            value = bytearray(values[i])
            kind = i % 5
            if kind == 0:
                value[dice.randrange(len(value))] ^= 1
            elif kind == 1:
                del value[-1]
            elif kind == 2:
                value = values[i - 1]          # another question's answer
            elif kind == 3:
                value = b"\"0xdead\""
            else:
                redis.ask("DEL", key)
                redis.ask("LPUSH", key, "no string")
                continue
            redis.ask("SET", key, bytes(value))
        with gateway(env, redis) as other, other.http() as client:
            used(other, client)
            ask_all(env, client)
            tap.eq(count(other, "hits"), 0, "hits")
            tap.at_least(count(other, "errors"), len(ASKS), "errors")


@row("cache", "in Redis: only who knows the secret is believed", **PLAIN)
def secret(env):
    with Redis() as redis, gateway(env, redis, redis_secret="ours") as one:
        fill(env, one)
        with gateway(env, redis, redis_secret="theirs") as other, other.http() as client:
            used(other, client)
            ask_all(env, client)
            tap.eq(count(other, "hits"), 0, "hits")
            tap.at_least(count(other, "errors"), len(ASKS), "errors")


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@row("cache", "in Redis: a password, none and wrong and right", **PLAIN)
def password(env):
    port = free_port()
    with Redis("--port", str(port), password="canary-pw-17") as redis:
        for url, said in (("redis://127.0.0.1:%d", "wants a password"),
                          ("redis://:canary-pw-18@127.0.0.1:%d/2", "refuses the password")):
            with gateway(env, redis, url=url % port) as gw, gw.http() as client:
                method, params = ASKS[0]
                tap.eq(client.call(method, params).ok(), want(env, method, params), method)
                tap.eventually(lambda g=gw, s=said: s in g.log(), 5, "it is logged: " + said)
                tap.eq(count(gw, "hits"), 0, "hits")
                tap.lacks(gw.log(), "canary", "log")
        with gateway(env, redis, url="redis://:canary-pw-17@127.0.0.1:%d/2" % port) as gw:
            fill(env, gw)
            tap.lacks(gw.log(), "canary", "log")
        tap.eq(len(redis.keys()), 0, "keys in database 0")
        said = redis.ask("INFO", "keyspace").partition(b"db2:keys=")[2]
        tap.at_least(int(said.split(b",")[0]), len(ASKS), "keys in database 2")


@row("cache", "in Redis: how long and under which names", **PLAIN)
def names(env):
    with Redis() as redis:
        with gateway(env, redis, redis_prefix="mine:", redis_ttl="1h") as gw:
            fill(env, gw)
        keys = redis.keys("mine:1:0:*")
        tap.at_least(len(keys), len(ASKS), "keys")
        tap.eq(len(redis.keys("ethrpc-gw:*")), 0, "keys by another name")
        left = int(redis.ask("PTTL", keys[0])[1:])
        tap.check(3500000 < left <= 3600000, "time to live: %d ms" % left)


@row("cache", "in Redis: what history took back does not come back", **PLAIN)
def flushed(env):
    with Redis() as redis, gateway(env, redis) as one, gateway(env, redis) as other:
        fill(env, one)
        with one.http() as client:
            client.call("evm_revert", ["0x1"])
        tap.eventually(lambda: redis.ask("GET", "ethrpc-gw:epoch") not in (b"$-1\r\n", None),
                       5, "a new epoch")
        epoch = redis.ask("GET", "ethrpc-gw:epoch").split(b"\r\n")[1]
        with gateway(env, redis) as later, later.http() as client:
            used(later, client)
            ask_all(env, client)
            tap.eq(count(later, "hits"), 0, "hits of one that starts later")
            tap.eventually(lambda: client.call(*fresh_ask()) and
                           len(redis.keys(b"ethrpc-gw:1:%s:*" % epoch)) >= len(ASKS), 5,
                           "new keys")
        with other.http() as client:
            used(other, client)
            before = len(redis.keys(b"ethrpc-gw:1:%s:*" % epoch))
            tap.eventually(lambda: client.call(*fresh_ask()) and
                           len(redis.keys(b"ethrpc-gw:1:%s:*" % epoch)) > before, 5,
                           "the other one writes new keys, too")


@row("cache", "in Redis and on disk: a hit in the one fills the other", **PLAIN)
def both(env):
    folder = tempfile.mkdtemp(prefix="egw-cache-")
    try:
        with Redis() as redis:
            with gateway(env, redis) as one:
                fill(env, one)
            forbid(env)
            with gateway(env, redis, disk=folder) as other, other.http() as client:
                used(other, client)
                ask_all(env, client)
                tap.eq(other.metric("ethrpcgw_cache_disk_hits_total"), 0, "hits on disk")
        with gateway(env, None, url="unix:/nonexistent/redis.sock", disk=folder) as gw, \
                gw.http() as client:
            tap.eventually(lambda: client.call(*ASKS[0]).error is None, 10, "the first", 0.02)
            ask_all(env, client)
            tap.eq(gw.metric("ethrpcgw_cache_disk_hits_total"), len(ASKS), "hits on disk")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@row("cache", "in Redis: options that can't be: %s", each=[
    ("TLS", "rediss://127.0.0.1", "TLS"),
    ("public", "redis://:canary-pw-18@8.8.8.8", "private"),
    ("database", "redis://127.0.0.1/x", "database"),
    ("scheme", "http://127.0.0.1", "redis://")],
     **PLAIN)
def refused(env, url, word):
    gw = Gateway([{"name": "n0", "url": env.node.url()}],
                 middleware=[{"use": "cache", "redis": url}], start=False)
    status, said = run_program("--check-config", "--config", gw.config)
    gw.discard()
    tap.check(status != 0, "it is refused: " + said)
    tap.contains(said, word, "message")
    tap.lacks(said, "canary", "message")


wire.main()
