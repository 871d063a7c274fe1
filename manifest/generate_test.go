package manifest_test

import (
	"maps"
	"slices"
	"strconv"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// twoValid draws two manifests without faults that have some sections in common.
func twoValid(t *rapid.T) (a, b *manifest.Manifest) {
	a, b = valid(t), valid(t)
	same := func(name string) bool { return rapid.Bool().Draw(t, "same "+name) }
	if same("version") {
		b.World, b.Version, b.Seed, b.Clock = a.World, a.Version, a.Seed, a.Clock
	}
	if same("effects") {
		b.Effects = a.Effects
	}
	if same("policies") {
		b.Policies = a.Policies
	}
	if same("budget") {
		b.Budget, b.Defaults, b.Limits = a.Budget, a.Defaults, a.Limits
	}
	if same("governance") {
		b.Governance = a.Governance
	}
	if same("cells") {
		b.Reducers, b.Events, b.Caps, b.Routing = a.Reducers, a.Events, a.Caps, a.Routing
	}
	require.Empty(t, a.Validate())
	require.Empty(t, b.Validate())
	return a, b
}

// valid draws a manifest without faults. Its names are few, so that two of them
// have many in common.
func valid(t *rapid.T) *manifest.Manifest {
	m := manifest.Manifest{
		World: rapid.SampledFrom([]string{"a", "ä/~"}).Draw(t, "world"), Version: rapid.Uint64().Draw(t, "version"),
		Seed:  rapid.Uint64().Draw(t, "seed"),
		Clock: manifest.Clock{Epoch: rapid.Int64().Draw(t, "epoch"), Tick: rapid.Int64Min(1).Draw(t, "tick")},
		Events: rapid.MapOfN(rapid.SampledFrom([]string{"x", "x.y", "x-y", "z"}),
			rapid.Custom(func(t *rapid.T) manifest.Event {
				return rapid.SampledFrom([]manifest.Event{{}, {File: "x", Schema: canon.Sum(nil)}, {Schema: canon.Sum([]byte("x"))}}).Draw(t, "event")
			}), 0, 4).Draw(t, "events"),
		Caps:    rapid.MapOfN(rapid.SampledFrom([]string{"any", "web"}), rapid.Custom(validCap), 0, 2).Draw(t, "caps"),
		Effects: rapid.MapOfN(rapid.SampledFrom([]string{"x", "x.y", "y", "z"}), rapid.Custom(validEffect), 0, 4).Draw(t, "effects"),
		Budget:  validBudget(t, "budget"),
		Defaults: manifest.Defaults{
			ApprovalTTL:     manifest.Tick(rapid.Uint64Range(0, 3).Draw(t, "ttl")),
			SnapshotEvery:   rapid.SampledFrom([]uint64{0, 100, 10_000}).Draw(t, "snapshot_every"),
			CheckpointEvery: rapid.SampledFrom([]uint64{0, 100, 10_000}).Draw(t, "checkpoint_every"),
			Retention:       manifest.Retention{MaxSnapshots: rapid.Uint64Range(0, 3).Draw(t, "max_snapshots")},
		},
		Limits: manifest.Limits{Mailbox: rapid.Uint64Range(0, 3).Draw(t, "mailbox")},
	}
	caps := slices.Sorted(maps.Keys(m.Caps))
	m.Reducers = rapid.MapOfN(rapid.SampledFrom([]string{"a", "a-b", "a_b"}), rapid.Custom(func(t *rapid.T) manifest.Reducer {
		r := manifest.Reducer{Engine: manifest.EngineGo, Name: "a", Version: "1", Budget: validBudget(t, "cell")}
		if rapid.Bool().Draw(t, "starlark") {
			r = manifest.Reducer{Engine: manifest.EngineStarlark, Source: canon.Sum(nil)}
		}
		if len(caps) > 0 {
			r.Grants = rapid.SliceOfN(rapid.SampledFrom(caps), 0, 3).Draw(t, "grants")
		}
		return r
	}), 1, 3).Draw(t, "reducers")
	for i := range rapid.IntRange(0, 3).Draw(t, "policies") {
		m.Policies = append(m.Policies, manifest.Policy{
			Name: strconv.Itoa(i), When: rapid.SampledFrom([]string{"true", "false"}).Draw(t, "when"), Decide: manifest.DecideDeny,
		})
	}
	if len(m.Events) > 0 {
		m.Routing = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) manifest.Route {
			r := manifest.Route{Event: "*", Reducer: rapid.SampledFrom(slices.Sorted(maps.Keys(m.Reducers))).Draw(t, "reducer"), Key: "'x'"}
			if rapid.Bool().Draw(t, "each") {
				r.Key, r.Each, r.Order = "", true, rapid.SampledFrom([]string{"", manifest.OrderName, manifest.OrderRandom}).Draw(t, "order")
			}
			return r
		}), 0, 3).Draw(t, "routing")
	}
	m.Governance = validGovernance(t)
	m.Engines = rapid.MapOfN(rapid.SampledFrom([]string{manifest.EngineBudget, manifest.EngineCEL, manifest.EngineStarlark}),
		rapid.SampledFrom([]string{"1", "2"}), 0, 2).Draw(t, "engines")
	compensate(t, &m)
	m = m.WithDefaults()
	return &m
}

func validBudget(t *rapid.T, name string) manifest.Budget {
	n := rapid.Uint64Range(0, 2)
	b := manifest.Budget{Calls: n.Draw(t, name), Tokens: n.Draw(t, name), Bytes: n.Draw(t, name)}
	if b != (manifest.Budget{}) {
		b.Per = manifest.Tick(n.Draw(t, name+" per"))
	}
	return b
}

func validGovernance(t *rapid.T) manifest.Governance {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"alice", "bob", "carol"}), 0, 3, rapid.ID[string]).Draw(t, "approvers")
	g := manifest.Governance{
		Approvals: rapid.Uint64Range(0, uint64(max(1, len(names)))).Draw(t, "approvals"),
		FourEyes:  len(names) > 1 && rapid.Bool().Draw(t, "four_eyes"),
	}
	for _, name := range names {
		key := publicKey(name + rapid.SampledFrom([]string{"", "'s other"}).Draw(t, "key"))
		g.Approvers = append(g.Approvers, manifest.Approver{Name: name, Key: key})
	}
	return g
}

func validCap(t *rapid.T) manifest.Cap {
	c := manifest.Cap{Type: manifest.CapAny, Budget: validBudget(t, "budget")}
	if rapid.Bool().Draw(t, "http") {
		c.Type = manifest.CapHTTP
		c.Params.Ports = rapid.SliceOfN(rapid.Uint64Range(1, 3), 0, 3).Draw(t, "ports")
	}
	return c
}

func validEffect(t *rapid.T) manifest.Effect {
	config := func(name string) manifest.Data {
		if rapid.Bool().Draw(t, "no "+name) {
			return nil
		}
		value, err := canon.Marshal(rapid.MapOfN(configKey(), configValue(3), 0, 3).Draw(t, name))
		require.NoError(t, err)
		return value
	}
	e := manifest.Effect{
		Adapter: "x", Config: config("config"), Idempotent: rapid.Bool().Draw(t, "idempotent"),
		OnRepeat: rapid.SampledFrom([]string{"", manifest.RepeatReuse, manifest.RepeatRun}).Draw(t, "on_repeat"),
		Files:    rapid.MapOfN(configKey(), rapid.Just(canon.Sum(nil)), 0, 2).Draw(t, "files"),
	}
	if rapid.Bool().Draw(t, "verify") {
		e.Verify = &manifest.Verify{Adapter: "x", Config: config("verifier")}
	}
	return e
}

// compensate lets one effect of m make up for another.
func compensate(t *rapid.T, m *manifest.Manifest) {
	kinds := slices.Sorted(maps.Keys(m.Effects))
	if len(kinds) < 2 || rapid.Bool().Draw(t, "no compensate") {
		return
	}
	e := m.Effects[kinds[0]]
	e.Compensate = &manifest.Compensate{Kind: kinds[1], Params: "receipt"}
	m.Effects[kinds[0]] = e
}

func configKey() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "a", "a/b", "~", "-", "0"})
}

// configValue draws data without byte strings, which JSON has not.
func configValue(depth int) *rapid.Generator[any] {
	leaf := rapid.SampledFrom([]any{nil, true, false, int64(0), int64(1), 1.0, uint64(1 << 63), "", "x", []any{}, map[string]any{}})
	if depth == 0 {
		return leaf
	}
	below := configValue(depth - 1)
	return rapid.OneOf(leaf,
		rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(below, 0, 3).Draw(t, "list") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.MapOfN(configKey(), below, 0, 3).Draw(t, "map") }),
	)
}
