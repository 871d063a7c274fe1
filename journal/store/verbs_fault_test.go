package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// manyCells checkpoints so many cells that leaving them out of a copy fills a log.
func manyCells(t *testing.T, mem *vfs.MemFS, head journal.Head) {
	t.Helper()
	img := &journal.Image{Head: head, Core: []byte("core")}
	for i := range 600 {
		img.Cells = append(img.Cells, journal.CellVersion{Cell: fmt.Sprintf("agent/%04d", i), Bytes: []byte("state")})
	}
	s := reopen(t, mem)
	require.NoError(t, s.Checkpoint(img))
	require.NoError(t, s.Close())
}

// TestFailingDiskEndsEveryVerbAndLosesNothing fails operations while records are
// archived, garbage is collected and copies are made, alone and with all after them. It
// ends as an error or as the end of the process: nobody waits for ever.
func TestFailingDiskEndsEveryVerbAndLosesNothing(t *testing.T) {
	slowUnderRace(t)
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	mem := memFS(t)
	w, all := aPast(t, mem, 300)
	manyCells(t, mem, w.head)
	earlier := func(s *Store, opts Options) error {
		opts.AnchorKey = []byte("another")
		c, _, err := s.CopyTo(copyDir, 18, opts)
		if err != nil {
			return err
		}
		return c.Close()
	}
	for _, verb := range []struct {
		name string
		do   func(*Store, Options) error
	}{
		{"archive", func(s *Store, _ Options) error { _, err := s.Archive(17, "w/a"); return err }},
		{"gc", func(s *Store, _ Options) error { _, err := s.Collect(); return err }},
		{"copy", earlier},
	} {
		fatal := map[bool]int{}
		for n, injected := int64(1), true; injected; n += 1 + rng.Int64N(8) {
			after := rng.IntN(2) == 0
			files := clone(mem)
			var count atomic.Int64
			got := under(files, func(op errorfs.Op) error {
				if i := count.Add(1); i == n || after && i > n {
					return &vfsError{op, syscall.EIO}
				}
				return nil
			}, func(opts Options) error {
				s, err := Open(testDir, opts)
				if err != nil {
					return err
				}
				return errors.Join(verb.do(s, opts), s.Close())
			})
			injected = count.Load() >= n
			if got.err != nil {
				require.ErrorIs(t, got.err, syscall.EIO)
				fatal[got.fatal]++
			}
			name := fmt.Sprintf("%s,operation=%d,all after=%v,seed=%d", verb.name, n, after, seed)
			if !t.Run(name, func(t *testing.T) {
				s := reopen(t, files.CrashClone(vfs.CrashCloneCfg{}))
				requireJournal(t, s, all)
				require.NoError(t, s.Close())
			}) {
				t.Fatal("ended with", got.err)
			}
		}
		require.Positive(t, fatal[false])
		require.Positive(t, fatal[true])
	}
}
