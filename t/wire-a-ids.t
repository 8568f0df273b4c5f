#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour A: ids."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
import wire
from clients import Reply, event_parts, request
from fakenode import raw
from wire import row

IDS = [
    b"0", b"-1", b"9007199254740993", b"18446744073709551616", b"1.5", b"1e2", b"-0", b'"007"',
    b'""', b'"\\u0041"', b'"a\\"b\\\\c\\/\\n\\ud83d\\ude00"', '"é漢😀"'.encode(),
    b"123456789012345678901234567890", b'"' + b"x" * 300 + b'"', b"null"
]


@row("A1", "id %s verbatim", clients="http ws ipc", upstreams="http ws ipc", each=IDS)
def a1(env, client, number):
    params = b'["0x1","latest"]'
    reply = Reply(client.raw(request("eth_getBalance", params, number)))
    tap.eq(reply.id, number, "id")
    tap.eq(reply.ok(), env.want("eth_getBalance", params), "result")


@row("A2", "similar ids in flight together", clients="http ws ipc", upstreams="http ws ipc")
def a2(env, client):
    ids = [b"1", b"1.5", b"1.0", b'"1"', b"9223372036854775808", b"9223372036854775809", b"1"]
    env.node.script = lambda req: req.later(0.1) if req.method == "eth_call" else None
    texts = [request("eth_call", b"[%d]" % i, name) for i, name in enumerate(ids)]
    wants = [env.want("eth_call", b"[%d]" % i) for i in range(len(ids))]
    if client.kind == "http":
        def job(text):
            def work():
                with env.client("http") as own:
                    return Reply(own.raw(text))
            return work
        got = tap.parallel([job(t) for t in texts])
        tap.eq([r.id for r in got], ids, "ids")
        tap.eq([r.ok() for r in got], wants, "results")
    else:
        for text in texts:
            client.send(text)
        got = [Reply(client.recv()) for _ in texts]
        tap.eq(sorted((r.id, r.ok()) for r in got), sorted(zip(ids, wants)), "answers")


@row("A3", "node quotes the id of eth_subscribe", clients="ws", upstreams="ws ipc", fresh=True)
def a3(env, client):
    env.node.quote_ids = True
    name = client.subscribe("newHeads")
    stay = env.connections_stay()
    for _ in range(3):
        head = env.chain.mine()
        sub, result = event_parts(client.event())
        tap.eq(sub, name, "subscription")
        tap.contains(result, head["hash"].encode())
        tap.eq(client.call("eth_call", [1]).ok(), env.want("eth_call", b"[1]"))
    stay()
    env.node.cut()
    tap.eventually(lambda: env.node.subscriptions(), 5, "subscribed again")
    stay = env.connections_stay()
    head = env.chain.mine()
    sub, result = event_parts(client.event())
    tap.eq(sub, name, "subscription after the reconnect")
    tap.contains(result, head["hash"].encode())
    tap.eq(client.call("eth_call", [2]).ok(), env.want("eth_call", b"[2]"))
    stay()


@row("A4", "node answers with id 99 to id %s", clients="http ws ipc", upstreams="http",
     each=[b"1", b'"x"', b"2.5"])
def a4(env, client, number):
    env.node.script = lambda req: raw(b'{"jsonrpc":"2.0","id":99,"result":"0x99"}') \
        if req.method == "eth_call" else None
    reply = client.call("eth_call", [1], number)
    tap.check(reply.error is not None or reply.result == b'"0x99"', "result or error")
    env.node.script = None
    tap.eq(client.call("eth_call", [1], number).ok(), env.want("eth_call", b"[1]"), "later")


@row("A5", "node answers without id: %s", clients="http ws ipc", upstreams="http",
     each=[b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"m"}}',
           b'{"code":-32005,"message":"slow down"}', b'{"error":"text"}'])
def a5(env, client, body):
    env.node.script = lambda req: raw(body) if req.method == "eth_call" else None
    for number in (b"1", b'"x"'):
        client.call("eth_call", [5], number).refused()
    env.node.script = None
    tap.eq(client.call("eth_call", [5]).ok(), env.want("eth_call", b"[5]"), "later")


@row("A6", "node answers an error with id null", clients="http ws ipc", upstreams="http")
def a6(env, client):
    env.node.script = lambda req: raw(
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}') \
        if req.method == "eth_call" else None
    for number in (b"1", b'"x"', b"2.5"):
        client.call("eth_call", [6], number).refused()
    env.node.script = None
    tap.eq(client.call("eth_call", [6]).ok(), env.want("eth_call", b"[6]"), "later")


@row("A7", "a notification in a batch is executed, not answered", clients="http ws ipc",
     upstreams="http ws ipc")
def a7(env, client):
    tx = "0x02" + os.urandom(20).hex()
    got = client.batch([request("eth_getBalance", ["0x1"], 1),
                        request("eth_sendRawTransaction", [tx], None),
                        request("eth_getBalance", ["0x3"], 3)])
    tap.eq([r.id for r in got], [b"1", b"3"], "ids")
    tap.eq([r.ok() for r in got], [env.want("eth_getBalance", b'["0x1"]'),
                                   env.want("eth_getBalance", b'["0x3"]')], "results")
    tap.eventually(lambda: env.chain.sent.count(tx) == 1, 3, "the transaction was sent")


@row("A8", "a batch with the same id twice", clients="http ws ipc", upstreams="http ws ipc")
def a8(env, client):
    got = client.batch([request("eth_chainId", [], 1), request("eth_getBalance", ["0x1"], 1)])
    tap.eq([(r.id, r.ok()) for r in got],
           [(b"1", b'"0x1"'), (b"1", env.want("eth_getBalance", b'["0x1"]'))], "answers")


wire.main()
