package local_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func cosigner() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) }

// signedOf returns the signed checkpoints of a world, and holds that the world's
// keys signed them, that they are of its records, and that each extends the one before.
func signedOf(t *testing.T, w *local.World) (all []store.Signed) {
	t.Helper()
	signers, err := w.Signers()
	require.NoError(t, err)
	var tree checkpoint.Tree
	for c, err := range w.Checkpoints(0, journal.Last) {
		require.NoError(t, err)
		s, err := checkpoint.Open(c.Note, signers...)
		require.NoError(t, err)
		require.NotEmpty(t, s.By)
		require.Equal(t, c.Checkpoint, s.Checkpoint)
		require.Equal(t, w.Keys().World(), c.World)
		for tree.Size() < c.Size {
			record, err := w.Record(journal.Seq(tree.Size() + 1))
			require.NoError(t, err)
			tree.Add(record)
		}
		require.Equal(t, tree.Root(), c.Root)
		for _, older := range append(all, c) {
			p, err := w.Consistency(journal.Seq(older.Size), journal.Seq(c.Size))
			require.NoError(t, err)
			require.NoError(t, tlog.CheckTree(p, int64(c.Size), tlog.Hash(c.Root), int64(older.Size), tlog.Hash(older.Root)))
		}
		all = append(all, c)
	}
	return all
}

func TestCheckpointSignsTheJournalAsItIs(t *testing.T) {
	dir, head := lived(t)
	w := open(t, dir)
	c, err := w.Checkpoint()
	require.NoError(t, err)
	require.Equal(t, uint64(head.ID), c.Size)
	again, err := w.Checkpoint()
	require.NoError(t, err)
	require.Equal(t, c, again)

	both, err := w.Checkpoint(cosigner())
	require.NoError(t, err)
	require.Equal(t, c.Checkpoint, both.Checkpoint)
	s, err := checkpoint.Open(both.Note, cosigner().Public().(ed25519.PublicKey))
	require.NoError(t, err)
	require.Len(t, s.By, 1)
	again, err = w.Checkpoint()
	require.NoError(t, err)
	require.Equal(t, both, again, "it is signed with the world's key too")
	require.Equal(t, []store.Signed{*both}, signedOf(t, w))

	for id := range head.ID {
		record, err := w.Record(id + 1)
		require.NoError(t, err)
		p, err := w.Inclusion(id+1, head.ID)
		require.NoError(t, err)
		require.NoError(t, tlog.CheckRecord(p, int64(c.Size), tlog.Hash(c.Root), int64(id), tlog.RecordHash(record)))
	}
	_, err = w.Inclusion(1, head.ID+1)
	require.ErrorIs(t, err, journal.ErrNotFound)
	_, err = w.Consistency(1, head.ID+1)
	require.ErrorIs(t, err, journal.ErrNotFound)
	_, err = w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": []any{}})
	require.NoError(t, err)
	_, err = w.Next(t.Context())
	require.NoError(t, err)
	c, err = w.Checkpoint()
	require.NoError(t, err)
	require.Equal(t, uint64(w.Status().Head.ID), c.Size, "also what was on its way")
	require.NoError(t, w.Close())
	w = open(t, dir)
	require.Len(t, signedOf(t, w), 2)
	require.NoError(t, w.Close())
}

// signing returns the directory of a world with a checkpoint_every.
func signing(t *testing.T, every string) string {
	t.Helper()
	dir := files(t)
	path := filepath.Join(dir, local.ManifestFile)
	yaml, err := os.ReadFile(path)
	require.NoError(t, err)
	yaml = append(yaml, "\ndefaults: {checkpoint_every: "+every+"}\n"...)
	require.NoError(t, os.WriteFile(path, yaml, 0o600))
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "test", Keyring: ring(t, "test", 1)}, local.Options{}))
	return dir
}

func TestCheckpointsAreSignedWhenTheyAreDue(t *testing.T) {
	const every = 100
	dir := signing(t, "100")
	w := open(t, dir)
	var events []world.Submission
	for range 8 {
		data, err := canon.Marshal(map[string]any{"to": "a", "do": []any{map[string]any{"emit": "ping", "to": "b"}}})
		require.NoError(t, err)
		events = append(events, world.Submission{Name: "go", Data: data})
	}
	signed := func() uint64 {
		c, err := local.StoreOf(w).LastCheckpoint()
		require.NoError(t, err)
		if c == nil {
			return 0
		}
		return c.Size
	}
	for i := range 30 {
		for _, e := range events {
			_, err := w.SubmitEvent(t.Context(), e)
			require.NoError(t, err)
		}
		require.NoError(t, w.Run(t.Context()))
		require.Less(t, uint64(w.Status().Head.ID), signed()+every)
		if i%5 == 0 { // what was signed is found again
			require.NoError(t, w.Close())
			w = open(t, dir)
			require.NoError(t, w.Step(t.Context()))
		}
	}
	all := signedOf(t, w)
	require.Greater(t, len(all), 5)
	before := uint64(0)
	for _, c := range all {
		require.GreaterOrEqual(t, c.Size, before+every)
		before = c.Size
	}
	before = signed()
	for uint64(w.Status().Head.ID) < before+every {
		require.Equal(t, before, signed())
		require.NoError(t, w.Step(t.Context()))
	}
	require.Equal(t, uint64(w.Status().Head.ID), signed(), "a tick alone is enough")
	before = signed()
	for _, drive := range []func(*world.World) error{
		func(w *world.World) error {
			for range every {
				if err := w.Step(t.Context()); err != nil {
					return err
				}
			}
			return nil
		},
		func(w *world.World) error {
			for range every {
				if _, err := w.Snapshot(t.Context(), "", "", "ada"); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		require.NoError(t, w.Update(drive))
		require.GreaterOrEqual(t, signed(), before+every, "nobody has to think of it")
		before = signed()
	}
	sound(t, w)
	require.NoError(t, w.Close())
}

// checkpointed returns a world that has lived, its directory and its first checkpoint.
func checkpointed(t testing.TB) (string, *local.World, *store.Signed) {
	t.Helper()
	dir, _ := lived(t)
	w := open(t, dir)
	first, err := w.Checkpoint()
	require.NoError(t, err)
	return dir, w, first
}

func TestSignersAreThoseOfAllEpochs(t *testing.T) {
	dir, w, first := checkpointed(t)
	old, err := w.Signers()
	require.NoError(t, err)
	require.Len(t, old, 1)
	require.NoError(t, w.Close())
	_, err = local.Rotate(t.Context(), dir, local.Options{}, "ada")
	require.NoError(t, err)
	w = open(t, dir)
	now, err := w.Signers()
	require.NoError(t, err)
	require.Len(t, now, 2)
	require.Equal(t, old[0], now[0])
	second, err := w.Checkpoint()
	require.NoError(t, err)
	for i, c := range []*store.Signed{first, second} {
		s, err := checkpoint.Open(c.Note, now...)
		require.NoError(t, err)
		require.Equal(t, now[i:i+1], s.By)
	}
	signedOf(t, w)
	require.NoError(t, w.Close())
}

func TestWorldWithoutKeysSignsForOthersOnly(t *testing.T) {
	dir, _ := lived(t)
	to := filepath.Join(t.TempDir(), "keyless")
	require.NoError(t, local.Import(t.Context(), to, bytes.NewReader(wholeOf(t, dir)), nil, local.Options{}, nil))
	w := open(t, to)
	_, err := w.Checkpoint()
	require.ErrorIs(t, err, local.ErrNoKeys)
	none, err := w.Signers()
	require.NoError(t, err)
	require.Empty(t, none)
	c, err := w.Checkpoint(cosigner())
	require.NoError(t, err)
	s, err := checkpoint.Open(c.Note, cosigner().Public().(ed25519.PublicKey))
	require.NoError(t, err)
	require.Len(t, s.By, 1)
	require.NoError(t, w.Close())
}

// Two worlds with the same past and the same keys go different ways. What the one
// has signed the other does not gainsay.
func TestNoOtherHistoryIsSigned(t *testing.T) {
	dir := signing(t, "100")
	w := open(t, dir)
	live(t, w)
	to := filepath.Join(t.TempDir(), "twin")
	_, err := w.Backup(to)
	require.NoError(t, err)
	live(t, w)
	c, err := w.Checkpoint()
	require.NoError(t, err)
	require.NoError(t, w.Close())

	twin := open(t, to)
	step := func() error {
		_, err := twin.Submit(t.Context(), "go", map[string]any{"to": "another", "do": []any{}})
		require.NoError(t, err)
		return twin.Step(t.Context())
	}
	for uint64(twin.Status().Head.ID) < c.Size {
		require.NoError(t, step())
	}
	require.NoError(t, local.StoreOf(twin).PutCheckpoint(c.Note))
	_, err = twin.Checkpoint(cosigner())
	require.ErrorIs(t, err, local.ErrOtherHistory)
	for err = nil; err == nil && uint64(twin.Status().Head.ID) < c.Size+300; {
		err = step()
	}
	require.ErrorIs(t, err, local.ErrOtherHistory, "what is due is not signed either")
	require.NoError(t, twin.Close())
}

// A store that has lost its end, and the anchor with it, is not the one either.
func TestLessThanWhatWasSignedIsNotSigned(t *testing.T) {
	dir, head := lived(t)
	note, err := (checkpoint.Checkpoint{World: "test", Size: uint64(head.ID) + 1}).Sign(cosigner())
	require.NoError(t, err)
	db, err := pebble.Open(filepath.Join(dir, ".world", "store"), &pebble.Options{ErrorIfNotExists: true})
	require.NoError(t, err)
	key := binary.BigEndian.AppendUint64([]byte{'p'}, uint64(head.ID)+1)
	sum := crc32.Checksum(append(slices.Clone(key), note...), crc32.MakeTable(crc32.Castagnoli))
	require.NoError(t, db.Set(key, binary.BigEndian.AppendUint32(note, sum), pebble.Sync))
	require.NoError(t, db.Close())
	w := open(t, dir)
	_, err = w.Checkpoint()
	if testlog.On() { // it was put into a copy, which is not asked
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, local.ErrOtherHistory)
	}
	require.NoError(t, w.Close())
}

func TestBackupKeepsWhatWasSignedAndAForkSignsItsOwn(t *testing.T) {
	_, w, first := checkpointed(t)
	live(t, w)
	second, err := w.Checkpoint()
	require.NoError(t, err)
	backup := filepath.Join(t.TempDir(), "backup")
	_, err = w.Backup(backup)
	require.NoError(t, err)
	b := open(t, backup)
	require.Equal(t, []store.Signed{*first, *second}, signedOf(t, b))
	require.NoError(t, b.Close())

	for name, at := range map[string]journal.Seq{"of all": 0, "of a part": journal.Seq(first.Size)} {
		t.Run(name, func(t *testing.T) {
			fork := filepath.Join(t.TempDir(), "fork")
			_, err := w.Fork(t.Context(), fork, local.ForkOptions{ID: "fork", At: at, Actor: "ada"})
			require.NoError(t, err)
			f := open(t, fork)
			require.Empty(t, signedOf(t, f))
			c, err := f.Checkpoint()
			require.NoError(t, err)
			require.Equal(t, "fork", c.World)
			require.Equal(t, []store.Signed{*c}, signedOf(t, f))
			require.NoError(t, f.Close())
		})
	}
	require.NoError(t, w.Close())
}
