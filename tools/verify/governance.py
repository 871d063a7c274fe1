"""Changes of the rules: docs/journal-format.md, *Approvals* and *What a verifier checks*.

A manifest may come into force only by a proposal that the rules before it allow: made of the manifest in force,
reported on since that is in force, and approved, by signatures over its terms, by as many keys as count.
"""

import hashlib

import cbor
import ed25519
from limits import WORK_OF_SIGNATURE, Limits
from records import Gone, is_hash, is_uint

_NONE = bytes(32)  # the digest of what a manifest does not have
_PROPOSAL_BYTES, _APPROVAL_BYTES = 1000, 200  # of memory, for what is kept of each


class Refused(ValueError):
    """Why a change of the rules does not count."""


class Seen:
    """What a manifest says about effects that persons are asked about, as digests."""

    def __init__(self, manifest):
        self._effects, self._caps = manifest.get("effects", {}), manifest.get("caps", {})
        self._policies = {x["name"]: (i, [x["when"], x["decide"]]) for i, x in enumerate(manifest.get("policies") or [])}

    @classmethod
    def of(cls, manifest):
        """What a manifest says; None where that cannot be read."""
        try:
            return None if manifest is None else cls(manifest)
        except (AttributeError, KeyError, TypeError):
            return None

    def holds(self, asked, limits):
        """Whether an intent.awaiting_approval has the digests of the manifest's effect, capability and policies."""
        kind, cap = asked["effect"], asked["cap"]
        found = sorted(self._policies[name] for name in set(asked["rules"]) if name in self._policies)
        return list(asked["seen"]) == [
            self._digest(self._effects[kind], limits) if kind in self._effects else _NONE,
            self._digest([cap, self._caps[cap]], limits) if cap in self._caps else _NONE,
            self._digest([policy for _, policy in found], limits) if found else _NONE,
        ]

    @staticmethod
    def _digest(value, limits):
        data = cbor.encode(value)
        limits.spend(1 + len(data) // 64)
        return hashlib.sha256(data).digest()


class Rules:
    """What the manifest in force says of who may change it. Without approvers any key may."""

    def __init__(self, manifest):
        says = manifest.get("governance") or {}
        self.four_eyes = says.get("four_eyes") is True
        self.approvers = frozenset(a.get("key") for a in says.get("approvers") or [])
        self.needed = says.get("approvals") or 1
        if not is_uint(self.needed) or not all(is_hash(key) for key in self.approvers):
            raise TypeError("approvals is no number, or a key is none")

    def check_key(self, key):
        """Refuse a key that is not listed."""
        if self.approvers and key not in self.approvers:
            raise Refused("key %s is not listed" % key.hex())


class Proposal:
    """What the journal has said of a proposal so far."""

    def __init__(self, record, base=None, candidate=None):
        self.record, self.base, self.candidate = record, base, candidate
        self.author = None  # key and signature, where the author has signed
        self.closed = False
        self.report, self.reported = bytes(32), 0  # the last report, and the record that holds it
        self.forged = False  # the report is not what its hash says
        self.approved = set()

    def begin(self, report, record):
        """Take a report, of which there are no approvals yet."""
        self.report, self.reported = report, record
        self.forged, self.approved = False, set()

    def needed(self, rules):
        """How many keys have to approve. Of four eyes the author has two, where it signed with a listed key."""
        if not rules.four_eyes or self.author and self.author[0] in rules.approvers:
            return rules.needed
        return max(2, rules.needed)


def statement(first, world, base, candidate, report=None):
    """What is signed."""
    lines = [first, "world " + world, "base " + base.hex(), "candidate " + candidate.hex()]
    if report is not None:
        lines.append("report " + report.hex())
    return "".join(line + "\n" for line in lines).encode()


class Governance:
    """The proposals of a world. fault is told of what does not count."""

    def __init__(self, fault, limits=None):
        self._fault = fault
        self._limits = limits or Limits()
        self._proposals = []
        self._signed = {}  # proposals whose author has signed, by signature
        self._world = ""
        self._manifest, self._since, self._rules = None, 0, None
        self._unread = 0  # the last report that is gone, and nobody knows of which proposal; 0: there is none
        self._now = 0
        self.applied = self.bad = 0
        self._take = {
            "manifest.proposed": self._propose, "manifest.shadowed": self._shadow,
            "manifest.approved": self._approve, "manifest.rejected": self._close,
            "manifest.withdrawn": self._close, "manifest.applied": self._apply, "world.forked": self._disown,
        }
        self._lost = {
            "manifest.shadowed": self._lose_report, "manifest.proposed": self._lose_proposal,
            "manifest.applied": self._lose_apply,
        }

    def take(self, record, world):
        """Judge a record about the rules by those in force before it."""
        table = self._lost if record.payload is Gone else self._take
        if record.kind not in table:
            return
        self._now, self._world = record.id, world
        try:
            table[record.kind](record.payload)
        except Refused as e:
            self._fault("proposal: %s" % e)

    def govern(self, manifest_hash, manifest, record):
        """Take that a manifest is in force from a record on. It is None where it cannot be read."""
        self._manifest, self._since = manifest_hash, record
        self._rules = None
        if manifest is None:
            return
        try:
            self._rules = Rules(manifest)
        except (AttributeError, TypeError):
            self._fault("what manifest %s says of governance has another form" % manifest_hash.hex())

    def proof(self):
        """How many proposals and applied changes there are, and how many of these should not be."""
        return {"proposals": len(self._proposals), "applied": self.applied, "bad": self.bad}

    def _open(self, number):
        if not 1 <= number <= len(self._proposals):
            raise Refused("there is no p%d" % number)
        proposal = self._proposals[number - 1]
        if proposal.closed:
            raise Refused("p%d was closed before" % number)
        return proposal

    def _propose(self, p):
        proposal = self._new(p["base"], p["candidate"])
        if p["signature"] is None:
            return
        signature = tuple(p["signature"])
        terms = statement("worldkernel proposal v1", self._world, p["base"], p["candidate"])
        if not self._is_signed(signature, terms):
            raise Refused("the author's signature is not one of its key over this proposal")
        if signature in self._signed:
            raise Refused("the author's signature is that of an earlier proposal")
        proposal.author = signature
        self._signed[signature] = proposal

    def _new(self, *of):
        self._limits.hold(_PROPOSAL_BYTES)
        self._proposals.append(Proposal(self._now, *of))
        return self._proposals[-1]

    def _is_signed(self, signature, text):
        """Whether a signature is that of its key over a text."""
        self._limits.spend(WORK_OF_SIGNATURE)
        return ed25519.verify(signature[0], text, signature[1])

    def _shadow(self, p):
        proposal = self._open(p["proposal"])
        proposal.begin(p["report_hash"], self._now)
        if hashlib.sha256(cbor.encode(p["report"])).digest() != p["report_hash"]:
            proposal.forged = True
            raise Refused("the report about p%d is not what its hash says" % p["proposal"])

    def _approve(self, p):
        proposal, key = self._open(p["proposal"]), p["signature"][0]
        report, at = proposal.report, proposal.reported
        if self._unread > max(at, proposal.record) and p["report_hash"] != report:
            report, at = p["report_hash"], self._unread  # it was about this one, by the word of the approver
        if at <= self._since or not any(report):
            raise Refused("no report since the manifest in force was put there says what it would do")
        asked = (self._world, proposal.base, proposal.candidate, report)
        if (p["world"], p["base"], p["candidate"], p["report_hash"]) != asked:
            raise Refused("the approval is about other terms")
        if not self._is_signed((key, p["signature"][1]), statement("worldkernel approval v1", *asked)):
            raise Refused("the approval's signature is not one of its key over its terms")
        if report == proposal.report and key in proposal.approved:
            raise Refused("key %s has approved p%d before" % (key.hex(), p["proposal"]))
        if self._rules is None:
            raise Refused("the manifest in force cannot be read, and it says whose approval counts")
        self._rules.check_key(key)
        if self._rules.four_eyes and proposal.author and proposal.author[0] == key:
            raise Refused("key %s is the author's, and four_eyes is on" % key.hex())
        if report != proposal.report:
            proposal.begin(report, at)
        self._limits.hold(_APPROVAL_BYTES)
        proposal.approved.add(key)

    def _close(self, p):
        self._open(p["proposal"]).closed = True

    def _apply(self, p):
        self.applied += 1
        try:
            proposal = self._open(p["proposal"])
            proposal.closed = True
            self._check_apply(proposal, p)
        except Refused:
            self.bad += 1
            raise

    def _check_apply(self, proposal, p):
        if not proposal.base == p["base"] == self._manifest:
            raise Refused("p%d was applied, and its base was not in force" % p["proposal"])
        if p["manifest"] != proposal.candidate:
            raise Refused("p%d was applied with another manifest than its candidate" % p["proposal"])
        if proposal.reported <= self._since or proposal.forged:
            raise Refused("p%d was applied without a report since its base is in force" % p["proposal"])
        if self._rules is None:
            raise Refused("the manifest in force cannot be read, and it says whose approval counts")
        have, need = len(proposal.approved), proposal.needed(self._rules)
        if have < need:
            raise Refused("p%d was applied with %d of %d approvals that count" % (p["proposal"], have, need))

    def _disown(self, _):
        """Another world begins, and what was signed was for its parent."""
        for signature, proposal in list(self._signed.items()):
            self._limits.spend(1)
            if not proposal.closed:
                proposal.author = None
                del self._signed[signature]

    def _lose_report(self, _):
        self._unread = self._now

    def _lose_proposal(self, _):
        self._new().closed = True

    def _lose_apply(self, _):
        self.applied += 1
        self.bad += 1
        self._manifest, self._since, self._rules = None, self._now, None
        raise Refused("a manifest was applied, and what the record said of it is gone")
