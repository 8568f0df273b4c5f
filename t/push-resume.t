#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Subscriptions that go on where their client left off: resumeFrom."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from wire import row

HTTP_WS = "http ws+http"


def told(client, sub, count):
    """The next results of the subscription."""
    out = []
    while len(out) < count:
        params = rawjson.parse(client.event())["params"]
        tap.eq(params["subscription"], sub, "whose event")
        out.append(params["result"])
    return out


def subscribe(client, *params):
    return rawjson.parse(client.call("eth_subscribe", list(params)).ok())


@row("R1", "heads from a block on, by %s", clients="ws ipc", upstreams=HTTP_WS, live=True,
     each=["number", "hash"])
def r1(env, client, how):
    chain = env.chain
    for _ in range(12):
        chain.mine(quiet=True)
    last = chain.headers[chain.number() - 11]
    sub = subscribe(client, "newHeads", {"resumeFrom": last[how]})
    chain.mine()
    chain.mine()
    got = told(client, sub, 13)
    tap.eq([h["hash"] for h in got], [h["hash"] for h in chain.headers[-13:]], "all of them")
    chain.mine()
    tap.eq(told(client, sub, 1)[0]["hash"], chain.headers[-1]["hash"], "and the next")
    client.quiet(0.1)


@row("R2", "nothing was missed", clients="ws ipc", upstreams=HTTP_WS, live=True)
def r2(env, client):
    sub = subscribe(client, "newHeads", {"resumeFrom": env.chain.headers[-1]["hash"]})
    env.chain.mine()
    tap.eq(told(client, sub, 1)[0]["hash"], env.chain.headers[-1]["hash"], "the next head")
    client.quiet(0.1)


def logs_of(env, first):
    return rawjson.parse(env.chain.answer("eth_getLogs", rawjson.compact(
        [{"fromBlock": hex(first), "toBlock": "latest"}])))


def key(log):
    return log["blockHash"], log["logIndex"], bool(log.get("removed"))


@row("R3", "logs from a block on, taken back by a reorganisation", clients="ws ipc",
     upstreams=HTTP_WS, live=True)
def r3(env, client):
    chain = env.chain
    for _ in range(6):
        chain.mine(quiet=True)
    start = chain.number() - 5
    sub = subscribe(client, "logs", {}, {"resumeFrom": hex(start)})
    past = logs_of(env, start + 1)
    tap.check(past, "there are logs")
    tap.eq([key(g) for g in told(client, sub, len(past))], [key(g) for g in past], "the past")
    gone = logs_of(env, chain.number() - 2)
    chain.reorg(3)
    fresh = logs_of(env, chain.number() - 2)
    got = told(client, sub, len(gone) + len(fresh))
    tap.eq([key(g) for g in got[:len(gone)]],
           [(g["blockHash"], g["logIndex"], True) for g in reversed(gone)], "taken back")
    tap.eq([key(g) for g in got[len(gone):]], [key(g) for g in fresh], "and told anew")
    client.quiet(0.1)


@row("R7", "a reorganisation %s blocks deep while the past is told", clients="ws ipc",
     upstreams="http ws", live=True, each=[("2", 2), ("8", 8)], fresh=True)
def r7(env, client, depth):
    """What was told of the old branch is taken back, and nothing of it is told afterwards."""
    chain = env.chain
    for _ in range(14):
        chain.mine(quiet=True)
    start = chain.number() - 13
    heads = subscribe(client, "newHeads")    # shows that the gateway knows of it
    slow = ("eth_getLogs", "eth_getBlockByHash")
    asked = []

    def script(req):
        """A node that keeps blocks which are no longer canonical, and takes its time for some."""
        if req.method not in slow:
            return None
        answer = req.normal()
        if len(asked) < 40:
            asked.append(req)
            return req.later(0.02 + 0.02 * (len(asked) // 4), answer)
        return answer

    env.node.script = script
    with env.client(client.kind) as b, env.client(client.kind) as c:
        logs = subscribe(b, "logs", {}, {"resumeFrom": hex(start)})
        past = subscribe(c, "newHeads", {"resumeFrom": hex(start)})
        chain.reorg(depth)
        told(client, heads, 1)
        env.node.script = None
        chain.mine()
        story = []
        while not story or story[-1][0] != chain.headers[-1]["hash"]:
            log = key(told(b, logs, 1)[0])
            if log[2]:
                tap.eq(story.pop(), (log[0], log[1], False), "what is taken back")
            else:
                story.append(log)
        tap.eq(story, [key(g) for g in logs_of(env, start + 1)], "the story of the logs")
        numbers = []
        while not numbers or numbers[-1][1] != chain.headers[-1]["hash"]:
            head = told(c, past, 1)[0]
            number = int(head["number"], 16)
            numbers = [n for n in numbers if n[0] < number] + [(number, head["hash"])]
        want = [(int(h["number"], 16), h["hash"]) for h in chain.headers[start + 1:]]
        tap.eq(numbers, want, "the story of the heads")


@row("R4", "only what the filter wants", clients="ws", upstreams="http", live=True)
def r4(env, client):
    for _ in range(3):
        env.chain.mine(quiet=True)
    subscribe(client, "logs", {"address": "0x" + "77" * 20},
              {"resumeFrom": hex(env.chain.number() - 3)})
    env.chain.mine()
    client.quiet(0.3)


@row("R5", "not from %s", clients="ws ipc", upstreams="http", live=True,
     each=[("a hash that is none of the chain's", "0x" + "ab" * 32),
           ("beyond the newest block", "0xffff"), ("a tag", "latest"), ("nonsense", 5)])
def r5(_, client, block):
    client.call("eth_subscribe", ["newHeads", {"resumeFrom": block}]).refused(-32602)
    client.call("eth_subscribe", ["logs", {}, {"resumeFrom": block}]).refused(-32602)


@row("R6", "the client leaves while its past is told", clients="ws ipc", upstreams="http", live=True)
def r6(env, client):
    for _ in range(10):
        env.chain.mine(quiet=True)
    env.node.script = lambda req: req.later(0.05) if req.method == "eth_getBlockByHash" else None
    for _ in range(20):
        with env.client(client.kind) as other:
            subscribe(other, "newHeads", {"resumeFrom": hex(env.chain.number() - 10)})
    sub = subscribe(client, "newHeads", {"resumeFrom": hex(env.chain.number() - 10)})
    got = told(client, sub, 10)
    tap.eq([h["hash"] for h in got], [h["hash"] for h in env.chain.headers[-10:]], "one that stays")


wire.main()
