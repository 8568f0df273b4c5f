#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Middleware failover with two real nodes, one of which is killed again and again under load: reads
never fail, every transaction that a client was told of is there, and none was sent twice."""
import os
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import nodes
import tap
from gateway import Gateway, has_transport, need_program

SENDERS, EACH, KILLS = 3, 20, 3
STAGES = [{"use": "methods"}, {"use": "failover", "broadcast": "all"}]
NETWORK = {"poll_interval": "200ms", "attempt_timeout": "800ms", "timeout": "6s"}


def signed(key, nonce):
    """A raw transfer."""
    done = subprocess.run(
        [nodes.program("cast"), "mktx", "--private-key", key, "--nonce", str(nonce), "--gas-price",
         "2000000000", "--gas-limit", "21000", "--chain", "31337", "--legacy", "--value", "1",
         "0x" + "5e" * 20], check=True, stdout=subprocess.PIPE, timeout=tap.limit(30))
    return done.stdout.decode().strip()


class Crowd:
    """Clients that read until they are told to end, and others that send their transactions."""

    def __init__(self, gateway, raws):
        self.over = threading.Event()
        self.wrong, self.told, self.reads = [], [], 0
        self.senders = [threading.Thread(target=self._guard, args=(self._send, gateway, kind, one))
                        for kind, one in zip(("http", "ws", "ipc"), raws)]
        self.readers = [threading.Thread(target=self._guard, args=(self._read, gateway, kind, None))
                        for kind in ("http", "ws", "ipc") * 2]
        for thread in self.senders + self.readers:
            thread.daemon = True
            thread.start()

    def _guard(self, fn, gateway, kind, what):
        try:
            with gateway.client(kind, timeout=10) as client:
                fn(client, what)
        except Exception as error:  # pylint: disable=broad-except
            self.wrong.append("%s over %s: %s" % (type(error).__name__, kind, error))

    def _send(self, client, raws):
        for i, raw in enumerate(raws):
            tap.eventually(lambda i=i: self.reads >= 60 * i, 30, "reads in between")
            self.told.append(client.call("eth_sendRawTransaction", [raw]).ok().decode().strip('"'))

    def _read(self, client, _):
        while not self.over.is_set():
            for method, params, want in (
                    ("eth_chainId", [], b'"0x7a69"'), ("eth_blockNumber", [], b'"0x0"'),
                    ("eth_getBalance", [nodes.ACCOUNTS[0], "latest"], b'"0x21e19e0c9bab2400000"')):
                tap.eq(client.call(method, params).ok(), want, method)
                self.reads += 1

    def sending(self):
        return any(thread.is_alive() for thread in self.senders)

    def end(self):
        self.over.set()
        for thread in self.senders + self.readers:
            thread.join(tap.limit(15))


def kill_in_turn(crowd, victim):
    """The node dies in the middle of everything, and comes back at its old port."""
    for _ in range(KILLS):
        before = crowd.reads + len(crowd.told)
        tap.eventually(lambda b=before: crowd.reads + len(crowd.told) > b + 60, 20, "calls go on")
        victim.process.kill()
        victim.process.wait()
        before = crowd.reads
        tap.eventually(lambda b=before: crowd.reads > b + 60, 20, "reads go on without it")
        old, victim = victim, nodes.Anvil("--no-mining", port=victim.ports["http"])
        old.stop()
    return victim


def run():
    raws = [[signed(key, n) for n in range(EACH)] for key in nodes.KEYS[:SENDERS]]
    victim, other = nodes.Anvil("--no-mining"), nodes.Anvil("--no-mining")
    try:
        with Gateway([{"name": "victim", "url": victim.urls["http"]},
                      {"name": "other", "url": other.urls["ws"]}],
                     middleware=STAGES, network=NETWORK) as gateway:
            crowd = Crowd(gateway, raws)
            try:
                victim = kill_in_turn(crowd, victim)
                tap.eventually(lambda: not crowd.sending(), 30, "all is sent")
            finally:
                crowd.end()
            tap.eq(crowd.wrong, [], "failures of %d reads" % crowd.reads)
            tap.eq(len(set(crowd.told)), SENDERS * EACH, "transactions that clients were told of")
            lost = [h for h in crowd.told if other.ask("eth_getTransactionByHash", h) is None]
            tap.eq(lost, [], "lost transactions")
            pool = other.ask("txpool_status")
            tap.eq(int(pool["pending"], 16) + int(pool["queued"], 16), SENDERS * EACH, "transactions there")
            tap.at_most(gateway.metric("ethrpcgw_failover_tx_copies_total") -
                        gateway.metric("ethrpcgw_failover_unreachable_total"), 2 * SENDERS * EACH,
                        "copies that were sent")
            tap.diag("%d reads, %d transactions" % (crowd.reads, len(crowd.told)))
    finally:
        victim.stop()
        other.stop()


need_program()
if not has_transport("http"):
    tap.skip_all("this build has no http transport")
if nodes.program("anvil") is None or nodes.program("cast") is None:
    tap.skip_all("anvil and cast are not installed (t/interop/install node)")
tap.watchdog(170)
tap.run("one of two nodes is killed again and again", run)
tap.done()
