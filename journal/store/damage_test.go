package store

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/worldkernel/worldkernel/internal/fault"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// change rewrites one value of a closed world, as no disk error would: Pebble's
// own checksums are right again.
func change(t testing.TB, mem vfs.FS, key []byte, edit func([]byte) []byte) {
	t.Helper()
	db := raw(t, mem)
	value, closer, err := db.Get(key)
	require.NoError(t, err)
	value = edit(append([]byte(nil), value...))
	require.NoError(t, closer.Close())
	if value == nil {
		require.NoError(t, db.Delete(key, pebble.Sync))
	} else {
		require.NoError(t, db.Set(key, value, pebble.Sync))
	}
	require.NoError(t, db.Close())
}

// readers are all ways to read what a closed world holds.
func readAll(s *Store, w *writer) error {
	var errs []error
	for id := journal.Seq(1); id <= w.head.ID; id++ {
		_, err := s.Record(id)
		errs = append(errs, err)
	}
	for _, p := range []string{longPayload, longPayload + longPayload} {
		_, err := s.Blob(canon.Sum([]byte(p)))
		errs = append(errs, err)
	}
	_, err := s.Image(journal.Last)
	errs = append(errs, err)
	for _, err := range s.CellRecords("agent/a", 0) {
		errs = append(errs, err)
	}
	for _, err := range s.scan(journal.Head{}) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func TestAnyFlippedByteIsNamed(t *testing.T) {
	mem, w := aWorld(t)
	for name, key := range map[string][]byte{
		"record #3":                              recordKey(3),
		"record #8":                              recordKey(8),
		"blob " + hashText(longPayload):          hashKey(blobPrefix, canon.Sum([]byte(longPayload))),
		"cell version agent/a at #6":             cellVersionKey("agent/a", 6),
		"index of cells from agent/a at #6":      postingKey(nil, 6, "agent/a"),
		"ledger entry 01" + zeros(31) + " at #6": ledgerKey(journal.Hash{1}, 6),
		"image at #6":                            imageKey(6),
		"format version":                         {metaPrefix},
	} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			size := 0
			change(t, clone(mem), key, func(v []byte) []byte { size = len(v); return v })
			stride := min(fault.Stride(7), int64(size))
			for at := int(fault.From(t, stride)); at < size; at += int(stride) {
				files := clone(mem)
				change(t, files, key, func(v []byte) []byte { v[at] ^= 1; return v })
				s, err := Open(testDir, testOptions(files))
				if key[0] == metaPrefix { // then it is not even opened
					damage := (*DamageError)(nil)
					require.ErrorAs(t, err, &damage)
					require.Equal(t, name, damage.What)
					continue
				}
				require.NoError(t, err)
				found := (*DamageError)(nil)
				require.ErrorAs(t, readAll(s, w), &found, "byte %d", at)
				require.Equal(t, name, found.What)
				named := 0
				for err := range allDamage(s) {
					damage := (*DamageError)(nil)
					require.ErrorAs(t, err, &damage)
					if damage.What == name {
						named++
					} else {
						require.ErrorIs(t, err, errUnchecked)
					}
				}
				require.Equal(t, 1, named, "byte %d", at)
				require.NoError(t, s.Close())
			}
		})
	}
}

// twoImages is aWorld with a second image, after the ninth record, and the first
// one kept.
func twoImages(t testing.TB) (*vfs.MemFS, *writer) {
	t.Helper()
	mem, w := aWorld(t)
	s := reopen(t, mem)
	require.NoError(t, s.Checkpoint(&journal.Image{
		Head: w.head, Keep: []journal.Seq{6},
		Cells:   []journal.CellVersion{{Cell: "agent/a", Bytes: []byte("newer a")}},
		Intents: []journal.IntentVersion{{Key: journal.Hash{1}, Bytes: []byte("newer 1")}},
	}))
	require.NoError(t, s.Close())
	return mem, w
}

func TestDamagedNotesAreNamedAndStopLettingGo(t *testing.T) {
	mem, w := twoImages(t)
	for name, key := range map[string][]byte{
		"note of image #6 about cell version agent/a at #6":             noteKey(nil, 6, cellVersionKey("agent/a", 6)),
		"note of image #6 about ledger entry 01" + zeros(31) + " at #6": noteKey(nil, 6, ledgerKey(journal.Hash{1}, 6)),
	} {
		for at := range crcLen {
			files := clone(mem)
			change(t, files, key, func(v []byte) []byte { v[at] ^= 1; return v })
			s := reopen(t, files)
			require.Equal(t, []string{name + " is damaged: " + errSum.Error()}, damageOf(s))
			next := *w
			appendAll(t, s, next.batch("a"))
			require.NoError(t, s.Checkpoint(&journal.Image{Head: next.head}))
			s.settleImages()
			found := (*DamageError)(nil)
			_, err := s.Append(next.batch("b"))
			require.ErrorAs(t, err, &found)
			require.Equal(t, name, found.What)
			require.Equal(t, journal.Seq(6), found.ID)
			require.NoError(t, s.Close())
		}
	}
}

func TestKeysOfNoShapeAreDamage(t *testing.T) {
	mem, _ := twoImages(t)
	for _, key := range [][]byte{
		{imagePrefix},
		append(imageKey(6), 0),
		{versionPrefix, 'a', 0},
		versionKey(nil, []byte{versionPrefix, 0}, 6),
		cellVersionKey("a\x00b", 6),
		versionKey(nil, countName(nil, &journal.CountKey{}), 6), versionKey(nil, countName(nil, &journal.CountKey{Cell: "a\x00b"}), 6),
		hashKey(ledgerPrefix, journal.Hash{1}), append(ledgerKey(journal.Hash{1}, 6), 0),
		{notePrefix},
		numberKey(notePrefix, 6), noteKey(nil, 6, imageKey(6)), noteKey(nil, 6, cellVersionKey("agent/a", 7)),
		{postingPrefix},
		numberKey(postingPrefix, 6),
		{tilePrefix, 0},
		tileKey(0, 7), tileKey(tileLevels, 7), append(tileKey(0, 7), 0),
		{signedPrefix},
		signedKey(7),
	} {
		files := clone(mem)
		db := raw(t, files)
		batch := db.NewBatch()
		seal(batch, key, nil)
		require.NoError(t, batch.Commit(pebble.Sync))
		require.NoError(t, db.Close())
		s := reopen(t, files)
		damage := damageOf(s)
		require.Len(t, damage, 1, "%x", key)
		require.Contains(t, damage[0], errShape.Error())
		require.NoError(t, s.Close())
	}
}

func hashText(payload string) string { return canon.Sum([]byte(payload)).String() }

func zeros(n int) string { return strings.Repeat("00", n) }

func TestAllDamageIsFound(t *testing.T) {
	mem, w := aWorld(t)
	for _, id := range []journal.Seq{2, 5, 7} {
		change(t, mem, recordKey(id), func(v []byte) []byte { v[4] ^= 1; return v })
	}
	change(t, mem, recordKey(4), func([]byte) []byte { return nil })
	change(t, mem, hashKey(blobPrefix, canon.Sum([]byte(longPayload))), func([]byte) []byte { return nil })
	change(t, mem, cellVersionKey("agent/a", 6), func(v []byte) []byte { return v[:3] })
	s := reopen(t, mem)
	damage := strings.Join(damageOf(s), "\n")
	for _, want := range []string{
		"record #2 is", "record #4 is", "record #5 is", "record #7 is", "chain from #3 to #6", "chain from #8 to #9",
		"payload of record #3", "agent/a at #6",
	} {
		require.Contains(t, damage, want)
	}
	require.NotContains(t, damage, "record #6 is")
	require.Equal(t, journal.Seq(9), w.head.ID)
	for err := range allDamage(s) {
		require.Error(t, err)
		break
	}
	require.NoError(t, s.Close())
}

// A forger who can write to the store gets all checksums right, but not the
// chain.
func TestForgedRecordIsNamed(t *testing.T) {
	mem, w := aWorld(t)
	forged := canon.AppendEnvelope(nil, canon.Envelope{ID: 5, Time: 7, Kind: testKind, Payload: []byte("agent/c")})
	db := raw(t, mem)
	batch := db.NewBatch()
	link, closer, err := db.Get(recordKey(5))
	require.NoError(t, err)
	var root journal.Hash
	copy(root[:], link[len(link)-linkLen-crcLen:])
	require.NoError(t, closer.Close())
	require.NoError(t, setRecords(batch, []journal.Stored{{ID: 5, Bytes: forged, Root: root}}, 1))
	require.NoError(t, batch.Commit(pebble.Sync))
	require.NoError(t, db.Close())

	s := reopen(t, mem)
	found := (*DamageError)(nil)
	require.ErrorAs(t, readAll(s, w), &found)
	require.Equal(t, journal.Seq(5), found.ID)
	require.ErrorIs(t, found, errLink)
	require.Contains(t, strings.Join(damageOf(s), "\n"), "record #5 is")
	require.NoError(t, s.Close())
}

// A byte that goes bad on the disk is harmless or is found, wherever it lies;
// and where the world is refused, nothing is made worse: with the byte back,
// everything is there.
func TestAnyFlippedByteOnDiskIsHarmlessOrFound(t *testing.T) {
	mem, _ := aWorld(t)
	s := reopen(t, mem) // the first records go to a table, the next stay in the log
	w := resume(s)
	appendAll(t, s, w.batch("agent/a", longPayload+"again"), w.batch("agent/b"))
	want := scanAll(t, s, 0)
	mem = clone(mem) // as killed
	require.NoError(t, s.Close())

	found := map[string]int{}
	for _, file := range filesOf(t, mem, testDir+"/store") {
		info, err := mem.Stat(file)
		require.NoError(t, err)
		step := max(1, info.Size()/200*fault.Stride(11))
		for at := fault.From(t, step); at < info.Size(); at += step {
			files := clone(mem)
			flip(t, files, file, at)
			s, err := Open(testDir, testOptions(files))
			switch {
			case err != nil:
				found[path.Ext(file)]++
				flip(t, files, file, at)
				s = reopen(t, files)
				require.Equal(t, want, scanAll(t, s, 0), "%s at %d was made worse", file, at)
				require.Empty(t, damageOf(s))
			case len(damageOf(s)) > 0:
				found[path.Ext(file)]++
			default:
				require.Equal(t, want, scanAll(t, s, 0), "%s at %d", file, at)
				require.NoError(t, readAll(s, w))
			}
			require.NoError(t, s.Close())
		}
	}
	require.Positive(t, found[".sst"])
	require.Positive(t, found[".log"])
	t.Log(found)
}

// A block that is damaged is named once, with all of its records: Pebble takes a tenth of a second
// each time that one of them is read.
func TestRecordsOfADamagedBlockAreNamedTogether(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	payloads := make([]string, 6000)
	for i := range payloads {
		payloads[i] = fmt.Sprintf("agent/%d does what others do", i)
		appendAll(t, s, w.batch(payloads[i]))
	}
	require.NoError(t, s.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false)) // all goes to one table
	require.NoError(t, s.Close())

	file := largest(t, mem, testDir+"/store")
	info, err := mem.Stat(file)
	require.NoError(t, err)
	flip(t, mem, file, info.Size()/3)
	s = reopen(t, mem)
	defer func() { require.NoError(t, s.Close()) }()
	var first, last journal.Seq
	for err := range s.RecordDamage() {
		var damage *DamageError
		require.ErrorAs(t, err, &damage)
		if strings.HasPrefix(damage.What, "every record") {
			require.Zero(t, last, "two errors about one block: %s", err)
			_, err := fmt.Sscanf(damage.What, "every record from #%d to #%d", &first, &last)
			require.NoError(t, err)
		}
	}
	require.Greater(t, last, first)
	for id := journal.Seq(1); id <= w.head.ID; id++ {
		switch {
		case id == first-1:
			continue // whoever asks for it alone comes from behind, through the block
		case id > first && id < last:
			continue // Pebble looks for the flipped bit each time, which takes a second
		}
		_, err := s.storedEntry(id)
		require.Equal(t, id >= first && id <= last, err != nil, "#%d: %v", id, err)
	}
}

// largest returns the table with the most bytes.
func largest(t testing.TB, files vfs.FS, dir string) (name string) {
	t.Helper()
	most := int64(0)
	for _, file := range filesOf(t, files, dir) {
		info, err := files.Stat(file)
		require.NoError(t, err)
		if path.Ext(file) == ".sst" && info.Size() > most {
			name, most = file, info.Size()
		}
	}
	return name
}

func filesOf(t testing.TB, files vfs.FS, dir string) []string {
	t.Helper()
	names, err := files.List(dir)
	require.NoError(t, err)
	var all []string
	for _, name := range names {
		if name != "LOCK" {
			all = append(all, fmt.Sprintf("%s/%s", dir, name))
		}
	}
	return all
}
