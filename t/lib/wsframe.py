# SPDX-License-Identifier: MIT
"""WebSocket framing (RFC 6455 section 5) for both ends, and the handshake's arithmetic."""
import base64
import hashlib
import os
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Protocol(Exception):
    """The peer broke RFC 6455."""


class Frame:
    __slots__ = ("fin", "opcode", "payload", "masked", "rsv")

    def __init__(self, fin, opcode, payload, masked, rsv):
        self.fin, self.opcode, self.payload = fin, opcode, payload
        self.masked, self.rsv = masked, rsv

    def close_code(self):
        return struct.unpack(">H", self.payload[:2])[0] if len(self.payload) >= 2 else 1005

    def __repr__(self):
        return "Frame(fin=%d, opcode=%d, %d bytes)" % (self.fin, self.opcode, len(
            self.payload))


def new_key():
    return base64.b64encode(os.urandom(16))


def accept_for(key):
    return base64.b64encode(hashlib.sha1(key + _GUID).digest())


def apply_mask(payload, key):
    n = len(payload)
    if n == 0:
        return b""
    pad = (key * (n // 4 + 1))[:n]
    return (int.from_bytes(payload, "little") ^ int.from_bytes(pad, "little")).to_bytes(
        n, "little")


def encode(opcode, payload, fin=True, mask=False, rsv=0, announce=None):
    """A frame's bytes. `announce`: the length to claim instead of the true one."""
    n = len(payload) if announce is None else announce
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    bit = 0x80 if mask else 0
    if n < 126:
        head += bytes([bit | n])
    elif n < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", n)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", n)
    if mask:
        key = os.urandom(4)
        return head + key + apply_mask(payload, key)
    return head + payload


def read(stream):
    """Reads a frame from an object with read_exactly(n); EOFError at the end."""
    first, second = stream.read_exactly(2)
    n = second & 0x7f
    if n == 126:
        n = struct.unpack(">H", stream.read_exactly(2))[0]
        if n < 126:
            raise Protocol("length not in its shortest form")
    elif n == 127:
        n = struct.unpack(">Q", stream.read_exactly(8))[0]
        if n < 65536:
            raise Protocol("length not in its shortest form")
    masked = bool(second & 0x80)
    key = stream.read_exactly(4) if masked else b""
    payload = stream.read_exactly(n)
    if masked:
        payload = apply_mask(payload, key)
    frame = Frame(bool(first & 0x80), first & 0x0f, payload, masked, first >> 4 & 7)
    if frame.opcode >= 8 and (not frame.fin or n > 125):
        raise Protocol("control frame in pieces or too long")
    if frame.opcode not in (0, TEXT, BINARY, CLOSE, PING, PONG):
        raise Protocol("opcode %d" % frame.opcode)
    return frame


def close_payload(code, reason=b""):
    return struct.pack(">H", code) + reason
