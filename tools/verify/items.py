"""The items of a bundle: docs/bundle-format.md, *The items* and *The header*."""

import cbor
import packing
from records import is_hash, is_uint

MAGIC, VERSION = "worldkernel/bundle", 1
MAX_ID = 1 << 48
MAX_ITEM = 128 << 20
MAX_BLOBS, MAX_CHECKPOINTS, MAX_WITHHELD, MAX_KEYS = 4194304, 1048576, 1048576, 4096
LINK_BYTES = 8


class NotBundle(ValueError):
    """A file has no header of a bundle."""


class Stream:
    """Items one after the other, cut out of the unpacked pieces. fault says why it ended before its time."""

    def __init__(self, pieces):
        self.fault = None
        self._pieces = iter(pieces)
        self._buffer = bytearray()
        self._at = 0

    def __iter__(self):
        while self._fill(1):
            raw = self._next()
            if raw is None:
                return
            yield raw

    def rest(self):
        """What is left of the pieces, unread."""
        return self._pieces

    def _next(self):
        need = 1
        while True:
            try:
                end = extent(self._buffer, self._at)
            except cbor.Truncated:
                need = max(2 * need, 1 << 12)
                if self._have() <= MAX_ITEM and self._fill(max(need, self._have() + 1)):
                    continue
                self.fault = "an item is cut off, or longer than %d bytes" % MAX_ITEM
                return None
            except cbor.Error as e:
                self.fault = "what follows is no item: %s" % e
                return None
            raw = bytes(self._buffer[self._at:end])
            self._at = end
            return raw

    def _have(self):
        return len(self._buffer) - self._at

    def _fill(self, need):
        """Read until so many bytes are there, or some more at the end. False where nothing came."""
        if self._have() >= need:
            return True
        del self._buffer[:self._at]
        self._at = 0
        before = len(self._buffer)
        while len(self._buffer) < need:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._buffer += piece
        return len(self._buffer) > before


def extent(data, at):
    """The offset behind the item at an offset, whatever form its parts have."""
    open_items = 1
    while open_items:
        if open_items > MAX_ITEM or at >= len(data):
            raise cbor.Truncated("the item is cut off")
        major, n = data[at] >> 5, data[at] & 31
        at += 1
        if n > 27:
            raise cbor.Error("a length is indefinite or reserved")
        if n > 23:
            size = 1 << (n - 24)
            if at + size > len(data):
                raise cbor.Truncated("the item is cut off")
            n, at = int.from_bytes(data[at:at + size], "big"), at + size
        open_items -= 1
        if major in (2, 3):
            if n > MAX_ITEM or at + n > len(data):
                raise cbor.Truncated("the item is cut off")
            at += n
        elif 4 <= major <= 6:
            open_items += (n, 2 * n, 1)[major - 4]
    return at


class Header:
    """The first item. faults are what is wrong with its lists and numbers."""

    def __init__(self, raw):
        try:
            fields = cbor.decode(raw)
        except cbor.Error as e:
            raise NotBundle("no header: %s" % e) from None
        if not isinstance(fields, list) or len(fields) < 2 or fields[0] != MAGIC:
            raise NotBundle("it does not begin with a header")
        if fields[1] != VERSION or len(fields) != 9:
            raise NotBundle("version %r of the format is unknown" % (fields[1],))
        (self.world, self.first, self.last, self.root, self.nodes, self.withheld, self.keys) = fields[2:]
        if not self._is_shaped():
            raise NotBundle("its header has another shape")
        self.faults = list(self._check())

    def _is_shaped(self):
        lists = (self.nodes, self.withheld, self.keys)
        return (isinstance(self.world, str) and is_uint(self.first) and is_uint(self.last)
                and isinstance(self.root, bytes) and len(self.root) in (0, 32)
                and all(isinstance(x, list) and all(is_hash(y) for y in x) for x in lists))

    def _check(self):
        if not 1 <= self.first <= self.last <= MAX_ID:
            yield "first and last are no range of records"
        if self.first == 1 and self.root:
            yield "there is a chain root before the first record"
        if self.first != 1 and not any(self.root):
            yield "the chain root before its first record is missing"
        if len(self.nodes) != bin(self.first - 1).count("1"):
            yield "another number of nodes than the tree before it has"
        for name, x in (("withheld payloads", self.withheld), ("keys", self.keys)):
            if any(a >= b for a, b in zip(x, x[1:])):
                yield "its %s are not ascending" % name
        if not self.keys:
            yield "it names no key"
        if any(not any(x) for x in self.withheld):
            yield "a withheld payload has a hash of zeros"
        if len(self.withheld) > MAX_WITHHELD or len(self.keys) > MAX_KEYS:
            yield "it names more than is allowed"


def split_record(raw):
    """The stored bytes and the link of an item that is an array of two, or None."""
    if raw[:1] != b"\x82":
        return None
    end = extent(raw, 1)
    if raw[end:end + 1] != b"\x48" or len(raw) != end + 1 + LINK_BYTES:
        return None
    return raw[1:end], raw[end + 1:]


def stream_of(file):
    """The packing of a file and the items in it."""
    unpacker = packing.Unpacker(file)
    return unpacker, Stream(unpacker.pieces())
