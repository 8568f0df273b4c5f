# SPDX-License-Identifier: MIT
"""A node of a Model in a process of its own, quick enough for a million calls: HTTP, WebSocket
or IPC, one thread. Which state it is at it is told by shared memory."""
import json
import multiprocessing
import os
import selectors
import signal
import socket
import time

import wsframe
from chain import tx_hash
from model import Model, Refused, header, serve

STATES = 400000     # at most
TICK = 0.002        # seconds between looks at the state

_fork = multiprocessing.get_context("fork")


class Clock:
    """Memory of all processes: which state is the truth, and since when; where each node
    is."""

    def __init__(self, nodes):
        self.now = _fork.Value("i", 0, lock=False)
        self.since = _fork.Array("d", STATES, lock=False)
        self.at = _fork.Array("i", nodes, lock=False)
        self.since[0] = time.monotonic()

    def advance(self):
        k = self.now.value + 1
        self.since[k] = time.monotonic()
        self.now.value = k

    def state_at(self, moment):
        """The state that was the truth at a moment."""
        low, high = 0, self.now.value
        while low < high:
            middle = (low + high + 1) // 2
            if self.since[middle] <= moment:
                low = middle
            else:
                high = middle - 1
        return low


class Ledger:
    """Raw transactions as nodes got them, in files that outlive a node: one of all that node
    `index` received, one of those it took. Nodes tell each other of what they took."""

    def __init__(self, folder, index=0):
        self.folder, self.index = folder, index

    def _path(self, what, index):
        return os.path.join(self.folder, "%s.%d" % (what, index))

    def _add(self, what, name):
        with open(self._path(what, self.index), "a", encoding="ascii") as file:
            file.write(name + "\n")

    def read(self, what, index):
        try:
            with open(self._path(what, index), encoding="ascii") as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def known(self, name):
        return any(name in self.read("taken", i) for i in range(8))

    def send(self, raw):
        name = tx_hash(raw)
        self._add("received", name)
        if self.known(name):
            raise Refused("already known")
        self._add("taken", name)
        return b'"%s"' % name.encode()


class _Conn:
    def __init__(self, sock, kind):
        self.sock, self.kind, self.buffer, self.opened = sock, kind, bytearray(), kind != "ws"
        self.topics = []


class _Server:
    def __init__(self, kind, listener, model, clock, index, ledger):
        self.ledger = ledger
        self.kind, self.model, self.clock, self.index = kind, model, clock, index
        self.k = clock.at[index]
        self.wait = selectors.DefaultSelector()
        self.listener = listener
        self.wait.register(listener, selectors.EVENT_READ)
        self.named = 0

    def run(self):
        self.model.grow(self.k)
        while True:
            for key, _ in self.wait.select(TICK):
                if key.fileobj is self.listener:
                    sock, _ = self.listener.accept()
                    if self.kind != "ipc":
                        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.wait.register(sock, selectors.EVENT_READ, _Conn(sock, self.kind))
                else:
                    self.follow()
                    self.read(key.data)
            self.follow()

    def follow(self):
        """Goes on to the state it is told, and announces the new blocks."""
        k = self.clock.at[self.index]
        if k == self.k:
            return
        self.model.grow(k)
        new = [block for i in range(self.k + 1, k + 1) for block in self.model.new[i]]
        self.k = k
        for key in list(self.wait.get_map().values()):
            for topic in key.data.topics if key.data else ():
                for block in new:
                    self.write(key.data, b'{"jsonrpc":"2.0","method":"eth_subscription",'
                               b'"params":{"subscription":"%s","result":%s}}'
                               % (topic, json.dumps(header(block)).encode()))

    def read(self, conn):
        try:
            piece = conn.sock.recv(1 << 18)
        except OSError:
            piece = b""
        if not piece:
            self.drop(conn)
            return
        conn.buffer += piece
        while True:
            text = self.message(conn)
            if text is None:
                return
            if text:
                self.write(conn, self.answer(conn, text))

    def drop(self, conn):
        if conn.sock.fileno() >= 0:
            self.wait.unregister(conn.sock)
            conn.sock.close()

    def message(self, conn):
        """The next message that is complete; b"": something that is none; None: no more."""
        buffer = conn.buffer
        if conn.kind == "ipc":
            end = buffer.find(b"\n")
            return None if end < 0 else self.take(buffer, 0, end, end + 1)
        if conn.kind == "ws" and conn.opened:
            return self.frame(conn)
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(buffer[:end]).lower().split(b"\r\n")
        fields = dict(line.split(b": ", 1) for line in head[1:])
        if conn.kind == "ws":
            key = [line for line in bytes(buffer[:end]).split(b"\r\n")
                   if line.lower().startswith(b"sec-websocket-key")][0].split(b": ", 1)[1]
            conn.opened = True
            conn.sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                              b"Connection: Upgrade\r\nSec-WebSocket-Accept: "
                              + wsframe.accept_for(key) + b"\r\n\r\n")
            return self.take(buffer, 0, 0, end + 4)
        length = int(fields[b"content-length"])
        if len(buffer) < end + 4 + length:
            return None
        return self.take(buffer, end + 4, end + 4 + length, end + 4 + length)

    @staticmethod
    def take(buffer, begin, end, behind):
        text = bytes(buffer[begin:end])
        del buffer[:behind]
        return text

    def frame(self, conn):
        buffer = conn.buffer
        if len(buffer) < 6:
            return None
        n, at = buffer[1] & 0x7f, 2
        if n >= 126:
            size = 2 if n == 126 else 8
            if len(buffer) < 2 + size:
                return None
            n, at = int.from_bytes(buffer[2:2 + size], "big"), 2 + size
        if len(buffer) < at + 4 + n:
            return None
        opcode = buffer[0] & 0xf
        mask, body = bytes(buffer[at:at + 4]), bytes(buffer[at + 4:at + 4 + n])
        payload = wsframe.apply_mask(body, mask)
        del buffer[:at + 4 + n]
        if opcode == wsframe.PING:
            conn.sock.sendall(wsframe.encode(wsframe.PONG, payload))
        return payload if opcode in (wsframe.TEXT, wsframe.BINARY) else b""

    def write(self, conn, text):
        if conn.kind == "ipc":
            text += b"\n"
        elif conn.kind == "ws":
            text = wsframe.encode(wsframe.TEXT, text)
        else:
            text = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" \
                   b"Content-Length: %d\r\n\r\n%s" % (len(text), text)
        try:
            conn.sock.sendall(text)
        except OSError:
            self.drop(conn)

    def answer(self, conn, text):
        asked = json.loads(text)
        if isinstance(asked, list):
            return b"[" + b",".join(self.one(conn, a) for a in asked) + b"]"
        return self.one(conn, asked)

    def one(self, conn, asked):
        name = json.dumps(asked["id"]).encode()
        method, params = asked["method"], asked.get("params", [])
        try:
            if method == "eth_subscribe" and conn.kind != "http" and params[0] == "newHeads":
                self.named += 1
                conn.topics.append(b"0x%032x" % self.named)
                result = b'"%s"' % conn.topics[-1]
            elif method == "eth_sendRawTransaction" and self.ledger:
                result = self.ledger.send(params[0])
            elif method == "eth_getTransactionByHash" and self.ledger and \
                    self.ledger.known(params[0]):
                result = b'{"hash":"%s","blockHash":null,"blockNumber":null}' \
                    % params[0].encode()
            else:
                result = serve(self.model, self.k, method, params)
        except Refused as why:
            return b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"%s"}}' \
                % (name, str(why).encode())
        return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (name, result)


class FastNode:
    """The process: url, process. It may be killed, come back at the same place, and be paused.
    folder: of its socket; ledger: whether it takes transactions, into files there."""

    def __init__(self, kind, seed, clock, index, folder, ledger=False):
        self.kind, self.port = kind, 0
        self.path = os.path.join(folder, "n%d.ipc" % index)
        self.given = (seed, clock, index, Ledger(folder, index) if ledger else None)
        self.process = None
        self.start()
        self.url = "ipc://" + self.path if kind == "ipc" else \
            "%s://127.0.0.1:%d" % (kind, self.port)

    def start(self):
        if self.kind == "ipc":
            if os.path.exists(self.path):
                os.unlink(self.path)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(self.path)
        else:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self.port))
            self.port = listener.getsockname()[1]
        listener.listen(128)
        self.process = _fork.Process(target=self._main, daemon=True,
                                     args=(self.kind, listener) + self.given)
        self.process.start()
        listener.close()

    @staticmethod
    def _main(kind, listener, seed, clock, index, ledger):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _Server(kind, listener, Model(seed), clock, index, ledger).run()

    def stop(self):
        """By SIGKILL: connections break, nobody listens."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)
