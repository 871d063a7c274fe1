"""That every effect happened at most once: docs/journal-format.md, *What a verifier checks*.

The ledger is what the records say of each intent, one after the other. A record about an intent has to fit
where that intent stands; where it does not the intent is named, as a duplicate (once more than it may) or as an
orphan (without what it follows from).
"""

import bisect
import sys

from limits import Limits
from records import Gone

UNKNOWN, DENIED, CANCELLED, AWAITING, APPROVED, REFUSED, EDITED = range(7)  # no attempt may be started from these
(READY, FLYING, EXPIRED, DOUBTFUL, RESOLVED, ANSWERED, HELD, ENDING, COMPENSATING, ENDED, COMPENSATED, ASKING) = range(7, 19)

_UNBEGUN = (AWAITING, READY, RESOLVED, ASKING)  # no attempt is under way
_SETTLED = (ANSWERED, ENDED, COMPENSATED)
_BY_PERSON = "person"
_REPEAT_RULE = "possible_repeat"


def _given_back(receipt):
    """Whether a host that stopped says of an attempt that nobody had begun it."""
    return (receipt.get("status"), receipt.get("unsent"), receipt.get("outcome")) == ("cancelled", True, "retryable_failure")


# Bytes of memory, for what is kept of each.
_INTENT_BYTES, _ASKED_BYTES, _GIVEN_BYTES, _PART_BYTES = 450, 120, 250, 250


class Lost:
    """How many payloads are gone that may have been about any intent that had not ended."""

    def __init__(self):
        self.count = 0


class Intent:
    """Where one intent stands, by what the journal has said of it."""

    __slots__ = ("stage", "attempt", "nonce", "given", "returned", "by", "asked", "failed", "duplicate", "orphan", "_lost", "_since",
                 "_hidden", "cell", "cancelled", "cancelled_at", "cancelled_fork", "accepted")

    def __init__(self, lost):
        self.stage = UNKNOWN
        self.cell = ""  # that asked for it; "": nobody knows
        self.attempt, self.nonce = 0, b""  # of the attempt that was started last
        self.given = None  # a set of the attempts that were given up without a receipt, which may still come
        self.returned = 0  # attempts that were given back: nothing was done
        self.by = 0  # the receipt that gave the last of them back
        self.cancelled = None  # where its cell cancelled it, likewise
        self.cancelled_at, self.cancelled_fork = 0, 0  # the last such record, and the last fork before it
        self.asked = None  # see History.ask: several times where rollbacks led there again
        self.accepted = False  # the outside works on it: attempts only ask
        self.failed = False  # the last that was said of its end is that it failed
        self.duplicate = self.orphan = False
        self._lost, self._since, self._hidden = lost, lost.count, False

    @property
    def hidden(self):
        """Whether a payload that is gone may have said more of it."""
        return self._hidden or self._since < self._lost.count and self.stage not in _SETTLED

    def hide(self):
        """Take that a payload that is gone was about it."""
        self._hidden = True

    def at(self, *stages):
        """Whether it stands, or may stand, at one of some stages."""
        return self.stage in stages or self.hidden

    def move(self, to):
        """Take the journal's word for where it stands."""
        self.stage, self._since, self._hidden = to, self._lost.count, False

    def gave_up(self, at):
        """Whether an attempt was given up that had no receipt since."""
        return self.given is not None and at in self.given


class History:
    """Which records are in the history that goes on, as rollbacks leave others behind.

    A rollback begins a part, and the history goes on in the last one. What is before a part is another one up to some
    record: the parts are a tree. jumps lead to ancestors so that any is found in a logarithm of steps (Myers, "An
    applicative random-access stack", 1983). Where something was asked for is a dict of parts and the first record in each.
    """

    def __init__(self, limits=None):
        self._limits = limits or Limits()
        self._begins, self._ends, self._parents = [0], [0], [0]  # ends: the last record of the parent that it keeps
        self._depths, self._jumps = [0], [0]

    def turn(self, record, to):
        """Take a rollback. to is the last record that it keeps, also of a part that was left."""
        self._limits.hold(_PART_BYTES)
        end = min(to, record - 1)
        parent = self._part(end)
        jump = self._jumps[parent]
        far = self._depths[parent] - self._depths[jump] == self._depths[jump] - self._depths[self._jumps[jump]]
        self._begins.append(record)
        self._ends.append(end)
        self._parents.append(parent)
        self._depths.append(self._depths[parent] + 1)
        self._jumps.append(self._jumps[jump] if far else parent)

    def turned(self):
        """Whether there was any rollback."""
        return len(self._begins) > 1

    def is_last(self, record):
        """Whether a record is the last rollback."""
        return self.turned() and self._begins[-1] == record

    def ask(self, asked, record):
        """Add the present record to where something was asked for. None is nowhere."""
        self._limits.hold(_ASKED_BYTES)
        asked = {} if asked is None else asked
        asked.setdefault(len(self._begins) - 1, record)
        return asked

    def reached(self, asked):
        """Whether something was asked for in the present history."""
        if not asked:
            return False
        last = len(self._begins) - 1
        if len(asked) <= self._depths[last]:
            return any(self.holds(record) for record in asked.values())
        at, end = last, None
        while at not in asked or end is not None and asked[at] > end:
            self._limits.spend(1)
            if at == 0:
                return False
            at, end = self._parents[at], self._ends[at]
        return True

    def holds(self, record):
        """Whether a record so far is in the present history."""
        part, at = self._part(record), len(self._begins) - 1
        if part == at:
            return True
        below = self._depths[part] + 1
        if self._depths[at] < below:
            return False
        while self._depths[at] > below:
            self._limits.spend(1)
            at = self._jumps[at] if self._depths[self._jumps[at]] >= below else self._parents[at]
        return self._parents[at] == part and record <= self._ends[at]

    def _part(self, record):
        """The part that a record is in."""
        self._limits.spend(1)
        return max(0, bisect.bisect_right(self._begins, record) - 1)


class Ledger:
    """The intents of a world, by their keys. fault is told of what does not fit."""

    def __init__(self, fault, limits=None):
        self._fault = fault
        self._limits = limits or Limits()
        self._intents = {}
        self._lost = Lost()
        self.history = History(self._limits)
        self._unnamed = 0  # intents that were decided about in payloads that are gone
        self._fork = 0
        self._owed = None  # an intent that the next record has to end
        self._record = None
        self.attempts = self.confirmed_not = 0
        self.duplicate_keys, self.orphan_keys = [], []
        self._take = {
            "intent.emitted": self._emitted, "intent.awaiting_approval": self._awaits, "intent.denied": self._denied,
            "invocation.started": self._started, "invocation.finished": self._finished,
            "invocation.late": self._late, "intent.waiting": self._waiting, "invocation.expired": self._expired,
            "intent.in_doubt": self._in_doubt, "intent.resolved": self._resolved,
            "intent.confirmed": self._confirmed, "intent.ended": self._ended, "intent.cancelled": self._cancelled_by_cell,
            "rollback.applied": self._rolled_back, "world.forked": self._forked,
        }

    def take(self, record):
        """Hold a record against what is known."""
        self._record = record
        self._look_at_owed()
        if record.payload is Gone:
            self._gone(record.kind)
            return
        take = self._take.get(record.kind)
        if take:
            take(record.payload)

    def _look_at_owed(self):
        """Name the intent that the record before has cancelled, if it had to end with this one."""
        key, self._owed = self._owed, None
        of = self._record
        if key is None or of.kind == "intent.ended" and (of.payload is Gone or of.payload["key"] == key):
            return
        self._orphan(key, self._intents[key], "its cell cancelled it, and it did not end at once")

    def _intent(self, key):
        if key not in self._intents:
            self._limits.hold(_INTENT_BYTES)
            self._intents[key] = Intent(self._lost)
        return self._intents[key]

    def _decided_on(self, key):
        """An intent that must have been decided about, may be in a payload that is gone."""
        x = self._intent(key)
        if x.stage == UNKNOWN and self._unnamed > 0:
            self._unnamed -= 1
            x.hide()
        return x

    def _duplicate(self, key, x, why):
        self._fault("intent %s: %s" % (key.hex(), why))
        if not x.duplicate:
            x.duplicate = True
            self.duplicate_keys.append(key)

    def _orphan(self, key, x, why):
        self._fault("intent %s: %s" % (key.hex(), why))
        if not x.orphan:
            x.orphan = True
            self.orphan_keys.append(key)

    def _reached(self, x):
        """Whether an intent was asked for in the history that goes on."""
        return self.history.reached(x.asked)

    def _ask(self, x):
        """Note that the present record asks for an intent."""
        x.asked = self.history.ask(x.asked, self._record.id)

    def _give_up(self, x, to):
        """End the attempt of an intent without a receipt."""
        self._limits.hold(_GIVEN_BYTES)
        x.accepted = False
        x.given = set() if x.given is None else x.given
        x.given.add((x.attempt, x.nonce))
        x.move(to)

    def _by_fork(self):
        """Whether the record is part of what a fork does."""
        return self._fork != 0 and self._record.caused_by == self._fork

    # Decisions.

    def _decide(self, key, to):
        x = self._intent(key)
        again = x.stage in (DENIED, CANCELLED) and not self._reached(x)
        if again:
            x.asked = None
            self._ask(x)
            x.move(to)
        elif x.stage == UNKNOWN or x.hidden:
            self._ask(x)
            x.move(to)
        elif to == READY and x.stage == APPROVED:
            x.move(to)
        elif to == DENIED and x.stage in (READY, AWAITING, APPROVED, REFUSED) and x.attempt == x.returned:
            x.move(to)  # a person says so, or the rules when its turn comes or others are in force
        elif to == READY and x.stage in (AWAITING, REFUSED):
            self._orphan(key, x, "it was allowed, and nobody had approved it")
        else:
            self._duplicate(key, x, "it was decided before")

    def _asked_by(self, p):
        """Note which cell asks for an intent."""
        x = self._intent(p["key"])
        if not x.cell and "cell" in p:
            self._limits.hold(sys.getsizeof(p["cell"]))
            x.cell = p["cell"]

    def _denied(self, p):
        self._asked_by(p)
        self._decide(p["key"], DENIED)

    def _emitted(self, p):
        self._asked_by(p)
        key, decision = p["key"], p["decision"]
        if decision in ("allow", "approved"):
            self._decide(key, READY)
        elif decision == "reused":
            if not self.history.turned():
                self._orphan(key, self._intent(key), "it has another one's result, and no rollback left any behind")
            self._decide(key, ENDING)
        else:
            self._claim(key, decision)

    def _claim(self, key, decision):
        """A rollback led to its step again, and the ledger answers."""
        x = self._decided_on(key)
        may = {
            "recorded": (ANSWERED, ENDED), "rejected": (COMPENSATED,),
            "waits": (AWAITING, READY, FLYING, DOUBTFUL, RESOLVED, HELD, ASKING, COMPENSATING),
        }[decision]
        if x.stage == UNKNOWN and not x.hidden:
            self._orphan(key, x, "its decision is %s, and nobody had asked for it" % decision)
        elif self._reached(x):
            self._duplicate(key, x, "it is asked for again, and no rollback led to its step")
        elif not x.at(*may):
            self._orphan(key, x, "its decision is %s, and that is not where it stands" % decision)
        elif x.hidden and decision != "waits":
            x.move(may[0])
        self._ask(x)

    def _awaits(self, p):
        self._asked_by(p)
        key = p["key"]
        x = self._intent(key)
        if p.get("reason") and x.at(READY, RESOLVED, AWAITING, APPROVED):
            x.move(AWAITING)  # other rules are in force, or it starts later than it was judged
        elif not self._by_fork():
            if _REPEAT_RULE in p["rules"] and not self.history.turned():
                self._orphan(key, x, "it is said to repeat another one, and no rollback left any behind")
            self._decide(key, AWAITING)
        elif x.at(READY, RESOLVED):
            x.move(AWAITING)
        else:
            self._orphan(key, x, "a fork asks a person about it, and it was not open")

    def _resolved(self, p):
        key, how = p["key"], p["decision"]
        x = self._decided_on(key)
        wanted = AWAITING if how in ("approve", "deny", "edit", "reuse") else ASKING if how == "answer" else DOUBTFUL
        if how == "stop" and (x.hidden or not x.accepted) and x.at(READY, RESOLVED, AWAITING, ASKING):
            x.move(REFUSED)
        elif how == "deny" and x.stage in (HELD, ASKING):
            x.move(ENDING)
        elif how in ("not_executed", "retry") and x.stage in (ANSWERED, ENDED) and x.failed:
            pass  # it stays as it is: another one is asked for
        elif how == "stop" or not x.at(wanted):
            self._orphan(key, x, "a decision about it, and none was asked for")
        elif how == "executed":
            self._give_up(x, ENDING)
        elif how in ("not_executed", "retry"):
            self._give_up(x, RESOLVED)
        else:
            x.move({"approve": APPROVED, "deny": REFUSED, "edit": EDITED, "reuse": ENDING, "answer": READY}[how])

    def _confirmed(self, p):
        key = p["key"]
        x = self._decided_on(key)
        if p["mode"] == _BY_PERSON:
            if x.at(HELD):
                x.move(ANSWERED)
            else:
                self._orphan(key, x, "a person confirmed it, and was not asked")
        elif not x.at(ANSWERED):
            self._orphan(key, x, "it was confirmed without a receipt")
        elif p["verdict"] == "happened":
            pass
        elif p["mode"] == "warn":
            self.confirmed_not += 1
        else:
            x.move(HELD if p["mode"] == "human" else ENDING)

    # Attempts.

    def _started(self, p):
        key, attempt = p["key"], p["attempt"]
        x = self._decided_on(key)
        self.attempts += 1
        if x.stage <= EDITED and not x.hidden:
            self._orphan(key, x, "it was started without a decision of the gate")
        elif not x.at(READY, RESOLVED):
            self._duplicate(key, x, "it was started before")
        elif attempt != x.attempt + 1:
            self._duplicate(key, x, "the attempt is not the next one")
        elif self._is_cancelled(x) and not x.accepted:
            self._duplicate(key, x, "it was started after its cell had cancelled it")
        x.move(FLYING)
        x.attempt, x.nonce = attempt, p["nonce"]

    def _finished(self, p):
        receipt = p["receipt"]
        key, at = receipt["key"], (receipt["attempt"], receipt["nonce"])
        x = self._intent(key)
        if x.attempt == 0:
            self._orphan(key, x, "it was finished and never started")
        elif at != (x.attempt, x.nonce) and not x.gave_up(at):
            self._orphan(key, x, "its receipt answers no attempt that was started")
        elif not x.at(FLYING, DOUBTFUL):
            self._duplicate(key, x, "it was finished or given up before")
            return
        if _given_back(receipt):
            x.returned, x.by = x.returned + 1, self._record.id
        x.failed = receipt["status"] != "ok"
        x.move(ANSWERED)

    def _late(self, p):
        receipt = p["receipt"]
        key, at = receipt["key"], (receipt["attempt"], receipt["nonce"])
        x = self._intent(key)
        if x.gave_up(at):
            x.given.remove(at)
        elif not x.hidden:
            self._orphan(key, x, "its late receipt answers no attempt that was given up")

    def _waiting(self, p):
        x = self._decided_on(p["key"])
        if not x.at(ANSWERED) or p["attempt"] != x.attempt:
            self._orphan(p["key"], x, "it waits, and there was no receipt")
        else:
            if p["outcome"] in ("accepted", "input_required"):
                x.accepted = p["outcome"] == "accepted"
            x.move({"retryable_failure": READY, "accepted": READY, "input_required": ASKING}.get(p["outcome"], COMPENSATING))

    def _expired(self, p):
        x = self._decided_on(p["key"])
        if not x.at(FLYING) or p["attempt"] != x.attempt:
            self._orphan(p["key"], x, "an attempt expired that was not in flight")
        else:
            x.move(EXPIRED)

    def _in_doubt(self, p):
        x = self._decided_on(p["key"])
        if not x.at(FLYING if self._by_fork() else EXPIRED) or p["attempt"] != x.attempt:
            self._orphan(p["key"], x, "an attempt is in doubt that has not expired")
        elif p["action"] == "retry":
            self._give_up(x, READY)
        elif p["action"] == "fail":
            self._give_up(x, ENDING)
        else:
            x.move(DOUBTFUL)

    # Ends.

    def _ended(self, p):
        key, x = p["key"], self._decided_on(p["key"])
        x.failed = p["outcome"] != "side_effect_committed"
        if p["status"] == "cancelled" and x.stage == EDITED:
            x.move(CANCELLED)
        elif p["status"] == "cancelled":
            self._cancelled(key, x)
        elif x.hidden or x.stage == COMPENSATING:
            x.move({"compensated": COMPENSATED, "side_effect_committed": ANSWERED}.get(p["outcome"], ENDED))
        elif x.stage in (RESOLVED, ENDING) or x.stage in (READY, AWAITING, ASKING) and self._ends_cancelled(x):
            x.move(ENDED)
        elif x.stage in (READY, AWAITING, APPROVED, REFUSED, ASKING) and x.attempt > x.returned and not self._is_cancelled(x):
            x.move(ENDED)
        elif x.stage in (ENDED, DENIED, CANCELLED, ANSWERED, COMPENSATED):
            self._duplicate(key, x, "it had ended before")
        else:
            self._orphan(key, x, "it ended, and nothing had decided that")

    def _cancelled_by_cell(self, p):
        key, x = p["key"], self._decided_on(p["key"])
        if x.stage == UNKNOWN and not x.hidden:
            self._orphan(key, x, "its cell cancelled it, and nobody had asked for it")
        elif not self._reached(x) and not x.hidden:
            self._orphan(key, x, "its cell cancelled it, and a rollback had left it behind")
        elif x.cell not in ("", p.get("cell")):
            self._orphan(key, x, "another cell than its own cancelled it")
        elif self._is_cancelled(x):
            self._duplicate(key, x, "its cell had cancelled it before")
        if x.stage in _UNBEGUN and not x.accepted and not x.hidden:
            self._owed = key
        x.cancelled = self.history.ask(x.cancelled, self._record.id)
        x.cancelled_at, x.cancelled_fork = self._record.id, self._fork

    def _is_cancelled(self, x):
        """Whether its cell has cancelled an intent, in the history that goes on and in this world."""
        return x.cancelled_fork == self._fork and self.history.reached(x.cancelled)

    def _ends_cancelled(self, x):
        """Whether the record is the end that follows where a cell cancelled an intent.

        That is at once, when it is given back, or when a rollback leads back to there.
        """
        cause = self._record.caused_by
        again = x.by == cause or self.history.is_last(cause)
        return cause != 0 and (x.cancelled_at == cause or again and self.history.reached(x.cancelled))

    def _cancelled(self, key, x):
        by_rollback = self.history.is_last(self._record.caused_by)
        if not x.at(READY, AWAITING) or x.attempt > x.returned and not x.hidden:
            self._orphan(key, x, "it was cancelled, and it was attempted or had ended")
        elif self._ends_cancelled(x):
            pass
        elif not by_rollback and x.by != self._record.caused_by or self._reached(x):
            self._orphan(key, x, "it was cancelled, and no rollback left it behind")
        x.move(CANCELLED)

    # What changes the past.

    def _rolled_back(self, p):
        self.history.turn(self._record.id, p["at"] + 1)  # the snapshot.created is kept, too
        for key, _, _, _, state, _, disposition in p["effects"]:
            x = self._decided_on(key)
            if x.stage == UNKNOWN and not x.hidden:
                self._orphan(key, x, "a rollback left it behind, and nobody had asked for it")
            elif disposition == "cancelled" and state == "in_flight":
                self._withdrawn(key, x)
            elif disposition != "compensate":
                pass
            elif not x.at(ANSWERED):
                self._orphan(key, x, "it is to be made up for, and it has not happened")
            else:
                x.move(COMPENSATING)

    def _withdrawn(self, key, x):
        """A rollback ended an attempt that nobody had begun."""
        if not x.at(FLYING):
            self._orphan(key, x, "its attempt was taken back, and none was in flight")
        x.returned += 1
        x.move(READY)

    def _forked(self, _):
        self._fork = self._record.id

    def _gone(self, kind):
        """A payload that is gone may have been about any intent that has not ended."""
        if kind == "rollback.applied":
            self.history.turn(self._record.id, 0)  # to where, nobody can tell
        elif kind in ("intent.emitted", "intent.awaiting_approval", "intent.denied"):
            self._unnamed += 1
        elif not kind.startswith(("intent.", "invocation.")):
            return
        self._lost.count += 1

    def proof(self, whole):
        """The ledger proof, when all records were taken. Of a part of a journal it is not ok."""
        stages = [(key, x.stage) for key, x in self._intents.items()]
        pending = [key.hex() for key, stage in stages if stage in (FLYING, EXPIRED, DOUBTFUL)]
        return {
            "ok": whole and not self.duplicate_keys and not self.orphan_keys,
            "pending_idempotency_keys": pending,
            "duplicate_keys": [key.hex() for key in self.duplicate_keys],
            "orphan_keys": [key.hex() for key in self.orphan_keys],
            "attempts": self.attempts,
            "in_doubt": sum(stage in (EXPIRED, DOUBTFUL) for _, stage in stages),
            "awaiting": sum(stage in (AWAITING, HELD, ASKING) for _, stage in stages),
            "confirmed_not": self.confirmed_not,
        }
