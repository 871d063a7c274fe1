"""The blobs of a bundle: which are there, which have to be, and which need not."""

import hashlib
import tempfile

import cbor
import items
from limits import BYTES_OF_WORK
from records import Error, is_hash
from report import place_of


_BLOB_BYTES, _MISSING_BYTES, _WITHHELD_BYTES = 300, 450, 100  # of memory, for what is kept of each


class Blobs:
    """Contents by hash. More than some of them are in a temporary file."""

    def __init__(self, limits):
        self._where = {}
        self._limits = limits
        self._file = tempfile.SpooledTemporaryFile(max_size=4 << 20)

    def __len__(self):
        return len(self._where)

    def __contains__(self, blob):
        return blob in self._where

    def add(self, content):
        """Keep a content. None where it was there already, else its hash."""
        blob = hashlib.sha256(content).digest()
        if blob in self._where:
            return None
        self._limits.hold(_BLOB_BYTES)
        self._where[blob] = (self._file.seek(0, 2), len(content))
        self._file.write(content)
        return blob

    def get(self, blob):
        """The content of a hash, or a KeyError."""
        at, size = self._where[blob]
        self._limits.spend(size // BYTES_OF_WORK)  # many records may have one payload
        self._file.seek(at)
        return self._file.read(size)

    def close(self):
        """Let go of the temporary file."""
        self._file.close()


class JournalBlobs:
    """What records need, besides themselves. fault is told of what is missing, or there and not needed."""

    def __init__(self, header, fault, limits):
        limits.hold(_WITHHELD_BYTES * len(header.withheld))
        self._fault, self._limits = fault, limits
        self._blobs = Blobs(limits)
        self._fresh = {}  # blobs since the last record, and the item that each is
        self._withheld = dict.fromkeys(header.withheld, False)  # and whether a record has the payload
        self._missing = {}  # blobs that are not there, and whether each is a payload
        self._missed = []
        self.redacted = 0

    def put(self, content, item):
        """Take a blob. It has to be needed by the next record."""
        place = "item %d" % item
        blob = self._blobs.add(content)
        if blob is None:
            self._fault(place, "the blob was there before")
        elif len(self._blobs) > items.MAX_BLOBS:
            self._fault(place, "there are more blobs than are allowed")
        elif blob in self._withheld:
            self._fault(place, "the blob is one that is said to be withheld")
        else:
            self._fresh[blob] = item

    def settle(self):
        """Name the blobs that nothing needed."""
        for item in self._fresh.values():
            self._fault("item %d" % item, "the next record does not need this blob")
        self._fresh.clear()

    def payload(self, record):
        """The value of a record's payload. A KeyError says that it is not there, and is noted."""
        if record.blob is None:
            return record.inline
        if record.blob in self._withheld:
            self._withheld[record.blob] = True
        if not self._has(record.blob, place_of(record.id), "its payload is missing", True):
            raise KeyError(record.blob)
        content = self._blobs.get(record.blob)
        if len(content) != record.blob_bytes:
            raise Error("its payload has %d bytes, and should have %d" % (len(content), record.blob_bytes))
        try:
            return cbor.decode(content, self._limits)
        except cbor.Error as e:
            raise Error("its payload: %s" % e) from None

    def manifest(self, blob, place):
        """The manifest of a hash, all that it names being there; None where it cannot be read."""
        if not self._has(blob, place, "manifest %s is missing" % blob.hex(), False):
            return None
        try:
            manifest = cbor.decode(self._blobs.get(blob), self._limits)
            names = list(_contents(manifest))
        except (cbor.Error, AttributeError, TypeError):
            self._fault(place, "manifest %s is none" % blob.hex())
            return None
        for name in names:
            self._has(name, place, "content %s is missing" % name.hex(), False)
        return manifest

    def redact(self, blob):
        """Take that a payload was destroyed, so that it may be missing up to here."""
        if self._missing.pop(blob, None) is not None:
            self.redacted += 1

    def _has(self, blob, place, message, is_payload):
        """Whether a blob is there. Where it is not, that is noted."""
        self._fresh.pop(blob, None)
        if blob in self._blobs:
            return True
        if blob not in self._missing:
            self._limits.hold(_MISSING_BYTES)
            self._missing[blob] = is_payload
            self._missed.append((blob, place, message))
        return False

    def close(self):
        """Name what is missing, and return how many payloads were withheld."""
        withheld = 0
        for blob, place, message in self._missed:
            if blob not in self._missing:
                continue
            if self._missing[blob] and blob in self._withheld:
                withheld += 1
            else:
                self._fault(place, message)
        for blob, named in self._withheld.items():
            if not named:
                self._fault("header", "no record has the withheld payload %s" % blob.hex())
        self.discard()
        return withheld

    def discard(self):
        """Let go of the temporary file."""
        self._blobs.close()


def _contents(manifest):
    """The hashes of all that a manifest names."""
    for reducer in manifest.get("reducers", {}).values():
        yield from _hashes(reducer.get("source"))
        for module in (reducer.get("modules") or {}).values():
            yield from _hashes(module)
    for event in manifest.get("events", {}).values():
        yield from _hashes(event.get("schema"))
    for effect in manifest.get("effects", {}).values():
        yield from _hashes(effect.get("params"))
        for owner in (effect, effect.get("verify") or {}):
            for file in (owner.get("files") or {}).values():
                yield from _hashes(file)


def _hashes(value):
    if value is None:
        return
    if not is_hash(value):
        raise TypeError("not a hash")
    yield value
