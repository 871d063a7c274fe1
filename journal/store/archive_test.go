package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
)

// aPast returns a world of some records in segments of several lengths, with an
// image at its head, and all of its records.
func aPast(t testing.TB, mem *vfs.MemFS, segmentBytes int) (*writer, []journal.Scanned) {
	t.Helper()
	opts := testOptions(mem)
	opts.segmentBytes = segmentBytes
	s, err := Create(testDir, opts)
	require.NoError(t, err)
	w := &writer{}
	for i := range 8 {
		appendAll(t, s, w.batch("agent/a", fmt.Sprint("agent/b ", i), longPayload+fmt.Sprint(i), "agent/c", "@1=agent/a"))
	}
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Core: []byte("core")}))
	appendAll(t, s, w.batch("@1", "agent/a"))
	all := scanAll(t, s, 0)
	require.NoError(t, s.Close())
	return w, all
}

// archived opens the store with a past and archives much of that to /a.
func archived(t testing.TB, files vfs.FS) (*Store, Archived) {
	t.Helper()
	s := reopen(t, files)
	a, err := s.Archive(30, "/a")
	require.NoError(t, err)
	return s, a
}

// requireJournal checks every way of reading a journal against its records.
func requireJournal(t require.TestingT, s *Store, all []journal.Scanned) {
	for after := range all {
		got := []journal.Scanned{}
		for r, err := range s.Scan(journal.Seq(after)) {
			require.NoError(t, err)
			got = append(got, r)
		}
		require.Equal(t, all[after:], got)
	}
	for _, r := range all {
		data, err := s.Record(r.ID)
		require.NoError(t, err)
		require.Equal(t, r.Bytes, data)
	}
	require.Empty(t, damageOf(s))
}

func TestArchivedRecordsReadAsBefore(t *testing.T) {
	for _, segmentBytes := range []int{1, 300, 1 << 20} {
		t.Run(fmt.Sprint(segmentBytes), func(t *testing.T) {
			mem := memFS(t)
			w, all := aPast(t, mem, segmentBytes)
			s := reopen(t, mem)
			of := cellRecords(t, s, "agent/a", 0)
			for i, to := range []journal.Seq{7, 8, 33, 39} {
				a, err := s.Archive(to, fmt.Sprintf("/a%d", i))
				require.NoError(t, err)
				require.Equal(t, to, a.Last.ID)
				require.Len(t, s.Archived(), i+1)
				require.NoError(t, s.Missing(a))
				requireJournal(t, s, all)
				require.NoError(t, s.Close())
				s = reopen(t, mem)
				requireJournal(t, s, all)
				require.Equal(t, of, cellRecords(t, s, "agent/a", 0))
			}
			require.Equal(t, 4, inStore(t, s), "record 1, and from #40 on")
			_, err := s.Archive(39, "/again")
			require.ErrorIs(t, err, ErrNothingToArchive)
			_, err = s.Archive(40, "/more")
			require.ErrorIs(t, err, ErrNeededToOpen)
			appendAll(t, s, w.batch("agent/a"))
			require.NoError(t, s.Close())
			_, err = mem.Stat("/more")
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
	}
}

// inStore returns how many records the store itself holds.
func inStore(t testing.TB, s *Store) (n int) {
	t.Helper()
	it, err := s.iterate([]byte{recordPrefix}, []byte{recordPrefix + 1})
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		for _, err := range segmentEntries(recordID(it.Key()), it.Value(), 1) {
			require.NoError(t, err)
			n++
		}
	}
	require.NoError(t, it.Close())
	return n
}

func TestArchiveWritesOverNothing(t *testing.T) {
	mem := memFS(t)
	_, all := aPast(t, mem, 300)
	s := reopen(t, mem)
	require.NoError(t, putA(mem, []byte("mine")))
	_, err := s.Archive(9, "/a")
	require.ErrorIs(t, err, fs.ErrExist)
	requireJournal(t, s, all)
	require.Empty(t, s.Archived())
	require.NoError(t, mem.Rename("/a", "/b.new"))
	_, err = s.Archive(9, "/b")
	require.ErrorIs(t, err, fs.ErrExist, "where it would be written before it has its name")
	var inTheWay *fs.PathError
	require.ErrorAs(t, err, &inTheWay)
	require.Equal(t, "/b.new", inTheWay.Path)
	require.Equal(t, "mine", string(readFile(t, mem, "/b.new")))
	_, err = s.Archive(9, "/no/such/dir/a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.Close())
}

// TestArchiveThatIsNotWhatWasWrittenIsNone: a disk that garbles what it is given must not
// cost the records.
func TestArchiveThatIsNotWhatWasWrittenIsNone(t *testing.T) {
	mem := memFS(t)
	_, all := aPast(t, mem, 300)
	s := reopen(t, garbling{mem})
	_, err := s.Archive(30, "/a")
	require.Error(t, err)
	requireJournal(t, s, all)
	require.Empty(t, s.Archived())
	_, err = mem.Stat("/a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.Close())
}

// garbling are files of which those that are to be archives lose a bit.
type garbling struct{ vfs.FS }

func (g garbling) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.Create(name, category)
	if err == nil && name == "/a.new" {
		f = garbled{f}
	}
	return f, err
}

type garbled struct{ vfs.File }

func (g garbled) Write(p []byte) (int, error) {
	data := bytes.Clone(p)
	data[len(data)/2] ^= 1
	return g.File.Write(data)
}

// putA makes data the file that the tests archive to.
func putA(files vfs.FS, data []byte) error {
	f, err := files.Create("/a", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Clone(data)) // Pebble's memory file system spoils what it is given, under the race detector
	return errors.Join(err, f.Sync(), f.Close())
}

func readFile(t testing.TB, files vfs.FS, path string) []byte {
	t.Helper()
	f, err := files.Open(path)
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, errors.Join(err, f.Close()))
	return data
}

func TestMissingArchiveIsNamedAndTheRestIsThere(t *testing.T) {
	mem := memFS(t)
	w, all := aPast(t, mem, 300)
	s, a := archived(t, mem)
	require.NoError(t, s.Close())
	require.NoError(t, mem.Rename("/a", "/b"))
	s = reopen(t, mem)
	var missing *journal.ArchivedError
	_, err := s.Record(2)
	require.ErrorAs(t, err, &missing)
	require.ErrorIs(t, err, journal.ErrArchived)
	require.Equal(t, journal.ArchivedError{File: "/a", From: 2, To: 30, Err: missing.Err}, *missing)
	for _, err := range s.Scan(1) {
		require.ErrorIs(t, err, journal.ErrArchived)
	}
	require.ErrorIs(t, s.Missing(a), journal.ErrArchived)
	require.Empty(t, damageOf(s), "what is there is whole")
	require.Equal(t, all[30:], scanAll(t, s, 30))
	_, err = s.Record(1)
	require.NoError(t, err)
	_, err = s.Image(journal.Last)
	require.NoError(t, err)
	appendAll(t, s, w.batch("agent/a"))
	require.NoError(t, s.Close())

	require.NoError(t, mem.Rename("/b", "/a"))
	s = reopen(t, mem)
	requireJournal(t, s, append(all, scanAll(t, s, journal.Seq(len(all)))...))
	require.NoError(t, s.Close())
}

// TestArchiveMovesWithItsWorld finds in the world's directory what is at its path no more.
func TestArchiveMovesWithItsWorld(t *testing.T) {
	mem := memFS(t)
	_, all := aPast(t, mem, 300)
	s := reopen(t, mem)
	require.NoError(t, mem.MkdirAll("/far", 0o700))
	_, err := s.Archive(30, "/far/a")
	require.NoError(t, err)
	require.NoError(t, mem.Rename("/far/a", mem.PathJoin(mem.PathDir(s.dir), "a")))
	requireJournal(t, s, all)
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())
}

// TestAnotherArchiveIsNotTaken puts in its place one of as many records.
func TestAnotherArchiveIsNotTaken(t *testing.T) {
	mem := memFS(t)
	_, all := aPast(t, mem, 300)
	s := reopen(t, mem)
	_, err := s.Archive(9, "/a")
	require.NoError(t, err)
	w := &writer{}
	before := w.batch("agent/other").Head
	require.NoError(t, putA(mem, archiveOf(t, before, w.batch("1", "2", "3", "4", "5", "6", "7", "8").Records)))
	_, err = s.Record(5)
	require.ErrorIs(t, err, journal.ErrArchived)
	require.Len(t, damageOf(s), 1)
	require.Equal(t, all[9:], scanAll(t, s, 9))
	require.NoError(t, s.Close())
}

// TestImageBeforeAMissingArchiveIsThere reads one whose record is archived.
func TestImageBeforeAMissingArchiveIsThere(t *testing.T) {
	mem := memFS(t)
	s, w := create(t, mem), &writer{}
	appendAll(t, s, w.batch("agent/a", "agent/b", "agent/c"))
	old := &journal.Image{Head: w.head, Core: []byte("old")}
	require.NoError(t, s.Checkpoint(old))
	appendAll(t, s, w.batch("agent/a", "agent/b", "agent/c"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Core: []byte("new"), Keep: []journal.Seq{3}}))
	_, err := s.Archive(4, "/a")
	require.NoError(t, err)
	require.NoError(t, mem.Remove("/a"))
	img, err := s.Image(4)
	require.NoError(t, err)
	require.Equal(t, old.Core, img.Core)
	require.NoError(t, s.Close())
}

func TestAnyFlippedByteOfAnArchiveIsNamed(t *testing.T) {
	mem := memFS(t)
	aPast(t, mem, 300)
	s, _ := archived(t, mem)
	good := readFile(t, mem, "/a")
	stride := fault.Stride(7)
	for at := int(fault.From(t, stride)); at < len(good); at += int(stride) {
		bad := bytes.Clone(good)
		bad[at] ^= 1
		require.NoError(t, putA(mem, bad))
		damage := damageOf(s)
		require.Len(t, damage, 1, "byte %d", at)
		require.Contains(t, damage[0], "records #2 to #30 are archived in /a")
	}
	require.NoError(t, putA(mem, good[:len(good)/2]))
	require.Len(t, damageOf(s), 1)
	require.NoError(t, putA(mem, good))
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())
}

func TestCrashLeavesAStoreOrItsArchive(t *testing.T) {
	mem := memFS(t)
	_, all := aPast(t, mem, 300)
	kept, moved := 0, 0
	crashes(t, mem, func(opts Options) {
		s, err := Open(testDir, opts)
		require.NoError(t, err)
		_, err = s.Archive(17, "w/a")
		require.NoError(t, err)
		_, err = s.Archive(33, "w/b")
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}, func(t *testing.T, files *vfs.MemFS) {
		s := reopen(t, files)
		requireJournal(t, s, all)
		switch list := s.Archived(); len(list) {
		case 0:
			kept++
		default:
			moved++
			require.Equal(t, len(all)-int(list[len(list)-1].Last.ID)+1, inStore(t, s))
		}
		require.NoError(t, s.Close())
	})
	require.Positive(t, kept)
	require.Positive(t, moved)
}

// archiveOf writes an archive of records that follow a head.
func archiveOf(t require.TestingT, before journal.Head, records []journal.Stored) []byte {
	mem := vfs.NewMem()
	f, err := mem.Create("a", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	last := records[len(records)-1]
	head, err := fillArchive(f, before, func(yield func(entry, error) bool) {
		for _, r := range records {
			e, err := canon.DecodeEnvelopeAs(r.Bytes, journal.KindOf)
			if !yield(entry{Envelope: e, record: r.Bytes, link: r.Root[:linkLen]}, err) {
				return
			}
		}
	}, last.ID)
	require.NoError(t, err)
	require.Equal(t, journal.Head{ID: last.ID, Root: last.Root}, head)
	f, err = mem.Open("a")
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, errors.Join(err, f.Close()))
	return data
}

// openedArchive is a store without anything but the file /a.
func openedArchive(t require.TestingT, data []byte) *Store {
	s := &Store{dir: "/w", opts: Options{FS: vfs.NewMem()}}
	require.NoError(t, putA(s.opts.FS, data))
	return s
}

// TestArchiveHoldsWhatWasWritten reads archives of several blocks from anywhere.
func TestArchiveHoldsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := &writer{}
		first := w.batch("agent/before")
		var payloads []string
		for range rapid.IntRange(1, 40).Draw(r, "records") {
			payloads = append(payloads, string(bytes.Repeat([]byte("x"), 100)))
		}
		records := w.batch(payloads...).Records
		for i := range rapid.IntRange(0, 3).Draw(r, "blocks") { // long ones
			b := journal.Batch{After: w.head, Head: w.head}
			w.addOf(&b, testKind, bytes.Repeat([]byte{byte(i)}, archiveBlockBytes))
			records = append(records, b.Records...)
		}
		data := archiveOf(r, first.Head, records)
		s := openedArchive(r, data)
		a := Archived{File: "/a", First: first.Head.ID + 1, Last: w.head, Sum: canon.Sum(data)}
		require.NoError(r, s.checkArchive(a))
		from := rapid.IntRange(0, len(records)-1).Draw(r, "from")
		next := from
		for e, err := range s.archivedEntries(a, records[from].ID) {
			require.NoError(r, err)
			require.Equal(r, records[next].Bytes, e.record)
			next++
		}
		require.Len(r, records, next)
	})
}

// FuzzArchive holds that no file makes a reader panic, and that one whose sum is right
// holds what was written.
func FuzzArchive(f *testing.F) {
	w := &writer{}
	before := w.batch("agent/a").Head
	records := w.batch("agent/a", "agent/b").Records
	good := archiveOf(f, before, records)
	f.Add(good)
	f.Add(good[len(good)-64:])
	f.Fuzz(func(t *testing.T, data []byte) {
		s := openedArchive(t, data)
		a := Archived{File: "/a", First: before.ID + 1, Last: w.head, Sum: canon.Sum(good)}
		whole := s.checkArchive(a) == nil
		require.Equal(t, bytes.Equal(good, data), whole)
		n := 0
		for e, err := range s.archivedEntries(a, a.First) {
			if whole {
				require.NoError(t, err)
				require.Equal(t, records[n].Bytes, e.record)
				n++
			}
		}
		if whole {
			require.Len(t, records, n)
		}
	})
}
