#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""anvil forking through the gateway: a second anvil takes its state from the first one's chain
over each transport of the gateway, and must see what the first one has."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

# pylint: disable=wrong-import-position
import gateway
import interop
import nodes
import tap


def questions(facts):
    """Reads whose answers come from the forked chain."""
    contract, who = facts["contract"], facts["accounts"][0]
    big = hex(facts["big_block"])
    yield "eth_getBlockByNumber", [big, True]
    yield "eth_getBlockByHash", [facts["noted_hash"], False]
    yield "eth_getTransactionByHash", [facts["paid"]]
    yield "eth_getTransactionReceipt", [facts["noted"][1]]
    yield "eth_getLogs", [{"fromBlock": "0x0", "toBlock": big, "address": contract}]
    yield "eth_getCode", [contract, "latest"]
    yield "eth_getStorageAt", [contract, "0x0", "latest"]
    yield "eth_call", [{"to": contract, "data": nodes.call_data("values(uint256)", 2)}, "latest"]
    yield "eth_getTransactionCount", [who, "latest"]
    for account in facts["accounts"]:
        yield "eth_getBalance", [account, "0x1"]


def fork(node, facts, url):
    with nodes.Anvil("--fork-url", url, "--no-storage-caching", "--chain-id",
                     str(facts["chain_id"])) as second:
        tap.eq(int(second.ask("eth_blockNumber"), 16), facts["big_block"], "height of the fork")
        for method, params in questions(facts):
            tap.eq(second.ask(method, *params), node.ask(method, *params),
                   "%s %s" % (method, params))
        # It goes on by itself from there.
        second.ask("evm_mine")
        tap.eq(int(second.ask("eth_blockNumber"), 16), facts["big_block"] + 1, "its own block")


gateway.need_program()
if nodes.program("anvil") is None:
    tap.skip_all("anvil is not installed (t/interop/install node)")
tap.watchdog(300)
with nodes.Anvil() as first:
    known = nodes.furnish(first)
    tap.run("the same straight at the node", fork, first, known, first.urls["http"])
    for out in interop.KINDS:
        with gateway.Gateway([{"name": "anvil", "url": first.urls[out]}], level="info",
                             network={"timeout": "30s", "attempt_timeout": "20s"}) as gw:
            for kind in interop.KINDS:
                place = interop.urls_of(gw)[kind]
                if kind == "ipc":
                    place = gw.ipc_path
                tap.run("fork over %s, gateway over %s" % (kind, out), fork, first, known, place)
tap.done()
