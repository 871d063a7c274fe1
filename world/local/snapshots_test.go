package local_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// turned opens a world with a snapshot "first" with mail and timers, one of later
// and a rollback to the first.
func turned(t *testing.T) *local.World {
	t.Helper()
	ctx := context.Background()
	w := open(t, create(t))
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	_, err := w.Submit(ctx, "go", map[string]any{"to": "a", "do": []any{map[string]any{"timer": 9}}})
	require.NoError(t, err)
	require.NoError(t, w.Step(ctx))
	_, err = w.Submit(ctx, "go", map[string]any{"to": "b", "say": "waits"})
	require.NoError(t, err)
	err = w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(ctx, "first", "with mail", "ada")) })
	require.NoError(t, err)
	require.NoError(t, w.Run(ctx))
	err = w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(ctx, "second", "", "ada")) })
	require.NoError(t, err)
	var left []journal.SideEffect
	w.View(func(w *world.Moment) { left, err = w.Leaves(journal.RolledBack{Snapshot: "first"}) })
	require.NoError(t, err)
	require.Empty(t, left)
	var done *journal.RolledBack
	err = w.Update(func(w *world.World) error {
		_, done, err = w.Rollback(ctx, journal.RolledBack{Snapshot: "first", Reason: "so", Actor: "ada"})
		return err
	})
	require.NoError(t, err)
	require.Equal(t, "first", done.Snapshot)
	return w
}

func TestAtIsWhatWasThen(t *testing.T) {
	ctx := context.Background()
	w := turned(t)
	before := w.Status()
	b := reducer.Cell{Reducer: "bot", Key: "b"}
	require.NoError(t, w.Run(ctx))
	check := func() {
		m, err := w.At(before.Head.ID)
		require.NoError(t, err)
		require.Equal(t, before, m.Status())
		view, ok := m.Cell(b)
		require.True(t, ok)
		require.Len(t, view.Mail, 1)
	}
	check()
	err := w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(ctx, "third", "", "ada")) })
	require.NoError(t, err)
	// The rollback returned to an image that is not kept any more, and the one
	// before it is from later.
	require.NoError(t, w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Prune(ctx, journal.SnapshotPruned{Name: "first", Actor: "ada"}))
	}))
	check()
	for _, at := range []journal.Seq{0, w.Status().Head.ID + 1} {
		_, err = w.At(at)
		require.ErrorIs(t, err, journal.ErrNotFound)
	}
}

func TestReplayFromASnapshotIsReplay(t *testing.T) {
	w := turned(t)
	want, err := w.Replay(t.Context(), 0, nil)
	require.NoError(t, err)
	var s snapshot.Snapshot
	w.View(func(w *world.Moment) { s, err = w.FindSnapshot("first") })
	require.NoError(t, err)
	seen := journal.Seq(s.Record)
	got, err := w.ReplayFrom(t.Context(), seen, 0, 0, func(done uint64) { seen++; require.Equal(t, uint64(seen), done) })
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, want.Head.ID, seen)
}

// TestSavedSnapshotIsFoundAgain: a saved snapshot is a bundle, from which the snapshot is proved.
// Every byte of it is one that the journal or the form of a bundle answers for.
func TestSavedSnapshotIsFoundAgain(t *testing.T) {
	ctx := context.Background()
	w := turned(t)
	var file bytes.Buffer
	saved, err := w.SaveSnapshot(ctx, &file, "first")
	require.NoError(t, err)
	data := file.Bytes()
	s, err := w.ReadSnapshot(ctx, bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, saved, s)
	report, err := local.VerifyBundle(ctx, bytes.NewReader(data), local.Options{}, local.Verification{})
	require.NoError(t, err)
	require.True(t, report.OK)
	require.Equal(t, saved.Record, report.Records)

	_, err = w.ReadSnapshot(ctx, strings.NewReader("x"))
	require.ErrorIs(t, err, local.ErrNotSaved)
	for i := range data {
		_, err = w.ReadSnapshot(ctx, bytes.NewReader(data[:i]))
		require.ErrorIs(t, err, local.ErrNotSaved, "cut off at %d", i)
	}
	content := unzip(t, data)
	for i := range content {
		spoiled := bytes.Clone(content)
		spoiled[i] ^= 0x40
		_, err := w.ReadSnapshot(ctx, zip(t, spoiled))
		require.Error(t, err, "byte %d", i)
	}
	var all bytes.Buffer
	require.NoError(t, w.ExportBundle(ctx, &all, local.BundleOptions{}))
	_, err = w.ReadSnapshot(ctx, &all)
	require.ErrorIs(t, err, local.ErrNotSaved, "it ends with no snapshot")

	other := open(t, another(t))
	_, err = other.ReadSnapshot(ctx, bytes.NewReader(data))
	require.ErrorIs(t, err, local.ErrSavedOther)
	require.NoError(t, other.Close())

	require.NoError(t, w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Prune(ctx, journal.SnapshotPruned{Name: "first", Actor: "ada"}))
	}))
	_, err = w.ReadSnapshot(ctx, bytes.NewReader(data))
	require.ErrorIs(t, err, snapshot.ErrNoSnapshot)
	_, err = w.SaveSnapshot(ctx, &file, "first")
	require.ErrorIs(t, err, snapshot.ErrNoSnapshot)
}

func unzip(t testing.TB, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	content, err := io.ReadAll(r)
	require.NoError(t, err)
	return content
}

// zip packs what a bundle holds, with the sum behind it.
func zip(t testing.TB, content []byte) io.Reader {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	sum := sha256.Sum256(out.Bytes())
	out.WriteString("\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff\x24\x00wk\x20\x00" + string(sum[:]) + "\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	return &out
}

func another(t *testing.T) string {
	t.Helper()
	dir := files(t)
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "other", Keyring: ring(t, "other", 2)}, local.Options{}))
	return dir
}

// What goes over the retention is told.
func TestRetentionLetsTheOldestGo(t *testing.T) {
	ctx := context.Background()
	w := turned(t)
	require.NoError(t, w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Pin(ctx, journal.SnapshotPinned{Name: "first", Pinned: true, Actor: "ada"}))
	}))
	err := w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(ctx, "third", "", "ada")) })
	require.NoError(t, err)
	var pruned []string
	err = w.Update(func(w *world.World) error {
		_, pruned, err = w.Retain(ctx, journal.SnapshotRetention{Max: 2, Actor: "ada"})
		return err
	})
	require.NoError(t, err)
	require.Equal(t, []string{"second"}, pruned)
}
