#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""web3.py over each of its transports: does the same things on each URL and prints what it
got, one JSON object a line. Arguments: FACTS.json KIND=URL... (see t/lib/interop.py).

Needs web3 (requirements.txt); run it by the interpreter of that venv."""
import asyncio
import json
import sys
import time
import warnings

from eth_account import Account
from web3 import (AsyncHTTPProvider, AsyncIPCProvider, AsyncWeb3, HTTPProvider, IPCProvider,
                  Web3, WebSocketProvider)
from web3.exceptions import Web3Exception

warnings.simplefilter("ignore")
BURST = 50


def plain(value):
    """Anything a client returns as JSON-able data."""
    if isinstance(value, (bytes, bytearray)):
        return "0x" + bytes(value).hex()
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2 ** 53 else str(value)
    return str(value)


def failure(error):
    out = {"raised": type(error).__name__, "text": str(error)}
    for name in ("message", "data", "user_message"):
        if getattr(error, name, None) is not None:
            out[name] = plain(getattr(error, name))
    return out


class Report:
    def __init__(self, kind):
        self.kind = kind

    def line(self, step, value):
        print(json.dumps({"on": self.kind, "step": step, "value": plain(value)}), flush=True)

    def step(self, name, fn):
        try:
            value = fn()
        except Exception as error:  # pylint: disable=broad-except
            value = failure(error)
        self.line(name, value)
        return value

    async def astep(self, name, make):
        try:
            value = await make()
        except Exception as error:  # pylint: disable=broad-except
            value = failure(error)
        self.line(name, value)
        return value


def transaction(facts, nonce, key, chain_id):
    """A signed call of note(key, key * 7, text)."""
    contract = Web3().eth.contract(address=Web3.to_checksum_address(facts["contract"]),
                                   abi=facts["abi"])
    data = contract.encode_abi("note", args=[key, key * 7, "from web3.py %d" % key])
    return Account.sign_transaction({
        "to": Web3.to_checksum_address(facts["contract"]), "data": data, "value": 0,
        "nonce": nonce, "gas": 300000, "maxFeePerGas": 10 ** 11,
        "maxPriorityFeePerGas": 10 ** 9, "chainId": chain_id, "type": 2},
        facts["keys"][0]).raw_transaction


def run_sync(kind, provider, facts):
    report = Report(kind)
    step = report.step
    w3 = Web3(provider)
    eth = w3.eth
    who = Web3.to_checksum_address(facts["accounts"][0])
    contract = eth.contract(address=Web3.to_checksum_address(facts["contract"]),
                            abi=facts["abi"])
    step("connected", w3.is_connected)
    step("chain id", lambda: eth.chain_id)
    step("client version", lambda: w3.client_version)
    step("block number", lambda: eth.block_number)
    step("full block by number", lambda: eth.get_block(facts["big_block"], True))
    step("full block by hash", lambda: eth.get_block(facts["big_hash"], True))
    step("block by tag", lambda: eth.get_block("earliest"))
    step("unknown block", lambda: eth.get_block(10 ** 9))
    step("unknown block hash", lambda: eth.get_block(facts["unknown_hash"]))
    step("transaction", lambda: eth.get_transaction(facts["paid"]))
    step("unknown transaction", lambda: eth.get_transaction(facts["unknown_hash"]))
    step("receipt", lambda: eth.get_transaction_receipt(facts["noted"][0]))
    step("block receipts", lambda: w3.manager.request_blocking(
        "eth_getBlockReceipts", [hex(facts["big_block"])]))
    step("logs", lambda: eth.get_logs({"address": contract.address, "fromBlock": 0,
                                       "toBlock": facts["big_block"]}))
    step("decoded events", lambda: contract.events.Noted.get_logs(
        from_block=0, to_block=facts["big_block"]))
    step("logs, bad range", lambda: eth.get_logs({"fromBlock": 5, "toBlock": 2}))
    step("call", lambda: contract.functions.sum(40, 2).call())
    step("call with text", lambda: contract.functions.echo("gr\u00fc\u00df \u20ac \\ \"x\"").call())
    step("call at a block", lambda: contract.functions.values(3).call(
        block_identifier=facts["noted_blocks"][0]))
    step("custom error", lambda: contract.functions.refuse(7).call())
    step("reverts with reason", lambda: contract.functions.fail().call())
    step("panics", lambda: contract.functions.panic(0).call())
    step("estimate of a revert", lambda: contract.functions.fail().estimate_gas({"from": who}))
    step("balance", lambda: eth.get_balance(who, facts["big_block"]))
    step("code", lambda: eth.get_code(contract.address))
    step("storage", lambda: eth.get_storage_at(contract.address, 0))
    step("fee history", lambda: eth.fee_history(3, facts["big_block"], [10, 90]))
    step("unknown method", lambda: w3.manager.request_blocking("eth_noSuchMethod", []))

    nonce = eth.get_transaction_count(who)
    raw = transaction(facts, nonce, 100 + nonce, facts["chain_id"])
    tx_hash = step("send raw transaction", lambda: eth.send_raw_transaction(raw))
    step("its receipt", lambda: eth.wait_for_transaction_receipt(tx_hash, 30, 0.02))
    step("its event", lambda: contract.events.Noted().process_receipt(
        eth.get_transaction_receipt(tx_hash)))
    step("nonce too low", lambda: eth.send_raw_transaction(
        transaction(facts, 0, 5, facts["chain_id"])))
    step("nonce after", lambda: eth.get_transaction_count(who))

    def block_filter():
        new = eth.filter("latest")
        sent = eth.send_raw_transaction(transaction(facts, nonce + 1, 900 + nonce,
                                                    facts["chain_id"]))
        eth.wait_for_transaction_receipt(sent, 30, 0.02)
        found = []
        end = time.monotonic() + 20
        while not found and time.monotonic() < end:
            found += new.get_new_entries()
            time.sleep(0.02)
        return found
    step("block filter", block_filter)

    def batch(calls):
        with w3.batch_requests() as requests:
            for call in calls():
                requests.add(call)
            return requests.execute()
    step("batch", lambda: batch(lambda: [
        eth.get_block(facts["big_block"], True), eth.get_balance(who, 1),
        contract.functions.sum(1, 2), eth.get_transaction(facts["paid"])]))
    step("batch of one", lambda: batch(lambda: [eth.get_block(1)]))
    step("batch with a failure", lambda: batch(lambda: [
        eth.get_block(1), eth.get_block(10 ** 9)]))


async def run_async(kind, w3, facts, persistent):
    report = Report(kind)
    step = report.astep
    eth = w3.eth
    who = Web3.to_checksum_address(facts["accounts"][0])
    contract = eth.contract(address=Web3.to_checksum_address(facts["contract"]),
                            abi=facts["abi"])

    async def chain_id():
        return await eth.chain_id

    async def block_number():
        return await eth.block_number

    await step("chain id", chain_id)
    await step("block number", block_number)
    await step("full block by number", lambda: eth.get_block(facts["big_block"], True))
    await step("full block by hash", lambda: eth.get_block(facts["big_hash"], True))
    await step("unknown block", lambda: eth.get_block(10 ** 9))
    await step("unknown transaction", lambda: eth.get_transaction(facts["unknown_hash"]))
    await step("receipt", lambda: eth.get_transaction_receipt(facts["noted"][0]))
    await step("logs", lambda: eth.get_logs({
        "address": contract.address, "fromBlock": 0, "toBlock": facts["big_block"]}))
    await step("logs, bad range", lambda: eth.get_logs({"fromBlock": 5, "toBlock": 2}))
    await step("call", lambda: contract.functions.sum(40, 2).call())
    await step("custom error", lambda: contract.functions.refuse(7).call())
    await step("reverts with reason", lambda: contract.functions.fail().call())
    await step("panics", lambda: contract.functions.panic(0).call())
    nonce = await eth.get_transaction_count(who)

    async def send(at, key):
        sent = await eth.send_raw_transaction(transaction(facts, at, key, facts["chain_id"]))
        return await eth.wait_for_transaction_receipt(sent, 30, 0.02)
    await step("send raw transaction and receipt", lambda: send(nonce, 100 + nonce))

    async def burst():
        got = await asyncio.gather(*[eth.get_balance(who, i % 7) for i in range(BURST)])
        return got
    await step("many at once", burst)

    async def batch(calls):
        async with w3.batch_requests() as requests:
            for call in calls():
                requests.add(call)
            return await requests.async_execute()
    await step("batch", lambda: batch(lambda: [
        eth.get_block(facts["big_block"], True), eth.get_balance(who, 1),
        contract.functions.sum(1, 2), eth.get_transaction(facts["paid"])]))
    await step("batch of one", lambda: batch(lambda: [eth.get_block(1)]))
    if not persistent:
        return

    async def heads():
        sub = await eth.subscribe("newHeads")
        logs = await eth.subscribe("logs", {"address": contract.address})
        await send(nonce + 1, 900 + nonce)
        found = {"head": None, "log": None}
        async for message in w3.socket.process_subscriptions():
            if message["subscription"] == sub:
                # anvil pushes lists of the block's body with its header; a node that is polled
                # has none to give.
                found["head"] = {k: v for k, v in dict(message["result"]).items()
                                 if k not in ("transactions", "uncles", "withdrawals")}
            elif message["subscription"] == logs:
                found["log"] = message["result"]
            if found["head"] and found["log"]:
                break
        found["ended"] = [await eth.unsubscribe(sub), await eth.unsubscribe(logs)]
        return found
    await step("subscriptions", lambda: asyncio.wait_for(heads(), 60))


async def run_all_async(kind, url, facts):
    if kind == "http":
        w3 = AsyncWeb3(AsyncHTTPProvider(url))
        await run_async("AsyncHTTPProvider", w3, facts, False)
        await w3.provider.disconnect()
    elif kind == "ws":
        async with AsyncWeb3(WebSocketProvider(url)) as w3:
            await run_async("WebSocketProvider", w3, facts, True)
    else:
        async with AsyncWeb3(AsyncIPCProvider(url[len("ipc://"):])) as w3:
            await run_async("AsyncIPCProvider", w3, facts, True)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        facts = json.load(file)
    for argument in sys.argv[2:]:
        kind, url = argument.split("=", 1)
        if kind == "http":
            run_sync("HTTPProvider", HTTPProvider(url), facts)
        elif kind == "ipc":
            run_sync("IPCProvider", IPCProvider(url[len("ipc://"):]), facts)
        try:
            asyncio.run(asyncio.wait_for(run_all_async(kind, url, facts), 240))
        except (Web3Exception, OSError, asyncio.TimeoutError) as error:
            Report(kind).line("ended early", failure(error))


main()
