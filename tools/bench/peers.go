package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// peersBench is the size of `bench peers`.
type peersBench struct {
	cells, effects int
	peers          []string
	program        string
	scope
}

const peersText = `The same durable effects by other engines, beside a world.

Every cell asks for one effect after the other, each when the one before is
answered, and the outside answers at once. In go-workflows, DBOS and Temporal a
cell is a workflow and an effect an activity or a step, by their SDKs for Go,
each with the settings that it comes with. What is measured begins with the first
cell that is started, all at the same time, and ends with the last. CPU is that of
the whole engine, with its server. What each promises is said below the figures:
they do not do the same.

The engines are in a program of their own, which make bin/peers builds. DBOS needs
PostgreSQL, which is started in a directory of its own.`

const worldPromise = "effects at most once, or in doubt for a verifier or a person; permit synced before, receipt and its delivery after, in " +
	"a journal, an anchor and an effect store; policies and budgets are asked; reducers are replayed and compared byte for byte; " +
	"records are chained and in a Merkle tree with signed checkpoints, receipts have an HMAC"

const leanPromise = "a row before an effect and one after, synced; what a crash leaves half done, and a second time, is the program's affair; " +
	"nothing is replayed, chained or signed"

func newPeersCommand(p *program) *cobra.Command {
	var b peersBench
	cmd, f := b.command(p, "peers", peersText, "  bench peers\n  bench peers --peers dbos --cells 1000 --effects 20", 3, b.each(b.round))
	f.IntVar(&b.cells, "cells", 100, "how many cells")
	f.IntVar(&b.effects, "effects", 20, "how many effects each of them asks for")
	f.StringSliceVar(&b.peers, "peers", []string{"go-workflows", "dbos", "temporal"}, "which engines")
	f.StringVar(&b.program, "program", "", "`FILE` that has them; peers beside this program if not given")
	return cmd
}

// cost is what a peer did, or why it did not: what tools/peers prints.
type cost struct {
	Promise string        `json:"promise"`
	Skipped string        `json:"skipped"`
	Wall    time.Duration `json:"wall"`
	CPU     time.Duration `json:"cpu"`
}

// round has the world, SQLite by hand and every peer do it.
func (b *peersBench) round(ctx context.Context, r *run) {
	own := r.live(ctx, b.cells, b.effects)
	b.add(r, "worldkernel", own, cost{Promise: worldPromise, Wall: own.Wall, CPU: own.CPU})
	byHand, _ := r.byHand(r.at("lean"), lean(), b.cells, b.effects, b.cells)
	b.add(r, "SQLite, lean", own, cost{Promise: leanPromise, Wall: byHand.Wall, CPU: byHand.CPU})
	for _, peer := range b.peers {
		b.note("%s", peer)
		b.add(r, peer, own, b.ask(ctx, r, peer))
	}
}

// add adds what one of them cost, beside the world.
func (b *peersBench) add(r *run, name string, own measured, c cost) {
	if c.Skipped != "" {
		r.say(name, "skipped: "+c.Skipped)
		return
	}
	r.say(name, c.Promise)
	n := float64(b.cells * b.effects)
	r.add(name, "effects/s", "", n/c.Wall.Seconds())
	r.add(name+", CPU", "us/effect", "", float64(c.CPU.Microseconds())/n)
	if name != "worldkernel" {
		r.add("worldkernel / "+name, "ratio", "", c.Wall.Seconds()/own.Wall.Seconds())
		r.add(name+" / worldkernel, CPU", "ratio", "", float64(c.CPU)/float64(own.CPU))
	}
}

// live has a world perform the effects. As with the peers, starting the cells is part of
// what is measured.
func (r *run) live(ctx context.Context, cells, effects int) measured {
	lw := r.world(r.at("world"), agentRules(), "", effectsOptions())
	m := measure(func() {
		errs := make([]error, cells)
		var starting sync.WaitGroup
		for i := range cells {
			starting.Go(func() {
				_, errs[i] = lw.Submit(ctx, "agent.begun", begun{To: strconv.Itoa(i), Effects: uint64(effects)})
			})
		}
		starting.Wait()
		r.must(errors.Join(errs...))
		r.must(lw.Run(ctx))
	})
	r.closeAfter(lw, cells*effects)
	return m
}

// ask has a peer perform the effects, in a process of its own.
func (b *peersBench) ask(ctx context.Context, r *run, peer string) (c cost) {
	program := b.program
	if program == "" {
		own, err := os.Executable()
		r.must(err)
		program = filepath.Join(filepath.Dir(own), "peers")
	}
	cmd := exec.CommandContext(ctx, program, "-peer", peer, //nolint:gosec // the program that whoever calls has named
		"-cells", strconv.Itoa(b.cells), "-effects", strconv.Itoa(b.effects), "-dir", b.dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if errors.Is(err, os.ErrNotExist) {
		return cost{Skipped: fmt.Sprintf("there is no %s: make bin/peers", program)}
	}
	if err != nil {
		r.must(fmt.Errorf("%s: %w: %s", peer, err, bytes.TrimSpace(said.Bytes())))
	}
	r.must(json.Unmarshal(out, &c))
	return c
}
