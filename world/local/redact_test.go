package local_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/verify"
)

// largeOf returns the first record of a kind whose payload is a blob.
func largeOf(t testing.TB, dir string, kind journal.Kind) journal.Seq {
	t.Helper()
	w := open(t, dir)
	var found journal.Seq
	for s, err := range w.Scan(0) {
		require.NoError(t, err)
		if found == 0 && s.Record.Kind == kind && !s.Record.Blob.IsZero() {
			found = s.ID
		}
	}
	require.NotZero(t, found)
	require.NoError(t, w.Close())
	return found
}

// told returns the directory of a world in which a cell tells another much.
func told(t testing.TB) string {
	t.Helper()
	dir := create(t)
	w := open(t, dir)
	_, err := w.Submit(context.Background(), "go", map[string]any{"to": "a", "do": []any{
		map[string]any{"emit": "ping", "to": "b", "do": []any{map[string]any{"timer": 1, "text": strings.Repeat("y", 5000)}}},
	}})
	require.NoError(t, err)
	require.NoError(t, w.Run(context.Background()))
	require.NoError(t, w.Close())
	return dir
}

// TestDerivedPayloadThatWasRedactedIsComputedAgain redacts what follows from the
// inputs: an import has all that a replay reads.
func TestDerivedPayloadThatWasRedactedIsComputedAgain(t *testing.T) {
	dir := told(t)
	record := largeOf(t, dir, journal.KindEmitted)
	done, err := local.Redact(t.Context(), dir, local.Options{}, local.Payload{Record: record}, "asked for", "ada")
	require.NoError(t, err)
	require.Equal(t, []journal.Seq{record}, done.Records)
	data := wholeOf(t, dir)
	again := filepath.Join(t.TempDir(), "again")
	require.NoError(t, local.Import(t.Context(), again, bytes.NewReader(data), ring(t, "test", 1), local.Options{}, nil))
	require.Equal(t, data, wholeOf(t, again))
	w := open(t, again)
	_, err = w.Blob(done.Blob)
	require.ErrorIs(t, err, journal.ErrRedacted)
	require.NoError(t, w.Close())
	r, err := local.Verify(t.Context(), again, local.Options{}, local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.Equal(t, uint64(1), r.Redacted)
}

// A redaction that comes upon damage says that the bytes are left.
func TestBytesThatDamageKeepsAreToldOf(t *testing.T) {
	dir := told(t)
	record := largeOf(t, dir, journal.KindSubmitted)
	db, err := pebble.Open(filepath.Join(dir, ".world", "store"), &pebble.Options{ErrorIfNotExists: true})
	require.NoError(t, err)
	require.NoError(t, db.Set(append([]byte{'o'}, make([]byte, 32)...), []byte("a list that is none"), pebble.Sync))
	require.NoError(t, db.Close())
	_, err = local.Redact(t.Context(), dir, local.Options{}, local.Payload{Record: record}, "asked for", "ada")
	if !testlog.On() { // who has the bytes then
		require.ErrorIs(t, err, local.ErrBytesLeft)
		require.ErrorContains(t, err, "blob 0000")
	}
}

// redactedInput returns the directory of a world whose large event was redacted, and the
// event's record.
func redactedInput(t testing.TB) (string, journal.Seq) {
	t.Helper()
	dir := told(t)
	record := largeOf(t, dir, journal.KindSubmitted)
	_, err := local.Redact(t.Context(), dir, local.Options{}, local.Payload{Record: record}, "asked for", "ada")
	require.NoError(t, err)
	return dir, record
}

// TestRedactedInputIsAGapInTheReplay redacts what cannot be computed: the world
// goes on, and nobody can compute it from the beginning.
func TestRedactedInputIsAGapInTheReplay(t *testing.T) {
	dir, record := redactedInput(t)
	w := open(t, dir)
	live(t, w)
	_, err := w.Replay(t.Context(), 0, nil)
	require.ErrorIs(t, err, journal.ErrRedacted)
	_, err = w.At(record)
	require.ErrorIs(t, err, journal.ErrRedacted)
	require.NoError(t, w.Close())
	r, err := local.Verify(t.Context(), dir, local.Options{}, local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.Equal(t, []verify.Gap{{From: record, To: journal.Seq(r.Records)}}, r.Replay.Gaps)
	importRefused(t, wholeOf(t, dir), ring(t, "test", 1))
	_, err = local.Redact(t.Context(), dir, local.Options{}, local.Payload{Record: record}, "again", "ada")
	require.ErrorIs(t, err, journal.ErrRedacted)
}
