#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A random differential test over a chain with heads and reorgs happening: three nodes over
http, ws and ipc, each at a lag of its own, all stages, clients over http, ws and ipc. Every
answer must be what the chain truly had at that block at some moment between sending and
receiving, or within STALE before; heads never go backwards for a client; and a block that a
client has seen is never missing.

EGW_LONG=1: a million calls. EGW_CALLS, EGW_SEED: other numbers. The first wrong answer is
shown."""
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import raw_of
from fastnode import Clock, FastNode
from gateway import Gateway, has_transport, need_program
from model import ADDRESS, Model, Refused, serve

LONG = os.environ.get("EGW_LONG") == "1"
CALLS = int(os.environ.get("EGW_CALLS", "1000000" if LONG else "60000"))
SEED = int(os.environ.get("EGW_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
KINDS = ("http", "ws", "ipc")
ROUND = 48          # calls under way on one connection
STALE = 1.2         # seconds that an answer may be old
STEP = 0.06         # seconds between states, on average
LAG = 0.25          # seconds that a node is behind the truth, at most
REPLY = re.compile(rb'\{"jsonrpc":"2\.0","id":([0-9]+),"(result|error)":')

_fork = multiprocessing.get_context("fork")


# --- a client ---------------------------------------------------------------------------

class Wrong(Exception):
    pass


class Asked:
    """A call: what was asked, from what state on it must be answered."""
    __slots__ = ("method", "params", "least", "sent")

    def __init__(self, method, params, least):
        self.method, self.params, self.least, self.sent = method, params, least, 0.0


class Caller:
    """Makes random calls on one connection and judges the answers."""

    def __init__(self, client, model, clock, seed):
        self.client, self.model, self.clock = client, model, clock
        self.dice = random.Random(seed)
        self.seen = 0                   # the highest block this client has been told of
        self.blocks = [model.at(0, n) for n in range(model.tips[0] + 1)]  # that it has seen
        self.number = 0

    def some_number(self):
        """(a number that exists, as a parameter; from what state on). For a while it may be
        that of a block which a reorg has taken away, but it is there."""
        number = max(0, self.seen - int(self.dice.expovariate(1 / 5)))
        return hex(number), self.model.since(number)

    def some_tag(self):
        """The same with a tag. `latest` must not go back for this client."""
        tag = self.dice.choice(("latest", "latest", "safe", "finalized"))
        return tag, self.model.since(self.seen) if tag == "latest" else 0

    def some_block(self):
        """A block it was told of; mostly a new one."""
        back = min(len(self.blocks), 1 + int(self.dice.expovariate(1 / 8)))
        return self.blocks[-back]

    def some_place(self):
        """Whatever names a block of whose state one can ask."""
        way = self.dice.randrange(7)
        block = self.some_block()
        if way < 2:
            return self.some_number()
        if way == 2:
            return {"blockHash": block.hash}, block.born
        if way == 3:
            return {"blockHash": block.hash, "requireCanonical": True}, block.born
        if way == 4:
            number, least = self.some_number()
            return {"blockNumber": number}, least
        return self.some_tag()

    def make(self):
        """One random call."""
        way, block = self.dice.randrange(20), self.some_block()
        if way < 7:
            who = "0x%040x" % self.dice.randrange(6)
            place, least = self.some_place()
            return Asked(*self.dice.choice((("eth_getBalance", [who, place]),
                                            ("eth_call", [{"to": who, "data": "0x1"}, place]),
                                            ("eth_getStorageAt", [who, "0x0", place]),
                                            ("eth_getTransactionCount", [who, place]))), least)
        if way < 10:
            place, least = self.dice.choice((self.some_number, self.some_tag))()
            return Asked("eth_getBlockByNumber", [place, self.dice.random() < 0.5], least)
        if way < 12:
            return Asked("eth_getBlockByHash", [block.hash, self.dice.random() < 0.5],
                         block.born)
        if way < 13:
            place, least = self.some_number()
            return Asked("eth_getBlockReceipts", [place], least)
        if way < 16:
            # One node may know its block before the others, and a null is worth one look
            # elsewhere, not more (I7): for STALE it may be what it was before the block.
            tx = self.dice.choice(block.txs) if block.txs else "0x" + "ee" * 32
            return Asked(self.dice.choice(("eth_getTransactionReceipt",
                                           "eth_getTransactionByHash")), [tx], 0)
        if way == 16:
            return Asked("eth_getLogs", [{"blockHash": block.hash}], block.born)
        if way < 18:
            high, least = self.some_number()
            low = max(0, int(high, 16) - self.dice.randrange(6))
            return Asked("eth_getLogs", [{"fromBlock": hex(low), "toBlock": high,
                                          "address": ADDRESS}], least)
        return Asked("eth_blockNumber", [], self.model.since(self.seen))

    # --- judging

    def judge(self, asked, kind, body):
        """Finds the moment at which this was right."""
        last = self.clock.now.value
        self.model.grow(last)
        first = min(last, max(asked.least, self.clock.state_at(asked.sent - STALE)))
        if self.was_right(asked.method, asked.params, first, last, kind, body) or \
                "latest" in asked.params and self.on_the_way(asked, first, last, kind, body):
            self.learn(asked, body)
        else:
            self.complain(asked, first, last, body)

    def was_right(self, method, params, first, last, kind, body):
        for k in range(last, first - 1, -1):
            try:
                right = serve(self.model, k, method, params)
            except Refused:
                right = None
            if (right is None) == (kind == b"error") and \
                    (right is None or right == body or same(right, body)):
                return True
        return False

    def on_the_way(self, asked, first, last, kind, body):
        """A node announces the blocks of a reorg one by one: each may be the latest for a
        moment, if it is not below what had been the tip."""
        for number in range(self.model.tips[last], self.model.tips[first] - 1, -1):
            params = [hex(number) if p == "latest" else p for p in asked.params]
            if self.was_right(asked.method, params, first, last, kind, body):
                return True
        return False

    def learn(self, asked, body):
        if asked.method == "eth_blockNumber":
            self.seen = max(self.seen, int(body[3:-1], 16))
        elif asked.method in ("eth_getBlockByNumber", "eth_getBlockByHash"):
            found = re.search(rb'"hash":"(0x[0-9a-f]{64})"', body)
            if not found:
                return
            block = self.model.by_hash[found.group(1).decode()]
            if asked.params[0] == "latest":
                self.seen = max(self.seen, block.number)
            if block is not self.blocks[-1]:
                self.blocks.append(block)
                del self.blocks[:-400]

    def complain(self, asked, first, last, body):
        lines = ["%s %s" % (asked.method, json.dumps(asked.params)),
                 "got %s" % body[:700].decode("latin-1"),
                 "by %s; this client has seen block %d; states %d to %d would do"
                 % (self.client.kind, self.seen, first, last)]
        for k in range(max(0, last - 60), last + 1):
            try:
                right = serve(self.model, k, asked.method, asked.params)
            except Refused as why:
                right = b"error: %s" % str(why).encode()
            lines.append("state %d (%.3f s before, tip %d): %s%s"
                         % (k, time.monotonic() - self.clock.since[k], self.model.tips[k],
                            right[:160].decode(), "   <== got" if right == body else ""))
        raise Wrong("\n".join(lines))

    # --- calling

    def round(self):
        """Several calls at once; the answers in whatever order they come."""
        self.model.grow(self.clock.now.value)
        calls, texts = {}, []
        for _ in range(ROUND):
            self.number += 1
            asked = calls[self.number] = self.make()
            texts.append(b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}'
                         % (self.number, asked.method.encode(), raw_of(asked.params)))
        now = time.monotonic()
        for asked in calls.values():
            asked.sent = now
        if self.client.kind == "http":
            answers = rawjson.elements(self.client.raw(b"[" + b",".join(texts) + b"]", 20))
        else:
            for text in texts:
                self.client.send(text)
            answers = (self.client.recv(20) for _ in texts)
        for text in answers:
            found = REPLY.match(text)
            if not found:
                raise Wrong("what is this? %r" % text[:500])
            self.judge(calls.pop(int(found.group(1))), found.group(2), text[found.end():-1])
        return ROUND


def same(right, body):
    """Joined logs may be written in another way."""
    if right[:1] != b"[" or body[:1] != b"[":
        return False
    return json.loads(right) == json.loads(body)


def call_on(kind, gateway, clock, seed, share, count, report):
    """A client's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with gateway.client(kind, timeout=20) as client:
            caller = Caller(client, Model(SEED), clock, seed)
            while count.value < share:
                count.value += caller.round()
    except Wrong as wrong:
        report.put("a wrong answer: %s" % wrong)
    except Exception as error:  # pylint: disable=broad-except
        report.put("%s over %s: %s" % (type(error).__name__, kind, error))
    else:
        report.put("")


# --- the chain moves --------------------------------------------------------------------

def move(clock, dice, lags, due):
    """One turn of the driver: the truth goes on, nodes follow when their lag is over."""
    now = time.monotonic()
    if now >= due:
        clock.advance()
        due = now + dice.expovariate(1 / STEP)
        for lag in lags:
            lag[1:] = [0.0 if dice.random() < 0.4 else dice.random() * LAG] \
                if dice.random() < 0.2 else lag[1:]
    for node, (_, lag) in enumerate(lags):
        clock.at[node] = max(clock.at[node], clock.state_at(now - lag))
    return due


def drive(clock, jobs, report, counts):
    """Until all clients are done; what they report."""
    dice = random.Random(SEED + 1)
    lags = [[node, 0.0] for node in range(len(KINDS))]
    due, said, shown = 0.0, [], time.monotonic()
    while len(said) < len(jobs):
        due = move(clock, dice, lags, due)
        time.sleep(0.002)
        while not report.empty():
            said.append(report.get())
            if said[-1]:
                return said
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            tap.diag("%d calls, state %d" % (sum(c.value for c in counts), clock.now.value))
        if not all(job.is_alive() for job in jobs) and len(said) + 1 < len(jobs):
            tap.eventually(lambda: report.empty() is False or all(
                job.exitcode == 0 for job in jobs if not job.is_alive()), 5, "a report")
    return said


def whole():
    folder = tempfile.mkdtemp(prefix="egw-model-")
    clock = Clock(len(KINDS))
    nodes = [FastNode(kind, SEED, clock, i, folder) for i, kind in enumerate(KINDS)]
    settings = wire.full()
    jobs = []
    try:
        with Gateway([{"name": n.kind, "url": n.url} for n in nodes], level="info",
                     middleware=settings["middleware"],
                     network={"poll_interval": "100ms"}) as gateway:
            report = _fork.Queue()
            counts = [_fork.Value("q", 0, lock=False) for _ in KINDS]
            share = CALLS // len(KINDS)
            jobs = [_fork.Process(target=call_on, daemon=True, args=(
                kind, gateway, clock, SEED + 10 + i, share, counts[i], report))
                    for i, kind in enumerate(KINDS)]
            began = time.monotonic()
            for job in jobs:
                job.start()
            said = [text for text in drive(clock, jobs, report, counts) if text]
            took = time.monotonic() - began
            calls = sum(c.value for c in counts)
            tap.diag("%d calls in %.1f s (%d/s), %d states" % (calls, took, calls / took,
                                                              clock.now.value))
            for name in ("hits", "misses"):
                tap.diag("cache %s: %d" % (name,
                                           gateway.metric("ethrpcgw_cache_%s_total" % name)))
            tap.check(not said, "seed %d: %s" % (SEED, said[0] if said else ""))
            tap.at_least(calls, share * len(KINDS), "calls")
    finally:
        for job in jobs:
            if job.is_alive():
                job.kill()
            job.join()
        for node in nodes:
            node.stop()
        shutil.rmtree(folder, ignore_errors=True)


need_program()
if not has_transport("http"):
    tap.skip_all("this build has no http transport")
tap.watchdog(3600 if LONG else 170)
tap.diag("EGW_SEED=%d" % SEED)
tap.run("%d calls over a chain that moves" % CALLS, whole)
tap.done()
