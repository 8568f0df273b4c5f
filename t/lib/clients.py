# SPDX-License-Identifier: MIT
"""Clients with control over every byte: HTTP, WebSocket, IPC. All three have

    raw(bytes) -> bytes of the answer         send(bytes), recv() -> bytes
    call(method, params, id) -> Reply         batch([request, ...]) -> [Reply, ...]

so that a test can be written once and run over each of them."""
import os
import re
import select
import socket
import struct
import time

import rawjson
import wsframe
from tap import Failed, check, eq, limit

DEFAULT_TIMEOUT = 8.0
_TOKEN = re.compile(rb"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")


class Closed(Exception):
    """The peer ended the connection (reset: by RST)."""

    def __init__(self, reset=False, partial=b""):
        Exception.__init__(self, "connection reset" if reset else "connection closed")
        self.reset, self.partial = reset, partial


class NoAnswer(Failed):
    """Nothing came in time."""


class Stream:
    """A connected socket with a read buffer and a time limit on each read."""

    def __init__(self, sock, timeout=DEFAULT_TIMEOUT):
        self.sock, self.timeout, self.buffer = sock, timeout, bytearray()

    def fill(self, timeout=None):
        """Reads something more; Closed at the end."""
        wait = limit(self.timeout if timeout is None else timeout)
        self.sock.settimeout(wait)
        try:
            piece = self.sock.recv(262144)
        except socket.timeout:
            raise NoAnswer("nothing came within %.1f s (so far: %r)"
                           % (wait, bytes(self.buffer[:200]))) from None
        except (ConnectionResetError, BrokenPipeError):
            raise Closed(True, bytes(self.buffer)) from None
        if not piece:
            raise Closed(False, bytes(self.buffer))
        self.buffer += piece

    def read_exactly(self, n):
        while len(self.buffer) < n:
            self.fill()
        out = bytes(self.buffer[:n])
        del self.buffer[:n]
        return out

    def read_until(self, mark, cap=1 << 30, timeout=None):
        at = 0
        while True:
            found = self.buffer.find(mark, at)
            if found >= 0:
                out = bytes(self.buffer[:found + len(mark)])
                del self.buffer[:found + len(mark)]
                return out
            if len(self.buffer) > cap:
                raise Failed("no %r in %d bytes" % (mark, cap))
            at = max(0, len(self.buffer) - len(mark) + 1)
            self.fill(timeout)

    def read_to_end(self):
        """All bytes up to the peer's FIN."""
        while True:
            try:
                self.fill()
            except Closed as end:
                if end.reset:
                    raise
                out = bytes(self.buffer)
                self.buffer.clear()
                return out

    def send(self, data):
        self.sock.settimeout(limit(self.timeout))
        self.sock.sendall(data)

    def send_slowly(self, data, step):
        """In pieces of `step` bytes, each with a system call of its own."""
        for i in range(0, len(data), step):
            self.send(data[i:i + step])

    def readable(self, timeout=0.0):
        return bool(self.buffer) or bool(select.select([self.sock], [], [], timeout)[0])

    def at_end(self, timeout=None):
        """Whether the peer ends the connection within the time; stray bytes are a failure."""
        try:
            self.fill(timeout)
        except Closed:
            return True
        except NoAnswer:
            return False
        raise Failed("stray bytes: %r" % bytes(self.buffer[:200]))

    def shutdown_write(self):
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        """Closes with RST."""
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        self.sock.close()

    def close(self):
        self.sock.close()


def dial_tcp(port, host="127.0.0.1", rcvbuf=None):
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if rcvbuf is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    sock.settimeout(limit(DEFAULT_TIMEOUT))
    sock.connect((host, port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def dial_unix(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(limit(DEFAULT_TIMEOUT))
    sock.connect(path)
    return sock


# --- JSON-RPC ---------------------------------------------------------------------------

def raw_of(value):
    """bytes stay, other objects become JSON."""
    return value if isinstance(value, bytes) else rawjson.compact(value)


def request(method, params=None, id=1):  # pylint: disable=redefined-builtin
    """A request's bytes. params, id: bytes are put in as they are; id None: a notification,
    params None: no params member."""
    out = b'{"jsonrpc":"2.0"'
    if id is not None:
        out += b',"id":' + raw_of(id)
    out += b',"method":' + rawjson.compact(method)
    if params is not None:
        out += b',"params":' + raw_of(params)
    return out + b"}"


class Reply:
    """One response object; refuses what a strict client would refuse."""

    def __init__(self, raw):
        self.raw = raw
        fields = dict(rawjson.members(raw))
        rawjson.parse(raw) if len(raw) < 200000 else None
        check(set(fields) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}),
              "members of a response: %r in %r" % (sorted(fields), raw[:300]))
        eq(fields["jsonrpc"], b'"2.0"', "jsonrpc")
        self.id = fields["id"]
        self.result = fields.get("result")
        self.error = fields.get("error")
        self.code = self.message = self.data = None
        if self.error is not None:
            inner = dict(rawjson.members(self.error))
            check(re.match(rb"^-?[0-9]+$", inner.get("code", b"")), "code: %r" % raw[:300])
            check(inner.get("message", b"")[:1] == b'"', "message: %r" % raw[:300])
            self.code = int(inner["code"])
            self.message = rawjson.parse(inner["message"])
            self.data = inner.get("data")

    def ok(self):
        """The raw result; fails when it is an error."""
        if self.result is None:
            raise Failed("an error instead of a result: %r" % self.raw[:500])
        return self.result

    def refused(self, *codes):
        """The error's code; fails when it is a result, or another code."""
        if self.error is None:
            raise Failed("a result instead of an error: %r" % self.raw[:500])
        if codes and self.code not in codes:
            raise Failed("code %d, want one of %r: %r" % (self.code, codes, self.raw[:500]))
        return self.code

    def __repr__(self):
        return "Reply(%r)" % self.raw[:300]


def replies(raw):
    """The responses in an array."""
    return [Reply(r) for r in rawjson.elements(raw)]


class Client:
    """What all clients share."""
    kind = ""
    stream = None
    timeout = DEFAULT_TIMEOUT

    def send(self, text):
        raise NotImplementedError

    def recv(self, timeout=None):
        raise NotImplementedError

    def raw(self, text, timeout=None):
        self.send(text)
        return self.recv(timeout)

    def call(self, method, params=None, id=1, timeout=None):
        reply = Reply(self.raw(request(method, params, id), timeout))
        eq(reply.id, raw_of(id), "id of the reply")
        return reply

    def batch(self, requests, timeout=None):
        return replies(self.raw(b"[" + b",".join(requests) + b"]", timeout))

    def silent(self, text, during=0.25):
        """Sends something that must not be answered."""
        raise NotImplementedError

    def close(self):
        if self.stream is not None:
            self.stream.close()

    def reset(self):
        if self.stream is not None:
            self.stream.reset()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# --- HTTP -------------------------------------------------------------------------------

class Response:
    def __init__(self, status, version, headers, body, head_only=False):
        self.status, self.version, self.headers, self.body = status, version, headers, body
        self.head_only = head_only

    def header(self, name):
        """Value of a header (bytes), None when it is missing, a failure when it is doubled."""
        values = self.all(name)
        check(len(values) <= 1, "%s twice" % name)
        return values[0] if values else None

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower().encode()]

    def closes(self):
        tokens = b",".join(self.all("Connection")).lower()
        return b"close" in tokens or (self.version == b"1.0" and b"keep-alive" not in tokens)

    def is_json(self):
        return re.match(rb"^application/json *(;.*)?$",
                        self.header("Content-Type") or b"") is not None

    def __repr__(self):
        return "Response(%d, %r, %r)" % (self.status, self.headers, self.body[:200])


class HttpClient(Client):
    kind = "http"

    def __init__(self, port, host="127.0.0.1", path="/", headers=None, timeout=DEFAULT_TIMEOUT,
                 rcvbuf=None):
        self.port, self.host, self.path, self.timeout = port, host, path, timeout
        self.headers = headers or []
        self.rcvbuf = rcvbuf
        self.last = None
        self.stream = None

    def open(self):
        if self.stream is None:
            self.stream = Stream(dial_tcp(self.port, self.host, self.rcvbuf), self.timeout)
        return self.stream

    def head(self, length, method="POST", path=None, headers=None, version="1.1", host=True,
             content_type="application/json"):
        """Bytes of a request head. `headers`: further (name, value) pairs, str or bytes."""
        def text(x):
            return x if isinstance(x, bytes) else x.encode("latin-1")

        lines = [b"%s %s HTTP/%s" % (text(method), text(path or self.path), text(version))]
        if host:
            lines.append(b"Host: 127.0.0.1:%d" % self.port)
        if content_type is not None:
            lines.append(b"Content-Type: " + text(content_type))
        for name, value in list(self.headers) + list(headers or []):
            lines.append(text(name) + b": " + text(value))
        if length is not None:
            lines.append(b"Content-Length: %d" % length)
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def request(self, body=b"", **options):
        """One request and its response, on the connection there is or a new one."""
        self.open()
        method = options.get("method", "POST")
        with_length = method not in ("GET", "HEAD", "OPTIONS") or body
        if not with_length:
            options.setdefault("content_type", None)
        self.stream.send(self.head(len(body) if with_length else None, **options) + body)
        return self.response(method)

    def response(self, method="POST", timeout=None):
        """Reads a response, strictly."""
        old, self.stream.timeout = self.stream.timeout, timeout or self.stream.timeout
        try:
            while True:
                response = self._response(method)
                if response.status != 100:
                    break
        finally:
            self.stream.timeout = old
        self.last = response
        if response.closes():
            check(self.stream.at_end(3.0), "Connection: close was said, but it stays open")
            self.stream.close()
            self.stream = None
        return response

    def read_head(self):
        """(status, version, headers) of what comes next."""
        head = self.stream.read_until(b"\r\n\r\n", 65536)
        lines = head[:-4].split(b"\r\n")
        match = re.match(rb"^HTTP/(1\.[01]) ([1-5][0-9][0-9]) [\t -~\x80-\xff]*$", lines[0])
        check(match, "status line: %r" % lines[0])
        headers = []
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            check(colon and _TOKEN.match(name) and b"\n" not in line and b"\r" not in line,
                  "header line: %r" % line)
            headers.append((name, value.strip()))
        return int(match.group(2)), match.group(1), headers

    def _response(self, method):
        status, version, headers = self.read_head()
        response = Response(status, version, headers, b"")
        length = response.header("Content-Length")
        coding = response.header("Transfer-Encoding")
        check(not (length and coding), "both Content-Length and Transfer-Encoding")
        if method == "HEAD" or status in (204, 304) or status < 200:
            return response
        if coding is not None:
            eq(coding.lower(), b"chunked", "Transfer-Encoding")
            response.body = self._chunks()
        elif length is not None:
            check(length.isdigit(), "Content-Length: %r" % length)
            response.body = self.stream.read_exactly(int(length))
        else:
            check(response.closes(), "a response without a length on a lasting connection")
            response.body = self.stream.read_to_end()
        return response

    def _chunks(self):
        body = []
        while True:
            line = self.stream.read_until(b"\r\n", 4096)[:-2]
            size = int(line.partition(b";")[0], 16)
            piece = self.stream.read_exactly(size)
            if size == 0:
                while self.stream.read_until(b"\r\n", 65536) != b"\r\n":
                    pass
                return b"".join(body)
            eq(self.stream.read_exactly(2), b"\r\n", "end of a chunk")
            body.append(piece)

    # The common interface: a request body in, a response body out.
    def send(self, text):
        self.open().send(self.head(len(text)) + text)

    def recv(self, timeout=None):
        response = self.response(timeout=timeout)
        eq(response.status, 200, "HTTP status (%r)" % response.body[:200])
        check(response.is_json(), "Content-Type: %r" % response.headers)
        check(b"Content-Length" in dict(response.headers) or len(response.body) > 65536,
              "a small reply without Content-Length")
        return response.body

    def silent(self, text, during=0.25):
        self.send(text)
        response = self.response()
        check(response.status in (200, 202, 204), "HTTP status %d" % response.status)
        eq(response.body, b"", "body of the answer to notifications")

    def close(self):
        Client.close(self)
        self.stream = None

    def reset(self):
        Client.reset(self)
        self.stream = None


# --- WebSocket and IPC: messages both ways ----------------------------------------------

class MessageClient(Client):
    """Responses and events come in on one connection; events are kept apart."""

    def __init__(self):
        self.events = []        # raw notifications, in order of arrival
        self.order = []         # "reply" and "event" as they came in

    def _message(self, timeout):
        raise NotImplementedError

    def _next(self, timeout):
        """One message: (is_event, raw)."""
        raw = self._message(timeout)
        event = False
        if not rawjson.is_array(raw) and b'"method"' in raw:
            keys = [k for k, _ in rawjson.members(raw)]
            event = "method" in keys and "id" not in keys
        if event:
            self.events.append(raw)
        self.order.append("event" if event else "reply")
        return event, raw

    def recv(self, timeout=None):
        end = time.monotonic() + limit(timeout or self.timeout)
        while True:
            event, raw = self._next(max(0.001, end - time.monotonic()))
            if not event:
                return raw

    def event(self, timeout=None):
        """The next event, in order of arrival; replies that come before it are a failure."""
        if not self.events:
            event, raw = self._next(timeout or self.timeout)
            if not event:
                raise Failed("a reply instead of an event: %r" % raw[:300])
        return self.events.pop(0)

    def quiet(self, during=0.25):
        """Nothing comes in for a while."""
        try:
            _, raw = self._next(during)
        except NoAnswer:
            return
        raise Failed("something came: %r" % raw[:300])

    def silent(self, text, during=0.25):
        self.send(text)
        self.quiet(during)

    def subscribe(self, *params, id=1):  # pylint: disable=redefined-builtin
        """The subscription's id as raw bytes."""
        return self.call("eth_subscribe", list(params), id).ok()


def event_parts(raw):
    """(raw subscription id, raw result) of an eth_subscription message."""
    fields = dict(rawjson.members(raw))
    eq(set(fields), {"jsonrpc", "method", "params"}, "members of an event")
    eq(fields["method"], b'"eth_subscription"', "method of an event")
    inner = dict(rawjson.members(fields["params"]))
    eq(set(inner), {"subscription", "result"}, "params of an event")
    return inner["subscription"], inner["result"]


class WsClient(MessageClient):
    kind = "ws"

    def __init__(self, port, host="127.0.0.1", path="/", headers=None, timeout=DEFAULT_TIMEOUT,
                 rcvbuf=None, connect=True):
        MessageClient.__init__(self)
        self.port, self.timeout = port, timeout
        self.stream = Stream(dial_tcp(port, host, rcvbuf), timeout)
        self.pongs = []
        self.closed = None      # the close frame that came
        self.opcode = wsframe.TEXT
        if connect:
            status, headers = self.handshake(path, headers)
            eq(status, 101, "handshake: %r" % (headers,))

    def handshake(self, path="/", headers=None, version=b"13", key=None, host=None):
        """Sends the upgrade request; returns (status, headers) and checks the accept key."""
        key = key or wsframe.new_key()
        lines = [b"GET %s HTTP/1.1" % path.encode(),
                 b"Host: " + (host or b"127.0.0.1:%d" % self.port),
                 b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Key: " + key,
                 b"Sec-WebSocket-Version: " + version]
        for name, value in headers or []:
            lines.append(b"%s: %s" % (name.encode(), value.encode()))
        self.stream.send(b"\r\n".join(lines) + b"\r\n\r\n")
        head = self.stream.read_until(b"\r\n\r\n", 65536)
        lines = head[:-4].split(b"\r\n")
        status = int(lines[0].split(b" ")[1])
        fields = {
            n.strip().lower(): v.strip()
            for n, _, v in (x.partition(b":") for x in lines[1:])
        }
        if status == 101:
            eq(fields.get(b"sec-websocket-accept"), wsframe.accept_for(key), "accept key")
            check(b"sec-websocket-extensions" not in fields, "an extension nobody asked for")
        return status, fields

    def send_frame(self, opcode, payload, fin=True, **options):
        options.setdefault("mask", True)
        self.stream.send(wsframe.encode(opcode, payload, fin, **options))

    def send(self, text):
        self.send_frame(self.opcode, text)

    def ping(self, payload=b""):
        """Sends a ping and waits for its pong."""
        self.send_frame(wsframe.PING, payload)
        before = len(self.pongs)
        end = time.monotonic() + limit(self.timeout)
        while len(self.pongs) == before:
            self._frame(max(0.001, end - time.monotonic()))
        eq(self.pongs[-1], payload, "payload of the pong")

    def _frame(self, timeout):
        """One frame, after control frames were dealt with; None for a control frame."""
        old, self.stream.timeout = self.stream.timeout, timeout
        try:
            frame = wsframe.read(self.stream)
        finally:
            self.stream.timeout = old
        check(not frame.masked, "a server must not mask")
        eq(frame.rsv, 0, "reserved bits")
        if frame.opcode == wsframe.PING:
            self.send_frame(wsframe.PONG, frame.payload)
            return None
        if frame.opcode == wsframe.PONG:
            self.pongs.append(frame.payload)
            return None
        if frame.opcode == wsframe.CLOSE:
            self.closed = frame
            raise Closed()
        return frame

    def _message(self, timeout):
        end = time.monotonic() + limit(timeout)
        pieces = []
        while True:
            frame = self._frame(max(0.001, end - time.monotonic()))
            if frame is None:
                continue
            check((frame.opcode == 0) == bool(pieces), "continuation out of place")
            if frame.opcode != 0:
                eq(frame.opcode, wsframe.TEXT, "opcode of a reply")
            pieces.append(frame.payload)
            if frame.fin:
                raw = b"".join(pieces)
                raw.decode("utf-8")
                return raw

    def wait_close(self, timeout=5.0):
        """Reads until the connection ends; the code of the close frame, None without one."""
        end = time.monotonic() + limit(timeout)
        try:
            while True:
                self._next(max(0.001, end - time.monotonic()))
        except Closed:
            return self.closed.close_code() if self.closed else None

    def goodbye(self, code=1000):
        """The closing handshake."""
        self.send_frame(wsframe.CLOSE, wsframe.close_payload(code))
        got = self.wait_close()
        self.close()
        return got


class IpcClient(MessageClient):
    kind = "ipc"

    def __init__(self, path, timeout=DEFAULT_TIMEOUT):
        MessageClient.__init__(self)
        self.timeout = timeout
        self.stream = Stream(dial_unix(path), timeout)

    def send(self, text):
        self.stream.send(text)

    def _message(self, timeout):
        line = self.stream.read_until(b"\n", timeout=timeout)[:-1]
        check(line != b"", "an empty line")
        check(b"\r" not in line, "a carriage return in a reply")
        return line


def unused_path(folder, name):
    """A file name in `folder`, short enough for a unix socket."""
    path = os.path.join(folder, name)
    check(len(path) < 100, "path too long for a socket: %s" % path)
    return path
