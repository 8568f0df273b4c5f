#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench/load against a scripted node: what it asks, what it counts, and that its open loop lets
calls wait. How fast anything is here says nothing."""
import collections
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
from fakenode import Answer, Node, hangup
from gateway import BUILD

LOAD = os.path.join(BUILD, "bench", "load")
KINDS = ("http", "ws", "ipc")
TEMPLATE = '{"jsonrpc":"2.0","id":1,"method":"eth_call","params":["0x%040x",%d]}'
NOTHING = {"errors": {}, "http": {}, "transport_errors": 0, "lost": 0, "refused": 0, "strays": 0,
           "unsent": 0, "unanswered": 0}


class Env:
    """A node of a kind, whose calls answer "0x1"."""

    def __init__(self, kind, folder):
        self.kind = kind
        self.node = Node(kind, folder=folder)
        self.node.script = lambda req: req.result(b'"0x1"')

    def where(self):
        return self.node.path if self.kind == "ipc" else str(self.node.port)

    def load(self, *options):
        """What it prints, for these options."""
        self.node.requests.clear()
        done = subprocess.run([LOAD, *options, self.kind, self.where()], capture_output=True,
                              text=True, timeout=tap.limit(60), check=False)
        tap.eq(done.returncode, 0, "exit status: " + done.stderr)
        return json.loads(done.stdout)

    def calls(self):
        return [r for r in self.node.seen() if r.method == "eth_call"]

    def asked(self):
        """What came in, in order: params of the calls."""
        return [r.args() for r in self.calls()]


def with_node(fn):
    def run(kind, *rest):
        with tempfile.TemporaryDirectory(prefix="egw-") as folder:
            env = Env(kind, folder)
            try:
                fn(env, *rest)
                tap.eq(env.node.complaints, [], "complaints of the node")
            finally:
                env.node.close()
    return run


def clean(got, **but):
    """Nothing went wrong, but for this."""
    tap.eq({key: got[key] for key in NOTHING}, dict(NOTHING, **but), "what went wrong")


def write_requests(folder, count):
    """Half of them with the id first; their params tell them."""
    path = os.path.join(folder, "requests")
    with open(path, "w", encoding="utf-8") as file:
        for n in range(count):
            one = {"jsonrpc": "2.0", "method": "eth_call", "params": [n, {"id": "x"},
                                                                      "0x%064x" % (n << 200)]}
            file.write(json.dumps(dict({"id": n}, **one) if n % 2 else dict(one, id="n%d" % n))
                       + "\n")
    return path


# --- what is asked ----------------------------------------------------------------------------


@with_node
def template(env):
    got = env.load("--template", TEMPLATE, "--calls", "300", "--connections", "5")
    tap.eq(got["calls"], 300, "calls")
    clean(got)
    tap.eq(len({r.id for r in env.calls()}), 300, "ids")
    numbers = sorted(n for _, n in env.asked())
    tap.eq(numbers, list(range(numbers[0], numbers[0] + 300)), "numbers asked")
    tap.eq({text for text, _ in env.asked()}, {"0x%040x" % n for n in numbers}, "padded")
    tap.eq(got["bytes"], 300 * len('{"jsonrpc":"2.0","id":1000000000000000,"result":"0x1"}'),
           "bytes")
    tap.check(got["p50"] <= got["p90"] <= got["p99"] <= got["p99.9"] <= got["max"], "latencies")
    env.load("--template", TEMPLATE, "--calls", "300", "--seed", "2")
    tap.check(not set(numbers) & {n for _, n in env.asked()}, "another seed asks something else")


@with_node
def requests(env, folder):
    path = write_requests(folder, 50)
    orders = []
    for seed in ("1", "1", "2"):
        got = env.load("--requests", path, "--calls", "50", "--seed", seed)
        clean(got)
        orders.append([p[0] for p in env.asked()])
    tap.eq(sorted(orders[0]), list(range(50)), "each once")
    tap.eq(orders[0], orders[1], "the order of a seed")
    tap.check(orders[0] != orders[2] and orders[0] != sorted(orders[0]), "an order by chance")
    env.load("--requests", path, "--calls", "100", "--distinct")
    tap.eq(len({json.dumps(p) for p in env.asked()}), 100, "distinct when the file is through")
    env.load("--requests", path, "--calls", "100")
    tap.eq(len({json.dumps(p) for p in env.asked()}), 50, "the same again without --distinct")


@with_node
def zipf(env, folder):
    path = write_requests(folder, 200)
    orders = []
    for seed in ("7", "7", "8"):
        clean(env.load("--requests", path, "--zipf", "1.0", "--calls", "2000", "--seed", seed))
        orders.append([p[0] for p in env.asked()])
    tap.eq(orders[0], orders[1], "what a seed picks")
    tap.check(orders[0] != orders[2], "another seed picks something else")
    counts = [n for _, n in collections.Counter(orders[0]).most_common()]
    # Rank 1 of 200 has 0.170 of all, rank 10 has 0.017.
    tap.check(270 <= counts[0] <= 410, "the first rank: %d of 2000" % counts[0])
    tap.check(15 <= counts[9] <= 60, "the tenth rank: %d of 2000" % counts[9])


# --- what is counted --------------------------------------------------------------------------


@with_node
def errors(env):
    def script(req):
        n = req.args()[1] % 10
        if n == 1:
            return req.error(-32000, "header not found")
        if n == 2:
            return Answer(b'{"error":{"message":"no","code":-32601},"id":%s}' % req.id)
        if n == 3:
            return req.result(b'{"error":{"code":5},"note":"no error of the call"}')
        return req.result(b'"0x1"')
    env.node.script = script
    got = env.load("--template", TEMPLATE, "--calls", "200", "--connections", "3")
    tap.eq(got["calls"], 200, "calls")
    clean(got, errors={"-32000": 20, "-32601": 20})


def statuses():
    with tempfile.TemporaryDirectory(prefix="egw-") as folder:
        env = Env("http", folder)
        env.node.script = lambda req: req.result(b'"0x1"', status=503 if req.args()[1] % 5 == 0
                                                 else 200)
        got = env.load("--template", TEMPLATE, "--calls", "100", "--connections", "3")
        env.node.close()
    tap.eq(got["calls"], 80, "calls")
    clean(got, http={"503": 20})


@with_node
def lost(env):
    env.node.script = lambda req: hangup() if req.args()[1] % 10 == 0 else req.result(b'"0x1"')
    got = env.load("--template", TEMPLATE, "--calls", "200", "--connections", "4")
    tap.eq(got["calls"], 180, "calls")
    clean(got, lost=20, transport_errors=20)
    tap.at_least(env.node.accepted, 20, "connections that came in")


@with_node
def shapes(env):
    """Long replies, in pieces, with the id last; the connection's end as the end of one."""
    big = b'"' + b"0123456789abcdef" * 20000 + b'"'

    def script(req):
        n = req.args()[1] % 4
        if n == 0:
            return req.result(big, mode="chunked", pieces=[5, 70000], fragments=[3, 90000])
        if n == 1:
            return Answer(b'{"result":%s,"id":%s,"jsonrpc":"2.0"}' % (big, req.id))
        if n == 2 and env.kind == "http":
            return req.result(big, mode="close")
        return req.result(b'{"id":77,"x":%s}' % big, pieces=[1, 40, 100000])
    env.node.script = script
    got = env.load("--template", TEMPLATE, "--calls", "40", "--connections", "2")
    tap.eq(got["calls"], 40, "calls")
    clean(got, lost=10 if env.kind == "http" else 0)
    tap.at_least(got["bytes"], 40 * len(big), "bytes")


@with_node
def pipelined(env):
    """Replies in another order than the calls."""
    env.node.script = lambda req: req.later(0.002 * (req.args()[1] % 7), req.result(b'"0x1"'))
    got = env.load("--template", TEMPLATE, "--calls", "300", "--connections", "2", "--pipeline",
                   "20")
    tap.eq(got["calls"], 300, "calls")
    clean(got)
    tap.eq(len({r.id for r in env.calls()}), 300, "ids")


@with_node
def strays(env):
    env.node.script = lambda req: Answer(b'{"jsonrpc":"2.0","id":5,"result":1}') \
        if req.args()[1] % 10 == 0 else req.result(b"1")
    got = env.load("--template", TEMPLATE, "--calls", "100")
    clean(got, strays=10)


# --- when it is asked -------------------------------------------------------------------------


@with_node
def open_loop(env):
    """A node that stalls once for a second holds up all calls that are due meanwhile: one slow
    call in the closed loop, most of them in the open one."""
    def script(req):
        return req.later(1.0, req.result(b"1")) if req.args()[1] % 1000 == 5 else req.result(b"1")
    env.node.script = script
    more = ["--template", TEMPLATE, "--calls", "100", "--connections", "1"]
    closed = env.load(*more)
    waits = env.load(*more, "--rate", "100", "--arrivals", "fixed", "--pipeline", "1")
    for got in (closed, waits):
        tap.eq(got["calls"], 100, "calls")
        clean(got)
        tap.at_least(got["max"], 990000, "the slowest, us")
    tap.check(waits["p50"] > closed["p90"], "the calls that were due wait: p50 %s us, closed p90 %s"
              % (waits["p50"], closed["p90"]))


@with_node
def arrivals(env):
    """Poisson arrivals by a seed: as many as the rate says, about; what is not answered counts."""
    got = env.load("--template", TEMPLATE, "--rate", "400", "--seconds", "1", "--connections", "20",
                   "--seed", "3", "--drain", "30")
    tap.check(320 <= got["calls"] <= 480, "calls: %d" % got["calls"])
    tap.eq(got["unsent"] + got["unanswered"], 0, "all are answered after a while")
    env.node.script = lambda req: Answer(None)
    got = env.load("--template", TEMPLATE, "--rate", "100", "--seconds", "0.5", "--connections",
                   "1", "--pipeline", "1", "--arrivals", "fixed", "--drain", "0.1")
    tap.eq([got["calls"], got["unanswered"]], [0, 1], "calls, and without an answer")
    tap.eq(got["unsent"], 49, "due, but not sent")
    tap.at_least(got["max"], 500000, "the time they have waited, us")


# --- options ----------------------------------------------------------------------------------


def old_form():
    with tempfile.TemporaryDirectory(prefix="egw-") as folder:
        env = Env("http", folder)
        body = '{"jsonrpc":"2.0","id":"me","method":"eth_call","params":[]}'
        done = subprocess.run([LOAD, "http", env.where(), "2", "200", body], capture_output=True,
                              text=True, timeout=tap.limit(30), check=False)
        ids = {r.id for r in env.calls()}
        env.node.close()
    word, calls, micros, _, _, size = done.stdout.split()
    tap.eq([word, size, ids], ["RESULT", str(len('{"jsonrpc":"2.0","id":"me","result":"0x1"}')),
                               {b'"me"'}], "what is printed, and asked")
    tap.check(int(calls) > 0 and int(micros) >= 200000, done.stdout)


def options():
    for argv, says in (
            (["http"], "Usage"), (["tcp", "1", "{}"], "http, ws or ipc"),
            (["ipc", "/nowhere"], "BODY"), (["--zipf", "1", "http", "1", "{}"], "--requests"),
            (["--rate", "x", "http", "1"], "not a number"),
            (["--pipeline", "2", "--template", TEMPLATE, "http", "1"], "one call at a time"),
            (["--template", '{"method":"m","x":"%d"}', "http", "1"], "an id"),
            (["--requests", "/nowhere", "http", "1"], "No such file")):
        done = subprocess.run([LOAD, *argv], capture_output=True, text=True,
                              timeout=tap.limit(30), check=False)
        tap.among(done.returncode, (1, 2), "exit status of %s" % argv)
        tap.contains(done.stderr, says)
    done = subprocess.run([LOAD, "--help"], capture_output=True, text=True, check=True,
                          timeout=tap.limit(30))
    tap.contains(done.stdout, "--zipf")


def main():
    for kind in KINDS:
        tap.run("a template over " + kind, template, kind)
        tap.run("JSON-RPC errors over " + kind, errors, kind)
        tap.run("lost connections over " + kind, lost, kind)
        tap.run("replies of all shapes over " + kind, shapes, kind)
        tap.run("a reply with another id over " + kind, strays, kind)
        tap.run("a stall in the open loop over " + kind, open_loop, kind)
        tap.run("a rate over " + kind, arrivals, kind)
    for kind in ("ws", "ipc"):
        tap.run("calls at a time over " + kind, pipelined, kind)
    with tempfile.TemporaryDirectory(prefix="egw-") as folder:
        tap.run("requests of a file", requests, "http", folder)
        tap.run("by Zipf rank", zipf, "http", folder)
    tap.run("answers with another status", statuses)
    tap.run("the form of before", old_form)
    tap.run("options that do not fit", options)
    tap.done()


if __name__ == "__main__":
    if not os.path.exists(LOAD):
        tap.skip_all("bench/load is not built")
    tap.watchdog(300)
    main()
