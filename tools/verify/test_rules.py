"""The ledger and the changes of the rules, story by story, and proofs."""

import base64
import hashlib
import json
import random
import unittest

import cbor
import checkpoint
import ed25519
import execution
import forge
import governance
import ledger
import limits
import merkle
import proof
import submits
import timers
from records import Gone
from test_bundle import stored
from test_forms import Merkle

K = b"\7" * 32


class Told:
    """A record as the ledger takes it."""

    def __init__(self, number, kind, payload, caused_by=0):
        self.id, self.kind, self.payload, self.caused_by = number, kind, payload, caused_by


def emitted(decision="allow", **more):
    return "intent.emitted", {"key": K, "decision": decision, "rules": [], **more}


def awaits(*rules):
    return "intent.awaiting_approval", {"key": K, "rules": list(rules)}


def started(attempt=1):
    return "invocation.started", {"key": K, "attempt": attempt, "nonce": bytes([attempt])}


def finished(attempt=1, kind="invocation.finished"):
    return kind, {"receipt": {"key": K, "attempt": attempt, "nonce": bytes([attempt]), "kind": "k", "status": "ok"}}


def about(kind, **payload):
    return kind, {"key": K, "attempt": 1, **payload}


def asked_again():
    return "intent.awaiting_approval", {"key": K, "rules": [], "reason": "the policies are others"}


def resolved(how):
    return "intent.resolved", {"key": K, "decision": how}


def ended(status="rejected", outcome="permanent_failure"):
    return "intent.ended", {"key": K, "status": status, "outcome": outcome}


def confirmed(mode, verdict="not_happened"):
    return "intent.confirmed", {"key": K, "mode": mode, "verdict": verdict}


def back(at, *effects):
    return "rollback.applied", {"at": at, "effects": list(effects)}


DENIED = ("intent.denied", {"key": K})
EXPIRED = about("invocation.expired")
AGAIN = about("intent.waiting", outcome="retryable_failure")
ASKS = about("intent.waiting", outcome="input_required")
ACCEPTS = about("intent.waiting", outcome="accepted")
UNDO = about("intent.waiting", outcome="compensatable_failure")
MADE_UP = [K, "", "", "", "", 0, "compensate"]


def doubt(action="ask"):
    return about("intent.in_doubt", action=action)


LOST = (emitted(), started(), EXPIRED, doubt())

LED_BACK = (emitted(), started(), about("intent.cancelled"), ("snapshot.created", {}), back(2), finished(), AGAIN, back(4))

GOOD = {
    "allowed": (emitted(), started(), finished()),
    "denied": (DENIED,),
    "allowed, and too late for its budget": (emitted(), DENIED),
    "tried, and too late for its budget": (emitted(), started(), finished(), AGAIN, ended()),
    "approved": (awaits(), resolved("approve"), emitted("approved"), started(), finished()),
    "approved and denied by the gate": (awaits(), resolved("approve"), DENIED),
    "disapproved": (awaits(), resolved("deny"), DENIED),
    "approval expired": (awaits(), DENIED),
    "asked though it was let through": (emitted(), asked_again(), resolved("approve"), emitted("approved"), started()),
    "asked again": (awaits(), asked_again(), resolved("approve"), asked_again(), DENIED),
    "stopped": (emitted(), resolved("stop"), DENIED),
    "stopped while awaiting approval": (awaits(), resolved("stop"), DENIED),
    "stopped after it asked": (emitted(), started(), finished(), ASKS, resolved("stop"), ended()),
    "stopped before another attempt": (*LOST, resolved("retry"), resolved("stop"), ended()),
    "denied before another attempt": (*LOST, resolved("retry"), ended("rejected")),
    "tried again": (emitted(), started(), finished(), AGAIN, started(2), finished(2)),
    "asked and answered": (emitted(), started(), finished(), ASKS, resolved("answer"), started(2), finished(2)),
    "asked and denied": (emitted(), started(), finished(), ASKS, resolved("deny"), ended()),
    "accepted and asked about": (emitted(), started(), finished(), ACCEPTS, started(2), finished(2)),
    "accepted, cancelled and asked about": (emitted(), started(), finished(), ACCEPTS, about("intent.cancelled"), started(2), finished(2)),
    "cancelled before it began": (emitted(), about("intent.cancelled"), (*ended("cancelled"), 3)),
    "cancelled under way": (emitted(), started(), about("intent.cancelled"), finished()),
    "cancelled, and led back to": (*LED_BACK, (*ended(), 9)),
    "undone": (emitted(), started(), finished(), UNDO, ended(outcome="compensated")),
    "in doubt, answered after all": (*LOST, finished()),
    "in doubt, decided, late": (*LOST, resolved("executed"), ended("ok"), finished(kind="invocation.late")),
    "in doubt, not executed": (*LOST, resolved("not_executed"), started(2), finished(2)),
    "in doubt, retried": (emitted(), started(), EXPIRED, doubt("retry"), started(2)),
    "in doubt, failed": (emitted(), started(), EXPIRED, doubt("fail"), ended()),
    "not confirmed": (emitted(), started(), finished(), confirmed("strict"), ended()),
    "confirmed by a person": (emitted(), started(), finished(), confirmed("human"), confirmed("person")),
    "cancelled and decided again": (emitted(), back(0), (*ended("cancelled"), 3), emitted()),
    "told again": (emitted(), started(), finished(), back(0), emitted("recorded")),
    "made up for": (emitted(), started(), finished(), back(0, MADE_UP), ended(outcome="compensated"),
                    emitted("rejected")),
    "repeats another": (back(0), awaits("possible_repeat"), resolved("reuse"), ended()),
    "forked while open": (emitted(), ("world.forked", {}), (*awaits(), 3)),
    "forked in flight": (emitted(), started(), ("world.forked", {}), (*doubt(), 4)),
    "decided in a payload that is gone": (("intent.emitted", Gone), started(), finished()),
    "in a payload that is gone": (emitted(), started(), ("invocation.finished", Gone), ended()),
}

BAD = {
    "duplicate": {
        "decided twice": (emitted(), emitted()),
        "denied while in flight": (emitted(), started(), DENIED),
        "denied after an attempt": (emitted(), started(), finished(), AGAIN, DENIED),
        "started twice": (emitted(), started(), started(2)),
        "attempt left out": (emitted(), started(2)),
        "finished twice": (emitted(), started(), finished(), finished()),
        "ended twice": (*LOST, resolved("executed"), ended(), ended()),
        "started after it was cancelled": (emitted(), started(), about("intent.cancelled"), finished(), AGAIN, started(2)),
        "started where a rollback led back to its cancelling": (*LED_BACK, started(2)),
        "cancelled twice": (emitted(), started(), about("intent.cancelled"), about("intent.cancelled")),
        "asked again without a rollback": (emitted(), started(), finished(), emitted("recorded")),
    },
    "orphan": {
        "started without decision": (started(),),
        "started while awaiting approval": (awaits(), started()),
        "started after a denial": (DENIED, started()),
        "allowed without approval": (awaits(), emitted("approved")),
        "finished without start": (emitted(), finished()),
        "receipt of another attempt": (emitted(), started(), finished(2)),
        "late without doubt": (emitted(), started(), finished(kind="invocation.late")),
        "late twice": (*GOOD["in doubt, decided, late"], finished(kind="invocation.late")),
        "waits without receipt": (emitted(), started(), AGAIN),
        "doubt without expiry": (emitted(), started(), doubt()),
        "decided without need": (emitted(), resolved("approve")),
        "stopped in flight": (emitted(), started(), resolved("stop")),
        "stopped in doubt": (*LOST, resolved("stop")),
        "stopped while the outside works on it": (emitted(), started(), finished(), ACCEPTS, resolved("stop")),
        "started after it was stopped": (emitted(), resolved("stop"), started()),
        "confirmed without receipt": (emitted(), confirmed("warn")),
        "person not asked": (emitted(), started(), finished(), confirmed("person")),
        "ended out of nothing": (emitted(), ended()),
        "cancelled without rollback": (emitted(), ended("cancelled")),
        "cancelled by its cell, and never asked for": (about("intent.cancelled"),),
        "cancelled by another cell": (emitted(cell="c/a"), started(), about("intent.cancelled", cell="c/b")),
        "cancelled before it began, and not ended": (emitted(), about("intent.cancelled"), ("clock.advanced", {"to": 1})),
        "cancelled after a start": (emitted(), started(), back(0), (*ended("cancelled"), 4)),
        "recorded while in flight": (emitted(), started(), back(0), emitted("recorded")),
        "repeats without rollback": (awaits("possible_repeat"),),
        "one gone, two unknown": (("intent.emitted", Gone), started(),
                                  ("invocation.started", {**started()[1], "key": b"o"})),
    },
}


class Bindings(unittest.TestCase):
    manifest = {
        "effects": {"pay": {"adapter": "exec"}}, "caps": {"desk": {"type": "any"}},
        "policies": [{"name": "a", "when": "true", "decide": "require_approval"}, {"name": "b", "when": "x", "decide": "allow"}],
    }

    def awaits(self, **more):
        def digest(value):
            return hashlib.sha256(cbor.encode(value)).digest()

        seen = (digest({"adapter": "exec"}), digest(["desk", {"type": "any"}]), digest([["true", "require_approval"], ["x", "allow"]]))
        return {"effect": "pay", "cap": "desk", "rules": ["b", "a", "possible_repeat"], "seen": seen, **more}

    def test_an_approval_is_bound_to_what_the_manifest_says(self):
        seen = governance.Seen.of(self.manifest)
        good, none = self.awaits(), bytes(32)
        self.assertTrue(seen.holds(good, limits.Limits()))
        self.assertTrue(seen.holds(self.awaits(effect="x", cap="", rules=[], seen=(none, none, none)), limits.Limits()))
        for i in range(3):
            for other in (none, bytes([good["seen"][i][0] ^ 1]) + good["seen"][i][1:]):
                forged = (*good["seen"][:i], other, *good["seen"][i + 1:])
                self.assertFalse(seen.holds(self.awaits(seen=forged), limits.Limits()))
        for more in ({"effect": "other"}, {"cap": "other"}, {"rules": ["a"]}, {"rules": []}):
            self.assertFalse(seen.holds(self.awaits(**more), limits.Limits()))
        self.assertIsNone(governance.Seen.of(None))
        self.assertIsNone(governance.Seen.of({"policies": [{}]}))


class Ledger(unittest.TestCase):
    def prove(self, story):
        faults = []
        told = ledger.Ledger(faults.append)
        for number, record in enumerate(story, 2):  # back(0) leaves all but record 1
            told.take(Told(number, *record))
        return faults, told.proof(True)

    def test_stories_that_journals_tell_hold(self):
        for name, story in GOOD.items():
            faults, proof_ = self.prove(story)
            self.assertEqual((faults, proof_["ok"]), ([], True), name)

    def test_stories_that_cannot_be_are_named(self):
        for sort, stories in BAD.items():
            for name, story in stories.items():
                faults, proof_ = self.prove(story)
                self.assertTrue(faults, name)
                other = {"duplicate": "orphan", "orphan": "duplicate"}[sort]
                self.assertEqual((len(proof_[sort + "_keys"]), proof_[other + "_keys"]), (1, []), name)

    def test_what_is_owed_is_counted(self):
        _, proof_ = self.prove(LOST)
        self.assertEqual((proof_["in_doubt"], proof_["pending_idempotency_keys"]), (1, [K.hex()]))
        self.assertEqual(self.prove([awaits()])[1]["awaiting"], 1)


def step(cell="c/a"):
    return "cell.stepped", {"cell": cell}


def setting(deadline, caused_by, tag="t", cell="c/a"):
    return "timer.set", {"cell": cell, "name": "n", "deadline": deadline, "tag": tag}, caused_by


def firing(caused_by, name="n"):
    return "timer.fired", {"cell": "c/a", "name": name}, caused_by


def cancelling(timer, caused_by, *receipts, tag="t"):
    return "cell.cancelled", {"cell": "c/a", "tag": tag, "timer": timer, "receipts": list(receipts)}, caused_by


def ticks(to):
    return "clock.advanced", {"to": to}


def snapshot(name="s", *gone):
    return "snapshot.created", {"name": name, "gone": list(gone)}


def returns(at, name="s"):
    return "rollback.applied", {"at": at, "effects": [], "snapshot": name}


SET = (ticks(1), step(), setting(5, 3))  # records 2 to 4

TIMERS_GOOD = {
    "fires": (*SET, ticks(5), firing(4)),
    "fires in a tick that others are jumped over in": (*SET, ticks(7), firing(4)),
    "set again": (*SET, step(), cancelling(4, 5), setting(9, 5), ticks(9), firing(7)),
    "two in a tick": (*SET, setting(4, 3, "u"), setting(5, 3, "v"), ticks(6), firing(5), firing(4), firing(6), step()),
    "is left where it does not fire": (*SET, snapshot(), step(), setting(6, 6, "u"), returns(4), ticks(6), firing(4), step()),
    "does not fire again": (*SET, ticks(5), firing(4), snapshot(), ticks(9), returns(6), ticks(12), step()),
    "permitted once somebody is there": (("clock.advanced", {"to": 1, "still": True}), step(), emitted(), ticks(1), started()),
    "set again when it is over": (*SET, ticks(5), firing(4), step(), setting(9, 7)),
    "of two cells": (*SET, step("c/b"), setting(5, 5, cell="c/b")),
    "a receipt": (*SET, emitted(), step(), cancelling(0, 6, 5, tag="x")),
    "fires again after a rollback, later": (*SET, snapshot(), ticks(5), firing(4), returns(4), ticks(9), firing(4)),
    "is set again after a rollback": (*SET, snapshot(), step(), cancelling(4, 6), returns(4), step(), cancelling(4, 9), setting(9, 9)),
    "set by what is gone": (ticks(1), step(), ("timer.set", Gone, 3), ticks(5), firing(4)),
    "cancelled by what is gone": (*SET, step(), ("cell.cancelled", Gone, 5), setting(9, 5)),
    "of a tick that is gone": (*SET, ("clock.advanced", Gone), firing(4)),
    "of a rollback that is gone": (*SET, ticks(5), firing(4), snapshot(), ("rollback.applied", Gone), step(), setting(9, 9)),
}

TIMERS_BAD = {
    "fires twice": (*SET, ticks(5), firing(4), firing(4)),
    "fires, and fired in what is gone": (*SET, ticks(5), ("timer.fired", Gone, 4), firing(4)),
    "set by what is gone, fires twice": (ticks(1), step(), ("timer.set", Gone, 3), ticks(5), firing(4), firing(4)),
    "does not fire": (*SET, ticks(5), step()),
    "does not fire in a tick that others are jumped over in": (*SET, ticks(7), ticks(8)),
    "does not fire after a rollback": (*SET, snapshot(), ticks(5), firing(4), returns(4), ticks(9), step()),
    "does not fire, set after a rollback": (*SET, snapshot(), returns(4), step(), setting(7, 7, "u"), ticks(9), firing(4), step()),
    "fires before one that was set before": (*SET, setting(5, 3, "u"), ticks(6), firing(5), firing(4)),
    "fires before one that is due before": (*SET, setting(4, 3, "u"), ticks(6), firing(4), firing(5)),
    "permitted while nobody is there": (("clock.advanced", {"to": 1, "still": True}), step(), emitted(), started()),
    "fires early": (*SET, ticks(4), firing(4)),
    "fires late": (*SET, ticks(5), ticks(6), firing(4)),
    "fires and was never set": (*SET, ticks(5), firing(3)),
    "fires as another": (*SET, ticks(5), firing(4, "m")),
    "fires when it was cancelled": (*SET, step(), cancelling(4, 5), ticks(5), firing(4)),
    "fires where it was left": (snapshot(), *(ticks(1), step(), setting(5, 4)), returns(1), ticks(9), firing(5)),
    "fires too early after a rollback": (*SET, snapshot(), ticks(4), returns(4), ticks(5), firing(4)),
    "set for a tick that has come": (ticks(1), step(), setting(1, 3)),
    "set by another's step": (ticks(1), step("c/b"), setting(5, 3)),
    "set by no step": (ticks(1), step(), setting(5, 2)),
    "set by a step before": (ticks(1), step(), step(), setting(5, 3)),
    "set while another has the tag": (*SET, step(), setting(9, 5)),
    "cancelled twice": (*SET, step(), cancelling(4, 5), cancelling(4, 5)),
    "cancelled as another": (*SET, step(), cancelling(4, 5, tag="x")),
    "cancelled, and named by nobody": (*SET, emitted(), step(), cancelling(0, 6, 5)),
    "nothing is cancelled": (*SET, step(), cancelling(0, 5, tag="x")),
    "a receipt of later": (*SET, step(), cancelling(4, 5, 6)),
    "a receipt that nothing brought": (*SET, step(), cancelling(4, 5, 2)),
}


class Submits(unittest.TestCase):
    def faults(self, *events):
        faults = []
        told = submits.Submits(faults.append)
        for number, payload in enumerate(events, 2):
            told.take(Told(number, "event.submitted", payload))
        return len(faults)

    def test_events_come_one_by_one_under_their_keys(self):
        def under(nth, key="k", of=b"1"):
            return {"key": [key, of, nth]}

        none = {"key": None}
        self.assertEqual(self.faults(none, under(1), under(1, "l"), none, under(2), under(3), under(1), under(2)), 0)
        self.assertEqual(self.faults(Gone, under(5), under(6)), 0)
        for events in ([under(2)], [under(1), under(3)], [under(1), under(2, of=b"2")], [under(1), under(2, "l")], [under(0)],
                       [under(1, "")], [under(1, "k" * 256)], [under(1, "\n")]):
            self.assertEqual(self.faults(*events), 1, events)


class Timers(unittest.TestCase):
    def faults(self, story):
        faults = []
        allowed = limits.Limits()
        of = ledger.Ledger(faults.append, allowed)
        told = timers.Timers(faults.append, of.history, allowed)
        for number, record in enumerate(story, 2):
            of.take(Told(number, *record))
            told.take(Told(number, *record))
        return faults

    def test_stories_that_journals_tell_hold(self):
        for name, story in TIMERS_GOOD.items():
            self.assertEqual(self.faults(story), [], name)

    def test_stories_that_cannot_be_are_named(self):
        for name, story in TIMERS_BAD.items():
            self.assertEqual(len(self.faults(story)), 2 if name == "fires late" else 1, name)  # it has not fired in time, either

    def test_what_is_over_is_forgotten(self):
        allowed = limits.Limits()
        of = ledger.Ledger(self.fail, allowed)
        told = timers.Timers(self.fail, of.history, allowed)
        number, tick = 2, 1
        for _ in range(1000):
            for record in (step(), setting(tick + 1, number), ticks(tick + 1), firing(number + 1)):
                told.take(Told(number, *record))
                number += 1
            tick += 1
        self.assertEqual(allowed.held, 0)


class History(unittest.TestCase):
    def test_rollback_leaves_what_is_between(self):
        history = ledger.History()
        history.turn(10, 4)
        history.turn(20, 12)  # to a snapshot after the first one
        held = [n for n in range(1, 26) if history.holds(n)]
        self.assertEqual(held, [*range(1, 5), *range(10, 13), *range(20, 26)])
        history.turn(30, 7)   # to one in the part that the first one left
        held = [n for n in range(1, 35) if history.holds(n)]
        self.assertEqual(held, [*range(1, 8), *range(30, 35)])


    def test_history_is_what_led_to_it(self):
        """Against a list: before[i] is the record that record i went on from, 0 for none."""
        draw = random.Random(1)
        for _ in range(200):
            history, before, asked = ledger.History(), [0, 0], None
            places = []
            for record in range(2, draw.randint(3, 60)):
                to = record - 1
                if draw.random() < 0.4:
                    to = draw.randint(1, record - 1)  # also to a part that was left
                    history.turn(record, to)
                before.append(to)
                if draw.random() < 0.2:
                    asked = history.ask(asked, record)
                    places.append(record)
                led, at = set(), record
                while at:
                    led.add(at)
                    at = before[at]
                self.assertEqual([n for n in range(1, record + 1) if history.holds(n)], sorted(led), before)
                self.assertEqual(history.reached(asked), bool(led.intersection(places)), (before, places))

    def test_work_is_in_proportion(self):
        spent = []
        for count in (1000, 2000, 4000):
            allowed = limits.Limits()
            told = ledger.Ledger(lambda _: None, allowed)
            for n in range(count):
                told.take(Told(3 * n + 2, *awaits()))
                told.take(Told(3 * n + 3, "rollback.applied", {"at": 3 * n if n % 2 else 0, "effects": []}))
                told.take(Told(3 * n + 4, "intent.awaiting_approval", Gone))
            spent.append(allowed.spent)
        self.assertLess(spent[2] / spent[1], 2.5)
        self.assertLess(spent[1] / spent[0], 2.5)


class Executed(unittest.TestCase):
    def lines(self, *story):
        run = execution.Execution()
        for kind, payload in story:
            run.take(Told(0, kind, payload))
        return run.result()

    def test_intent_has_the_line_of_its_last_outcome(self):
        said = {"status": "error", "outcome": "retryable_failure", "key": K}
        story = ("intent.emitted", {"key": K, "step": "s"}), ("invocation.finished", {"receipt": said})
        once = hashlib.sha256(b"s:permanent_failure\n").hexdigest()
        self.assertEqual(self.lines(*story), once)
        self.assertEqual(self.lines(*story, story[1]), once)
        self.assertEqual(self.lines(*story, ("intent.waiting", {"key": K})), hashlib.sha256().hexdigest())
        again = hashlib.sha256(b"s:permanent_failure\n" * 2).hexdigest()
        self.assertEqual(self.lines(*story, *story), again)
        self.assertEqual(self.lines(*story, ("cell.failed", Gone)), "0" * 64)


class Governance(unittest.TestCase):
    seeds = [bytes([n]) * 32 for n in (1, 2, 3)]
    report = {"v": 1}

    def setUp(self):
        self.keys = [ed25519.public_key(seed) for seed in self.seeds]
        self.hash = hashlib.sha256(cbor.encode(self.report)).digest()
        self.faults = []
        self.now = 1
        self.told = governance.Governance(self.faults.append)
        self.base, self.next = b"\1" * 32, b"\2" * 32

    def govern(self, **rules):
        self.told.govern(self.base, {"governance": rules}, self.now)

    def listed(self, *which, **more):
        self.govern(approvers=[{"name": "n", "key": self.keys[n]} for n in which], **more)

    def tell(self, kind, **payload):
        self.now += 1
        self.told.take(Told(self.now, kind, payload or Gone), "w")

    def propose(self, by=None):
        text = governance.statement("worldkernel proposal v1", "w", self.base, self.next)
        signature = None if by is None else [self.keys[by], ed25519.sign(self.seeds[by], text)]
        self.tell("manifest.proposed", base=self.base, candidate=self.next, signature=signature)

    def shadow(self, **more):
        self.tell("manifest.shadowed", **{"proposal": 1, "report_hash": self.hash, "report": self.report, **more})

    def approve(self, by, world="w", report=None):
        terms = world, self.base, self.next, report or self.hash
        signature = ed25519.sign(self.seeds[by], governance.statement("worldkernel approval v1", *terms))
        self.tell("manifest.approved", proposal=1, world=world, base=self.base, candidate=self.next,
                  report_hash=terms[3], signature=[self.keys[by], signature])

    def apply(self):
        self.tell("manifest.applied", proposal=1, base=self.base, manifest=self.next)
        return self.told.bad

    def test_one_key_is_enough_where_none_is_listed(self):
        self.govern()
        self.propose()
        self.shadow()
        self.approve(0)
        self.assertEqual((self.apply(), self.faults), (0, []))
        self.assertEqual(self.apply(), 1, "it is closed")

    def test_only_listed_keys_count_and_once(self):
        self.listed(0, 1, approvals=2)
        self.propose()
        self.shadow()
        for by, good in ((0, True), (0, False), (2, False)):
            before = len(self.faults)
            self.approve(by)
            self.assertEqual(len(self.faults) == before, good)
        self.assertEqual(self.apply(), 1)

    def test_four_eyes_are_two_keys(self):
        for author, approvers, bad in ((0, (0,), 1), (0, (1,), 0), (None, (1,), 1), (None, (0, 1), 0), (2, (0,), 1)):
            self.setUp()
            self.listed(0, 1, four_eyes=True)
            self.propose(author)
            self.shadow()
            for by in approvers:
                self.approve(by)
            self.assertEqual(self.apply(), bad, (author, approvers))

    def test_approvals_are_of_the_last_report_of_this_world(self):
        self.govern()
        self.propose()
        self.approve(0)
        self.shadow()
        self.approve(0, world="v")
        self.approve(0, report=b"\3" * 32)
        self.assertEqual((len(self.faults), self.apply()), (3, 1))
        self.setUp()
        self.govern()
        self.propose()
        self.shadow()
        self.approve(0)
        self.shadow()
        self.assertEqual(self.apply(), 1, "another report needs other approvals")
        self.setUp()
        self.govern()
        self.propose()
        self.shadow()
        self.approve(0)
        self.govern()
        self.assertEqual(self.apply(), 1, "the report is from before the base was in force")

    def test_report_that_is_gone_is_what_its_approvers_signed(self):
        self.govern()
        self.propose()
        self.tell("manifest.shadowed")
        self.approve(0, report=b"\3" * 32)
        self.assertEqual((self.apply(), self.faults), (0, []))


def text(raw):
    return base64.b64encode(raw).decode()


class Proofs(unittest.TestCase):
    def made(self, **more):
        prover = Merkle()
        records = [stored(n, "clock.advanced", [n, False]) for n in range(1, 12)]
        head = forge.Forge("w")
        for record in records:
            head.record(record)
        head.sign()
        return {
            "schema": proof.SCHEMA, "world": "w", "record": 5, "bytes": text(records[4]),
            "inclusion": [text(x) for x in prover.path(4, records)], "checkpoint": cbor.decode(head.items[-1]),
            "signers": [checkpoint.format_key("w", ed25519.public_key(forge.SEED))], **more,
        }

    @staticmethod
    def verify(made, believed=()):
        return proof.verify(json.dumps(made).encode(), believed)

    def test_record_is_in_what_was_signed(self):
        shown = self.verify(self.made())
        self.assertEqual((shown["ok"], shown["trusted"], shown["record"]["id"]), (True, False, 5))
        self.assertTrue(self.verify(self.made(), [ed25519.public_key(forge.SEED)])["trusted"])

    def test_other_proofs_show_nothing(self):
        good = self.made()
        other = text(bytes(32))
        path = good["inclusion"][1:]
        changed = text(stored(5, "clock.advanced", [9, False]))
        for change in ({"record": 6}, {"inclusion": path}, {"inclusion": [other, *path]}, {"bytes": changed},
                       {"payload": other},
                       {"world": "v"}, {"checkpoint": good["checkpoint"].replace("11", "12")}):
            self.assertFalse(self.verify({**good, **change})["ok"], change)
        for change in ({"more": 1}, {"signers": []}, {"older": good["checkpoint"]}, {"schema": "x"}, {"record": 1.0},
                       {"bytes": "x"}):
            with self.assertRaises(proof.NotProof, msg=change):
                self.verify({**good, **change})

    def test_record_has_its_own_number(self):
        head = forge.Forge("w")
        head.record(stored(2, "clock.advanced", [1, False]))
        head.sign()
        made = self.made(record=1, bytes=text(stored(2, "clock.advanced", [1, False])), inclusion=[])
        self.assertFalse(self.verify({**made, "checkpoint": cbor.decode(head.items[-1])})["ok"])

    def test_cells_lead_to_the_root(self):
        names = ["a/%d" % n for n in range(9)]
        leaves = {hashlib.sha256(n.encode()).digest(): hashlib.sha256(b"v" + n.encode()).digest() for n in names}
        root = self.sparse(leaves, 0)
        for name in [*names, "b/1", "b/2"]:
            key = hashlib.sha256(name.encode()).digest()
            siblings, below = self.way(leaves, key)
            at = proof._tree_root(key, siblings, below)
            self.assertEqual(at, root, name)
            self.assertNotEqual(proof._tree_root(key, [b"\1" * 32, *siblings[1:]], below), root)

    def sparse(self, leaves, depth):
        """The root as journal-format.md defines it."""
        if not leaves:
            return bytes(32)
        if len(leaves) == 1:
            (key, value), = leaves.items()
            return hashlib.sha256(b"\0" + key + value).digest()
        halves = self.halves(leaves, depth)
        return hashlib.sha256(b"\1" + b"".join(self.sparse(half, depth + 1) for half in halves)).digest()

    @staticmethod
    def halves(leaves, depth):
        sides = {}, {}
        for key, value in leaves.items():
            sides[int.from_bytes(key, "big") >> (255 - depth) & 1][key] = value
        return sides

    def way(self, leaves, key):
        siblings, depth = [], 0
        while len(leaves) > 1:
            halves = self.halves(leaves, depth)
            side = int.from_bytes(key, "big") >> (255 - depth) & 1
            siblings.append(self.sparse(halves[1 - side], depth + 1))
            leaves, depth = halves[side], depth + 1
        return siblings, list(next(iter(leaves.items()))) if leaves else None


if __name__ == "__main__":
    unittest.main()
