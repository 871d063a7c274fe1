package world_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// rehearse runs a life's own manifest, or what change makes of it, on its history.
func rehearse(t *testing.T, l *life, cfg world.ShadowConfig, change ...func(*manifest.Manifest)) *governance.Report {
	t.Helper()
	cfg.Registry = cellAtRegistry()
	before, root := l.Status(), l.StateRoot()
	next := *l.Manifest()
	for _, change := range change {
		change(&next)
	}
	r, err := l.Rehearse(t.Context(), l.Journal, &next, nil, cfg)
	require.NoError(t, err)
	require.Equal(t, before, l.Status(), "a shadow changes nothing")
	require.Equal(t, root, l.StateRoot(), "a shadow changes nothing")
	return r
}

func TestShadowOfTheSameRulesIsTheHistory(t *testing.T) {
	total, shadowed := make(map[string]int), 0
	for seed := range uint64(400) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			l := newLife(t, seed, false, total)
			l.live()
			_, f := l.Proposals()
			for _, s := range l.Snapshots() {
				if s.Record > f.Since {
					requireNoOp(t, rehearse(t, l, world.ShadowConfig{From: s.Name}))
				}
			}
			if r := rehearse(t, l, world.ShadowConfig{}); r.From >= f.Since {
				requireNoOp(t, r)
				requireNoOp(t, rehearse(t, l, world.ShadowConfig{}, renamed))
				shadowed++
			}
		})
	}
	require.Greater(t, shadowed, 300)
}

// renamed gives policies other names: the records of intents are others, and mean
// the same. Cells are told the names of those that deny.
func renamed(m *manifest.Manifest) {
	m.Policies = slices.Clone(m.Policies)
	for i := range m.Policies {
		if m.Policies[i].Decide != manifest.DecideDeny {
			m.Policies[i].Name += " by another name"
		}
	}
}

func requireNoOp(t *testing.T, r *governance.Report) {
	t.Helper()
	if d := r.Divergence; d != nil {
		t.Fatalf("#%d %s:\n%s\n%s", d.Record, d.Cell, d.Recorded, d.Computed)
	}
	require.True(t, r.NoOp(), "%+v", *r)
}
