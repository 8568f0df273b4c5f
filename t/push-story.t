#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What subscribers are told is the canonical story: over nodes whose connections are cut, reset and
stalled at random, while the chain grows and reorganises, each subscriber gets each block once and in
order, the logs of blocks that are taken away again as removed, and nothing else.

EGW_SEED repeats a run; EGW_LONG=1 lets it go on for minutes."""
import os
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import story
import tap
import tempfile
from chain import Chain, View
from fakenode import Node
from gateway import Gateway, need_program

SEED = int(os.environ.get("EGW_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
LONG = os.environ.get("EGW_LONG") == "1"
STEPS = 3000 if LONG else 120
SESSIONS = 10
EACH = 10                            # subscriptions of each kind in one session


class Heads(story.Heads):
    """A subscriber of newHeads."""

    def ended(self, chain):
        return self.chain and self.chain[-1][1] == chain.headers[-1]["hash"]

    def verify(self, chain, start):
        tap.eq(self.chain[0][0] <= start + 1, True, "the first block told (of %d)" % start)
        want = [(int(h["number"], 16), h["hash"]) for h in chain.headers[self.chain[0][0]:]]
        tap.eq(self.chain, want, "the story of a subscriber to heads")


class Logs(story.Logs):
    """A subscriber of logs."""

    def ended(self, chain):
        want = self.wanted(chain, chain.number())
        return not want or (self.logs and self.logs[-1] == want[-1])

    @staticmethod
    def wanted(chain, start):
        found = []
        for head in chain.headers[start:]:
            logs = rawjson.parse(chain.answer("eth_getLogs", rawjson.compact(
                [{"blockHash": head["hash"]}])))
            found += [(int(g["blockNumber"], 16), int(g["logIndex"], 16), g["blockHash"])
                      for g in logs]
        return found

    def verify(self, chain, start):
        want = self.wanted(chain, start + 1)
        first = want[0][0] if want else 0
        tap.eq([g for g in self.logs if g[0] >= first], want, "the story of a subscriber to logs")


def listen(client):
    """A session with its subscriptions."""
    reader = story.Reader(client)
    for _ in range(EACH):
        reader.subscribe(Heads(), "newHeads")
        reader.subscribe(Logs(), "logs", {})
    return reader


def trouble(rng, nodes, chain):
    """One thing that happens to the nodes or to the chain."""
    node = rng.choice(nodes)
    what = rng.random()
    if what < 0.10:
        node.cut(rst=rng.random() < 0.5)
    elif what < 0.14:
        node.stop(rst=True)
        Node.at(rng.uniform(0.02, 0.4), lambda: node.listener is None and node.listen())
    elif what < 0.17 and node.thaw.is_set():
        node.freeze()
        Node.at(rng.uniform(0.05, 0.6), node.thaw.set)
    elif what < 0.23 and isinstance(node.chain, View):
        node.chain.set_lag(rng.randrange(4))
    elif what < 0.36:
        chain.reorg(rng.randint(1, 10))
        for _ in range(rng.randint(0, 2)):
            chain.mine()
    else:
        for _ in range(rng.randint(1, 3)):
            chain.mine(quiet=rng.random() < 0.1)
    time.sleep(rng.uniform(0, 0.06))  # the pace of the chain, not a wait for anything


def run():
    tap.diag("EGW_SEED=%d" % SEED)
    rng = random.Random(SEED)
    chain = Chain(blocks=40, live=True)
    with tempfile.TemporaryDirectory(prefix="egw-story-") as folder:
        nodes = [Node(kind, View(chain, lag=0), folder, "n%d" % i)
                 for i, kind in enumerate(("ws", "http", "ipc"))]
        gw = Gateway([{"name": n.name, "url": n.url()} for n in nodes],
                     network={"poll_interval": "100ms", "attempt_timeout": "500ms"})
        readers = [listen(gw.ws() if i % 2 == 0 else gw.ipc()) for i in range(SESSIONS)]
        start = chain.number()
        for reader in readers:
            reader.start()
        for _ in range(STEPS):
            trouble(rng, nodes, chain)
        for node in nodes:
            node.thaw.set()
            node.chain.set_lag(0)
        tap.eventually(lambda: all(n.listener is not None for n in nodes), 5, "the nodes are back")
        chain.mine()
        subs = [sub for reader in readers for sub in reader.subs.values()]
        tap.eventually(lambda: any(r.failed for r in readers) or
                       all(sub.ended(chain) for sub in subs), 20, "all are told of the last block")
        for reader in readers:
            reader.end()
        for sub in subs:
            sub.verify(chain, start)
        tap.diag("%d blocks, %d events, %d logs removed" % (
            chain.number() - start, sum(s.told for s in subs),
            sum(s.removed for s in subs if isinstance(s, Logs))))
        gw.stop()
        for node in nodes:
            node.close()


need_program()
tap.watchdog(900 if LONG else 120)
tap.run("subscribers are told the canonical story", run)
tap.done()
