#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the recording of the demo chain (etc/demo.io) to standard output: a short chain made by
anvil, asked what clients ask first. The same bytes at each run.

    t/interop/record-demo.py > etc/demo.io"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

# pylint: disable=wrong-import-position
import nodes
import rawjson


def questions(node, facts):
    last = facts["big_block"]
    numbers = [hex(n) for n in range(last + 1)]
    contract = facts["contract"]
    call = {"to": contract, "data": nodes.call_data("sum(uint256,uint256)", 40, 2)}
    for method in ("eth_chainId", "net_version", "net_listening", "web3_clientVersion",
                   "eth_blockNumber", "eth_gasPrice", "eth_maxPriorityFeePerGas",
                   "eth_blobBaseFee", "eth_syncing"):
        yield method, []
    for tag in ["latest", "earliest", "safe", "finalized"] + numbers:
        for full in (False, True):
            yield "eth_getBlockByNumber", [tag, full]
    for number in numbers:
        block = node.ask("eth_getBlockByNumber", number, False)
        for full in (False, True):
            yield "eth_getBlockByHash", [block["hash"], full]
        yield "eth_getBlockReceipts", [number]
        for tx in block["transactions"]:
            yield "eth_getTransactionByHash", [tx]
            yield "eth_getTransactionReceipt", [tx]
    for tag in ["latest"] + numbers:
        for who in facts["accounts"]:
            yield "eth_getBalance", [who, tag]
            yield "eth_getTransactionCount", [who, tag]
        yield "eth_getCode", [contract, tag]
        yield "eth_call", [call, tag]
        for key in (1, 2, 3):
            yield "eth_call", [{"to": contract, "data": nodes.call_data("values(uint256)", key)},
                               tag]
    yield "eth_call", [{"to": contract, "data": nodes.call_data("refuse(uint256)", 7)}, "latest"]
    yield "eth_call", [{"to": contract, "data": nodes.call_data("fail()")}, "latest"]
    yield "eth_estimateGas", [call]
    yield "eth_feeHistory", ["0x4", "latest", [25, 75]]
    for extra in ({}, {"address": contract}):
        yield "eth_getLogs", [{"fromBlock": "0x0", "toBlock": "latest", **extra}]
        yield "eth_getLogs", [{"fromBlock": "0x0", "toBlock": hex(last), **extra}]
    yield "eth_getTransactionByHash", [facts["unknown_hash"]]
    yield "eth_getTransactionReceipt", [facts["unknown_hash"]]


def main():
    with nodes.Anvil() as node:
        facts = nodes.furnish(node, big=8)
        client = node.client("http")
        print("// The demo chain of ethrpc-gw: made by anvil for t/interop/record-demo.py.")
        print("// contract %s, accounts %s" % (facts["contract"], ", ".join(facts["accounts"])))
        seen = set()
        for ident, (method, params) in enumerate(questions(node, facts), 1):
            key = (method, rawjson.compact(params))
            if key in seen:
                continue
            seen.add(key)
            request = rawjson.compact({"jsonrpc": "2.0", "id": ident, "method": method,
                                       "params": params})
            reply = client.raw(request)
            print(">> %s\n<< %s" % (request.decode(), reply.decode()))


main()
