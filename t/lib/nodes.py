# SPDX-License-Identifier: MIT
"""Real nodes for tests: where their programs are, how they start, and a chain to ask about.

Programs are looked up on PATH and in the folder of the interop tools (t/interop/install): see
tools_dir(). Nothing is downloaded here.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import clients
import gateway
import rawjson
from tap import Failed, check, eventually, limit

INTEROP = os.path.join(gateway.SOURCE, "t", "interop")

# Anvil's well-known development accounts: the first three of "test test ... junk".
KEYS = ("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
        "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a")
ACCOUNTS = ("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
            "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
            "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc")
UNKNOWN_HASH = "0x" + "ab" * 32


def tools_dir():
    """Where t/interop/install puts what it installs."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("EGW_INTEROP_DIR") or os.path.join(cache, "ethrpc-gw-interop")


def program(name):
    """The path of a node's program, or None: $EGW_<NAME>, the tools' folder, PATH."""
    told = os.environ.get("EGW_" + name.upper())
    if told:
        return told if os.access(told, os.X_OK) else None
    top = tools_dir()
    for path in (os.path.join(top, "bin", name),
                 os.path.join(top, "node_modules", "@foundry-rs", name + "-linux-amd64", "bin",
                              name)):
        if os.access(path, os.X_OK):
            return path
    return shutil.which(name)


class PlainHttp(clients.HttpClient):
    """A client for nodes, which may frame their answers as they like."""

    def recv(self, timeout=None):
        return self.response(timeout=timeout).body.strip()


class Node:
    """A running node: `urls` by kind ("http", "ws", "ipc"), `ports`, `path` of the socket."""

    name = "node"

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="egw-node-")
        self.path = os.path.join(self.dir, "n.ipc")
        self.log = os.path.join(self.dir, "log")
        self.process = None
        self.ports = {}
        self.urls = {}
        self._asker = None

    def launch(self, argv, env=None):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, env=env)

    def output(self):
        with open(self.log, "r", errors="replace") as log:
            return log.read()

    def until(self, pattern, timeout=60):
        """Waits for a line of the node's output; the match."""
        def seen():
            found = re.search(pattern, self.output())
            if not found and self.process.poll() is not None:
                raise Failed("%s ended with %d: %s" % (self.name, self.process.returncode,
                                                       self.output()[-2000:]))
            return found
        return eventually(seen, timeout, "%s says %r" % (self.name, pattern), 0.02)

    def client(self, kind, timeout=30):
        """A raw client straight to the node."""
        if kind == "http":
            return PlainHttp(self.ports["http"], timeout=timeout)
        if kind == "ws":
            return clients.WsClient(self.ports["ws"], timeout=timeout)
        return clients.IpcClient(self.path, timeout=timeout)

    def ask(self, method, *params):
        """One call by HTTP; the parsed result."""
        if self._asker is None:
            self._asker = self.client("http")
        return rawjson.parse(self._asker.call(method, list(params)).ok())

    def stop(self):
        if self._asker is not None:
            self._asker.close()
            self._asker = None
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(limit(20))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Anvil(Node):
    """HTTP and WebSocket on one port, and IPC; the same chain on every run."""

    name = "anvil"

    def __init__(self, *options, port=0, path=None):
        Node.__init__(self)
        self.path = path or self.path
        self.launch([program("anvil"), "--port", str(port), "--timestamp", "1700000000",
                     "--ipc", self.path, "--threads", "2", *options])
        try:
            port = int(self.until(r"Listening on 127\.0\.0\.1:([0-9]+)").group(1))
            self.ports = {"http": port, "ws": port}
            self.urls = {"http": "http://127.0.0.1:%d" % port, "ws": "ws://127.0.0.1:%d" % port,
                         "ipc": "ipc://" + self.path}
            self.ask("anvil_setBlockTimestampInterval", 12)
        except BaseException:
            self.stop()
            raise


class Geth(Node):
    """geth: a development chain (`--dev`), or the chain of a folder with genesis.json and
    chain.rlp."""

    name = "geth"

    def __init__(self, chain=None):
        Node.__init__(self)
        data = os.path.join(self.dir, "data")
        common = [program("geth"), "--datadir", data, "--verbosity", "3"]
        try:
            if chain:
                self._import(common, chain)
            self.launch(common + ([] if chain else ["--dev"]) + [
                "--nodiscover", "--maxpeers", "0", "--ipcpath", self.path,
                "--http", "--http.port", "0", "--http.api", "eth,net,web3,debug,txpool",
                "--ws", "--ws.port", "0", "--ws.api", "eth,net,web3,debug,txpool",
                "--authrpc.port", "0", "--port", "0", "--rpc.txfeecap", "0"])
            http = self.until(r"HTTP server started\s+endpoint=127\.0\.0\.1:([0-9]+) auth=false")
            ws = self.until(r"WebSocket enabled\s+url=ws://127\.0\.0\.1:([0-9]+)")
            eventually(lambda: os.path.exists(self.path), 20, "geth's socket")
            self.ports = {"http": int(http.group(1)), "ws": int(ws.group(1))}
            self.urls = {"http": "http://127.0.0.1:%d" % self.ports["http"],
                         "ws": "ws://127.0.0.1:%d" % self.ports["ws"],
                         "ipc": "ipc://" + self.path}
        except BaseException:
            self.stop()
            raise

    def _import(self, common, chain):
        for step in (["init", os.path.join(chain, "genesis.json")],
                     ["import", os.path.join(chain, "chain.rlp")]):
            done = subprocess.run(common + step, stdin=subprocess.DEVNULL, timeout=limit(120),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            check(done.returncode == 0, "geth %s: %s" % (step[0], done.stdout.decode(
                errors="replace")[-2000:]))


# --- a chain to ask about ---------------------------------------------------------------

def probe():
    """The test contract: selectors, abi, bytecode."""
    with open(os.path.join(INTEROP, "Probe.json"), encoding="utf-8") as file:
        return json.load(file)


def word(value):
    """A number or an address as 32 bytes of hex."""
    if isinstance(value, str):
        return value[2:].lower().rjust(64, "0")
    return "%064x" % value


def call_data(signature, *words):
    return "0x" + probe()["selectors"][signature] + "".join(word(w) for w in words)


def text_data(signature, text, *words):
    """Call data for words followed by one string."""
    raw = text.encode("utf-8")
    body = raw.hex().ljust((len(raw) + 31) // 32 * 64, "0")
    head = "".join(word(w) for w in words) + word(32 * (len(words) + 1))
    return "0x" + probe()["selectors"][signature] + head + word(len(raw)) + body


def _sent(node, transaction):
    """Sends from an unlocked account and waits for the receipt."""
    tx_hash = node.ask("eth_sendTransaction", transaction)

    def receipt():
        try:
            return node.ask("eth_getTransactionReceipt", tx_hash)
        except Failed as error:
            # geth says so while it is starting up.
            if "indexing is in progress" in str(error):
                return None
            raise
    return eventually(receipt, 30, "receipt")


def furnish(node, big=120):
    """Deploys the contract, makes events and transfers, and one block of `big` transfers. Gives
    the facts that clients ask about. For anvil."""
    one, two, three = ACCOUNTS
    fees = {"maxFeePerGas": hex(10 ** 11), "maxPriorityFeePerGas": hex(10 ** 9)}
    made = _sent(node, {"from": one, "data": probe()["bytecode"], "gas": hex(2000000), **fees})
    contract = made["contractAddress"]
    noted = []
    for key, text in ((1, "first"), (2, "zwei \u00fc \u20ac \U0001f600"), (3, 'with "quotes" }')):
        noted.append(_sent(node, {
            "from": one, "to": contract, "gas": hex(300000), **fees,
            "data": text_data("note(uint256,uint256,string)", text, key, key * 1000)}))
    paid = _sent(node, {"from": one, "to": two, "value": hex(10 ** 18), "gas": hex(21000), **fees})
    node.ask("evm_setAutomine", False)
    nonce = int(node.ask("eth_getTransactionCount", three, "latest"), 16)
    for i in range(big):
        node.ask("eth_sendTransaction", {"from": three, "to": one, "value": hex(i + 1),
                                         "gas": hex(21000), "nonce": hex(nonce + i), **fees})
    node.ask("evm_mine")
    node.ask("evm_setAutomine", True)
    made_by_one = int(node.ask("eth_getTransactionCount", one, "latest"), 16)
    signed = {n: node.ask("eth_signTransaction", {
        "from": one, "to": contract, "gas": hex(300000), **fees, "nonce": hex(n),
        "data": text_data("note(uint256,uint256,string)", "signed %d" % n, 1000 + n, n)})
              for n in [0] + list(range(made_by_one, made_by_one + 20))}
    latest = node.ask("eth_getBlockByNumber", "latest", False)
    check(len(latest["transactions"]) == big, "the big block has %d transactions"
          % len(latest["transactions"]))
    return {"chain_id": int(node.ask("eth_chainId"), 16), "contract": contract,
            "accounts": list(ACCOUNTS), "keys": list(KEYS), "abi": probe()["abi"],
            "selectors": probe()["selectors"], "signed": signed,
            "deployed": made["transactionHash"], "noted": [n["transactionHash"] for n in noted],
            "noted_blocks": [int(n["blockNumber"], 16) for n in noted],
            "noted_hash": noted[0]["blockHash"], "paid": paid["transactionHash"],
            "big_block": int(latest["number"], 16), "big_hash": latest["hash"],
            "unknown_hash": UNKNOWN_HASH}


def _indexed(node):
    """Waits until geth answers for unknown transactions, too."""
    def answered():
        try:
            return node.ask("eth_getTransactionReceipt", UNKNOWN_HASH) is None
        except Failed:
            return False
    eventually(answered, 60, "geth has indexed its transactions", 0.1)


def furnish_geth(node):
    """The same for a development geth, with the account that it holds the key of."""
    who = node.ask("eth_accounts")[0]
    made = _sent(node, {"from": who, "data": probe()["bytecode"], "gas": hex(2000000)})
    contract = made["contractAddress"]
    noted = [_sent(node, {"from": who, "to": contract, "gas": hex(300000),
                          "data": text_data("note(uint256,uint256,string)", "note %d" % key, key,
                                            key * 1000)}) for key in (1, 2, 3)]
    paid = _sent(node, {"from": who, "to": ACCOUNTS[1], "value": hex(10 ** 18),
                        "gas": hex(21000)})
    _indexed(node)
    return {"contract": contract, "accounts": [who] + list(ACCOUNTS[1:]),
            "bytecode": probe()["bytecode"], "deployed": made["transactionHash"],
            "noted": [n["transactionHash"] for n in noted], "noted_hash": noted[0]["blockHash"],
            "paid": paid["transactionHash"], "big_block": int(paid["blockNumber"], 16),
            "big_hash": paid["blockHash"], "unknown_hash": UNKNOWN_HASH}


def facts_of_chain(node):
    """Facts about a chain that is there: the last block with transactions."""
    _indexed(node)
    number = int(node.ask("eth_blockNumber"), 16)
    blocks = [node.ask("eth_getBlockByNumber", hex(n), True) for n in range(number, 0, -1)]
    busy = [b for b in blocks if b["transactions"]]
    txs = [t for b in busy for t in b["transactions"]]
    calls = [t for t in txs if t["to"] and t["input"] != "0x"] or txs
    made = [t for t in txs if t["to"] is None] or txs
    return {"contract": calls[0]["to"], "accounts": [txs[0]["from"]], "deployed": made[0]["hash"],
            "bytecode": probe()["bytecode"], "noted": [t["hash"] for t in calls[:3]],
            "noted_hash": calls[0]["blockHash"], "paid": txs[-1]["hash"],
            "big_block": int(busy[0]["number"], 16), "big_hash": busy[0]["hash"],
            "unknown_hash": UNKNOWN_HASH}
