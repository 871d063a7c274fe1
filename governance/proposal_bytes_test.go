package governance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func TestProposalsKeepTheirBytes(t *testing.T) {
	d := newFixture(t, governed(1, false, 1, 2))
	back := func() {
		again := *d
		data := d.bytes()
		require.NoError(t, canon.Unmarshal(data, &again.ps))
		require.Equal(t, data, again.bytes())
		require.Len(t, again.ps.All(), len(d.ps.All()))
		for i, p := range again.ps.All() {
			require.Equal(t, d.ps.list[i].Terms("w"), p.Terms("w"))
			require.Equal(t, d.ps.list[i].Stage, p.Stage)
			require.Len(t, p.Approvals, len(d.ps.list[i].Approvals))
		}
		*d = again // and go on with it
	}
	back()
	d.propose("B", 1)
	back()
	require.NoError(t, d.shadow(1, "r"))
	back()
	require.NoError(t, d.sign(1, 2))
	back()
	require.ErrorIs(t, d.sign(1, 2), ErrRepeated)
	d.propose("C", 0)
	require.NoError(t, d.apply(1))
	back()
	require.NoError(t, d.ps.End(2, Withdrawn, 9, "ada", "no more"))
	back()
}

func TestDecodedProposalsAreNumberedAndInAStage(t *testing.T) {
	for name, change := range map[string]func(*Proposal){
		"another's number":        func(p *Proposal) { p.N = 2 },
		"no number":               func(p *Proposal) { p.N = 0 },
		"no stage":                func(p *Proposal) { p.Stage = "" },
		"unknown stage":           func(p *Proposal) { p.Stage = "perhaps" },
		"open, and ended":         func(p *Proposal) { p.Ended = 9 },
		"applied, and by nothing": func(p *Proposal) { p.Stage = Applied },
	} {
		d := newFixture(t, manifest.Governance{})
		change(d.propose("B", 0))
		require.Error(t, new(Proposals).UnmarshalCBOR(d.bytes()), name)
	}
	none, err := canon.Marshal([]any{nil})
	require.NoError(t, err)
	require.Error(t, new(Proposals).UnmarshalCBOR(none))
}

func FuzzProposalsUnmarshal(f *testing.F) {
	d := newFixture(f, governed(1, false, 1, 2))
	f.Add(d.bytes())
	d.propose("B", 1)
	d.propose("C", 0)
	require.NoError(f, d.shadow(1, "r"))
	require.NoError(f, d.sign(1, 2))
	f.Add(d.bytes())
	require.NoError(f, d.apply(1))
	require.NoError(f, d.ps.End(2, Rejected, 9, "bob", "no"))
	f.Add(d.bytes())
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, data []byte) {
		var ps Proposals
		if ps.UnmarshalCBOR(data) != nil {
			return
		}
		back, err := ps.MarshalCBOR()
		require.NoError(t, err)
		require.Equal(t, data, back)
		f := InForce{World: "w", Manifest: hashOf("A"), Governance: governed(1, true, 1, 2)}
		for _, p := range ps.All() { // it can be asked
			_, err := ps.Ready(p.N, f)
			require.True(t, err == nil || !p.Open() || p.Counted(f.Governance) < p.Needed(f.Governance) || p.Base != f.Manifest || p.Report.IsZero())
		}
	})
}
