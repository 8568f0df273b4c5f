# SPDX-License-Identifier: MIT
"""A scripted upstream node that serves the same script over HTTP, WebSocket and a unix socket.

    node = Node("http")                 kinds: http and ws share one TCP port, ipc has a socket
    node.script = function(req)         decides on each request; see Request for what it can do

The script returns raw result bytes, or an Answer (of error(), raw(), http(), ...), or None for
what the chain says, or HANDLED when it has answered, or will, by itself (req.later)."""
import heapq
import itertools
import os
import socket
import struct
import threading
import time

import rawjson
import wsframe
from chain import Chain, NodeError, word
from clients import Closed, NoAnswer, Stream
from tap import Failed

HANDLED = object()
IDLE = 3600.0


class Answer:
    """How to answer. body None: never. The rest is for one transport or the other:

    HTTP   status, headers, mode ("length", "chunked", "close", "http10"), pieces: sizes of the
           chunks or writes, claim: the Content-Length to state
    WS     fragments: sizes of the frames; opcode
    IPC    pieces: sizes of the writes; newline
    all    cut: end the connection after so many bytes of the body; reset: by RST; close: end
           it after the whole answer; pause: seconds between pieces"""

    def __init__(self, body=None, status=200, headers=(), mode="length", pieces=None,
                 claim=None, fragments=None, opcode=wsframe.TEXT, newline=b"\n", cut=None,
                 reset=False, close=False, pause=0.0, whole=False):
        self.body, self.status, self.headers, self.mode = body, status, headers, mode
        self.pieces, self.claim, self.fragments, self.opcode = pieces, claim, fragments, opcode
        self.newline, self.cut, self.reset, self.close = newline, cut, reset, close
        self.pause = pause
        self.whole = whole    # body is a whole message; never joined into an array


def raw(body, **how):
    """The whole message as it is."""
    return Answer(body, whole=True, **how)


def silent():
    return Answer(None)


def reset():
    """No answer but RST."""
    return Answer(b"", cut=0, reset=True, whole=True)


def hangup():
    """No answer but the end of the connection."""
    return Answer(b"", cut=0, whole=True)


class Request:
    """One JSON-RPC request that came in."""

    def __init__(self, node, conn, text, http=None):
        self.node, self.conn, self.text, self.http = node, conn, text, http
        self.fields = dict(rawjson.members(text))
        self.id = self.fields.get("id")
        self.method = rawjson.parse(self.fields["method"])
        self.params = self.fields.get("params")
        self.kind = conn.kind
        self.at = time.monotonic()
        self.batch = None
        self.answered = False
        self.subscribed = None

    def args(self):
        return rawjson.parse(self.params) if self.params else []

    # Answers for a script to return.
    def result(self, value, **how):
        """A response with this raw result."""
        return Answer(b'{"jsonrpc":"2.0","id":' + (self.id or b"null") + b',"result":' + value
                      + b"}", **how)

    def error(self, code, message="error", data=None, **how):
        inner = b'{"code":%d,"message":%s' % (code, rawjson.compact(message))
        if data is not None:
            inner += b',"data":' + (data if isinstance(data, bytes) else rawjson.compact(data))
        return self.error_object(inner + b"}", **how)

    def error_object(self, inner, **how):
        return Answer(b'{"jsonrpc":"2.0","id":' + (self.id or b"null") + b',"error":' + inner
                      + b"}", **how)

    def normal(self, **how):
        """What the node would answer without a script."""
        answer = self.node.usual(self)
        for name, value in how.items():
            setattr(answer, name, value)
        return answer

    def respond(self, answer):
        """Answers now, from any thread; once."""
        if self.answered:
            raise RuntimeError("answered twice")
        self.answered = True
        if isinstance(answer, bytes):
            answer = self.result(answer)
        if self.batch is not None:
            if self.subscribed is not None:
                self.subscribed()
            self.batch.add(self, answer)
        elif self.subscribed is not None:
            # No event of the new subscription may overtake the answer.
            with self.conn.write_lock:
                self.subscribed()
                self.conn.answer(answer)
        else:
            self.conn.answer(answer)

    def later(self, seconds, answer=None):
        """Answers after a while (None: as usual); for a script to return."""
        self.node.at(seconds, lambda: self.respond(answer if answer is not None
                                                   else self.node.usual(self)))
        return HANDLED


class _Batch:
    """Answers to the members of an array, joined when all are there."""

    def __init__(self, conn, requests):
        self.conn, self.requests = conn, requests
        self.answers = {}
        self.lock = threading.Lock()

    def add(self, request, answer):
        with self.lock:
            self.answers[request] = answer
            if len(self.answers) < len(self.requests):
                return
        for request in self.requests:
            if self.answers[request].whole or self.answers[request].body is None:
                self.conn.answer(self.answers[request])
                return
        bodies = [self.answers[r].body for r in self.requests if r.id is not None]
        self.conn.answer(Answer(b"[" + b",".join(bodies) + b"]"))


class _Conn:
    """A connection that came in. Subclasses know the framing."""
    kind = ""

    def __init__(self, node, sock, number):
        self.node, self.sock, self.number = node, sock, number
        self.stream = Stream(sock, IDLE)
        self.write_lock = threading.RLock()
        self.subscriptions = {}
        self.gone = False

    def write(self, data, pieces=None, pause=0.0):
        """Writes, in pieces of the given sizes (the last size repeats)."""
        with self.write_lock:
            try:
                self.sock.settimeout(30)
                if not pieces:
                    self.sock.sendall(data)
                    return
                at, sizes = 0, itertools.chain(pieces, itertools.repeat(pieces[-1]))
                while at < len(data):
                    size = next(sizes)
                    self.sock.sendall(data[at:at + size])
                    at += size
                    if pause:
                        time.sleep(pause)
            except OSError:
                self.gone = True

    def end(self, rst=False):
        self.gone = True
        try:
            if rst:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                     struct.pack("ii", 1, 0))
                # close() alone would wait for the reading thread to leave recv().
                self.sock.shutdown(socket.SHUT_RD)
            else:
                self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        if rst:
            self.sock.close()

    def take(self, text, http=None):
        """A message came in: runs the script on it."""
        self.node.await_thaw()
        array = rawjson.is_array(text)
        try:
            requests = [Request(self.node, self, t, http)
                        for t in (rawjson.elements(text) if array else [text])]
        except (rawjson.Bad, KeyError, UnicodeDecodeError) as error:
            self.node.complaints.append("%s: %r" % (error, text[:300]))
            self.answer(
                raw(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}'))
            return
        if array:
            batch = _Batch(self, requests)
            for request in requests:
                request.batch = batch
        self.node.note(requests, array)
        if array and self.node.batch_script is not None:
            answer = self.node.batch_script(requests)
            if answer is not None:
                self.answer(answer)
                return
        for request in requests:
            answer = self.node.decide(request)
            if answer is not HANDLED:
                request.respond(answer)

    def answer(self, answer):
        raise NotImplementedError

    def push(self, text):
        """A message of the node's own accord."""
        raise NotImplementedError


class _HttpConn(_Conn):
    kind = "http"

    def __init__(self, node, sock, number):
        _Conn.__init__(self, node, sock, number)
        self.free = threading.Event()

    def run(self, head):
        while True:
            lines = head[:-4].split(b"\r\n")
            fields = {}
            for line in lines[1:]:
                name, _, value = line.partition(b":")
                fields[name.strip().lower()] = value.strip()
            if b"expect" in fields:
                self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
                body = self._chunks()
            else:
                body = self.stream.read_exactly(int(fields.get(b"content-length", b"0")))
            self.free.clear()
            self.node.note_http(lines[0], lines[1:], body)
            hook = self.node.http_hook
            answer = hook(lines[0], fields, body) if hook else None
            if answer is not None:
                self.answer(answer)
            else:
                self.take(body, (lines[0], fields, lines[1:]))
            self.free.wait()
            if self.gone:
                return
            head = self.stream.read_until(b"\r\n\r\n")

    def _chunks(self):
        body = []
        while True:
            size = int(self.stream.read_until(b"\r\n")[:-2].partition(b";")[0], 16)
            piece = self.stream.read_exactly(size + 2)[:-2]
            if size == 0:
                return b"".join(body)
            body.append(piece)

    def answer(self, answer):
        if answer.body is None:
            return                     # for ever: the client gives up and closes
        if answer.body == b"" and answer.cut == 0:
            self.end(answer.reset)     # not even a head
            self.free.set()
            return
        body, version = answer.body, b"1.0" if answer.mode == "http10" else b"1.1"
        head = [b"HTTP/%s %d Whatever" % (version, answer.status)]
        headers = [h if isinstance(h, bytes) else h.encode("latin-1") for h in answer.headers]
        if not any(h.lower().startswith(b"content-type:") for h in headers):
            head.append(b"Content-Type: application/json")
        head += headers
        if answer.mode == "length":
            head.append(b"Content-Length: %d" % (len(body) if answer.claim is None
                                                 else answer.claim))
        elif answer.mode == "chunked":
            head.append(b"Transfer-Encoding: chunked")
        else:
            head.append(b"Connection: close")
        head = b"\r\n".join(head) + b"\r\n\r\n"
        if answer.mode == "chunked":
            self.write(head)
            self._write_chunks(body, answer)
        else:
            wire = body if answer.cut is None else body[:answer.cut]
            if answer.pieces:
                self.write(head)
                self.write(wire, answer.pieces, answer.pause)
            else:
                self.write(head + wire)
        if answer.close or answer.reset or answer.cut is not None or \
                answer.mode in ("close", "http10"):
            self.end(answer.reset)
        if self.node.close_after is not None and not self.gone:
            self.node.at(self.node.close_after, self.end_if_idle)
        self.free.set()

    def end_if_idle(self):
        if self.free.is_set():
            self.end()

    def _write_chunks(self, body, answer):
        wire, at = b"", 0
        cut = len(body) if answer.cut is None else answer.cut
        pieces = answer.pieces or [len(body) or 1]
        sizes = itertools.chain(pieces, itertools.repeat(pieces[-1]))
        while at < cut:
            piece = body[at:min(at + next(sizes), cut)]
            at += len(piece)
            wire += b"%x\r\n%s\r\n" % (len(piece), piece)
            if answer.pause:
                self.write(wire)
                wire = b""
                time.sleep(answer.pause)
        if answer.cut is None:
            wire += b"0\r\n\r\n"
        self.write(wire)

    def push(self, text):
        raise RuntimeError("HTTP has no push")


class _WsConn(_Conn):
    kind = "ws"

    def run(self, head):
        lines = head[:-4].split(b"\r\n")
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            fields[name.strip().lower()] = value.strip()
        self.node.note_http(lines[0], lines[1:], b"")
        hook = self.node.handshake_hook
        refusal = hook(lines[0], fields) if hook else None
        if refusal is not None:
            self.write(refusal)
            self.end()
            return
        reply = [b"HTTP/1.1 101 Switching Protocols", b"Upgrade: websocket",
                 b"Connection: Upgrade",
                 b"Sec-WebSocket-Accept: " + wsframe.accept_for(fields[b"sec-websocket-key"])]
        # The first protocol offered, as a server must choose one that was.
        if b"sec-websocket-protocol" in fields:
            reply.append(b"Sec-WebSocket-Protocol: "
                         + fields[b"sec-websocket-protocol"].split(b",")[0].strip())
        self.write(b"\r\n".join(reply) + b"\r\n\r\n")
        pieces = []
        while True:
            frame = wsframe.read(self.stream)
            self.node.await_thaw()
            if not frame.masked:
                self.node.complaints.append("a client frame without mask")
            if frame.opcode == wsframe.PING:
                self.node.pings += 1
                if self.node.answer_pings:
                    self.write(wsframe.encode(wsframe.PONG, frame.payload))
            elif frame.opcode == wsframe.CLOSE:
                self.write(wsframe.encode(wsframe.CLOSE, frame.payload[:2]))
                return
            elif frame.opcode in (0, wsframe.TEXT, wsframe.BINARY):
                if (frame.opcode == 0) != bool(pieces):
                    self.node.complaints.append("continuation out of place")
                pieces.append(frame.payload)
                if frame.fin:
                    text, pieces = b"".join(pieces), []
                    self.take(text)

    def answer(self, answer):
        if answer.body is None:
            return
        body = answer.body if answer.cut is None else answer.body[:answer.cut]
        if answer.fragments:
            wire, at = [], 0
            sizes = itertools.chain(answer.fragments, itertools.repeat(answer.fragments[-1]))
            while at < len(body) or not wire:
                piece = body[at:at + next(sizes)]
                at += len(piece)
                fin = at >= len(body) and answer.cut is None
                wire.append(wsframe.encode(0 if wire else answer.opcode, piece, fin))
            self.write(b"".join(wire), answer.pieces, answer.pause)
        elif answer.cut is not None:
            if answer.body:
                self.write(wsframe.encode(answer.opcode, body, announce=len(answer.body)))
        else:
            self.write(wsframe.encode(answer.opcode, body), answer.pieces, answer.pause)
        if answer.close or answer.reset or answer.cut is not None:
            self.end(answer.reset)

    def push(self, text):
        self.write(wsframe.encode(wsframe.TEXT, text))


class _IpcConn(_Conn):
    kind = "ipc"

    def run(self, _=None):
        while True:
            while True:
                text = bytes(self.stream.buffer)
                try:
                    value, end = rawjson.split_value(text)
                except rawjson.Bad:
                    # Not complete yet, unless it never will be.
                    if len(text) > 1 << 26:
                        raise
                    break
                del self.stream.buffer[:end]
                self.take(value)
            self.stream.fill()

    def answer(self, answer):
        if answer.body is None:
            return
        if answer.cut is not None:
            self.write(answer.body[:answer.cut])
        else:
            self.write(answer.body + answer.newline, answer.pieces, answer.pause)
        if answer.close or answer.reset or answer.cut is not None:
            self.end(answer.reset)

    def push(self, text):
        self.write(text + b"\n")


class _Clock(threading.Thread):
    """Runs functions at their time."""

    def __init__(self):
        threading.Thread.__init__(self, daemon=True)
        self.heap, self.count = [], itertools.count()
        self.change = threading.Condition()
        self.start()

    def at(self, seconds, fn):
        with self.change:
            heapq.heappush(self.heap, (time.monotonic() + seconds, next(self.count), fn))
            self.change.notify()

    def run(self):
        while True:
            with self.change:
                while not self.heap or self.heap[0][0] > time.monotonic():
                    self.change.wait(self.heap[0][0] - time.monotonic() if self.heap else None)
                fn = heapq.heappop(self.heap)[2]
            try:
                fn()
            except OSError:
                pass


_clock = _Clock()


class Node:
    """The node. kind: the transport its url() names; `chain` may be shared between nodes."""
    KINDS = ("newHeads", "logs", "newPendingTransactions", "syncing", "transactionReceipts")

    def __init__(self, kind="http", chain=None, folder=None, name="node"):
        self.kind, self.name = kind, name
        self.chain = chain or Chain()
        self.path = os.path.join(folder, name + ".ipc") if folder else None
        self.port = 0
        self.lock = threading.Lock()
        self.listener = None
        self.conns = []
        self.fresh = set()           # sockets whose first bytes are awaited
        self.thaw = threading.Event()
        self.thaw.set()
        self.clear()
        self.chain.watchers.append(self._new_head)
        self.listen()

    # --- settings that a test changes, and their reset

    def clear(self):
        """Back to ordinary behaviour, and all records forgotten."""
        self.script = None           # see the top
        self.batch_script = None     # function(list of Request) -> Answer or None
        self.http_hook = None        # function(request line, headers, body) -> Answer or None
        self.handshake_hook = None   # function(request line, headers) -> refusal bytes or None
        self.head_hook = None        # function(header) -> headers to push instead
        self.answer_pings = True
        self.push_heads = True
        self.quote_ids = False       # answer eth_subscribe with the id as a string
        self.close_after = None      # seconds: close HTTP connections that idle so long
        self.refuse = None           # "reset": end each new connection at once
        self.requests = []           # every Request, in order
        self.arrays = []             # [Request, ...] of each array
        self.http_requests = []      # (request line, header lines, body)
        self.complaints = []         # what a node would not like
        self.accepted = 0            # connections
        self.accept_times = []
        self.pings = 0
        self.unsubscribed = 0
        self.thaw.set()

    def note(self, requests, array):
        with self.lock:
            self.requests += requests
            if array:
                self.arrays.append(requests)

    def note_http(self, line, headers, body):
        with self.lock:
            self.http_requests.append((line, headers, body))

    def seen(self, method=None):
        """Requests that came in, without the probes of a gateway unless asked for."""
        with self.lock:
            return [r for r in self.requests if method is None or r.method == method]

    def count(self, method):
        return len(self.seen(method))

    def params_seen(self, method):
        return [r.params for r in self.seen(method)]

    def open_conns(self):
        with self.lock:
            return [c for c in self.conns if not c.gone]

    def subscriptions(self):
        """(conn, id, kind) of all that are open."""
        with self.lock:
            return [(c, i, k) for c in self.conns if not c.gone
                    for i, k in c.subscriptions.items()]

    # --- life

    def url(self, kind=None):
        kind = kind or self.kind
        if kind == "ipc":
            return "ipc://" + self.path
        return "%s://127.0.0.1:%d" % (kind, self.port)

    def listen(self):
        if self.kind == "ipc":
            sock = socket.socket(socket.AF_UNIX)
            if os.path.exists(self.path):
                os.unlink(self.path)
            sock.bind(self.path)
        else:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", self.port))
            self.port = sock.getsockname()[1]
        sock.listen(1024)
        with self.lock:
            self.listener = sock
        threading.Thread(target=self._accept, args=(sock,), daemon=True).start()

    def stop(self, rst=False):
        """Nobody listens any more, and all connections end."""
        with self.lock:
            listener, self.listener = self.listener, None
        if listener is not None:
            try:
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            listener.close()
            if self.kind == "ipc" and os.path.exists(self.path):
                os.unlink(self.path)
        self.cut(rst)

    def cut(self, rst=False):
        """Ends all connections."""
        with self.lock:
            fresh = list(self.fresh)
        for sock in fresh:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for conn in self.open_conns():
            conn.end(rst)

    def close(self):
        self.stop()
        if self._new_head in self.chain.watchers:
            self.chain.watchers.remove(self._new_head)

    def freeze(self):
        """Connections stay, but nothing is read or answered any more."""
        self.thaw.clear()

    def await_thaw(self):
        self.thaw.wait()

    @staticmethod
    def at(seconds, fn):
        _clock.at(seconds, fn)

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                if self.listener is not listener:
                    sock.close()
                    return
                self.accepted += 1
                self.accept_times.append(time.monotonic())
                number = self.accepted
                self.fresh.add(sock)
            if self.refuse == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.close()
                self.fresh.discard(sock)
                continue
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        conn, head = None, None
        try:
            if self.kind == "ipc":
                conn = _IpcConn(self, sock, number)
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                stream = Stream(sock, IDLE)
                head = stream.read_until(b"\r\n\r\n")
                upgrade = b"\r\nupgrade:" in head.lower()
                conn = (_WsConn if upgrade else _HttpConn)(self, sock, number)
                conn.stream = stream
            with self.lock:
                self.conns.append(conn)
                self.fresh.discard(sock)
            conn.run(head)
        except (Closed, NoAnswer, OSError):
            pass
        except (wsframe.Protocol, rawjson.Bad, Failed, ValueError) as error:
            self.complaints.append("%s: %s" % (type(error).__name__, error))
        finally:
            with self.lock:
                self.fresh.discard(sock)
                if conn in self.conns:
                    self.conns.remove(conn)
            if conn is not None:
                conn.gone = True
            sock.close()

    # --- answers

    def decide(self, request):
        """What the script says, or the chain."""
        answer = self.script(request) if self.script is not None else None
        return self.usual(request) if answer is None else answer

    def usual(self, request):
        if request.method in ("eth_subscribe", "eth_unsubscribe"):
            return self._subscription(request)
        try:
            result = self.chain.answer(request.method, request.params or b"[]")
        except NodeError as error:
            return request.error(error.code, error.message)
        if result is None:
            return request.error(-32601, "the method %s does not exist" % request.method)
        return request.result(result)

    def _subscription(self, request):
        conn = request.conn
        if conn.kind == "http":
            return request.error(-32601, "notifications not supported")
        if request.method == "eth_unsubscribe":
            with self.lock:
                there = conn.subscriptions.pop(request.args()[0], None) is not None
                self.unsubscribed += there
            return request.result(b"true" if there else b"false")
        args = request.args()
        if not isinstance(args, list) or not args or args[0] not in self.KINDS:
            return request.error(-32602, "no such subscription")
        name = word("subscription", self.name, conn.number, len(self.requests))[:34]
        request.subscribed = lambda: self._open(conn, name, args[0])
        text = request.result(rawjson.compact(name))
        if self.quote_ids:
            text = Answer(b'{"jsonrpc":"2.0","id":"%s","result":"%s"}'
                          % (request.id.strip(b'"'), name.encode()))
        return text

    def _open(self, conn, name, kind):
        with self.lock:
            conn.subscriptions[name] = kind

    def notify(self, conn, name, result):
        """An eth_subscription message."""
        result = result if isinstance(result, bytes) else rawjson.compact(result)
        conn.push(b'{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"'
                  + name.encode() + b'","result":' + result + b"}}")

    def notify_all(self, kind, result):
        """The same to all subscriptions of a kind."""
        for conn, name, what in self.subscriptions():
            if what == kind:
                self.notify(conn, name, result)

    def _new_head(self, head):
        if not self.push_heads or not self.thaw.is_set():
            return
        heads = [head] if self.head_hook is None else self.head_hook(head)
        for one in heads:
            self.notify_all("newHeads", one)
