package worldctl

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of a world whose rollbacks have version 1 of rollback.applied: three histories, in
// which x was paid for twice; a return to the part with the first payment, which no
// later rollback listed; a compensation, and fresh effects. testdata/old has its
// directory, export and bundle, as the release of then wrote them.
const (
	oldExecution = "581c3948d09474414f90a1444129066f59de53c1e27e7f6c11057346af3d2fd6"
	oldState     = "735dd282ec8f7d35f6a720d6c03d497371a921b1cf279fb3cb20c9d374dbc902"
)

// oldWorld unpacks the directory.
func oldWorld(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("tar", "-xzf", "testdata/old/rollback-1.tar.gz", "-C", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

func TestWorldsFromBeforeAreReadByTheRulesOfThen(t *testing.T) {
	dir, imported := oldWorld(t), filepath.Join(t.TempDir(), "imported")
	worldctl(t, nil, "import", "journal", "testdata/old/rollback-1.jsonl", "-w", imported)
	for _, args := range [][]string{
		{"verify", "-w", dir}, {"verify", "-w", imported}, {"verify", "testdata/old/rollback-1.bundle"},
	} {
		var got facts
		require.NoError(t, json.Unmarshal(worldctl(t, nil, append(args, "-o", "json")...), &got))
		require.True(t, got.OK, "%v", args)
		require.Equal(t, oldExecution, got.ExecutionHash, "%v", args)
		require.Equal(t, oldState, got.StateRoot, "%v", args)
	}
	if _, err := exec.LookPath("python3"); err == nil {
		out, err := exec.Command("python3", "../tools/verify", "testdata/old/rollback-1.bundle").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), oldExecution)
	}
}

// TestWorldFromBeforeGoesOnByTheRulesOfToday: with its next rollback both payments for
// x are left behind, and so is that for y.
func TestWorldFromBeforeGoesOnByTheRulesOfToday(t *testing.T) {
	dir := oldWorld(t)
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
