package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

func said(t testing.TB, to string, when world.When) world.Submission {
	data, err := canon.Marshal(map[string]any{"to": to})
	require.NoError(t, err)
	return world.Submission{Name: "said", Data: data, When: when}
}

// rememberingTwo is a world that remembers two keys.
func rememberingTwo(t *testing.T) *World {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, ManifestFile), []byte(quietManifest+"limits: {submit_keys: 2}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cell.star"), []byte("def reduce(ctx, state, event):\n    return event.data\n"), 0o600))
	require.NoError(t, Create(dir, CreateOptions{ID: "test"}, Options{}))
	lw, err := Open(dir, Options{})
	require.NoError(t, err)
	return lw
}

// TestWhatIsSubmittedUnderAKeyIsSubmittedOnce, over processes, images, replays and rollbacks.
func TestWhatIsSubmittedUnderAKeyIsSubmittedOnce(t *testing.T) {
	lw := rememberingTwo(t)
	defer func() { require.NoError(t, lw.Close()) }()
	again := func(s world.Submission, key string) world.Sent {
		t.Helper()
		sent, err := lw.SubmitEvent(t.Context(), world.Keyed(s, key))
		require.NoError(t, err)
		return sent
	}
	var err error
	require.NoError(t, lw.Update(func(w *world.World) error { _, err := w.Snapshot(t.Context(), "before", "", "ada"); return err }))
	later := said(t, "a", world.When{In: 5e9})
	first := again(later, "one")
	require.NoError(t, lw.Run(t.Context()))
	head := lw.Head()
	require.Equal(t, first, again(later, "one"))
	require.NoError(t, lw.Run(t.Context()))
	require.Equal(t, head, lw.Head(), "nothing was appended")
	_, err = lw.SubmitEvent(t.Context(), world.Keyed(said(t, "b", world.When{In: 5e9}), "one"))
	require.ErrorIs(t, err, world.ErrKeyReused)
	_, err = lw.SubmitEvent(t.Context(), world.Keyed(said(t, "a", world.When{}), "one"))
	require.ErrorIs(t, err, world.ErrKeyReused)
	_, err = lw.SubmitEvent(t.Context(), world.Keyed(later, strings.Repeat("k", world.MaxSubmitKey+1)))
	require.ErrorIs(t, err, world.ErrBadSubmitKey)
	_, err = lw.SubmitEvent(t.Context(), world.Keyed(world.Submission{Name: "unheard of"}, "two"))
	require.ErrorIs(t, err, world.ErrUnknownEvent)
	second := again(said(t, "b", world.When{}), "two") // what was refused is not remembered

	for range 2 { // by an image, and by what follows one
		require.NoError(t, lw.Close())
		lw, err = Open(lw.Dir(), Options{})
		require.NoError(t, err)
		require.Equal(t, first, again(later, "one"))
		require.Equal(t, second, again(said(t, "b", world.When{}), "two"))
		require.NoError(t, lw.Run(t.Context()))
	}
	_, err = Change(lw, func(w *world.World) (journal.Seq, error) {
		id, _, err := w.Rollback(t.Context(), journal.RolledBack{Snapshot: "before", Reason: "test", Actor: "ada", Ack: true})
		return id, err
	})
	require.NoError(t, err)
	head = lw.Head()
	require.Equal(t, second, again(said(t, "b", world.When{}), "two"), "a rollback gives no number again")
	require.Equal(t, head, lw.Head())

	again(said(t, "c", world.When{}), "three") // and one is not remembered any more
	require.NotEqual(t, first, again(later, "one"))
	report, err := lw.Verify(t.Context(), Verification{})
	require.NoError(t, err)
	require.Empty(t, report.Faults)
}

// TestABulkUnderAKeyGoesOnWhereItBrokeOff, and is submitted once.
func TestABulkUnderAKeyGoesOnWhereItBrokeOff(t *testing.T) {
	lw := quiet(t)
	defer func() { require.NoError(t, lw.Close()) }()
	var lines strings.Builder
	var d world.Digest
	var all []world.Submission
	for i := range 600 { // pieces of it
		fmt.Fprintf(&lines, `{"event":"said","data":{"to":"c%d"}}`+"\n", i)
		s := said(t, fmt.Sprint("c", i), world.When{})
		d.Add(&s)
		all = append(all, s)
	}
	for i := range 100 { // and then its process died
		s := all[i]
		s.Key = &world.SubmitKey{Name: "k", Of: d.Sum(), Nth: uint64(i) + 1}
		_, err := lw.SubmitEvent(t.Context(), s)
		require.NoError(t, err)
	}
	for range 2 {
		n, err := lw.SubmitLinesUnder("k")(t.Context(), strings.NewReader(lines.String()), nil, world.When{}, nil)
		require.NoError(t, err)
		require.Equal(t, uint64(600), n)
		require.Equal(t, journal.Seq(601), lw.Head().ID)
	}
	_, err := lw.SubmitLinesUnder("k")(t.Context(), strings.NewReader(lines.String()+lines.String()), nil, world.When{}, nil)
	require.ErrorIs(t, err, world.ErrKeyReused)
	s := all[5]
	s.Key = &world.SubmitKey{Name: "other", Of: d.Sum(), Nth: 6}
	_, err = lw.SubmitEvent(t.Context(), s)
	require.ErrorIs(t, err, world.ErrKeyUnderWay)

	n, err := lw.SubmitLinesUnder("refused")(t.Context(), strings.NewReader(`{"event":"said","data":{"to":"x"}}`+"\n"+`{"event":"unheard"}`), nil, world.When{}, nil)
	require.Equal(t, uint64(1), n)
	var line *LineError
	require.ErrorAs(t, err, &line)
	require.Equal(t, uint64(2), line.Line)
	require.Equal(t, journal.Seq(602), lw.Head().ID)
}
