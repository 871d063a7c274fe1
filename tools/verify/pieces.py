"""Blobs in pieces: docs/bundle-format.md, *Pieces*."""

import tempfile

from limits import BYTES_OF_WORK, WORK_OF_ITEM
from records import is_uint

MAX_PIECES, MAX_PIECE_BYTES, MAX_BLOB_BYTES = 8388608, 65536, 128 << 20
_MAX_LEVEL, _LEAST_BYTES = 4, 64
_PIECE_BYTES = 120  # of memory, for what is kept of each


class Error(ValueError):
    """A list makes no sense."""


class Pieces:
    """The pieces of a bundle, in a temporary file, numbered from 1. fault is told what is wrong, and of which item."""

    def __init__(self, fault, limits):
        self._fault, self._limits = fault, limits
        self._where = []
        self._fresh = {}  # pieces since the last blob, and the item that each is
        self._file = tempfile.SpooledTemporaryFile(max_size=4 << 20)

    def put(self, content, item):
        """Take a piece. The next blob has to need it."""
        if len(content) > MAX_PIECE_BYTES:
            self._fault(item, "the piece is longer than is allowed")
        if len(self._where) >= MAX_PIECES:
            self._fault(item, "there are more pieces than are allowed")
            return
        self._limits.hold(_PIECE_BYTES)
        self._where.append((self._file.seek(0, 2), len(content)))
        self._file.write(content)
        self._fresh[len(self._where)] = item

    def blob(self, size, encoded):
        """The bytes of a blob, by its length and list; an Error says what is wrong with it."""
        fresh, self._fresh = self._fresh, {}
        if size > MAX_BLOB_BYTES:
            raise Error("the blob is longer than is allowed")
        self._limits.check_item(size)
        out, ended = bytearray(), False
        for number, count, is_list in self._walk(encoded, size, None):
            fresh.pop(number, None)
            if is_list:
                continue
            piece = self._get(number)
            if len(piece) != count or ended:
                raise Error("its list does not fit its pieces")
            ended = count < _LEAST_BYTES
            out += piece
        for item in fresh.values():
            self._fault(item, "the next blob does not need this piece")
        return bytes(out)

    def settle(self):
        """Name the pieces that no blob needed."""
        for item in self._fresh.values():
            self._fault(item, "no blob before the next record needs this piece")
        self._fresh = {}

    def _walk(self, encoded, size, want):
        """Number and length of all that a list names, and whether that is a list: in order, each list before what it names."""
        self._limits.spend(len(encoded))
        level, entries = _parse(encoded)
        if level > _MAX_LEVEL or want not in (None, level) or sum(n for _, n in entries) != size:
            raise Error("a list has another level or length than it should have")
        for number, count in entries:
            self._limits.spend(WORK_OF_ITEM)
            yield number, count, level > 0
            if level:
                yield from self._walk(self._get(number), count, level - 1)

    def _get(self, number):
        if not 1 <= number <= len(self._where):
            raise Error("its list names a piece that is not there before it")
        at, size = self._where[number - 1]
        self._limits.spend(size // BYTES_OF_WORK)
        self._file.seek(at)
        return self._file.read(size)

    def close(self):
        """Let go of the temporary file."""
        self._file.close()


def _parse(data):
    """Level and entries of a list, each a number and a length."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        if byte & 128 and shift < 63:
            shift += 7
            continue
        if byte & 128 or value >= 1 << 64 or byte == 0 and shift:
            raise Error("a number in a list has another form")
        numbers.append(value)
        value = shift = 0
    if shift or len(numbers) % 2 == 0:
        raise Error("a list is cut off")
    entries = list(zip(numbers[1::2], numbers[2::2]))
    if any(not count for _, count in entries):
        raise Error("a list has an empty piece")
    return numbers[0], entries


def kind_of(value):
    """What an array is that is no record: "piece", "blob" or None."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], bytes):
        return "piece"
    if isinstance(value, list) and len(value) == 2 and is_uint(value[0]) and isinstance(value[1], bytes):
        return "blob"
    return None
