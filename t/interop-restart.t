#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A real node is killed and comes back at the same place: clients that stay connected to the
gateway get errors meanwhile, never silence, and answers again afterwards; those that have subscribed
get each block and log once, as if nothing had been."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import gateway
import interop
import nodes
import tap

KINDS = ("http", "ws", "ipc")


def works(client):
    """Whether the chain id comes back; an error is no, silence is a failure."""
    reply = client.call("eth_chainId", [])
    return reply.result == b'"0x7a69"'


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def restart(kind):
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="egw-restart-") as folder:
        path = os.path.join(folder, "n.ipc")
        with nodes.Anvil(port=port, path=path) as node, \
                gateway.Gateway([{"name": "anvil", "url": node.urls[kind]}], level="info") as gw:
            clients = [gw.client(k) for k in KINDS]
            for client in clients:
                tap.check(works(client), "before, over " + client.kind)
            node.process.kill()
            node.process.wait()
            for client in clients:
                tap.check(not works(client), "while it is away, over " + client.kind)
            with nodes.Anvil(port=port, path=path):
                began = time.monotonic()
                for client in clients:
                    tap.eventually(lambda c=client: works(c), 20, "again, over " + client.kind,
                                   0.05)
                tap.diag("%s: back after %.2f s" % (kind, time.monotonic() - began))
                for client in clients:
                    client.close()


class Watchers:
    """Client libraries that subscribe and print what they get; `names`: those that must be there."""

    def __init__(self, folder, gw, contract):
        self.folder, self.running, self.names = folder, [], []
        urls = interop.urls_of(gw)
        facts = os.path.join(folder, "facts.json")
        with open(facts, "w", encoding="utf-8") as file:
            json.dump({"contract": contract}, file)
        argv = [facts] + ["%s=%s" % (k, urls[k]) for k in ("ws", "ipc")]
        if interop.python():
            self.start("py", [interop.python(), interop.script("watch.py")] + argv, "web3.py")
        if shutil.which("node") and interop.node_package("viem") and interop.node_package("ethers"):
            self.start("js", ["node", interop.script("watch.mjs")] + argv, "viem", "ethers")

        alloy = os.path.join(nodes.tools_dir(), "bin", "interop-alloy")
        if os.access(alloy, os.X_OK):
            self.start("alloy", [alloy, "watch"] + argv, "alloy")

    def start(self, name, argv, *clients):
        self.names += ["%s %s" % (c, k) for c in clients for k in ("ws", "ipc")]
        env = dict(os.environ, EGW_INTEROP_DIR=nodes.tools_dir())
        with open(os.path.join(self.folder, name), "wb") as out:
            self.running.append((os.path.join(self.folder, name), subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env)))

    def lines(self, key):
        """What each has said: {name: [values of the key]}."""
        out = {name: [] for name in self.names}
        for path, process in self.running:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            tap.check(process.poll() is None, "a client has ended: " + text[-1500:])
            for line in text.splitlines(True):
                said = json.loads(line) if line.startswith("{") and line.endswith("\n") else {}
                tap.check("failed" not in said, "a subscription has failed: " + line)
                if key in said:
                    out[said["on"]].append(said[key])
        return out

    def until(self, key, want, what):
        """All have said just that."""
        try:
            tap.eventually(lambda: all(len(v) >= len(want) for v in self.lines(key).values()), 40,
                           what, 0.05)
        except tap.Failed:
            tap.diag("have: %r" % self.lines(key))
            raise
        for name, got in self.lines(key).items():
            tap.eq(got, want, "%s: %s" % (name, what))

    def end(self):
        for _, process in self.running:
            process.kill()
            process.wait()


def grow(node, contract, count):
    """So many blocks, with an event in each; the transactions."""
    out = []
    for i in range(count):
        before = node.ask("eth_blockNumber")
        out.append(node.ask("eth_sendTransaction", {
            "from": nodes.ACCOUNTS[0], "to": contract, "gas": hex(300000),
            "data": nodes.text_data("note(uint256,uint256,string)", "restart", i, i)}))
        tap.eventually(lambda b=before: node.ask("eth_blockNumber") != b, 20, "a new block")
    return out


def watched(kind):
    """anvil is ended and started again with its state, twice, while client libraries listen."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="egw-restart-") as folder:
        state = os.path.join(folder, "state.json")
        path = os.path.join(folder, "n.ipc")
        node = nodes.Anvil("--state", state, port=port, path=path)
        try:
            sent = node.ask("eth_sendTransaction", {"from": nodes.ACCOUNTS[0], "gas": hex(2000000),
                                                    "data": nodes.probe()["bytecode"]})
            contract = tap.eventually(lambda: node.ask("eth_getTransactionReceipt", sent), 20,
                                      "the contract is there")["contractAddress"]
            with gateway.Gateway([{"name": "anvil", "url": node.urls[kind]}], level="info",
                                 network={"poll_interval": "200ms"}) as gw:
                watchers = Watchers(folder, gw, contract)
                if not watchers.names:
                    raise tap.Skip("no client library is installed (t/interop/install)")
                try:
                    first = int(node.ask("eth_blockNumber"), 16) + 1
                    watchers.until("ready", [True], "they have subscribed")
                    logs = grow(node, contract, 3)
                    for _ in range(2):
                        watchers.until("log", logs, "logs")
                        node.stop()
                        node = nodes.Anvil("--state", state, port=port, path=path)
                        logs += grow(node, contract, 3)
                    watchers.until("log", logs, "logs")
                    watchers.until("head", list(range(first, first + 9)), "heads")
                    hashes = [node.ask("eth_getBlockByNumber", hex(n), False)["hash"]
                              for n in range(first, first + 9)]
                    watchers.names = [n for n in watchers.names if not n.startswith("ethers")]
                    watchers.until("hash", hashes, "hashes of heads")
                    tap.diag("clients: %s" % ", ".join(watchers.names))
                finally:
                    watchers.end()
        finally:
            node.stop()


gateway.need_program()
if nodes.program("anvil") is None:
    tap.skip_all("anvil is not installed (t/interop/install node)")
tap.watchdog(400)
for upstream in KINDS:
    tap.run("anvil is killed and comes back, upstream over %s" % upstream, restart, upstream)
for upstream in KINDS:
    if gateway.has_transport(upstream):
        tap.run("subscriptions go on while anvil is restarted, upstream over %s" % upstream, watched,
                upstream)
tap.done()
