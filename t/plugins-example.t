#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The public headers stand alone in C99 and C++; the examples compile out of tree by the one
line of the manual and do what they say in the running program."""
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
from chain import Chain
from clients import event_parts, request
from fakenode import Node
from gateway import BUILD, PROGRAM, SOURCE, Gateway, has_transport, run_program, sanitized
from tap import check, eq

INCLUDE = [os.path.join(SOURCE, "include"), os.path.join(BUILD, "include")]
HEADERS = sorted(h for h in os.listdir(os.path.join(INCLUDE[0], "ethrpc-gw"))
                 if h.endswith(".h"))
EXAMPLES = sorted(e for e in os.listdir(os.path.join(SOURCE, "plugins", "example"))
                  if e.endswith(".c"))
CC = os.environ.get("CC", "cc").split()
CXX = os.environ.get("CXX", "c++").split()
folder = tempfile.mkdtemp(prefix="egw-example-")


def compile_with(argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=tap.limit(60), check=False)
    if done.returncode != 0:
        tap.diag(" ".join(argv))
        tap.diag(done.stdout)
        tap.fail("it does not compile")


def header_alone(compiler, suffix, flags, header):
    if shutil.which(compiler[0]) is None:
        raise tap.Skip("no %s" % compiler[0])
    source = os.path.join(folder, "alone" + suffix)
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <ethrpc-gw/%s>\nint one(void);\nint one(void) { return 1; }\n"
                   % header)
    compile_with(compiler + flags + ["-I" + i for i in INCLUDE] +
                 ["-c", source, "-o", os.path.join(folder, "alone.o")])


def out_of_tree(example):
    compile_with(CC + ["-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"] +
                 ["-I" + i for i in INCLUDE] +
                 [os.path.join(SOURCE, "plugins", "example", example),
                  "-o", os.path.join(folder, example[:-2] + ".so")])


def dumped(example):
    status, output = run_program("--dump-plugin", os.path.join(folder, example[:-2] + ".so"))[:2]
    eq(status, 0, "exit status")
    tap.contains(output, "name=" + example[:-2], "what is shown")


def plugin(name):
    return os.path.join(folder, name + ".so")


def start(node, middleware, **options):
    node.clear()
    return Gateway([{"name": "n", "url": node.url()}], middleware=middleware, **options)


def passes(node):
    with start(node, [{"use": plugin("example1-pass")}]) as gw:
        with gw.http() as client:
            eq(client.call("eth_chainId").ok(), node.chain.answer("eth_chainId", b"[]"))


def refuses(node):
    stage = {"use": plugin("example2-option"), "refuse": ("eth_getB", "net_")}
    with start(node, [stage]) as gw:
        for kind in ("http", "ws", "ipc"):
            with gw.client(kind) as client:
                client.call("net_version").refused(-32601)
                client.call("eth_getBlockByNumber", ["latest", False]).refused(-32601)
                client.call("eth_chainId").ok()
        eq(node.count("net_version"), 0, "calls that reached the node")
    status = run_program("--check-config", "--config", bad_config(node))[0]
    check(status != 0, "a missing required option is an error")


def bad_config(node):
    gw = Gateway([{"name": "n", "url": node.url()}], start=False,
                 middleware=[{"use": plugin("example2-option")}])
    return gw.config


def delays(node):
    stage = {"use": plugin("example3-async"), "delay": "300ms"}
    with start(node, [stage]) as gw:
        with gw.http() as client:
            began = time.monotonic()
            client.call("eth_chainId").ok()
            check(time.monotonic() - began >= 0.29, "the call was held")
        clients = [gw.http() for _ in range(8)]
        began = time.monotonic()
        threads = [threading.Thread(target=lambda c=c: c.call("eth_chainId").ok())
                   for c in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(time.monotonic() - began < tap.limit(1.5), "held calls do not hold each other")
        before = node.count("eth_gasPrice")
        gone = gw.ws()
        gone.send(request("eth_gasPrice"))
        gone.close()
        tap.eventually(lambda: gw.metric("ethrpcgw_example3_async_cancelled_total") == 1, 4,
                       "a call whose client has left is taken away")
        eq(node.count("eth_gasPrice"), before, "calls that reached the node")
        eq(gw.metric("ethrpcgw_example3_async_delayed_total"), 9, "calls counted")
        for client in clients:
            client.close()


def joins(node):
    middleware = [{"use": "methods", "allow": ("example_*",)},
                  {"use": plugin("example4-subcall")}]
    with start(node, middleware) as gw:
        with gw.ws() as client:
            got = dict(rawjson.members(client.call("example_blockWithReceipts", ["latest"]).ok()))
            eq(got["block"], node.chain.answer("eth_getBlockByNumber", b'["latest",true]'))
            eq(got["receipts"], node.chain.answer("eth_getBlockReceipts", b'["latest"]'))
            eq((node.count("eth_getBlockByNumber"), node.count("eth_getBlockReceipts")), (1, 1))
            client.call("example_blockWithReceipts", [1]).refused(-32602)
            client.call("example_blockWithReceipts").refused(-32602)
            node.script = lambda req: (req.error(-32000, "no such block")
                                       if req.method == "eth_getBlockReceipts" else None)
            reply = client.call("example_blockWithReceipts", ["0x5"])
            reply.refused(-32000)
            node.script = lambda req: (req.later(30) if req.method == "eth_getBlockByNumber"
                                       else None)
            client.send(request("example_blockWithReceipts", ["latest"], 7))
            tap.eventually(lambda: node.count("eth_getBlockByNumber") == 3, 4, "it is under way")
        with gw.ipc() as client:
            client.call("eth_chainId").ok()
        eq(gw.alive(), True, "the program lives")


def toy():
    gw = Gateway([{"name": "toy", "url": "example5-transport:toy", "chain_id": 31337}],
                 top={"plugin_path": folder + ":" + os.path.join(BUILD, "plugins")})
    with gw:
        for kind in ("http", "ws", "ipc"):
            with gw.client(kind) as client:
                eq(client.call("eth_chainId").ok(), b'"0x7a69"')
                client.call("eth_blockNumber").refused(-32601)
                replies = client.batch([request("eth_chainId", [], i) for i in range(50)])
                eq(len(replies), 50, "members of a batch")


def mutes():
    """Events of two contracts, one of them muted, on their way to subscribers."""
    node = Node("ws", Chain(live=True), folder, "mutes")
    chain, quiet = node.chain, "0x" + "ab" * 20
    plain = chain.do_eth_getLogs

    def both(params):
        return [log for one in plain(params)
                for log in (one, dict(one, address=quiet, logIndex="0x1"))]
    chain.do_eth_getLogs = both
    stage = {"use": plugin("example6-notice"), "mute": (quiet,), "without": "data"}
    with start(node, [stage]) as gw:
        with gw.ws() as client, gw.ipc() as other:
            subs = [one.subscribe("logs", {}) for one in (client, other)]
            head = chain.mine()
            for one, sub in zip((client, other), subs):
                name, log = event_parts(one.event())
                eq(name, sub, "whose event")
                log = rawjson.parse(log)
                eq((log["blockHash"], log["logIndex"]), (head["hash"], "0x0"), "the log")
                check("data" not in log, "a member is left out")
                one.quiet(0.1)
            logs = rawjson.parse(client.call("eth_getLogs", [{}]).ok())
            eq(len(logs), 2, "calls pass untouched")
        eq(gw.metric("ethrpcgw_example6_notice_muted_total"), 2, "events dropped")
        eq(gw.metric("ethrpcgw_example6_notice_shortened_total"), 2, "events changed")
    node.close()


def built_in_tree(example):
    path = os.path.join(BUILD, "plugins", "example", example[:-2] + ".so")
    check(os.path.exists(path), "%s was built" % path)
    eq(run_program("--dump-plugin", example[:-2])[0], 0, "found by its name")


def main():
    if shutil.which(CC[0]) is None:
        tap.skip_all("no %s" % CC[0])
    tap.watchdog(170)
    for header in HEADERS:
        tap.run("%s alone in C99" % header, header_alone, CC, ".c",
                ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"], header)
        tap.run("%s alone in C++11" % header, header_alone, CXX, ".cc",
                ["-std=c++11", "-pedantic", "-Wall", "-Wextra", "-Werror"], header)
    for example in EXAMPLES:
        tap.run("%s compiles out of tree" % example, out_of_tree, example)
    if not os.access(PROGRAM, os.X_OK):
        tap.diag("the program is not built: nothing was run")
        tap.done()
    if sanitized():
        tap.slow_build(4)
    for example in EXAMPLES:
        tap.run("%s is a plugin" % example, dumped, example)
        tap.run("%s in the build tree" % example, built_in_tree, example)
    node = Node("http" if has_transport("http") else "ws", None, folder, "example")
    tap.run("example1 passes calls", passes, node)
    tap.run("example2 refuses by prefix", refuses, node)
    tap.run("example3 holds calls", delays, node)
    tap.run("example4 joins two calls", joins, node)
    tap.run("example5 is a node", toy)
    tap.run("example6 keeps events from subscribers", mutes)
    node.close()
    shutil.rmtree(folder, ignore_errors=True)
    tap.done()


main()
