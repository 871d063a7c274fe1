package world_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// given is a world whose reducers share one source, with a module and other params.
func given(t *testing.T, schema string) *worldtest.World {
	t.Helper()
	m, contents := givenRules(t, schema)
	return allOK(t, m, contents)
}

// allOK is a world whose effects all succeed.
func allOK(t *testing.T, m manifest.Manifest, contents map[manifest.Hash][]byte) *worldtest.World {
	return worldtest.New(t, m, contents, worldtest.Options{Answer: func(p receipt.Permit) worldtest.Reply { return worldtest.OK(p.Kind) }})
}

func givenRules(t *testing.T, schema string) (m manifest.Manifest, contents map[manifest.Hash][]byte) {
	t.Helper()
	const source = `load("lib.star", "asks")
def reduce(ctx, state, event):
    if event.name == "receipt" and event.data["status"] == "ok" and event.data["kind"] == "pay.card" and "title" in ctx.schemas["pay.card"]:
        return [state, ctx.schemas["pay.card"]]
    if event.name == "receipt":
        return {"status": event.data["status"], "payload": event.data["payload"]}
    asks(ctx, event)
    return ctx.schemas["pay.card"].get("title")
`
	const lib = "def asks(ctx, event):\n    ctx.effect(ctx.params[\"kind\"], event.data[\"params\"])\n"
	code := func(params string) manifest.Reducer {
		data, err := canon.FromJSON([]byte(params))
		require.NoError(t, err)
		return manifest.Reducer{
			Engine: manifest.EngineStarlark, File: "a.star", Source: canon.Sum([]byte(source)), Grants: []string{"all"},
			Modules: map[string]manifest.Hash{"lib.star": canon.Sum([]byte(lib))}, Params: data,
		}
	}
	m = manifest.Manifest{
		World: "w",
		Reducers: map[string]manifest.Reducer{
			"payer": code(`{"kind": "pay.card"}`), "caller": code(`{"kind": "pay.call"}`),
		},
		Events: map[string]manifest.Event{"go": {}},
		Effects: map[string]manifest.Effect{
			"pay.card": {Adapter: "test", Params: canon.Sum([]byte(schema))}, "pay.call": {Adapter: "test"},
		},
		Caps:     map[string]manifest.Cap{"all": {Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"pay.*"}}}},
		Policies: []manifest.Policy{{Name: "all", When: "true", Decide: manifest.DecideAllow}},
		Routing:  []manifest.Route{{Event: "go", Reducer: "payer", Key: "'p'"}, {Event: "go", Reducer: "caller", Key: "'c'"}},
	}
	contents = make(map[manifest.Hash][]byte)
	for _, text := range []string{source, lib, schema} {
		contents[canon.Sum([]byte(text))] = []byte(text)
	}
	return m, contents
}

const cents = `{
	"type": "object", "additionalProperties": false,
	"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "lines": {"items": {"properties": {"cents": {"type": "integer"}}}}}
}`

func TestReducersShareASourceAndHaveTheirOwnParams(t *testing.T) {
	w := given(t, cents)
	w.Submit("go", map[string]any{"params": map[string]any{"a": 1}})
	w.Run()
	require.JSONEq(t, `{"status": "ok", "payload": "pay.card"}`, w.State("payer/p"))
	require.JSONEq(t, `{"status": "ok", "payload": "pay.call"}`, w.State("caller/c"))
	w.RequireReplay()
}

func TestAReducerSeesTheSchemasOfEffects(t *testing.T) {
	w := given(t, `{"title": "Pay"}`)
	w.Submit("go", map[string]any{"params": map[string]any{}})
	w.Step(1)
	require.JSONEq(t, `["Pay", {"title": "Pay"}]`, w.State("payer/p"))
}

// Params that break their schema are denied before any policy sees them, and of several
// places the same is named each time: it goes on the record.
func TestParamsThatBreakTheirSchemaAreDenied(t *testing.T) {
	for range 20 {
		w := given(t, cents)
		w.Submit("go", map[string]any{"params": map[string]any{"lines": []any{map[string]any{"cents": "7"}}}})
		w.Run()
		require.JSONEq(t, `{"status": "denied", "payload": {"code": "bad_params", "reason": "params.lines.0.cents: got string, want integer"}}`, w.State("payer/p"))
		require.JSONEq(t, `{"status": "ok", "payload": "pay.call"}`, w.State("caller/c"), "another kind has no schema")
		w.Submit("go", map[string]any{"params": map[string]any{"b": "x", "a": "y", "z": 1, "x": 1}})
		w.Run()
		require.JSONEq(t, `{"status": "denied", "payload": {"code": "bad_params", "reason": "params: additional properties 'x', 'z' not allowed"}}`, w.State("payer/p"))
		w.Submit("go", map[string]any{"params": map[string]any{"b": "x", "a": "y"}})
		w.Run()
		require.JSONEq(t, `{"status": "denied", "payload": {"code": "bad_params", "reason": "params.a: got string, want integer"}}`, w.State("payer/p"))
		w.RequireReplay()
	}
}

// TestAModuleIsCodeOfWhoLoadsIt: another text is other code, although the program is the
// same, and a content that is not the one named is none.
func TestAModuleIsCodeOfWhoLoadsIt(t *testing.T) {
	m, contents := givenRules(t, cents)
	w := allOK(t, m, contents)
	other := []byte("# of today\n" + string(contents[m.Reducers["payer"].Modules["lib.star"]]))
	next := m.WithDefaults()
	next.Version++
	next.Reducers = maps.Clone(next.Reducers)
	for name, r := range next.Reducers { // order cannot show: a map is built from a map
		r.Modules = map[string]manifest.Hash{"lib.star": canon.Sum(other)}
		next.Reducers[name] = r
	}
	w.Submit("go", map[string]any{"params": map[string]any{"a": 1}})
	w.Run()
	before := w.StateRoot()
	forged := map[manifest.Hash][]byte{canon.Sum(other): append([]byte("# forged\n"), other...)}
	require.ErrorIs(t, worldtest.Adopt(t.Context(), w.World, &next, forged), world.ErrCandidate)
	require.NoError(t, worldtest.Adopt(t.Context(), w.World, &next, map[manifest.Hash][]byte{canon.Sum(other): other}))
	require.NotEqual(t, before, w.StateRoot(), "the cells have other code")
}

// TestACandidateWhosePoliciesMistakeParamsIsRefused: and one that is in force runs on.
func TestACandidateWhosePoliciesMistakeParamsIsRefused(t *testing.T) {
	m, contents := givenRules(t, cents)
	m = m.WithDefaults()
	candidate := m
	candidate.Version++
	candidate.Policies = append(slices.Clone(m.Policies), manifest.Policy{
		Name: "dear", When: `intent.kind == "pay.card" && intent.params.aa > 100`, Decide: manifest.DecideDeny,
	})
	err := worldtest.Adopt(t.Context(), allOK(t, m, contents).World, &candidate, contents)
	require.ErrorIs(t, err, world.ErrCandidate)
	require.ErrorContains(t, err, "/policies/1/when: 1:43: the params of pay.card have no aa there: did you mean a?")

	w := allOK(t, candidate, contents)
	w.Submit("go", map[string]any{"params": map[string]any{"a": 1}})
	w.Run()
	w.RequireReplay()
}

// blowUp is a schema whose check doubles with each level of the data.
const blowUp = `{"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`

func nested(n int) any {
	v := any(map[string]any{})
	for range n {
		v = map[string]any{"a": v}
	}
	return v
}

// TestAChecksStepsAreCounted: schemas of params and events whose checks would never end
// refuse what they cannot check, at the same place whenever it is done again.
func TestAChecksStepsAreCounted(t *testing.T) {
	m, contents := givenRules(t, blowUp)
	hash := canon.Sum([]byte(blowUp))
	m.Events["wild"] = manifest.Event{Schema: hash}
	w := allOK(t, m, contents)
	w.Submit("go", map[string]any{"params": nested(10)})
	w.Run()
	require.JSONEq(t, `{"status": "ok", "payload": "pay.card"}`, w.State("payer/p"))
	w.Submit("go", map[string]any{"params": nested(50)})
	w.Run()
	require.Contains(t, w.State("payer/p"), `"code":"bad_params"`)
	require.Contains(t, w.State("payer/p"), "a.a.a: takes more than ")

	var refused *world.InputError
	require.ErrorAs(t, w.TrySubmit("wild", nested(50)), &refused)
	require.ErrorIs(t, refused, world.ErrSchema)
	require.Contains(t, refused.Field, "data.a.a")
	w.RequireReplay()
}

// TestParamsAreCheckedBySchemaOfTheApply: what waits when a narrower schema is applied is denied
// by it, also where a person has approved it.
func TestParamsAreCheckedBySchemaOfTheApply(t *testing.T) {
	for _, approved := range []bool{false, true} {
		m, contents := givenRules(t, `{"title": "any"}`)
		m.Policies = append(m.Policies, manifest.Policy{Name: "card", When: `intent.kind == "pay.card"`, Decide: manifest.DecideRequireApproval})
		m = m.WithDefaults()
		w := allOK(t, m, contents)
		w.Submit("go", map[string]any{"params": map[string]any{"a": "7"}})
		w.Run()
		card := func() receipt.Entry {
			all := w.Intents()
			return all[slices.IndexFunc(all, func(e receipt.Entry) bool { return e.Intent.Kind == "pay.card" })]
		}
		e := card()
		require.Equal(t, receipt.StateAwaitingApproval, e.State)
		if approved {
			_, err := w.Resolve(t.Context(), journal.Resolved{Key: e.Intent.Key, Params: e.Params, How: journal.Approve, Actor: "ada", Reason: "yes"})
			require.NoError(t, err)
		}
		next := m
		next.Version++
		next.Effects = maps.Clone(m.Effects)
		narrower := next.Effects["pay.card"]
		narrower.Params = canon.Sum([]byte(cents))
		next.Effects["pay.card"] = narrower
		contents[narrower.Params] = []byte(cents)
		require.NoError(t, worldtest.Adopt(t.Context(), w.World, &next, contents))
		require.Equal(t, receipt.StateDenied, card().State)
		w.Run()
		require.JSONEq(t, `{"status": "denied", "payload": {"code": "bad_params", "reason": "params.a: got string, want integer"}}`, w.State("payer/p"))
		w.RequireReplay()
	}
}
