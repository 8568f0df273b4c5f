#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour J, what needs the head: a node that is sometimes a block behind is well. All
stages."""
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import request
from wire import row

A = "0x" + "0a" * 20


def wobble(env, ended):
    """Node B is 0 or 1 block behind, changing every 0.1 s; now and then a block appears."""
    turn = 0
    while not ended.wait(0.1):
        turn += 1
        env.nodes[1].chain.set_lag(turn % 2)
        if turn % 3 == 0:
            env.chain.mine()


@row("J1", "a node that is now and then a block behind", clients="http", upstreams="http+http",
     views=[{"lag": 0}, {"lag": 0}], **wire.full())
def j1(env, client):
    ended = threading.Event()
    mover = threading.Thread(target=wobble, args=(env, ended), daemon=True)
    mover.start()
    try:
        end, n = time.monotonic() + 2.0, 0
        while time.monotonic() < end:
            n += 1
            number = rawjson.parse(client.call("eth_blockNumber").ok())
            client.call("eth_getBalance", ["0x%040x" % n, "latest"]).ok()
            client.call("eth_getBalance", ["0x%040x" % n, number]).ok()
            tap.check(client.call("eth_getBlockByNumber", [number, False]).ok() != b"null",
                      "block %s is there" % number)
            client.call("eth_getCode", ["0x%040x" % n, "0x5"]).ok()
    finally:
        ended.set()
        mover.join()
    shares = [node.count("eth_getCode") for node in env.nodes]
    tap.eq(sum(shares), n, "reads of an old block")
    tap.at_least(min(shares), n // 5, "the smaller share of %r" % shares)


@row("E25", "500 calls in an array, the node takes 100", clients="http", upstreams="http",
     upstream={"max_batch": 100}, **wire.full())
def e25(env, client):
    env.node.batch_script = lambda requests: requests[0].error(
        -32600, "batch too large", whole=True) if len(requests) > 100 else None
    for start in (0, 1000):
        asks = [["0x%040x" % (start + i), "0x5"] for i in range(500)]
        got = client.batch([request("eth_getCode", p, i) for i, p in enumerate(asks)],
                           timeout=30)
        tap.eq([r.id for r in got], [b"%d" % i for i in range(500)], "ids in order")
        for params, reply in zip(asks, got):
            tap.eq(reply.ok(), env.want("eth_getCode", rawjson.compact(params)), "result")
    tap.at_most(max([len(a) for a in env.node.arrays] or [1]), 100, "members of an array")


wire.main()
