package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
the rows of all cells; and, lean, the same rows of all cells at the end of one
table that has no index, where nothing finds a key again. All is measured round
by round; the medians are shown.`

func newEffectsCommand(p *program) *cobra.Command {
	var b effectsBench
	cmd, f := b.command(p, "effects", effectsText, "  bench effects\n  bench effects --cells 100 --effects 100 --rounds 5", 3, b.each(b.round))
	f.IntSliceVar(&b.cells, "cells", []int{1, 50, 100, 200, 1000}, "how many cells")
	f.IntSliceVar(&b.effects, "effects", []int{20, 100}, "how many effects each of them asks for")
	return cmd
}

// agentRules are those of cells that ask for one effect after the other.
func agentRules() string { return rules("agent", inGo("agent")+asking, "agent.begun") + withEffects }

type caller struct {
	Left  uint64 `cbor:"left"`
	Asked uint64 `cbor:"asked,omitempty"` // where it is never asked twice for the same
}

type begun struct {
	To      string `cbor:"to"`
	Effects uint64 `cbor:"effects"`
}

// calling asks for the next effect when the one before is answered: anew, never twice for the same.
func calling(anew bool) func(ctx *reducer.Context, c caller, e reducer.Event) (caller, error) {
	return func(ctx *reducer.Context, c caller, e reducer.Event) (caller, error) {
		if e.Name == "agent.begun" {
			b, err := reducer.Decode[begun](e.Data)
			if err != nil {
				return c, err
			}
			c.Left = b.Effects
		}
		if c.Left == 0 {
			return c, nil
		}
		c.Left--
		n := c.Left
		if anew {
			c.Asked++
			n = c.Asked
		}
		ctx.Effect("tool.call", n, "")
		return c, nil
	}
}

// echo is a live adapter that answers at once.
type echo struct{}

func (echo) Perform(context.Context, host.Call) (host.Result, error) {
	return host.Result{Status: receipt.StatusOK, Payload: receipt.Data(canon.Null)}, nil
}

// effectsOptions has a reducer that asks for effects one after the other.
func effectsOptions() local.Options {
	return withEcho(local.Options{Reducers: reducer.Registry{"agent@1": reducer.Typed(1, calling(false))}})
}

// round measures every combination.
func (b *effectsBench) round(ctx context.Context, r *run) {
	for _, effects := range b.effects {
		for _, cells := range b.cells {
			r.in(fmt.Sprintf("%dx%d", cells, effects), func() { r.effects(ctx, cells, effects) })
		}
	}
}

// effects measures one combination, both ways.
func (r *run) effects(ctx context.Context, cells, effects int) {
	name := fmt.Sprintf("%d x %d ", cells, effects)
	reach := func(text string) string {
		if cells == 100 && effects == 100 {
			return text
		}
		return ""
	}
	n := float64(cells * effects)
	own, stats, bytes := r.runEffects(ctx, cells, effects)
	grouped, sqlBytes := r.byHand(r.at("grouped"), indexed(), cells, effects, cells)
	least, leanBytes := r.byHand(r.at("lean"), lean(), cells, effects, cells)
	single, _ := r.byHand(r.at("single"), indexed(), 1, min(cells*effects, 2000), 1)
	perSecond := n / own.Wall.Seconds()
	r.add(name+"effects", "effects/s", "", perSecond)
	r.add(name+"SQLite, grouped", "effects/s", "", n/grouped.Wall.Seconds())
	r.add(name+"/ SQLite, grouped", "ratio", reach(">= 1.5"), grouped.Wall.Seconds()/own.Wall.Seconds())
	r.add(name+"/ SQLite, one by one", "ratio", reach(">= 10"),
		perSecond/(float64(min(cells*effects, 2000))/single.Wall.Seconds()))
	r.add(name+"SQLite, lean", "effects/s", "", n/least.Wall.Seconds())
	r.add(name+"CPU", "us/effect", "", float64(own.CPU.Microseconds())/n)
	r.add(name+"CPU, SQLite, grouped", "us/effect", "", float64(grouped.CPU.Microseconds())/n)
	r.add(name+"CPU, SQLite, lean", "us/effect", "", float64(least.CPU.Microseconds())/n)
	r.add(name+"CPU / SQLite, lean", "ratio", reach("<= 1.3"), float64(own.CPU)/float64(least.CPU))
	r.add(name+"allocations", "objects/effect", reach("<= 12"), float64(own.Allocs)/n)
	journalReach := ""
	if cells == 1 {
		journalReach = "<= 1"
	}
	// The last receipts need a sync of their own: no permit comes with them.
	r.add(name+"journal syncs", "syncs/effect", journalReach, float64(stats.journal-1)/n)
	r.add(name+"anchor syncs", "syncs/effect", "", float64(stats.anchor-1)/n)
	r.add(name+"effect store syncs", "syncs/effect", "", float64(stats.effects)/n)
	r.add(name+"on disk", "bytes/effect", reach("<= 450"), float64(bytes)/n)
	r.add(name+"on disk, SQLite, grouped", "bytes/effect", "", float64(sqlBytes)/n)
	r.add(name+"on disk, SQLite, lean", "bytes/effect", "", float64(leanBytes)/n)
}

// begin has cells ask for so many effects each.
func (r *run) begin(ctx context.Context, lw *local.World, cells, effects int) {
	for i := range cells {
		_, err := lw.Submit(ctx, "agent.begun", begun{To: strconv.Itoa(i), Effects: uint64(effects)})
		r.must(err)
	}
}

type syncs struct{ journal, anchor, effects uint64 }

// runEffects has a world perform the effects, and returns what it cost and how
// much of the disk the closed world takes.
func (r *run) runEffects(ctx context.Context, cells, effects int) (measured, syncs, int64) {
	lw := r.world(r.at("world"), agentRules(), "", effectsOptions())
	r.begin(ctx, lw, cells, effects)
	before := lw.StoreStats()
	m := measure(func() { r.must(lw.Run(ctx)) })
	after := lw.StoreStats()
	s := syncs{
		journal: after.JournalSyncs - before.JournalSyncs, anchor: after.AnchorSyncs - before.AnchorSyncs,
		effects: lw.HostStats().EffectSyncs,
	}
	r.closeAfter(lw, cells*effects)
	bytes, err := sizeOf(r.at("world/.world"))
	r.must(err)
	return m, s, bytes
}

// closeAfter closes a world that has performed so many effects.
func (r *run) closeAfter(lw *local.World, effects int) {
	if done := lw.Status().Intents[receipt.StateCommitted]; done != effects {
		r.must(fmt.Errorf("%d effects of %d are committed", done, effects))
	}
	r.must(lw.Close())
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
