"""The file below the items of a bundle: docs/bundle-format.md, *The file*.

It is unpacked as a stream. What comes before damage is still handed out, and the damage is told afterwards.
"""

import hashlib
import zlib

FIRST = bytes.fromhex("1f8b08000000000000ff")
LAST = bytes.fromhex("1f8b08040000000000ff2400776b2000")
END = b"\3" + bytes(9)
LAST_BYTES = len(LAST) + 32 + len(END)

MAX_UNPACKED = 64 << 30
_FACTOR = 200  # bytes that one may unpack to, besides of what any file may
_CHUNK = 1 << 16
_PIECE = 1 << 20


class Error(ValueError):
    """A file is no bundle at all."""


def pack(items):
    """A bundle of the bytes of its items."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    first = FIRST + deflate.compress(items) + deflate.flush()
    first += zlib.crc32(items).to_bytes(4, "little") + (len(items) & 0xffffffff).to_bytes(4, "little")
    return first + LAST + hashlib.sha256(first).digest() + END


class Unpacker:
    """The unpacked bytes of a file. fault is what is wrong with its packing, None where nothing is."""

    def __init__(self, file, limits):
        self.fault = None
        self._file, self._limits = file, limits
        self._engine = zlib.decompressobj(-15)
        self._hash = hashlib.sha256()  # of the first member
        self._packed = self._size = self._crc = 0

    def pieces(self):
        """Yield the unpacked bytes, as far as they can be had."""
        begin = self._file.read(len(FIRST))
        if begin[:4] != FIRST[:4] or len(begin) != len(FIRST):
            raise Error("it is no gzip file, or one with a header that no bundle has")
        self._hash.update(begin)
        damage = None
        while not self._engine.eof and not damage:
            chunk = self._file.read(_CHUNK)
            if not chunk:
                damage = "its deflated bytes are cut off"
                break
            self._packed += len(chunk)
            self._limits.read(len(chunk))
            damage = yield from self._unpack(chunk)
            self._hash.update(chunk[:len(chunk) - len(self._engine.unused_data)])
        if begin != FIRST:
            damage = "its gzip header is not that of a bundle"
        self.fault = damage or self._check_end(self._engine.unused_data)

    def _unpack(self, chunk):
        """Yield what a chunk unpacks to, and return what is wrong with it."""
        while chunk and not self._engine.eof:
            before = self._engine.copy()
            try:
                piece = self._engine.decompress(chunk, _PIECE)
            except zlib.error:
                yield from filter(self._count, _before_damage(before, chunk))
                return "its deflated bytes are damaged"
            if not self._count(piece):
                return "it unpacks to more than its size allows: --max-unpacked allows more"
            yield piece
            chunk = self._engine.unconsumed_tail
        return None

    def _count(self, piece):
        """Count a piece, and say whether that much is allowed."""
        self._size += len(piece)
        self._crc = zlib.crc32(piece, self._crc)
        return self._size <= min(MAX_UNPACKED, self._limits.unpacked + _FACTOR * self._packed)

    def _check_end(self, rest):
        """What is wrong with what follows the deflated bytes."""
        rest += self._file.read(8 + LAST_BYTES + 1)
        sums = self._crc.to_bytes(4, "little") + (self._size & 0xffffffff).to_bytes(4, "little")
        if rest[:8] != sums:
            return "its CRC-32 or its size is wrong, or cut off"
        self._hash.update(sums)
        last = LAST + self._hash.digest() + END
        if rest[8:8 + LAST_BYTES] != last:
            return "its last %d bytes are not those of what is before them" % LAST_BYTES
        if len(rest) > 8 + LAST_BYTES:
            return "bytes follow its end"
        return None


def _before_damage(engine, chunk):
    """What a damaged chunk unpacks to before the damage: of a call that fails the engine gives nothing."""
    for i in range(len(chunk)):
        try:
            yield engine.decompress(chunk[i:i + 1])
        except zlib.error:
            return
