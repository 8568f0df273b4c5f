# SPDX-License-Identifier: MIT
"""For bench/memory.py: a node whose one long result is never in memory as a whole, and clients that
read it at their own pace and know by its checksum whether it came whole."""
import json
import os
import socket
import struct
import threading
import time
import zlib

METHOD = "eth_getBlockReceipts"
PIECE = b",".join(b'"0x%064x"' % n for n in range(15000)) + b","      # about 1 MB
LAST = b'"0x0"]'
CALL = {"jsonrpc": "2.0", "id": 1, "method": METHOD, "params": ["0x1"]}
SMALL = {"eth_syncing": False, "web3_clientVersion": "big/1", "net_version": "1"}


class Big:
    """The result's bytes, in pieces."""

    def __init__(self, size):
        self.count = max(1, size // len(PIECE))
        self.length = 1 + self.count * len(PIECE) + len(LAST)

    def pieces(self):
        yield b"["
        for _ in range(self.count):
            yield PIECE
        yield LAST


def expected(big):
    """(bytes, checksum) of the whole answer to CALL."""
    head, length, total = b'{"jsonrpc":"2.0","id":1,"result":', 0, 0
    for piece in (head, *big.pieces(), b"}"):
        total = zlib.crc32(piece, total)
        length += len(piece)
    return length, total


# --- the node ------------------------------------------------------------------------------------

class Node:
    """Over HTTP (port) and IPC (path); a thread for each connection."""

    def __init__(self, folder, big):
        self.big, self.path = big, os.path.join(folder, "big.ipc")
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(self.path)
        self.unix.listen(16)
        for listener, serve in ((self.tcp, self.http), (self.unix, self.ipc)):
            threading.Thread(target=self.accept, args=(listener, serve), daemon=True).start()

    def urls(self):
        return {"IPC": "ipc://" + self.path, "HTTP": "http://127.0.0.1:%d" % self.port}

    def close(self):
        for listener in (self.tcp, self.unix):
            try:
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            listener.close()

    def accept(self, listener, serve):
        while True:
            try:
                sock = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.connection, args=(sock, serve), daemon=True).start()

    @staticmethod
    def connection(sock, serve):
        with sock, sock.makefile("rb") as file:
            try:
                while serve(sock, file):
                    pass
            except OSError:
                pass

    def http(self, sock, file):
        length = 0
        for line in iter(file.readline, b""):
            if line == b"\r\n":
                break
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = file.read(length) if length else b""
        if not body:
            return False
        size, pieces = self.answer(json.loads(body))
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                     b"\r\n" % size)
        for piece in pieces:
            sock.sendall(piece)
        return True

    def ipc(self, sock, file):
        line = file.readline()
        if not line:
            return False
        for piece in self.answer(json.loads(line))[1]:
            sock.sendall(piece)
        sock.sendall(b"\n")
        return True

    def answer(self, message):
        """(bytes, pieces of them)"""
        if isinstance(message, list):
            texts = [b"".join(self.answer(one)[1]) for one in message]
            text = b"[" + b",".join(texts) + b"]"
            return len(text), [text]
        head = b'{"jsonrpc":"2.0","id":%s,"result":' % json.dumps(message.get("id")).encode()
        if message.get("method") != METHOD:
            text = head + json.dumps(SMALL.get(message.get("method"), "0x1")).encode() + b"}"
            return len(text), [text]
        return len(head) + self.big.length + 1, self.whole(head)

    def whole(self, head):
        yield head
        yield from self.big.pieces()
        yield b"}"


# --- clients -------------------------------------------------------------------------------------

class Reader:
    """Reads so many bytes a second, and nothing at all for a while in the middle."""

    def __init__(self, sock, pace, stall):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
        self.sock, self.file = sock, sock.makefile("rb", 1 << 16)
        self.pace, self.stall = pace, stall
        self.length = self.checksum = 0

    def begin(self, half):
        self.half, self.began, self.paused = half, time.monotonic(), 0.0
        self.length = self.checksum = 0

    def take(self, size):
        """So many bytes of the answer."""
        while size > 0:
            data = self.file.read1(min(size, 1 << 16))
            if not data:
                raise SystemExit("the connection ended after %d bytes" % self.length)
            size -= len(data)
            self.checksum = zlib.crc32(data, self.checksum)
            self.length += len(data)
            ahead = self.length / self.pace - (time.monotonic() - self.began - self.paused)
            if self.length >= self.half and not self.paused and self.stall:
                time.sleep(self.stall)
                self.paused = self.stall
            elif ahead > 0.002:
                time.sleep(ahead)


def read_http(reader):
    chunked, length = False, 0
    if b" 200 " not in reader.file.readline():
        raise SystemExit("the answer is not 200")
    for line in iter(reader.file.readline, b"\r\n"):
        name, _, value = line.lower().partition(b":")
        chunked |= name == b"transfer-encoding" and b"chunked" in value
        length = int(value) if name == b"content-length" else length
    if not chunked:
        reader.take(length)
    while chunked:
        size = int(reader.file.readline().partition(b";")[0], 16)
        reader.take(size)
        reader.file.readline()
        chunked = size > 0


def read_ws(reader):
    last = False
    while not last:
        first, second = reader.file.read(2)
        size = second & 0x7f
        if size >= 126:
            size = int.from_bytes(reader.file.read(2 if size == 126 else 8), "big")
        if first & 0x0f > 2:                        # a ping or the like: not of the answer
            reader.file.read(size)
            continue
        reader.take(size)
        last = bool(first & 0x80)


class Client:
    """Over http, ws or ipc; `where`: port or path."""

    def __init__(self, kind, where, pace, stall):
        self.kind = kind
        if kind == "ipc":
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(120)
            sock.connect(where)
        else:
            sock = socket.create_connection(("127.0.0.1", where), timeout=120)
        self.sock, self.reader = sock, Reader(sock, pace, stall)
        if kind == "ws":
            sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: "
                         b"Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                         b"MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n")
            for _ in iter(self.reader.file.readline, b"\r\n"):
                pass

    def ask(self, call, want):
        """(bytes, checksum) of the answer; `want` bytes are waited for where nothing else tells."""
        body = json.dumps(call, separators=(",", ":")).encode()
        self.reader.begin(want / 2)
        if self.kind == "http":
            self.sock.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n"
                              b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            read_http(self.reader)
        elif self.kind == "ws":
            self.sock.sendall(struct.pack(">BBH", 0x81, 0xfe, len(body)) + b"\0\0\0\0" + body)
            read_ws(self.reader)
        else:
            self.sock.sendall(body + b"\n")
            self.reader.take(want)
            if self.reader.file.read(1) != b"\n":
                raise SystemExit("the answer is longer than it should be")
        return self.reader.length, self.reader.checksum

    def close(self):
        self.reader.file.close()
        self.sock.close()
