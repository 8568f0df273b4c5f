#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""web3.py subscribes to heads and logs and prints what it gets, until it is ended: an object a
line. Arguments: FACTS.json KIND=URL..., of ws and ipc."""
import asyncio
import json
import sys

from web3 import AsyncIPCProvider, AsyncWeb3, Web3, WebSocketProvider


def say(name, **what):
    print(json.dumps({"on": name, **what}), flush=True)


async def watch(kind, url, facts):
    name = "web3.py " + kind
    provider = WebSocketProvider(url) if kind == "ws" else AsyncIPCProvider(url[len("ipc://"):])
    async with AsyncWeb3(provider) as w3:
        heads = await w3.eth.subscribe("newHeads")
        await w3.eth.subscribe("logs", {"address": Web3.to_checksum_address(facts["contract"])})
        say(name, ready=True)
        async for message in w3.socket.process_subscriptions():
            result = message["result"]
            if message["subscription"] == heads:
                say(name, head=result["number"], hash="0x" + bytes(result["hash"]).hex())
            else:
                say(name, log="0x" + bytes(result["transactionHash"]).hex())


async def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        facts = json.load(file)
    await asyncio.gather(*[watch(*arg.split("=", 1), facts) for arg in sys.argv[2:]])


asyncio.run(main())
