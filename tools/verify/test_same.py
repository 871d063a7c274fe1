"""The same verdict as worldctl, on worlds that it makes. WORLDCTL names the program; without it this skips."""

import io
import json
import os
import subprocess
import tempfile
import unittest

import journal
import proof

PROGRAM = os.environ.get("WORLDCTL", "")
SAME = ("ok", "trusted", "world_id", "records", "execution_hash", "event_chain_root_hash",
        "tool_invocation_ledger_proof", "receipts", "governance", "redacted", "withheld", "checkpoints")


@unittest.skipUnless(PROGRAM, "WORLDCTL is not set")
class Same(unittest.TestCase):
    def setUp(self):
        where = tempfile.TemporaryDirectory()
        self.addCleanup(where.cleanup)
        self.dir = where.name

    def run_it(self, *arguments, codes=(0,), stdin=None):
        done = subprocess.run([os.path.abspath(PROGRAM), *arguments], cwd=self.dir, input=stdin, capture_output=True)
        self.assertIn(done.returncode, codes, done.stderr.decode())
        return done.stdout

    def make(self, template):
        self.run_it("init", "w", "--template", template, "--id", "w-1")
        with open(os.path.join(self.dir, "w", "events.jsonl"), "rb") as file:
            self.run_it("-w", "w", "send", "-", stdin=file.read())
        self.run_it("-w", "w", "run", codes=(0, 6))

    def compare(self, world="w"):
        self.run_it("-w", world, "export", "bundle", "--format", "bundle")
        theirs = json.loads(self.run_it("verify", "bundle", "-o", "json"))
        with open(os.path.join(self.dir, "bundle"), "rb") as file:
            ours = journal.verify(io.BytesIO(file.read()))
        self.assertEqual([theirs.get(key) for key in SAME], [ours.get(key) for key in SAME])
        self.assertEqual(ours["faults"], [])
        os.remove(os.path.join(self.dir, "bundle"))

    def test_town(self):
        self.make("town")
        self.compare()

    def test_world_with_approvals_doubt_rollback_and_fork(self):
        self.run_it("init", "w", "--template", "support", "--id", "w-1")
        self.run_it("-w", "w", "snapshot", "create", "start")
        with open(os.path.join(self.dir, "w", "events.jsonl"), "rb") as file:
            self.run_it("-w", "w", "send", "-", stdin=file.read())
        self.run_it("-w", "w", "run", codes=(0, 6))
        self.compare()
        self.run_it("-w", "w", "fork", "other", "--id", "w-2")
        self.compare("other")
        self.run_it("-w", "w", "fork", "seeded", "--id", "w-3", "--seed", "7")
        self.compare("seeded")
        self.run_it("-w", "w", "rollback", "start", "--reason", "again", "--ack")
        self.compare()

    def test_proofs(self):
        self.make("town")
        self.run_it("-w", "w", "snapshot", "create", "s")
        cells = [("cell", name, "--snapshot", "s") for name in ("market/main", "no/one")]
        for what in (("record", "5"), *cells):
            made = self.run_it("-w", "w", "prove", *what)
            shown = proof.verify(made)
            self.assertTrue(shown["ok"], shown)
            with open(os.path.join(self.dir, "proof"), "wb") as file:
                file.write(made)
            theirs = json.loads(self.run_it("verify", "proof", "-o", "json"))
            for key in ("ok", "trusted", "signers", "kind", "world_id", "checkpoint"):
                self.assertEqual(theirs[key], shown[key], key)


if __name__ == "__main__":
    unittest.main()
