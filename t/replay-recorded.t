#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recorded exchanges of real nodes through a replay upstream: the bytes of results and errors
are untouched, alone and in batches, whatever the id, on every client transport."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import rawjson
import tap
from clients import request
from gateway import Gateway, has_transport, need_program, test_data

FILES = ["execution-apis.io", "erigon-mainnet-le64k.io", "mainnet-blocks-and-misc.io"]
ODD_IDS = [
    b'"a string"', b"123456789012345678901234567890", b"null", b"1.50", b'"\\u00e9\\n"', b"-0"
]
BATCH = 20


def exchanges(path):
    """[(method, raw params or None, "result" or "error", raw value)] of a recording."""
    out, asked = [], None
    with open(path, "rb") as file:
        for line in file:
            line = line.rstrip(b"\r\n")
            if line.startswith(b">> "):
                asked = dict(rawjson.members(line[3:]))
            elif line.startswith(b"<< ") and asked is not None:
                answer = dict(rawjson.members(line[3:]))
                which = "error" if "error" in answer else "result"
                # One node answered "error":null and no result: no reply for a client.
                if answer[which] != b"null" or which == "result":
                    out.append((rawjson.parse(asked["method"]), asked.get("params"), which,
                                answer[which]))
                asked = None
    return out


def compare(raw, number, exchange):
    method, params, which, value = exchange
    fields = dict(rawjson.members(raw))
    tap.eq(set(fields), {"jsonrpc", "id", which}, "members of the answer to %s %r: %r"
           % (method, (params or b"")[:200], raw[:300]))
    tap.eq(fields["id"], number, "id")
    if which == "error" and rawjson.member(value, "message")[:1] != b'"':
        # One node's error has the message null, which clients refuse: it is repaired.
        tap.eq(rawjson.member(fields[which], "code"), rawjson.member(value, "code"), "code")
        return
    if fields[which] != value:
        tap.eq(fields[which], value, "%s of %s %r" % (which, method, (params or b"")[:200]))


def singles(gateway, kind, recorded, ids):
    with gateway.client(kind, timeout=20) as client:
        for i, exchange in enumerate(recorded):
            number = ids[i % len(ids)] if ids else b"%d" % i
            raw = client.raw(request(exchange[0], exchange[1], number))
            compare(raw, number, exchange)


def pipelined(gateway, kind, recorded):
    """Many in flight at once, matched by their ids."""
    with gateway.client(kind, timeout=20) as client:
        for at in range(0, len(recorded), 50):
            part = recorded[at:at + 50]
            for i, exchange in enumerate(part):
                client.send(request(exchange[0], exchange[1], i))
            waiting = dict(enumerate(part))
            while waiting:
                raw = client.recv()
                number = rawjson.member(raw, "id")
                compare(raw, number, waiting.pop(int(number)))


def batches(gateway, kind, recorded, ids):
    with gateway.client(kind, timeout=20) as client:
        for at in range(0, len(recorded), BATCH):
            part = recorded[at:at + BATCH]
            numbers = [ids[i % len(ids)] if ids else b"%d" % i for i in range(len(part))]
            texts = [request(e[0], e[1], n) for e, n in zip(part, numbers)]
            answers = rawjson.elements(client.raw(b"[" + b",".join(texts) + b"]"))
            tap.eq(len(answers), len(part), "answers")
            for raw, number, exchange in zip(answers, numbers, part):
                compare(raw, number, exchange)


def main():
    need_program()
    if not has_transport("replay"):
        tap.skip_all("this build has no transport replay")
    if not any(test_data("replay", name) for name in FILES):
        tap.skip_all("no recordings: set EGW_TEST_DATA")
    tap.watchdog(170)
    for name in FILES:
        path = test_data("replay", name)
        if path is None:
            continue
        recorded = exchanges(path)
        gateway = Gateway([{"name": "recorded", "url": "replay:" + os.path.abspath(path)}],
                          middleware=[{"use": "methods", "others": "allow"}], level="info")
        for kind in ("http", "ws", "ipc"):
            title = "%s: %d exchanges over %s, " % (name, len(recorded), kind)
            tap.run(title + "one by one", singles, gateway, kind, recorded, None)
            tap.run(title + "odd ids", singles, gateway, kind, recorded, ODD_IDS)
            tap.run(title + "in batches", batches, gateway, kind, recorded, None)
            tap.run(title + "in batches, odd ids", batches, gateway, kind, recorded, ODD_IDS)
            if kind != "http":
                tap.run(title + "50 at once", pipelined, gateway, kind, recorded)
        tap.run("%s: the gateway ends properly" % name, gateway.stop)
    tap.done()


main()
