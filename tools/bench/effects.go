package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/local"
)

// effectsBench is the size of `bench effects`.
type effectsBench struct {
	cells   []int
	effects []int
	scope
}

const effectsText = `Durable live effects, beside the same by hand in SQLite.

Every cell asks for one effect after the other, each when the one before is
answered. The adapter answers at once, so that what is measured is all that
stands around it: gate, ledger, journal, chain, signatures, effect store. Beside
it in the same run, a table of intents and one of receipts in SQLite (WAL,
synchronous=FULL): with a transaction for each row of 1 cell, and with one for
the rows of all cells. All is measured round by round; the medians are shown.`

func newEffectsCommand(p *program) *cobra.Command {
	var b effectsBench
	cmd, f := b.command(p, "effects", effectsText, "  bench effects\n  bench effects --cells 100 --effects 100 --rounds 5", 3, b.each(b.round))
	f.IntSliceVar(&b.cells, "cells", []int{1, 50, 100, 200, 1000}, "how many cells")
	f.IntSliceVar(&b.effects, "effects", []int{20, 100}, "how many effects each of them asks for")
	return cmd
}

const benchEffectsManifest = `world: bench
version: 1
reducers:
  agent: {engine: go, name: agent, version: "1", grants: [tools]}
events:
  agent.begun: {}
effects:
  tool.call: {adapter: echo}
caps:
  tools: {type: any, params: {kinds: ["tool.*"]}}
policies:
  - {name: tools, when: 'intent.kind.startsWith("tool.")', decide: allow}
routing:
  - {event: agent.begun, reducer: agent, key: event.data.to}
`

type caller struct {
	Left uint64 `cbor:"left"`
}

type begun struct {
	To      string `cbor:"to"`
	Effects uint64 `cbor:"effects"`
}

// callOn asks for the next effect when the one before is answered.
func callOn(ctx *reducer.Context, c caller, e reducer.Event) (caller, error) {
	if e.Name == "agent.begun" {
		b, err := reducer.Decode[begun](e.Data)
		if err != nil {
			return c, err
		}
		c.Left = b.Effects
	}
	if c.Left > 0 {
		c.Left--
		ctx.Effect("tool.call", c.Left, "")
	}
	return c, nil
}

// echo is a live adapter that answers at once.
type echo struct{}

func (echo) Perform(context.Context, host.Call) (host.Result, error) {
	return host.Result{Status: receipt.StatusOK, Payload: receipt.Data(canon.Null)}, nil
}

// effectsOptions has a reducer that asks for effects one after the other.
func effectsOptions() local.Options {
	return withEcho(local.Options{Reducers: reducer.Registry{"agent@1": reducer.Typed(1, callOn)}})
}

// round measures every combination.
func (b *effectsBench) round(ctx context.Context, dir string, r *rows) error {
	for _, effects := range b.effects {
		for _, cells := range b.cells {
			at := filepath.Join(dir, fmt.Sprintf("%dx%d", cells, effects))
			if err := benchEffects(ctx, at, cells, effects, r); err != nil {
				return err
			}
			if err := os.RemoveAll(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// benchEffects measures one combination, both ways.
func benchEffects(ctx context.Context, dir string, cells, effects int, r *rows) error {
	name := fmt.Sprintf("%d x %d ", cells, effects)
	reach := func(text string) string {
		if cells == 100 && effects == 100 {
			return text
		}
		return ""
	}
	n := float64(cells * effects)
	own, stats, bytes, err := runEffects(ctx, filepath.Join(dir, "world"), cells, effects)
	if err != nil {
		return err
	}
	grouped, sqlBytes, err := byHand(filepath.Join(dir, "grouped"), cells, effects, cells)
	if err != nil {
		return err
	}
	single, _, err := byHand(filepath.Join(dir, "single"), 1, min(cells*effects, 2000), 1)
	if err != nil {
		return err
	}
	perSecond := n / own.Wall.Seconds()
	r.add(name+"effects", "effects/s", "", perSecond)
	r.add(name+"SQLite, grouped", "effects/s", "", n/grouped.Wall.Seconds())
	r.add(name+"/ SQLite, grouped", "ratio", reach(">= 1"), grouped.Wall.Seconds()/own.Wall.Seconds())
	r.add(name+"/ SQLite, one by one", "ratio", reach(">= 10"),
		perSecond/(float64(min(cells*effects, 2000))/single.Wall.Seconds()))
	r.add(name+"CPU", "us/effect", "", float64(own.CPU.Microseconds())/n)
	r.add(name+"CPU, SQLite, grouped", "us/effect", "", float64(grouped.CPU.Microseconds())/n)
	r.add(name+"allocations", "objects/effect", "", float64(own.Allocs)/n)
	journalReach := ""
	if cells == 1 {
		journalReach = "<= 1"
	}
	// The last receipts need a sync of their own: no permit comes with them.
	r.add(name+"journal syncs", "syncs/effect", journalReach, float64(stats.journal-1)/n)
	r.add(name+"anchor syncs", "syncs/effect", "", float64(stats.anchor-1)/n)
	r.add(name+"effect store syncs", "syncs/effect", "", float64(stats.effects)/n)
	r.add(name+"on disk", "bytes/effect", reach("<= 1536"), float64(bytes)/n)
	r.add(name+"on disk, SQLite, grouped", "bytes/effect", "", float64(sqlBytes)/n)
	return nil
}

// begin has cells ask for so many effects each.
func begin(ctx context.Context, lw *local.World, cells, effects int) error {
	for i := range cells {
		if _, err := lw.Submit(ctx, "agent.begun", begun{To: strconv.Itoa(i), Effects: uint64(effects)}); err != nil {
			return err
		}
	}
	return nil
}

type syncs struct{ journal, anchor, effects uint64 }

// runEffects has a world perform the effects, and returns what it cost and how
// much of the disk the closed world takes.
func runEffects(ctx context.Context, dir string, cells, effects int) (m measured, s syncs, bytes int64, err error) {
	lw, err := benchWorld(dir, map[string]string{local.ManifestFile: benchEffectsManifest}, effectsOptions())
	if err != nil {
		return m, s, 0, err
	}
	if err := begin(ctx, lw, cells, effects); err != nil {
		return m, s, 0, err
	}
	before := lw.StoreStats()
	m, err = measure(func() error { return lw.Run(ctx) })
	if err != nil {
		return m, s, 0, err
	}
	after := lw.StoreStats()
	s = syncs{
		journal: after.JournalSyncs - before.JournalSyncs, anchor: after.AnchorSyncs - before.AnchorSyncs,
		effects: lw.HostStats().EffectSyncs,
	}
	if done := lw.Status().Intents[receipt.StateCommitted]; done != cells*effects {
		return m, s, 0, fmt.Errorf("%d effects of %d are committed", done, cells*effects)
	}
	if err := lw.Close(); err != nil {
		return m, s, 0, err
	}
	bytes, err = sizeOf(filepath.Join(dir, ".world"))
	return m, s, bytes, err
}

// sizeOf returns the bytes of all files in a directory.
func sizeOf(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
