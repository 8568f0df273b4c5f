#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Subscribers and filters in front of real nodes whose chain is reorganised, rolled back and grown:
what they were told is the chain that the node has in the end, logs included.

EGW_SEED repeats a run; EGW_LONG=1 lets it go on for longer."""
import os
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import gateway
import nodes
import rawjson
import tap
from story import Heads, Logs, Reader

SEED = int(os.environ.get("EGW_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
STEPS = 400 if os.environ.get("EGW_LONG") == "1" else 40
FEES = {"maxFeePerGas": hex(10 ** 12), "maxPriorityFeePerGas": hex(10 ** 9), "gas": hex(300000)}
STAGES = [{"use": "methods", "allow": ["anvil_*", "evm_*", "eth_sendTransaction", "debug_setHead"]}]


class BlockFilter:
    """A filter of blocks: the hashes as they came."""

    def __init__(self, client):
        self.client, self.hashes = client, []
        self.name = rawjson.parse(client.call("eth_newBlockFilter").ok())

    def poll(self):
        self.hashes += rawjson.parse(self.client.call("eth_getFilterChanges", [self.name]).ok())


class LogFilter(Logs):
    """A filter of logs."""

    def __init__(self, client, what):
        super().__init__()
        self.client = client
        self.name = rawjson.parse(client.call("eth_newFilter", [what]).ok())

    def poll(self):
        for log in rawjson.parse(self.client.call("eth_getFilterChanges", [self.name]).ok()):
            self.take(log)


class Crowd:
    """Who listens: over ws and ipc, and filters over http."""

    def __init__(self, gw, node, contract):
        self.gw, self.node, self.contract = gw, node, contract
        self.start = int(node.ask("eth_blockNumber"), 16)
        self.readers, self.heads, self.logs = [], [], []
        for kind in ("ws", "ipc", "ws", "ipc"):
            reader = Reader(gw.client(kind))
            self.heads.append(reader.subscribe(Heads(), "newHeads"))
            self.logs.append(reader.subscribe(Logs(), "logs", {"address": contract}))
            self.logs.append(reader.subscribe(Logs(), "logs", {"topics": [[], None]}))
            self.readers.append(reader)
        self.asker = gw.http()
        self.filters = [LogFilter(self.asker, {"address": [contract]}), BlockFilter(self.asker)]
        for reader in self.readers:
            reader.start()

    def poll(self):
        for one in self.filters:
            one.poll()

    def chain(self):
        """What the node has: [(number, hash)] and [(number, index, hash)] from `start` on."""
        tip = int(self.node.ask("eth_blockNumber"), 16)
        blocks = [self.node.ask("eth_getBlockByNumber", hex(n), False)
                  for n in range(self.start + 1, tip + 1)]
        logs = self.node.ask("eth_getLogs", {"fromBlock": hex(self.start + 1), "toBlock": hex(tip),
                                             "address": self.contract})
        return [(int(b["number"], 16), b["hash"]) for b in blocks], \
            [(int(g["blockNumber"], 16), int(g["logIndex"], 16), g["blockHash"]) for g in logs]

    def verify(self):
        """The chain that was told is the node's; where a reorganisation went below the first block
        that was told, from there on."""
        blocks, logs = self.chain()

        def missing():
            """Who has not been told of the newest block or log."""
            nonlocal blocks, logs
            self.poll()
            if self.node.ask("eth_getBlockByNumber", "latest", False)["hash"] != blocks[-1][1]:
                blocks, logs = self.chain()    # a transaction was mined only now
            hashes = self.filters[1].hashes[-1:]
            return ["heads to %r" % h.chain[-1:] for h in self.heads
                    if h.chain[-1:] != blocks[-1:]] + \
                ["logs to %r" % g.logs[-1:] for g in self.logs + self.filters[:1]
                 if g.logs[-1:] != logs[-1:]] + \
                ["hashes to %r" % hashes] * (hashes != [blocks[-1][1]])
        try:
            tap.eventually(lambda: any(r.failed for r in self.readers) or not missing(), 20,
                           "all are told of the last block", 0.05)
        except tap.Failed:
            tap.diag("the chain: %r, %r; missing: %s" % (blocks[-3:], logs[-3:], missing()))
            raise
        finally:
            self.diagnose(blocks, logs)
        for reader in self.readers:
            reader.end()
        for one in self.heads:
            tap.eq(one.chain, [b for b in blocks if b[0] >= one.chain[0][0]], "heads")
            tap.at_most(one.chain[0][0], self.start + 1, "the first head")
        for one in self.logs + self.filters[:1]:
            tap.eq(one.logs, logs, "logs")
        told = Heads()
        for block in self.filters[1].hashes:
            told.take(self.heads[0].seen[block])
        tap.eq(told.chain, blocks, "hashes of the filter")

    def diagnose(self, blocks, logs):
        tap.diag("%d blocks, %d logs; events: %d heads, %d logs, %d removed" % (
            len(blocks), len(logs), sum(h.told for h in self.heads),
            sum(g.told for g in self.logs), sum(g.removed for g in self.logs)))


def note(node, contract, sender, key):
    node.ask("eth_sendTransaction", {
        "from": sender, "to": contract, **(FEES if node.name == "anvil" else {"gas": hex(300000)}),
        "data": nodes.text_data("note(uint256,uint256,string)", "story", key, key)})


def deploy(node, sender):
    sent = node.ask("eth_sendTransaction", {"from": sender, "gas": hex(2000000),
                                            "data": nodes.probe()["bytecode"]})

    def receipt():
        try:
            return node.ask("eth_getTransactionReceipt", sent)
        except tap.Failed as error:
            if "indexing is in progress" in str(error):    # geth, while it is starting up
                return None
            raise
    return tap.eventually(receipt, 20, "the contract is there")["contractAddress"]


class AnvilTrouble:
    """Things that happen to anvil's chain, told to it directly or through the gateway."""

    def __init__(self, rng, node, gw, contract):
        self.rng, self.node, self.contract = rng, node, contract
        self.through = gw.http()
        self.count = 0

    def command(self, method, *params):
        if self.rng.random() < 0.5:
            self.node.ask(method, *params)
        else:
            self.through.call(method, list(params)).ok()

    def mine(self):
        """No two blocks are the same, also when a chain is grown again."""
        self.count += 1
        self.node.ask("anvil_setCoinbase", "0x%040x" % (self.count + 1))
        if self.rng.random() < 0.6:
            note(self.node, self.contract, nodes.ACCOUNTS[0], self.count)
        else:
            self.command("evm_mine")

    def height(self):
        return int(self.node.ask("eth_blockNumber"), 16)

    def back(self, floor):
        """How far the chain may go back."""
        return min(self.rng.choice((1, 2, 3, 5, 8)), self.height() - floor)

    def step(self, floor):
        what = self.rng.random()
        depth = self.back(floor)
        if what < 0.2 and depth > 0:
            self.node.ask("anvil_setCoinbase", "0x%040x" % (self.count + 7777))
            self.command("anvil_reorg", depth, [])
        elif what < 0.35 and depth > 0:
            self.command("anvil_rollback", depth)
            for _ in range(self.rng.randint(1, depth + 2)):
                self.mine()
        elif what < 0.5:
            for _ in range(self.rng.randint(5, 20)):
                self.mine()
        else:
            self.mine()
        time.sleep(self.rng.uniform(0, 0.05))    # the pace of the chain


def anvil_story(kind):
    rng = random.Random(SEED)
    with nodes.Anvil() as node:
        contract = deploy(node, nodes.ACCOUNTS[0])
        for _ in range(3):
            node.ask("evm_mine")
        with gateway.Gateway([{"name": "anvil", "url": node.urls[kind]}], middleware=STAGES,
                             network={"poll_interval": "100ms"}) as gw:
            crowd = Crowd(gw, node, contract)
            trouble = AnvilTrouble(rng, node, gw, contract)
            trouble.mine()
            for _ in range(STEPS):
                trouble.step(crowd.start + 1)
                crowd.poll()
            trouble.mine()
            note(node, contract, nodes.ACCOUNTS[0], 99999)
            crowd.verify()


def geth_story(kind):
    with nodes.Geth() as node:
        sender = node.ask("eth_accounts")[0]
        contract = deploy(node, sender)
        with gateway.Gateway([{"name": "geth", "url": node.urls[kind]}], middleware=STAGES,
                             network={"poll_interval": "100ms"}) as gw:
            crowd = Crowd(gw, node, contract)

            def grow(key):
                before = node.ask("eth_blockNumber")
                note(node, contract, sender, key)
                tap.eventually(lambda: node.ask("eth_blockNumber") != before, 20, "a new block")

            for key in range(6):
                grow(key)
            crowd.poll()
            for key in range(10, 16):
                grow(key)
            crowd.verify()


gateway.need_program()
tap.diag("EGW_SEED=%d" % SEED)
if nodes.program("anvil") is None:
    tap.skip_all("anvil is not installed (t/interop/install node)")
tap.watchdog(900)
for upstream in ("http", "ws", "ipc"):
    if gateway.has_transport(upstream):
        tap.run("anvil over %s: reorganised, rolled back, grown" % upstream, anvil_story, upstream)
for upstream in ("http", "ws", "ipc"):
    if nodes.program("geth") is not None and gateway.has_transport(upstream):
        tap.run("geth over %s" % upstream, geth_story, upstream)
tap.done()
