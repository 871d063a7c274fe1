"""CBOR, the Merkle tree and signatures against vectors and against simpler programs."""

import hashlib
import unittest

import cbor
import checkpoint
import ed25519
import merkle


class CBOR(unittest.TestCase):
    def test_vectors_of_rfc_8949(self):
        for raw, value in (
            ("00", 0), ("1818", 24), ("1903e8", 1000), ("1bffffffffffffffff", 2**64 - 1), ("20", -1),
            ("c249010000000000000000", 2**64),
            ("3bffffffffffffffff", -(2**64)), ("c349010000000000000000", -(2**64) - 1),
            ("f90000", 0.0), ("f93e00", 1.5), ("f97bff", 65504.0), ("fa47c35000", 100000.0),
            ("f90001", 5.960464477539063e-8),
            ("fb3ff199999999999a", 1.1), ("f4", False), ("f5", True), ("f6", None), ("40", b""),
            ("4401020304", b"\1\2\3\4"),
            ("60", ""), ("62c3bc", "\u00fc"), ("80", []), ("83010203", [1, 2, 3]),
            ("a26161016162820203", {"a": 1, "b": [2, 3]}),
        ):
            got = cbor.decode(bytes.fromhex(raw))
            self.assertEqual((got, type(got)), (value, type(value)))
            self.assertEqual(cbor.encode(value).hex(), raw)

    def test_every_other_form_is_refused(self):
        for raw in (
            "", "18", "1817", "190018", "1a0000ffff", "1b00000000ffffffff", "5801", "6161ff00", "61ff", "5f4101ff",
            "9fff", "bfff",
            "1c", "f7", "f818", "f820", "f98000", "f97e00", "f97c00", "fa3f800000", "fb3ff0000000000000",
            "c0f6",
            "c24101",
            "c2480000000000000001", "c24900ffffffffffffffff", "a10101", "a2616201616101", "a2616101616102", "0000",
            "81" * 65 + "00", "9bffffffffffffffff", "5bffffffffffffffff",
        ):
            with self.assertRaises(cbor.Error, msg=raw):
                cbor.decode(bytes.fromhex(raw))
        cbor.decode(bytes.fromhex("81" * 64 + "00"))


class Merkle(unittest.TestCase):
    records = [bytes([i]) * i for i in range(40)]

    def root(self, records):
        """RFC 6962, section 2.1, as it is written there."""
        if not records:
            return hashlib.sha256(b"").digest()
        if len(records) == 1:
            return merkle.leaf(records[0])
        k = self.half(len(records))
        return merkle.node(self.root(records[:k]), self.root(records[k:]))

    @staticmethod
    def half(n):
        return 1 << ((n - 1).bit_length() - 1)

    def path(self, m, records):
        if len(records) == 1:
            return []
        k = self.half(len(records))
        if m < k:
            return self.path(m, records[:k]) + [self.root(records[k:])]
        return self.path(m - k, records[k:]) + [self.root(records[:k])]

    def proof(self, m, records, whole=True):
        if m == len(records):
            return [] if whole else [self.root(records)]
        k = self.half(len(records))
        if m <= k:
            return self.proof(m, records[:k], whole) + [self.root(records[k:])]
        return self.proof(m - k, records[k:], False) + [self.root(records[:k])]

    def test_tree_that_grows_is_the_tree(self):
        tree = merkle.Tree(0, [])
        for n, record in enumerate(self.records):
            self.assertEqual(tree.root(), self.root(self.records[:n]))
            tree = merkle.Tree(n, tree.nodes)
            tree.append(record)

    def test_proofs_give_the_roots(self):
        for n in range(1, len(self.records)):
            records = self.records[:n]
            for m in range(n):
                at, path = merkle.leaf(records[m]), self.path(m, records)
                self.assertEqual(merkle.root_of_inclusion(m, n, at, path), self.root(records))
                with self.assertRaises(merkle.Error):
                    merkle.root_of_inclusion(m, n, at, path + [at])
                old = self.root(records[:m + 1])
                roots = merkle.roots_of_consistency(m + 1, n, old, self.proof(m + 1, records))
                self.assertEqual(roots, (old, self.root(records)))


class Signatures(unittest.TestCase):
    def test_vectors_of_rfc_8032(self):
        for seed, public, message, signature in (
            ("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
             "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
             "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25b"
             "f5f0595bbe24655141438e7a100b"),
            ("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
             "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
             "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b"
             "2eaeb4302aeeb00d291612bb0c00"),
        ):
            seed, public, message, signature = map(bytes.fromhex, (seed, public, message, signature))
            self.assertEqual(ed25519.public_key(seed), public)
            self.assertEqual(ed25519.sign(seed, message), signature)
            self.assertTrue(ed25519.verify(public, message, signature))
            self.assertFalse(ed25519.verify(public, message + b"x", signature))
            high = int.from_bytes(signature[32:], "little") + ed25519.L
            self.assertFalse(ed25519.verify(public, message, signature[:32] + high.to_bytes(32, "little")))

    def test_edges_are_decided_as_go_does(self):
        neutral, zeros = b"\1" + bytes(31), bytes(32)
        self.assertTrue(ed25519.verify(neutral, b"m", neutral + zeros))
        self.assertTrue(ed25519.verify(b"\1" + bytes(30) + b"\x80", b"m", neutral + zeros), "x = 0 with a sign")
        p = ed25519.P.to_bytes(32, "little")
        self.assertTrue(ed25519.verify(p, b"", zeros + zeros), "y is p in the place of 0")
        other = (ed25519.P + 1).to_bytes(32, "little")
        self.assertFalse(ed25519.verify(neutral, b"m", other + zeros), "R has one form")
        self.assertFalse(ed25519.verify(b"\2" + bytes(31), b"m", neutral + zeros), "no point")

    def test_keys_as_text(self):
        key = ed25519.public_key(b"\1" * 32)
        text = checkpoint.format_key("test", key)
        self.assertEqual(text, "worldkernel/test+a07d4c36+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c")
        self.assertEqual(checkpoint.parse_signer(text), key)
        for bad in (text[:-1], text.replace("a07d", "a07e"), "x", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-rsa AAAA"):
            with self.assertRaises(checkpoint.Error, msg=bad):
                checkpoint.parse_signer(bad)


if __name__ == "__main__":
    unittest.main()
