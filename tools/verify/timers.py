"""Timers, and what steps cancel: docs/journal-format.md, *What a verifier checks*.

A timer waits from its timer.set on until it fires or is cancelled, once in a history. Ticks are counted as a history has
them: a rollback leads back to the ticks that the snapshot had left.
"""

import bisect
import heapq
import sys
from array import array
from collections import deque

from limits import Limits
from records import Gone

_TIMER_BYTES, _SNAPSHOT_BYTES, _DUE_BYTES = 500, 150, 150  # of memory, for what is kept of each, besides names
_BRING = frozenset((  # a cell its receipt
    "invocation.finished", "intent.denied", "intent.ended", "intent.confirmed", "intent.emitted", "rollback.applied"))


class Timer:
    """What the journal has said of a timer. Of one whose payload is gone nobody knows more than that it was set."""

    __slots__ = ("cell", "name", "tag", "due", "ended", "gone")

    def __init__(self, p=None, due=0):
        self.gone = p is None
        self.cell, self.name, self.tag = ("", "", "") if p is None else (p["cell"], p["name"], p.get("tag", ""))
        self.due = due  # as Timers counts ticks
        self.ended = None  # see History.ask: where it fired or was cancelled

    def size(self):
        """About how many bytes of memory it takes."""
        return _TIMER_BYTES + sys.getsizeof(self.cell) + sys.getsizeof(self.name) + sys.getsizeof(self.tag)


class Timers:
    """The timers of a world, by the records that set them. fault is told of what does not fit.

    history is the ledger's, which takes each record before this does.
    """

    def __init__(self, fault, history, limits=None):
        self._fault, self._history = fault, history
        self._limits = limits or Limits()
        self._timers, self._tagged = {}, {}  # records by cell and tag
        self._now = self._clock = self._before = 0  # the world's tick; in this history, and before the last clock.advanced
        self._timeless = False  # nobody knows the tick in this history any more
        self._snapshots, self._newest = {}, 0  # the tick in its history by name; the record of the last one
        self._step = 0, ""  # the last step, and its cell
        self._blind = 0  # the last rollback that is gone: of what was set before nobody knows whether it waits
        self._doubt = 0  # the last cell.cancelled that is gone, likewise of what has a tag
        self._still = False  # the tick permits nothing
        self._brought_by = array("Q")  # the records that can have brought receipts
        # When timers fall due, and the records that set them: those to come, as a heap, and those before, in order. Some wait no
        # more, or not in this history. Of those that have come, what has to fire before anything else comes.
        self._coming, self._past, self._owed = [], [], deque()
        self._take = {
            "clock.advanced": self._advanced, "invocation.started": self._started, "cell.stepped": self._stepped, "timer.set": self._set, "timer.fired": self._fired,
            "cell.cancelled": self._cancelled, "intent.cancelled": self._by_step, "snapshot.created": self._snapshot,
            "snapshot.pruned": self._pruned, "snapshot.retention": self._prunes, "rollback.applied": self._rolled_back,
        }

    def take(self, record):
        """Hold a record against what is known."""
        if self._owed:
            self._look_at_due(record)
        if record.kind in _BRING:
            self._limits.hold(self._brought_by.itemsize)
            self._brought_by.append(record.id)
        if record.payload is Gone:
            self._gone(record)
        elif record.kind in self._take:
            self._take[record.kind](record, record.payload)

    def _advanced(self, _, p):
        self._before = self._clock
        self._clock += max(0, p["to"] - self._now)
        self._now = max(self._now, p["to"])
        self._still = p.get("still", False)
        self._owed = deque(number for _, number in self._pass() if self._is_due(number))

    def _started(self, *_):
        if self._still:
            self._fault("it is permitted in a tick that permits nothing")

    def _stepped(self, record, p):
        self._step = record.id, p["cell"]

    def _by_step(self, record, p):
        step, cell = self._step
        if record.caused_by != step or cell not in ("", p["cell"]):
            self._fault("the last step is not one of its cell that led to it")

    # Timers.

    def _set(self, record, p):
        self._by_step(record, p)
        if p["deadline"] <= self._now and not self._timeless:
            self._fault("it sets a timer for a tick that has come")
        timer = Timer(p, self._clock + p["deadline"] - self._now)
        if timer.tag and self._waits(timer.cell, timer.tag):
            self._fault("its cell has a timer of that tag, which was not cancelled")
        self._keep(record.id, timer)
        self._expect(timer.due, record.id)
        if timer.tag:
            self._tagged.setdefault((timer.cell, timer.tag), []).append(record.id)

    def _keep(self, number, timer):
        self._limits.hold(timer.size())
        self._timers[number] = timer

    def _fired(self, record, p):
        timer = self._waiting(record.caused_by)
        if timer is None:
            self._fault("there is no timer that waits and was set by what caused it")
            return
        if not timer.gone and (timer.cell, timer.name) != (p["cell"], p["name"]):
            self._fault("the timer that was set is another one")
        elif not timer.gone and not self._timeless and not self._before < timer.due <= self._clock:
            self._fault("its timer was set for another tick")
        self._end(record, record.caused_by, timer)

    def _cancelled(self, record, p):
        self._by_step(record, p)
        number = p["timer"]
        timer = self._waiting(number)
        if number == 0 and self._waits(p["cell"], p["tag"]):
            self._fault("its cell has a timer of that tag, and it names none")
        elif number == 0:
            if not p["receipts"]:
                self._fault("it cancels nothing")
        elif timer is None:
            self._fault("the timer that it cancels does not wait")
        else:
            if not timer.gone and (timer.cell, timer.tag) != (p["cell"], p["tag"]):
                self._fault("the timer that it cancels is another cell's, or has another tag")
            self._end(record, number, timer)
        if not all(self._brought(x, record) for x in p["receipts"]):
            self._fault("a receipt that it cancels was brought by no record before it")

    def _brought(self, number, record):
        self._limits.spend(1)
        at = bisect.bisect_left(self._brought_by, number)
        brings = number < record.id and at < len(self._brought_by) and self._brought_by[at] == number
        return brings and (number <= self._blind or self._history.holds(number))

    def _waiting(self, number):
        """The timer that a record set, if it waits, or may."""
        timer = self._timers.get(number)
        if timer is None or number <= self._blind:
            return timer
        return timer if self._history.holds(number) and not self._history.reached(timer.ended) else None

    def _waits(self, cell, tag):
        """Whether a cell has a timer of a tag, for sure."""
        for number in reversed(self._tagged.get((cell, tag), ())):
            self._limits.spend(1)
            if number <= max(self._blind, self._doubt):
                return False
            if self._history.holds(number):
                return not self._history.reached(self._timers[number].ended)
        return False

    def _end(self, record, number, timer):
        """Take that a timer waits no more. No rollback leads to where it does if there is no snapshot since it was set."""
        if number < self._newest:
            timer.ended = self._history.ask(timer.ended, record.id)
            return
        del self._timers[number]
        self._limits.hold(-timer.size())
        while self._past and self._past[-1][1] not in self._timers:
            self._limits.hold(-_DUE_BYTES)
            self._past.pop()
        if timer.tag:
            same = self._tagged[timer.cell, timer.tag]
            self._limits.spend(len(same))
            same.remove(number)
            if not same:
                del self._tagged[timer.cell, timer.tag]

    # What falls due.

    def _expect(self, due, number):
        if due <= self._clock:
            return  # a fault, which was named
        count = len(self._coming) + len(self._past)
        if count > 2 * len(self._timers) + 1000:  # most of them have been forgotten
            self._limits.spend(count)
            self._coming, self._past = ([x for x in all if x[1] in self._timers] for all in (self._coming, self._past))
            heapq.heapify(self._coming)
            self._limits.hold(_DUE_BYTES * (len(self._coming) + len(self._past) - count))
        self._limits.hold(_DUE_BYTES)
        heapq.heappush(self._coming, (due, number))

    def _pass(self):
        """Take that the tick of the history is another one. Returns what falls due on the way to it, if it is later."""
        while self._past and self._past[-1][0] > self._clock:
            self._limits.spend(1)
            heapq.heappush(self._coming, self._past.pop())
        first = len(self._past)
        while self._coming and self._coming[0][0] <= self._clock:
            self._limits.spend(1)
            x = heapq.heappop(self._coming)
            if x[1] in self._timers:
                self._past.append(x)
            else:
                self._limits.hold(-_DUE_BYTES)
        return self._past[first:]

    def _is_due(self, number):
        """Whether a timer waits whose tick has come, for sure."""
        unsure = self._timeless or number <= self._blind or number <= self._doubt and self._timers[number].tag
        return not unsure and self._waiting(number) is not None

    def _look_at_due(self, record):
        """Take that in a tick that has begun what is due fires before anything else comes."""
        if record.kind != "timer.fired":
            self._fault("a timer was due before it, and has not fired")
            self._owed.clear()
        elif record.caused_by == self._owed[0]:
            self._owed.popleft()
        else:
            self._limits.spend(len(self._owed))
            if record.caused_by in self._owed:
                self._fault("another timer fires before it")
                self._owed.remove(record.caused_by)

    # What changes the past.

    def _snapshot(self, record, p):
        self._limits.hold(_SNAPSHOT_BYTES + sys.getsizeof(p["name"]))
        self._snapshots[p["name"]], self._newest = self._clock, record.id
        self._prunes(record, p)

    def _prunes(self, _, p):
        for name in p["gone"]:
            self._forget(name)

    def _pruned(self, _, p):
        self._forget(p["name"])

    def _forget(self, name):
        if self._snapshots.pop(name, None) is not None:
            self._limits.hold(-_SNAPSHOT_BYTES - sys.getsizeof(name))

    def _rolled_back(self, _, p):
        self._timeless = self._timeless or p["snapshot"] not in self._snapshots
        self._clock = self._snapshots.get(p["snapshot"], self._clock)
        self._pass()  # what fell due there has fired or not before the snapshot

    def _gone(self, record):
        kind = record.kind
        if kind == "timer.set":
            self._keep(record.id, Timer())
        elif kind == "timer.fired":
            timer = self._waiting(record.caused_by)
            if timer is not None:
                self._end(record, record.caused_by, timer)
        elif kind == "cell.cancelled":
            self._doubt = record.id
        elif kind == "cell.stepped":
            self._step = record.id, ""
        elif kind == "snapshot.created":
            self._newest = record.id
        elif kind == "clock.advanced":
            self._timeless, self._still = True, False
        elif kind == "rollback.applied":
            self._blind, self._timeless = record.id, True
