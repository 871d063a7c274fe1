package bundle_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/chunk"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// steps writes a bundle call by call; each call of a story is one step.
type steps struct {
	t *testing.T
	j *worldtest.Journal
	w *bundle.Writer
}

func begin(t *testing.T, change func(h *bundle.Header)) *steps {
	t.Helper()
	j := shop(t, "a").Journal
	h := headerOf(j, cut{})
	change(&h)
	w, err := bundle.NewWriter(io.Discard, h)
	require.NoError(t, err)
	return &steps{t, j, w}
}

func asItIs(*bundle.Header) {}

func (s *steps) scanned(id journal.Seq) journal.Scanned {
	stored := s.j.Records()[id-1]
	return journal.NewScanned(id, stored.Bytes, stored.Root[:])
}

// records writes records with what they need.
func (s *steps) records(from, to journal.Seq) {
	s.t.Helper()
	for id := from; id <= to; id++ {
		x := s.scanned(id)
		for _, b := range blobsOf(s.t, s.j, x.Record) {
			require.NoError(s.t, s.w.Blob(b))
		}
		require.NoError(s.t, s.w.Record(x))
	}
}

func (s *steps) last() journal.Seq { return s.j.Head().ID }

func TestWriterRefusesWhatMakesNoBundle(t *testing.T) {
	for name, c := range map[string]struct {
		header func(h *bundle.Header)
		story  func(s *steps) error
	}{
		"the second record first": {asItIs, func(s *steps) error { return s.w.Record(s.scanned(2)) }},
		"a record twice":          {asItIs, func(s *steps) error { s.records(1, 1); return s.w.Record(s.scanned(1)) }},
		"a record left out":       {asItIs, func(s *steps) error { s.records(1, 2); return s.w.Record(s.scanned(4)) }},
		"a record too many":       {func(h *bundle.Header) { h.Last = 3 }, func(s *steps) error { s.records(1, 3); return s.w.Record(s.scanned(4)) }},
		"another link": {asItIs, func(s *steps) error {
			x := s.scanned(2)
			x.Link[7]++
			s.records(1, 1)
			return s.w.Record(x)
		}},
		"a blob that nobody needs": {asItIs, func(s *steps) error {
			s.records(1, 1)
			require.NoError(s.t, s.w.Blob([]byte("more")))
			return s.w.Record(s.scanned(2))
		}},
		"no checkpoint": {asItIs, func(s *steps) error { s.records(1, s.last()); return s.w.Close() }},
		"no last checkpoint": {asItIs, func(s *steps) error {
			s.records(1, 4)
			require.NoError(s.t, s.w.Checkpoint(sign(s.t, s.j, 4, worldtest.Key(1))))
			s.records(5, s.last())
			return s.w.Close()
		}},
		"not all records": {asItIs, func(s *steps) error {
			s.records(1, 4)
			require.NoError(s.t, s.w.Checkpoint(sign(s.t, s.j, 4, worldtest.Key(1))))
			return s.w.Close()
		}},
		"a checkpoint elsewhere": {asItIs, func(s *steps) error { s.records(1, 4); return s.w.Checkpoint(sign(s.t, s.j, 5, worldtest.Key(1))) }},
		"a checkpoint of nothing": {
			func(h *bundle.Header) { h.First = 2; h.Root = canon.Sum(nil); h.Nodes = []journal.Hash{canon.Sum(nil)} },
			func(s *steps) error { return s.w.Checkpoint(sign(s.t, s.j, 1, worldtest.Key(1))) },
		},
		"a checkpoint twice": {asItIs, func(s *steps) error {
			s.records(1, 4)
			require.NoError(s.t, s.w.Checkpoint(sign(s.t, s.j, 4, worldtest.Key(1))))
			return s.w.Checkpoint(sign(s.t, s.j, 4, worldtest.Key(1)))
		}},
		"a checkpoint behind a blob": {asItIs, func(s *steps) error {
			s.records(1, 4)
			require.NoError(s.t, s.w.Blob([]byte("more")))
			return s.w.Checkpoint(sign(s.t, s.j, 4, worldtest.Key(1)))
		}},
		"a checkpoint of another history": {asItIs, func(s *steps) error {
			s.records(1, 4)
			return s.w.Checkpoint(sign(s.t, shop(s.t, "b").Journal, 4, worldtest.Key(1)))
		}},
		"a checkpoint of a stranger": {asItIs, func(s *steps) error { s.records(1, 4); return s.w.Checkpoint(sign(s.t, s.j, 4, worldtest.Key(2))) }},
		"no checkpoint at all":       {asItIs, func(s *steps) error { s.records(1, 4); return s.w.Checkpoint([]byte("text")) }},
		"a key that signs nothing": {func(h *bundle.Header) { h.Keys = append(h.Keys, worldtest.Public(2)) }, func(s *steps) error {
			s.records(1, s.last())
			require.NoError(s.t, s.w.Checkpoint(sign(s.t, s.j, s.last(), worldtest.Key(1))))
			return s.w.Close()
		}},
		"withheld and never there": {func(h *bundle.Header) { h.Withheld = []journal.Hash{canon.Sum(nil)} }, func(s *steps) error {
			s.records(1, s.last())
			require.NoError(s.t, s.w.Checkpoint(sign(s.t, s.j, s.last(), worldtest.Key(1))))
			return s.w.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, c.header)
			err := c.story(s)
			require.ErrorIs(t, err, bundle.ErrInvalid)
			require.Equal(t, err, s.w.Close(), "it stays so")
		})
	}
}

func TestWriterRefusesHeadersOfNoBundle(t *testing.T) {
	j := shop(t, "a").Journal
	for name, change := range map[string]func(h *bundle.Header){
		"no record":     func(h *bundle.Header) { h.First, h.Last = 1, 0 },
		"no root":       func(h *bundle.Header) { h.First = 2 },
		"other nodes":   func(h *bundle.Header) { h.Nodes = []journal.Hash{{1}} },
		"no key":        func(h *bundle.Header) { h.Keys = nil },
		"half a key":    func(h *bundle.Header) { h.Keys[0] = h.Keys[0][:16] },
		"no name":       func(h *bundle.Header) { h.World = "a world" },
		"withheld zero": func(h *bundle.Header) { h.Withheld = make([]journal.Hash, 1) },
	} {
		h := headerOf(j, cut{})
		change(&h)
		_, err := bundle.NewWriter(io.Discard, h)
		require.ErrorIs(t, err, bundle.ErrInvalid, name)
	}
}

func TestEqualCallsWriteEqualBytes(t *testing.T) {
	j := shop(t, "a", "b", "c").Journal
	names := payloads(t, j)[1:]
	some := write(t, j, cut{signed: []journal.Seq{2}, withheld: names})
	slices.Reverse(names)
	names = append(names, names[0])
	require.Equal(t, some, write(t, j, cut{signed: []journal.Seq{2}, withheld: names}))
}

var errFull = errors.New("the disk is full")

type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestBundleThatCannotBeWrittenIsNone(t *testing.T) {
	j := shop(t, "a").Journal
	size := len(write(t, j, cut{}))
	for _, room := range []int{0, 5, size / 2, size - 1} {
		w, err := bundle.NewWriter(&fullDisk{room}, headerOf(j, cut{}))
		for _, s := range j.Records() {
			if err != nil {
				break
			}
			x := journal.NewScanned(s.ID, s.Bytes, s.Root[:])
			for _, b := range blobsOf(t, j, x.Record) {
				err = errors.Join(err, w.Blob(b))
			}
			err = errors.Join(err, w.Record(x))
		}
		if err == nil {
			require.NoError(t, w.Checkpoint(sign(t, j, j.Head().ID, worldtest.Key(1))))
			err = w.Close()
		}
		require.ErrorIs(t, err, errFull)
	}
}

// again writes what a bundle without damage holds, as it came.
func again(t testing.TB, r *bundle.Reader, items [][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := bundle.NewWriter(&out, r.Header())
	next := r.Header().First
	var pieces [][]byte
	for i := 1; err == nil && i < len(items); i++ {
		item := canon.NewReader(items[i])
		switch kindOf(items[i]) {
		case aPiece:
			n := item.Array()
			if n == 1 {
				pieces = append(pieces, item.Bytes())
				continue
			}
			size := item.Uint()
			l, failed := chunk.Parse(item.Bytes(), size)
			var content []byte
			for _, e := range l.Entries {
				content = append(content, pieces[e.Number-1]...)
			}
			require.NoError(t, failed)
			require.Zero(t, l.Level)
			err = w.Blob(content)
		case aBlob:
			err = w.Blob(item.Bytes())
		case aText:
			err = w.Checkpoint(item.TextBytes())
		default:
			item.ArrayOf(2)
			record := item.Raw()
			s := journal.NewScanned(next, record, item.Bytes())
			err = w.Record(s)
			next++
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil // what verification of the records finds, a Writer may find
	}
	return out.Bytes()
}

func TestBundleIsWrittenAgainByteForByte(t *testing.T) {
	data := write(t, shop(t, "a", "b").Journal, cut{signed: []journal.Seq{1, 5}})
	require.Equal(t, data, again(t, open(t, data), split(t, unpack(t, data))))
}

func FuzzReader(f *testing.F) {
	items := told(f)
	f.Add(slices.Concat(items...))
	f.Add(unpack(f, write(f, talk(f).Journal, cut{})))
	for i := range items {
		f.Add(slices.Concat(items[:i]...))
		f.Add(slices.Concat(items[0], items[i]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		packed := pack(t, data)
		r, err := bundle.Open(bytes.NewReader(packed), bundle.Options{MaxBytes: 1 << 20})
		if err != nil {
			return
		}
		damage := slices.Collect(r.Damage())
		for s, err := range r.Scan(0) {
			require.NoError(t, err)
			_, err := r.Record(s.ID)
			require.True(t, err == nil || errors.Is(err, journal.ErrNotFound))
		}
		for _, err := range r.Checkpoints() {
			require.NoError(t, err)
		}
		if len(damage) == 0 {
			for s, err := range r.Scan(0) {
				require.NoError(t, err)
				if s.Err != nil {
					return // for the verification to say
				}
			}
			if slices.ContainsFunc(split(t, data), func(item []byte) bool { return item[0] == 0x81 }) {
				return // pieces can be cut in several ways that mean the same
			}
			if written := again(t, r, split(t, data)); written != nil {
				require.Equal(t, data, unpack(t, written))
			}
		}
		require.NoError(t, r.Close())
	})
}

func FuzzUnpack(f *testing.F) {
	f.Add(write(f, shop(f, "a").Journal, cut{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := bundle.Open(bytes.NewReader(data), bundle.Options{MaxBytes: 1 << 20}); err == nil {
			require.NoError(t, r.Close())
		}
	})
}
