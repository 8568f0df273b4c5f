#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Wire behaviour K: what is secret in an upstream's URL appears nowhere."""
import base64
import os
import sys
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import request
from fakenode import Answer, hangup, raw, reset, silent
from wire import row

USER, PASSWORD, PATH, QUERY = "us3rname", "SECRET+pw/12", "SECRETkey34", "SECRETkey56"
FORM = "%s://" + USER + ":" + urllib.parse.quote(PASSWORD, "").replace("%", "%%") + \
    "@%s/v2/" + PATH + "?k=" + QUERY
BASIC = base64.b64encode(("%s:%s" % (USER, PASSWORD)).encode())


def forms(secret):
    """The secret as it is, percent-encoded, and the parts of base64 that are its own."""
    out = [secret.encode(), urllib.parse.quote(secret, "").encode(),
           urllib.parse.quote(secret, "").lower().encode()]
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + secret.encode()).rstrip(b"=")
        whole = coded[(before * 8 + 5) // 6:(before + len(secret)) * 8 // 6]
        out += [whole, whole.replace(b"+", b"-").replace(b"/", b"_")]
    return out


FORMS = [f for s in (PASSWORD, PATH, QUERY, USER + ":" + PASSWORD) for f in forms(s)] + [BASIC]


def no_secret(data, where):
    for form in FORMS:
        tap.lacks(data, form, where)


def whole_url(env):
    return (FORM % tuple(env.node.url().split("://"))).encode()


def everywhere(env):
    no_secret(env.gw.log().encode(), "log")
    no_secret(env.gw.admin("/metrics")[1], "metrics")
    no_secret(env.gw.admin("/status")[1], "status")


def repeat(env, where):
    """What a node or a proxy in front of it may say about a URL."""
    line, fields, _ = where.http
    return b"cannot serve %s %s authorization %s" % (
        whole_url(env), line, fields.get(b"authorization", b""))


SCRIPTS = [
    ("401 with the URL",
     lambda env, req: raw(repeat(env, req), status=401, headers=["Content-Type: text/plain"])),
    ("500 with the URL",
     lambda env, req: raw(b"<p>" + repeat(env, req) + b"</p>", status=500)),
    ("200 with the URL", lambda env, req: raw(repeat(env, req))),
    ("an error with the URL",
     lambda env, req: req.error(-32000,
                                repeat(env, req).decode("latin-1"), status=401)),
    ("an error with the URL as data",
     lambda env, req: req.error(-32000, "unauthorized",
                                repeat(env, req).decode("latin-1"), status=500)),
    ("a stall", lambda env, req: silent()),
    ("a reset", lambda env, req: reset()),
    ("a hang-up", lambda env, req: hangup()),
    ("a redirect",
     lambda env, req: Answer(b"", status=302, whole=True, headers=
                             [b"Location: http://elsewhere.example/" + PATH.encode()])),
    ("a broken chunk", lambda env, req: req.normal(mode="chunked", cut=20)),
]


@row("K1", "replies are free of secrets: %s", clients="http ws ipc", upstreams="http",
     url_form=FORM, level="trace", network={"timeout": "600ms", "attempt_timeout": "300ms"},
     each=SCRIPTS)
def k1(env, client, script):
    env.node.script = lambda req: script(env, req) if req.method == "eth_call" else None
    answer = client.raw(request("eth_call", [1]))
    no_secret(answer, "reply")
    if client.kind == "http":
        no_secret(repr(client.last.headers).encode(), "headers of the reply")
    env.node.script = None
    tap.eventually(lambda: client.call("eth_call", [1]).error is None, 5,
                   "later calls succeed")
    lines = [(line, b"\n".join(headers)) for line, headers, _ in env.node.http_requests]
    tap.check(all(PATH.encode() in line and QUERY.encode() in line for line, _ in lines),
              "the node got path and query")
    tap.check(all(b"Authorization: Basic " + BASIC in headers for _, headers in lines),
              "the node got the credentials")
    everywhere(env)


@row("K1", "replies are free of secrets: node down", clients="http ws ipc",
     upstreams="http ws", url_form=FORM, level="trace", fresh=True)
def k1_down(env, client):
    env.node.stop()
    no_secret(client.raw(request("eth_call", [1])), "reply")
    everywhere(env)


@row("K2", "log, metrics and status name the upstream, no more", clients="http",
     upstreams="http ws", url_form=FORM, level="trace", fresh=True)
def k2(env, client):
    client.call("eth_call", [1]).ok()
    env.node.cut()
    tap.eventually(lambda: client.call("eth_call", [1]).error is None, 5,
                   "calls succeed again")
    env.node.stop()
    client.call("eth_call", [2])
    everywhere(env)
    tap.contains(env.gw.admin("/metrics")[1], b'upstream="n0"', "metrics")
    names = [u["name"] for n in env.gw.status_page()["networks"] for u in n["upstreams"]]
    tap.eq(names, ["n0"], "upstreams of the status page")


@row("K3", "WebSocket credentials", clients="ws", upstreams="ws", url_form=FORM, level="trace",
     fresh=True)
def k3(env, client):
    sub = client.subscribe("newHeads")
    for _ in range(3):
        env.node.cut(True)
        tap.eventually(lambda: env.node.subscriptions(), 6, "subscribed again")
        client.call("eth_call", [1])
    tap.check(len(env.node.http_requests) >= 4, "handshakes")
    for line, headers, _ in env.node.http_requests:
        tap.contains(line, b"/v2/%s?k=%s" % (PATH.encode(), QUERY.encode()), "request line")
        tap.check(any(h.lower() == b"authorization: basic " + BASIC.lower() for h in headers),
                  "credentials: %r" % headers)
    everywhere(env)
    tap.check(rawjson.parse(sub), "subscription")


wire.main()
