#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The test kit against itself: clients talk to fake nodes directly, without a gateway."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import shutil
import subprocess
import tempfile
import time

import clients
import fakenode
import rawjson
import tap
import wsframe
from fakenode import Answer, Node, raw
from tap import check, eq

folder = tempfile.mkdtemp(prefix="egw-kit-")


def connect(node):
    if node.kind == "http":
        return clients.HttpClient(node.port)
    if node.kind == "ws":
        return clients.WsClient(node.port)
    return clients.IpcClient(node.path)


def raises(kind, fn, *args, **kwargs):
    try:
        fn(*args, **kwargs)
    except kind:
        return
    tap.fail("%s was not raised" % kind.__name__)


def test_rawjson():
    eq(rawjson.members(b' {"a": 1e2 ,"b":[1, {"x":"}"}],"\\u0063":"\xc3\xa9"} '),
       [("a", b"1e2"), ("b", b'[1, {"x":"}"}]'), ("c", b'"\xc3\xa9"')])
    eq(rawjson.members(b"{}"), [])
    eq(rawjson.elements(b"[1 , 2.50,\"]\"]"), [b"1", b"2.50", b'"]"'])
    eq(rawjson.elements(b"[]"), [])
    for bad in (b'{"a":1,"a":2}', b'{"a":1} x', b'{"a":NaN}', b'{"a" 1}', b"[1,]", b"{"):
        raises(rawjson.Bad, rawjson.members if bad[:1] == b"{" else rawjson.elements, bad)
    eq(rawjson.split_value(b' {"a":1}{"b":2}'), (b'{"a":1}', 8))


def test_reply_is_strict():
    clients.Reply(b'{"jsonrpc":"2.0","id":1,"result":null}')
    clients.Reply(b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m","data":1}}')
    for bad in (b'{"id":1,"result":1}', b'{"jsonrpc":"2.0","result":1}',
                b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"1.0","id":1,"result":1}',
                b'{"jsonrpc":"2.0","id":1,"result":1,"error":null}',
                b'{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}',
                b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}'):
        raises((tap.Failed, rawjson.Bad), clients.Reply, bad)


def test_frames():
    class Bytes:
        def __init__(self, data):
            self.data = data

        def read_exactly(self, n):
            out, self.data = self.data[:n], self.data[n:]
            return out

    for size in (0, 1, 125, 126, 65535, 65536, 100001):
        payload = os.urandom(size)
        for mask in (False, True):
            frame = wsframe.read(Bytes(wsframe.encode(2, payload, True, mask)))
            check(frame.payload == payload and frame.fin and frame.masked == mask,
                  "size %d" % size)
    eq(wsframe.accept_for(b"dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")


def test_tap_itself():
    script = (
        "import sys; sys.dont_write_bytecode = True; sys.argv[1:] = []\n"
        "sys.path.insert(0, %r)\nimport tap\n" % sys.path[0])

    def result(body):
        done = subprocess.run([sys.executable, "-c", script + body], stdout=subprocess.PIPE,
                              check=False)
        return done.returncode, done.stdout.decode()

    code, out = result("tap.run('a # b', lambda: None)\ntap.done()")
    check(code == 0 and "ok 1 - a \\# b\n1..1\n" in out, out)
    code, out = result("tap.run('a', lambda: tap.eq(1, 2))\ntap.done()")
    check(code == 1 and out.startswith("not ok 1 - a\n"), out)
    code, out = result("tap.run('a', lambda: 1 / 0)\ntap.done()")
    check(code == 1 and out.startswith("not ok 1 - a\n"), out)
    code, out = result("tap.run('a', lambda: tap.eventually(lambda: 0, 0.05))\ntap.done()")
    check(code == 1, out)
    code, out = result("def f():\n raise tap.Todo('later')\ntap.run('a', f)\ntap.done()")
    check(code == 0 and out.startswith("not ok 1 - a # TODO later\n"), out)
    code, out = result("tap.run('a', lambda: None)")
    check("1.." not in out, "no plan without done()")


def test_calls(node):
    with connect(node) as client:
        eq(client.call("eth_chainId").ok(), b'"0x1"')
        reply = client.call("eth_getBalance", b'[ "0xa",  1e2 ]', id=b'"\\u0041"')
        eq(reply.ok(), fakenode.Chain.answer(node.chain, "eth_getBalance", b'[ "0xa",  1e2 ]'))
        reply.id == b'"\\u0041"' or tap.fail("id")
        eq(client.call("eth_nothing").refused(), -32601)
        got = client.batch([clients.request("eth_chainId", id=1),
                            clients.request("eth_blockNumber", id=b'"b"')])
        eq([r.id for r in got], [b"1", b'"b"'])
        eq(node.count("eth_chainId"), 2)
        eq(node.params_seen("eth_getBalance"), [b'[ "0xa",  1e2 ]'])


def test_scripts(node):
    with connect(node) as client:
        node.script = lambda req: req.error(3, "reverted", b'"0x08"', )
        reply = client.call("eth_call", [])
        check((reply.code, reply.data) == (3, b'"0x08"'), repr(reply))
        node.script = lambda req: req.later(0.05)
        began = time.monotonic()
        eq(client.call("eth_chainId").ok(), b'"0x1"')
        tap.at_least(time.monotonic() - began, 0.05)
        node.script = lambda req: raw(b"rubbish")
        eq(client.raw(clients.request("eth_chainId")), b"rubbish")
        node.script = None
    for cut in (fakenode.reset(), fakenode.hangup(), Answer(b'{"jsonrpc', cut=5, claim=100)):
        with connect(node) as client:
            node.script = lambda req, answer=cut: answer
            client.send(clients.request("eth_chainId"))
            raises(clients.Closed, client.recv)
    with connect(node) as client:
        node.script = lambda req: fakenode.silent()
        client.send(clients.request("eth_chainId"))
        raises(clients.NoAnswer, client.recv, 0.1)


def test_order(node):
    with connect(node) as client:
        node.script = lambda req: req.later(0.1 - 0.02 * int(req.id))
        for i in range(5):
            client.send(clients.request("eth_getBalance", [i], id=i))
        got = [clients.Reply(client.recv()) for _ in range(5)]
        eq([int(r.id) for r in got], [4, 3, 2, 1, 0])


def test_events(node):
    with connect(node) as client:
        name = client.subscribe("newHeads")
        head = node.chain.mine()
        sub, result = clients.event_parts(client.event())
        eq(sub, name)
        eq(rawjson.parse(result)["hash"], head["hash"])
        eq(client.call("eth_unsubscribe", b"[" + name + b"]").ok(), b"true")
        eq(client.call("eth_unsubscribe", b"[" + name + b"]").ok(), b"false")
        node.chain.mine()
        client.quiet(0.1)
        eq(node.unsubscribed, 1)
    tap.eventually(lambda: not node.open_conns(), 5, "connection is gone")


def test_http_forms(node):
    body = '"' + "é" * 50 + '"'
    for how in ({"mode": "chunked", "pieces": [1]}, {"mode": "close"}, {"mode": "http10"},
                {"pieces": [7], "pause": 0.001}, {"status": 500}):
        with connect(node) as client:
            node.script = lambda req, h=how: req.result(body.encode(), headers=["X-Up: 1"], **h
                                                        )
            response = client.request(clients.request("eth_call"))
            eq(clients.Reply(response.body).ok(), body.encode())
            eq(response.status, how.get("status", 200))
            eq(response.header("X-Up"), b"1")
    eq(node.http_requests[0][0], b"POST / HTTP/1.1")


def test_ws_forms(node):
    with connect(node) as client:
        node.script = lambda req: req.normal(fragments=[3])
        eq(client.call("eth_chainId").ok(), b'"0x1"')
        client.ping(b"x" * 125)
        node.script = None
        text = clients.request("eth_chainId")
        client.send_frame(1, text[:5], fin=False)
        client.ping(b"between")
        client.send_frame(0, text[5:9], fin=False)
        client.send_frame(0, text[9:])
        eq(clients.Reply(client.recv()).ok(), b'"0x1"')
        eq(client.goodbye(), 1000)


def test_stop(node):
    with connect(node) as client:
        client.call("eth_chainId")
        node.stop()
        raises((clients.Closed, BrokenPipeError), client.call, "eth_chainId")
    raises(OSError, connect(node).call, "eth_chainId") if node.kind == "http" else \
        raises(OSError, connect, node)
    node.listen()
    with connect(node) as client:
        client.call("eth_chainId")


def test_many(node):
    def job(i):
        def work():
            with connect(node) as client:
                return client.call("eth_getBalance", [i], id=i).ok()
        return work

    got = tap.parallel([job(i) for i in range(200)])
    eq(got, [node.chain.answer("eth_getBalance", b"[%d]" % i) for i in range(200)])


tap.watchdog(60)
tap.run("raw JSON is taken apart", test_rawjson)
tap.run("responses are read strictly", test_reply_is_strict)
tap.run("WebSocket frames", test_frames)
tap.run("TAP", test_tap_itself)
for which in ("http", "ws", "ipc"):
    the_node = Node(which, None, folder, "kit-" + which)
    for title, test in [("calls and batches", test_calls), ("scripts", test_scripts),
                        ("order of answers", test_order), ("events", test_events),
                        ("HTTP forms", test_http_forms), ("WebSocket forms", test_ws_forms),
                        ("200 connections", test_many), ("stop and start", test_stop)]:
        if (test in (test_order, test_events) and which == "http") or \
                (test is test_http_forms and which != "http") or \
                (test is test_ws_forms and which != "ws"):
            continue
        the_node.clear()
        tap.run("%s: %s" % (which, title), test, the_node)
    eq(the_node.complaints, []) if not the_node.complaints else tap.run(
        "%s: nothing to complain about" % which, tap.fail, repr(the_node.complaints))
    the_node.close()
shutil.rmtree(folder, ignore_errors=True)
tap.done()
