#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Subscribers that come and go: subscribing and unsubscribing, rude ends, filters that are made and
left, while blocks come. Memory and descriptors stay flat, and nothing is left at the nodes.

EGW_LONG=1: 100,000 of each."""
import os
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import rawjson
import tap
from chain import Chain
from clients import Closed, NoAnswer, request
from fakenode import Node
from gateway import Gateway, has_transport, need_program, sanitized

LONG = os.environ.get("EGW_LONG") == "1"
CYCLES = 100000 if LONG else 4000
KINDS = (["newHeads"], ["logs", {}], ["logs", {"address": "0x" + "0c" * 20}],
         ["newPendingTransactions"], ["newPendingTransactions", True])
AT_ONCE = 50


class Net:
    """A gateway in front of a node that pushes and one that may not; blocks at a pace."""

    def __init__(self, folder):
        self.chain = Chain(blocks=10, live=True)
        kinds = ["ws"] + ["http"] * has_transport("http")
        self.nodes = [Node(k, self.chain, folder, "churn%d" % i) for i, k in enumerate(kinds)]
        self.gw = Gateway([{"name": n.name, "url": n.url()} for n in self.nodes], level="info",
                          network={"poll_interval": "200ms"})
        self.over = threading.Event()
        self.miner = threading.Thread(target=self._mine, daemon=True)
        self.miner.start()

    def _mine(self):
        while not self.over.wait(0.1):
            self.chain.mine()
            for node in self.nodes:      # what they keep for tests is not to be the test's memory
                node.requests.clear()
                node.http_requests.clear()
                node.arrays.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.miner.join()
        self.gw.stop()
        for node in self.nodes:
            node.close()

    def descriptors(self):
        """But for those to the nodes, of which http keeps some for later."""
        return self.gw.fds() - sum(len(n.open_conns()) for n in self.nodes)

    def left(self):
        """What must not be left when all clients are gone."""
        return self.gw.metric("ethrpcgw_subscriptions") + sum(
            kind != "newHeads" for node in self.nodes for _, _, kind in node.subscriptions())

    def flat(self, some, rest):
        """Does `some`, and then `rest`, which must need nothing more."""
        some()
        tap.eventually(lambda: self.left() == 0, 5, "nothing is left at first")
        rss, fds = self.gw.rss(), self.descriptors()
        rest()
        tap.eventually(lambda: self.left() == 0, 2, "nothing is left")
        tap.eventually(lambda: self.descriptors() <= fds + 2, 5, "descriptors are back")
        if not sanitized():
            tap.at_most(self.gw.rss() - rss, 4 << 20, "growth of memory")


def answers(client, count):
    """The results of so many calls, whatever events come between."""
    out = {}
    while len(out) < count:
        fields = rawjson.parse(client.recv())
        out[fields["id"]] = fields["result"]
    client.events.clear()
    return [out[i] for i in range(count)]


def cycles(client, count):
    """Subscribes and unsubscribes, many at a time."""
    for _ in range(count // AT_ONCE):
        for i in range(AT_ONCE):
            client.send(request("eth_subscribe", KINDS[i % len(KINDS)], i))
        subs = answers(client, AT_ONCE)
        tap.eq(len(set(subs)), AT_ONCE, "ids")
        for i, sub in enumerate(subs):
            client.send(request("eth_unsubscribe", [sub], i))
        tap.eq(answers(client, AT_ONCE), [True] * AT_ONCE, "answers to eth_unsubscribe")


def rude(gw, kind, count):
    """Clients that end their connection by a reset: before the answer, after it, amid events."""
    for n in range(count // 10):
        client = gw.client(kind)
        for i in range(10):
            client.send(request("eth_subscribe", KINDS[(n + i) % len(KINDS)], i))
        if n % 3 == 1:
            answers(client, 10)
        elif n % 30 == 2:
            answers(client, 10)
            try:
                client.event(1)
            except (NoAnswer, Closed):
                pass
        client.reset()


def filters(client, count):
    """Filters, polled and uninstalled."""
    methods = (("eth_newFilter", [{}]), ("eth_newBlockFilter", []),
               ("eth_newPendingTransactionFilter", []))
    for n in range(count // 10):
        names = [rawjson.parse(client.call(*methods[(n + i) % 3]).ok()) for i in range(10)]
        for name in names:
            client.call("eth_getFilterChanges", [name]).ok()
        for name in names:
            tap.eq(client.call("eth_uninstallFilter", [name]).ok(), b"true", "uninstalled")


def churn_cycles(net, kind):
    with net.gw.client(kind, timeout=20) as client:
        net.flat(lambda: cycles(client, CYCLES // 4), lambda: cycles(client, CYCLES))


def churn_rude(net, kind):
    net.flat(lambda: rude(net.gw, kind, CYCLES // 4), lambda: rude(net.gw, kind, CYCLES))


def churn_filters(net):
    # Each new one has the nodes looked at: they are slower than subscriptions, which go together.
    count = CYCLES // 20
    with net.gw.http() as client:
        net.flat(lambda: filters(client, count // 4), lambda: filters(client, count))


need_program()
tap.watchdog(7200 if LONG else 170)
with tempfile.TemporaryDirectory(prefix="egw-churn-") as place:
    with Net(place) as network:
        for transport in ("ws", "ipc"):
            tap.run("%d subscriptions made and ended over %s" % (CYCLES, transport),
                    churn_cycles, network, transport)
            tap.run("%d subscriptions of clients that reset over %s" % (CYCLES, transport),
                    churn_rude, network, transport)
        tap.run("%d filters" % (CYCLES // 20), churn_filters, network)
tap.done()
