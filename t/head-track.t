#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The head of a network: what /status says of it while nodes lag, lie, reorganise, fall silent,
are replaced, and what that does to calls."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
from chain import Chain, word
from gateway import need_program
from net import Net
from tap import eq, eventually


def test_follows():
    with Net(["http", "ws"]) as net:
        net.at(30, "the tip is known")
        eq(net.head()["tip"]["hash"], net.chain.headers[-1]["hash"], "its hash")
        eventually(lambda: net.head().get("finalized", {}).get("number") ==
                   int(net.chain.find("finalized")["number"], 16), 8, "and what is finalized")
        eq(net.head()["safe"]["number"], int(net.chain.find("safe")["number"], 16), "and safe")
        tap.check(net.head()["live"], "it is live")
        eventually(lambda: net.head()["pushed"], 8, "one node pushes")
        net.chain.mine()
        net.at(31, "a new block")
        for _ in range(5):
            net.chain.mine(quiet=True)
        net.at(36, "blocks that nobody announced")
        eq(net.head()["reorgs"], 0, "no reorganisation so far")
        for depth in range(1, 8):
            net.chain.reorg(depth)
            eventually(lambda: net.head()["tip"]["hash"] == net.chain.headers[-1]["hash"], 8,
                       "the other branch, %d deep" % depth)
        tap.check(net.head()["reorgs"] > 0, "counted")
        metrics = net.gw.admin("/metrics")[1]
        tap.check(b'ethrpcgw_head_block{network="main"} 36' in metrics, "a metric of the tip")
        tap.check(b'ethrpcgw_upstream_head_block{network="main",upstream="n1"} 36' in metrics,
                  "and of each node's")


def test_one_node_needs_none():
    with Net(["http"]) as net:
        with net.gw.http() as client:
            for _ in range(3):
                eq(net.number(client), 30, "eth_blockNumber")
        eq(net.status()["head"], None, "nobody needs the head")
        eq(net.nodes[0].count("eth_getBlockByNumber"), 0, "so it is not asked for")


def test_lag():
    with Net(["http", "http"], [{"lag": 0}, {"lag": 2}]) as net:
        net.at(30, "the tip is the higher one")
        eventually(lambda: net.upstream(1).get("head") == 28, 8, "the other one's head is known")
        with net.gw.http() as client:
            for _ in range(20):
                eq(net.number(client), 30, "eth_blockNumber does not go back")
                eq(rawjson.parse(client.call("eth_getBlockByNumber", ["latest", False]).ok())
                   ["number"], "0x1e", "nor does latest")
                tap.check(client.call("eth_getBlockByNumber", ["0x1d", False]).ok() != b"null",
                          "block 29 is there")
            for i in range(20):
                client.call("eth_getBlockByNumber", [hex(i), False]).ok()
        asked = [p for p in net.nodes[1].params_seen("eth_getBlockByNumber") if b'"0x1d"' in p]
        eq(asked, [], "the node that lags is not asked for what it does not have")
        tap.check(any(b'"0x5"' in p or b'"0x6"' in p for p in
                      net.nodes[1].params_seen("eth_getBlockByNumber")), "but for what it has")


def test_lie():
    with Net(["http", "http"]) as net:
        net.at(30, "the tip is known")
        lie = dict(net.chain.headers[-1], number="0x3b9ac9ff", hash=word("lie"),
                   parentHash=word("nobody"))

        def script(request):
            if request.method == "eth_blockNumber":
                return request.result(b'"0x3b9ac9ff"')
            if request.method == "eth_getBlockByNumber" and request.args()[0] == "latest":
                return request.result(rawjson.compact(lie))
            return None
        net.nodes[0].script = script
        before = net.nodes[0].count("eth_getBlockByNumber")
        eventually(lambda: net.nodes[0].count("eth_getBlockByNumber") > before + 3, 8, "polls")
        eq(net.tip(), 30, "it is not believed")
        with net.gw.http() as client:
            for _ in range(6):
                eq(net.number(client), 30, "nor passed on")
        net.nodes[0].script = None
        net.chain.mine()
        net.at(31, "and then the truth again")
        before = [n.count("eth_call") for n in net.nodes]
        with net.gw.http() as client:
            for i in range(20):
                client.call("eth_call", [i, "0x1"]).ok()
        eq([n.count("eth_call") > b for n, b in zip(net.nodes, before)], [True, True],
           "both are used")


def test_lower():
    """The only node goes back without another branch: believed, but not at once."""
    chain = Chain(blocks=30)
    with Net(["http", "http"], [{"lag": 0}, {"lag": 0}], chain=chain) as net:
        net.at(30, "the tip is known")
        for node in net.nodes:
            node.chain.set_lag(3)
        with net.gw.http() as client:
            eq(net.number(client), 30, "the tip stays for a while")
        net.at(27, "and then goes down")
        for node in net.nodes:
            node.chain.set_lag(0)
        net.at(30, "and up again")


def test_spare():
    with Net(["http", "http"], [{"lag": 1}, {"lag": 0}], own=[{"tier": 0}, {"tier": 1}]) as net:
        net.at(29, "the tip is that of the tier in use")
        with net.gw.http() as client:
            for i in range(20):
                eq(client.call("eth_call", [i, "latest"]).error, None, "a call")
                eq(net.number(client), 29, "its height")
            eq(net.nodes[1].count("eth_call"), 0, "the spare one is not asked")
            net.nodes[0].stop(rst=True)
            net.at(30, "with that tier down the spare one counts")
            eventually(lambda: net.number(client) == 30, 8, "for clients too")


def test_stranger():
    other = Chain(blocks=99, chain_id=7)
    with Net(["http", "http"]) as net:
        net.at(30, "the tip is known")
        net.nodes[1].cut()
        net.nodes[1].stop()
        net.nodes[1].chain = other
        eventually(lambda: net.upstream(1)["state"] != "up", 8, "a node goes away")
        net.nodes[1].listen()
        eventually(lambda: net.upstream(1)["state"] == "other chain", 8,
                   "and comes back with another chain")
        with net.gw.http() as client:
            for i in range(10):
                eq(client.call("eth_chainId").ok(), b'"0x1"', "it is not asked")
        eq(net.tip(), 30, "the tip is not its")
        net.nodes[1].chain = net.chain
        eventually(lambda: net.upstream(1)["state"] == "up", 8, "until it has the right one")


def test_replaced():
    """A development chain begun anew: the same id, another genesis."""
    with Net(["http", "http"]) as net:
        net.at(30, "the tip is known")
        fresh = Chain(blocks=0)
        fresh.fork = 99
        fresh.headers, fresh.by_hash = [], {}
        for _ in range(6):
            fresh.mine(quiet=True)
        for node in net.nodes:
            node.cut()
            node.stop()
        eventually(lambda: "up" not in [u["state"] for u in net.status()["upstreams"]], 8,
                   "both are gone")
        for node in net.nodes:
            node.chain = fresh
            node.listen()
        net.at(5, "the new chain is taken up")
        with net.gw.http() as client:
            eq(net.number(client), 5, "and told to clients")


def test_silent_feed():
    """A subscription that brings nothing any more is noticed."""
    with Net(["ws", "ws"]) as net:
        net.at(30, "the tip is known")
        eventually(lambda: net.head()["pushed"], 8, "heads are pushed")
        for node in net.nodes:
            node.push_heads = False
        net.chain.mine()
        net.at(31, "the next head is found all the same")
        net.chain.mine()
        net.at(32, "and the next")


def test_loss():
    with Net(["ws", "http"]) as net:
        net.at(30, "the tip is known")
        for node in net.nodes:
            node.stop(rst=True)
        eventually(lambda: net.head()["live"] is False, 15, "with all nodes gone it is not live")
        with net.gw.http() as client:
            client.call("eth_blockNumber").refused()
        for node in net.nodes:
            node.listen()
        net.chain.mine()
        net.at(31, "it goes on when they are back")
        tap.check(net.head()["live"], "and is live")


need_program()
tap.watchdog(150)
tap.run("the head is followed: blocks, gaps, reorganisations", test_follows)
tap.run("one node alone needs no head", test_one_node_needs_none)
tap.run("a node that lags", test_lag)
tap.run("a node that lies", test_lie)
tap.run("all nodes fall back", test_lower)
tap.run("a spare tier", test_spare)
tap.run("a node of another chain", test_stranger)
tap.run("a chain that was begun anew", test_replaced)
tap.run("a feed that falls silent", test_silent_feed)
tap.run("all nodes are lost", test_loss)
tap.done()
