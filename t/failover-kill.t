#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two nodes, one of which is killed or stalled all the time, in turn, under load: reads never
fail, raw transactions are never lost, and none is sent to a node twice."""
import itertools
import os
import shutil
import signal
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import nodes as real
import tap
import wire
from chain import tx_hash
from fastnode import Clock, FastNode, Ledger
from gateway import Gateway, has_transport, need_program
from model import Model, serve

LONG = os.environ.get("EGW_LONG") == "1"
ROUNDS = int(os.environ.get("EGW_ROUNDS", "60" if LONG else "6"))
KINDS = ("http", "ws", "ipc")
SEED = 7
NETWORK = {"poll_interval": "200ms", "attempt_timeout": "600ms", "timeout": "4s"}


class Load:
    """Clients that call until they are told to end; what went wrong."""

    def __init__(self, gateway, jobs):
        self.ended = threading.Event()
        self.wrong, self.calls = [], 0
        self.threads = [threading.Thread(target=self._work, args=(gateway, kind, i, job),
                                         daemon=True)
                        for i, (kind, job) in enumerate(jobs)]
        for thread in self.threads:
            thread.start()

    def _work(self, gateway, kind, worker, job):
        try:
            with gateway.client(kind, timeout=8) as client:
                for n in itertools.count():
                    if self.ended.is_set():
                        return
                    problem = job(client, worker, n)
                    self.calls += 1
                    if problem:
                        self.wrong.append("%.3f: %s" % (time.monotonic() % 1000, problem))
        except Exception as error:  # pylint: disable=broad-except
            self.wrong.append("%s over %s: %s" % (type(error).__name__, kind, error))

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(tap.limit(20))
            if thread.is_alive():
                self.wrong.append("a client hangs")

    def check(self):
        tap.eq(len(self.wrong), 0, "failures of %d calls; %s" % (self.calls, self.wrong[:6]))


def until(load, seconds, calls):
    """A turn: so long, and so many calls at least."""
    before, end = load.calls, time.monotonic() + seconds
    tap.eventually(lambda: time.monotonic() >= end and load.calls >= before + calls, 30,
                   "%d calls more" % calls)


def turns(load, count, down, up, answers):
    """One node after the other goes down for a second; before that the other is back."""
    for n in range(count):
        way, victim = ("kill", "stall")[n // 2 % 2], n % 2
        down(victim, way)
        until(load, 1.0, 20)
        up(victim, way)
        tap.eventually(lambda v=victim: answers(v), 20, "node %d is back" % victim)


# --- nodes of the test's own ------------------------------------------------------------

class Sent:
    """Raw transactions of the clients and what they were told."""

    def __init__(self):
        self.told = {}          # hash -> raw reply

    def job(self, client, worker, n):
        raw = "0x02%06x%06x" % (worker, n)
        name = tx_hash(raw)
        reply = client.call("eth_sendRawTransaction", [raw], n)
        self.told[name] = reply.raw
        if reply.result != b'"%s"' % name.encode():
            return "transaction %s over %s: %r" % (name, client.kind, reply.raw)
        return None


def read_job(model):
    def job(client, worker, n):
        who = "0x%020x%020x" % (worker, n)
        method, params = [
            ("eth_getBalance", [who, "latest"]), ("eth_getBalance", [who, "0x5"]),
            ("eth_call", [{"to": who}, "latest"]), ("eth_blockNumber", []),
            ("eth_getBlockByNumber", [hex(n % 40), False])][n % 5]
        reply = client.call(method, params, n)
        if reply.result != serve(model, 0, method, params):
            return "%s %r over %s: %r" % (method, params, client.kind, reply.raw[:200])
        return None
    return job


def asks(node):
    """Whether the node itself answers."""
    client = None
    try:
        if node.kind == "ipc":
            client = real.clients.IpcClient(node.path, timeout=1)
        else:
            make = {"http": real.PlainHttp, "ws": real.clients.WsClient}[node.kind]
            client = make(node.port, timeout=1)
        return b"result" in client.raw(real.clients.request("eth_chainId") + b"\n")
    except (OSError, tap.Failed, real.clients.Closed):
        return False
    finally:
        if client is not None:
            client.close()


def check_ledger(folder, sent):
    ledger = Ledger(folder)
    received = [ledger.read("received", i) for i in range(2)]
    for node, names in enumerate(received):
        double = sorted({n for n in names if names.count(n) > 1})
        tap.eq(double, [], "transactions that node %d got twice" % node)
    taken = ledger.read("taken", 0) + ledger.read("taken", 1)
    lost = [n for n, raw in sent.told.items() if b'"result"' in raw and n not in taken]
    tap.eq(lost, [], "transactions that were lost")


def pair(kinds, count):
    folder = tempfile.mkdtemp(prefix="egw-kill-")
    clock, model, sent = Clock(2), Model(SEED), Sent()
    nodes = [FastNode(kind, SEED, clock, i, folder, ledger=True)
             for i, kind in enumerate(kinds)]

    def down(victim, way):
        nodes[victim].stop() if way == "kill" else nodes[victim].pause()

    def up(victim, way):
        nodes[victim].start() if way == "kill" else nodes[victim].resume()

    try:
        with Gateway([{"name": "n%d" % i, "url": n.url} for i, n in enumerate(nodes)],
                     middleware=wire.full()["middleware"], network=NETWORK) as gateway:
            reads = read_job(model)
            load = Load(gateway, [(k, reads) for k in KINDS for _ in range(2)] +
                        [(k, sent.job) for k in KINDS])
            try:
                turns(load, count, down, up, lambda v: asks(nodes[v]))
            finally:
                load.end()
            tap.diag("%d calls, %d transactions" % (load.calls, len(sent.told)))
            if load.wrong:
                tap.diag("log: " + gateway.log()[-3000:])
            load.check()
            check_ledger(folder, sent)
    finally:
        for node in nodes:
            node.stop()
        shutil.rmtree(folder, ignore_errors=True)


# --- real nodes -------------------------------------------------------------------------

def real_job(client, worker, n):
    method, params, want = [
        ("eth_getBalance", [real.ACCOUNTS[worker % 3], "latest"], b'"0x21e19e0c9bab2400000"'),
        ("eth_getBalance", ["0x%020x%020x" % (worker + 1, n), "0x0"], b'"0x0"'),
        ("eth_getCode", ["0x%020x%020x" % (worker + 1, n), "latest"], b'"0x"'),
        ("eth_blockNumber", [], b'"0x0"')][n % 4]
    reply = client.call(method, params, n)
    if reply.result != want:
        return "%s %r over %s: %r" % (method, params, client.kind, reply.raw[:200])
    return None


def anvils(count):
    if real.program("anvil") is None:
        raise tap.Skip("there is no anvil (see t/interop/install)")
    pairs = [real.Anvil(), real.Anvil()]

    def down(victim, way):
        node = pairs[victim]
        if way == "kill":
            node.process.kill()
            node.process.wait()
        else:
            os.kill(node.process.pid, signal.SIGSTOP)

    def up(victim, way):
        node = pairs[victim]
        if way == "kill":
            pairs[victim] = real.Anvil(port=node.ports["http"])
            node.stop()
        else:
            os.kill(node.process.pid, signal.SIGCONT)

    def answers(victim):
        with pairs[victim].client("http", timeout=2) as client:
            return client.call("eth_chainId").result is not None

    try:
        urls = [pairs[0].urls["http"], pairs[1].urls["ws"]]
        with Gateway([{"name": "a%d" % i, "url": url} for i, url in enumerate(urls)],
                     middleware=wire.full()["middleware"], network=NETWORK) as gateway:
            load = Load(gateway, [(k, real_job) for k in KINDS for _ in range(2)])
            try:
                turns(load, count, down, up, answers)
            finally:
                load.end()
            tap.diag("%d calls" % load.calls)
            load.check()
    finally:
        for node in pairs:
            node.stop()


need_program()
if not has_transport("http"):
    tap.skip_all("this build has no http transport")
tap.watchdog(3600 if LONG else 170)
tap.run("reads and transactions, http and ws", pair, ("http", "ws"), ROUNDS)
tap.run("reads and transactions, ipc and http", pair, ("ipc", "http"), ROUNDS)
tap.run("reads of real nodes, http and ws", anvils, max(4, ROUNDS // 6))
tap.done()
