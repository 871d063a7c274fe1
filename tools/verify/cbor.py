"""Deterministic CBOR: the one form of a value that docs/journal-format.md, *Bytes*, allows.

Whatever has another form is refused, so equal values have equal bytes, and a value that was decoded can be
hashed again by encoding it. A value is nested MAX_DEPTH deep at the most, and what recurses here is bounded by that.
"""

import struct

from limits import Budget, Limits

MAX_DEPTH = 64


class Error(ValueError):
    """Bytes are not the deterministic CBOR of a value."""


class Truncated(Error):
    """Bytes end within an item."""


def decode(data, limits=None):
    """The value of data, which is one item and nothing after it. limits.Beyond says that it has too many values."""
    value, end = item(data, 0, 0, Budget(limits or Limits()))
    if end != len(data):
        raise Error("bytes follow the value")
    return value


def item(data, at, depth, budget):
    """The value that begins at an offset, and the offset behind it. The budget is charged for values in others."""
    major, n, at = head(data, at)
    if major == 0:
        return n, at
    if major == 1:
        return -1 - n, at
    if major == 2:
        return _bytes(data, at, n)
    if major == 3:
        return _text(data, at, n)
    if major == 4:
        return _array(data, at, n, depth + 1, budget)
    if major == 5:
        return _map(data, at, n, depth + 1, budget)
    if major == 6:
        return _bignum(data, at, n)
    return _simple(data, at, n)


def head(data, at):
    """Major type and argument of the head at an offset, and the offset behind it.

    Of a float the argument is the number of its bytes, as a negative number: they follow.
    """
    try:
        first = data[at]
    except IndexError:
        raise Truncated("the item is cut off") from None
    major, n = first >> 5, first & 31
    if n < 24:
        return major, n, at + 1
    if n > 27:
        raise Error("a length is indefinite or reserved")
    size = 1 << (n - 24)
    if major == 7:
        return major, -size, at + 1
    end = at + 1 + size
    if end > len(data):
        raise Truncated("the item is cut off")
    n = int.from_bytes(data[at + 1:end], "big")
    if n < 24 or size > 1 and n < 1 << (4 * size):
        raise Error("a number is longer than it has to be")
    return major, n, end


def _bytes(data, at, n):
    end = at + n
    if end > len(data):
        raise Truncated("the item is cut off")
    return bytes(data[at:end]), end


def _text(data, at, n):
    raw, end = _bytes(data, at, n)
    try:
        return raw.decode("utf-8"), end
    except UnicodeDecodeError:
        raise Error("a text is not UTF-8") from None


def _array(data, at, n, depth, budget):
    _check_depth(depth)
    _check_room(data, at, n)
    budget.spend(n)
    out = []
    for _ in range(n):
        value, at = item(data, at, depth, budget)
        out.append(value)
    return out, at


def _map(data, at, n, depth, budget):
    _check_depth(depth)
    _check_room(data, at, 2 * n)
    budget.spend(2 * n)
    out, before = {}, b""
    for _ in range(n):
        begin = at
        key, at = item(data, at, depth, budget)
        if not isinstance(key, str):
            raise Error("a key of a map is not text")
        raw = data[begin:at]
        if raw <= before:
            raise Error("keys of a map are not in order, or repeat")
        before = raw
        out[key], at = item(data, at, depth, budget)
    return out, at


def _check_depth(depth):
    if depth > MAX_DEPTH:
        raise Error("nested deeper than %d" % MAX_DEPTH)


def _check_room(data, at, n):
    """A length is believed only where as many bytes are there, at least."""
    if n > len(data) - at:
        raise Truncated("the item is cut off")


def _bignum(data, at, tag):
    if tag not in (2, 3):
        raise Error("tag %d is not allowed" % tag)
    major, n, at = head(data, at)
    if major != 2:
        raise Error("a bignum is not made of bytes")
    raw, at = _bytes(data, at, n)
    if n < 9 or raw[0] == 0:
        raise Error("a bignum is longer than it has to be, or needs none")
    value = int.from_bytes(raw, "big")
    return (value if tag == 2 else -1 - value), at


_SIMPLE = {20: False, 21: True, 22: None}
_FLOATS = {2: ">e", 4: ">f", 8: ">d"}


def _simple(data, at, n):
    if n >= 0:
        if n not in _SIMPLE:
            raise Error("simple value %d is not allowed" % n)
        return _SIMPLE[n], at
    size, end = -n, at - n
    if size == 1:
        raise Error("simple values of two bytes are not allowed")
    if end > len(data):
        raise Truncated("the item is cut off")
    value = struct.unpack(_FLOATS[size], data[at:end])[0]
    if value != value or value in (float("inf"), float("-inf")):
        raise Error("a float is not finite")
    if _float(value) != data[at - 1:end]:
        raise Error("a float is negative zero, or not in its shortest form")
    return value, end


def encode(value):
    """The bytes of a value: what decode takes."""
    out = []
    _encode(value, out)
    return b"".join(out)


def _encode(value, out):
    if value is None or isinstance(value, bool):
        out.append({None: b"\xf6", False: b"\xf4", True: b"\xf5"}[value])
    elif isinstance(value, int):
        _encode_int(value, out)
    elif isinstance(value, float):
        out.append(_float(value))
    elif isinstance(value, bytes):
        out += (_head(2, len(value)), value)
    elif isinstance(value, str):
        raw = value.encode()
        out += (_head(3, len(raw)), raw)
    elif isinstance(value, list):
        out.append(_head(4, len(value)))
        for x in value:
            _encode(x, out)
    else:
        out.append(_head(5, len(value)))
        for key, x in sorted((encode(k), v) for k, v in value.items()):
            out.append(key)
            _encode(x, out)


def _encode_int(value, out):
    major, n = (0, value) if value >= 0 else (1, -1 - value)
    if n < 1 << 64:
        out.append(_head(major, n))
        return
    raw = n.to_bytes((n.bit_length() + 7) // 8, "big")
    out += (_head(6, 2 + major), _head(2, len(raw)), raw)


def _head(major, n):
    if n < 24:
        return bytes((major << 5 | n,))
    for bits, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if n < 1 << (8 * size):
            return bytes((major << 5 | bits,)) + n.to_bytes(size, "big")
    raise Error("a length is beyond 64 bits")


def _float(value):
    """The shortest form that gives the same float again. Zero has one sign only."""
    if value == 0:
        return b"\xf9\0\0"
    for lead, form in ((b"\xf9", ">e"), (b"\xfa", ">f")):
        try:
            raw = struct.pack(form, value)
        except OverflowError:
            continue
        if struct.unpack(form, raw)[0] == value:
            return lead + raw
    return b"\xfb" + struct.pack(">d", value)
