#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cast over HTTP, WebSocket and IPC: does the same things on each URL and prints what it got,
one JSON object a line. Arguments: FACTS.json KIND=URL... (see t/lib/interop.py); $CAST is the
program. cast is an Alloy client with its own retry layer, and a process for each command."""
import json
import os
import subprocess
import sys

CAST = os.environ.get("CAST", "cast")


def cast(url, *words):
    """Runs a command; its output as JSON where it is, else as text."""
    where = url[len("ipc://"):] if url.startswith("ipc://") else url
    done = subprocess.run([CAST, *words, "--rpc-url", where], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=90, check=False,
                          env={**os.environ, "NO_COLOR": "1", "FOUNDRY_DISABLE_NIGHTLY_WARNING": "1"})
    if done.returncode != 0:
        return {"status": done.returncode, "error": done.stderr.strip()}
    try:
        return json.loads(done.stdout)
    except ValueError:
        return done.stdout.strip()


def run(kind, url, facts):
    def step(name, *words):
        value = cast(url, *words)
        print(json.dumps({"on": "cast " + kind, "step": name, "value": value}), flush=True)
        return value

    contract, who, key = facts["contract"], facts["accounts"][0], facts["keys"][0]
    big = str(facts["big_block"])
    step("chain id", "chain-id")
    step("client", "client")
    step("block number", "block-number")
    step("full block", "block", big, "--full", "--json")
    step("block by hash", "block", facts["big_hash"], "--json")
    step("unknown block", "block", "1000000000")
    step("transaction", "tx", facts["paid"], "--json")
    step("unknown transaction", "tx", facts["unknown_hash"])
    step("receipt", "receipt", facts["noted"][0], "--json")
    step("logs", "logs", "--address", contract, "--from-block", "0", "--to-block", big, "--json")
    step("call", "call", contract, "sum(uint256,uint256)(uint256)", "40", "2")
    step("call with text", "call", contract, "echo(string)(string)", 'gr\u00fc\u00df \u20ac "x"')
    step("call at a block", "call", contract, "values(uint256)(uint256)", "3", "--block", "2")
    step("custom error", "call", contract, "refuse(uint256)", "7")
    step("reverts with reason", "call", contract, "fail()")
    step("panics", "call", contract, "panic(uint256)", "0")
    step("estimate of a revert", "estimate", contract, "fail()")
    step("balance", "balance", who, "--block", big)
    step("code", "code", contract)
    step("storage", "storage", contract, "0")
    step("proof", "proof", contract, facts["unknown_hash"])
    step("raw rpc", "rpc", "eth_getBlockReceipts", "0x1")
    step("unknown method", "rpc", "eth_noSuchMethod")
    step("send and receipt", "send", contract, "note(uint256,uint256,string)", "77", "7",
         "from cast " + kind, "--private-key", key, "--gas-limit", "300000", "--gas-price",
         "100gwei", "--priority-gas-price", "1gwei", "--json")
    step("nonce too low", "send", contract, "note(uint256,uint256,string)", "78", "7", "late",
         "--private-key", key, "--gas-limit", "300000", "--gas-price", "100gwei",
         "--priority-gas-price", "1gwei", "--nonce", "0")
    step("nonce after", "nonce", who)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        facts = json.load(file)
    for argument in sys.argv[2:]:
        kind, url = argument.split("=", 1)
        run(kind, url, facts)


main()
