#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour F: WebSocket, and subscriptions that are passed through."""
import os
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
import wsframe
from clients import Closed, HttpClient, Reply, event_parts, request
from fakenode import HANDLED
from gateway import Gateway, sanitized
from wire import row


# Subscriptions as they were before the gateway served them: those of a node. What it serves by itself
# is in wire-f-served.t.
PASSED = {"network": {"subscriptions": "passed"}}


def works(env, client):
    tap.eq(client.call("eth_call", [1]).ok(), env.want("eth_call", b"[1]"), "an ordinary call")


def head_of(raw):
    """(subscription, block hash) of an event."""
    sub, result = event_parts(raw)
    return sub, rawjson.parse(result)["hash"]


def expect_heads(client, sub, heads, timeout=None):
    got = [head_of(client.event(timeout)) for _ in heads]
    tap.eq(got, [(sub, h["hash"]) for h in heads], "heads")


def subscribed_again(env, count=1):
    tap.eventually(lambda: sum(len(n.subscriptions()) for n in env.nodes) >= count, 6,
                   "the gateway has subscribed again")


BIG = 1700000
HUGE = 17000000


@row(
    "F1", "a reply of %s", clients="ws http", upstreams="ws ipc", network={
        "timeout": "20s",
        "attempt_timeout": "10s"
    }, each=[("1.7 MB", BIG, None), ("17 MB", HUGE, None),
             ("1.7 MB in fragments", BIG, [600000]), ("17 MB in fragments", HUGE, [6000000])])
def f1(env, client, size, fragments):
    if fragments and env.node.kind == "ipc":
        raise tap.Skip("IPC has no fragments")
    client.call("eth_chainId")
    big = b'"' + b"x" * size + b'"'
    stay = env.connections_stay()
    env.node.script = lambda req: req.result(big, fragments=fragments) \
        if req.method == "eth_call" else None
    client.send(request("eth_call", [1], 1))
    with env.client("ws") as other:
        tap.eq(other.call("eth_chainId").ok(), b'"0x1"', "a call next to it")
    tap.check(Reply(client.recv(20)).ok() == big, "the big result")
    tap.eq(client.call("eth_chainId").ok(), b'"0x1"', "afterwards")
    stay()


@row("F1", "a request of 200 KB", clients="ws http", upstreams="ws ipc")
def f1_request(env, client):
    params = b'["' + b"ab" * 100000 + b'"]'
    tap.eq(client.call("eth_call", params).ok(), env.want("eth_call", params), "result")
    tap.check(env.node.params_seen("eth_call") == [params], "what the node got")


@row("F2", "announced bytes cost nothing", clients="-", upstreams="http", fresh=True)
def f2(env):
    with env.client("ws") as client:
        works(env, client)
        before = env.gw.rss()
        held = []
        for _ in range(40):
            one = env.client("ws")
            one.send_frame(wsframe.TEXT, b"[" * 1024, announce=30000000)
            held.append(one)
        for _ in range(40):
            one = env.client("http")
            one.open().send(one.head(4 << 20))
            held.append(one)
        one = env.client("ws")
        one.send_frame(wsframe.TEXT, b"[", announce=1 << 62)
        held.append(one)
        one = env.client("http")
        one.open().send(one.head(1 << 63))
        held.append(one)
        for _ in range(20):
            works(env, client)
        with env.client("http") as other:
            works(env, other)
        if not sanitized():
            tap.at_most(env.gw.rss() - before, 60 << 20, "growth of memory")
        for one in held:
            one.close()


@row("F3", "an event before the answer to its eth_subscribe", clients="ws ipc",
     upstreams="ws ipc",
     **PASSED)
def f3(env, client):
    name = "0xfeed"

    def script(req):
        if req.method != "eth_subscribe":
            return None
        env.node.notify(req.conn, name, b'{"number":"0x1"}')
        return rawjson.compact(name)

    env.node.script = script
    sub = client.subscribe("newHeads")
    tap.eq(event_parts(client.event()), (sub, b'{"number":"0x1"}'), "event")
    tap.eq(client.order, ["reply", "event"], "order")


@row("F4", "node dies while clients subscribe", clients="-", upstreams="ws ipc", fresh=True,
     **PASSED)
def f4(env):
    env.node.script = lambda req: HANDLED if req.method == "eth_subscribe" else None
    clients = [env.client("ws") for _ in range(10)]
    for i, client in enumerate(clients):
        client.send(request("eth_subscribe", ["newHeads"], i))
    tap.eventually(lambda: env.asked("eth_subscribe") == 10, 3, "all are asked for")
    env.node.script = None
    env.node.cut()
    got = [Reply(client.recv()) for client in clients]
    tap.eq([r.id for r in got], [b"%d" % i for i in range(10)], "ids")
    subs = []
    for client, reply in zip(clients, got):
        if reply.error is not None:
            reply = tap.eventually(lambda c=client: _try_subscribe(c), 5,
                                   "it can subscribe later")
        subs.append(reply.result)
    subscribed_again(env, 10)
    head = env.chain.mine()
    for client, sub in zip(clients, subs):
        expect_heads(client, sub, [head])
        client.quiet(0.02)
        client.close()


def _try_subscribe(client):
    reply = client.call("eth_subscribe", ["newHeads"], b'"again"')
    return reply if reply.error is None else None


@row("F5", "unsubscribing one of two", clients="ws ipc", upstreams="ws ipc",
     **PASSED)
def f5(env, client):
    def says_no(sub):
        reply = client.call("eth_unsubscribe", b"[" + sub + b"]")
        tap.check(reply.error is not None or reply.result == b"false", repr(reply))

    with env.client(client.kind) as b:
        filter_ = {"address": "0x" + "11" * 20}
        sub_a, sub_b = client.subscribe("logs", filter_), b.subscribe("logs", filter_)
        env.node.notify_all("logs", {"n": 1})
        tap.eq(event_parts(client.event()), (sub_a, b'{"n":1}'), "event of A")
        tap.eq(event_parts(b.event()), (sub_b, b'{"n":1}'), "event of B")
        tap.eq(
            client.call("eth_unsubscribe", b"[" + sub_a + b"]").ok(), b"true",
            "A unsubscribes")
        says_no(sub_a)
        says_no(b'"0x123456"')
        env.node.notify_all("logs", {"n": 2})
        tap.eq(event_parts(b.event()), (sub_b, b'{"n":2}'), "event of B")
        client.quiet(0.1)
        tap.eq(b.call("eth_unsubscribe", b"[" + sub_b + b"]").ok(), b"true", "B unsubscribes")
        tap.eventually(lambda: not env.node.subscriptions(), 5, "nothing is left at the node")


@row("F5", "one client can't end another's subscription", clients="ws ipc", upstreams="ws")
def f5_foreign(env, client):
    with env.client(client.kind) as b:
        sub = client.subscribe("newHeads")
        reply = b.call("eth_unsubscribe", b"[" + sub + b"]")
        tap.check(reply.error is not None or reply.result == b"false", repr(reply))
        expect_heads(client, sub, [env.chain.mine()])
        b.quiet(0.05)


@row("F6", "node away for 0.3 s", clients="ws ipc", upstreams="ws ipc", fresh=True)
def f6(env, client):
    sub = client.subscribe("newHeads")
    expect_heads(client, sub, [env.chain.mine()])
    env.node.stop()
    env.node.at(0.3, env.node.listen)
    subscribed_again(env)
    heads = [env.chain.mine() for _ in range(3)]
    expect_heads(client, sub, heads)
    client.quiet(0.1)
    tap.eq(client.order.count("reply"), 1, "responses")


@row("F7", "connection cut twice", clients="ws", upstreams="ws ws+ws", fresh=True,
     **PASSED)
def f7(env, client):
    sub = client.subscribe("newHeads")
    expect_heads(client, sub, [env.chain.mine()])
    done = threading.Event()

    def cut(last):
        for node in env.nodes:
            node.cut(True)
        if last:
            done.set()

    cut(False)
    env.node.at(0.08, lambda: cut(True))
    done.wait(3)
    subscribed_again(env)
    # The resubscription that counts may be one that was just cut.
    tap.eventually(lambda: _deliverable(env), 5, "a live subscription")
    heads = [env.chain.mine() for _ in range(5)]
    expect_heads(client, sub, heads)
    client.quiet(0.1)


def _deliverable(env):
    subs = [s for node in env.nodes for s in node.subscriptions()]
    return len(subs) == 1 and not subs[0][0].gone


@row("F8", "node resets connections for 2.5 s", clients="http", upstreams="ws+http",
     fresh=True)
def f8(env, client):
    a, b = env.nodes
    a.refuse = "reset"
    a.cut(True)
    began = len(a.accept_times)
    ended = threading.Event()

    def recover():
        a.refuse = None
        ended.set()

    a.at(2.5, recover)
    while not ended.is_set():
        works(env, client)
    times = a.accept_times[began:]
    # Two workers have a link each.
    tap.at_most(len(times), 24, "attempts in 2.5 s")
    a.requests.clear()

    def used():
        works(env, client)
        return a.seen("eth_call")

    tap.eventually(used, 25, "it is used again", 0.02)
    tap.check(b.seen("eth_call"), "the other served")


@row("F9", "node freezes", clients="http", upstreams="ws+ws", fresh=True,
     upstream={"ping_interval": "300ms"})
def f9(env, client):
    works(env, client)
    env.node.freeze()
    for _ in range(4):
        works(env, client)
    tap.eventually(lambda: _quick(env, client), 6, "calls are quick again")
    for _ in range(10):
        tap.check(_quick(env, client), "calls stay quick")
    env.node.thaw.set()


def _quick(env, client):
    began = time.monotonic()
    works(env, client)
    return time.monotonic() - began < 0.3


@row("F10", "pings of all sizes, also inside of a message", clients="ws", upstreams="http")
def f10(env, client):
    for payload in (b"", b"x", bytes(range(125))):
        client.ping(payload)
    text = request("eth_call", [1])
    client.send_frame(wsframe.TEXT, text[:10], fin=False)
    client.ping(b"a" * 125)
    client.send_frame(0, text[10:20], fin=False)
    client.ping(b"")
    client.send_frame(0, text[20:])
    tap.eq(Reply(client.recv()).ok(), env.want("eth_call", b"[1]"), "result")


@row("F12", "a client with three subscriptions resets", clients="ws ipc", upstreams="ws ipc",
     **PASSED)
def f12(env, client):
    for i in range(3):
        client.subscribe("logs", {"address": "0x" + "%02x" % i * 20}, id=i)
    tap.eq(len(env.node.subscriptions()), 3, "subscriptions at the node")
    client.reset()
    tap.eventually(lambda: not env.node.subscriptions(), 5, "they are ended at the node")
    tap.check(env.node.open_conns(), "the upstream connection stays")


@row("F13", "300 cycles and 100 resets leave nothing", clients="ws", upstreams="ws",
     fresh=True,
     **PASSED)
def f13(env, client):
    works(env, client)
    fds, rss = env.gw.fds(), 0
    for i in range(300):
        sub = client.subscribe("newHeads", id=i)
        tap.eq(client.call("eth_unsubscribe", b"[" + sub + b"]").ok(), b"true", "unsubscribed")
        if i == 100:
            rss = env.gw.rss()
    for i in range(100):
        other = env.client("ws")
        other.subscribe("newHeads")
        other.reset()
    tap.eventually(lambda: not env.node.subscriptions(), 6, "nothing is left at the node")
    # A link of the other worker may have come up.
    env.gw.settled_fds(fds, 2)
    tap.eq(env.gw.metric("ethrpcgw_subscriptions"), 0, "subscriptions of the gateway")
    if not sanitized():
        tap.at_most(env.gw.rss() - rss, 8 << 20, "growth of memory")


@row("F14", "refused methods", clients="http ws ipc", upstreams="http",
     middleware=[{"use": "methods", "deny": ["eth_getProof", "debug_*"]}])
def f14(env, client):
    for method in ("eth_getProof", "debug_traceCall", "debug_traceTransaction"):
        client.call(method, [], b'"f14"').refused()
    works(env, client)
    tap.eq(env.asked("eth_getProof", "debug_traceCall", "debug_traceTransaction"), 0,
           "at the node")


@row("F15", "two equal nodes share the calls", clients="-", upstreams="ws+ws", fresh=True)
def f15(env):
    for _ in range(30):
        with env.client("ws") as client:
            works(env, client)
            works(env, client)
    counts = [node.count("eth_call") for node in env.nodes]
    tap.eq(sum(counts), 60, "calls")
    tap.at_least(min(counts), 10, "calls at each: %r" % counts)


@row("F16", "requests in %s", clients="ws", upstreams="http",
     each=["a binary frame", "three fragments", "fragments of one byte", "empty fragments"])
def f16(env, client, how):
    text = '{"jsonrpc":"2.0","id":"é€😀","method":"eth_call","params":["é"]}'.encode()
    if how == "a binary frame":
        client.send_frame(wsframe.BINARY, text)
    elif how == "three fragments":
        a, b = text.index(b"\xa9"), text.index(b"\x9f")     # inside of é and of 😀
        client.send_frame(wsframe.TEXT, text[:a], fin=False)
        client.send_frame(0, text[a:b], fin=False)
        client.send_frame(0, text[b:])
    elif how == "empty fragments":
        client.send_frame(wsframe.TEXT, b"", fin=False)
        client.send_frame(0, text, fin=False)
        client.send_frame(0, b"")
    else:
        for i in range(len(text)):
            client.send_frame(0 if i else wsframe.TEXT, text[i:i + 1], fin=i == len(text) - 1)
    reply = Reply(client.recv())
    tap.eq(reply.id, '"é€😀"'.encode(), "id")
    tap.eq(reply.ok(), env.want("eth_call", '["é"]'.encode()), "result")


@row("F16", "text that is no UTF-8", clients="ws", upstreams="http")
def f16_invalid(env, client):
    client.send(b'{"jsonrpc":"2.0","id":1,"method":"eth_call","params":["\xff"]}')
    try:
        Reply(client.recv()).refused(-32700)
    except Closed:
        tap.eq(client.closed and client.closed.close_code(), 1007, "close code")
    env.untouched()


@row("F16", "broken frames: %s", clients="ws", upstreams="http",
     each=[("reserved bits", wsframe.encode(wsframe.TEXT, b"{}", mask=True, rsv=4)),
           ("reserved opcode", wsframe.encode(3, b"{}", mask=True)),
           ("long ping", wsframe.encode(wsframe.PING, b"x" * 126, mask=True)),
           ("fragmented ping", wsframe.encode(wsframe.PING, b"x", fin=False, mask=True)),
           ("continuation of nothing", wsframe.encode(0, b"x", mask=True))])
def f16_broken(env, client, frame):
    client.stream.send(frame)
    code = client.wait_close()
    tap.among(code, (1002, 1003, 1007, 1008, 1009, None), "close code")
    with env.client("ws") as other:
        works(env, other)


@row("F16", "a frame without mask", clients="ws", upstreams="http")
def f16_unmasked(env, client):
    client.stream.send(wsframe.encode(wsframe.TEXT, request("eth_call", [1])))
    try:
        Reply(client.recv())
    except Closed:
        tap.eq(client.closed and client.closed.close_code(), 1002, "close code")
        return
    raise tap.Todo("libwebsockets does not refuse it (RFC 6455 5.1)")


@row("F16", "the closing handshake", clients="ws", upstreams="http")
def f16_close(env, client):
    works(env, client)
    tap.eq(client.goodbye(1000), 1000, "close code")


@row("F17", "ws side of an upstream dies", clients="http", upstreams="http+ws", fresh=True)
def f17(env, client):
    http, ws = env.nodes
    ws.chain = http.chain
    gateway = Gateway([{"name": "a", "url": http.url(), "ws": ws.url()}])
    try:
        with gateway.client("http") as one, gateway.client("ws") as other:
            other.subscribe("newHeads")
            works(env, one)
            ws.stop(rst=True)
            for _ in range(3):
                http.chain.mine()
            head = b'"%s"' % hex(len(http.chain.headers) - 1).encode()
            tap.eventually(lambda: one.call("eth_blockNumber").ok() == head, 2.5, "the new head")
            for _ in range(10):
                got = one.call("eth_getBlockByNumber", ["latest", False]).ok()
                tap.eq(rawjson.member(got, "number"), head, "the latest block")
    finally:
        gateway.stop()


@row("F18", "node says it is syncing", clients="http ws ipc", upstreams="http ws", fresh=True)
def f18(env, client):
    env.node.script = lambda req: req.result(b'{"currentBlock":"0x1","highestBlock":"0x99"}') \
        if req.method == "eth_syncing" else None
    for _ in range(3):
        client.call("eth_call", [1])
    env.node.script = None
    works(env, client)


@row("F19", "heads are passed on at once", clients="ws ipc", upstreams="ws ipc")
def f19(env, client):
    sub = client.subscribe("newHeads")
    mined, delays = [], []

    def mine():
        for _ in range(15):
            mined.append(time.monotonic())
            env.chain.mine()
            time.sleep(0.04)        # the pace of the case

    thread = threading.Thread(target=mine, daemon=True)
    thread.start()
    for i in range(15):
        tap.eq(head_of(client.event())[0], sub, "subscription")
        delays.append(time.monotonic() - mined[i])
    thread.join()
    tap.at_most(statistics.median(delays), tap.limit(0.05), "median of the delays")
    tap.at_most(max(delays), tap.limit(0.4), "longest delay")


@row("F20", "a reorganisation and a jump", clients="ws ipc", upstreams="ws ipc",
     **PASSED)
def f20(env, client):
    sub = client.subscribe("newHeads")
    base = env.chain.headers[-1]["hash"]
    a = env.chain.header(100, base, extraData="0xaa")
    b = dict(env.chain.header(100, base, extraData="0xbb"), hash="0x" + "bb" * 32)
    child = env.chain.header(101, b["hash"])
    far = env.chain.header(105, "0x" + "99" * 32)
    for head in (a, b, child, far):
        env.node.notify_all("newHeads", head)
    wanted = [h["hash"] for h in (a, b, child, far)]
    got = []
    while wanted[-1] not in got:
        name, block = head_of(client.event())
        tap.eq(name, sub, "subscription")
        tap.check(block not in got, "each once")
        got.append(block)
    tap.eq([h for h in got if h in wanted], wanted, "order")


@row("F23", "payloads are not mixed", clients="ws", upstreams="ws+ws")
def f23(env, client):
    for letter, node in zip("AB", env.nodes):
        node.head_hook = lambda head, key="mix" + letter: [dict(head, **{key: "0x1"})]
    sub = client.subscribe("newHeads")
    for _ in range(6):
        head = env.chain.mine()
        name, result = event_parts(client.event())
        tap.eq(name, sub, "subscription")
        tap.among(result, [rawjson.compact(dict(head, mixA="0x1")),
                           rawjson.compact(dict(head, mixB="0x1"))], "payload")


@row("F+", "handshake refused: %s", clients="-", upstreams="http",
     each=[("foreign Host", {"host": b"evil.com"}, 403), ("foreign Origin", {"headers": [
         ("Origin", "http://evil.example")]}, 403), ("version 8", {"version": b"8"}, 426),
           ("a short key", {"key": b"c2hvcnQ="}, 400)])
def handshake(env, options, status):
    client = wire_client(env)
    got, _ = client.handshake(**options)
    tap.check(got == status or 400 <= got < 500, "status %d" % got)
    client.stream.read_to_end()     # an explanation, then the end
    client.close()
    with env.client("ws") as other:
        works(env, other)


def wire_client(env):
    from clients import WsClient  # pylint: disable=import-outside-toplevel
    return WsClient(env.gw.port, connect=False)


@row("F+", "no subscriptions over HTTP", clients="http", upstreams="ws http")
def no_push(env, client):
    client.call("eth_subscribe", ["newHeads"]).refused()
    tap.eq(env.asked("eth_subscribe"), 0, "at the node")


@row("F+", "both protocols on one port", clients="-", upstreams="http")
def one_port(env):
    with env.client("ws") as ws, HttpClient(env.gw.port) as http:
        works(env, ws)
        works(env, http)
        works(env, ws)


wire.main()
