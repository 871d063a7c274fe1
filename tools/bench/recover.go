package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// recoverBench is the size of `bench recover`.
type recoverBench struct {
	cells, effects int
	scope
}

const recoverText = `Kill a world half-way, and time its first new effect.

A process of its own runs cells that ask for one live effect after the other, of
which every performance is a line in a file. Half-way it is killed with SIGKILL;
a new process then opens the world and goes on. What is in doubt is decided by a
verifier that looks the line up. In the end every effect must have one line, and
be committed.`

func newRecoverCommand(p *program) *cobra.Command {
	var b recoverBench
	var child string
	cmd, f := b.command(p, "recover", recoverText, "  bench recover\n  bench recover --rounds 1", 3, b.each(b.round))
	inFull := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if child != "" {
			return runRecoverable(cmd.Context(), child)
		}
		return inFull(cmd, args)
	}
	f.IntVar(&b.cells, "cells", 100, "how many cells")
	f.IntVar(&b.effects, "effects", 100, "how many effects each of them asks for")
	f.StringVar(&child, "child", "", "run the world in `DIR`")
	_ = f.MarkHidden("child") // it exists
	return cmd
}

// outsideFile is where the adapter of this benchmark leaves its lines.
const outsideFile = "outside"

// outside performs an effect by writing its key into a file, and can tell later
// whether it did.
type outside struct{ *os.File }

func newOutside(s host.Setup) (outside, error) {
	file, err := os.OpenFile(filepath.Join(s.Dir, outsideFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return outside{file}, err
}

func (o outside) Perform(_ context.Context, call host.Call) (host.Result, error) {
	_, err := o.WriteString(call.Permit.Key.String() + "\n")
	return host.Result{Status: receipt.StatusOK, Payload: receipt.Data(canon.Null)}, err
}

func (o outside) Verify(_ context.Context, call host.Call) (receipt.Found, error) {
	lines, err := os.ReadFile(o.Name())
	if err != nil {
		return receipt.Found{}, err
	}
	if bytes.Contains(lines, []byte(call.Permit.Key.String())) {
		return receipt.Found{Verdict: receipt.Happened, Reason: "its line is there"}, nil
	}
	return receipt.Found{Verdict: receipt.NotHappened, Reason: "its line is not there"}, nil
}

func (o outside) Confirm(context.Context, host.Call, *receipt.Receipt) (receipt.Found, error) {
	return receipt.Found{Verdict: receipt.Happened, Reason: "nothing else writes there"}, nil
}

func recoverOptions() local.Options {
	opts := effectsOptions()
	opts.Adapters["echo"] = func(s host.Setup) (host.Adapter, error) { return newOutside(s) }
	opts.Verifiers = map[string]host.VerifierFactory{"echo": func(s host.Setup) (host.Verifier, error) { return newOutside(s) }}
	return opts
}

// runRecoverable runs the world in a directory until it is idle.
func runRecoverable(ctx context.Context, dir string) error {
	lw, err := local.Open(dir, recoverOptions())
	if err != nil {
		return err
	}
	return errors.Join(lw.Run(ctx), lw.Close())
}

func (b *recoverBench) round(ctx context.Context, r *run) {
	rules := strings.Replace(agentRules(), "{adapter: echo}",
		"{adapter: echo, on_in_doubt: verify, verify: {adapter: echo}}", 1)
	lw := r.world(r.dir, rules, "", recoverOptions())
	r.begin(ctx, lw, b.cells, b.effects)
	r.must(lw.Close())
	first := r.start(ctx)
	r.awaitLines(ctx, b.cells*b.effects/2)
	_ = first.Process.Kill() // it may have ended
	_ = first.Wait()
	before := len(r.lines())
	began := time.Now()
	second := r.start(ctx)
	r.awaitLines(ctx, min(before+1, b.cells*b.effects)) // it may have done them all
	toFirst := time.Since(began)
	if err := second.Wait(); err != nil {
		r.must(fmt.Errorf("the process that goes on: %w", err))
	}
	r.add("performed before the kill", "effects", "", float64(before))
	r.add("to the first new effect", "s", "<= 0.5", toFirst.Seconds())
	b.judge(r)
}

// start starts a process that runs the world.
func (r *run) start(ctx context.Context) *exec.Cmd {
	self, err := os.Executable()
	r.must(err)
	cmd := exec.CommandContext(ctx, self, "recover", "--child", r.dir)
	cmd.Stderr = os.Stderr
	r.must(cmd.Start())
	return cmd
}

// awaitLines waits until at least n effects have been performed.
func (r *run) awaitLines(ctx context.Context, n int) {
	for {
		info, err := os.Stat(r.at(outsideFile))
		r.must(err)
		if info.Size() >= int64(n*(2*len(receipt.Key{}.Hash)+1)) {
			return
		}
		select {
		case <-ctx.Done():
			r.must(ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

func (r *run) lines() []string {
	data, err := os.ReadFile(r.at(outsideFile))
	r.must(err)
	return strings.Fields(string(data))
}

// judge counts what was performed twice, and what was not or is not known.
func (b *recoverBench) judge(r *run) {
	lines := r.lines()
	performed := make(map[string]bool, len(lines))
	for _, key := range lines {
		performed[key] = true
	}
	lw := r.open(r.dir, recoverOptions())
	lost := b.cells*b.effects - len(performed)
	for _, e := range (view.Journal{Local: lw}).Ledger() {
		if e.State != receipt.StateCommitted || !performed[e.Intent.Key.String()] {
			lost++
		}
	}
	r.add("performed twice", "effects", "0", float64(len(lines)-len(performed)))
	r.add("lost", "effects", "0", float64(lost))
	r.must(lw.Close())
}
