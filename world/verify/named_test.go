package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/verify"
)

// imageless is a history that keeps no images, like a bundle's.
type imageless struct{ *tampered }

func (imageless) Image(journal.Seq) (*journal.Image, error) { return nil, nil }

// Where an input is gone nothing is replayed any more, but the chain is all there:
// what names a root of it can be compared.
func TestChainRootsThatRecordsNameAreComparedWhereNothingIsReplayed(t *testing.T) {
	p := told(t)
	at := snapshots(t, p)[0]
	for name, change := range map[string]func(*journal.SnapshotCreated){
		"another root":   func(b *journal.SnapshotCreated) { b.ChainRoot[0]++ },
		"another record": func(b *journal.SnapshotCreated) { b.At-- },
	} {
		for _, redacted := range []bool{false, true} {
			x := tamper(p.Journal)
			if redacted {
				x.redact(t, 2)
			}
			require.Empty(t, withKeys(t, imageless{x}).Faults)
			rec, err := journal.DecodeRecord(x.records[at-1].Bytes)
			require.NoError(t, err)
			b := new(journal.SnapshotCreated)
			require.NoError(t, canon.Unmarshal(rec.Payload, b))
			change(b)
			x.set(t, at, marshal(t, b))
			x.relink(t)
			r := withKeys(t, imageless{x})
			require.Equal(t, []string{place(at)}, places(r), "%s, redacted: %t", name, redacted)
			require.Equal(t, redacted, r.Replay.OK)
		}
	}
	require.Equal(t, []verify.Gap{}, p.proven().Replay.Gaps)
}
