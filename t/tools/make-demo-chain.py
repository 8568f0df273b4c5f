#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes etc/demo.io, the recording of the demo chain: starts anvil, plays a few blocks (transfers
of ether and of a token, an approval, a transaction that fails), and records what clients ask.

    make-demo-chain.py ANVIL > etc/demo.io

The chain is the same on every run with one version of anvil."""
import http.client
import json
import socket
import subprocess
import sys
import time

# demo-token.sol
TOKEN_CODE = (
    "6080604052348015600f57600080fd5b5060405161065d38038061065d833981016040819052602c9160"
    "7b565b600081815533808252600160209081526040808420859055518481529192917fddf252ad1be2c8"
    "9b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef910160405180910390a3506093565b6000"
    "60208284031215608c57600080fd5b5051919050565b6105bb806100a26000396000f3fe608060405234"
    "801561001057600080fd5b50600436106100935760003560e01c8063313ce56711610066578063313ce5"
    "671461012457806370a082311461013e57806395d89b411461015e578063a9059cbb14610181578063dd"
    "62ed3e1461019457600080fd5b806306fdde0314610098578063095ea7b3146100d757806318160ddd14"
    "6100fa57806323b872dd14610111575b600080fd5b6100c16040518060400160405280600a8152602001"
    "692232b6b7902a37b5b2b760b11b81525081565b6040516100ce9190610459565b60405180910390f35b"
    "6100ea6100e53660046104c3565b6101bf565b60405190151581526020016100ce565b61010360005481"
    "565b6040519081526020016100ce565b6100ea61011f3660046104ed565b61022c565b61012c60128156"
    "5b60405160ff90911681526020016100ce565b61010361014c36600461052a565b600160205260009081"
    "52604090205481565b6100c16040518060400160405280600481526020016344454d4f60e01b81525081"
    "565b6100ea61018f3660046104c3565b6102f5565b6101036101a236600461054c565b60026020908152"
    "6000928352604080842090915290825290205481565b3360008181526002602090815260408083206001"
    "600160a01b038716808552925280832085905551919290917f8c5be1e5ebec7d5bd14f71427d1e84f3dd"
    "0314c0f7b2291e5b200ac8c7c3b9259061021a9086815260200190565b60405180910390a35060015b92"
    "915050565b6001600160a01b038316600090815260026020908152604080832033845290915281205482"
    "8110156102b15760405162461bcd60e51b8152602060048201526024808201527f44454d4f3a20747261"
    "6e7366657220657863656564732074686520616c6c6f77604482015263616e636560e01b606482015260"
    "84015b60405180910390fd5b6102bb8382610595565b6001600160a01b03861660009081526002602090"
    "815260408083203384529091529020556102ea85858561030b565b506001949350505050565b60006103"
    "0233848461030b565b50600192915050565b6001600160a01b0383166000908152600160205260409020"
    "548181101561035e5760405163db42144d60e01b81526001600160a01b03851660048201526024810182"
    "9052604481018390526064016102a8565b6001600160a01b0383166103bf5760405162461bcd60e51b81"
    "5260206004820152602260248201527f44454d4f3a207472616e7366657220746f20746865207a65726f"
    "206164647265604482015261737360f01b60648201526084016102a8565b6103c98282610595565b6001"
    "600160a01b03808616600090815260016020526040808220939093559085168152908120805484929061"
    "03ff9084906105a8565b92505081905550826001600160a01b0316846001600160a01b03167fddf252ad"
    "1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef8460405161044b91815260200190"
    "565b60405180910390a350505050565b602081526000825180602084015260005b818110156104875760"
    "20818601810151604086840101520161046a565b506000604082850101526040601f19601f8301168401"
    "0191505092915050565b80356001600160a01b03811681146104be57600080fd5b919050565b60008060"
    "4083850312156104d657600080fd5b6104df836104a7565b946020939093013593505050565b60008060"
    "006060848603121561050257600080fd5b61050b846104a7565b9250610519602085016104a7565b9295"
    "92945050506040919091013590565b60006020828403121561053c57600080fd5b610545826104a7565b"
    "9392505050565b6000806040838503121561055f57600080fd5b610568836104a7565b91506105766020"
    "84016104a7565b90509250929050565b634e487b7160e01b600052601160045260246000fd5b81810381"
    "8111156102265761022661057f565b808201808211156102265761022661057f56"
)
SUPPLY = 10**24
ETHER, GWEI = 10**18, 10**9
BLOCKS = 16

TRANSFER, APPROVE, TRANSFER_FROM = "a9059cbb", "095ea7b3", "23b872dd"
BALANCE_OF, ALLOWANCE = "70a08231", "dd62ed3e"
CONSTANTS = {"name": "06fdde03", "symbol": "95d89b41", "decimals": "313ce567",
             "totalSupply": "18160ddd"}


def word(value):
    """A 32-byte word of a number or an address, without 0x."""
    if isinstance(value, str):
        value = int(value, 16)
    return f"{value:064x}"


class Node:
    """The anvil under way, and the recording of what was asked of it."""

    def __init__(self, anvil):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            [anvil, "--port", str(self.port), "--quiet", "--no-mining", "--order", "fifo",
             "--timestamp", "1700000000", "--slots-in-an-epoch", "2"],
            stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.seen = set()
        self.lines = []
        self.wait()

    def wait(self):
        for _ in range(200):
            try:
                self.ask("eth_chainId")
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("anvil does not answer")

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def raw(self, method, params):
        """The bytes of request and response."""
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                             separators=(",", ":"))
        c = http.client.HTTPConnection("127.0.0.1", self.port)
        c.request("POST", "/", request, {"Content-Type": "application/json"})
        reply = c.getresponse().read().decode()
        c.close()
        return request, reply

    def ask(self, method, *params):
        reply = json.loads(self.raw(method, list(params))[1])
        if "error" in reply:
            raise SystemExit(f"{method}: {reply['error']}")
        return reply["result"]

    def record(self, method, *params):
        """Records the exchange, once; the result, or None for an error."""
        request, reply = self.raw(method, list(params))
        answer = json.loads(reply)
        if request not in self.seen:
            self.seen.add(request)
            self.lines += [">> " + request, "<< " + reply.strip()]
        return answer.get("result")

    def comment(self, text):
        self.lines.append("// " + text)


# --- the chain ---------------------------------------------------------------------------


class Chain:
    def __init__(self, node):
        self.node = node
        self.accounts = node.ask("eth_accounts")
        self.nonces = dict.fromkeys(self.accounts, 0)
        node.ask("anvil_setBlockTimestampInterval", 12)
        self.token = None

    def send(self, sender, **fields):
        tx = {"from": sender, "nonce": hex(self.nonces[sender]), "gas": hex(1500000)}
        if "gasPrice" not in fields:
            tx |= {"maxFeePerGas": hex(20 * GWEI), "maxPriorityFeePerGas": hex(GWEI)}
        tx |= fields
        self.nonces[sender] += 1
        return self.node.ask("eth_sendTransaction", tx)

    def pay(self, sender, to, value, **fields):
        return self.send(sender, to=to, value=hex(value), gas=hex(21000), **fields)

    def use(self, sender, selector, *words):
        return self.send(sender, to=self.token, gas=hex(100000),
                         data="0x" + selector + "".join(word(w) for w in words))

    def mine(self):
        self.node.ask("evm_mine")

    def play(self):
        a = self.accounts
        deployed = self.send(a[0], data="0x" + TOKEN_CODE + word(SUPPLY))
        self.mine()
        self.token = self.node.ask("eth_getTransactionReceipt", deployed)["contractAddress"]
        self.pay(a[0], a[1], ETHER)
        self.pay(a[1], a[2], ETHER // 4, gasPrice=hex(15 * GWEI))
        self.mine()
        for i in (1, 2, 3):
            self.use(a[0], TRANSFER, a[i], i * 1000 * ETHER)
        self.mine()
        self.use(a[1], APPROVE, a[4], 500 * ETHER)
        self.send(a[2], to=a[5], value=hex(3 * ETHER), gas=hex(30000), gasPrice=hex(15 * GWEI),
                  accessList=[{"address": self.token, "storageKeys": ["0x" + word(0)]}])
        self.mine()
        self.use(a[4], TRANSFER_FROM, a[1], a[5], 200 * ETHER)
        self.mine()
        self.use(a[6], TRANSFER, a[0], ETHER)          # it has none: fails
        self.pay(a[6], a[7], 123456789)
        self.mine()
        self.mine()                                    # an empty one
        for n in range(8, BLOCKS + 1):
            self.some(n)
            self.mine()

    def some(self, n):
        """The transactions of block n: as many as varies, between whom varies too."""
        a = self.accounts
        for i in range(n % 5 + 2):
            sender, to = a[(n + i) % 4], a[(n * 3 + i) % 8]
            if (n + i) % 3 == 0:
                self.pay(sender, to, (n * 100 + i) * GWEI)
            else:
                self.use(sender, TRANSFER, to, (n + i) * ETHER // 10)


# --- the recording -----------------------------------------------------------------------


def record_node(node):
    node.comment("the node")
    for method in ("eth_chainId", "net_version", "web3_clientVersion", "eth_blockNumber",
                   "eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_blobBaseFee", "eth_syncing",
                   "net_listening"):
        node.record(method)
    for count in (1, 4, 5, 10):
        for rewards in ([], [25, 50, 75], [10.0, 50.0, 90.0], None):
            shape = [] if rewards is None else [rewards]
            node.record("eth_feeHistory", hex(count), "latest", *shape)
    node.record("eth_feeHistory", "0x5", hex(10), [])


def record_block(node, ref):
    """One block by a number or tag, and by its hash."""
    block = node.record("eth_getBlockByNumber", ref, False)
    node.record("eth_getBlockByNumber", ref, True)
    node.record("eth_getBlockReceipts", ref)
    node.record("eth_getBlockTransactionCountByNumber", ref)
    node.record("eth_getUncleCountByBlockNumber", ref)
    node.record("eth_getBlockByHash", block["hash"], False)
    node.record("eth_getBlockByHash", block["hash"], True)
    node.record("eth_getBlockReceipts", block["hash"])
    node.record("eth_getBlockTransactionCountByHash", block["hash"])
    node.record("eth_getLogs", {"blockHash": block["hash"]})
    return block


def record_blocks(node):
    transactions = []
    for n in range(BLOCKS + 1):
        node.comment(f"block {n}")
        block = record_block(node, hex(n))
        transactions += block["transactions"]
        for i in range(len(block["transactions"])):
            node.record("eth_getTransactionByBlockNumberAndIndex", hex(n), hex(i))
            node.record("eth_getTransactionByBlockHashAndIndex", block["hash"], hex(i))
    node.comment("tags, and a block that is not there")
    for tag in ("latest", "safe", "finalized", "earliest"):
        record_block(node, tag)
    node.record("eth_getBlockByNumber", hex(BLOCKS + 1), False)
    node.record("eth_getBlockByNumber", hex(BLOCKS + 1), True)
    node.record("eth_getBlockByHash", "0x" + "11" * 32, False)
    node.comment("transactions")
    for tx in transactions:
        node.record("eth_getTransactionByHash", tx)
        node.record("eth_getTransactionReceipt", tx)
        node.record("eth_getRawTransactionByHash", tx)
    node.record("eth_getTransactionByHash", "0x" + "22" * 32)
    node.record("eth_getTransactionReceipt", "0x" + "22" * 32)


def record_logs(node, chain, topic):
    node.comment("logs")
    whole = {"fromBlock": "0x0", "toBlock": "latest"}
    to_one = "0x" + word(chain.accounts[1])
    for where in (whole, {"fromBlock": "0x3", "toBlock": "0x5"}, {"fromBlock": "earliest"},
                  {"fromBlock": "0x0", "toBlock": hex(BLOCKS)}):
        node.record("eth_getLogs", where)
        node.record("eth_getLogs", where | {"address": chain.token})
        node.record("eth_getLogs", {"address": chain.token} | where)
        node.record("eth_getLogs", where | {"address": chain.token, "topics": [topic]})
        node.record("eth_getLogs", where | {"topics": [topic, None, to_one]})
    node.record("eth_getLogs", {"fromBlock": "0x5", "toBlock": "0x3"})


def record_call(node, fields, data, *block):
    """A call in the forms that clients give it."""
    for name in ("data", "input"):
        node.record("eth_call", fields | {name: data}, *block)
        node.record("eth_call", {name: data} | fields, *block)


def record_state(node, chain, checksum):
    node.comment("state")
    everybody = chain.accounts[:8] + [chain.token, "0x" + "00" * 20]
    names = everybody + [checksum(a) for a in everybody]
    for address in names:
        for ref in ["latest", "safe", "finalized", "pending", hex(BLOCKS), hex(BLOCKS // 2), "0x0"]:
            node.record("eth_getBalance", address, ref)
            node.record("eth_getTransactionCount", address, ref)
        node.record("eth_getCode", address, "latest")
    for n in range(BLOCKS + 1):
        node.record("eth_getBalance", chain.accounts[0], hex(n))
        node.record("eth_getStorageAt", chain.token, "0x0", hex(n))
    node.record("eth_getStorageAt", chain.token, "0x0", "latest")
    node.record("eth_getStorageAt", chain.token, "0x" + word(0), "latest")
    node.record("eth_getProof", chain.token, ["0x" + word(0)], "latest")
    node.record("eth_getBalance", chain.accounts[0], hex(BLOCKS + 100))


def record_calls(node, chain, checksum):
    node.comment("calls")
    a = chain.accounts
    for to in (chain.token, checksum(chain.token)):
        for selector in CONSTANTS.values():
            record_call(node, {"to": to}, "0x" + selector, "latest")
        for account in a[:8]:
            record_call(node, {"to": to}, "0x" + BALANCE_OF + word(account), "latest")
        record_call(node, {"to": to}, "0x" + ALLOWANCE + word(a[1]) + word(a[4]), "latest")
    for n in range(1, BLOCKS + 1):
        record_call(node, {"to": chain.token}, "0x" + BALANCE_OF + word(a[1]), hex(n))
    node.comment("calls that revert: a custom error, and a reason")
    too_much = "0x" + TRANSFER + word(a[0]) + word(10**30)
    not_allowed = "0x" + TRANSFER_FROM + word(a[0]) + word(a[1]) + word(1)
    for data in (too_much, not_allowed):
        for sender in ({}, {"from": a[7]}, {"from": checksum(a[7])}):
            record_call(node, sender | {"to": chain.token}, data, "latest")
        node.record("eth_estimateGas", {"from": a[7], "to": chain.token, "data": data})
    node.record("eth_estimateGas", {"from": a[0], "to": a[1], "value": "0x1"})
    node.record("eth_estimateGas", {"from": a[0], "to": a[1], "value": "0x1"}, "latest")
    node.record("eth_call", {"to": chain.token, "data": "0x12345678"}, "latest")
    node.record("eth_createAccessList",
                {"from": a[0], "to": chain.token, "data": "0x" + BALANCE_OF + word(a[1])}, "latest")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    node = Node(sys.argv[1])
    try:
        chain = Chain(node)
        chain.play()

        def sha3(text):
            return node.ask("web3_sha3", "0x" + text.encode().hex())

        def checksum(address):                         # EIP-55
            digits = sha3(address[2:])[2:]
            return "0x" + "".join(c.upper() if int(d, 16) >= 8 else c
                                  for c, d in zip(address[2:], digits))

        node.comment("The demo chain of ethrpc-gw, made by t/tools/make-demo-chain.py with anvil.")
        node.comment(f"The token is at {checksum(chain.token)}.")
        record_node(node)
        record_blocks(node)
        record_logs(node, chain, sha3("Transfer(address,address,uint256)"))
        record_state(node, chain, checksum)
        record_calls(node, chain, checksum)
    finally:
        node.stop()
    sys.stdout.write("\n".join(node.lines) + "\n")


if __name__ == "__main__":
    main()
