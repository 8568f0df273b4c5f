#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour D: JSON text."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import Closed, Reply, replies, request
from fakenode import Answer, raw
from gateway import sanitized
from wire import row


def one(env, method="eth_call", params=b"[1]"):
    return env.want(method, params)


def works(env, client, what="afterwards"):
    tap.eq(client.call("eth_call", [1]).ok(), one(env), what)


def on_calls(answer):
    """A script for eth_call only; probes are answered as usual."""
    return lambda req: answer(req) if req.method == "eth_call" else None


DEEP = []
for _depth in (50, 1000, 100000, 1000000):
    DEEP.append(
        ("params %d deep" % _depth, b'{"id":1,"jsonrpc":"2.0","method":"eth_call","params":' +
         b"[" * _depth + b"]" * _depth + b"}"))
    DEEP.append(("a member %d deep" % _depth, b'{"id":1,"x":' + b'{"a":' * (_depth // 2)
                 + b"[" * (_depth // 2) + b"]" * (_depth // 2) + b"}" * (_depth // 2)
                 + b',"jsonrpc":"2.0","method":"eth_call","params":[1]}'))
DEEP.append(("a million brackets", b"[" * 1000000))


@row("D1", "%s", clients="http ws ipc", upstreams="http", each=DEEP)
def d1(env, client, text):
    before = env.gw.rss()
    try:
        # On a stream an open bracket only waits for more.
        if client.kind == "ipc" and text == b"[" * 1000000:
            client.send(text)
            client.stream.shutdown_write()
            try:
                Reply(client.recv())
            except Closed:
                pass
        else:
            answer = client.raw(text, timeout=10)
            for reply in replies(answer) if rawjson.is_array(answer) else [Reply(answer)]:
                tap.check(
                    reply.error is None or reply.code in (-32700, -32600, -32602, -32052),
                    repr(reply))
    except Closed:
        tap.check(client.kind in ("ws", "ipc"), "HTTP is answered")
    except BrokenPipeError:
        tap.eq(client.kind, "ipc", "who may be cut off while sending")
    if not sanitized():
        tap.at_most(env.gw.rss() - before, 60 << 20, "growth of memory")
    with env.client(client.kind) as other:
        works(env, other)
    env.node.complaints.clear()     # of the node's own parser


@row(
    "D2", "node answers %s", clients="http ws ipc", upstreams="http", each=[
        b"<html>Bad gateway</html>", b"invalid host specified", b"", b"null", b"[]", b'"str"',
        b"{}"
    ])
def d2(env, client, body):
    env.node.script = on_calls(lambda req: raw(body))
    for number in (b"7", b'"x"'):
        reply = client.call("eth_call", [1], number)
        reply.refused()
        for word in (b"html", b"invalid host", b"str\""):
            tap.lacks(reply.raw, word, "reply")
    env.node.script = None
    works(env, client)


@row("D3", "reply cut short: %s", clients="http ws", upstreams="http",
     each=[("full Content-Length", {}), ("close-delimited", {"mode": "close"}),
           ("close-delimited, reset", {"mode": "close", "reset": True}),
           ("chunk missing", {"mode": "chunked", "cut": 27}),
           ("chunk missing, reset", {"mode": "chunked", "cut": 27, "reset": True}),
           ("Content-Length not reached", {"claim": 500, "cut": 27}),
           ("Content-Length not reached, reset", {"claim": 500, "cut": 27, "reset": True})])
def d3(env, client, how):
    env.node.script = on_calls(
        lambda req: Answer(b'{"jsonrpc":"2.0","id":1,"resu', whole=True, **how))
    reply = client.call("eth_call", [1])
    if reply.error is None:
        tap.eq(reply.result, one(env), "result")
    env.node.script = None
    works(env, client)


@row("D4", "further members in the reply", clients="http", upstreams="http ws ipc")
def d4(env, client):
    env.node.script = on_calls(lambda req: raw(
        b'{"usage":{"n":1},"x":[1,{"y":"}"}],"jsonrpc":"2.0","id":%s,"z":"\\"]}",'
        b'"result":"0x4"}'
        % req.id))
    tap.eq(client.call("eth_call", [1]).ok(), b'"0x4"', "result")


@row(
    "D5", "result and error together: %s", clients="http ws ipc", upstreams="http ws ipc",
    each=[("error", b'"result":null,"error":{"code":-32000,"message":"m","data":"0x1"}'),
          ("result", b'"result":"0x5","error":null'),
          ("result 2", b'"error":null,"result":"0x5"')])
def d5(env, client, body):
    env.node.script = on_calls(lambda req: raw(b'{"jsonrpc":"2.0","id":%s,%s}' %
                                               (req.id, body)))
    reply = client.call("eth_call", [1])
    if b'"0x5"' in body:
        tap.eq(reply.ok(), b'"0x5"', "result")
    else:
        tap.eq(reply.error, b'{"code":-32000,"message":"m","data":"0x1"}', "error")


@row("D6", "rubbish before the reply: %s", clients="http", upstreams="ws",
     each=[("empty", b""), b"not json", b"{}", b"[1]"])
def d6(env, client, junk=b""):
    client.call("eth_chainId")
    stay = env.connections_stay()

    def script(req):
        req.conn.push(junk)
        return req.normal()

    env.node.script = on_calls(script)
    for _ in range(3):
        works(env, client, "with rubbish")
    stay()


@row("D7", "reply %s", clients="http", upstreams="http ws ipc",
     each=[("without jsonrpc", b""), ("with jsonrpc 1.0", b'"jsonrpc":"1.0",')])
def d7(env, client, version):
    env.node.script = on_calls(lambda req: raw(b'{%s"id":%s,"result":"0x7"}' %
                                               (version, req.id)))
    tap.eq(client.call("eth_call", [1]).ok(), b'"0x7"', "result")


@row("D8", "escapes in a result: %s", clients="http ws", upstreams="http ws ipc",
     each=[b'"\\ud800"', b'"\\udc00\\ud800"', b'"a\\ud83d\\ude00"', b'"\\u12"', b'"\\x"'])
def d8(env, client, text):
    client.call("eth_chainId")
    stay = env.connections_stay()

    def script(req):
        if req.params == b"[2]":
            return req.later(0.1)
        return req.result(text) if req.params == b"[3]" else None

    env.node.script = script
    with env.client(client.kind) as other:
        other.send(request("eth_call", [2]))
        tap.eventually(lambda: env.asked("eth_call"), 3, "the other call is in flight")
        reply = client.call("eth_call", [3])
        if text in (b'"\\u12"', b'"\\x"'):
            reply.refused()
        elif reply.error is None:
            tap.eq(reply.result, text, "result")
        tap.eq(Reply(other.recv()).ok(), one(env, params=b"[2]"), "the other call")
    works(env, client)
    if env.node.kind != "http":
        stay()


@row("D9", "not UTF-8: %s", clients="http ws ipc", upstreams="http",
     each=[b"\xed\xa0\x80", b"\xc0\xaf", b"\xff", b"\xe2\x82", b"\xf4\x90\x80\x80"])
def d9(env, client, data):
    try:
        reply = Reply(
            client.raw(b'{"jsonrpc":"2.0","id":1,"method":"eth_call","params":["a%sb"]}' %
                       data))
        reply.refused(-32700)
        tap.among(reply.id, (b"null", b"1"), "id")
        works(env, client)
    except Closed:
        tap.eq(client.kind, "ws", "only a WebSocket may be closed")
        tap.eq(client.closed and client.closed.close_code(), 1007, "close code")
    tap.check(all(b'"a' not in (p or b"") for p in env.node.params_seen("eth_call")),
              "nothing of it reaches the node")


@row("D10", "byte order mark", clients="http ws ipc", upstreams="http")
def d10(env, client):
    tap.eq(
        Reply(client.raw(b"\xef\xbb\xbf" + request("eth_call", [1]))).ok(), one(env), "single")
    got = replies(client.raw(b"\xef\xbb\xbf[" + request("eth_call", [1]) + b"]"))
    tap.eq([r.ok() for r in got], [one(env)], "batch")


@row("D11", "malformed request: %s", clients="http ws ipc", upstreams="http",
     each=[b'"method":42', b'"x":1', b'"method":"eth_call","params":5',
           b'"method":"eth_call","params":"x"', b'"method":null', b'"method":["eth_call"]'])
def d11(env, client, body):
    reply = Reply(client.raw(b'{"jsonrpc":"2.0","id":7,%s}' % body))
    reply.refused(*((-32600, -32602) if b"params" in body else (-32600,)))
    tap.eq(reply.id, b"7", "id")
    env.untouched()


@row("D12", "numbers in %s verbatim", clients="http ws ipc", upstreams="http ws ipc",
     each=["a result", "error data"])
def d12(env, client, where):
    text = b'{"a":50000000000000097500,"b":1e400,"c":0.1,"d":-0,"e":1E5, "f" : 1.50,"g":[-1e-7]}'
    if where == "a result":
        env.node.script = on_calls(lambda req: req.result(text))
        tap.eq(client.call("eth_call", [1]).ok(), text, "result")
    else:
        env.node.script = on_calls(lambda req: req.error(-32000, "m", text))
        tap.eq(client.call("eth_call", [1]).data, text, "data")


GOOD = request("eth_call", [1])
BROKEN = [(b"{", b"{"), ("trailing comma", GOOD[:-1] + b",}"), (b"nul", b"nul"),
          ("single quotes", GOOD.replace(b'"', b"'")), ("trailing garbage", GOOD + b"x"),
          ("missing colon", b'{"id" 1}'), ("control character", b'{"id":"\x01"}'),
          ("leading zero", b'{"id":01}'), ("two objects", GOOD + GOOD),
          ("an array and an object", b"[" + GOOD + b"]" + GOOD), ("comment", b"/* */" + GOOD)]


@row("D13", "broken: %s", clients="http ws ipc", upstreams="http", each=BROKEN)
def d13(env, client, text):
    if client.kind == "ipc":
        if text == b"{":
            raise tap.Skip("on a stream it may still become whole")
        if text.startswith((GOOD, b"[" + GOOD)):
            # Two values are two messages there.
            client.send(text + b"\n")
            got = []
            for _ in range(2):
                answer = client.recv()
                got += replies(answer) if rawjson.is_array(answer) else [Reply(answer)]
            got.sort(key=lambda reply: reply.error is not None)
            tap.eq(got[0].ok(), one(env), "a message")
            if text.endswith(b"x"):
                got[1].refused(-32700)
            else:
                tap.eq(got[1].ok(), one(env), "the other message")
            works(env, client)
            return
        text += b"\n"
    if client.kind == "http":
        response = client.request(text)
        tap.among(response.status, (200, 400), "HTTP status")
        reply = Reply(response.body)
    else:
        reply = Reply(client.raw(text))
    reply.refused(-32700)
    tap.eq(reply.id, b"null", "id")
    works(env, client)


@row("D13", "empty body", clients="http", upstreams="http")
def d13_empty(env, client):
    response = client.request(b"")
    tap.among(response.status, (200, 400), "HTTP status")
    Reply(response.body).refused(-32700, -32600)
    works(env, client)


@row("D13", "white space around a request", clients="http ws ipc", upstreams="http")
def d13_space(env, client):
    tap.eq(Reply(client.raw(b" \t\r\n" + GOOD + b" \r\n\t\n ")).ok(), one(env), "result")
    works(env, client)


wire.main()
