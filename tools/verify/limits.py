"""What a verification may cost. Whoever runs it says so, and never the file.

Every loop over what a file says is charged for here, so time is linear in the bytes of the file as it is packed, and
memory has a bound. What is beyond a limit is no verdict about the world: it is refused, and the message names the option
that allows more.
"""

WORK_OF_BYTE = 32  # units of work for a packed byte: honest records need a tenth of that
WORK_OF_ITEM, WORK_OF_RECORD, WORK_OF_SIGNATURE = 8, 50, 2000
BYTES_OF_WORK = 64  # that are read or hashed for one unit


class Beyond(ValueError):
    """A file needs more than is allowed."""


class Limits:
    """What is allowed, and what was used of it. A unit of work is some microseconds: a value, or a step of a search."""

    def __init__(self, unpacked=256 << 20, item=16 << 20, values=1 << 20, memory=192 << 20, work=4000000):
        self.unpacked, self.item, self.values, self.memory, self.work = unpacked, item, values, memory, work
        self.spent = self.held = 0

    def read(self, count):
        """Take that so many packed bytes were read: each brings work with it."""
        self.work += WORK_OF_BYTE * count

    def spend(self, units):
        """Charge for work."""
        self.spent += units
        if self.spent > self.work:
            raise Beyond("it takes more than %d units of work, for the bytes that it has: --max-work allows more" % self.work)

    def hold(self, count):
        """Charge for bytes of memory that stay in use; fewer than none gives some back."""
        self.held += count
        if self.held > self.memory:
            raise Beyond("what has to be kept of it takes more than %d bytes: --max-memory allows more" % self.memory)

    def check_values(self, count):
        """Refuse so many values in one item."""
        if count > self.values:
            raise Beyond("an item has more than %d values: --max-values allows more" % self.values)

    def check_item(self, size):
        """Refuse an item of so many bytes."""
        if size > self.item:
            raise Beyond("an item is longer than %d bytes: --max-item allows more" % self.item)


class Budget:
    """The values of one item that may still be decoded."""

    __slots__ = ("_limits", "_count")

    def __init__(self, limits):
        self._limits, self._count = limits, 0

    def spend(self, count):
        """Charge for values before they are made."""
        self._count += count
        self._limits.check_values(self._count)
        self._limits.spend(count)
