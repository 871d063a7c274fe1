"""Keys under which events were submitted: docs/journal-format.md, *What a verifier checks*."""

from collections import OrderedDict

from limits import Limits
from records import Gone

_MOST = 65_536  # keys that any world remembers
_KEY_BYTES = 500  # of memory, for what is kept of each


class Submits:
    """What was submitted under keys. fault is told of an event that cannot be the next under its own."""

    def __init__(self, fault, limits=None):
        self._fault, self._limits = fault, limits or Limits()
        self._under = OrderedDict()  # by key: what was submitted together, and how many of those there are
        self._blind = False  # the payload of one is gone: nobody knows what its key was

    def take(self, record):
        """Hold a record against what is known."""
        if record.kind != "event.submitted":
            return
        if record.payload is Gone:
            self._blind = True
            return
        if record.payload["key"] is None:
            return
        key, of, nth = record.payload["key"]
        if not 1 <= len(key) <= 255 or not all(" " <= c <= "~" for c in key):
            self._fault("its key is none under which events are submitted")
            return
        if nth != 1 and self._under.get(key) != (of, nth - 1) and not self._blind:
            self._fault("it is not the next that was submitted under its key")
        if key not in self._under and len(self._under) < _MOST:
            self._limits.hold(_KEY_BYTES + len(key))
        self._under[key] = of, nth
        if len(self._under) > _MOST:
            self._under.popitem(last=False)
