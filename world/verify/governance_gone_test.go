package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/verify"
)

// destroy has the payload of the first record of a kind be a blob, and redacts it.
func (x *tampered) destroy(t *testing.T, kind journal.Kind) {
	t.Helper()
	for i := range x.records {
		e, err := canon.DecodeEnvelope(x.records[i].Bytes)
		require.NoError(t, err)
		if e.Kind != string(kind) {
			continue
		}
		if e.Blob.IsZero() {
			e.Blob, e.BlobSize, e.Payload = canon.Sum(e.Payload), journal.MaxInlineBytes+1, nil
			x.records[i].Bytes = canon.AppendEnvelope(nil, e)
		}
		x.redact(t, journal.Seq(e.ID))
		return
	}
	t.Fatalf("the journal holds no %s", kind)
}

func TestOnlyReportsAreTakenAtTheirWordWhenGone(t *testing.T) {
	c := councilOf(t, 2, false)
	p := c.propose(2, 0)
	c.sign(p, 1, 2)
	c.apply(p)
	proposed, _, _ := find(t, c.Journal, journal.KindProposed)
	approved, _, body := find(t, c.Journal, journal.KindApproved)
	applied, _, _ := find(t, c.Journal, journal.KindApplied)
	for kind, want := range map[journal.Kind][]string{
		journal.KindShadowed: nil,
		journal.KindProposed: {place(proposed + 1), place(approved), place(approved + 1), place(applied)},
		journal.KindApproved: {place(applied)},
		journal.KindApplied:  {place(applied)},
	} {
		t.Run(string(kind), func(t *testing.T) {
			x := tamper(c.Journal)
			x.destroy(t, kind)
			r := run(t, x, verify.Config{})
			require.Equal(t, want, places(r))
			require.Equal(t, verify.Governance{Proposals: 1, Applied: 1, Bad: uint64(min(len(want), 1))}, r.Governance)
		})
	}
	x := tamper(c.Journal)
	x.destroy(t, journal.KindShadowed)
	x.set(t, approved, marshal(t, flip(body.(*journal.ManifestApproved))))
	require.Equal(t, []string{place(approved), place(applied)}, places(run(t, x.relink(t), verify.Config{})), "signatures are checked all the same")
}

func TestManifestThatIsGoneApprovesNothing(t *testing.T) {
	c := councilOf(t, 1, false)
	p := c.propose(2, 0)
	c.sign(p, 1)
	c.apply(p)
	approved, _, _ := find(t, c.Journal, journal.KindApproved)
	applied, _, _ := find(t, c.Journal, journal.KindApplied)
	_, _, created := find(t, c.Journal, journal.KindCreated)
	x := tamper(c.Journal)
	gone := created.(*journal.Created).Manifest
	x.blobs[gone] = nil
	x.add(t, journal.KindRedacted, marshal(t, &journal.Redacted{Version: journal.V(1), Blob: gone, Actor: "eve", Reason: "it lists approvers"}))
	r := run(t, x.relink(t), verify.Config{})
	require.Contains(t, places(r), place(approved))
	require.Contains(t, places(r), place(applied))
	require.EqualValues(t, 1, r.Governance.Bad)
}
