package disk

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/world/verify"
)

// files returns the paths of all files of a world, in order.
func (l *life) files(at string) (all []string) {
	l.t.Helper()
	names, err := l.mem.List(at)
	require.NoError(l.t, err)
	slices.Sort(names)
	for _, name := range names {
		path := l.mem.PathJoin(at, name)
		info, err := l.mem.Stat(path)
		require.NoError(l.t, err)
		switch {
		case info.IsDir():
			all = append(all, l.files(path)...)
		case name != "lock" && name != "LOCK":
			all = append(all, path)
		}
	}
	return all
}

func read(t require.TestingT, mem *vfs.MemFS, path string) []byte {
	f, err := mem.Open(path)
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return data
}

func write(t require.TestingT, mem *vfs.MemFS, path string, data []byte) {
	f, err := mem.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

// record is what the journal holds of one.
type record struct {
	bytes string
	link  [journal.LinkBytes]byte
}

// damage does something to a file of a disk, as a process has left it or closed it, and
// looks at what becomes of it. What was acknowledged is there, or somebody says that it
// is not. Of what was written and not acknowledged nobody has been told, and nobody can
// tell it from what never was: what is there of it is the beginning.
func (l *life) damage(disk *vfs.MemFS, acked journal.Head) {
	l.t.Helper()
	whole := l.mem
	l.mem = disk
	want, fault := l.records(l.open(l.clone(100)))
	require.Empty(l.t, fault)
	name := l.harm()
	if name != "" {
		l.struck.Count(name)
		s := l.open(l.mem)
		if s != nil {
			got, fault := l.records(s)
			if fault == "" {
				require.GreaterOrEqual(l.t, journal.Seq(len(got)), acked.ID, "%s, and nobody says so", name)
				require.LessOrEqual(l.t, len(got), len(want), name)
				require.Equal(l.t, want[:len(got)], got, "%s, and nobody says so", name)
			}
		}
	}
	l.mem = whole
	if l.rng.IntN(2) == 0 {
		l.older = l.clone(0)
	}
}

// open returns the store on a disk, or nil where it cannot be opened.
func (l *life) open(mem *vfs.MemFS) *store.Store {
	opts := options(newFailing(mem, trouble{}, l.rng))
	opened := make(chan *store.Store, 1)
	opts.Fatal = func(error) {
		opened <- nil
		select {}
	}
	go func() {
		s, err := store.Open(dir, opts)
		if err != nil {
			s = nil
		}
		opened <- s
	}()
	return <-opened
}

// records returns what a store holds, and what verification says is wrong with it.
func (l *life) records(s *store.Store) (all []record, fault string) {
	l.t.Helper()
	require.NotNil(l.t, s)
	defer func() { _ = s.Close() }() // it may be damaged
	for r, err := range s.Scan(0) {
		if err != nil {
			return nil, err.Error()
		}
		if r.Err != nil {
			return nil, r.Err.Error()
		}
		all = append(all, record{string(r.Bytes), r.Link})
	}
	r, err := verify.Verify(context.Background(), s, verify.Config{
		Keys: keyring(), Registry: registry(), Anchor: s.Head(), Damage: s.Damage(), Records: s.RecordDamage(), Images: s.Heads(),
	})
	switch {
	case err != nil:
		return all, err.Error()
	case !r.OK:
		return all, "it does not verify"
	}
	return all, ""
}

// harm damages a file, and returns how.
func (l *life) harm() string {
	all := l.files(dir)
	path := all[l.rng.IntN(len(all))]
	data := read(l.t, l.mem, path)
	if len(data) == 0 {
		return ""
	}
	switch l.rng.IntN(6) {
	case 0:
		data[l.rng.IntN(len(data))] ^= 1 << l.rng.IntN(8)
		write(l.t, l.mem, path, data)
		return "bit flipped"
	case 1:
		write(l.t, l.mem, path, data[:l.rng.IntN(len(data))])
		return "file cut"
	case 2:
		require.NoError(l.t, l.mem.Remove(path))
		return "file gone"
	case 3:
		at := l.rng.IntN(len(data)) &^ 511
		clear(data[at:min(at+512, len(data))])
		write(l.t, l.mem, path, data)
		return "sector zeroed"
	case 4:
		if _, err := l.older.Stat(path); err != nil {
			return ""
		}
		write(l.t, l.mem, path, read(l.t, l.older, path))
		return "file stale"
	}
	kind := path[strings.LastIndexByte(path, '.')+1:]
	for _, other := range all {
		if other != path && strings.HasSuffix(other, "."+kind) {
			write(l.t, l.mem, path, read(l.t, l.mem, other))
			write(l.t, l.mem, other, data)
			return "files swapped"
		}
	}
	return ""
}
