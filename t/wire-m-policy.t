#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour M: one policy on every transport, alone or in a batch."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
import wire
from clients import Reply, request
from wire import row

DENIED = ["eth_getProof", "debug_traceCall", "personal_sign", "admin_peers"]
RULES = {"middleware": [{"use": "methods", "deny": ["eth_getProof", "debug_*"]}]}


def unseen(env):
    tap.eq(env.asked(*DENIED), 0, "denied calls at the node")


@row("M1", "%s in a batch", clients="http ws ipc", upstreams="http", each=DENIED, **RULES)
def m1_batch(env, client, method):
    got = client.batch([request("eth_call", [1], 1), request(method, [], 2),
                        request("eth_call", [2], 3), request(method, [1], b'"4"'),
                        request(method, [], None), request("eth_chainId", [], 5)])
    tap.eq([r.id for r in got], [b"1", b"2", b"3", b'"4"', b"5"], "ids")
    for i in (1, 3):
        got[i].refused()
    for i, params in ((0, b"[1]"), (2, b"[2]")):
        tap.eq(got[i].ok(), env.want("eth_call", params), "a good one")
    tap.eq(got[4].ok(), b'"0x1"', "a good one")
    unseen(env)


@row("M1", "%s alone, as notification, under an escaped name", clients="http ws ipc",
     upstreams="http", each=DENIED, **RULES)
def m1_single(env, client, method):
    client.call(method, []).refused()
    escaped = b'{"jsonrpc":"2.0","id":1,"\\u006dethod":"\\u%04x%s","params":[]}' % (
        ord(method[0]), method[1:].encode())
    Reply(client.raw(escaped)).refused()
    client.silent(request(method, [], None), 0.1)
    client.silent(b"[" + request(method, [], None) + b"]", 0.1)
    tap.eq(client.call("eth_call", [1]).ok(), env.want("eth_call", b"[1]"), "afterwards")
    unseen(env)


@row(
    "M1", "the member that counts: %s", clients="http ws ipc", upstreams="http", each=[
        ("method twice",
         b'{"jsonrpc":"2.0","id":1,"method":"eth_call","method":"eth_getProof","params":[]}'),
        ("method twice, escaped",
         b'{"jsonrpc":"2.0","id":1,"method":"eth_call","\\u006dethod":'
         b'"eth_getProof","params":[]}'),
        ("white space", b'{"jsonrpc":"2.0","id":1,"method":" eth_getProof","params":[]}'),
        ("NUL", b'{"jsonrpc":"2.0","id":1,"method":"eth_getProof\\u0000","params":[]}')
    ], **RULES)
def m1_tricks(env, client, text):
    Reply(client.raw(text)).refused()
    tap.check(not [r for r in env.node.seen() if "roof" in r.method],
              "nothing of it at the node")


@row("M1", "subscriptions are under the policy, too", clients="ws ipc", upstreams="ws",
     middleware=[{"use": "methods", "deny": ["eth_subscribe"]}])
def m1_subscribe(env, client):
    client.call("eth_subscribe", ["newHeads"]).refused()
    got = client.batch(
        [request("eth_subscribe", ["newHeads"], 1),
         request("eth_chainId", [], 2)])
    got[0].refused()
    got[1].ok()
    client.silent(request("eth_subscribe", ["newHeads"], None), 0.1)
    tap.eq(env.asked("eth_subscribe"), 0, "at the node")
    tap.eq(env.node.subscriptions(), [], "subscriptions at the node")


wire.main()
