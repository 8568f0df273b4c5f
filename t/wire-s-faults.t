#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour S: further faults."""
import gzip
import os
import sys
import time
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import Closed, Reply, request
from fakenode import HANDLED, raw, silent
from gateway import sanitized
from wire import row


def works(env, client, i=1):
    tap.eq(
        client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i),
        "an ordinary call")


FULL = wire.full()


@row("S1", "parameters that look alike", clients="http ws", upstreams="http ws ipc")
def s1(env, client):
    for _ in range(2):
        for params in (b'["0xa","0x1","latest"]', b'["0xa","0x11","atest"]', b'["ab","c"]',
                       b'["a","bc"]', b"[1]", b'["1"]', b"[[1],2]", b"[1,[2]]"):
            for method in ("eth_getStorageAt", "eth_call"):
                tap.eq(client.call(method, params).ok(), env.want(method, params), method)


@row(
    "S2", "%s changes between two calls", clients="http", upstreams="http", middleware=[{
        "use": "methods",
        "allow": ["eth_accounts"]
    }], also=wire.full(methods={"allow": ["eth_accounts"]}), each=[
        "eth_gasPrice", "eth_accounts", "eth_syncing", "net_peerCount",
        "eth_maxPriorityFeePerGas", "txpool_status", "eth_feeHistory"
    ])
def s2(env, client, method):
    values = [b'"0x1"', b'{"a":2}']
    for value in values:
        env.node.script = lambda req, v=value: req.result(v) if req.method == method else None
        tap.eventually(lambda v=value: client.call(method, []).ok() == v, 1.5, "the new value")
        env.chain.mine()


@row("S4", "the first node keeps a transaction and says nothing", clients="http ws",
     upstreams="http+http ws+ws", fresh=True, network={"timeout": "2500ms"}, also=FULL)
def s4(env, client):
    def script(req):
        if req.method != "eth_sendRawTransaction" or env.asked("eth_sendRawTransaction") > 1:
            return None
        env.chain.do_eth_sendRawTransaction(req.args())
        return silent()

    for node in env.nodes:
        node.script = script
    began = time.monotonic()
    reply = client.call("eth_sendRawTransaction", ["0x02aa"])
    tap.at_most(time.monotonic() - began, tap.limit(3.2), "seconds")
    if reply.error is None:
        tap.eq(reply.result, env.want("eth_sendRawTransaction", b'["0x02aa"]'), "hash")
    for node in env.nodes:
        tap.at_most(node.count("eth_sendRawTransaction"), 1, "copies at a node")


@row("S6", "result and error for id %s", clients="http ws ipc", upstreams="http ws ipc",
     each=[b'"abc"', b"-5", b"18446744073709551616", b'"0"', b"null"])
def s6(env, client, number):
    env.node.script = lambda req: req.error(-32000, "m") if req.params == b"[2]" else None
    reply = Reply(client.raw(request("eth_call", [1], number)))
    tap.eq((reply.id, reply.ok()), (number, env.want("eth_call", b"[1]")), "result")
    reply = Reply(client.raw(request("eth_call", [2], number)))
    tap.eq((reply.id, reply.refused()), (number, -32000), "error")


@row("S7", "finalized reads again and again", clients="http ws ipc", upstreams="http")
def s7(env, client):
    block = env.chain.block(env.chain.find("0x10"))
    asked = [("eth_getBlockByNumber", ["0x10", False]),
             ("eth_getBlockByHash", [block["hash"], True]),
             ("eth_getTransactionReceipt", [block["transactions"][0]])]
    for _ in range(15):
        for method, params in asked:
            want = env.want(method, rawjson.compact(params))
            tap.eq(client.call(method, params).ok(), want, method)


@row("S8", "%s: always an error object", clients="http ws ipc", upstreams="http",
     each=[("refused method", request("admin_peers", [], 8), b"8", (-32601,)),
           ("invalid request", b'{"jsonrpc":"2.0","id":8}', b"8", (-32600,)),
           ("parse error", b'{"jsonrpc":"2.0","id":8,}\n', b"null", (-32700,))])
def s8(env, client, text, number, codes):
    reply = Reply(client.raw(text))
    reply.refused(*codes)
    tap.eq(reply.id, number, "id")
    works(env, client)


@row("S8", "node down: always an error object", clients="http ws ipc", upstreams="http ws ipc",
     fresh=True)
def s8_down(env, client):
    env.node.stop()
    client.call("eth_call", [1], 8).refused()


@row("S9", "body %s", clients="http ws ipc", upstreams="http",
     each=[b"\xff\xfe\n", b"{", b'{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[\n'])
def s9_body(env, client, text):
    try:
        if client.kind == "ipc" and text[-1:] != b"\n" or text.endswith(
                b"[\n") and client.kind == "ipc":
            client.send(text)
            client.stream.shutdown_write()
        else:
            client.send(text)
        Reply(client.recv()).refused(-32700)
    except Closed:
        tap.check(client.kind != "http", "HTTP answers")
    with env.client(client.kind) as other:
        works(env, other)


@row(
    "S9", "block %s", clients="http ws ipc", upstreams="http", each=[
        b'"1"', ("empty", b'""'), b"5", b"{}", b"[]", b'"0x"', b'"0xzz"',
        ("70 digits", b'"0x' + b"9" * 70 + b'"'), ("a long number", b"9" * 70), b"null",
        b"true"
    ])
def s9_block(env, client, block):
    params = b'["0x0000000000000000000000000000000000000001",' + block + b"]"
    reply = client.call("eth_getBalance", params)
    if reply.error is None:
        tap.eq(reply.result, env.want("eth_getBalance", params), "the node's answer")
    works(env, client)


@row("S12", "one of two nodes never answers reads", clients="http", upstreams="http+http",
     fresh=True, also=FULL)
def s12(env, client):
    env.node.script = lambda req: silent() if req.method == "eth_call" else None
    took = []
    for i in range(16):
        began = time.monotonic()
        works(env, client, i)
        took.append(time.monotonic() - began)
    slow = [t for t in took if t > 1.0]
    if len(slow) > 4:
        if "failover" not in env.gw.stages:
            raise tap.Todo("without a breaker reads go on paying for a silent node")
        tap.fail("%d of 16 reads were slow" % len(slow))


@row("S13", "100 reads at once, one is never answered", clients="ws ipc",
     upstreams="ws ipc http", fresh=True, also=FULL)
def s13(env, client):
    env.node.script = lambda req: silent() \
        if req.method == "eth_call" and req.args()[0] == 50 else None
    began = time.monotonic()
    for i in range(100):
        client.send(request("eth_call", [i], i))
    got = {}
    for _ in range(99):
        reply = Reply(client.recv())
        got[int(reply.id)] = reply.ok()
    tap.at_most(time.monotonic() - began, tap.limit(1.4), "seconds for 99 results")
    tap.eq(got, {i: env.want("eth_call", b"[%d]" % i)
                 for i in range(100) if i != 50}, "results")
    last = Reply(client.recv(6))
    tap.eq(last.id, b"50", "id of the last")
    if last.error is None:
        tap.eq(last.result, env.want("eth_call", b"[50]"), "the last")
    tap.at_most(time.monotonic() - began, tap.limit(5.0), "seconds for all")


@row("S14", "the only node is a unix socket", clients="http ws ipc", upstreams="ipc",
     fresh=True)
def s14(env, client):
    works(env, client)
    got = client.batch([request("eth_call", [i], i) for i in range(10)])
    tap.eq([r.ok() for r in got], [env.want("eth_call", b"[%d]" % i) for i in range(10)],
           "batch")
    big = b'"' + b"q" * 300000 + b'"'
    env.node.script = lambda req: req.result(big) if req.params == b'["big"]' else None
    tap.check(client.call("eth_call", ["big"]).ok() == big, "a large result")
    if client.kind == "http":
        def job(i):
            def work():
                with env.client("http") as own:
                    works(env, own, i)
            return work
        tap.parallel([job(i) for i in range(50)])
    else:
        for i in range(50):
            client.send(request("eth_call", [i], i))
        got = {int(r.id): r.ok() for r in (Reply(client.recv()) for _ in range(50))}
        tap.eq(got, {i: env.want("eth_call", b"[%d]" % i) for i in range(50)}, "50 at once")
    tap.at_most(env.node.accepted, 8, "connections to the node")


PATHS = [
    "/fastest", "/versus", "/debug/pprof", "/admin",
    "/..%2f..%2fetc/passwd", "/../../etc/passwd", "//", "/%00", "/main/../../x",
    ("a path of 100 KB", "/" + "a" * 100000)
]


@row("S20", "path %s", clients="http", upstreams="http", each=PATHS)
def s20(env, client, path):
    for method in ("GET", "POST"):
        with env.client("http") as own:
            try:
                response = own.request(
                    request("eth_chainId") if method == "POST" else b"", path=path,
                    method=method)
            except (BrokenPipeError, ConnectionResetError, Closed):
                tap.check(len(path) > 1000, "only an endless path may be cut off")
                continue
            tap.check(response.status == 200 or 400 <= response.status < 500,
                      "status %d" % response.status)
            tap.lacks(response.body, b"root:", "body")
    works(env, client)


def bodies():
    good = request("eth_call", [1])
    return [("a valid gzip", "gzip", gzip.compress(good)),
            ("a damaged gzip", "gzip", gzip.compress(good)[:-9] + b"12345"),
            ("a bomb", "gzip", gzip.compress(b"0" * 10000000)),
            ("deflate", "deflate", zlib.compress(good)), ("br", "br", b"\x0b\x02\x80abc\x03"),
            ("identity", "identity", good), ("an unknown coding", "xyz", good)]


@row("S24", "Content-Encoding: %s", clients="http", upstreams="http", each=bodies())
def s24(env, client, coding, body):
    before = env.gw.rss()
    response = client.request(body, headers=[("Content-Encoding", coding)])
    if response.status == 200:
        reply = Reply(response.body)
        if reply.error is None:
            tap.eq(reply.result, env.want("eth_call", b"[1]"), "result")
    else:
        tap.among(response.status, (400, 413, 415), "HTTP status")
    if not sanitized():
        tap.at_most(env.gw.rss() - before, 16 << 20, "growth of memory")
    with env.client("http") as other:
        works(env, other)


@row("S25", "all nodes answer 503", clients="http ws ipc", upstreams="http+http", fresh=True,
     also=FULL)
def s25(env, client):
    for node in env.nodes:
        node.script = lambda req: raw(b"Service Unavailable", status=503,
                                      headers=["Content-Type: text/plain"])
    client.call("eth_call", [1], b'"r"').refused()
    client.call("eth_sendRawTransaction", ["0x02bb"], b'"t"').refused()
    for node in env.nodes:
        tap.at_most(node.count("eth_sendRawTransaction"), 1, "copies at a node")


@row("S27", "the same read under many ids", clients="http ws ipc", upstreams="http ws ipc")
def s27(env, client):
    params = b'["0x10",false]'
    want = env.want("eth_getBlockByNumber", params)
    ids = [b"1", b'"a"', b"2.50", b'"null"', b"0", b'""']
    with env.client(client.kind) as other:
        for number in ids:
            for one in (client, other):
                tap.eq(one.call("eth_getBlockByNumber", params, number).ok(), want, "result")
        got = client.batch([request("eth_getBlockByNumber", params, n) for n in ids])
        tap.eq([(r.id, r.ok()) for r in got], [(n, want) for n in ids], "batch")


@row("S28", "twenty clients with id 1, answered in reverse", clients="http ws ipc",
     upstreams="http ws ipc")
def s28(env, client):
    held = []

    def script(req):
        if req.method != "eth_call":
            return None
        held.append(req)
        return HANDLED

    env.node.script = script
    clients = [env.client(client.kind) for _ in range(20)]
    for i, one in enumerate(clients):
        one.send(request("eth_call", [i], 1))
    tap.eventually(lambda: len(held) == 20, 5, "all are at the node")
    for req in reversed(held):
        req.respond(env.node.usual(req))
    for i, one in enumerate(clients):
        reply = Reply(one.recv())
        tap.eq((reply.id, reply.ok()), (b"1", env.want("eth_call", b"[%d]" % i)),
               "answer %d" % i)
        one.close()


@row("S30", "rubbish between good calls", clients="ws ipc", upstreams="http")
def s30(env, client):
    for _ in range(3):
        works(env, client)
        reply = Reply(client.raw(b'{"a" 1}' if client.kind == "ipc" else b"not json"))
        reply.refused(-32700)
        tap.eq(reply.id, b"null", "id")
        works(env, client)


@row(
    "S31", "filter id %s", clients="http ws", upstreams="http http+http", also=FULL, each=[
        b'"0x1"', b'"0x"', ("empty", b'""'), b'"abc"', b'"0x123456789"',
        b'"0x' + b"ab" * 32 + b'"', b"null"
    ])
def s31(env, client, number):
    def script(req):
        if req.method == "eth_getFilterChanges":
            return req.error(-32000, "filter not found")
        return req.result(b"false") if req.method == "eth_uninstallFilter" else None

    for node in env.nodes:
        node.script = script
    for method in ("eth_getFilterChanges", "eth_uninstallFilter"):
        reply = client.call(method, b"[" + number + b"]")
        tap.check(reply.error is not None or reply.result == b"false", repr(reply))
        for node in env.nodes:
            for params in node.params_seen(method):
                tap.eq(params, b"[" + number + b"]", "what the node got")
    works(env, client)


wire.main()
