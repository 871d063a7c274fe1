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

// Anew says how a world is made anew, to try rules that nobody has proposed.
type Anew struct {
	World  string         // the world's directory, for its secrets
	Copy   string         // a backup of it, which is read and does not change
	Dir    string         // of the world that is made: empty or not there
	Rules  *source.Loaded // that it lives by
	OrLive bool           // see WhatIf
	Actor  string
}

// MakeAnew makes the world anew: it lives by other rules from its first record on, under
// the engines that the world has now, and gets what that got, up to where that is.
// Deterministic adapters, as these rules declare them, answer what is theirs; the world's
// recorded answers all other effects. The world itself is not looked at. The caller closes
// what is returned. The errors are those of World.Suppose and Supposed.Run; what was made
// stays in a.Dir then, too.
func MakeAnew(ctx context.Context, a Anew, opts Options) (*Supposed, error) {
	past, err := Look(a.Copy, opts)
	if err != nil {
		return nil, err
	}
	var inForce *manifest.Manifest
	past.View(func(m *world.Moment) { inForce = m.Manifest() })
	x, err := past.Suppose(ctx, WhatIf{
		At: func(*World) (journal.Seq, error) { return 1, nil },
		Amend: func(*manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
			return a.Rules.Amend(inForce)
		},
		OrLive: a.OrLive, Stubs: true, Actor: a.Actor, Dir: a.Dir,
	})
	if err = errors.Join(err, past.Close()); err != nil {
		return nil, err
	}
	if opts.Secrets == nil {
		opts.Secrets = host.Secrets(filepath.Join(a.World, hiddenDir, secretsDir))
	}
	if err := x.Run(ctx, opts); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}
