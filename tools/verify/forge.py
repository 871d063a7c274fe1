"""Bundles for tests, of records that may be made up: signed with keys that nobody believes."""

import base64
import hashlib

import cbor
import checkpoint
import ed25519
import items
import merkle
import packing

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
