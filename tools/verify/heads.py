"""The signed checkpoints of a bundle, held against the tree over its records."""

import checkpoint


class Heads:
    """Checkpoints by whether they are of this history. fault is told of those that are not."""

    def __init__(self, fault, known, believed):
        self._fault = fault
        self._known, self._believed = list(known), frozenset(believed)
        self.checked = self.bad = self.last = self.trusted = 0
        self.signers = []
        self._size = 0
        self._signed = set()  # keys that have signed one

    def take(self, text, world, tree):
        """Compare the next checkpoint, which stands right after the last record of the tree.

        The world of the good ones is returned. None as the world is not compared.
        """
        try:
            head = checkpoint.Checkpoint(text)
            self._compare(head, world, tree)
            by = head.signed_by(self._known + sorted(self._believed), self._believed)
            if not by:
                raise checkpoint.Error("none of the keys that are known has signed it")
        except checkpoint.Error as e:
            self.bad += 1
            self._fault("checkpoint #%d" % tree.size, str(e))
            return None
        self.checked += 1
        self.last, self.signers = head.size, [checkpoint.format_key(head.world, key) for key in by]
        self._signed.update(by)
        if self._believed.intersection(by):
            self.trusted = head.size
        return head.world

    def refuse(self, count):
        """Take that so many good ones are of another world after all."""
        self.checked -= count
        self.bad += count

    def _compare(self, head, world, tree):
        if head.size != tree.size:
            raise checkpoint.Error("its size is %d, and it stands after record #%d" % (head.size, tree.size))
        if head.size <= self._size:
            raise checkpoint.Error("there was one of that size before")
        self._size = head.size
        if world not in (None, head.world):
            raise checkpoint.Error("it is of world %s, and this is world %s" % (head.world, world))
        if head.root != tree.root():
            raise checkpoint.Error("it is of another history: its root is not that of these records")

    def unsigned_keys(self):
        """Keys that the bundle names and that have signed nothing in it."""
        return [key for key in self._known if key not in self._signed]

    def trusts(self, last):
        """Whether somebody who is believed has signed all records, of which none is in question."""
        return self.bad == 0 and 0 < self.trusted == last

    def proof(self):
        """The counts of the report."""
        return {"checked": self.checked, "bad": self.bad, "last": self.last, "trusted": self.trusted,
                "signers": self.signers}
