package verify_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/verify"
)

func TestAnyFlippedByteOfARecordIsNamed(t *testing.T) {
	w := bots(t)
	w.Submit("go", order("a", act{"effect": "tool.a", "param": "x"}, act{"emit": "ping", "to": "b"}))
	w.Run()
	require.Empty(t, withKeys(t, w.Journal).Faults)
	for i, s := range w.Journal.Records() {
		for at := range s.Bytes {
			if testing.Short() && at%7 > 0 {
				continue
			}
			x := tamper(w.Journal)
			x.records[i].Bytes = bytes.Clone(s.Bytes)
			x.records[i].Bytes[at] ^= 1 << (at % 8)
			r := withKeys(t, x)
			require.Contains(t, places(r), place(s.ID), "byte %d", at)
		}
	}
}

func TestAnyFlippedByteOfALinkIsNamed(t *testing.T) {
	w := bots(t)
	w.Submit("go", order("a"))
	w.Run()
	for i, s := range w.Journal.Records() {
		for at := range journal.LinkBytes {
			x := tamper(w.Journal)
			x.records[i].Root[at] ^= 0x10
			require.Contains(t, places(withKeys(t, x)), place(s.ID), "byte %d", at)
		}
	}
}

func TestMissingRepeatedAndSwappedRecordsAreNamed(t *testing.T) {
	w := story(t)
	n := len(w.Journal.Records())
	for i := range n {
		dropped := tamper(w.Journal)
		dropped.records = slices.Delete(dropped.records, i, i+1)
		if i < n-1 { // the last one is the anchor's to miss
			require.Contains(t, places(withKeys(t, dropped)), place(journal.Seq(i+2)), "without #%d", i+1)
			require.Contains(t, places(withKeys(t, dropped.relink(t))), place(journal.Seq(i+2)), "without #%d, in a new chain", i+1)
		}
		repeated := tamper(w.Journal)
		repeated.records = slices.Insert(repeated.records, i, repeated.records[i])
		require.Contains(t, places(withKeys(t, repeated)), place(journal.Seq(i+1)), "#%d twice", i+1)
		if i > 0 {
			swapped := tamper(w.Journal)
			swapped.records[i], swapped.records[i-1] = swapped.records[i-1], swapped.records[i]
			require.Contains(t, places(withKeys(t, swapped)), place(journal.Seq(i+1)), "#%d before #%d", i+1, i)
		}
	}
}

func TestJournalThatEndsBeforeItsAnchorIsNamed(t *testing.T) {
	w := story(t)
	head := w.Status().Head
	for n := range head.ID {
		r := run(t, w.Journal.Truncate(n), verify.Config{Anchor: head})
		require.Contains(t, places(r), "anchor", "cut after #%d", n)
		require.Equal(t, &verify.AnchorProof{OK: false, ID: head.ID}, r.Anchor)
	}
	other := head
	other.Root[31] ^= 1
	require.Equal(t, []string{"anchor"}, places(run(t, w.Journal, verify.Config{Anchor: other})))
}

func TestJournalThatEndsInsideAUnitIsNamed(t *testing.T) {
	w := story(t)
	inside := []journal.Kind{
		journal.KindDeleted, journal.KindEmitted, journal.KindDropped, journal.KindIntent, journal.KindDenied, journal.KindTimer,
		journal.KindFired, journal.KindStarted,
	}
	met := make(map[journal.Kind]bool)
	for i, kind := range w.Kinds()[1:] {
		last := journal.Seq(i + 1)
		r := withKeys(t, w.Journal.Truncate(last))
		if !slices.Contains(inside, kind) {
			require.Empty(t, r.Faults, "#%d may be the last", last)
			continue
		}
		met[kind] = true
		require.Contains(t, places(r), place(last+1), "%s is missing", kind)
		require.Equal(t, last+1, r.Replay.FirstDivergence.Record)
	}
	require.Len(t, met, len(inside))
}

func TestMissingAndFlippedBlobsAreNamed(t *testing.T) {
	w := story(t)
	_, _, created := find(t, w.Journal, journal.KindCreated)
	want := map[journal.Hash]journal.Seq{created.(*journal.Created).Manifest: 1}
	for _, h := range w.Manifest().Contents() {
		want[h] = 1
	}
	for _, s := range w.Journal.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		if !rec.Blob.IsZero() {
			want[rec.Blob] = rec.ID
		}
	}
	require.Len(t, want, 5, "manifest, reducer, schema, answers and a long event")
	for hash, id := range want {
		content, err := w.Journal.Blob(hash)
		require.NoError(t, err)
		flipped := bytes.Clone(content)
		flipped[len(flipped)/2] ^= 1
		for name, b := range map[string][]byte{"missing": nil, "flipped": flipped} {
			x := tamper(w.Journal)
			x.blobs[hash] = b
			require.Contains(t, places(withKeys(t, x)), place(id), name)
		}
	}
}
