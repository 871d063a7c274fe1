"""Bundles: the published vector, and what is made up from a small world."""

import base64
import hashlib
import io
import os
import unittest

import cbor
import checkpoint
import ed25519
import forge
import items
import journal
import packing

VECTOR = os.path.join(os.path.dirname(__file__), "..", "..", "world", "bundle", "testdata", "vector.txt")
KEY = ed25519.public_key(forge.SEED)


def verify(data, believed=(), kept=()):
    return journal.verify(io.BytesIO(data), believed, kept)


def stored(number, kind, payload, caused_by=0, blob=None):
    return cbor.encode([number, 0, kind, caused_by, blob or cbor.encode([1, *payload])])


def manifest(**more):
    return cbor.encode({"world": "w", "effects": {"k": {}}, **more})


def world(*records, sign=True, rules=None):
    """A bundle of record 1 and what follows it."""
    out, rules = forge.Forge("w"), rules or manifest()
    out.blob(rules)
    out.record(stored(1, "world.created", ["w", "w", 1, hashlib.sha256(rules).digest(), "k", "s", "c"]))
    for number, record in enumerate(records, 2):
        out.record(stored(number, *record))
    if sign:
        out.sign()
    return out


def tick(n):
    return "clock.advanced", [n]


class Vector(unittest.TestCase):
    def setUp(self):
        self.bundles, self.values, self.packed = [], [], ""
        with open(VECTOR, encoding="utf-8") as file:
            self.keys = []
            for line in file:
                self.take(line.rstrip("\n"))

    def take(self, line):
        word = line.strip().split(" ")
        if line.startswith("key "):
            self.keys.append(bytes.fromhex(word[-1]))
        elif line.startswith("item 1,"):
            self.bundles.append(b"")
            self.values.append({})
        elif line.startswith("the range, packed"):
            self.packed = "-"
        elif line.startswith("  ") and word[0] in ("chain", "execution", "tree"):
            self.values[-1][" ".join(word[:2])] = word[-1]
        elif line.startswith("  ") and self.packed:
            self.packed += word[0]
        elif line.startswith("  ") and len(word) == 1 and self.bundles and not line.startswith("  |"):
            self.bundles[-1] += bytes.fromhex(word[0])

    def test_is_what_it_says(self):
        whole, part = (verify(packing.pack(b)) for b in self.bundles)
        for report, values in zip((whole, part), self.values):
            self.assertEqual(report["faults"], [])
            self.assertEqual(report["event_chain_root_hash"], values["chain root"])
        self.assertEqual(whole["execution_hash"], self.values[0]["execution hash"])
        self.assertEqual((whole["records"], whole["withheld"], whole["checkpoints"]["checked"]), (6, 1, 2))
        self.assertEqual((part["from"], part["execution_hash"]), (4, "0" * 64))
        self.assertEqual(verify(base64.b64decode(self.packed[1:]))["faults"], [])

    def test_who_signed_the_end_is_trusted(self):
        data = packing.pack(self.bundles[0])
        self.assertEqual([verify(data, [key])["trusted"] for key in self.keys], [False, True, True])

    def test_every_flipped_bit_of_the_file_is_found(self):
        data = base64.b64decode(self.packed[1:])
        for at in range(len(data)):
            bad = data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1:]
            try:
                self.assertFalse(verify(bad)["ok"], at)
            except (packing.Error, items.NotBundle):
                pass


class Made(unittest.TestCase):
    def assertFault(self, data, part, **how):
        faults = verify(data, **how)["faults"]
        self.assertTrue(any(part in f["message"] for f in faults), faults)

    def test_small_world_is_consistent(self):
        report = verify(world(tick(1), tick(2)).bytes())
        self.assertEqual((report["faults"], report["ok"], report["trusted"]), ([], True, False))
        self.assertTrue(verify(world(tick(1)).bytes(), [KEY])["trusted"])
        self.assertFalse(verify(world(tick(1)).bytes(), [b"\1" * 32])["trusted"])

    def test_items_that_were_moved_are_found(self):
        whole = world(tick(1), tick(2))
        for move in (
            lambda x: x.pop(2), lambda x: x.insert(2, x[2]), lambda x: x.insert(2, x.pop(3)), lambda x: x.pop(),
            lambda x: x.insert(2, cbor.encode(b"nobody needs it")), lambda x: x.insert(2, cbor.encode(1)),
            lambda x: x.append(cbor.encode(b"")), lambda x: x.insert(1, x.pop(0)), lambda x: x.append(b"\x9f"),
            lambda x: x.append(x[-1]),
        ):
            made = list(whole.items)
            move(made)
            self.assertFalse(verify(packing.pack(whole.header() + b"".join(made)))["ok"])

    def test_changed_record_breaks_its_link(self):
        whole = world(tick(1), tick(2))
        other = whole.items[2].replace(cbor.encode([1, 1]), cbor.encode([1, 7]))
        self.assertFault(packing.pack(whole.header() + b"".join([*whole.items[:2], other, *whole.items[3:]])), "link")

    def test_checkpoints_are_of_this_history(self):
        for how, why in (({"world": "v"}, "of world v"), ({"size": 9}, "its size is 9"), ({"root": b"\1" * 32}, "another history")):
            made = world(tick(1), sign=False)
            made.sign(**how)
            self.assertFault(made.bytes(), why)
        other = world(tick(7))
        kept = checkpoint.Checkpoint(cbor.decode(other.items[-1]))
        self.assertEqual(verify(other.bytes(), kept=[kept])["faults"], [])
        self.assertFault(world(tick(1)).bytes(), "another history", kept=[kept])

    def test_payload_that_is_gone_is_withheld_redacted_or_lost(self):
        content = cbor.encode([1, "e", 0, False, ["c/a"], "x" * 5000])
        blob = hashlib.sha256(content).digest()
        large = "event.submitted", None, 0, [blob, len(content)]
        self.assertFault(world(large).bytes(), "missing")
        self.assertEqual(verify(world(large, ("blob.redacted", [blob, "a", "r"])).bytes())["redacted"], 1)
        hidden = world(large)
        hidden.withheld.append(blob)
        report = verify(hidden.bytes())
        self.assertEqual((report["faults"], report["withheld"]), ([], 1))
        hidden.withheld.append(b"\1" * 32)
        self.assertFault(hidden.bytes(), "no record has")

    def test_payloads_are_as_their_kind_has_them(self):
        for kind, payload in (
            ("clock.advanced", []), ("clock.advanced", ["1"]), ("clock.advanced", [1, 2]), ("timer.fired", ["c", None]),
            ("cell.stepped", ["c/a", 1, "other", bytes(32), 0]), ("blob.redacted", [b"short", "a", "r"]),
        ):
            self.assertFalse(verify(world((kind, payload)).bytes())["ok"], kind)
        self.assertFault(world(("no.kind", [])).bytes(), "kind is unknown")


if __name__ == "__main__":
    unittest.main()
