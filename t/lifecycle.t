#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Start, drain, stop: signals, exit statuses, ports in use, memory flat over many calls."""
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import tap
from clients import Closed, NoAnswer, Reply, request
from fakenode import HANDLED, Node
from gateway import Gateway, has_transport, need_program, run_program, sanitized

LONG = os.environ.get("EGW_LONG") == "1"
folder = tempfile.mkdtemp(prefix="egw-life-")


def start(node, **options):
    node.clear()
    return Gateway([{"name": "n", "url": node.url()}], **options)


def slow(node, seconds=0.5):
    node.script = lambda req: req.later(seconds) if req.params == b'["slow"]' else None


def in_flight(node, count=1):
    tap.eventually(lambda: node.count("eth_call") >= count, 4, "the calls are in flight")


def want(node):
    return node.chain.answer("eth_call", b'["slow"]')


# --- E14 and around ---------------------------------------------------------------------

def drain(node, kind, number, kinds=None):
    gw = start(node)
    try:
        slow(node)
        idle = gw.client(kind)
        idle.call("eth_chainId").ok()
        clients = [gw.client(k) for k in kinds or [kind]]
        before = node.count("eth_call")
        for client in clients:
            client.send(request("eth_call", ["slow"], b'"e14"'))
        in_flight(node, before + len(clients))
        gw.signal(number)
        tap.eventually(lambda: "draining" in gw.log(), 2, "it drains")
        if kind == "http":
            tap.check(idle.stream.at_end(2), "an idle connection is closed at once")
        for client in clients:
            reply = Reply(client.recv())
            tap.eq((reply.id, reply.ok()), (b'"e14"', want(node)), "answer")
            if client.kind == "http":
                # recv() has checked that the connection was closed.
                tap.check(client.last.closes(), "Connection: close on the last answer")
                tap.eq(client.stream, None, "connection")
            elif client.kind == "ws":
                tap.among(client.wait_close(3), (1001, 1000), "close code")
            else:
                tap.check(client.stream.at_end(3), "the connection is closed")
        tap.eq(gw.wait(5), 0, "exit status")
        tap.check(not os.path.exists(gw.ipc_path), "the unix socket is removed")
    finally:
        gw.discard()


def batch_drain(node):
    gw = start(node)
    try:
        slow(node)
        client = gw.ws()
        client.send(b"[" + request("eth_call", ["slow"], 1) + b"," +
                    request("eth_chainId", [], 2) + b"]")
        in_flight(node)
        gw.signal()
        tap.contains(client.recv(), want(node), "the batch's answer")
        tap.eq(gw.wait(5), 0, "exit status")
    finally:
        gw.discard()


def not_ready(node):
    gw = start(node)
    try:
        slow(node, 0.7)
        client = gw.ipc()
        client.send(request("eth_call", ["slow"]))
        in_flight(node)
        tap.eq(gw.admin("/ready")[0], 200, "/ready before")
        gw.signal()
        tap.eventually(lambda: gw.admin("/ready")[0] != 200, 2, "/ready while it drains")

        def refused():
            try:
                with gw.http(timeout=1) as late:
                    late.call("eth_chainId", timeout=1)
                return False
            except (OSError, Closed, NoAnswer, tap.Failed):
                return True

        tap.eventually(refused, 1, "new clients are refused")
        Reply(client.recv()).ok()
        tap.eq(gw.wait(5), 0, "exit status")
    finally:
        gw.discard()


def second_signal(node):
    gw = start(node)
    try:
        node.script = lambda req: HANDLED if req.params == b'["slow"]' else None
        clients = [gw.client(kind) for kind in ("http", "ws", "ipc")]
        for client in clients:
            client.send(request("eth_call", ["slow"]))
        in_flight(node, 3)
        gw.signal()
        tap.eventually(lambda: "draining" in gw.log(), 2, "it drains")
        tap.check(gw.alive(), "it waits for the calls")
        began = time.monotonic()
        gw.signal()
        tap.eq(gw.wait(5), 0, "exit status")
        tap.at_most(time.monotonic() - began, tap.limit(1.5), "seconds")
    finally:
        gw.discard()


def drain_time(node):
    gw = start(node, top={"drain_timeout": "400ms"})
    try:
        node.script = lambda req: HANDLED if req.params == b'["slow"]' else None
        clients = [gw.client(kind) for kind in ("http", "ws", "ipc")]
        for client in clients:
            client.send(request("eth_call", ["slow"], 9))
        in_flight(node, 3)
        began = time.monotonic()
        gw.signal()
        for client in clients:
            try:
                reply = Reply(client.recv())
                tap.eq(reply.id, b"9", "id")
                reply.refused(-32054)
            except Closed:
                pass
        tap.eq(gw.wait(5), 0, "exit status")
        tap.at_most(time.monotonic() - began, tap.limit(3), "seconds")
    finally:
        gw.discard()


def subscriptions_drain(node):
    gw = start(node)
    try:
        clients = [gw.client(kind) for kind in ("ws", "ipc")]
        for client in clients:
            client.subscribe("newHeads")
        gw.signal()
        tap.eq(clients[0].wait_close(3), 1001, "close code")
        tap.check(clients[1].stream.at_end(3), "IPC is closed")
        tap.eq(gw.wait(5), 0, "exit status")
    finally:
        gw.discard()


def hangup(node):
    with start(node) as gw:
        gw.signal(signal.SIGHUP)
        with gw.http() as client:
            for _ in range(5):
                client.call("eth_chainId").ok()
        tap.check(gw.alive(), "SIGHUP does not end it")


def quick_restarts(node):
    for _ in range(5):
        gw = start(node)
        with gw.http() as client:
            client.call("eth_chainId").ok()
        gw.stop()


def signal_at_start(node):
    for delay in (0, 0.005, 0.02, 0.05):
        gw = start(node, start=False)
        try:
            gw.start_only()
            time.sleep(delay)           # another moment of the start each time
            gw.signal()
            tap.among(gw.wait(5), (0, -signal.SIGTERM), "exit status")
        finally:
            gw.discard()


# --- ports and arguments ------------------------------------------------------------------

def port_in_use(node):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        code, out = run_program("--upstream", node.url(), "--listen", "127.0.0.1:%d" % port)
        tap.eq(code, 1, "exit status")
        tap.contains(out, str(port), "message")
        tap.check(re.search("in use", out), "message: %r" % out)


def socket_in_use(node):
    path = os.path.join(folder, "life.ipc")
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(path)
        taken.listen(1)
        code, out = run_program("--upstream", node.url(), "--listen", path)
        tap.eq(code, 1, "exit status")
        tap.contains(out, "life.ipc", "message")
        tap.check(os.path.exists(path), "the other's socket is left alone")
    # Now nobody listens there: a leftover, which is replaced.
    gw = Gateway([{"name": "n", "url": node.url()}], listen=[{"name": "ipc", "path": path}])
    gw.ipc_path = path
    try:
        tap.eventually(lambda: os.path.exists(path), 3)
        with gw.ipc() as client:
            client.call("eth_chainId").ok()
        gw.stop()
    finally:
        gw.discard()


def a_file_in_the_way(node):
    path = os.path.join(folder, "precious")
    with open(path, "w", encoding="ascii") as file:
        file.write("data")
    code, out = run_program("--upstream", node.url(), "--listen", path)
    tap.eq(code, 1, "exit status")
    tap.contains(out, "precious", "message")
    with open(path, encoding="ascii") as file:
        tap.eq(file.read(), "data", "the file is left alone")


def refuses(args, *words, code=None):
    got, out = run_program(*args)
    tap.check(got == code if code is not None else got not in (0, None) and got > 0,
              "exit status %r: %r" % (got, out[:500]))
    for word in words:
        tap.contains(out, word, "message")


def bad_config():
    path = os.path.join(folder, "bad.conf")
    with open(path, "w", encoding="ascii") as file:
        file.write(
            'workers = "many";\nfrobnicate = 1;\nnetworks = ( { upstreams = ( ); } );\n')
    refuses(["--config", path], "bad.conf:1", "bad.conf:2", "frobnicate", code=1)
    refuses(["--config", path, "--check-config"], "bad.conf:1", code=1)
    refuses(["--config", os.path.join(folder, "absent.conf")], "absent.conf", code=1)


def no_upstreams():
    path = os.path.join(folder, "empty.conf")
    with open(path, "w", encoding="ascii") as file:
        file.write(
            'listen = ( { port = 0; } );\n'
            'networks = ( { name = "main"; upstreams = ( ); } );\n')
    refuses(["--config", path], "upstream", code=1)


def information():
    code, out = run_program("--version")
    tap.eq(code, 0, "exit status of --version")
    tap.check(re.search(r"\d+\.\d+\.\d+", out), "version: %r" % out)
    code, out = run_program("--help")
    tap.eq(code, 0, "exit status of --help")
    for word in ("--config", "--upstream", "--listen"):
        tap.contains(out, word, "help")


def command_line(node):
    """--upstream alone is enough."""
    gw = Gateway([], start=False)
    try:
        gw.start_command(
            ["--upstream",
             node.url(), "--listen", "127.0.0.1:0", "--workers", "1"])
        with gw.http() as client:
            client.call("eth_chainId").ok()
        with gw.ws() as client:
            client.call("eth_chainId").ok()
        gw.stop()
    finally:
        gw.discard()


# --- flat over time -------------------------------------------------------------------------

def many_calls(node, kind, count):
    with start(node, level="info") as gw:
        with gw.client(kind, timeout=20) as client:
            texts = [request("eth_call", [i], i) for i in range(50)]
            wants = [node.chain.answer("eth_call", b"[%d]" % i) for i in range(50)]

            def round_(calls):
                for at in range(0, calls, 50):
                    node.requests.clear()
                    node.http_requests.clear()
                    if kind == "http":
                        client.stream or client.open()
                        client.stream.send(b"".join(client.head(len(t)) + t for t in texts))
                        got = [Reply(client.response().body) for _ in texts]
                    else:
                        for text in texts:
                            client.send(text)
                        got = [Reply(client.recv()) for _ in texts]
                    answers = {int(r.id): r.ok() for r in got}
                    tap.eq([answers[i] for i in range(50)], wants, "results of round %d" % at)

            round_(count // 5)
            rss, fds = gw.rss(), gw.fds()
            round_(count - count // 5)
            if not sanitized():
                tap.at_most(gw.rss() - rss, 4 << 20, "growth of memory")
            gw.settled_fds(fds, 2)


def many_connections(node, count):
    with start(node, level="info") as gw:
        def round_(n):
            for i in range(n):
                node.requests.clear()
                node.http_requests.clear()
                with gw.client(("http", "ws", "ipc")[i % 3]) as client:
                    client.call("eth_chainId").ok()

        round_(count // 4)
        tap.eventually(lambda: gw.metric("ethrpcgw_sessions") == 0, 5, "sessions end")
        rss, fds = gw.rss(), gw.fds()
        round_(count - count // 4)
        gw.settled_fds(fds, 2)
        if not sanitized():
            tap.at_most(gw.rss() - rss, 4 << 20, "growth of memory")


def main():
    need_program()
    tap.watchdog(36000 if LONG else 170)
    node = Node("http" if has_transport("http") else "ws", None, folder, "life")
    for kind in ("http", "ws", "ipc"):
        for number in (signal.SIGTERM, signal.SIGINT):
            tap.run("E14 %s<-http %s with a call in flight" % (kind, number.name), drain, node,
                    kind, number)
    tap.run("E14 all<-http calls in flight on all transports", drain, node, "ipc",
            signal.SIGTERM, ["http", "ws", "ipc", "http", "ws", "ipc"])
    tap.run("E14 ws<-http a batch in flight", batch_drain, node)
    tap.run("/ready and new clients while it drains", not_ready, node)
    tap.run("a second signal ends it at once", second_signal, node)
    tap.run("the drain time is kept", drain_time, node)
    ws_node = Node("ws", None, folder, "life-ws")
    tap.run("subscribers are sent away", subscriptions_drain, ws_node)
    ws_node.close()
    tap.run("SIGHUP", hangup, node)
    tap.run("five starts and stops", quick_restarts, node)
    tap.run("a signal while it starts", signal_at_start, node)
    tap.run("port in use", port_in_use, node)
    tap.run("unix socket in use, and left over", socket_in_use, node)
    tap.run("a file where the unix socket should be", a_file_in_the_way, node)
    tap.run("bad configuration", bad_config)
    tap.run("I13 an empty list of upstreams", no_upstreams)
    tap.run("unknown option", refuses, ["--frobnicate"], "frobnicate", code=2)
    tap.run("stray argument", refuses, ["stray"], "stray", code=2)
    tap.run("bad URL", refuses, ["--upstream", "ftp://x", "--listen", "127.0.0.1:0"], code=1)
    tap.run("--version and --help", information)
    tap.run("started by the command line alone", command_line, node)
    for kind, count in (("http", 6000), ("ws", 7000), ("ipc", 7000)):
        tap.run("flat over %s calls by %s" % ("a million" if LONG else count, kind),
                many_calls, node, kind, 1000000 if LONG else count)
    tap.run("flat over %d short connections" % (100000 if LONG else 2000), many_connections,
            node, 100000 if LONG else 2000)
    node.close()
    shutil.rmtree(folder, ignore_errors=True)
    tap.done()


main()
