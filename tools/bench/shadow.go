package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// shadowBench is the size of `bench shadow`.
type shadowBench struct {
	events int
	cells  int
	scope
}

const shadowText = `Shadows of a world under other rules, beside its replay.

Accounts add up what they are sent, and each asks for one effect. The same history is
replayed, and run under candidates that do the same (another comment in the code,
another policy), that use more gas, and that deny the effect of every cell. One after
the other in each round, on one open world, once with the reducer in Starlark and once
in Go; the medians are shown.`

func newShadowCommand(p *program) *cobra.Command {
	var b shadowBench
	cmd, f := b.command(p, "shadow", shadowText, "  bench shadow\n  bench shadow --events 100000 --rounds 1", 5, b.run)
	f.IntVar(&b.events, "events", 300_000, "how many events to handle")
	f.IntVar(&b.cells, "cells", 3_000, "over how many cells")
	return cmd
}

const benchShadowStarlark = `def reduce(ctx, state, event):
    if event.name == "receipt":
        state["rung"] = event.data["status"]
        return state
    if state == None:
        state = {"count": 0, "total": 0, "rung": ""}
        ctx.effect("tool.call", {"for": ctx.key})
    state["count"] += 1
    state["total"] += event.data["by"]
    return state
`

// ringer is an account with what became of its effect.
type ringer struct {
	Count uint64 `cbor:"count"`
	Total uint64 `cbor:"total"`
	Rung  string `cbor:"rung"`
}

type ring struct {
	For string `cbor:"for"`
}

// rings is benchShadowStarlark in Go.
func rings(ctx *reducer.Context, a ringer, e reducer.Event) (ringer, error) {
	if e.Name != "account.credited" {
		r, err := reducer.Decode[struct {
			Status string `cbor:"status"`
		}](e.Data)
		a.Rung = r.Status
		return a, err
	}
	c, err := reducer.Decode[credit](e.Data)
	if err != nil {
		return a, err
	}
	if a.Count == 0 {
		ctx.Effect("tool.call", ring{For: ctx.Cell().Key}, "")
	}
	a.Count++
	a.Total += c.By
	return a, nil
}

func ringOptions() local.Options {
	return withEcho(local.Options{Reducers: reducer.Registry{"ringer@1": reducer.Typed(1, rings)}})
}

// benchCandidate is a manifest that shadows are measured of.
type benchCandidate struct {
	name     string
	differs  bool
	change   func(m *manifest.Manifest)
	contents map[manifest.Hash][]byte
}

// withCode is a candidate with other code, which does the same.
func withCode(name, code string) benchCandidate {
	hash := canon.Sum([]byte(code))
	return benchCandidate{
		name: name, contents: map[manifest.Hash][]byte{hash: []byte(code)},
		change: func(m *manifest.Manifest) {
			r := m.Reducers["account"]
			r.Source = hash
			m.Reducers["account"] = r
		},
	}
}

// denying is a candidate that decides otherwise in every cell.
func denying() benchCandidate {
	return benchCandidate{name: "another decision in every cell", differs: true, change: func(m *manifest.Manifest) {
		m.Policies = []manifest.Policy{{Name: "silence", When: "true", Decide: manifest.DecideDeny}}
	}}
}

func (b *shadowBench) run(ctx context.Context, r *run) {
	b.world(ctx, r, "Starlark", inStarlark, []benchCandidate{
		withCode("another comment", "# Rings once.\n"+benchShadowStarlark),
		withCode("more gas", strings.Replace(benchShadowStarlark, `state["count"] += 1`, `state["count"] += 0 + 1`, 1)),
		denying(),
	})
	b.world(ctx, r, "Go", inGo("ringer"), []benchCandidate{
		{name: "another policy", change: func(m *manifest.Manifest) {
			m.Policies = append(m.Policies, manifest.Policy{Name: "others", When: `intent.kind != "tool.call"`, Decide: manifest.DecideAllow})
		}},
		denying(),
	})
}

// world measures a world, round by round.
func (b *shadowBench) world(ctx context.Context, r *run, name, engine string, candidates []benchCandidate) {
	lw := r.world(r.at(name), rules("account", engine+asking, "account.credited")+withEffects, benchShadowStarlark, ringOptions())
	r.credit(ctx, lw, b.events, b.cells)
	r.must(lw.Run(ctx))
	for round := range b.rounds {
		b.note("%s: round %d of %d", name, round+1, b.rounds)
		again := r.replay(lw)
		for i, c := range candidates {
			figure := name + ": " + c.name
			report, shadow, err := b.shadow(ctx, lw, &c)
			if err != nil {
				r.must(fmt.Errorf("%s: %w", figure, err))
			}
			events := float64(report.Events)
			if i == 0 {
				r.add(name+": replay", "events/s", "", events/again.Wall.Seconds())
			}
			r.add(figure, "events/s", "", events/shadow.Wall.Seconds())
			r.add(figure+" / replay", "ratio", ">= 0.7", again.Wall.Seconds()/shadow.Wall.Seconds())
		}
	}
	r.must(lw.Close())
}

// inForce returns a copy of the manifest in force.
func inForce(lw *local.World) (m *manifest.Manifest, err error) {
	lw.View(func(w *world.Moment) {
		var encoded []byte
		if encoded, err = w.Manifest().Encode(); err == nil {
			m, err = manifest.Decode(encoded)
		}
	})
	return m, err
}

// shadow measures the shadow of a candidate, and sees that it is worth what it
// took.
func (b *shadowBench) shadow(ctx context.Context, lw *local.World, c *benchCandidate) (*governance.Report, measured, error) {
	next, err := inForce(lw)
	if err != nil {
		return nil, measured{}, err
	}
	c.change(next)
	var report *governance.Report
	m := measure(func() { report, err = lw.Rehearse(ctx, next, c.contents, world.ShadowConfig{}) })
	if err == nil && report.NoOp() == c.differs {
		err = fmt.Errorf("the shadow comes to %+v", report.Counts)
	}
	return report, m, err
}
