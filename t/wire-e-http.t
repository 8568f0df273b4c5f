#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour E: HTTP."""
import gzip
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
import wire
from clients import Closed, NoAnswer, Reply, request
from fakenode import raw
from gateway import library_version
from wire import row

GOOD = request("eth_call", [1])
SEND = request("eth_sendRawTransaction", ["0x02abcdef"])


def one(env):
    return env.want("eth_call", b"[1]")


def served(env, response):
    tap.eq(response.status, 200, "HTTP status")
    tap.eq(Reply(response.body).ok(), one(env), "result")


def works(env, client=None):
    if client is None:
        with env.client("http") as own:
            return works(env, own)
    return served(env, client.request(GOOD))


def on_calls(answer):
    return lambda req: answer(req) if req.method == "eth_call" else None


@row(
    "E1", "Content-Type %s", upstreams="http", each=[
        "application/json;charset=utf-8", "Application/JSON",
        "application/json; charset=UTF-8", 'application/json ; charset="utf-8"',
        "application/json"
    ])
def e1(env, client, value):
    served(env, client.request(GOOD, content_type=value))


@row("E2", "Content-Type %s", upstreams="http",
     each=["application/json-rpc", "application/jsonrequest"])
def e2(env, client, value):
    served(env, client.request(GOOD, content_type=value))


@row(
    "E3", "%s", upstreams="http",
    each=[("text/plain with Origin", "text/plain;marker=abc", [("Origin",
                                                                "http://evil.example")]),
          ("text/plain with null Origin", "text/plain", [("Origin", "null")]),
          ("a form with Origin", "application/x-www-form-urlencoded",
           [("Origin", "http://evil.example")]),
          ("text/plain without Origin", "text/plain;marker=abc", []),
          ("no Content-Type", None, [])])
def e3(env, client, value, headers):
    response = client.request(SEND, content_type=value, headers=headers)
    if headers:
        tap.among(response.status, (403, 415), "HTTP status")
    elif response.status == 200:
        Reply(response.body).ok()
    else:
        tap.eq(response.status, 415, "HTTP status")
    tap.lacks(response.body, b"marker", "body")
    if response.status != 200:
        env.untouched()
    works(env)


@row(
    "E4", "Content-Type of %s", upstreams="http", each=[("a result", GOOD),
                                                        ("an error", request("eth_nothing")),
                                                        ("a batch", b"[" + GOOD + b"]"),
                                                        ("a parse error", b"{"),
                                                        ("an empty batch", b"[]")])
def e4(env, client, text):
    response = client.request(text)
    tap.check(response.is_json(), "Content-Type: %r" % response.headers)


def with_hosts(client, hosts, body):
    lines = [b"POST / HTTP/1.1"] + [b"Host: " + h for h in hosts] + \
        [b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
    client.open().send(b"\r\n".join(lines) + b"\r\n\r\n" + body)
    return client.response()


@row("E5", "Host %s is refused", upstreams="http",
     each=["evil.com", "evil.com:PORT", "localhost.evil.com", "local", "127.0.0.1.evil.com",
           "localhost@evil.com", "127.0.0.1:PORT.evil.com", "8.8.8.8", "localhost:", "[::1"])
def e5_foreign(env, client, host):
    host = host.replace("PORT", str(env.gw.port)).encode()
    if host == b"localhost:":
        raise tap.Skip("an empty port is allowed by RFC 3986")
    response = with_hosts(client, [host], SEND)
    tap.among(response.status, (400, 403, 421), "HTTP status")
    env.untouched()


@row("E5", "Host %s is served", upstreams="http",
     each=["localhost", "LOCALHOST:PORT", "127.0.0.1", "127.0.0.1:PORT", "LocalHost"])
def e5_own(env, client, host):
    served(env, with_hosts(client, [host.replace("PORT", str(env.gw.port)).encode()], GOOD))


@row(
    "E5", "%s", upstreams="http", each=[("no Host", []),
                                        ("two Hosts", [b"localhost", b"localhost"]),
                                        ("two different Hosts", [b"localhost", b"evil.com"])])
def e5_number(env, client, hosts):
    response = with_hosts(client, hosts, SEND)
    tap.among(response.status, (400, 403), "HTTP status")
    env.untouched()


@row("E5", "a foreign Host on a later request of a connection", upstreams="http")
def e5_later(env, client):
    served(env, with_hosts(client, [b"localhost"], GOOD))
    response = with_hosts(client, [b"evil.com"], SEND)
    tap.among(response.status, (400, 403, 421), "HTTP status")
    tap.eq(env.asked("eth_sendRawTransaction"), 0, "at the node")


@row("E6", "%s: one response, then FIN", upstreams="http",
     each=[("Connection: close", "1.1", [("Connection", "close")]), ("HTTP/1.0", "1.0", [])])
def e6(env, client, version, headers):
    stream = client.open()
    stream.send(client.head(len(GOOD), version=version, headers=headers) + GOOD)
    response = client.response()
    tap.check(client.stream is None, "the connection was closed")
    if version == "1.0" and response.status in (400, 505):
        return
    served(env, response)


@row("E7", "idle connections make room", upstreams="http", fresh=True,
     limits={"max_connections": 8, "idle_timeout": "400ms"})
def e7(env, client):
    client.close()
    tap.eventually(lambda: env.gw.metric("ethrpcgw_sessions", client="http") == 0, 3)
    idle = [env.client("http") for _ in range(8)]
    for one_of in idle:
        works(env, one_of)

    def again():
        try:
            with env.client("http", timeout=1) as late:
                response = late.request(GOOD)
                return response.status == 200 and Reply(response.body).ok() == one(env)
        except (Closed, NoAnswer, OSError):
            return False

    tap.eventually(again, 3, "a new connection is served", 0.05)
    for one_of in idle:
        tap.check(one_of.stream.at_end(2), "an idle connection is closed")
        one_of.close()


@row("E8", "node closes idle connections", upstreams="http", fresh=True)
def e8(env, client):
    env.node.close_after = 0.05
    for i in range(60):
        tap.eq(
            client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i),
            "read %d" % i)
        # The race of the two ends is the case: a pause that hits the moment of the close.
        time.sleep(0.046 + 0.008 * (i % 9) / 8)


@row("E9", "headers do not pass through", upstreams="http")
def e9(env, client):
    env.node.script = lambda req: req.normal(headers=["Set-Cookie: s=1", "X-Up: 1"])
    response = client.request(GOOD, headers=[
        ("Accept-Encoding", "gzip, br"), ("TE", "trailers"), ("Connection", "upgrade"),
        ("Cookie", "a=SECRET"), ("X-Marker", "1"), ("X-Forwarded-For", "1.2.3.4"),
        ("Authorization", "Bearer SECRET")])
    served(env, response)
    tap.check(response.header("Set-Cookie") is None and response.header("X-Up") is None,
              repr(response.headers))
    for _, headers, _ in env.node.http_requests:
        names = {h.partition(b":")[0].lower() for h in headers}
        tap.eq(names & {b"te", b"cookie", b"x-marker", b"upgrade", b"x-forwarded-for",
                        b"authorization", b"expect"}, set(), "headers at the node")
        tap.lacks(b"\n".join(headers), b"SECRET", "headers at the node")
        tap.lacks(b"\n".join(headers).lower(), b"br", "encodings") \
            if b"accept-encoding" in names else None


@row("E10", "a large result, Accept-Encoding %s", upstreams="http",
     each=[("gzip", "gzip"), ("not there", None), ("identity", "identity")])
def e10(env, client, value):
    big = b'"' + b"0123456789abcdef" * 65536 + b'"'
    env.node.script = on_calls(lambda req: req.result(big))
    response = client.request(GOOD, headers=[("Accept-Encoding", value)] if value else [])
    coding, body = response.header("Content-Encoding"), response.body
    if coding is not None and coding != b"identity":
        tap.eq((value, coding), ("gzip", b"gzip"), "encoding")
        tap.contains((response.header("Vary") or b"").lower(), b"accept-encoding", "Vary")
        body = gzip.decompress(body)
    tap.check(Reply(body).ok() == big, "the data")


ERROR = b'{"code":3,"message":"execution reverted","data":"0x08c379a0"}'


@row("E11", "an error in an HTTP %s", clients="http ws", upstreams="http",
     each=[400, 403, 404, 500])
def e11(env, client, status):
    env.node.script = on_calls(lambda req: req.error_object(ERROR, status=status))
    tap.eq(client.call("eth_call", [1]).error, ERROR, "error")


@row(
    "E12", "%s: HTTP 200 and an error", upstreams="http",
    each=[("node's error", lambda req: req.error(-32000, "m")),
          ("unknown method", lambda req: req.error(-32601, "no such method")),
          ("node's HTTP 500",
           lambda req: raw(b"oops", status=500, headers=["Content-Type: text/plain"])),
          ("node's HTTP 413", lambda req: raw(b"", status=413)),
          ("node's HTTP 302", lambda req: raw(b"", status=302, headers=["Location: /x"]))])
def e12(env, client, answer):
    env.node.script = on_calls(answer)
    client.call("eth_call", [1], b'"e12"').refused()


@row("E12", "node down: HTTP 200 and an error", upstreams="http ws ipc", fresh=True)
def e12_down(env, client):
    env.node.stop()
    client.call("eth_call", [1], b'"e12"').refused()


@row("E13", "429 with Retry-After: %s", clients="http ws", upstreams="http+http", fresh=True,
     each=[("plain text", False), ("a JSON-RPC error", True)],
     also=wire.full())
def e13(env, client, json):
    busy, fine = env.nodes

    def script(req):
        if req.method == "eth_chainId":
            return None
        how = {"status": 429, "headers": ["Retry-After: 2"]}
        return req.error(-32005, "slow down", **how) if json else raw(b"Too many requests", **how)

    busy.script = script
    for i in range(28):
        tap.eq(client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i), "read")
    tap.at_most(busy.count("eth_call"), 4, "calls at the busy one")
    tap.at_least(fine.count("eth_call"), 24, "calls at the other")


@row("E15", "clients that leave early are not the node's fault", clients="http ws ipc",
     upstreams="http ws ipc", fresh=True)
def e15(env, client):
    env.node.script = lambda req: req.later(0.15) if req.params == b"[15]" else None
    left = [env.client(client.kind) for _ in range(40)]
    for one_of in left:
        one_of.send(request("eth_call", [15]))
    tap.eventually(lambda: env.node.params_seen("eth_call"), 3, "they arrive")
    for i, one_of in enumerate(left):
        one_of.close() if i % 2 else one_of.reset()
    for i in range(20):
        began = time.monotonic()
        tap.eq(
            client.call("eth_call", [i]).ok(), env.want("eth_call", b"[%d]" % i),
            "read %d" % i)
        tap.at_most(time.monotonic() - began, 1.0, "seconds")
    tap.eq(env.gw.metric("ethrpcgw_upstream_up"), 1, "the node is up")


@row("E16", "200 connections at the same moment", clients="-", upstreams="http")
def e16(env):
    def job(i):
        def work():
            with env.client("http", timeout=15) as client:
                response = client.request(request("eth_call", [i]))
                tap.among(response.status, (200, 429, 503), "HTTP status")
                if response.status == 200:
                    tap.eq(
                        Reply(response.body).ok(), env.want("eth_call", b"[%d]" % i), "result")
        return work

    tap.parallel([job(i) for i in range(200)])


@row("E17", "X-Forwarded-For is ignored", upstreams="http", fresh=True,
     middleware=[{"use": "ratelimit", "per_client": "5/s"}])
def e17(env, client):
    began = time.monotonic()
    got = [Reply(client.request(GOOD, headers=[("X-Forwarded-For", "10.0.0.%d" % i)]).body)
           for i in range(40)]
    good = sum(r.error is None for r in got)
    tap.at_least(good, 5)
    tap.at_most(good, 5 + 5 * (time.monotonic() - began) + 1)
    tap.eq(env.asked("eth_call"), good, "calls that reached the node")
    for reply in got:
        if reply.error is not None:
            reply.refused(-32005)


PREFLIGHT = [("Access-Control-Request-Method", "POST"),
             ("Access-Control-Request-Headers", "content-type, x-requested-with")]
ORIGINS = {"tcp": {"origins": ["https://app.example"]}}


@row("E18", "preflight from an allowed origin", upstreams="http", **ORIGINS)
def e18_allowed(env, client):
    origin = ("Origin", "https://app.example")
    response = client.request(method="OPTIONS", headers=[origin] + PREFLIGHT)
    tap.among(response.status, (200, 204), "HTTP status")
    tap.eq(response.header("Access-Control-Allow-Origin"), b"https://app.example",
           "Allow-Origin")
    tap.contains(
        response.header("Access-Control-Allow-Methods") or b"", b"POST", "Allow-Methods")
    tap.contains((response.header("Access-Control-Allow-Headers") or b"").lower(),
                 b"content-type")
    tap.contains((response.header("Vary") or b"").lower(), b"origin", "Vary")
    env.untouched()
    for text in (GOOD, b"{", request("eth_nothing")):
        response = client.request(text, headers=[origin])
        tap.eq(response.status, 200, "HTTP status")
        tap.eq(response.header("Access-Control-Allow-Origin"), b"https://app.example",
               "Allow-Origin")
    response = client.request(b"", method="PUT", headers=[origin])
    tap.eq(response.status, 405, "HTTP status")
    tap.eq(response.header("Access-Control-Allow-Origin"), b"https://app.example",
           "Allow-Origin")


@row(
    "E18", "preflight from %s", upstreams="http", each=[
        "https://evil.example", "https://app.example.evil.com", "http://app.example", "null",
        "https://APP.example:444"
    ], **ORIGINS)
def e18_foreign(env, client, origin):
    response = client.request(method="OPTIONS", headers=[("Origin", origin)] + PREFLIGHT)
    tap.among(response.status, (200, 204, 403), "HTTP status")
    tap.eq(response.header("Access-Control-Allow-Origin"), None, "Allow-Origin")
    with env.client("http") as other:
        response = other.request(SEND, headers=[("Origin", origin)])
        tap.eq(response.status, 403, "HTTP status of a POST")
        tap.eq(response.header("Access-Control-Allow-Origin"), None, "Allow-Origin")
    env.untouched()


@row("E19", "GET, HEAD, PUT, DELETE, empty POST", upstreams="http")
def e19(env, client):
    response = client.request(method="GET")
    tap.eq(response.status, 200, "GET")
    response = client.request(method="HEAD")
    tap.eq(response.status, 200, "HEAD")
    works(env, client)
    for method in ("PUT", "DELETE", "PATCH"):
        response = client.request(b"", method=method)
        tap.eq(response.status, 405, method)
        tap.contains(response.header("Allow") or b"", b"POST", "Allow")
    response = client.request(b"")
    tap.among(response.status, (200, 400), "empty POST")
    Reply(response.body).refused(-32700, -32600)
    works(env, client)


@row("E20", "Expect: 100-continue", upstreams="http")
def e20(env, client):
    body = request("eth_call", [{"data": "0x" + "ab" * 150000}])
    stream = client.open()
    stream.send(client.head(len(body), headers=[("Expect", "100-continue")]))
    status, _, _ = client.read_head()
    tap.eq(status, 100, "interim status")
    stream.send(body)
    response = client.response()
    tap.eq(response.status, 200, "HTTP status")
    Reply(response.body).ok()
    for _, headers, _ in env.node.http_requests:
        tap.check(not any(h.lower().startswith(b"expect") for h in headers),
                  "Expect at the node")
    works(env, client)


@row("E20", "Expect: 100-continue over the limit", upstreams="http")
def e20_over(env, client):
    stream = client.open()
    stream.send(client.head(6 << 20, headers=[("Expect", "100-continue")]))
    try:
        status, _, _ = client.read_head()
        tap.among(status, (413, 417), "HTTP status")
    except Closed:
        pass
    works(env)
    tap.eq(env.asked("eth_call"), 1, "calls at the node")


@row("E21", "chunks of one byte, extensions, trailers", upstreams="http")
def e21(env, client):
    # libmicrohttpd 1.0.1 refuses extensions, which RFC 9112 7.1.1 wants ignored.
    more, last = (b"", b"") if library_version("libmicrohttpd")[0] == 1 else \
        (b";name=value", b";last")
    body = b"".join(b"1%s\r\n%c\r\n" % (more, c) for c in GOOD) + \
        b"0%s\r\nX-Trailer: a\r\n\r\n" % last
    head = client.head(None, headers=[("Transfer-Encoding", "chunked")])
    client.open().send(head + body)
    served(env, client.response())
    works(env, client)
    client.stream.send_slowly(head + body, 13)
    served(env, client.response())
    works(env, client)


@row(
    "E21", "request smuggling: %s", upstreams="http",
    each=[("Content-Length and Transfer-Encoding",
           b"Content-Length: 4\r\nTransfer-Encoding: chunked"),
          ("Transfer-Encoding and Content-Length",
           b"Transfer-Encoding: chunked\r\nContent-Length: 4"),
          ("two Content-Lengths", b"Content-Length: 4\r\nContent-Length: 5"),
          ("chunked twice", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
          ("identity", b"Transfer-Encoding: identity\r\nContent-Length: 4"),
          ("a blank before the colon", b"Transfer-Encoding : chunked\r\nContent-Length: 4"),
          ("signed length", b"Content-Length: +4"), ("hex length", b"Content-Length: 0x4"),
          ("bare LF", b"X: y\nTransfer-Encoding: chunked"),
          ("a folded header", b"Transfer-Encoding:\r\n chunked"),
          ("chunked is not last", b"Transfer-Encoding: chunked, gzip")])
def e21_smuggle(env, client, lines):
    hidden = client.head(len(SEND)) + SEND
    stream = client.open()
    stream.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
                lines + b"\r\n\r\n0\r\n\r\n" + hidden)
    status, _, headers = client.read_head()
    tap.check(400 <= status < 500 or status == 501, "HTTP status %d" % status)
    length = int(dict((n.lower(), v) for n, v in headers).get(b"content-length", b"0"))
    stream.read_exactly(length)
    tap.check(stream.at_end(3), "the connection is closed")
    works(env)
    tap.eq(env.chain.sent, [], "hidden requests that were executed")


@row("E22", "node replies %s", upstreams="http",
     each=[("in chunks inside of a character", {"mode": "chunked", "pieces": [46, 1, 1, 500]}),
           ("in chunks of one byte", {"mode": "chunked", "pieces": [1]}),
           ("close-delimited", {"mode": "close"}), ("HTTP/1.0", {"mode": "http10"}),
           ("in small writes", {"pieces": [3], "pause": 0.0005})])
def e22(env, client, how):
    text = '"0x€漢😀é"'.encode()
    env.node.script = on_calls(lambda req: req.result(text, **how))
    response = client.request(GOOD)
    tap.eq(Reply(response.body).ok(), text, "result")
    tap.eq(response.header("Content-Length"), b"%d" % len(response.body), "Content-Length")
    works_again = client.request(GOOD)
    tap.eq(Reply(works_again.body).ok(), text, "result")


def of_size(size):
    empty = request("eth_call", [""])
    return request("eth_call", ["x" * (size - len(empty))])


@row(
    "E24", "body of %s", upstreams="http", limits={"max_request": "1MiB"},
    each=[("limit-1", (1 << 20) - 1, True), ("limit", 1 << 20, True),
          ("limit+1", (1 << 20) + 1, False), ("3 MiB", 3 << 20, False)])
def e24(env, client, size, good):
    body = of_size(size)
    tap.eq(len(body), size, "size")
    for chunked in (False, True):
        with env.client("http") as own:
            stream = own.open()
            if chunked:
                wire_body = b"".join(b"%x\r\n%s\r\n" %
                                     (len(body[i:i + 65536]), body[i:i + 65536])
                                     for i in range(0, size, 65536)) + b"0\r\n\r\n"
                text = own.head(None, headers=[("Transfer-Encoding", "chunked")]) + wire_body
            else:
                text = own.head(size) + body
            try:
                stream.send(text)
            except (BrokenPipeError, ConnectionResetError):
                tap.check(not good, "the connection broke while sending")
            response = own.response()
            if good:
                tap.eq(response.status, 200, "HTTP status")
                Reply(response.body).ok()
            elif response.status == 200:
                Reply(response.body).refused()
            else:
                tap.eq(response.status, 413, "HTTP status")
    tap.eq(env.asked("eth_call"), 2 if good else 0, "calls at the node")


@row("E25", "a batch larger than the node takes", clients="http ws ipc", upstreams="http ws ipc")
def e25(env, client):
    env.node.script = lambda req: None if req.batch is None else req.error(-32600, "batch too large")
    got = client.batch([request("eth_call", [i], i) for i in range(500)], timeout=30)
    tap.eq([r.id for r in got], [b"%d" % i for i in range(500)], "ids in order")
    for i, reply in enumerate(got):
        tap.eq(reply.ok(), env.want("eth_call", b"[%d]" % i), "result %d" % i)


@row("E+", "pipelined requests are answered in order", upstreams="http")
def pipelined(env, client):
    env.node.script = lambda req: req.later(0.1) if req.params == b"[0]" else None
    stream = client.open()
    texts = [request("eth_call", [i], i) for i in range(5)]
    stream.send(b"".join(client.head(len(t)) + t for t in texts))
    for i in range(5):
        reply = Reply(client.response().body)
        tap.eq((reply.id, reply.ok()), (b"%d" % i, env.want("eth_call", b"[%d]" % i)),
               "answer %d" % i)


@row("E+", "a head in single bytes", upstreams="http")
def slow_head(env, client):
    client.open().send_slowly(client.head(len(GOOD)) + GOOD, 1)
    served(env, client.response())


wire.main()
