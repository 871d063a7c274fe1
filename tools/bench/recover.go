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
type outside struct{ file *os.File }

func (o outside) Perform(_ context.Context, call host.Call) (host.Result, error) {
	_, err := o.file.WriteString(call.Permit.Key.String() + "\n")
	return host.Result{Status: receipt.StatusOK, Payload: receipt.Data(canon.Null)}, err
}

func (o outside) Verify(_ context.Context, call host.Call) (receipt.Found, error) {
	lines, err := os.ReadFile(o.file.Name())
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

func recoverOptions(dir string) (local.Options, *os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, outsideFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	opts := effectsOptions()
	opts.Adapters["echo"] = func(host.Setup) (host.Adapter, error) { return outside{file}, nil }
	opts.Verifiers = map[string]host.VerifierFactory{"echo": func(host.Setup) (host.Verifier, error) { return outside{file}, nil }}
	return opts, file, err
}

// runRecoverable runs the world in a directory until it is idle.
func runRecoverable(ctx context.Context, dir string) error {
	lw, file, err := openRecoverable(dir)
	if err != nil {
		return err
	}
	return errors.Join(lw.Run(ctx), lw.Close(), file.Close())
}

// openRecoverable opens the world in a directory, and the file of what it performs.
func openRecoverable(dir string) (*local.World, *os.File, error) {
	opts, file, err := recoverOptions(dir)
	if err != nil {
		return nil, nil, err
	}
	lw, err := local.Open(dir, opts)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return lw, file, nil
}

func (b *recoverBench) round(ctx context.Context, dir string, r *rows) error {
	if err := b.prepare(ctx, dir); err != nil {
		return err
	}
	all := b.cells * b.effects
	first, err := start(ctx, dir)
	if err != nil {
		return err
	}
	if err := awaitLines(ctx, dir, all/2); err != nil {
		return err
	}
	_ = first.Process.Kill() // it may have ended
	_ = first.Wait()
	before, err := linesOf(dir)
	if err != nil {
		return err
	}
	began := time.Now()
	second, err := start(ctx, dir)
	if err != nil {
		return err
	}
	if err := awaitLines(ctx, dir, len(before)+1); err != nil {
		return err
	}
	toFirst := time.Since(began)
	if err := second.Wait(); err != nil {
		return fmt.Errorf("the process that goes on: %w", err)
	}
	return b.judge(dir, len(before), toFirst, r)
}

func (b *recoverBench) prepare(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	opts, file, err := recoverOptions(dir)
	if err != nil {
		return err
	}
	lw, err := benchWorld(dir, map[string]string{
		local.ManifestFile: strings.Replace(benchEffectsManifest, "{adapter: echo}",
			"{adapter: echo, on_in_doubt: verify, verify: {adapter: echo}}", 1),
	}, opts)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	return errors.Join(begin(ctx, lw, b.cells, b.effects), lw.Close(), file.Close())
}

// start starts a process that runs the world.
func start(ctx context.Context, dir string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "recover", "--child", dir)
	cmd.Stderr = os.Stderr
	return cmd, cmd.Start()
}

// awaitLines waits until at least n effects have been performed.
func awaitLines(ctx context.Context, dir string, n int) error {
	for {
		info, err := os.Stat(filepath.Join(dir, outsideFile))
		if err != nil {
			return err
		}
		if info.Size() >= int64(n*(2*len(receipt.Key{}.Hash)+1)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func linesOf(dir string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, outsideFile))
	return strings.Fields(string(data)), err
}

// judge counts what was performed twice, and what was not or is not known.
func (b *recoverBench) judge(dir string, before int, toFirst time.Duration, r *rows) error {
	lines, err := linesOf(dir)
	if err != nil {
		return err
	}
	performed := make(map[string]bool, len(lines))
	for _, key := range lines {
		performed[key] = true
	}
	lw, file, err := openRecoverable(dir)
	if err != nil {
		return err
	}
	lost := b.cells*b.effects - len(performed)
	for _, e := range (view.Journal{Local: lw}).Ledger() {
		if e.State != receipt.StateCommitted || !performed[e.Intent.Key.String()] {
			lost++
		}
	}
	r.add("performed before the kill", "effects", "", float64(before))
	r.add("to the first new effect", "s", "<= 0.5", toFirst.Seconds())
	r.add("performed twice", "effects", "0", float64(len(lines)-len(performed)))
	r.add("lost", "effects", "0", float64(lost))
	return errors.Join(lw.Close(), file.Close())
}
