package store

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// forgedArchive changes an archive, or makes another of the same records but one: it is
// whole then.
func forgedArchive(t *testing.T, a *attack.Attempt, good []byte, all []journal.Scanned) []byte {
	data := bytes.Clone(good)
	if !a.Chance(3) {
		for range 1 + a.IntN(3) {
			i, j := a.IntN(len(data)), a.IntN(len(data))
			switch a.IntN(6) {
			case 0, 1:
				data[i] ^= 1 << a.IntN(8)
			case 2:
				data = slices.Delete(data, min(i, j), max(i, j))
			case 3:
				data = slices.Insert(data, i, byte(a.Uint32()))
			case 4:
				copy(data[i:], good[j%len(good):min(j%len(good)+64, len(good))])
			default:
				data = append(data, good[min(i, len(good)):]...)
			}
			if len(data) == 0 {
				return data
			}
		}
		return data
	}
	before := journal.Head{ID: 1, Root: rootAfter(t, all[:1])}
	chain := canon.ResumeChain(before.Root)
	at := 1 + a.IntN(29)
	var records []journal.Stored
	for i, r := range all[1:30] {
		e, err := canon.DecodeEnvelopeAs(r.Bytes, journal.KindOf)
		require.NoError(t, err)
		content := bytes.Clone(r.Bytes)
		if i == at-1 { // the last byte is of the payload, and anything goes there
			content[len(content)-1] ^= byte(1 + a.IntN(7))
		}
		records = append(records, journal.Stored{ID: r.ID, Bytes: content, Root: chain.Add(e.ID, e.Kind, content)})
	}
	return archiveOf(t, before, records)
}

// rootAfter returns the chain root after some records from the first on.
func rootAfter(t *testing.T, records []journal.Scanned) canon.Hash {
	chain := new(canon.Chain)
	for _, r := range records {
		e, err := canon.DecodeEnvelopeAs(r.Bytes, journal.KindOf)
		require.NoError(t, err)
		chain.Add(e.ID, e.Kind, r.Bytes)
	}
	return chain.Root()
}

// TestAttackArchives puts other archives in the place of one. Nothing is read from
// them that was not archived, and the store says that they are not what it archived.
func TestAttackArchives(t *testing.T) {
	mem := memFS(t)
	_, all := aPast(t, mem, 300)
	s, _ := archived(t, mem)
	defer s.Close() //nolint:errcheck // in memory
	good := readFile(t, mem, "/a")
	attack.Run(t, "archives", func(a *attack.Attempt) {
		bad := forgedArchive(t, a, good, all)
		if bytes.Equal(bad, good) {
			return
		}
		require.NoError(t, putA(mem, bad))
		for _, r := range all[:31] {
			if data, err := s.Record(r.ID); err == nil && !bytes.Equal(data, r.Bytes) {
				a.Through("record #%d is %x, and %x was archived", r.ID, data, r.Bytes)
			}
		}
		for r, err := range s.Scan(0) {
			if err != nil {
				break
			}
			if !bytes.Equal(r.Bytes, all[r.ID-1].Bytes) {
				a.Through("record #%d is read as %x, and %x was archived", r.ID, r.Bytes, all[r.ID-1].Bytes)
			}
		}
		if len(damageOf(s)) == 0 {
			a.Through("nothing is damaged, with an archive of %d bytes for one of %d", len(bad), len(good))
		}
	})
}
