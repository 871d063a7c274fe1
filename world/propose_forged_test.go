package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// forged returns a journal up to a record, which is of another kind or says
// something else than it did; the chain is right.
func forged(t *testing.T, j *worldtest.Journal, at journal.Seq, kind journal.Kind, body journal.Body) *worldtest.Journal {
	t.Helper()
	c := j.Truncate(at)
	records := c.Records()
	last := &records[at-1]
	rec, err := journal.DecodeRecord(last.Bytes)
	require.NoError(t, err)
	payload, err := canon.Marshal(body)
	require.NoError(t, err)
	require.LessOrEqual(t, len(payload), journal.MaxInlineBytes)
	last.Bytes = canon.AppendEnvelope(nil, canon.Envelope{ID: uint64(at), Time: uint64(rec.Time), Kind: string(kind), Payload: payload})
	last.Root = canon.ResumeChain(records[at-2].Root).Add(uint64(at), string(kind), last.Bytes)
	return c
}

// lastBody returns the payload of the last record, which is of a kind.
func lastBody[B journal.Body](t *testing.T, c *council) (journal.Seq, B) {
	t.Helper()
	all := worldtest.Bodies[B](t, c.Journal)
	return c.Journal.Head().ID, all[len(all)-1]
}

// requireForgeryFound requires that a replay ends at the forged record, because of
// want; nil: because of what it says.
func requireForgeryFound(t *testing.T, j *worldtest.Journal, want error) {
	t.Helper()
	_, err := world.Replay(t.Context(), j, world.ReplayConfig{Registry: botRegistry()})
	d := new(world.Divergence)
	require.ErrorAs(t, err, &d)
	require.Equal(t, j.Head().ID, d.Record)
	if want != nil {
		require.Contains(t, d.Computed, want.Error())
	}
}

// Whoever writes a journal by hand, with a good chain, still has to have what the
// kernel asks for.
func TestForgedStepOfAProposalDoesNotReplay(t *testing.T) {
	c := councilOf(t, 2, true)
	c.Submit("go", order{To: "a"})
	c.Run()
	c.put(c.version(2), 1, 2)
	forge := func(kind journal.Kind, body journal.Body, want error) {
		t.Helper()
		requireForgeryFound(t, forged(t, c.Journal, c.Journal.Head().ID, kind, body), want)
	}

	require.NoError(t, c.proposeSigned(c.version(3)))
	_, proposed := lastBody[*journal.ManifestProposed](t, c)
	for want, change := range map[error]func(*journal.ManifestProposed){
		governance.ErrStale:     func(b *journal.ManifestProposed) { b.Base = b.Candidate },
		governance.ErrNoChange:  func(b *journal.ManifestProposed) { b.Candidate = b.Base },
		governance.ErrSignature: func(b *journal.ManifestProposed) { b.Candidate = journal.Hash{7} },
		world.ErrNoReason:       func(b *journal.ManifestProposed) { b.Actor = "" },
	} {
		b := *proposed
		change(&b)
		forge(journal.KindProposed, &b, want)
	}

	require.NoError(t, c.shadow(2))
	at, shadowed := lastBody[*journal.ManifestShadowed](t, c)
	_, f := c.Proposals()
	for name, x := range map[string]struct {
		change func(*governance.Report)
		want   error
	}{
		"another world":       {func(r *governance.Report) { r.World = "other" }, governance.ErrOtherTerms},
		"another base":        {func(r *governance.Report) { r.Base = journal.Hash{7} }, governance.ErrOtherTerms},
		"another candidate":   {func(r *governance.Report) { r.Candidate = journal.Hash{7} }, governance.ErrOtherTerms},
		"of before the apply": {func(r *governance.Report) { r.To = f.Since - 1 }, governance.ErrOldReport},
		"of the future":       {func(r *governance.Report) { r.To = uint64(at) }, world.ErrBadData},
	} {
		r, err := governance.DecodeReport(shadowed.Report)
		require.NoError(t, err)
		x.change(r)
		b := *shadowed
		b.Report, err = r.Encode()
		require.NoError(t, err, name)
		b.Hash = canon.Sum(b.Report)
		forge(journal.KindShadowed, &b, x.want)
	}
	b := *shadowed
	b.Report = []byte{1}
	forge(journal.KindShadowed, &b, world.ErrBadData)
	b = *shadowed
	b.Hash[0]++
	forge(journal.KindShadowed, &b, nil)

	require.NoError(t, c.sign(2, 1))
	_, approved := lastBody[*journal.ManifestApproved](t, c)
	for want, change := range map[error]func(*journal.ManifestApproved){
		governance.ErrSignature:  func(b *journal.ManifestApproved) { b.Signature.Bytes = make([]byte, 64) },
		governance.ErrNotListed:  func(b *journal.ManifestApproved) { b.Signature.Key[0]++ },
		governance.ErrOtherTerms: func(b *journal.ManifestApproved) { b.Report[0]++ },
		governance.ErrClosed:     func(b *journal.ManifestApproved) { b.Proposal = 1 },
		world.ErrNoReason:        func(b *journal.ManifestApproved) { b.Actor = "" },
	} {
		b := *approved
		change(&b)
		forge(journal.KindApproved, &b, want)
	}
	all, _ := c.Proposals()
	p := all[1]
	applied := journal.Applied{
		Version: journal.V(1), Proposal: 2, Manifest: p.Candidate, Base: p.Base, Actor: "eve",
		Kernel: world.KernelVersion, Engines: worldtest.Bodies[*journal.Applied](t, c.Journal)[0].Engines,
	}
	forge(journal.KindApplied, &applied, governance.ErrNotApproved)
	require.NoError(t, worldtest.ErrorOf(c.Reject(t.Context(), 2, "bob", "no")))
	forge(journal.KindApplied, &applied, governance.ErrNotApproved)
}

func TestForgedApplyDoesNotReplay(t *testing.T) {
	p := live(t)
	n := p.ready(p.candidate(without("tool.a")))
	key := p.ask() // after it was approved
	require.Equal(t, "tool.a", p.entry(key).Intent.Kind)
	c := p.council()
	require.NoError(t, c.propose(c.version(9)))
	all, _ := p.Proposals()
	dropping := all[n-1]
	applied := journal.Applied{
		Version: journal.V(1), Proposal: n, Manifest: dropping.Candidate, Base: dropping.Base, Actor: "eve", Kernel: world.KernelVersion,
	}
	created := worldtest.Bodies[*journal.Created](t, p.Journal)[0]
	applied.Engines = created.Engines
	at := c.Journal.Head().ID
	requireForgeryFound(t, forged(t, c.Journal, at, journal.KindApplied, &applied), world.ErrUnderWay)
	applied.Kernel = "kernel/0"
	requireForgeryFound(t, forged(t, c.Journal, at, journal.KindApplied, &applied), world.ErrEngine)
	applied.Kernel, applied.Manifest = created.Kernel, p.Status().Manifest
	requireForgeryFound(t, forged(t, c.Journal, at, journal.KindApplied, &applied), nil)
	applied.Manifest, applied.Actor = dropping.Candidate, ""
	requireForgeryFound(t, forged(t, c.Journal, at, journal.KindApplied, &applied), world.ErrNoReason)
}
