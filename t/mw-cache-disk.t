#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware cache: the tier on disk, in the whole program. Gateways are killed, and what they
kept is served by the next one without asking the node."""
import os
import random
import shutil
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import HttpClient
from gateway import Gateway, need_program, run_program
from wire import row

A = "0x" + "0a" * 20
ASKS = [("eth_getBalance", [A, hex(n)]) for n in range(1, 9)] + \
       [("eth_getBlockByNumber", [hex(n), True]) for n in range(1, 9)]


def built_without():
    """Whether the build lacks the tier."""
    gw = Gateway([{"name": "n0", "url": "ipc:///x"}],
                 middleware=[{"use": "cache", "disk": "/x"}], start=False)
    said = run_program("--check-config", "--config", gw.config)[1]
    gw.discard()
    return "built without" in said


need_program()
if built_without():
    tap.skip_all("built without LMDB")

PLAIN = {"fresh": True, "live": True}


class Folder:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="egw-cache-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.path, name)


def gateway(env, disk, **options):
    stage = dict({"use": "cache", "disk": disk}, **options)
    return Gateway([{"name": "n0", "url": env.node.url()}],
                   middleware=[{"use": "methods", "allow": ("evm_revert",)}, stage],
                   network={"poll_interval": "100ms"})


def again(gw):
    """After a kill: the same configuration once more."""
    os.truncate(gw.log_path, 0)
    gw.ports.clear()
    gw.start()


def want(env, method, params):
    return env.chain.answer(method, rawjson.compact(params))


def stored(gw, count, client):
    """Until so many answers are on disk. Counts come along with calls."""
    def there():
        client.call("eth_getBalance", [A, "0x1"])
        client.call("eth_getCode", ["0x" + "%040x" % random.getrandbits(160), "0x1"])
        return gw.metric("ethrpcgw_cache_disk_stored_total") >= count
    tap.eventually(there, 10, "%d answers are on disk" % count, 0.02)


def final(gw, client):
    """Until it is known what is final: a question is in memory the second time."""
    def known():
        client.call("eth_getTransactionCount", [A, "0x1"])
        return gw.metric("ethrpcgw_cache_stored_total") > 0
    tap.eventually(known, 10, "finality is known", 0.02)


def fill(env, gw):
    with gw.http() as client:
        final(gw, client)
        for method, params in ASKS:
            tap.eq(client.call(method, params).ok(), want(env, method, params), method)
        stored(gw, len(ASKS), client)


def forbid(env):
    """The node answers nothing of what is kept."""
    names = {method for method, _ in ASKS} - {"eth_getBlockByNumber"}
    low = {rawjson.compact(params) for method, params in ASKS
           if method == "eth_getBlockByNumber"}
    env.node.script = lambda req: req.error(-32000, "not here") \
        if req.method in names or req.params in low else None


def all_kept(env, client):
    """All answers are right, though the node gives none."""
    first = ASKS[0]
    tap.eventually(lambda: client.call(*first).error is None, 10, "the first hit", 0.02)
    for method, params in ASKS:
        tap.eq(client.call(method, params).ok(), want(env, method, params), method)


@row("cache", "on disk: killed, started, answered without the node", clients="-",
     upstreams="http ws ipc", **PLAIN)
def survives(env):
    with Folder() as folder, gateway(env, folder.path) as gw:
        fill(env, gw)
        gw.kill()
        forbid(env)
        again(gw)
        for kind in ("http", "ws", "ipc"):
            with gw.client(kind) as client:
                all_kept(env, client)
        tap.eq(gw.metric("ethrpcgw_cache_disk_hits_total"), len(ASKS), "hits on disk")
        tap.at_least(gw.metric("ethrpcgw_cache_disk_hit_bytes_total"), 1000, "their bytes")
        tap.at_least(gw.metric("ethrpcgw_cache_disk_entries"), len(ASKS), "answers on disk")
        tap.at_least(gw.metric("ethrpcgw_cache_disk_bytes"), 4096, "their room")
        tap.at_least(gw.metric("ethrpcgw_cache_hits_total"), 3 * len(ASKS), "hits in all")


@row("cache", "on disk: stopped properly right after an answer", clients="-", upstreams="http",
     **PLAIN)
def stopped(env):
    with Folder() as folder:
        with gateway(env, folder.path) as gw, gw.http() as client:
            final(gw, client)
            for method, params in ASKS:
                client.call(method, params).ok()
        forbid(env)
        with gateway(env, folder.path) as gw, gw.http() as client:
            all_kept(env, client)


@row("cache", "on disk: killed over and over while clients ask", clients="-", upstreams="http",
     **PLAIN)
def killed(env):
    dice = random.Random(1)
    asks = [("eth_getBalance", ["0x%040x" % i, hex(1 + i % 12)]) for i in range(400)]

    with Folder() as folder, gateway(env, folder.path) as gw:
        for _ in range(6):
            wrong, done, stop = [], [0], threading.Event()

            def ask(seed, wrong=wrong, done=done, stop=stop):
                own = random.Random(seed)
                with HttpClient(gw.port) as client:
                    while not stop.is_set():
                        method, params = own.choice(asks)
                        try:
                            reply = client.call(method, params)
                        except Exception:  # pylint: disable=broad-except
                            return
                        if reply.result != want(env, method, params):
                            wrong.append((method, params, reply.result))
                        done[0] += 1

            threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            target = dice.randrange(50, 1500)
            tap.eventually(lambda t=target, d=done: d[0] >= t, 20, "%d answers" % target)
            gw.kill()
            stop.set()
            for thread in threads:
                thread.join()
            tap.eq(wrong, [], "wrong answers")
            again(gw)
        with gw.http() as client:
            for method, params in asks:
                tap.eq(client.call(method, params).ok(), want(env, method, params),
                       "the last life")
            client.call("eth_getBalance", [A, "0x1"])
        tap.at_least(gw.metric("ethrpcgw_cache_disk_hits_total"), 1, "hits on disk")
        tap.eq(gw.metric("ethrpcgw_cache_disk_errors_total"), 0, "damaged answers")


@row("cache", "on disk: a second gateway at the folder goes without, until the first is gone",
     clients="-", upstreams="http", **PLAIN)
def two(env):
    with Folder() as folder:
        first = gateway(env, folder.path)
        try:
            fill(env, first)
            with gateway(env, folder.path) as second, second.http() as client:
                tap.contains(second.log(), "another process uses the folder", "log")
                for method, params in ASKS:
                    tap.eq(client.call(method, params).ok(), want(env, method, params), method)
                tap.at_least(second.metric("ethrpcgw_cache_disk_errors_total"), 1, "errors")
                tap.eq(second.metric("ethrpcgw_cache_disk_hits_total"), 0, "hits on disk")
                first.stop()

                def used():
                    client.call("eth_getBalance", [A, hex(random.randrange(1, 9))])
                    client.call("eth_getCode", ["0x%040x" % random.getrandbits(160), "0x1"])
                    return second.metric("ethrpcgw_cache_disk_misses_total") > 0
                tap.eventually(used, 15, "it is used", 0.1)
        finally:
            first.discard()


@row("cache", "on disk: two networks of a gateway at one folder", clients="-",
     upstreams="http", **PLAIN)
def networks(env):
    with Folder() as folder:
        stage = {"use": "cache", "disk": folder.path}
        nets = [{"name": name, "poll_interval": "100ms",
                 "upstreams": [{"name": "n0", "url": env.node.url()}],
                 "middleware": [{"use": "methods"}, stage]} for name in ("one", "two")]
        with Gateway([], top={"networks": nets}) as gw, gw.http(path="/one") as one, \
                gw.http(path="/two") as two:
            final(gw, one)
            for method, params in ASKS:
                one.call(method, params).ok()
            stored(gw, len(ASKS), one)
            forbid(env)
            all_kept(env, two)
            tap.lacks(gw.log(), "another process", "log")


@row("cache", "on disk: what is no cache is left alone, and missed by nobody: %s", clients="-",
     upstreams="http", each=["garbage", "cut"], **PLAIN)
def damaged(env, how):
    with Folder() as folder:
        if how == "garbage":
            with open(folder.file("cache.mdb"), "wb") as file:
                file.write(random.Random(2).randbytes(200000))
        else:
            with gateway(env, folder.path) as gw:
                fill(env, gw)
            os.truncate(folder.file("cache.mdb"), 24576)
        before = os.stat(folder.file("cache.mdb")).st_size
        with gateway(env, folder.path) as gw, gw.http() as client:
            for method, params in ASKS:
                tap.eq(client.call(method, params).ok(), want(env, method, params), method)
            tap.contains(gw.log(), " error cache: disk: ", "log")
            tap.eventually(lambda: client.call("eth_getCode", [A, "0x1"]) and
                           gw.metric("ethrpcgw_cache_disk_errors_total") >= 1, 5,
                           "an error counts")
        tap.eq(os.stat(folder.file("cache.mdb")).st_size, before, "size of the file")


@row("cache", "on disk: a damaged answer is asked for again", clients="-", upstreams="http",
     **PLAIN)
def flipped(env):
    with Folder() as folder:
        with gateway(env, folder.path) as gw:
            fill(env, gw)
        value = want(env, *ASKS[0])
        with open(folder.file("cache.mdb"), "r+b") as file:
            data = file.read()
            tap.check(value in data, "the value is in the file")
            at = data.find(value)
            while at >= 0:
                file.seek(at + 10)
                file.write(b"f" if data[at + 10:at + 11] != b"f" else b"e")
                at = data.find(value, at + 1)
        with gateway(env, folder.path) as gw, gw.http() as client:
            final(gw, client)
            tap.eq(client.call(*ASKS[0]).ok(), value, "the right one")
            stored(gw, 1, client)
            tap.eq(gw.metric("ethrpcgw_cache_disk_errors_total"), 1, "damaged answers")


@row("cache", "on disk: what history took back does not come back", clients="-",
     upstreams="http", **PLAIN)
def flushed(env):
    with Folder() as folder:
        with gateway(env, folder.path) as gw, gw.http() as client:
            fill(env, gw)
            client.call("evm_revert", ["0x1"])

            def emptied():
                env.chain.mine()       # metrics come along with heads
                return gw.metric("ethrpcgw_cache_disk_entries") == 0
            tap.eventually(emptied, 8, "the disk is empty", 0.3)
        with gateway(env, folder.path) as gw, gw.http() as client:
            final(gw, client)
            for method, params in ASKS:
                client.call(method, params).ok()
            tap.eq(gw.metric("ethrpcgw_cache_disk_hits_total"), 0, "hits on disk")


@row("cache", "on disk: answers that are too long for it", clients="-", upstreams="http",
     **PLAIN)
def long_ones(env):
    big = b'"0x%s"' % (b"ab" * (3 << 19))
    env.node.script = lambda req: req.result(big) if req.method == "eth_getCode" else None
    with Folder() as folder, gateway(env, folder.path, disk_size="64MiB",
                                     max_value="16MiB") as gw:
        with gw.http() as client:
            final(gw, client)
            tap.eq(client.call("eth_getCode", [A, "0x1"]).ok(), big, "code")
            client.call("eth_getBalance", [A, "0x1"]).ok()
            tap.eq(gw.metric("ethrpcgw_cache_disk_dropped_total"), 1, "not written")
            tap.eq(gw.metric("ethrpcgw_cache_disk_evicted_total"), 0, "evicted")


@row("cache", "on disk: options that can't be", clients="-", upstreams="http", **PLAIN)
def refused(env):
    for options, word in (({"disk": "relative/folder"}, "absolute"),
                          ({"disk": "/tmp/x", "disk_size": "1MiB"}, "disk_size")):
        gw = Gateway([{"name": "n0", "url": env.node.url()}],
                     middleware=[dict({"use": "cache"}, **options)], start=False)
        status, said = run_program("--check-config", "--config", gw.config)
        gw.discard()
        tap.check(status != 0, "it is refused: " + said)
        tap.contains(said, word, "message")


wire.main()
