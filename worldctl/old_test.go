package worldctl

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer/star"
	"github.com/worldkernel/worldkernel/world"
)

// oldWorlds are in testdata/old: a directory, an export and a bundle of each, as
// worldctl wrote them before a format changed.
var oldWorlds = []struct{ name, export, execution, state string }{
	// Rollbacks have version 1 of rollback.applied: three histories, in which x was paid
	// for twice; a return to the part with the first payment, which no later rollback
	// listed; a compensation, and fresh effects.
	{
		"rollback-1", ".jsonl",
		"581c3948d09474414f90a1444129066f59de53c1e27e7f6c11057346af3d2fd6",
		"735dd282ec8f7d35f6a720d6c03d497371a921b1cf279fb3cb20c9d374dbc902",
	},
	// world.created and manifest.applied have a field for each engine: effects allowed and
	// denied, a proposal applied, a rollback with a compensation, and an archive of the
	// records up to #31 that moved with the directory.
	{
		"engines-1", ".cborseq",
		"4c28ad068ffb6406cff3bee4e4417159cf4cb6beec2eaae45a4e768d1586e6a3",
		"5afde97ac0e3cf8cd81d67d71d864383134c0bac366ee50c6500e0b459f8b4dc",
	},
}

// oldWorld unpacks the directory of one.
func oldWorld(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("tar", "-xzf", "testdata/old/"+name+".tar.gz", "-C", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

func TestWorldsFromBeforeAreReadByTheRulesOfThen(t *testing.T) {
	for _, old := range oldWorlds {
		t.Run(old.name, func(t *testing.T) {
			at := "testdata/old/" + old.name
			dir, imported := oldWorld(t, old.name), filepath.Join(t.TempDir(), "imported")
			worldctl(t, nil, "import", "journal", at+old.export, "-w", imported)
			exported := filepath.Join(t.TempDir(), "again.bundle")
			worldctl(t, nil, "export", exported, "--format", "bundle", "-w", dir)
			for _, args := range [][]string{
				{"verify", "-w", dir}, {"verify", "-w", imported}, {"verify", at + ".bundle"}, {"verify", exported},
			} {
				var got facts
				require.NoError(t, json.Unmarshal(worldctl(t, nil, append(args, "-o", "json")...), &got))
				require.True(t, got.OK, "%v", args)
				require.Equal(t, old.execution, got.ExecutionHash, "%v", args)
				require.Equal(t, old.state, got.StateRoot, "%v", args)
			}
			secondVerifierSays(t, at+".bundle", old.execution)
			secondVerifierSays(t, exported, old.execution)
		})
	}
}

// secondVerifierSays has it verify a bundle of an execution, where there is Python.
func secondVerifierSays(t *testing.T, bundle, execution string) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		return
	}
	out, err := exec.Command("python3", "../tools/verify", bundle).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), execution)
}

// TestWorldFromBeforeGoesOnByTheRulesOfToday: with its next rollback both payments for
// x are left behind, and so is that for y.
func TestWorldFromBeforeGoesOnByTheRulesOfToday(t *testing.T) {
	dir := oldWorld(t, "rollback-1")
	worldctl(t, nil, "-w", dir, "rollback", "s0", "--reason", "a fourth history", "--ack")
	for _, what := range []string{"x", "x", "y", "y"} {
		worldctl(t, nil, "-w", dir, "send", "note", `{"to": "a", "n": 4}`)
		worldctl(t, nil, "-w", dir, "send", "pay", `{"to": "a", "what": "`+what+`"}`)
	}
	worldctl(t, nil, "-w", dir, "run")
	var decisions []string
	dec := json.NewDecoder(bytes.NewReader(worldctl(t, nil, "-w", dir, "intent", "list", "-o", "jsonl")))
	for dec.More() {
		var x struct {
			Decision string `json:"decision"`
		}
		require.NoError(t, dec.Decode(&x))
		decisions = append(decisions, x.Decision)
	}
	require.Equal(t, []string{"reused", "reused", "reused", "allow"}, decisions[len(decisions)-4:])
	worldctl(t, nil, "-w", dir, "verify")
}

// TestReturnToWhatAReleaseBeforeMadeUpForIsReplayed: the world was written by the
// release before, with a payment that a rollback had made up for. Its images say
// nothing of that, its records do: what is written after the upgrade has to follow
// from both.
func TestReturnToWhatAReleaseBeforeMadeUpForIsReplayed(t *testing.T) {
	dir := oldWorld(t, "rollback-1-compensated")
	worldctl(t, nil, "-w", dir, "rollback", "s1", "--reason", "to what was made up for", "--ack")
	worldctl(t, nil, "-w", dir, "verify")
}

// TestEngineListsFollowEngineFields puts a candidate in force in a world that names its
// engines by fields.
func TestEngineListsFollowEngineFields(t *testing.T) {
	dir := oldWorld(t, "engines-1")
	worldctl(t, nil, "-w", dir, "send", "pay", `{"to": "a", "what": "w", "sum": 40}`)
	worldctl(t, nil, "-w", dir, "run")
	source := filepath.Join(dir, "world.yaml")
	is, err := os.ReadFile(source)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(source, bytes.Replace(is, []byte("<= 100"), []byte("<= 200"), 1), 0o600))
	key := filepath.Join(t.TempDir(), "key")
	worldctl(t, nil, "keys", "new", "--approver", key)
	worldctl(t, nil, "-w", dir, "propose", "-m", "even more")
	worldctl(t, nil, "-w", dir, "shadow", "p2")
	worldctl(t, nil, "-w", dir, "approve", "p2", "--key", key)
	worldctl(t, nil, "-w", dir, "apply", "p2")
	worldctl(t, nil, "-w", dir, "send", "pay", `{"to": "a", "what": "u", "sum": 150}`)
	worldctl(t, nil, "-w", dir, "run")
	bundle := filepath.Join(t.TempDir(), "later.bundle")
	worldctl(t, nil, "-w", dir, "export", bundle, "--format", "bundle")
	for _, args := range [][]string{{"-w", dir}, {bundle}} {
		var got facts
		require.NoError(t, json.Unmarshal(worldctl(t, nil, append(append([]string{"verify"}, args...), "-o", "json")...), &got))
		require.True(t, got.OK, "%v", args)
		secondVerifierSays(t, bundle, got.ExecutionHash)
	}
}

// TestWorldFromBeforeIsUpgraded moves a world of the first engines to the newest ones. A
// change of world.yaml before and after keeps those that are in force.
func TestWorldFromBeforeIsUpgraded(t *testing.T) {
	t.Parallel()
	dir := oldWorld(t, "engines-1")
	key := filepath.Join(t.TempDir(), "key")
	worldctl(t, nil, "keys", "new", "--approver", key)
	adopt := func(p string) {
		worldctl(t, nil, "-w", dir, "shadow", p)
		worldctl(t, nil, "-w", dir, "approve", p, "--key", key)
		worldctl(t, nil, "-w", dir, "apply", p)
		worldctl(t, nil, "-w", dir, "send", "pay", `{"to": "a", "what": "w", "sum": 40}`)
		worldctl(t, nil, "-w", dir, "run")
	}
	run := func() manifest.Engines {
		var m struct {
			Manifest struct {
				Engines manifest.Engines `json:"engines"`
			} `json:"manifest"`
		}
		require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "manifest", "show", "-o", "json"), &m))
		return m.Manifest.Engines
	}
	source := filepath.Join(dir, "world.yaml")
	edit := func(from, to string) {
		is, err := os.ReadFile(source)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(source, bytes.Replace(is, []byte(from), []byte(to), 1), 0o600))
		worldctl(t, nil, "-w", dir, "propose", "-m", "more")
	}
	edit("<= 100", "<= 200")
	adopt("p2")
	require.Empty(t, run(), "a change of the file is none of the engines")

	out := worldctl(t, nil, "-w", dir, "upgrade", "-m", "gas is time")
	require.Contains(t, string(out), "engine starlark: "+star.Version+", not the first version")
	require.NotContains(t, string(out), "policy", "nothing else changes")
	adopt("p3")
	require.Equal(t, world.NewestEngines(), run())
	again := exec.Command("worldctl", "-w", dir, "upgrade")
	require.Error(t, again.Run())
	require.Equal(t, exitUsage, again.ProcessState.ExitCode())
	edit("<= 200", "<= 300")
	adopt("p4")
	require.Equal(t, world.NewestEngines(), run())

	bundle := filepath.Join(t.TempDir(), "later.bundle")
	worldctl(t, nil, "-w", dir, "export", bundle, "--format", "bundle")
	for _, args := range [][]string{{"-w", dir}, {bundle}} {
		var got facts
		require.NoError(t, json.Unmarshal(worldctl(t, nil, append(append([]string{"verify"}, args...), "-o", "json")...), &got))
		require.True(t, got.OK, "%v", args)
		secondVerifierSays(t, bundle, got.ExecutionHash)
	}
	worldctl(t, nil, "-w", dir, "replay")
}
