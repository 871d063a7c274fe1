"""A bundle, read once from its first item to its last: docs/bundle-format.md, *What a verifier does*."""

import base64
import hashlib
import sys

import cbor
import checkpoint
import items
import merkle
import pieces
import receipts
from execution import Execution
from governance import Governance, Seen
from heads import Heads
from ledger import Ledger
from limits import WORK_OF_RECORD, Beyond, Limits
from records import Error, Gone, Record
from report import NO_HASH, Report, brief, place_of
from blobs import JournalBlobs
from submits import Submits
from timers import Timers

_UNPLACED_BYTES = 300  # of memory, besides the name of a world
_BRINGS = {"world.created": "manifest", "world.forked": "manifest", "manifest.applied": "manifest",
           "manifest.proposed": "candidate"}


def verify(file, believed=(), kept=(), limits=None):
    """The report on the bundle in a file, for somebody who believes the owners of keys, and has kept checkpoints.

    packing.Error or items.NotBundle says that it is none. What is beyond the limits is refused.
    """
    limits = limits or Limits()
    unpacker, stream = items.stream_of(file, limits)
    try:
        first = next(iter(stream), None)
        if first is None:
            raise items.NotBundle(unpacker.fault or stream.fault or "it is empty")
        journal = Journal(items.Header(first, limits), believed, kept, limits)
    except Beyond as e:
        raise items.NotBundle(str(e)) from None
    try:
        for raw in stream:
            journal.take(raw)
    except Beyond as e:
        journal.report.fault("bundle", "%s; what follows was not read" % e)
        return journal.stop()
    for _ in stream.rest():
        pass  # behind what ended the reading, for the hash at the end
    for fault in (unpacker.fault, stream.fault):
        if fault:
            journal.report.fault("bundle", fault)
    return journal.close()


class Journal:
    """What is known of a journal while its records come."""

    def __init__(self, header, believed, kept, limits):
        self.report = Report()
        self._limits = limits
        self._blobs = JournalBlobs(header, self.report.fault, limits)
        self._pieces = pieces.Pieces(lambda item, message: self.report.fault("item %d" % item, message), limits)
        self._header = header
        self._whole = header.first == 1
        self._chain, self._lost, self._broken = header.root, False, False
        self._expected = header.first
        self._item = 1
        self._sealed = False  # the last item is a checkpoint
        self._seen = None  # what approvals can be bound to
        self._verified = frozenset()  # kinds of effects that the manifest in force has a verifier for
        # In a range a world.forked may still say that the world was another one before it. Until then receipts and
        # checkpoints are counted by the world that they name, with the first place.
        self._world = header.world if self._whole else None
        self._unplaced = {}
        self._created = False
        self._receipts = {"checked": 0, "bad": 0, "unverifiable": 0, "inherited": 0}
        self._no_verifier = 0
        self._checkpoints = 0
        self._execution = Execution(limits)
        self._ledger = Ledger(self._fault, limits)
        self._timers = Timers(self._fault, self._ledger.history, limits)
        self._submits = Submits(self._fault, limits)
        self._governance = Governance(self._fault, limits)
        self._heads = Heads(self.report.fault, header, believed, kept, limits)
        for fault in header.faults:
            self.report.fault("header", fault)
        try:
            self._tree = merkle.Tree(header.first - 1, header.nodes)
        except merkle.Error:
            self._tree = merkle.Tree(0, [])  # that is a fault of the header, and no checkpoint will fit
        self._reach()

    def _fault(self, message):
        self.report.fault(place_of(self._expected), message)

    def take(self, raw):
        """Take the next item."""
        self._item += 1
        self._sealed = False
        major = raw[0] >> 5
        if major == 4:
            self._take_record(raw)
            return
        try:
            value = cbor.decode(raw, self._limits)
        except cbor.Error as e:
            self._item_fault(str(e))
            return
        if isinstance(value, bytes):
            self._blobs.put(value, self._item)
        elif isinstance(value, str):
            self._take_checkpoint(value)
        else:
            self._item_fault("it is no blob, record or checkpoint")

    def _item_fault(self, message):
        self.report.fault("item %d" % self._item, message)

    def _take_checkpoint(self, text):
        self._checkpoints += 1
        self._blobs.settle()  # a blob stands right before its record
        self._pieces.settle()
        if self._checkpoints > items.MAX_CHECKPOINTS:
            self._item_fault("there are more checkpoints than are allowed")
        of = self._heads.take(text, self._world, self._tree)
        if of is not None:
            self._take_head(of)
        self._sealed = True

    def _reach(self):
        for of in self._heads.reach(self._world, self._tree):
            self._take_head(of)

    def _take_head(self, of):
        if self._world is None:
            self._put_off(self._heads.refuse, of, "checkpoint #%d" % self._tree.size)

    # Records.

    def _take_record(self, raw):
        parts = items.split_record(raw)
        if parts is None:
            self._take_pieces(raw)
            return
        stored, link = parts
        try:
            self._limits.spend(WORK_OF_RECORD)
            record = Record(stored, self._limits)
        except Error as e:
            self._fault(str(e))
            self._lose()
            record = None
        if record is not None:
            self._take_id(record)
            self._link(record, stored, link)
            self._open(record)
        self._pieces.settle()
        self._tree.append(stored)
        self._reach()
        self._expected += 1
        self._blobs.settle()

    def _take_pieces(self, raw):
        try:
            value = cbor.decode(raw, self._limits)
            what = pieces.kind_of(value)
            if what == "piece":
                self._pieces.put(value[0], self._item)
                return
            if what == "blob":
                self._blobs.put(self._pieces.blob(*value), self._item)
                return
        except (cbor.Error, pieces.Error) as e:
            self._item_fault(str(e))
            return
        self._item_fault("it is no record with a link, no piece and no blob in pieces")

    def _lose(self):
        if not self._lost:
            self._lost = True
            self._fault("the chain cannot be computed from here on: this is no record")

    def _take_id(self, record):
        if record.id != self._expected:
            self._fault("record #%d is here: records are missing, repeated or out of order" % record.id)
            self._expected = record.id

    def _link(self, record, stored, link):
        if self._lost:
            return
        self._before = self._chain
        text = b"\n%d %s " % (record.id, record.kind.encode())
        self._chain = hashlib.sha256(self._chain + text + base64.b64encode(stored)).digest()
        if self._chain[:items.LINK_BYTES] != link and not self._broken:
            self._broken = True
            self._fault("the chain root does not begin with its link: this record or an earlier one was changed")

    def _open(self, record):
        """Find the payload of a record, and judge what it says."""
        try:
            record.open(self._blobs.payload(record))
        except Error as e:
            self._fault(str(e))
            return
        except KeyError:
            record.payload = Gone
        self._judge(record)

    def _judge(self, record):
        p, kind = record.payload, record.kind
        if p is not Gone:
            self._check_place(record)
            if self._whole:
                self._governance.take(record, self._world)
            self._bring(record)
            if kind in ("invocation.finished", "invocation.late"):
                if not self._take_receipt(p["receipt"]):
                    return
            elif kind == "world.forked":
                self._fork(p)
            elif kind == "intent.awaiting_approval" and self._whole and self._seen and not self._seen.holds(p, self._limits):
                self._fault("intent %s: what its approval is bound to is not what the manifest in force says" % p["key"].hex())
            elif kind == "blob.redacted":
                self._blobs.redact(p["blob"])
        elif self._whole:
            self._governance.take(record, self._world)
        if self._whole:
            self._execution.take(record)
            self._ledger.take(record)
            self._timers.take(record)
            self._submits.take(record)
            if kind == "invocation.finished" and p is not Gone:
                self._no_verifier += p["receipt"]["kind"] not in self._verified

    def _check_place(self, record):
        """What a record says of where it stands."""
        p, kind = record.payload, record.kind
        if kind == "world.created":
            if record.id != 1:
                self._fault("a world is created by record 1")
            self._created, self._world = True, self._named(p["world"])
        elif kind in ("snapshot.created", "world.forked") and not self._lost and not self._broken:
            if p["at"] != record.id - 1 or p["chain_root"] != self._before:
                self._fault("the chain root that it names is not that of the record before it")

    def _named(self, world):
        """The id that a record gives to the world. No checkpoint could name a longer one, and it is used at many records."""
        if len(world) > checkpoint.MAX_BYTES:
            self._fault("the world's id is longer than any checkpoint")
            return ""
        return world

    def _fork(self, p):
        if self._world is None:
            self._place(p["parent"])
        elif p["parent"] != self._world:
            self._fault("it is a fork of world %s, and this is world %s" % (brief(p["parent"]), brief(self._world)))
        self._world = self._named(p["world"])
        counts = self._receipts
        counts["inherited"] += counts["checked"] + counts["unverifiable"]
        counts["checked"] = counts["unverifiable"] = 0

    def _take_receipt(self, receipt):
        """Whether it is a receipt at all. What it says counts also where its hash is wrong: that is a fault already."""
        try:
            receipts.check(receipt)
        except Error as e:
            self._receipts["bad"] += 1
            self._fault(str(e))
            return False
        if self._world not in (None, receipt["world"]):
            self._receipts["bad"] += 1
            self._fault("its receipt is of world %s, and this is world %s" % (brief(receipt["world"]), brief(self._world)))
        elif receipts.hash_of(receipt) != receipt.get("hash"):
            self._receipts["bad"] += 1
            self._fault("its receipt has another hash")
        else:
            self._receipts["unverifiable"] += 1
            if self._world is None:
                self._put_off(self._refuse_receipts, receipt["world"], place_of(self._expected))
        return True

    def _refuse_receipts(self, count):
        self._receipts["unverifiable"] -= count
        self._receipts["bad"] += count

    def _put_off(self, refuse, world, place):
        """Note of which world something is, until it is known which world this is."""
        if (refuse, world) not in self._unplaced:
            self._limits.hold(_UNPLACED_BYTES + sys.getsizeof(world))
        self._unplaced.setdefault((refuse, world), [0, place])[0] += 1

    def _place(self, is_world):
        """Take which world the records so far are of."""
        for (refuse, world), (count, place) in self._unplaced.items():
            if world != is_world:
                refuse(count)
                self.report.fault(place, "here and %d times more something is of world %s, and this is world %s"
                                  % (count - 1, brief(world), brief(is_world)))
        self._unplaced.clear()

    def _bring(self, record):
        """A record that brings a manifest needs it, and all that it names."""
        name = _BRINGS.get(record.kind)
        if name is None:
            return
        blob = record.payload[name]
        manifest = self._blobs.manifest(blob, place_of(record.id))
        if record.kind == "manifest.proposed":
            return
        self._seen = Seen.of(manifest)
        if manifest is not None:
            effects = manifest.get("effects", {})
            self._verified = frozenset(kind for kind, effect in effects.items() if effect.get("verify"))
        self._governance.govern(blob, manifest, record.id)

    # The end.

    def close(self):
        """The report, when all items were taken."""
        last = self._expected - 1
        self._blobs.settle()
        if last != self._header.last:
            self.report.fault("bundle", "it ends with record #%d, and should with #%d" % (last, self._header.last))
        if not self._sealed:
            self.report.fault("bundle", "it does not end with a checkpoint of its last record")
        if self._whole and not self._created:
            self.report.fault("world", "record 1 does not say which world it is")
        if self._world is None:
            self._place(self._header.world)
            self._world = self._header.world
        if self._world != self._header.world:
            self.report.fault("world", "it is %s, and the header says %s" % (brief(self._world), brief(self._header.world)))
        self._heads.close()
        self._pieces.close()
        self._fill(last, self._blobs.close())
        return self.report.result()

    def stop(self):
        """The report, when the reading ended because of a limit: nothing is missing that was not read."""
        self._pieces.close()
        self._blobs.discard()
        self._fill(self._expected - 1, 0)
        self.report.values["trusted"] = False
        return self.report.result()

    def _fill(self, last, withheld):
        unknown = not self._whole or self._execution.unknown
        ledger = self._ledger.proof(self._whole)
        ledger["no_verifier"] = self._no_verifier
        values = self.report.values
        values["trusted"] = self._heads.trusts(last)
        values["world_id"] = self._world
        values["records"] = last
        if not self._whole:
            values["from"] = self._header.first
        values["execution_hash"] = NO_HASH if unknown else self._execution.result()
        values["event_chain_root_hash"] = NO_HASH if self._lost or not self._chain else self._chain.hex()
        values["tool_invocation_ledger_proof"] = ledger
        values["receipts"] = self._receipts
        values["governance"] = self._governance.proof()
        values["redacted"] = self._blobs.redacted
        if withheld:
            values["withheld"] = withheld
        values["checkpoints"] = self._heads.proof()

