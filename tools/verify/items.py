"""The items of a bundle: docs/bundle-format.md, *The items* and *The header*."""

import itertools

import cbor
import checkpoint
import packing
from limits import WORK_OF_ITEM
from records import is_hash, is_uint

MAGIC, VERSION = "worldkernel/bundle", 1
MAX_ID = 1 << 48
MAX_BLOBS, MAX_CHECKPOINTS, MAX_WITHHELD, MAX_KEYS = 4194304, 1048576, 1048576, 4096
LINK_BYTES = 8


class NotBundle(ValueError):
    """A file has no header of a bundle."""


class Stream:
    """Items one after the other, cut out of the unpacked pieces. fault says why it ended before its time."""

    def __init__(self, pieces, limits):
        self.fault = None
        self._limits = limits
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
        """The bytes of the next item. What is found of its end is kept while more of it is read."""
        extent = Extent(self._limits)
        while True:
            try:
                extent.find(self._buffer, self._at)
            except Cut as e:
                if self._fill(e.need):
                    continue
                self.fault = str(e)
                return None
            except cbor.Error as e:
                self.fault = "what follows is no item: %s" % e
                return None
            end = self._at + extent.size
            with memoryview(self._buffer) as view:
                raw = bytes(view[self._at:end])
            self._at = end
            self._limits.spend(WORK_OF_ITEM)
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


class Cut(cbor.Truncated):
    """An item is not all there; need is how many bytes of it have to be, to find out more."""

    def __init__(self, need):
        super().__init__("an item is cut off")
        self.need = need


class Extent:
    """Where an item ends, whatever form its parts have. size is its length as far as that is known."""

    def __init__(self, limits):
        self.size = 0
        self._limits = limits
        self._open, self._values = 1, 0  # values that have not begun; and all of them in others

    def find(self, data, begin):
        """Go on to the end of the item at an offset. After a Cut it can be tried again, with more data."""
        at, left = begin + self.size, self._open
        try:
            while left:
                major, n, after = _head(data, at, begin)
                if major in (2, 3):
                    after += n
                elif 4 <= major <= 6:
                    inside = (n, 2 * n, 1)[major - 4]
                    left += inside
                    self._values += inside
                    self._limits.check_values(self._values)
                self._limits.check_item(after - begin + left - 1)  # a value has a byte at least
                if after > len(data):
                    raise Cut(after - begin)
                at, left = after, left - 1
        finally:
            self.size, self._open = at - begin, left
        return at


def _head(data, at, begin):
    """Major type and argument of the head at an offset, in whatever form, and the offset behind it."""
    if at >= len(data):
        raise Cut(at + 1 - begin)
    major, n = data[at] >> 5, data[at] & 31
    if n > 27:
        raise cbor.Error("a length is indefinite or reserved")
    if n < 24:
        return major, n, at + 1
    end = at + 1 + (1 << (n - 24))
    if end > len(data):
        raise Cut(end - begin)
    return major, int.from_bytes(data[at + 1:end], "big"), end


class Header:
    """The first item. faults are what is wrong with its lists and numbers."""

    def __init__(self, raw, limits):
        try:
            fields = cbor.decode(raw, limits)
        except cbor.Error as e:
            raise NotBundle("no header: %s" % e) from None
        if not isinstance(fields, list) or len(fields) < 2 or fields[0] != MAGIC:
            raise NotBundle("it does not begin with a header")
        if not is_uint(fields[1]) or fields[1] != VERSION or len(fields) != 9:
            raise NotBundle("its version of the format is unknown")
        (self.world, self.first, self.last, self.root, self.nodes, self.withheld, self.keys) = fields[2:]
        if not self._is_shaped():
            raise NotBundle("its header has another shape")
        self.faults = list(self._check())

    def _is_shaped(self):
        lists = (self.nodes, self.withheld, self.keys)
        return (isinstance(self.world, str) and len(self.world) <= checkpoint.MAX_BYTES and is_uint(self.first) and is_uint(self.last)
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
            if any(a >= b for a, b in zip(x, itertools.islice(x, 1, None))):
                yield "its %s are not ascending" % name
        if not self.keys:
            yield "it names no key"
        if any(not any(x) for x in self.withheld):
            yield "a withheld payload has a hash of zeros"
        if len(self.withheld) > MAX_WITHHELD or len(self.keys) > MAX_KEYS:
            yield "it names more than is allowed"


def split_record(raw):
    """The stored bytes and the link of an item that is an array of two, or None."""
    end = len(raw) - 1 - LINK_BYTES
    if raw[:1] != b"\x82" or end < 2 or raw[1] >> 5 != 4 or raw[end:end + 1] != b"\x48":
        return None
    return raw[1:end], raw[end + 1:]


def stream_of(file, limits):
    """The packing of a file and the items in it."""
    unpacker = packing.Unpacker(file, limits)
    return unpacker, Stream(unpacker.pieces(), limits)
