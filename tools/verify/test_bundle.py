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
from limits import Beyond

VECTORS = os.path.join(os.path.dirname(__file__), "..", "..", "journal", "bundle", "testdata")
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
    out.record(stored(1, "world.created", ["w", "w", 1, hashlib.sha256(rules).digest(), "k", [["cel", "c"], ["starlark", "s"]]]))
    for number, record in enumerate(records, 2):
        out.record(stored(number, *record))
    if sign:
        out.sign()
    return out


def tick(n):
    return "clock.advanced", [n, False]


class Vector(unittest.TestCase):
    def setUp(self):
        self.bundles, self.values, self.packed = [], [], ""
        with open(os.path.join(VECTORS, "vector.txt"), encoding="utf-8") as file:
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

    def test_engines_are_listed_in_one_way(self):
        rules = manifest()
        head = ["w", "w", 1, hashlib.sha256(rules).digest(), "k"]
        cel, starlark = ["cel", "c"], ["starlark", "s"]
        for ok, body in (
            (True, [1, *head, [cel, starlark]]), (True, [1, *head, []]), (False, [1, *head, "s", "c"]),
            (False, [1, *head, [starlark, cel]]), (False, [1, *head, [cel, cel]]), (False, [1, *head, None]),
            (False, [2, *head, [cel, starlark]]),
        ):
            out = forge.Forge("w")
            out.blob(rules)
            out.record(cbor.encode([1, 0, "world.created", 0, cbor.encode(body)]))
            out.sign()
            self.assertEqual(verify(out.bytes())["ok"], ok, body)

    def test_changed_record_breaks_its_link(self):
        whole = world(tick(1), tick(2))
        other = whole.items[2].replace(cbor.encode([1, 1, False]), cbor.encode([1, 7, False]))
        self.assertFault(packing.pack(whole.header() + b"".join([*whole.items[:2], other, *whole.items[3:]])), "link")

    def test_checkpoints_are_of_this_history(self):
        for how, why in (({"world": "v"}, "of world v"), ({"size": 9}, "its size is 9"),
                         ({"root": b"\1" * 32}, "another history")):
            made = world(tick(1), sign=False)
            made.sign(**how)
            self.assertFault(made.bytes(), why)
        other = world(tick(7))
        kept = checkpoint.Checkpoint(cbor.decode(other.items[-1]))
        self.assertEqual(verify(other.bytes(), kept=[kept])["faults"], [])
        self.assertFault(world(tick(1)).bytes(), "another history", kept=[kept])

    def test_last_item_is_a_checkpoint(self):
        made = world(tick(1))
        made.record(stored(3, *tick(2)))
        self.assertFault(made.bytes(), "does not end with a checkpoint")

    def test_records_are_in_their_order(self):
        made = world(tick(1), sign=False)
        made.record(stored(4, *tick(2)))
        made.sign()
        self.assertFault(made.bytes(), "out of order")

    def test_header_names_what_is_there(self):
        whole = world(tick(1))
        fields = cbor.decode(whole.header())
        for at, value, why in (
            (8, [KEY, KEY], "not ascending"), (8, sorted([KEY, b"\1" * 32]), "has signed no checkpoint"),
            (4, 9, "should with #9"), (2, "v", "it is w, and"), (5, bytes(32), "before the first"),
            (6, [b"\1" * 32], "number of nodes"), (8, [], "names no key"),
        ):
            header = cbor.encode([*fields[:at], value, *fields[at + 1:]])
            faults = verify(packing.pack(header + b"".join(whole.items)))["faults"]
            self.assertTrue(any(why in f["message"] for f in faults), (why, faults))

    def test_packing_has_one_form(self):
        data = world(tick(1)).bytes()
        self.assertFault(data + b"x", "bytes follow")
        self.assertFault(data[:4] + b"\1" + data[5:], "gzip header")
        self.assertFault(data[:-1], "last 58 bytes")
        self.assertFault(data[:-70], "cut off")
        with self.assertRaises(packing.Error):
            verify(b"PK" + data[2:])

    def test_blobs_are_there_once_and_not_withheld(self):
        content = cbor.encode([1, "e", 0, False, ["c/a"], None, "x" * 5000])
        blob = hashlib.sha256(content).digest()
        made = world(sign=False)
        made.blob(content)
        made.record(stored(2, "event.submitted", None, 0, [blob, len(content)]))
        made.record(stored(3, "event.submitted", None, 0, [blob, len(content)]))
        made.sign()
        self.assertEqual(verify(made.bytes())["faults"], [])
        made.items.insert(4, made.items[2])
        self.assertFault(made.bytes(), "was there before")
        del made.items[4]
        made.withheld.append(blob)
        self.assertFault(made.bytes(), "said to be withheld")
        self.assertFault(world(("event.submitted", None, 0, [blob, 4096])).bytes(), "neither bytes nor")

    def test_base64_has_one_form(self):
        made = world(tick(1))
        text = cbor.decode(made.items[-1])
        root = text.split("\n")[2]
        made.items[-1] = cbor.encode(text.replace(root, root[:-2] + chr(ord(root[-2]) + 1) + "="))
        self.assertFault(made.bytes(), "only form of base64")

    def test_payload_that_is_gone_is_withheld_redacted_or_lost(self):
        content = cbor.encode([1, "e", 0, False, ["c/a"], None, "x" * 5000])
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


class Pieces(unittest.TestCase):
    """A manifest in pieces: it is a blob as any."""

    rules = manifest(name="long " * 40)

    def of(self, *edited, sign=True):
        """A bundle whose manifest is in pieces, with other items in their place."""
        out = world(rules=self.rules)
        out.items[0:1] = edited
        return verify(out.bytes())

    def piece(self, content):
        return cbor.encode([content])

    def blob(self, size, *numbers):
        self.assertTrue(all(n < 128 for n in numbers))
        return cbor.encode([size, bytes(numbers)])

    def setUp(self):
        self.size = len(self.rules)
        self.first, self.last = self.rules[:100], self.rules[100:]
        self.pieces = self.piece(self.first), self.piece(self.last)
        self.flat = bytes([0, 1, 100, 2]) + leb(len(self.last))
        self.whole = cbor.encode([self.size, self.flat])

    def test_blob_is_the_same_in_pieces(self):
        self.assertEqual(self.of(*self.pieces, self.whole)["faults"], [])
        above = cbor.encode([self.size, bytes([1, 3]) + leb(self.size)])
        self.assertEqual(self.of(*self.pieces, self.piece(self.flat), above)["faults"], [])

    def test_what_does_not_fit_is_a_fault(self):
        for edited in (
                (self.whole,), (self.pieces[0], self.whole), (self.pieces[1], self.pieces[0], self.whole),
                (*self.pieces, self.piece(b"nobody's"), self.whole), (*self.pieces, self.whole, self.piece(b"nobody's")),
                (*self.pieces, cbor.encode([self.size - 1, self.flat])), (*self.pieces, cbor.encode([self.size, self.flat + b"\1"])),
                (*self.pieces, cbor.encode([self.size, b"\5" + self.flat[1:]])), (*self.pieces, self.blob(3, 1, 1, 3)),
                (*self.pieces, self.piece(bytes([1, 3, 5])), self.blob(5, 2, 3, 5)), (*self.pieces, self.blob(0, 0)),
                (*self.pieces, cbor.encode([8 << 30, bytes([0, 1]) + leb(8 << 30)]))):
            try:
                self.assertNotEqual(self.of(*edited)["faults"], [])
            except Beyond:
                pass  # it is refused, and nothing of its size was made

    def test_piece_may_be_needed_by_several(self):
        out = world(rules=self.rules)
        out.items[0:1] = [*self.pieces, self.whole]
        self.assertEqual(verify(out.bytes())["faults"], [])


def leb(n):
    """A uvarint."""
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


if __name__ == "__main__":
    unittest.main()
