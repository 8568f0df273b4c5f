# SPDX-License-Identifier: MIT
"""A small block chain for fake nodes: several nodes may share one, or each see a View of it.
All answers are functions of the parameters and of the blocks, so that a test knows what is
right.

    chain = Chain(live=True)    state reads depend on the block, as on a real node
    View(chain, lag=5)          the same chain as a node sees it that is five blocks behind"""
import hashlib
import threading

import rawjson
from keccak import keccak256


def word(*parts):
    """A 32-byte hex string made from the parts."""
    return "0x" + hashlib.sha256("/".join(str(p) for p in parts).encode()).hexdigest()


def tx_hash(text):
    """The hash of a raw transaction, given as hex; of what is none: something."""
    try:
        return "0x" + keccak256(bytes.fromhex(text[2:])).hex()
    except (TypeError, ValueError):
        return word("sent", text)


def of_params(method, params):
    """The answer (raw JSON) of methods that are a function of their parameters' bytes."""
    digest = hashlib.sha256(method.encode() + b" " + params).hexdigest()
    return b'"0x' + digest.encode() + b'"'


class NodeError(Exception):
    """What a node answers with an error object."""

    def __init__(self, code, message):
        Exception.__init__(self, message)
        self.code, self.message = code, message


# Methods that read state, and which parameter says at what block.
STATE = {"eth_getBalance": 1, "eth_call": 1, "eth_getStorageAt": 2, "eth_getCode": 1,
         "eth_estimateGas": 1, "eth_getTransactionCount": 1, "eth_getProof": 2,
         "debug_traceCall": 1, "eth_createAccessList": 1}


class Chain:
    PURE = ("eth_getBalance", "eth_call", "eth_getStorageAt", "eth_getCode", "eth_estimateGas",
            "eth_getTransactionCount", "eth_getProof", "debug_traceTransaction",
            "eth_feeHistory", "debug_traceCall", "eth_createAccessList")

    def __init__(self, blocks=20, chain_id=1, live=False):
        self.lock = threading.RLock()
        self.chain_id = chain_id
        self.live = live             # state and logs are those of blocks
        self.pool = []               # hashes of transactions that wait
        self.put = {}                # block hash -> transactions from the pool in it
        self.at = {}                 # transaction -> hashes of all blocks it was ever in
        self.safe, self.final = 2, 5  # blocks behind the tip
        self.headers = []            # canonical, by number
        self.by_hash = {}
        self.sent = []               # raw transactions, as hex strings
        self.watchers = []           # functions called with each new header
        self.fork = 0
        for _ in range(blocks + 1):
            self.mine(quiet=True)

    def header(self, number, parent, **extra):
        head = {"number": hex(number), "hash": word("block", self.fork, number, parent),
                "parentHash": parent, "timestamp": hex(1700000000 + 12 * number),
                "stateRoot": word("state", self.fork, number), "gasLimit": "0x1c9c380",
                "gasUsed": hex(21000 * number), "extraData": "0x", "miner": "0x" + "00" * 20,
                "logsBloom": "0x" + "00" * 256, "baseFeePerGas": "0x7"}
        head.update(extra)
        return head

    def mine(self, quiet=False, **extra):
        """One more block; the header."""
        with self.lock:
            parent = self.headers[-1]["hash"] if self.headers else "0x" + "00" * 32
            head = self.header(len(self.headers), parent, **extra)
            self.put[head["hash"]] = list(self.pool)
            self.pool.clear()
            self.headers.append(head)
            self.by_hash[head["hash"]] = head
            for tx in self.transactions(head):
                self.at.setdefault(tx, []).append(head["hash"])
        if not quiet:
            self.announce(head)
        return head

    def announce(self, head):
        for watcher in list(self.watchers):
            watcher(head)

    def reorg(self, depth, drop=()):
        """Replaces the last `depth` blocks by as many others; announces the new ones. What was
        in them from the pool gets into the first of the new ones, but for those in `drop`."""
        with self.lock:
            for head in self.headers[len(self.headers) - depth:]:
                del self.by_hash[head["hash"]]
                self.pool += self.put[head["hash"]]
            del self.headers[len(self.headers) - depth:]
            self.fork += 1
            self.pool[:] = [tx for tx in self.pool if tx not in drop]
            heads = [self.mine(quiet=True) for _ in range(depth)]
        for head in heads:
            self.announce(head)
        return heads

    def number(self):
        """The highest block that is seen."""
        with self.lock:
            return len(self.headers) - 1

    def transactions(self, head):
        return [word("tx", head["hash"], i) for i in range(2)] + self.put[head["hash"]]

    def block(self, head, full=False):
        if head is None:
            return None
        txs = self.transactions(head)
        if full:
            txs = [self.transaction(t, head, i) for i, t in enumerate(txs)]
        return dict(head, transactions=txs, uncles=[], size="0x220")

    @staticmethod
    def transaction(tx, head, index):
        """The transaction; head None: as it waits in the pool."""
        return {"hash": tx, "blockNumber": head and head["number"],
                "blockHash": head and head["hash"], "transactionIndex":
                None if head is None else hex(index)}

    def place(self, tx):
        """(header, index) of a transaction on the chain that is seen, or None."""
        with self.lock:
            for name in self.at.get(tx, ()):
                head = self.find(name)
                if head is not None:
                    return head, self.transactions(head).index(tx)
        return None

    def find(self, tag):
        """The header for a number, tag, or hash; None if there is none."""
        with self.lock:
            top = self.number()
            if tag in ("latest", "pending"):
                return self.headers[top]
            if tag in ("safe", "finalized"):
                return self.headers[max(0, top - (self.safe if tag == "safe" else self.final))]
            if tag == "earliest":
                return self.headers[0]
            if isinstance(tag, str) and len(tag) == 66:
                head = self.by_hash.get(tag)
                return head if head is not None and int(head["number"], 16) <= top else None
            number = int(tag, 16)
            return self.headers[number] if number <= top else None

    def find_id(self, block):
        """The same for an object of EIP-1898, too; NodeError if there is none."""
        if isinstance(block, dict):
            block = block["blockHash"] if "blockHash" in block else block["blockNumber"]
        head = self.find(block)
        if head is None:
            raise NodeError(-32000, "header not found")
        return head

    def state(self, method, params):
        """A state read: a function of the method, the block and the other parameters."""
        at = STATE[method]
        block = params[at] if len(params) > at else "latest"
        with self.lock:
            extra = list(self.pool) if block == "pending" else []
            key = [self.find_id(block)["hash"], params[:at], params[at + 1:]] + extra
        return of_params(method, rawjson.compact(key))

    def answer(self, method, raw_params):
        """The raw result, or None for a method there is not. NodeError: a node's error."""
        if self.live and method in STATE:
            return self.state(method, rawjson.parse(raw_params))
        if method in self.PURE:
            return of_params(method, raw_params)
        handler = getattr(self, "do_" + method, None)
        if handler is None:
            return None
        params = rawjson.parse(raw_params) if raw_params else []
        return rawjson.compact(handler(params))

    def do_eth_chainId(self, _):
        return hex(self.chain_id)

    def do_net_version(self, _):
        return str(self.chain_id)

    def do_web3_clientVersion(self, _):
        return "fakenode/1.0"

    def do_eth_syncing(self, _):
        return False

    def do_net_listening(self, _):
        return True

    def do_net_peerCount(self, _):
        return "0x19"

    def do_eth_accounts(self, _):
        return []

    def do_eth_gasPrice(self, _):
        return "0x3b9aca00"

    def do_eth_blockNumber(self, _):
        return hex(self.number())

    def do_eth_getBlockByNumber(self, params):
        return self.block(self.find(params[0]), len(params) > 1 and params[1])

    def do_eth_getBlockByHash(self, params):
        return self.block(self.find(params[0]), len(params) > 1 and params[1])

    def do_eth_getBlockReceipts(self, params):
        name = params[0]
        if isinstance(name, dict):
            name = name.get("blockHash") or name["blockNumber"]
        block = self.block(self.find(name))
        return block and [self.receipt(block, i) for i in range(len(block["transactions"]))]

    @staticmethod
    def receipt(block, i):
        return {"transactionHash": block["transactions"][i], "blockHash": block["hash"],
                "blockNumber": block["number"], "status": "0x1", "logs": []}

    def do_eth_getTransactionReceipt(self, params):
        place = self.place(params[0])
        return place and self.receipt(self.block(place[0]), place[1])

    def do_eth_getTransactionByHash(self, params):
        with self.lock:
            if params[0] in self.pool:
                return self.transaction(params[0], None, None)
        place = self.place(params[0])
        return place and self.transaction(params[0], *place)

    def do_eth_getLogs(self, params):
        """live: one log in each block."""
        if not self.live:
            return []
        what = params[0]
        with self.lock:
            if "blockHash" in what:
                heads = [self.find_id(what["blockHash"])]
            else:
                low, high = (int(self.find_id(what.get(k, "latest"))["number"], 16)
                             for k in ("fromBlock", "toBlock"))
                heads = self.headers[low:high + 1]
        return [{"address": "0x" + "0c" * 20, "blockHash": h["hash"],
                 "blockNumber": h["number"], "transactionHash": self.transactions(h)[0],
                 "transactionIndex": "0x0", "logIndex": "0x0", "data": "0x", "topics": [],
                 "removed": False} for h in heads]

    def do_eth_sendRawTransaction(self, params):
        name = tx_hash(params[0])
        with self.lock:
            self.sent.append(params[0])
            if name not in self.pool and name not in self.at:
                self.pool.append(name)
        return name


class View(Chain):
    """A chain as a node sees it that is `lag` blocks behind, or knows none above `cap`. Blocks
    are made by the chain itself."""

    def __init__(self, chain, lag=0, cap=None):
        # pylint: disable=super-init-not-called
        self.base, self.lag, self.cap = chain, lag, cap
        self.watchers = []
        chain.watchers.append(self._follow)

    def __getattr__(self, name):
        return getattr(self.base, name)

    def number(self):
        with self.base.lock:
            top = len(self.base.headers) - 1 - self.lag
            return max(0, top if self.cap is None else min(top, self.cap))

    def mine(self, quiet=False, **extra):
        raise RuntimeError("blocks are made by the chain")

    def reorg(self, depth, drop=()):
        raise RuntimeError("blocks are made by the chain")

    def _follow(self, head):
        number = int(head["number"], 16) - self.lag
        if number >= 0 and (self.cap is None or number <= self.cap):
            self.announce(self.base.headers[number])

    def set_lag(self, lag):
        """Catches up (announcing what is new), or falls behind."""
        with self.base.lock:
            before, self.lag = self.number(), lag
            new = self.base.headers[before + 1:self.number() + 1]
        for head in new:
            self.announce(head)
