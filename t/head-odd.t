#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nodes and chains that are not as usual: moved back or begun anew behind the gateway's back, pruned, stalled,
begun at a snapshot, of few words. The head goes on, subscribers are not forgotten, and nobody is asked more than
there is a need to."""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
from chain import Chain, word
from gateway import has_stage, need_program
from net import Net
from tap import eq, eventually

ONES = "0x" + "ff" * 256


def rewind(chain, number):
    """The chain is moved back to a block, as by evm_revert."""
    with chain.lock:
        for head in chain.headers[number + 1:]:
            del chain.by_hash[head["hash"]]
        del chain.headers[number + 1:]
        chain.fork += 1


def grow(chain, count):
    for _ in range(count):
        chain.mine(quiet=True)


def by_number(request):
    """The number that a request for a block names; None: it names none."""
    if request.method != "eth_getBlockByNumber" or not request.args()[0].startswith("0x"):
        return None
    return int(request.args()[0], 16)


def polls(node):
    return len([p for p in node.params_seen("eth_getBlockByNumber") if b"latest" in p])


def subscribe(client, *params):
    return rawjson.parse(client.call("eth_subscribe", list(params)).ok())


def result(event):
    return rawjson.parse(event)["params"]["result"]


# --- chains that move ------------------------------------------------------------------------------

def test_pending():
    """The pending block has a number that no block has yet."""
    with Net(["http", "http"]) as net:
        net.at(30, "the tip is known")

        def script(request):
            if request.method == "eth_getBlockByNumber" and request.args()[0] == "pending":
                return request.result(rawjson.compact(dict(net.chain.headers[-1], number="0x1f", hash=None)))
            return None
        for node in net.nodes:
            node.script = script
        with net.gw.http() as client:
            for _ in range(5):
                eq(rawjson.parse(client.call("eth_getBlockByNumber", ["pending", False]).ok())["number"], "0x1f",
                   "the pending block")
                eq(net.number(client), 30, "is not the newest one")


def test_boast():
    """A node that once spoke of blocks which never came is not quoted for ever."""
    with Net(["http", "http"]) as net:
        net.at(30, "the tip is known")
        for node in net.nodes:
            node.script = lambda r: r.result(b'"0x200"') if r.method == "eth_blockNumber" else None
        with net.gw.http() as client:
            eq(net.number(client), 0x200, "a boast")
            for node in net.nodes:
                node.script = None
            eventually(lambda: net.number(client) == 30, 15, "is forgotten")


def test_rewind():
    chain = Chain(blocks=300)
    with Net(["http", "http"], chain=chain) as net:
        net.at(300, "the tip is known")
        rewind(chain, 100)
        net.at(100, "the chain was moved back by more than the window")
        with net.gw.http() as client:
            eventually(lambda: net.number(client) == 100, 8, "clients are told so")
        chain.mine()
        net.at(101, "it goes on from there")


def test_reset():
    """A chain is begun anew while its nodes stay: as by anvil_reset."""
    with Net(["ws", "ws"], chain=Chain(blocks=20, live=True)) as net:
        net.at(20, "the tip is known")
        with net.gw.ws() as heads, net.gw.ws() as logs:
            subscribe(heads, "newHeads")
            subscribe(logs, "logs", {})
            net.chain.mine()
            eq(result(heads.event())["number"], "0x15", "a head")
            told = result(logs.event())
            with net.chain.lock:
                net.chain.fork = 99
                net.chain.headers.clear()
                net.chain.by_hash.clear()
                net.chain.mine(quiet=True)
            net.at(0, "the new chain is taken up")
            net.chain.mine()
            net.at(1, "and followed")
            eq([result(heads.event())["hash"] for _ in range(2)], [h["hash"] for h in net.chain.headers],
               "both its heads are told")
            gone = result(logs.event())
            eq((gone["blockHash"], gone["removed"]), (told["blockHash"], True), "a log is taken back")
            eq([result(logs.event())["blockHash"] for _ in range(2)], [h["hash"] for h in net.chain.headers],
               "the new ones are told")


def test_walk_grows():
    """While a gap is filled the chain goes on growing."""
    chain = Chain(blocks=30)
    with Net(["http", "http"], chain=chain) as net:
        net.at(30, "the tip is known")
        with net.gw.http() as client:
            name = rawjson.parse(client.call("eth_newBlockFilter").ok())
        net.nodes[1].stop()
        eventually(lambda: net.upstream(1)["state"] != "up", 8, "one node is enough")
        net.nodes[0].freeze()
        grow(chain, 450)
        left = [300]

        def script(request):
            if request.method == "eth_getBlockByHash" and left[0] > 0:
                left[0] -= 1
                chain.mine(quiet=True)
            return request.later(0.002) if request.method == "eth_getBlockByHash" else None
        net.nodes[0].script = script
        net.nodes[0].thaw.set()
        eventually(lambda: left[0] == 0 and net.tip() == chain.number(), 30, "the newest block")
        with net.gw.http() as client:
            told = rawjson.parse(client.call("eth_getFilterChanges", [name]).ok())
        eq(told, [h["hash"] for h in chain.headers[31:]], "all blocks are told")


def test_snapshot():
    """All nodes were set up anew from a snapshot: they have no ancestors to show."""
    chain = Chain(blocks=30)
    with Net(["http", "http"], chain=chain) as net:
        net.at(30, "the tip is known")
        grow(chain, 40)
        known = {h["hash"] for h in chain.headers[60:]}
        for node in net.nodes:
            node.script = lambda r: r.result(b"null") if r.method == "eth_getBlockByHash" and \
                r.args()[0] in {h["hash"] for h in chain.headers} - known else None
        net.at(70, "its word is taken")
        chain.mine()
        net.at(71, "and it goes on")


def test_far_filter():
    """A block filter is told by its end that blocks are missing, not by a hash of zeros."""
    with Net(["http", "http"]) as net:
        with net.gw.http() as client:
            name = rawjson.parse(client.call("eth_newBlockFilter").ok())
            grow(net.chain, 600)
            net.at(630, "the chain is taken up anew")
            client.call("eth_getFilterChanges", [name]).refused(-32000)


# --- nodes of few words ----------------------------------------------------------------------------

def test_poor():
    """No chain id, no genesis, no finality, no time stamps."""
    chain = Chain(blocks=30)
    for head in chain.headers:
        del head["timestamp"]

    def script(request):
        if request.method == "eth_chainId":
            return request.error(-32601, "no such method")
        if request.method == "eth_getBlockByNumber" and request.args()[0] in ("0x0", "safe", "finalized"):
            return request.result(b"null") if request.args()[0] == "0x0" else \
                request.error(-32602, "invalid block tag")
        return None
    with Net(["http", "http"], chain=chain) as net:
        for node in net.nodes:
            node.script = script
        net.at(30, "the tip is known")
        tags = [p for n in net.nodes for p in n.params_seen("eth_getBlockByNumber") if b"finalized" in p]
        for _ in range(12):
            head = chain.mine()
            del head["timestamp"]
            net.at(chain.number(), "the next")
        with net.gw.ws() as client:
            subscribe(client, "newHeads")
        now = [p for n in net.nodes for p in n.params_seen("eth_getBlockByNumber") if b"finalized" in p]
        tap.at_most(len(now) - len(tags), 4, "questions for what no node knows")


def test_pruned():
    """Old blocks are gone: nobody waits for them."""
    with Net(["http"]) as net:
        net.nodes[0].script = lambda r: r.result(b"null") if 0 < (by_number(r) or 0) < 25 else None
        with net.gw.ws() as client:
            began = time.monotonic()
            subscribe(client, "newHeads")
            tap.check(time.monotonic() - began < tap.limit(3), "a subscription is answered soon")
            net.chain.mine()
            eq(result(client.event())["number"], "0x1f", "a head")


def test_stalled():
    """One node that stalls does not keep subscribers waiting."""
    with Net(["ws", "ws"], poll="1s") as net:
        net.at(30, "the tip is known")
        eventually(lambda: all("head" in net.upstream(i) for i in (0, 1)), 8, "both are heard of")
        with net.gw.ws() as client:
            subscribe(client, "newHeads")
            net.nodes[1].freeze()
            began = time.monotonic()
            subscribe(client, "newHeads")
            tap.check(time.monotonic() - began < tap.limit(1.5), "answered soon")
        net.nodes[1].thaw.set()


def test_bloom():
    """Blooms that speak of logs which nobody is given do not hold up the others for ever."""
    with Net(["http", "http"], chain=Chain(blocks=30, live=True)) as net:
        empty = set()
        for node in net.nodes:
            node.script = lambda r: r.result(b"[]") if r.method == "eth_getLogs" and \
                r.args()[0].get("blockHash") in empty else None
        with net.gw.ws() as client:
            subscribe(client, "logs", {})
            with net.chain.lock:
                head = net.chain.mine(quiet=True, logsBloom=ONES)
                empty.add(head["hash"])
            net.chain.announce(head)
            last = net.chain.mine(logsBloom=ONES)
            eq(result(client.event(tap.limit(10)))["blockHash"], last["hash"], "the log of the next block")


def test_second_opinion():
    """An answer that may be stale is better than none."""
    with Net(["http", "http"], timeout="8s", attempt_timeout="0ms") as net:
        net.at(30, "the tip is known")
        asked = []

        def script(request):
            if request.method != "eth_getTransactionByBlockHashAndIndex":
                return None
            asked.append(request)
            return request.result(b"null") if len(asked) == 1 else request.later(30)
        for node in net.nodes:
            node.script = script
        with net.gw.http() as client:
            began = time.monotonic()
            eq(client.call("eth_getTransactionByBlockHashAndIndex",
                           [net.chain.headers[-1]["hash"], "0x9"]).ok(), b"null", "the first answer")
            tap.check(time.monotonic() - began < tap.limit(5), "in time")
        eq(len(asked), 2, "both were asked")


def test_range():
    """A node that has shown that it lacks old state is not asked for ranges from the beginning."""
    if not has_stage("failover"):
        raise tap.Skip("no failover")
    with Net(["http", "http"], chain=Chain(blocks=200), middleware=[{"use": "failover"}]) as net:
        net.at(200, "the tip is known")
        net.nodes[0].script = lambda r: r.error(-32000, "missing trie node 12ab (path ) <nil>") \
            if r.method == "eth_getBalance" else None
        with net.gw.http() as client:
            eventually(lambda: client.call("eth_getBalance", ["0x01", "0x10"]).ok() and
                       net.nodes[0].count("eth_getBalance") > 0, 8, "it is asked once")
            for i in range(10):
                client.call("eth_getLogs", [{"fromBlock": "earliest", "topics": [hex(i)]}]).ok()
                client.call("eth_getLogs", [{"blockHash": None, "fromBlock": "0x5",
                                             "topics": [hex(i)]}]).ok()
        eq(net.nodes[0].count("eth_getLogs"), 0, "ranges that it lacks")


# --- what is old and what is new ---------------------------------------------------------------------

def test_joining():
    """Logs that are still being asked for when a client subscribes are not news to it."""
    with Net(["http", "http"], chain=Chain(blocks=30, live=True)) as net:
        slow = []
        for node in net.nodes:
            node.script = lambda r: (slow.append(r), r.later(1.0))[1] if r.method == "eth_getLogs" else None
        with net.gw.ws() as first, net.gw.ws() as second, net.gw.http() as third:
            subscribe(first, "logs", {})
            old = net.chain.mine()
            eventually(lambda: slow, 8, "its logs are asked for")
            subscribe(second, "logs", {})
            name = rawjson.parse(third.call("eth_newFilter", [{}]).ok())
            new = net.chain.mine()
            eq([result(first.event())["blockHash"] for _ in range(2)], [old["hash"], new["hash"]],
               "who was there is told of both")
            eq(result(second.event())["blockHash"], new["hash"], "who came later of one")
            eq([g["blockHash"] for g in rawjson.parse(third.call("eth_getFilterChanges", [name]).ok())],
               [new["hash"]], "the filter too")


def test_limit():
    with Net(["http"], limits={"max_subscriptions": 3}) as net, net.gw.ws() as client:
        client.send(b"[" + b",".join(b'{"jsonrpc":"2.0","id":%d,"method":"eth_subscribe","params":["newHeads"]}'
                                     % i for i in range(10)) + b"]")
        answers = rawjson.parse(client.recv())
        eq(len([a for a in answers if "result" in a]), 3, "subscriptions of one session")


# --- how much is asked ---------------------------------------------------------------------------------

def test_cost():
    with Net(["http", "http"], own=[{"tier": 0}, {"tier": 1}], poll="5s") as net:
        net.at(30, "the tip is known")
        eventually(lambda: all("head" in net.upstream(i) for i in (0, 1)), 8, "both are heard of")
        before = [polls(n) for n in net.nodes]
        with net.gw.http() as client:
            for i in range(60):
                client.call("zks_getL1BatchDetails", [i]).refused()
            tap.at_most(polls(net.nodes[0]) - before[0], 3, "polls for methods that only read")
            for i in range(30):
                client.call("eth_sendRawTransaction", [word("tx", i)]).ok()
        tap.check(polls(net.nodes[0]) > before[0], "what was sent is looked for")
        tap.at_most(polls(net.nodes[1]) - before[1], 2, "polls of the spare node")


def test_idle():
    """Who only waits for events is a client as well; without clients little is asked."""
    if os.environ.get("EGW_LONG") != "1":
        raise tap.Skip("only with EGW_LONG=1: half a minute without requests is idle")
    with Net(["http"], poll="200ms") as net:
        with net.gw.ws() as client:
            subscribe(client, "newHeads")
            began = time.monotonic()
            eventually(lambda: time.monotonic() - began > 33, 40, "it waits for long")
            before = polls(net.nodes[0])
            eventually(lambda: polls(net.nodes[0]) > before + 3, 3, "the node is polled as before")
        eventually(lambda: net.gw.metric("ethrpcgw_subscriptions") == 0, 8, "it leaves")
        before = len(net.nodes[0].requests)
        began = time.monotonic()
        eventually(lambda: time.monotonic() - began > 25, 30, "nobody is there")
        tap.at_most(len(net.nodes[0].requests) - before, 8, "requests in 25 s")


def test_spare_back():
    """The tip does not go down since the tier in use is back, a block behind."""
    with Net(["http", "http"], [{"lag": 1}, {"lag": 0}], own=[{"tier": 0}, {"tier": 1}]) as net:
        eventually(lambda: polls(net.nodes[0]) > 120, 20, "polls")
        net.at(29, "the tip is that of the tier in use")
        net.nodes[0].stop(rst=True)
        net.at(30, "with that tier down the spare one counts")
        net.nodes[0].listen()
        eventually(lambda: net.upstream(0)["state"] == "up", 8, "it is back")
        before = polls(net.nodes[0])
        eventually(lambda: polls(net.nodes[0]) > before + 60, 12, "polls")
        eq(net.tip(), 30, "the tip stays")
        net.chain.mine()
        net.chain.mine()
        net.at(31, "until it has come so far")


need_program()
tap.watchdog(240)
tap.run("the pending block is not the newest one", test_pending)
tap.run("a block that never comes", test_boast)
tap.run("a chain that is moved back by more than the window", test_rewind)
tap.run("a chain that is begun anew while its nodes stay", test_reset)
tap.run("a gap that grows while it is filled", test_walk_grows)
tap.run("nodes without ancestors", test_snapshot)
tap.run("blocks that a filter misses", test_far_filter)
tap.run("nodes that know little", test_poor)
tap.run("nodes without old blocks", test_pruned)
tap.run("a node that stalls", test_stalled)
tap.run("blooms that lie", test_bloom)
tap.run("a second opinion that does not come", test_second_opinion)
tap.run("ranges from the beginning", test_range)
tap.run("who subscribes while logs are asked for", test_joining)
tap.run("the limit of subscriptions, in a batch", test_limit)
tap.run("what a gateway costs", test_cost)
tap.run("who only waits, and nobody", test_idle)
tap.run("a tier that comes back", test_spare_back)
tap.done()
