# SPDX-License-Identifier: MIT
"""JSON as bytes: takes values apart without changing a byte, so that ids and results can be
compared byte for byte. Strict: no NaN, no duplicate keys, nothing behind the value."""
import json

_SPACE = b" \t\r\n"


class Bad(ValueError):
    """Not the JSON that was expected."""


def _refuse(word):
    raise Bad("not JSON: %s" % word)


# Latin-1 makes one character of each byte, so offsets stay those of the bytes.
_decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse)


def _skip(text, at):
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _value(text, at):
    try:
        return _decoder.raw_decode(text, at)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Bad("not JSON: %s" % error) from None


def _end(text, at):
    return _value(text, at)[1]


def parse(raw):
    """The value as Python objects; raises Bad."""
    def pairs(items):
        keys = [k for k, _ in items]
        if len(set(keys)) != len(keys):
            raise Bad("duplicate key in %r" % (keys,))
        return dict(items)

    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=pairs, parse_constant=_refuse)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise Bad("not JSON: %s: %r" % (error, raw[:200])) from None


def split_value(raw, at=0):
    """(bytes of the value that begins at `at` or behind white space, where it ends)."""
    text = raw.decode("latin-1")
    at = _skip(text, at)
    end = _end(text, at)
    return raw[at:end], end


def members(raw):
    """[(key, raw value)] of an object, in order."""
    text = raw.decode("latin-1")
    at = _skip(text, 0)
    if text[at:at + 1] != "{":
        raise Bad("not an object: %r" % raw[:200])
    out = []
    at = _skip(text, at + 1)
    if text[at:at + 1] == "}":
        at += 1
    else:
        while True:
            if text[at:at + 1] != '"':
                raise Bad("key is no string")
            key, at = _value(text, at)
            at = _skip(text, at)
            if text[at:at + 1] != ":":
                raise Bad("no colon")
            at = _skip(text, at + 1)
            end = _end(text, at)
            out.append((key, raw[at:end]))
            at = _skip(text, end)
            if text[at:at + 1] == "}":
                at += 1
                break
            if text[at:at + 1] != ",":
                raise Bad("no comma")
            at = _skip(text, at + 1)
    if _skip(text, at) != len(text):
        raise Bad("bytes behind the object: %r" % raw[at:at + 100])
    if len(set(k for k, _ in out)) != len(out):
        raise Bad("duplicate key")
    return out


def member(raw, key):
    """Raw value of a member, or None."""
    for name, value in members(raw):
        if name == key:
            return value
    return None


def elements(raw):
    """Raw values of an array."""
    text = raw.decode("latin-1")
    at = _skip(text, 0)
    if text[at:at + 1] != "[":
        raise Bad("not an array: %r" % raw[:200])
    out = []
    at = _skip(text, at + 1)
    if text[at:at + 1] == "]":
        at += 1
    else:
        while True:
            end = _end(text, at)
            out.append(raw[at:end])
            at = _skip(text, end)
            if text[at:at + 1] == "]":
                at += 1
                break
            if text[at:at + 1] != ",":
                raise Bad("no comma")
            at = _skip(text, at + 1)
    if _skip(text, at) != len(text):
        raise Bad("bytes behind the array: %r" % raw[at:at + 100])
    return out


def is_array(raw):
    return raw.lstrip(_SPACE)[:1] == b"["


def compact(value):
    """Python objects as JSON bytes without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
