"""The signed checkpoints of a bundle, held against the tree over its records."""

import checkpoint
from limits import WORK_OF_SIGNATURE, Limits
from report import brief


class Heads:
    """Checkpoints by whether they are of this history. fault is told of those that are not.

    known are the keys of the header, and of its world are the checkpoints in the bundle.
    """

    def __init__(self, fault, header, believed, kept, limits=None):
        self._fault = fault
        self._limits = limits or Limits()
        self._home = header.world
        self._known, self._believed = list(header.keys), frozenset(believed)
        self._by_id = {}
        self._kept = sorted(kept, key=lambda head: head.size)
        self.checked = self.bad = self.last = self.trusted = 0
        self.signers = []
        self._size = 0
        self._signed = set()  # keys that have signed one that came with the bundle

    def take(self, text, world, tree):
        """Compare the next checkpoint of the bundle, which stands right after the last record of the tree.

        The world of a good one is returned. None as the world is not compared.
        """
        try:
            head = checkpoint.Checkpoint(text)
            if head.size != tree.size:
                raise checkpoint.Error("its size is %d, and it stands after record #%d" % (head.size, tree.size))
            if head.size <= self._size:
                raise checkpoint.Error("there was one of that size before")
            if head.world != self._home:
                raise checkpoint.Error("it is of world %s, and the header says %s" % (brief(head.world), brief(self._home)))
            self._size = head.size
            self._signed.update(self._compare(head, world, tree))
        except checkpoint.Error as e:
            self._refuse("checkpoint #%d" % tree.size, e)
            return None
        return head.world

    def reach(self, world, tree):
        """Compare the checkpoints that somebody kept, as far as the tree goes; yield the worlds of good ones."""
        while self._kept and self._kept[0].size <= tree.size:
            head = self._kept.pop(0)
            try:
                if head.size < tree.size:
                    raise checkpoint.Error("it cannot be compared: the records before are not here")
                self._compare(head, world, tree)
            except checkpoint.Error as e:
                self._refuse("kept checkpoint #%d" % head.size, e)
                continue
            yield head.world

    def _compare(self, head, world, tree):
        if world not in (None, head.world):
            raise checkpoint.Error("it is of world %s, and this is world %s" % (brief(head.world), brief(world)))
        if head.root != tree.root():
            raise checkpoint.Error("it is of another history: its root is not that of these records")
        by = head.signed_by(self._keys_of(head.world), self._spend)
        if not by:
            raise checkpoint.Error("none of the keys that are known has signed it")
        self.checked += 1
        self.last, self.signers = head.size, [checkpoint.format_key(head.world, key) for key in by]
        if self._believed.intersection(by):
            self.trusted = head.size
        return by

    def _keys_of(self, world):
        """The known keys by the id that they have in a world's checkpoints. It is asked for one world again and again."""
        if world not in self._by_id:
            self._limits.spend(len(self._known))
            known = self._known + sorted(self._believed)
            self._by_id = {world: checkpoint.by_id(world, known, self._believed)}
        return self._by_id[world]

    def _spend(self):
        self._limits.spend(WORK_OF_SIGNATURE)

    def _refuse(self, place, why):
        self.bad += 1
        self._fault(place, str(why))

    def refuse(self, count):
        """Take that so many good ones are of another world after all."""
        self.checked -= count
        self.bad += count

    def close(self):
        """Refuse the checkpoints that the records do not reach, and name the keys that have signed nothing."""
        for head in self._kept:
            self._refuse("kept checkpoint #%d" % head.size, "the records that it is of are not all here")
        for key in self._known:
            if key not in self._signed:
                self._fault("header", "key %s has signed no checkpoint" % key.hex())

    def trusts(self, last):
        """Whether somebody who is believed has signed all records, and no checkpoint is in question."""
        return self.bad == 0 and 0 < self.trusted == last

    def proof(self):
        """The counts of the report."""
        return {"checked": self.checked, "bad": self.bad, "last": self.last, "trusted": self.trusted,
                "signers": self.signers}
