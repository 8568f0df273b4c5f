# SPDX-License-Identifier: MIT
"""A small block chain for fake nodes: several nodes may share one. All answers are functions
of the parameters and of the blocks, so that a test knows what is right."""
import hashlib
import threading

import rawjson


def word(*parts):
    """A 32-byte hex string made from the parts."""
    return "0x" + hashlib.sha256("/".join(str(p) for p in parts).encode()).hexdigest()


def of_params(method, params):
    """The answer (raw JSON) of methods that are a function of their parameters' bytes."""
    digest = hashlib.sha256(method.encode() + b" " + params).hexdigest()
    return b'"0x' + digest.encode() + b'"'


class Chain:
    PURE = ("eth_getBalance", "eth_call", "eth_getStorageAt", "eth_getCode", "eth_estimateGas",
            "eth_getTransactionCount", "eth_getProof", "debug_traceTransaction",
            "eth_feeHistory", "debug_traceCall", "eth_createAccessList")

    def __init__(self, blocks=20, chain_id=1):
        self.lock = threading.RLock()
        self.chain_id = chain_id
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
            self.headers.append(head)
            self.by_hash[head["hash"]] = head
        if not quiet:
            self.announce(head)
        return head

    def announce(self, head):
        for watcher in list(self.watchers):
            watcher(head)

    def reorg(self, depth):
        """Replaces the last `depth` blocks by as many others; announces the new ones."""
        with self.lock:
            for head in self.headers[len(self.headers) - depth:]:
                del self.by_hash[head["hash"]]
            del self.headers[len(self.headers) - depth:]
            self.fork += 1
        return [self.mine() for _ in range(depth)]

    def number(self):
        with self.lock:
            return len(self.headers) - 1

    def block(self, head, full=False):
        if head is None:
            return None
        number = int(head["number"], 16)
        txs = [word("tx", head["hash"], i) for i in range(2)]
        if full:
            txs = [{"hash": t, "blockNumber": hex(number), "blockHash": head["hash"],
                    "transactionIndex": hex(i)} for i, t in enumerate(txs)]
        return dict(head, transactions=txs, uncles=[], size="0x220")

    def find(self, tag):
        """The header for a number, tag, or hash; None if there is none."""
        with self.lock:
            if tag in ("latest", "pending"):
                return self.headers[-1]
            if tag in ("safe", "finalized"):
                return self.headers[max(0, len(self.headers) - (3 if tag == "safe" else 6))]
            if tag == "earliest":
                return self.headers[0]
            if isinstance(tag, str) and len(tag) == 66:
                return self.by_hash.get(tag)
            number = int(tag, 16)
            return self.headers[number] if number < len(self.headers) else None

    def answer(self, method, raw_params):
        """The raw result, or None for a method there is not."""
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
        block = self.block(self.find(params[0]))
        return block and [self.receipt(block, i) for i in range(len(block["transactions"]))]

    @staticmethod
    def receipt(block, i):
        return {"transactionHash": block["transactions"][i], "blockHash": block["hash"],
                "blockNumber": block["number"], "status": "0x1", "logs": []}

    def do_eth_getTransactionReceipt(self, params):
        with self.lock:
            for head in self.headers:
                block = self.block(head)
                if params[0] in block["transactions"]:
                    return self.receipt(block, block["transactions"].index(params[0]))
        return None

    def do_eth_getLogs(self, _):
        return []

    def do_eth_sendRawTransaction(self, params):
        with self.lock:
            self.sent.append(params[0])
        return word("sent", params[0])
