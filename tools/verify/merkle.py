"""The Merkle tree of RFC 6962, section 2.1, over the stored bytes of records.

It is kept as the roots of its complete subtrees, so its size does not grow with the journal.
"""

import hashlib


class Error(ValueError):
    """A proof does not fit."""


def leaf(record):
    """The leaf of a record's stored bytes."""
    return hashlib.sha256(b"\0" + record).digest()


def node(left, right):
    """The node above two others."""
    return hashlib.sha256(b"\1" + left + right).digest()


class Tree:
    """A tree that grows at its end. nodes are the roots of its complete subtrees, the largest first."""

    def __init__(self, size, nodes):
        if size < 0 or bin(size).count("1") != len(nodes):
            raise Error("a tree of %d leaves has another number of nodes than %d" % (size, len(nodes)))
        self.size = size
        self.nodes = list(nodes)

    def append(self, record):
        """Append the stored bytes of a record."""
        at, n = leaf(record), self.size
        while n & 1:
            at, n = node(self.nodes.pop(), at), n >> 1
        self.nodes.append(at)
        self.size += 1

    def root(self):
        """The root over all leaves."""
        if not self.nodes:
            return hashlib.sha256(b"").digest()
        at = self.nodes[-1]
        for left in self.nodes[-2::-1]:
            at = node(left, at)
        return at


def root_of_inclusion(index, size, at, path):
    """The root of a tree of size leaves whose leaf at an index is at (RFC 6962, section 2.1.1)."""
    if index >= size:
        raise Error("the leaf is not in the tree")
    inner = (index ^ (size - 1)).bit_length()
    if len(path) != inner + bin(index >> inner).count("1"):
        raise Error("the proof has another length")
    for i, other in enumerate(path):
        right = i < inner and not index >> i & 1
        at = node(at, other) if right else node(other, at)
    return at


def roots_of_consistency(old, size, old_root, path):
    """The roots of the first old leaves and of all, as a proof has them (RFC 6962, section 2.1.2)."""
    if not 0 < old <= size:
        raise Error("the older tree is the larger one, or empty")
    if old == size:
        if path:
            raise Error("the proof has another length")
        return old_root, old_root
    path = list(path)
    low = (old & -old).bit_length() - 1
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    inner = ((old - 1) ^ (size - 1)).bit_length()
    border = bin((old - 1) >> inner).count("1")
    if len(path) != 1 + inner - low + border:
        raise Error("the proof has another length")
    first = second = path[0]
    for i, other in enumerate(path[1:]):
        bit = low + i
        if bit >= inner or (old - 1) >> bit & 1:
            first, second = node(other, first), node(other, second)
        else:
            second = node(second, other)
    return first, second
