"""Bundles for tests, of records that may be made up: signed with keys that nobody believes."""

import base64
import hashlib
import sys

import cbor
import checkpoint
import ed25519
import items
import merkle
import packing
from limits import Budget, Limits

SEED = b"\1" * 32


class Forge:
    """A bundle in the making: its items so far."""

    def __init__(self, world, first=1, root=b"", nodes=(), seeds=(SEED,)):
        self.world, self._first, self._root, self._nodes = world, first, root, list(nodes)
        self._seeds = list(seeds)
        self.withheld = []
        self._chain, self._tree = root, merkle.Tree(first - 1, nodes)
        self.items = []

    def blob(self, content):
        """Append a blob."""
        self.items.append(cbor.encode(content))

    def record(self, stored):
        """Append the stored bytes of a record, with its link."""
        number, _, kind = cbor.decode(stored)[:3]
        text = b"\n%d %s " % (number, kind.encode())
        self._chain = hashlib.sha256(self._chain + text + base64.b64encode(stored)).digest()
        self._tree.append(stored)
        self.items.append(b"\x82" + stored + cbor.encode(self._chain[:items.LINK_BYTES]))

    def sign(self, world=None, size=None, root=None):
        """Append a checkpoint of the records so far, or of what else it is to say."""
        name = checkpoint.name_of(world or self.world)
        root = self._tree.root() if root is None else root
        size = self._tree.size if size is None else size
        text = "%s\n%d\n%s\n" % (name, size, base64.b64encode(root).decode())
        lines = ""
        for seed in self._seeds:
            key = ed25519.public_key(seed)
            raw = checkpoint.key_id(name, key) + ed25519.sign(seed, text.encode())
            lines += "\u2014 %s %s\n" % (name, base64.b64encode(raw).decode())
        self.items.append(cbor.encode(text + "\n" + lines))

    def header(self):
        """The header that fits."""
        keys = sorted(ed25519.public_key(seed) for seed in self._seeds)
        return cbor.encode([items.MAGIC, items.VERSION, self.world, self._first, self._tree.size, self._root,
                            self._nodes, sorted(self.withheld), keys])

    def bytes(self):
        """The packed bundle."""
        return packing.pack(self.header() + b"".join(self.items))


def of_journal(sequence, withhold=(), every=0):
    """The bundle of an exported journal (format cborseq), without some payloads, with checkpoints now and then."""
    whole = list(_items_of(sequence))
    forge, seen = Forge(_world_of(whole)), set()
    for raw, value in whole:
        if isinstance(value, bytes):
            blob = hashlib.sha256(value).digest()
            if blob not in seen:
                forge.withheld.append(blob) if blob in withhold else forge.blob(value)
            seen.add(blob)  # an export may repeat a blob, a bundle must not
            continue
        forge.record(raw)
        if every and value[0] % every == 0:
            forge.sign()
    forge.sign()
    return forge


def _items_of(sequence):
    at, budget = 0, Budget(Limits(values=sys.maxsize, work=sys.maxsize))
    while at < len(sequence):
        begin = at
        value, at = cbor.item(sequence, at, 0, budget)
        yield sequence[begin:at], value


def _world_of(whole):
    """The id of the world: of the last fork, or of its creation."""
    blobs = {hashlib.sha256(x).digest(): x for _, x in whole if isinstance(x, bytes)}
    world = ""
    for _, x in whole:
        if isinstance(x, list) and x[2] in ("world.created", "world.forked"):
            payload = x[4] if isinstance(x[4], bytes) else blobs[x[4][0]]
            world = cbor.decode(payload)[1]
    return world
