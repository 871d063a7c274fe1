"""The execution hash: docs/journal-format.md, *Execution hash*."""

import hashlib
import sys

import receipts
from limits import Limits
from records import Gone
from report import NO_HASH

# A payload of these kinds that is gone takes the hash with it.
LINES = frozenset((
    "world.created", "manifest.applied", "world.forked", "cell.stepped", "cell.failed", "invocation.finished",
    "intent.ended", "intent.denied", "intent.emitted", "intent.awaiting_approval", "intent.waiting",
))


_STEP_BYTES = 250  # of memory for one, besides its text


class Execution:
    """The hash over the lines so far.

    Receipts do not name the step of their intent. It is that of the last decision about it, which counts for one line.
    """

    def __init__(self, limits=None):
        self._limits = limits or Limits()
        self._hash = hashlib.sha256()
        self._steps = {}
        self._held = None  # key and line of a receipt that may not be the last word
        self._manifest = None
        self.unknown = False

    def take(self, record):
        """Add the lines of a record."""
        p, kind = record.payload, record.kind
        if p is Gone:
            self.unknown = self.unknown or kind in LINES
            self._release()
            return
        if not (kind == "intent.waiting" and self._held and self._held[0] == p["key"]):
            self._release()
        self._held = None
        if kind in ("world.created", "manifest.applied"):
            self._govern(p["manifest"])
        elif kind == "world.forked" and p["manifest"] != self._manifest:
            self._govern(p["manifest"])
        elif kind in ("intent.emitted", "intent.awaiting_approval"):
            self._forget(p["key"])
            self._limits.hold(_STEP_BYTES + sys.getsizeof(p["step"]))
            self._steps[p["key"]] = p["step"]
        elif kind == "cell.stepped":
            self._line("%s@%d:%s" % (p["cell"], p["n"], p["outcome"]))
        elif kind == "cell.failed":
            self._line("%s@%d:permanent_failure" % (p["cell"], p["n"]))
        elif kind == "intent.ended":
            self._end(p["key"], "%s:%s" % (p["step"], p["outcome"]))
        elif kind == "intent.denied":
            self._end(p["key"], "%s:permanent_failure" % p["step"])
        elif kind == "invocation.finished":
            self._finish(p["receipt"])

    def _govern(self, manifest):
        self._manifest = manifest
        self._line("manifest " + manifest.hex())

    def _finish(self, receipt):
        outcome = receipts.outcome(receipt)
        if outcome == "retryable_failure":
            outcome = "permanent_failure"
        if receipt["key"] in self._steps:
            self._held = receipt["key"], "%s:%s" % (self._steps[receipt["key"]], outcome)

    def _release(self):
        if self._held:
            self._end(*self._held)
        self._held = None

    def _end(self, key, line):
        self._line(line)
        self._forget(key)

    def _forget(self, key):
        """Let go of an intent's step."""
        step = self._steps.pop(key, None)
        if step is not None:
            self._limits.hold(-_STEP_BYTES - sys.getsizeof(step))

    def _line(self, line):
        self._hash.update(line.encode() + b"\n")

    def result(self):
        """The hash in hex; zeros where it is unknown."""
        self._release()
        return NO_HASH if self.unknown else self._hash.hexdigest()
