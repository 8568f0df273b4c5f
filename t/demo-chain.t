#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The demo chain that comes with the program: everything in it is served with the default chain
of stages, byte by byte, and it hangs together."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
from clients import Reply, request
from gateway import Gateway, has_transport, need_program

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "etc", "demo.io")
REVERT, RANGE = 3, -32602


def exchanges():
    """[(method, raw params, raw result or None, raw error or None)]"""
    out = []
    with open(DEMO, "rb") as file:
        for line in file:
            fields = dict(rawjson.members(line[3:].strip())) if line[:2] in (b">>", b"<<") else {}
            if line.startswith(b">> "):
                asked = fields
            elif line.startswith(b"<< "):
                out.append((rawjson.parse(asked["method"]), asked["params"],
                            fields.get("result"), fields.get("error")))
    return out


def served(gateway, kind, recorded):
    with gateway.client(kind) as client:
        for i, (method, params, result, error) in enumerate(recorded):
            reply = Reply(client.raw(request(method, params, b"%d" % i)))
            tap.eq((reply.result, reply.error), (result, error), "%s %r" % (method, params[:100]))


def ask(client, method, *params):
    return rawjson.parse(Reply(client.raw(request(method, list(params)))).ok())


def hangs_together(gateway):
    with gateway.client("http") as client:
        head = int(ask(client, "eth_blockNumber"), 16)
        tap.check(12 <= head <= 20, "the head is block %d" % head)
        latest = ask(client, "eth_getBlockByNumber", "latest", False)
        parent = None
        for number in range(head + 1):
            block = ask(client, "eth_getBlockByNumber", hex(number), True)
            tap.eq(int(block["number"], 16), number, "number")
            if parent is not None:
                tap.eq(block["parentHash"], parent["hash"], "parent of %d" % number)
                tap.eq(int(block["timestamp"], 16) - int(parent["timestamp"], 16), 12, "time")
            receipts = ask(client, "eth_getBlockReceipts", hex(number))
            tap.eq([r["transactionHash"] for r in receipts],
                   [t["hash"] for t in block["transactions"]], "receipts of %d" % number)
            for tx in block["transactions"]:
                tap.eq(ask(client, "eth_getTransactionByHash", tx["hash"]), tx, "transaction")
            parent = block
        tap.eq(latest["hash"], parent["hash"], "latest")


def has_variety(recorded):
    """What a demonstration wants to show is there."""
    statuses, kinds, logs = set(), set(), 0
    for method, _, result, _ in recorded:
        value = rawjson.parse(result) if result is not None else None
        if method == "eth_getTransactionReceipt" and value is not None:
            statuses.add(value["status"])
            kinds.add(value["type"])
            logs += len(value["logs"])
    tap.eq(statuses, {"0x0", "0x1"}, "transactions that succeed and fail")
    tap.eq(kinds, {"0x0", "0x1", "0x2"}, "types of transactions")
    tap.check(logs > 10, "%d logs" % logs)
    codes = {int(rawjson.member(error, "code")) for _, _, _, error in recorded if error}
    tap.eq(codes, {REVERT, RANGE}, "codes of errors")
    tap.check(os.path.getsize(DEMO) < 1500000, "its size")


def main():
    need_program()
    if not has_transport("replay"):
        tap.skip_all("this build has no transport replay")
    tap.watchdog(100)
    recorded = exchanges()
    gateway = Gateway([{"name": "demo", "url": "replay:" + os.path.abspath(DEMO)}], level="info")
    for kind in ("http", "ws", "ipc"):
        tap.run("%d exchanges over %s" % (len(recorded), kind), served, gateway, kind, recorded)
    tap.run("the chain hangs together", hangs_together, gateway)
    tap.run("it shows various things", has_variety, recorded)
    tap.run("the gateway ends properly", gateway.stop)
    tap.done()


main()
