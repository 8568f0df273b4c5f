# SPDX-License-Identifier: MIT
"""Keccak-256 with the padding of Ethereum (hashlib has only that of SHA-3)."""

_MASK = (1 << 64) - 1
_RATE = 136


def _constants():
    """The round constants, by their shift register."""
    out, state = [], 1
    for _ in range(24):
        word = 0
        for bit in range(7):
            if state & 1:
                word |= 1 << ((1 << bit) - 1)
            state = (state << 1) ^ (0x171 if state & 0x80 else 0)
        out.append(word)
    return out


_ROUNDS = _constants()


def _turn(x, n):
    return (x << n | x >> (64 - n)) & _MASK if n else x


def _permute(a):
    for constant in _ROUNDS:
        c = [a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] for x in range(5)]
        d = [c[(x + 4) % 5] ^ _turn(c[(x + 1) % 5], 1) for x in range(5)]
        a = [a[i] ^ d[i % 5] for i in range(25)]
        x, y, last = 1, 0, a[1]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            at = x + 5 * y
            last, a[at] = a[at], _turn(last, (step + 1) * (step + 2) // 2 % 64)
        for row in range(0, 25, 5):
            r = a[row:row + 5]
            for i in range(5):
                a[row + i] = r[i] ^ (~r[(i + 1) % 5] & _MASK & r[(i + 2) % 5])
        a[0] ^= constant
    return a


def keccak256(data):
    """The hash, 32 bytes."""
    padded = bytearray(data + b"\x01" + bytes(-(len(data) + 1) % _RATE))
    padded[-1] |= 0x80
    state = [0] * 25
    for at in range(0, len(padded), _RATE):
        for i in range(_RATE // 8):
            state[i] ^= int.from_bytes(padded[at + 8 * i:at + 8 * i + 8], "little")
        state = _permute(state)
    return b"".join(w.to_bytes(8, "little") for w in state[:4])
