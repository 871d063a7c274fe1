"""That every effect happened at most once: docs/journal-format.md, *What a verifier checks*.

The ledger is what the records say of each intent, one after the other. A record about an intent has to fit
where that intent stands; where it does not the intent is named, as a duplicate (once more than it may) or as an
orphan (without what it follows from).
"""

from records import Gone

UNKNOWN, DENIED, CANCELLED, PARKED, APPROVED, REFUSED = range(6)  # no attempt may be started from these
(READY, FLYING, EXPIRED, DOUBTFUL, RESOLVED, ANSWERED, HELD, ENDING, COMPENSATING, ENDED, COMPENSATED) = range(6, 17)

_SETTLED = (ANSWERED, ENDED, COMPENSATED)
_BY_PERSON = "person"
_REPEAT_RULE = "possible_repeat"


def _given_back(receipt):
    """Whether a host that stopped says of an attempt that nobody had begun it."""
    return (receipt.get("status"), receipt.get("unsent"), receipt.get("outcome")) == ("cancelled", True, "retryable_failure")


class Intent:
    """Where one intent stands, by what the journal has said of it."""

    __slots__ = ("stage", "attempt", "nonce", "given", "returned", "by", "asked", "hidden", "duplicate", "orphan")

    def __init__(self):
        self.stage = UNKNOWN
        self.attempt, self.nonce = 0, b""  # of the attempt that was started last
        self.given = []  # attempts that were given up without a receipt, which may still come
        self.returned = 0  # attempts that were given back: nothing was done
        self.by = 0  # the receipt that gave the last of them back
        self.asked = []  # records at which it was asked for: several where rollbacks led there again
        self.hidden = False  # a payload that is gone may have said more of it
        self.duplicate = self.orphan = False

    def at(self, *stages):
        """Whether it stands, or may stand, at one of some stages."""
        return self.hidden or self.stage in stages

    def move(self, to):
        """Take the journal's word for where it stands."""
        self.stage, self.hidden = to, False

    def give_up(self, to):
        """End the attempt without a receipt."""
        self.given.append((self.attempt, self.nonce))
        self.move(to)


class History:
    """Which records are in the history that goes on, as rollbacks leave others behind."""

    def __init__(self):
        self._turns = []  # (the rollback's record, the last record that it keeps)

    def turn(self, record, to):
        """Take a rollback."""
        self._turns.append((record, to))

    def turned(self):
        """Whether there was any rollback."""
        return bool(self._turns)

    def is_last(self, record):
        """Whether a record is the last rollback."""
        return bool(self._turns) and self._turns[-1][0] == record

    def holds(self, record, now):
        """Whether a record is in the history of another one."""
        end = now
        for turn, to in reversed(self._turns):
            if turn > end:
                continue
            if record >= turn:
                break
            end = to
        return record <= end


class Ledger:
    """The intents of a world, by their keys. fault is told of what does not fit."""

    def __init__(self, fault):
        self._fault = fault
        self._intents = {}
        self._history = History()
        self._unnamed = 0  # intents that were decided about in payloads that are gone
        self._fork = 0
        self._record = None
        self.attempts = self.confirmed_not = 0
        self.duplicate_keys, self.orphan_keys = [], []
        self._take = {
            "intent.emitted": self._emitted, "intent.parked": self._parked, "intent.denied": self._denied,
            "invocation.started": self._started, "invocation.finished": self._finished,
            "invocation.late": self._late, "intent.waiting": self._waiting, "invocation.expired": self._expired,
            "intent.in_doubt": self._in_doubt, "intent.resolved": self._resolved,
            "intent.confirmed": self._confirmed, "intent.ended": self._ended,
            "rollback.applied": self._rolled_back, "world.forked": self._forked,
        }

    def take(self, record):
        """Hold a record against what is known."""
        self._record = record
        if record.payload is Gone:
            self._gone(record.kind)
            return
        take = self._take.get(record.kind)
        if take:
            take(record.payload)

    def _intent(self, key):
        if key not in self._intents:
            self._intents[key] = Intent()
        return self._intents[key]

    def _decided_on(self, key):
        """An intent that must have been decided about, may be in a payload that is gone."""
        x = self._intent(key)
        if x.stage == UNKNOWN and self._unnamed > 0:
            self._unnamed -= 1
            x.hidden = True
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
        return any(self._history.holds(at, self._record.id) for at in x.asked)

    def _by_fork(self):
        """Whether the record is part of what a fork does."""
        return self._fork != 0 and self._record.caused_by == self._fork

    # Decisions.

    def _decide(self, key, to):
        x = self._intent(key)
        again = x.stage in (DENIED, CANCELLED) and not self._reached(x)
        if again:
            x.asked = [self._record.id]
            x.move(to)
        elif x.stage == UNKNOWN or x.hidden:
            x.asked.append(self._record.id)
            x.move(to)
        elif x.stage == APPROVED and to != PARKED or to == DENIED and x.stage in (PARKED, REFUSED):
            x.move(to)
        elif to == READY and x.stage in (PARKED, REFUSED):
            self._orphan(key, x, "it was allowed, and nobody had approved it")
        else:
            self._duplicate(key, x, "it was decided before")

    def _denied(self, p):
        self._decide(p["key"], DENIED)

    def _emitted(self, p):
        key, decision = p["key"], p["decision"]
        if decision in ("allow", "approved"):
            self._decide(key, READY)
        elif decision == "reused":
            if not self._history.turned():
                self._orphan(key, self._intent(key), "it has another one's result, and no rollback left any behind")
            self._decide(key, ENDING)
        else:
            self._claim(key, decision)

    def _claim(self, key, decision):
        """A rollback led to its step again, and the ledger answers."""
        x = self._decided_on(key)
        may = {
            "recorded": (ANSWERED, ENDED), "rejected": (COMPENSATED,),
            "waits": (PARKED, READY, FLYING, DOUBTFUL, RESOLVED, HELD, COMPENSATING),
        }[decision]
        if x.stage == UNKNOWN and not x.hidden:
            self._orphan(key, x, "its decision is %s, and nobody had asked for it" % decision)
        elif self._reached(x):
            self._duplicate(key, x, "it is asked for again, and no rollback led to its step")
        elif not x.at(*may):
            self._orphan(key, x, "its decision is %s, and that is not where it stands" % decision)
        elif x.hidden and decision != "waits":
            x.move(may[0])
        x.asked.append(self._record.id)

    def _parked(self, p):
        key = p["key"]
        x = self._intent(key)
        if not self._by_fork():
            if _REPEAT_RULE in p["rules"] and not self._history.turned():
                self._orphan(key, x, "it is said to repeat another one, and no rollback left any behind")
            self._decide(key, PARKED)
        elif x.at(READY, RESOLVED):
            x.move(PARKED)
        else:
            self._orphan(key, x, "a fork parked it, and it was not open")

    def _resolved(self, p):
        key, how = p["key"], p["decision"]
        x = self._decided_on(key)
        wanted = PARKED if how in ("approve", "deny", "reuse") else DOUBTFUL
        if how == "deny" and x.stage == HELD:
            x.move(ENDING)
        elif not x.at(wanted):
            self._orphan(key, x, "a decision about it, and none was asked for")
        elif how == "executed":
            x.give_up(ENDING)
        elif how in ("not_executed", "retry"):
            x.give_up(RESOLVED)
        else:
            x.move({"approve": APPROVED, "deny": REFUSED, "reuse": ENDING}[how])

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
        if x.stage <= REFUSED and not x.hidden:
            self._orphan(key, x, "it was started without a decision of the gate")
        elif not x.at(READY, RESOLVED):
            self._duplicate(key, x, "it was started before")
        elif attempt != x.attempt + 1:
            self._duplicate(key, x, "the attempt is not the next one")
        x.move(FLYING)
        x.attempt, x.nonce = attempt, p["nonce"]

    def _finished(self, p):
        receipt = p["receipt"]
        key, at = receipt["key"], (receipt["attempt"], receipt["nonce"])
        x = self._intent(key)
        if x.attempt == 0:
            self._orphan(key, x, "it was finished and never started")
        elif at != (x.attempt, x.nonce) and at not in x.given:
            self._orphan(key, x, "its receipt answers no attempt that was started")
        elif not x.at(FLYING, DOUBTFUL):
            self._duplicate(key, x, "it was finished or given up before")
            return
        if _given_back(receipt):
            x.returned, x.by = x.returned + 1, self._record.id
        x.move(ANSWERED)

    def _late(self, p):
        receipt = p["receipt"]
        key, at = receipt["key"], (receipt["attempt"], receipt["nonce"])
        x = self._intent(key)
        if at in x.given:
            x.given.remove(at)
        elif not x.hidden:
            self._orphan(key, x, "its late receipt answers no attempt that was given up")

    def _waiting(self, p):
        x = self._decided_on(p["key"])
        if not x.at(ANSWERED) or p["attempt"] != x.attempt:
            self._orphan(p["key"], x, "it waits, and there was no receipt")
        else:
            x.move(READY if p["outcome"] == "retryable_failure" else COMPENSATING)

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
            x.give_up(READY)
        elif p["action"] == "fail":
            x.give_up(ENDING)
        else:
            x.move(DOUBTFUL)

    # Ends.

    def _ended(self, p):
        key, x = p["key"], self._decided_on(p["key"])
        if p["status"] == "cancelled":
            self._cancelled(key, x)
        elif x.hidden or x.stage == COMPENSATING:
            x.move({"compensated": COMPENSATED, "side_effect_committed": ANSWERED}.get(p["outcome"], ENDED))
        elif x.stage in (RESOLVED, ENDING):
            x.move(ENDED)
        elif x.stage in (ENDED, DENIED, CANCELLED, ANSWERED, COMPENSATED):
            self._duplicate(key, x, "it had ended before")
        else:
            self._orphan(key, x, "it ended, and nothing had decided that")

    def _cancelled(self, key, x):
        by_rollback = self._history.is_last(self._record.caused_by)
        if not x.at(READY, PARKED) or x.attempt > x.returned and not x.hidden:
            self._orphan(key, x, "it was cancelled, and it was attempted or had ended")
        elif not by_rollback and x.by != self._record.caused_by or self._reached(x):
            self._orphan(key, x, "it was cancelled, and no rollback left it behind")
        x.move(CANCELLED)

    # What changes the past.

    def _rolled_back(self, p):
        self._history.turn(self._record.id, p["at"] + 1)  # the snapshot.created is kept, too
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
            self._history.turn(self._record.id, 0)  # to where, nobody can tell
        elif kind in ("intent.emitted", "intent.parked", "intent.denied"):
            self._unnamed += 1
        elif not kind.startswith(("intent.", "invocation.")):
            return
        for x in self._intents.values():
            if x.stage not in _SETTLED:
                x.hidden = True

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
            "parked": sum(stage in (PARKED, HELD) for _, stage in stages),
            "confirmed_not": self.confirmed_not,
        }
