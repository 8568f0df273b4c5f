#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A client that walks through full blocks one by one, near to the node and far from it.

    make bench-walk [BENCH_FLAGS="--rounds 5 --blocks 1000 --delays 0,20"]

The node is ethrpc-gw itself with a recording of generated blocks of 200 to 490 kB, which takes
so many milliseconds for each answer (calls take their time side by side, as over a long way).
A raw client, which decodes nothing while the clock runs, asks for each block when it has the
one before: the node directly; through the gateway without and with the middleware `prefetch`,
each with a cache that is empty; and once more when it is full. The ways take turns in each
round; medians of the rounds with their lowest and highest values, and ratios to asking the
node directly. The servers share one processor, the client has another one. Needs taskset.
"""
import argparse
import hashlib
import json
import os
import random
import re
import socket
import statistics
import struct
import sys
import time

from peers import BUILD, SERVER_CPU, LOAD_CPU, Servers, free_port, listening
from proxy import thousands
from report import Report, need, options_of

TAIL = 64                        # blocks above those that are walked
FINAL = 20                       # of them above the finalized one

NODE = """workers = 1;
log = { level = "warn"; };
limits = { max_in_flight = 10000; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = %(port)d; }, { path = "%(path)s"; } );
networks = ( { name = "main"; middleware = ( );
               upstreams = ( { name = "recording"; url = "replay:%(recording)s";
                               service_time = "%(delay)dms"; missing = "notfound"; } ); } );
"""

GATEWAY = """workers = 1;
log = { level = "warn"; };
listen = ( { name = "tcp"; address = "127.0.0.1"; port = %(port)d; }, { path = "%(path)s"; } );
admin = { address = "127.0.0.1"; port = %(admin)d; };
networks = ( { name = "main"; middleware = ( { use = "methods"; }%(prefetch)s,
                 { use = "cache"; memory = "2GiB"; }, { use = "coalesce"; } );
               upstreams = ( { name = "node"; url = "%(url)s"; } ); } );
"""


# --- the recording -------------------------------------------------------------------------


def word(*parts):
    return "0x" + hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()


def header(n):
    return {"number": hex(n), "hash": word("block", n), "parentHash": word("block", n - 1),
            "timestamp": hex(1700000000 + 12 * n), "stateRoot": word("state", n),
            "transactionsRoot": word("transactions", n), "receiptsRoot": word("receipts", n),
            "sha3Uncles": word("uncles"), "mixHash": word("mix", n), "nonce": "0x" + "00" * 8,
            "miner": "0x" + "00" * 20, "gasLimit": "0x1c9c380", "gasUsed": "0x0",
            "difficulty": "0x0", "size": "0x220", "extraData": "0x",
            "logsBloom": "0x" + "00" * 256, "baseFeePerGas": "0x7"}


def transactions(n):
    """About 150, so that the block is 200 to 490 kB."""
    rnd = random.Random(n)
    size = rnd.randint(200000, 490000) // 150 - 900
    for i in range(150):
        yield {"type": "0x2", "chainId": "0x1", "nonce": hex(i), "hash": word("tx", n, i),
               "from": "0x" + word("from", i)[26:], "to": "0x" + word("to", i)[26:],
               "blockHash": word("block", n), "blockNumber": hex(n), "transactionIndex": hex(i),
               "value": "0x1", "gas": "0x5208", "gasPrice": "0x7", "maxFeePerGas": "0x7",
               "maxPriorityFeePerGas": "0x1", "accessList": [], "v": "0x1", "r": word("r", n, i),
               "s": word("s", n, i), "yParity": "0x1",
               "input": "0x" + rnd.randbytes(size // 2).hex()}


def renumbered(block, n):
    """A block that was recorded somewhere as the n-th one of the generated headers."""
    mine = {key: header(n)[key] for key in ("number", "hash", "parentHash", "timestamp")}
    return dict(block, **mine, transactions=[
        dict(tx, blockHash=mine["hash"], blockNumber=mine["number"])
        for tx in block["transactions"]])


def write_recording(path, blocks, contents=()):
    """The blocks, and what a gateway asks by itself. contents: full blocks to serve over and over
    in place of generated ones."""
    tip = blocks + TAIL

    def full(n):
        if contents:
            return renumbered(contents[(n - 1) % len(contents)], n)
        return dict(header(n), transactions=list(transactions(n)), uncles=[])

    def line(mark, value):
        return "%s %s\n" % (mark, json.dumps(value, separators=(",", ":")))

    with open(path, "w", encoding="utf-8") as file:
        def record(method, params, result):
            file.write(line(">>", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            file.write(line("<<", {"jsonrpc": "2.0", "id": 1, "result": result}))

        record("eth_chainId", [], "0x1")
        record("net_version", [], "1")
        record("eth_syncing", [], False)
        record("web3_clientVersion", [], "recording/1")
        record("eth_blockNumber", [], hex(tip))
        for n in range(tip + 1):
            small = dict(header(n), transactions=[], uncles=[])
            record("eth_getBlockByNumber", [hex(n), False], small)
            record("eth_getBlockByHash", [small["hash"], False], small)
            if 1 <= n <= blocks:
                record("eth_getBlockByNumber", [hex(n), True], full(n))
        for tag, n in (("latest", tip), ("safe", tip - FINAL // 2), ("finalized", tip - FINAL),
                       ("earliest", 0)):
            record("eth_getBlockByNumber", [tag, False], dict(header(n), transactions=[], uncles=[]))


# --- raw clients ---------------------------------------------------------------------------


class Http:
    def __init__(self, port, _):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.room = bytearray(1 << 22)

    def ask(self, body):
        self.sock.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n" % len(body) + body)
        view, n, want = memoryview(self.room), 0, None
        while want is None or n < want:
            got = self.sock.recv_into(view[n:])
            if got == 0:
                raise SystemExit("the connection ended")
            n += got
            if want is None:
                end = self.room.find(b"\r\n\r\n", 0, n)
                if end >= 0:
                    head = bytes(self.room[:end])
                    start = end + 4
                    want = start + int(re.search(rb"(?i)content-length: *(\d+)", head).group(1))
        return self.room[start:n]


class Ws:
    def __init__(self, port, _):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: "
                          b"Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                          b"MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n")
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.sock.recv(1)
        self.room = bytearray(1 << 22)

    def exactly(self, view):
        n = 0
        while n < len(view):
            got = self.sock.recv_into(view[n:])
            if got == 0:
                raise SystemExit("the connection ended")
            n += got

    def ask(self, body):
        self.sock.sendall(struct.pack(">BBH", 0x81, 0xfe, len(body)) + b"\0\0\0\0" + body)
        view, n, last = memoryview(self.room), 0, False
        head = memoryview(bytearray(8))
        while not last:
            self.exactly(head[:2])
            last, size = head[0] & 0x80, head[1] & 0x7f
            if size >= 126:
                wide = 2 if size == 126 else 8
                self.exactly(head[:wide])
                size = int.from_bytes(head[:wide], "big")
            self.exactly(view[n:n + size])
            n += size
        return self.room[:n]


class Ipc:
    def __init__(self, _, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.room = bytearray(1 << 22)

    def ask(self, body):
        self.sock.sendall(body + b"\n")
        view, n = memoryview(self.room), 0
        while n == 0 or self.room[n - 1] != 10:
            got = self.sock.recv_into(view[n:])
            if got == 0:
                raise SystemExit("the connection ended")
            n += got
        return self.room[:n]


CLIENTS = {"http": Http, "ws": Ws, "ipc": Ipc}


def walk(kind, server, blocks):
    """Seconds for all blocks; each reply is looked at afterwards."""
    client = CLIENTS[kind](*server)
    bodies = [b'{"jsonrpc":"2.0","id":%d,"method":"eth_getBlockByNumber","params":["%s",true]}'
              % (n, hex(n).encode()) for n in range(1, blocks + 1)]
    client.ask(b'{"jsonrpc":"2.0","id":0,"method":"eth_chainId","params":[]}')
    marks = []
    began = time.perf_counter()
    for body in bodies:
        reply = client.ask(body)
        marks.append((len(reply), bytes(reply[:400])))
    took = time.perf_counter() - began
    client.sock.close()
    for n, (size, mark) in enumerate(marks, 1):
        if size < 150000 or ('"number":"%s"' % hex(n)).encode() not in mark.replace(b" ", b""):
            raise SystemExit("block %d is not right: %r" % (n, mark))
    return took


# --- servers -------------------------------------------------------------------------------


def start(servers, name, text, **values):
    values.update(port=free_port(), admin=free_port(),
                  path=os.path.join(servers.dir, "%s-%d.ipc" % (name, len(servers.processes))))
    conf = servers.config("%s.conf" % name, text % values)
    env = dict(os.environ, EGW_PLUGIN_PATH=os.path.join(BUILD, "plugins"))
    process = servers.start([os.path.join(BUILD, "ethrpc-gw"), "--config", conf], env=env)
    listening(values["port"], process, 120)
    return (values["port"], values["path"]), values["admin"], process


def head_known(admin, tip):
    """Until the gateway knows the finalized block: what is walked can be kept for ever."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with socket.create_connection(("127.0.0.1", admin)) as sock:
            sock.sendall(b"GET /status HTTP/1.0\r\nHost: localhost\r\n\r\n")
            text = b"".join(iter(lambda: sock.recv(65536), b""))
        head = json.loads(text.partition(b"\r\n\r\n")[2])["networks"][0]["head"] or {}
        if head.get("finalized", {}).get("number") == tip - FINAL:
            return
        time.sleep(0.05)
    raise SystemExit("the gateway does not get to know the head")


def counters(admin):
    with socket.create_connection(("127.0.0.1", admin)) as sock:
        sock.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        text = b"".join(iter(lambda: sock.recv(65536), b""))
    return {k.decode(): int(v) for k, v in
            re.findall(rb"^ethrpcgw_prefetch_(\w+?)(?:_total)?\{[^}]*\} (\d+)", text, re.M)}


def through(servers, options, node, kind, prefetch):
    """(cold, warm) seconds, and the counters."""
    url = {"http": "http://127.0.0.1:%d" % node[0], "ws": "ws://127.0.0.1:%d" % node[0],
           "ipc": "ipc://" + node[1]}[options.upstream]
    stage = ", { use = \"prefetch\"; %s }" % options.stage if prefetch else ""
    server, admin, process = start(servers, "gateway", GATEWAY, url=url, prefetch=stage)
    listening(admin, process)
    head_known(admin, options.blocks + TAIL)
    cold = walk(kind, server, options.blocks)
    counted = counters(admin)
    warm = walk(kind, server, options.blocks) if prefetch else None
    servers.stop(process)
    return cold, warm, counted


def measure(servers, options, recording, kind, delay):
    """{way: [seconds]} over the rounds."""
    node, _, process = start(servers, "node", NODE, recording=recording, delay=delay)
    out = {"node, directly": [], "ethrpc-gw, cold": [], "ethrpc-gw with prefetch, cold": [],
           "ethrpc-gw, warm": []}
    counted = {}
    walk(kind, node, min(50, options.blocks))
    for number in range(options.rounds):
        jobs = ["direct", "plain", "prefetch"]
        for job in jobs[number % 3:] + jobs[:number % 3]:
            if job == "direct":
                out["node, directly"].append(walk(kind, node, options.blocks))
            elif job == "plain":
                out["ethrpc-gw, cold"].append(through(servers, options, node, kind, False)[0])
            else:
                cold, warm, counted = through(servers, options, node, kind, True)
                out["ethrpc-gw with prefetch, cold"].append(cold)
                out["ethrpc-gw, warm"].append(warm)
        print("  round %d of %d" % (number + 1, options.rounds), file=sys.stderr)
    servers.stop(process)
    return out, counted


def table(options, kind, delay, out, counted):
    direct = statistics.median(out["node, directly"])
    lines = ["### %s full blocks one by one over %s, %d ms from the node"
             % (thousands(options.blocks), kind.upper(), delay), "",
             "| way | seconds (lowest-highest) | of direct | times as fast |", "|---|---:|---:|---:|"]
    for way, values in out.items():
        middle = statistics.median(values)
        lines.append("| %s | %.2f (%.2f-%.2f) | %.3f | %.2f |" % (
            way, middle, min(values), max(values), middle / direct, direct / middle))
    lines.append("")
    lines.append("Of the last walk with prefetch: " + ", ".join(
        "%s %d" % (k, counted[k]) for k in ("fetched", "used", "late", "wasted", "held")) + ".")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=1000)
    parser.add_argument("--delays", default="0,20", help="milliseconds, joined by commas")
    parser.add_argument("--clients", default="http", help="http, ws, ipc, joined by commas")
    parser.add_argument("--upstream", default="http", choices=("http", "ws", "ipc"))
    parser.add_argument("--stage", default="", help="options of prefetch")
    options = options_of(parser, {"rounds": 1, "blocks": 20, "delays": "1",
                                  "clients": "http,ws,ipc"})
    need("taskset")
    report = Report("walk", "A walk through full blocks", __doc__, options.write,
                    quick=options.quick)
    servers = Servers()
    os.sched_setaffinity(0, {int(LOAD_CPU)} if os.cpu_count() > 1 else {int(SERVER_CPU)})
    try:
        recording = os.path.join(servers.dir, "blocks.io")
        print("making %d blocks" % options.blocks, file=sys.stderr)
        write_recording(recording, options.blocks)
        for delay in map(int, options.delays.split(",")):
            for kind in options.clients.split(","):
                print("%s, %d ms" % (kind, delay), file=sys.stderr)
                out, counted = measure(servers, options, recording, kind, delay)
                report.add(table(options, kind, delay, out, counted))
                title = "%s blocks over %s, %d ms from the node" % (
                    thousands(options.blocks), kind.upper(), delay)
                report.raw(title, out, "seconds")
                report.bars("walk-%s-%dms" % (kind, delay), "A walk: " + title, "seconds", out)
        report.close()
    finally:
        servers.close()


if __name__ == "__main__":
    main()
