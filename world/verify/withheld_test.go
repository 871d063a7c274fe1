package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/verify"
)

// withhold leaves the payload of a record out.
func (x *tampered) withhold(t testing.TB, id journal.Seq) journal.Hash {
	t.Helper()
	rec, err := journal.DecodeRecord(x.records[id-1].Bytes)
	require.NoError(t, err)
	require.False(t, rec.Blob.IsZero())
	x.blobs[rec.Blob] = nil
	return rec.Blob
}

func TestWithheldPayloadIsNoFault(t *testing.T) {
	p := told(t)
	made := snapshots(t, p)[0]
	x := tamper(p.Journal)
	hash := x.withhold(t, 2)
	r := run(t, x, verify.Config{
		Withheld: []journal.Hash{hash, {1}}, Trust: publics(1), Sealed: true,
		Checkpoints: notes(sign(t, "test", x.records, 1)),
	})
	require.Empty(t, r.Faults)
	require.True(t, r.Trusted, "the hash of the payload is what was signed")
	require.EqualValues(t, 1, r.Withheld)
	require.Zero(t, r.Redacted)
	require.True(t, r.Replay.OK)
	require.Equal(t, []verify.Gap{{From: 2, To: made}}, r.Replay.Gaps)
	require.Equal(t, p.StateRoot(), r.StateRoot)

	x.redact(t, 2)
	r = run(t, x, verify.Config{Withheld: []journal.Hash{hash}})
	require.Empty(t, r.Faults)
	require.EqualValues(t, 1, r.Redacted, "the journal's word comes first")
	require.Zero(t, r.Withheld)
}

func TestWithheldPayloadOfAPartIsNoFault(t *testing.T) {
	p := told(t)
	x, begin := partOf(p.Journal, "test", 2)
	rec, err := journal.DecodeRecord(x.records[0].Bytes)
	require.NoError(t, err)
	x.blobs[rec.Blob] = nil
	r := run(t, x, verify.Config{Begin: begin, Withheld: []journal.Hash{rec.Blob}})
	require.Empty(t, r.Faults)
	require.EqualValues(t, 1, r.Withheld)
	require.Equal(t, []string{place(2)}, places(run(t, x, verify.Config{Begin: begin})))
}

// Who says that something was withheld hides payloads, and nothing else.
func TestOnlyPayloadsThatAreNamedAreWithheld(t *testing.T) {
	p := told(t)
	x := tamper(p.Journal)
	x.withhold(t, 2)
	require.Contains(t, places(run(t, x, verify.Config{Withheld: []journal.Hash{{1}}})), place(2))

	_, _, created := find(t, p.Journal, journal.KindCreated)
	for _, hash := range append(p.Manifest().Contents(), created.(*journal.Created).Manifest) {
		y := tamper(p.Journal)
		y.blobs[hash] = nil
		require.Contains(t, places(run(t, y, verify.Config{Withheld: []journal.Hash{hash}})), place(1))
	}

	z := tamper(p.Journal)
	rec, err := journal.DecodeRecord(z.records[1].Bytes)
	require.NoError(t, err)
	z.blobs[rec.Blob] = []byte("another")
	require.Contains(t, places(run(t, z, verify.Config{Withheld: []journal.Hash{rec.Blob}})), place(2), "what is there is compared")
}
