package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
)

// spilling is a Spill and what it should hold.
type spilling struct {
	x    *Spill
	want journal.Images
	kept []journal.Seq
	at   journal.Seq
}

func (s *spilling) drawImage(r *rapid.T) *journal.Image {
	s.at += journal.Seq(rapid.IntRange(1, 3).Draw(r, "records"))
	img := &journal.Image{Head: journal.Head{ID: s.at}, Core: []byte(rapid.StringN(0, 3, -1).Draw(r, "core"))}
	for _, cell := range imageCells {
		switch rapid.IntRange(0, 3).Draw(r, cell) {
		case 0:
			img.Cells = append(img.Cells, journal.CellVersion{Cell: cell, Bytes: []byte("is " + rapid.StringN(1, 3, -1).Draw(r, "state"))})
		case 1:
			img.Cells = append(img.Cells, journal.CellVersion{Cell: cell})
		}
	}
	for key := range byte(3) {
		if rapid.Bool().Draw(r, "intent changed") {
			img.Intents = append(img.Intents, journal.IntentVersion{Key: journal.Hash{key}, Bytes: []byte(rapid.StringN(1, 3, -1).Draw(r, "entry"))})
		}
	}
	for _, head := range s.kept {
		if rapid.IntRange(0, 3).Draw(r, "keep") > 0 {
			img.Keep = append(img.Keep, head)
		}
	}
	s.kept = append(slices.Clone(img.Keep), img.Head.ID)
	return img
}

func (s *spilling) compare(r *rapid.T) {
	for at := range s.at + 2 {
		for _, named := range [][]string{nil, imageCells, {"a/1", "b/1", "c"}} {
			want, missing := s.want.Part(at, named)
			got, err := s.x.Part(at, named)
			require.Equal(r, inOrder(want), inOrder(got), "part at %d", at)
			if missing != nil {
				require.ErrorIs(r, err, journal.ErrNotFound)
			} else {
				require.NoError(r, err)
			}
		}
	}
	for _, prefix := range []string{"", "a/", "c"} {
		if len(s.kept) > 0 {
			require.Equal(r, inOrder(allVersions(r, &s.want, prefix, journal.Last)), inOrder(allVersions(r, s.x, prefix, journal.Last)))
		}
	}
	for _, cell := range imageCells {
		want, err := s.want.CellVersion(cell, journal.Last)
		require.NoError(r, err)
		got, err := s.x.CellVersion(cell, journal.Last)
		require.NoError(r, err)
		require.Equal(r, want, got, cell)
	}
}

func TestSpillEqualsImagesInMemory(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		mem := vfs.NewMem()
		x, err := NewSpill("spill", Options{FS: mem})
		require.NoError(r, err)
		s := &spilling{x: x}
		for range rapid.IntRange(1, 8).Draw(r, "images") {
			img := s.drawImage(r)
			require.NoError(r, x.Checkpoint(img))
			s.want.Add(img)
			s.compare(r)
		}
		// Those that were in memory until the world grew larger than that.
		moved, err := NewSpill("moved", Options{FS: mem})
		require.NoError(r, err)
		for img := range s.want.Each() {
			require.NoError(r, moved.Checkpoint(img))
		}
		(&spilling{x: moved, want: s.want, at: s.at, kept: s.kept}).compareMoved(r)
		require.NoError(r, moved.Close())
		require.NoError(r, x.Close())
		left, err := mem.List("")
		require.NoError(r, err)
		require.Empty(r, left)
	})
}

// compareMoved is compare but for At, which is at most later.
func (s *spilling) compareMoved(r *rapid.T) {
	for _, at := range s.kept {
		want, err := s.want.Part(at, imageCells)
		require.NoError(r, err)
		got, err := s.x.Part(at, imageCells)
		require.NoError(r, err)
		require.Len(r, got.Cells, len(want.Cells))
		for i, c := range got.Cells {
			require.Equal(r, want.Cells[i].Bytes, c.Bytes)
			require.LessOrEqual(r, want.Cells[i].At, c.At)
			require.LessOrEqual(r, c.At, at)
		}
		for key := range byte(3) {
			want, err := s.want.IntentVersion(journal.Hash{key}, at)
			require.NoError(r, err)
			got, err := s.x.IntentVersion(journal.Hash{key}, at)
			require.NoError(r, err)
			require.Equal(r, want, got)
		}
	}
}

// Much is written in parts, and a Spill that was not closed is in the way of no other.
func TestSpillTakesImagesOfAnySize(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spill")
	x, err := NewSpill(dir, Options{})
	require.NoError(t, err)
	var cells []journal.CellVersion
	body := make([]byte, 1<<10)
	rng := rand.NewChaCha8([32]byte{})
	for i := range 3 * spillBytes / len(body) {
		_, _ = rng.Read(body)
		body[0] = 1
		cells = append(cells, journal.CellVersion{Cell: fmt.Sprintf("c/%08d", i), Bytes: bytes.Clone(body)})
	}
	for at := journal.Seq(1); at < 4; at++ {
		require.NoError(t, x.Checkpoint(&journal.Image{Head: journal.Head{ID: at}, Cells: cells}))
	}
	for i := 0; i < len(cells); i += 1000 {
		v, err := x.CellVersion(cells[i].Cell, journal.Last)
		require.NoError(t, err)
		require.Equal(t, &journal.CellVersion{Cell: cells[i].Cell, At: 3, Bytes: cells[i].Bytes}, v)
	}
	require.NoError(t, x.Close())
	require.NoDirExists(t, dir)
	_, err = x.CellVersion("c/00000000", journal.Last)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, os.Mkdir(dir, 0o700))
}

// Whatever the disk refuses is an error that names the place: nothing hangs, and nobody reads
// on as if nothing were.
func TestSpillFailsWithTheDisk(t *testing.T) {
	body := bytes.Repeat([]byte("state "), 1<<10)
	tell := func(fs vfs.FS) error {
		x, err := NewSpill("spill", Options{FS: fs})
		if err != nil {
			return err
		}
		for at := journal.Seq(1); at < 4 && err == nil; at++ {
			img := &journal.Image{Head: journal.Head{ID: at}}
			for i := range spillBytes / len(body) {
				img.Cells = append(img.Cells, journal.CellVersion{Cell: fmt.Sprintf("c/%08d", i), Bytes: body})
			}
			err = x.Checkpoint(img)
		}
		for i := 0; i < 8 && err == nil; i++ {
			var v *journal.CellVersion
			if v, err = x.CellVersion(fmt.Sprintf("c/%08d", i*100), journal.Last); err == nil {
				require.Equal(t, body, v.Bytes)
			}
		}
		if closed := x.Close(); err == nil {
			err = closed
		}
		return err
	}
	writes := 0
	count := func(at int) errorfs.Injector {
		return errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileRead, errorfs.OpFileReadAt, errorfs.OpOpen, errorfs.OpMkdirAll, errorfs.OpRename:
				if writes++; at > 0 && writes >= at {
					return errorfs.ErrInjected
				}
			}
			return nil
		})
	}
	require.NoError(t, tell(errorfs.Wrap(vfs.NewMem(), count(0))))
	all := writes
	rng := rand.New(rand.NewPCG(1, 1))
	for at := 1; at < all; at += 1 + rng.IntN(all/6) {
		writes = 0
		err := tell(errorfs.Wrap(vfs.NewMem(), count(at)))
		require.Error(t, err, "from operation %d of %d on", at, all)
		require.ErrorContains(t, err, "spill")
	}
}
