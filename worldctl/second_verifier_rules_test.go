package worldctl

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

const (
	approvers = 3
	stranger  = 9
)

// change brings a change of the rules a step on, or begins one.
func (l *life) change() {
	ctx := context.Background()
	proposals, frame := l.w.Proposals()
	for _, p := range proposals {
		if !p.Open() {
			continue
		}
		switch l.rng.IntN(8) {
		case 0:
			l.try(worldtest.ErrorOf(l.w.Withdraw(ctx, p.N, "ada", "no")))
		case 7:
			l.try(worldtest.ErrorOf(l.w.Reject(ctx, p.N, "bob", "no")))
		case 1, 2:
			_, _, err := l.w.Shadow(ctx, p.N, world.ShadowConfig{}, "bob")
			l.try(err)
		case 3:
			l.try(worldtest.ErrorOf(l.w.Apply(ctx, p.N, "dan")))
		default:
			l.seeThrough(p.N)
		}
		return
	}
	next := *l.w.Manifest()
	next.Version++
	next.Limits.InFlight = 1 + next.Version%4
	next.Policies = append(next.Policies[:len(next.Policies):len(next.Policies)], manifest.Policy{Name: "late " + l.cell() + string(rune('a'+len(next.Policies))), When: "true", Decide: manifest.DecideAllow})
	contents := make(map[manifest.Hash][]byte)
	if l.rng.IntN(2) == 0 {
		bot := next.Reducers["bot"]
		code, err := l.w.Journal.Blob(bot.Source)
		require.NoError(l.t, err)
		code = fmt.Appendf(code[:len(code):len(code)], "\n# %d\n", next.Version)
		if !bytes.Contains(code, []byte("def migrate")) {
			code = append(code, "def migrate(state):\n    return state\n"...)
		}
		bot.Source = canon.Sum(code)
		next.Reducers = maps.Clone(next.Reducers)
		next.Reducers["bot"], contents[bot.Source] = bot, code
	}
	encoded, err := next.Encode()
	require.NoError(l.t, err)
	p := world.Proposal{Candidate: &next, Contents: contents, Base: l.w.Status().Manifest, Actor: "ada", Reason: "better"}
	if who := byte(l.rng.IntN(approvers + 1)); who > 0 {
		s := manifest.Sign(worldtest.Key(who), manifest.Terms{World: frame.World, Base: p.Base, Candidate: canon.Sum(encoded)})
		p.Signature = &s
	}
	_, _, err = l.w.Propose(ctx, p)
	l.try(err)
}

// seeThrough has a proposal shadowed, approved by all and applied.
func (l *life) seeThrough(n uint64) {
	ctx := context.Background()
	_, _, err := l.w.Shadow(ctx, n, world.ShadowConfig{}, "bob")
	l.try(err)
	terms, err := l.w.Terms(n)
	if err != nil {
		l.try(err)
		return
	}
	for who := range byte(approvers) {
		l.try(worldtest.ErrorOf(l.w.Approve(ctx, n, terms, manifest.Sign(worldtest.Key(who+1), terms), "cleo", "it is good")))
	}
	l.try(worldtest.ErrorOf(l.w.Apply(ctx, n, "dan")))
}
