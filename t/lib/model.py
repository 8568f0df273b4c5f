# SPDX-License-Identifier: MIT
"""A chain as a function of a seed: state 0, 1, 2 ... differ by a new block or a reorg, and
every process that knows the seed knows them all. A node at state k answers serve(model, k, ..);
so what is right is known without asking."""
import bisect
import functools
import hashlib
import json
import random

DEPTH = 6           # of the deepest reorg
FINAL = 16          # blocks behind the tip: deeper than any reorg
SAFE = 8
REORGS = 0.15       # share of the steps
ADDRESS = "0x" + "0c" * 20


class Refused(Exception):
    """The node answers with an error."""


def word(*parts):
    return "0x" + hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()


class Block:
    __slots__ = ("number", "hash", "parent", "txs", "born", "logs")

    def __init__(self, number, name, parent, txs, born):
        self.number, self.hash, self.parent = number, name, parent
        self.txs, self.born = txs, born
        self.logs = int(name[-1], 16) % 3


class Model:
    """tips[k]: the tip's number at state k, which never decreases. new[k]: the blocks that are
    new then."""

    def __init__(self, seed, blocks=40):
        self.seed, self.dice = seed, random.Random(seed)
        self.by_hash, self.of_tx = {}, {}
        self.canon = []             # by number: [(state, block that is canonical from then on)]
        self.tips, self.new = [], []
        self._tip = None
        first = [self._block(0, []) for _ in range(blocks)]
        self.tips.append(blocks - 1)
        self.new.append(first)

    def _block(self, k, carried):
        number = 0 if self._tip is None else self._tip.number + 1
        parent = "0x" + "00" * 32 if self._tip is None else self._tip.hash
        name = word(self.seed, "block", len(self.by_hash))
        txs = [word(name, i) for i in range(self.dice.randrange(4))] + carried
        block = Block(number, name, parent, txs, k)
        self.by_hash[name] = block
        for tx in txs:
            self.of_tx.setdefault(tx, []).append(block)
        if number == len(self.canon):
            self.canon.append([])
        self.canon[number].append((k, block))
        self._tip = block
        return block

    def grow(self, k):
        """Makes the states up to k."""
        while len(self.tips) <= k:
            self._step(len(self.tips))

    def _step(self, k):
        if self.dice.random() >= REORGS:
            new = [self._block(k, [])]
        else:
            depth = self.dice.randint(1, DEPTH)
            gone = [self.canon[n][-1][1]
                    for n in range(self._tip.number - depth + 1, self._tip.number + 1)]
            carried = [tx for block in gone for tx in block.txs if self.dice.random() < 0.7]
            self._tip = self.canon[self._tip.number - depth][-1][1]
            new = [self._block(k, carried if i == 0 else []) for i in range(depth + 1)]
        self.new.append(new)
        self.tips.append(self._tip.number)

    def at(self, k, number):
        """The canonical block of a number at state k, or None."""
        if not 0 <= number <= self.tips[k]:
            return None
        for since, block in reversed(self.canon[number]):
            if since <= k:
                return block
        return None

    def place(self, k, tx):
        """The block that a transaction is in at state k, or None."""
        for block in self.of_tx.get(tx, ()):
            if block.born <= k and self.at(k, block.number) is block:
                return block
        return None

    def since(self, number):
        """The first state whose tip is at least `number`."""
        return bisect.bisect_left(self.tips, number)

    def find(self, k, block):
        """The block that a parameter names at state k, or None."""
        if isinstance(block, dict):
            found = self.find(k, block.get("blockHash") or block["blockNumber"])
            if found is not None and block.get("requireCanonical") and \
                    self.at(k, found.number) is not found:
                raise Refused("hash is not currently canonical")
            return found
        if block == "latest":
            return self.at(k, self.tips[k])
        if block in ("safe", "finalized"):
            return self.at(k, max(0, self.tips[k] - (SAFE if block == "safe" else FINAL)))
        if block == "earliest":
            return self.at(k, 0)
        if len(block) == 66:
            found = self.by_hash.get(block)
            return found if found is not None and found.born <= k else None
        return self.at(k, int(block, 16))


# --- what a node says ---------------------------------------------------------------------

def _json(value):
    return json.dumps(value, separators=(",", ":")).encode()


def header(block):
    return {"number": hex(block.number), "hash": block.hash, "parentHash": block.parent,
            "timestamp": hex(1700000000 + block.number), "gasLimit": "0x1c9c380",
            "gasUsed": "0x0", "extraData": "0x", "miner": ADDRESS, "baseFeePerGas": "0x7"}


def _tx(block, tx):
    return {"hash": tx, "blockHash": block.hash, "blockNumber": hex(block.number),
            "transactionIndex": hex(block.txs.index(tx)), "input": "0x"}


def _logs(block):
    return [{"address": ADDRESS, "blockHash": block.hash, "blockNumber": hex(block.number),
             "logIndex": hex(i), "topics": [], "data": "0x", "removed": False}
            for i in range(block.logs)]


def _receipt(block, tx):
    return {"transactionHash": tx, "blockHash": block.hash, "blockNumber": hex(block.number),
            "status": "0x1", "logs": []}


@functools.lru_cache(20000)
def _block_text(block, full):
    txs = [_tx(block, tx) for tx in block.txs] if full else block.txs
    return _json(dict(header(block), transactions=txs, uncles=[]))


@functools.lru_cache(20000)
def _receipts_text(block):
    return _json([_receipt(block, tx) for tx in block.txs])


def _block_answer(model, k, params):
    found = model.find(k, params[0])
    return b"null" if found is None else _block_text(found, params[1])


def _state(model, k, method, params):
    found = model.find(k, params[-1])
    if found is None:
        raise Refused("header not found")
    return b'"%s"' % word(method, found.hash, *params[:-1]).encode()


def _log_answer(model, k, params):
    what = params[0]
    if "blockHash" in what:
        found = model.find(k, what["blockHash"])
        if found is None:
            raise Refused("unknown block")
        return _json(_logs(found))
    # As some nodes do: a range that ends above the tip is answered as far as it goes.
    low, high = (int(what[name], 16) for name in ("fromBlock", "toBlock"))
    return _json([log for n in range(low, min(high, model.tips[k]) + 1)
                  for log in _logs(model.at(k, n))])


def _tx_answer(model, k, params, form):
    block = model.place(k, params[0])
    return b"null" if block is None else _json(form(block, params[0]))


def _receipts_answer(model, k, params):
    found = model.find(k, params[0])
    return b"null" if found is None else _receipts_text(found)


_FIXED = {"eth_chainId": b'"0x1"', "net_version": b'"1"', "eth_syncing": b"false",
          "web3_clientVersion": b'"model/1"', "net_peerCount": b'"0x5"',
          "net_listening": b"true"}
_STATE = ("eth_getBalance", "eth_call", "eth_getStorageAt", "eth_getCode",
          "eth_getTransactionCount")


def serve(model, k, method, params):
    """The raw result of a node at state k; Refused: an error."""
    if method in _STATE:
        return _state(model, k, method, params)
    if method in ("eth_getBlockByNumber", "eth_getBlockByHash"):
        return _block_answer(model, k, params)
    if method == "eth_blockNumber":
        return b'"0x%x"' % model.tips[k]
    if method == "eth_getBlockReceipts":
        return _receipts_answer(model, k, params)
    if method == "eth_getTransactionReceipt":
        return _tx_answer(model, k, params, _receipt)
    if method == "eth_getTransactionByHash":
        return _tx_answer(model, k, params, _tx)
    if method == "eth_getLogs":
        return _log_answer(model, k, params)
    if method in _FIXED:
        return _FIXED[method]
    raise Refused("the method %s does not exist" % method)
