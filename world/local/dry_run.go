package local

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
)

// DryRunOptions says how a world is made anew, to try rules that nobody has proposed.
type DryRunOptions struct {
	World     string         // the world's directory, for its secrets
	Copy      string         // a backup of it, which is read and does not change
	Dir       string         // for what is made; it is there, and has no "is" and no "was"
	Rules     *source.Loaded // to be tried
	Live      manifest.Live  // see WhatIf; under the rules in force nothing is performed
	Undecided bool           // see WhatIf
	Actor     string
}

// DryRunResult is a world that was made anew twice, both times of what it got and in the same
// way, so that nothing but the rules makes them different.
type DryRunResult struct {
	Was *Supposed // under the rules in force
	Is  *Supposed // under those that are tried
}

// DryRun runs a world again from its first record, with its present engines and the recorded
// inputs, up to the present head. Deterministic adapters, as its rules declare them, answer what is
// theirs; what is recorded answers all other effects. The world itself is not looked at. The caller
// closes what is returned. The errors are those of World.Suppose and Supposed.Run; what was made
// stays in a.Dir then, too.
func DryRun(ctx context.Context, a DryRunOptions, opts Options) (*DryRunResult, error) {
	if opts.Secrets == nil {
		opts.Secrets = host.Secrets(filepath.Join(a.World, hiddenDir, secretsDir))
	}
	was, err := a.under(ctx, nil, WhatIf{Dir: filepath.Join(a.Dir, "was")}, opts)
	if err != nil {
		return nil, err
	}
	// The other one reads the same backup.
	if err := was.World.Close(); err != nil {
		return nil, errors.Join(err, was.Fork.Close())
	}
	was.World = nil
	is, err := a.under(ctx, a.Rules, WhatIf{Dir: filepath.Join(a.Dir, "is"), Live: a.Live}, opts)
	if err != nil {
		return nil, errors.Join(err, was.Close())
	}
	return &DryRunResult{Was: was, Is: is}, nil
}

// under makes the world anew once; without rules under those in force.
func (a *DryRunOptions) under(ctx context.Context, rules *source.Loaded, q WhatIf, opts Options) (*Supposed, error) {
	past, err := OpenReadOnly(a.Copy, opts.within(ctx))
	if err != nil {
		return nil, err
	}
	var inForce *manifest.Manifest
	past.View(func(m *world.Moment) { inForce = m.Manifest() })
	q.At = func(*World) (journal.Seq, error) { return 1, nil }
	q.Stubs, q.Undecided, q.Actor = true, a.Undecided, a.Actor
	q.Amend = func(*manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		if rules == nil {
			contents, err := past.contents(inForce)
			return inForce, contents, err
		}
		return rules.Amend(inForce)
	}
	x, err := past.Suppose(ctx, q)
	if err = errors.Join(err, past.Close()); err != nil {
		return nil, err
	}
	if err := x.Run(ctx, opts); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// contents returns what a manifest of the world names.
func (lw *World) contents(m *manifest.Manifest) (map[manifest.Hash][]byte, error) {
	all := make(map[manifest.Hash][]byte)
	for _, h := range m.Contents() {
		data, err := lw.store.Blob(h)
		if err != nil {
			return nil, err
		}
		all[h] = data
	}
	return all, nil
}

// Close gives up what is open.
func (m *DryRunResult) Close() error { return errors.Join(m.Was.Close(), m.Is.Close()) }
