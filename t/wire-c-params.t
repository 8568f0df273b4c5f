#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour C: params, and bytes that are no text."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
import wire
from clients import Closed, Reply, request
from wire import row

HASH = b'"0x' + b"ab" * 32 + b'"'


@row("C1", "params %s", clients="http ws ipc", upstreams="http ws ipc",
     each=[("missing", None), (b"null", b"null"), (b"[]", b"[]"), (b"{}", b"{}")])
def c1(env, client, params):
    reply = client.call("eth_gasPrice", params)
    if params == b"{}" and reply.error is not None:
        reply.refused(-32602)
    else:
        tap.eq(reply.ok(), env.want("eth_gasPrice"), "result")
        tap.check(env.node.seen("eth_gasPrice"), "it was asked")
    for got in env.node.params_seen("eth_gasPrice"):
        tap.check(got is not None and got[:1] in (b"[", b"{"),
                  "params as the node sees them: %r" % got)


@row("C2", "nested empty values: %s", clients="http ws ipc", upstreams="http ws ipc",
     each=[b'[{"topics":[],"address":[],"fromBlock":"0x1","toBlock":"0x1"}]',
           b'[{"topics":[null,[],{}],"a":{"b":{},"c":[[]],"d":null}},null,[],{},""]',
           b'[ 1.50 , 1e2,-0, "\\u0041\\/", 123456789012345678901234567890 ]',
           b'{"b":1,"a":{"z":[]}}'])
def c2(env, client, params):
    tap.eq(
        client.call("eth_getLogs" if b"topics" in params else "eth_call", params).error, None,
        "error")
    method = "eth_getLogs" if b"topics" in params else "eth_call"
    tap.eq(env.node.params_seen(method), [params], "what the node got")


@row(
    "C4", "block object: %s", clients="http ws ipc", upstreams="http", each=[
        b'{"blockHash":' + HASH + b"}", b'{"blockHash":' + HASH + b',"requireCanonical":true}',
        b'{"blockNumber":"latest"}', b'{"blockNumber":"0x10"}'
    ])
def c4(env, client, block):
    for params, method in ((b'[{"to":"0x1"},' + block + b"]", "eth_call"),
                           (b'["0x1",' + block + b"]", "eth_getBalance")):
        for _ in range(2):
            tap.eq(client.call(method, params).ok(), env.want(method, params), method)


@row("C5", "bytes that are no UTF-8 in the method", clients="http ws ipc", upstreams="http")
def c5_method(env, client):
    text = b'{"jsonrpc":"2.0","id":1,"method":"eth_\xffcall","params":[]}'
    try:
        Reply(client.raw(text)).refused(-32700, -32600, -32601)
        tap.eq(client.call("eth_chainId").ok(), b'"0x1"', "afterwards")
    except Closed:
        tap.eq(client.kind, "ws", "only a WebSocket may be closed")
        tap.eq(client.closed and client.closed.close_code(), 1007, "close code")
    env.untouched()
    env.gw.metrics()


@row("C5", "odd path %s", clients="http", upstreams="http", each=["/%FFeth", b"/\xff"])
def c5_path(env, client, path):
    response = client.request(request("eth_chainId"), path=path)
    if response.status == 200:
        Reply(response.body)
    else:
        tap.check(400 <= response.status < 500, "status %d" % response.status)
    with env.client("http") as other:
        other.call("eth_chainId").ok()
    env.gw.metrics()


@row("C5", "eth_subscribe with params %s", clients="http ws ipc", upstreams="http ws",
     each=[b"[1]", b'[{"a":1}]', b"[]", b"[null]"])
def c5_subscribe(env, client, params):
    client.call("eth_subscribe", params).refused()
    tap.eq(client.call("eth_chainId").ok(), b'"0x1"', "afterwards")
    env.gw.metrics()


wire.main()
