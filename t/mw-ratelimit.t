#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The middleware ratelimit in the whole program: on every transport, over both workers, alone and
in arrays. Rates are an hour's where a count must be exact however slow the machine is."""
import os
import re
import socket
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
import wire
from clients import Closed, Reply, Stream, request
from gateway import Gateway
from wire import row


def stage(http_status=False, **options):
    """Refusals with status 200, so that one client's call() does for all transports."""
    return {"middleware": [{"use": "methods"}, dict(
        {"use": "ratelimit", "http_status": http_status}, **options)]}


TEN = stage(per_client="10/h", burst=10)
FIVE = stage(per_client="5/h", burst=5)


def refusal(reply):
    """Checks a refusal; the seconds it names."""
    reply.refused(-32005)
    found = re.fullmatch(r"rate limit exceeded, try again in (\d+)ms", reply.message)
    tap.check(found, "message %r" % reply.message)
    seconds = rawjson.parse(reply.data)["rate"]["backoff_seconds"]
    tap.eq(seconds, int(found.group(1)) / 1000, "backoff_seconds")
    tap.at_least(seconds, 0.001)
    return seconds


def right(env, reply, params):
    tap.eq(reply.ok(), env.want("eth_call", params), "result")


def numbers(env, allowed, refused):
    for name, want in (("allowed", allowed), ("refused", refused)):
        tap.eq(env.gw.metric("ethrpcgw_ratelimit_%s_total" % name), want, name)


def from_address(env, kind, address):
    """A client whose connection comes from another loopback address."""
    options = {"connect": False} if kind == "ws" else {}
    client = env.client(kind, **options)
    client.close()
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.settimeout(tap.limit(8))
    sock.bind((address, 0))
    sock.connect(("127.0.0.1", env.gw.port))
    client.stream = Stream(sock, 8)
    if kind == "ws":
        tap.eq(client.handshake()[0], 101, "handshake")
    return client


# --- arrays and single calls ---------------------------------------------------------------


@row("B15", "an array of 50, ten are allowed", clients="http ws ipc", upstreams="http",
     fresh=True, **TEN)
def array(env, client):
    got = client.batch([request("eth_call", [i], i) for i in range(50)])
    tap.eq([r.id for r in got], [b"%d" % i for i in range(50)], "ids")
    for i, reply in enumerate(got):
        if i < 10:
            right(env, reply, b"[%d]" % i)
        else:
            refusal(reply)
    tap.eq(env.asked("eth_call"), 10, "calls at the node")
    numbers(env, 10, 40)
    tap.eq(env.gw.metric("ethrpcgw_ratelimit_clients"), 1, "clients")
    tap.eq(env.gw.metric("ethrpcgw_ratelimit_evicted_total"), 0, "evicted")


@row("B15", "notifications in an array count too", clients="http ws ipc", upstreams="http",
     fresh=True, **TEN)
def notifications(env, client):
    members = [request("eth_call", [i], None if i % 2 else i) for i in range(30)]
    got = client.batch(members)
    tap.eq([r.id for r in got], [b"%d" % i for i in range(0, 30, 2)], "ids")
    tap.eq([r.error is None for r in got], [i < 10 for i in range(0, 30, 2)], "which succeed")
    client.silent(request("eth_call", [77], None), 0.1)
    numbers(env, 10, 21)
    tap.eventually(lambda: env.asked("eth_call") == 10, 3, "ten calls at the node")


@row("R1", "single calls on many connections", clients="http ws ipc", upstreams="http",
     fresh=True, **TEN)
def singles(env, client):
    others = [env.client(client.kind) for _ in range(7)]
    try:
        for i in range(40):
            reply = ([client] + others)[i % 8].call("eth_call", [i])
            if i < 10:
                right(env, reply, b"[%d]" % i)
            else:
                tap.at_most(refusal(reply), 360)
    finally:
        for other in others:
            other.close()
    tap.eq(env.asked("eth_call"), 10, "calls at the node")
    numbers(env, 10, 30)


@row("R1", "the status of a refusal over HTTP, %s", upstreams="http", fresh=True,
     each=[("429", 429), ("200", 200)])
def status(env, _, want):
    upstream = {"name": "n0", "url": env.node.url()}
    options = stage(per_client="5/h", burst=5, http_status=want == 429)
    with Gateway([upstream], **options) as gw, gw.http() as client:
        for i in range(8):
            response = client.request(request("eth_call", [i]))
            tap.eq(response.status, 200 if i < 5 else want, "HTTP status")
            tap.check(response.is_json(), "Content-Type: %r" % response.headers)
            if i < 5:
                right(env, Reply(response.body), b"[%d]" % i)
            else:
                refusal(Reply(response.body))
        response = client.request(b"[" + request("eth_call", [1]) + b"]")
        tap.eq(response.status, 200, "HTTP status of an array")
        refusal(Reply(response.body[1:-1]))


@row("R1", "costs of methods", clients="http ws ipc", upstreams="http", fresh=True,
     **stage(per_client="30/h", burst=30, costs=[{"method": "eth_call", "cost": 10},
                                                 {"method": "eth_chain*", "cost": 0}]))
def costs(env, client):
    methods = ["eth_call", "net_version", "eth_call"] + ["eth_chainId"] * 50 + ["eth_call"]
    got = client.batch([request(m, [i], i) for i, m in enumerate(methods)])
    tap.eq([r.error is None for r in got], [True] * 53 + [False], "which succeed")
    got = client.batch([request("web3_clientVersion", [], i) for i in range(12)])
    tap.eq([r.error is None for r in got], [True] * 9 + [False] * 3, "which succeed")


@row("R1", "denied calls cost nothing", clients="http ws ipc", upstreams="http", fresh=True,
     **FIVE)
def denied(env, client):
    for _ in range(20):
        client.call("admin_peers").refused(-32601)
    tap.eq([client.call("eth_call", [i]).error is None for i in range(6)], [True] * 5 + [False],
           "which succeed")


@row("R1", "subscriptions", clients="ws ipc", upstreams="ws", fresh=True, **FIVE)
def subscriptions(env, client):
    opened = [client.call("eth_subscribe", ["newHeads"]).ok() for _ in range(5)]
    refusal(client.call("eth_subscribe", ["newHeads"]))
    head = env.chain.mine()
    events = [rawjson.parse(client.event())["params"] for _ in range(5)]
    tap.eq(sorted(e["subscription"] for e in events), sorted(map(rawjson.parse, opened)),
           "subscriptions with events: they are no calls")
    tap.eq({e["result"]["hash"] for e in events}, {head["hash"]}, "events")


# --- who is who ----------------------------------------------------------------------------


@row("E17", "what a client says about its address is ignored", upstreams="http", fresh=True,
     **FIVE)
def forwarded(env, client):
    allowed = 0
    for i in range(40):
        response = client.request(request("eth_call", [i]), headers=[
            ("X-Forwarded-For", "10.1.2.%d" % i), ("X-Real-IP", "10.1.3.%d" % i),
            ("Forwarded", "for=10.1.4.%d" % i)])
        reply = Reply(response.body)
        if reply.error is None:
            allowed += 1
        else:
            refusal(reply)
    tap.eq(allowed, 5, "results")
    tap.eq(env.asked("eth_call"), 5, "calls at the node")


@row("E17", "as it is in a handshake", clients="-", upstreams="http", fresh=True, **FIVE)
def handshake(env):
    allowed = 0
    for i in range(10):
        with env.client("ws", headers=[("X-Forwarded-For", "10.1.2.%d" % i)]) as client:
            allowed += client.call("eth_call", [i]).error is None
    tap.eq(allowed, 5, "results")


@row("R2", "one address is one client over HTTP and WebSocket, a user id another", clients="-",
     upstreams="http", fresh=True, **FIVE)
def transports(env):
    with env.client("http") as http, env.client("ws") as ws, env.client("ipc") as ipc:
        tap.eq([(ws if i % 2 else http).call("eth_call", [i]).error is None for i in range(8)],
               [True] * 5 + [False] * 3, "which succeed over TCP")
        tap.eq([ipc.call("eth_call", [i]).error is None for i in range(6)],
               [True] * 5 + [False], "which succeed over IPC")
    tap.eq(env.gw.metric("ethrpcgw_ratelimit_clients"), 2, "clients")


@row("R2", "local clients can be exempt", clients="http ws ipc", upstreams="http", fresh=True,
     **stage(per_client="5/h", exempt=["local"]))
def exempt(env, client):
    for reply in client.batch([request("eth_call", [i], i) for i in range(50)]):
        reply.ok()
    numbers(env, 0, 0)


@row("R2", "addresses can be exempt", clients="http ws", upstreams="http", fresh=True,
     **stage(per_client="1/h", exempt=["127.0.0.2/31"]))
def exempt_net(env, client):
    client.call("eth_call", [1]).ok()
    refusal(client.call("eth_call", [1]))
    with from_address(env, client.kind, "127.0.0.3") as other:
        for i in range(20):
            right(env, other.call("eth_call", [i]), b"[%d]" % i)


# --- fairness ------------------------------------------------------------------------------


class Greedy:
    """Asks all the time, by arrays over some connections, from 127.0.0.1."""

    def __init__(self, env, kind, connections=4):
        self.env, self.kind = env, kind
        self.allowed = [0] * connections
        self.refused = [0] * connections
        self.stop = threading.Event()
        self.errors = []
        self.threads = [threading.Thread(target=self.ask, args=(i,), daemon=True)
                        for i in range(connections)]

    def ask(self, i):
        try:
            with self.env.client(self.kind) as client:
                while not self.stop.is_set():
                    for reply in client.batch([request("eth_call", [1], 1)] * 20):
                        if reply.error is None:
                            self.allowed[i] += 1
                        else:
                            refusal(reply)
                            self.refused[i] += 1
        except (tap.Failed, Closed, OSError) as error:
            self.errors.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        tap.eventually(lambda: min(self.refused) > 50 or self.errors, 10,
                       "the greedy one is refused on all its connections")
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(tap.limit(10))
        tap.eq(self.errors, [], "errors of the greedy one")


def others_are_served(env, kind):
    with Greedy(env, kind) as greedy, from_address(env, kind, "127.0.0.2") as other:
        for i in range(40):
            right(env, other.call("eth_call", [i]), b"[%d]" % i)
    numbers(env, sum(greedy.allowed) + 40, sum(greedy.refused))


@row("R3", "one client's limit is not another's, %s", clients="-", upstreams="http", fresh=True,
     each=["http", "ws"], **stage(per_client="100/h", burst=100))
def fair_each(env, kind):
    others_are_served(env, kind)
    with env.client(kind) as client:
        refusal(client.call("eth_call", [1]))
    tap.eq(env.gw.metric("ethrpcgw_ratelimit_allowed_total"), 140, "allowed")
    tap.eq(env.asked("eth_call"), 140, "calls at the node")


@row("R3", "one that wants everything leaves room for another, %s", clients="-",
     upstreams="http", fresh=True, each=["http", "ws"], **stage(per_client="none", total="100/s"))
def fair_total(env, kind):
    others_are_served(env, kind)


@row("R3", "the total holds for all", clients="-", upstreams="http", fresh=True,
     **stage(per_client="100/h", burst=100, total="72000/h"))
def total(env):
    # That is 20/s: one client gets half of the burst, and what has come back meanwhile.
    with env.client("http") as client, env.client("ipc") as other:
        got = client.batch([request("eth_call", [i], i) for i in range(60)])
        good = sum(r.error is None for r in got)
        tap.at_least(good, 10)
        for reply in got:
            if reply.error is not None:
                tap.at_most(refusal(reply), 1)
        tap.check(other.call("eth_call", [1]).error is None, "another one is served")


@row("R4", "what a refusal says about time holds", clients="http ws ipc", upstreams="http",
     fresh=True, **stage(per_client="4/s", burst=1))
def time_holds(env, client):
    client.call("eth_call", [1]).ok()
    reply = client.call("eth_call", [1])
    if reply.error is not None:
        tap.at_most(refusal(reply), 0.25)
    tap.eventually(lambda: client.call("eth_call", [1]).error is None, 3, "it comes through")


wire.main()
