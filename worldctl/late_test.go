package worldctl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestLateReceiptIsShownAndMarked lets the receipt of an attempt come after the
// attempt was given up.
func TestLateReceiptIsShownAndMarked(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/worlds/bank")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken"), nil, 0o600))
	must := func(want int, args ...string) string {
		t.Helper()
		code, out, said := inProcess(t.Context(), append([]string{"-w", dir}, args...)...)
		require.Equal(t, want, code, said)
		return out
	}
	code, _, said := inProcess(t.Context(), "init", dir)
	require.Equal(t, exitOK, code, said)
	var effect struct{ Key string }
	out := must(exitUndecided, "effect", "bank.call", "--cap", "desk", "--reason", "ring", "--as", "ann", "-o", "jsonl")
	require.NoError(t, json.Unmarshal([]byte(out), &effect))
	must(exitOK, "intent", "resolve", effect.Key, "--not-executed", "--reason", "asked them")

	late, started := late(t, dir, effect.Key)
	file := filepath.Join(dir, "late.bin")
	require.NoError(t, os.WriteFile(file, late, 0o600))
	must(exitOK, "receipt", "verify", file) // the journal would take it
	require.NoError(t, os.Remove(filepath.Join(dir, "broken")))
	must(exitOK, "run")
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	var record journal.Seq
	err = lw.Update(func(w *world.World) error {
		record, err = w.Receive(late)
		return err
	})
	require.NoError(t, err)
	require.NoError(t, lw.Close())

	require.Contains(t, must(exitOK, "receipt", "list", "-o", "jsonl"), `"signed":true,"late":true`)
	require.Contains(t, must(exitOK, "receipt", "show", effect.Key, "--attempt", "1", "-o", "jsonl"), `"late":true`)
	require.Contains(t, must(exitOK, "receipt", "show", effect.Key, "-o", "jsonl"), `"attempt":2`, "a late one is not the last word")
	require.Contains(t, must(exitOK, "receipt", "verify", "-o", "jsonl"), `"checked":2`)
	require.Contains(t, must(exitOK, "receipt", "verify", file, "-o", "jsonl"), `"checked":1`)
	require.Contains(t, must(exitOK, "intent", "show", effect.Key, "-o", "jsonl"), `"late":true`)
	require.Contains(t, must(exitOK, "timeline", "operator/ann"), "late, so it changes nothing: receipt")

	why := must(exitOK, "why", strconv.FormatUint(uint64(record), 10), "-o", "jsonl")
	require.Contains(t, why, `{"id":`+strconv.FormatUint(started, 10)+`,`, "its cause is the permit of its own attempt")
	must(exitOK, "verify")
}

// late makes the receipt of an attempt that was given up, and returns the record
// of its permit.
func late(t *testing.T, dir, name string) (data []byte, started uint64) {
	t.Helper()
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	defer lw.Close() //nolint:errcheck // only read
	key, err := receipt.ParseKey(name)
	require.NoError(t, err)
	e, _ := recordsOf(lw).LedgerEntry(key)
	require.Len(t, e.Lost, 1)
	r := receipt.New(lw.Keys().World(), receipt.Permit{Intent: e.Intent, Attempt: e.Lost[0].Attempt, Nonce: e.Lost[0].Nonce},
		receipt.StatusOK, receipt.Data(canon.Null))
	data, err = lw.Keys().Sign(&r)
	require.NoError(t, err)
	return data, e.Started
}
