package manifest_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// good returns a manifest without faults that uses every field.
func good() *manifest.Manifest {
	m := manifest.Manifest{
		World: "support-desk", Version: 1, Seed: 42,
		Clock: manifest.Clock{Epoch: 1_767_225_600_000_000_000, Tick: 60_000_000_000},
		Reducers: map[string]manifest.Reducer{
			"agent": {
				Engine: manifest.EngineStarlark, File: "agent.star", Source: canon.Sum([]byte("agent")),
				Grants: []string{"tools"},
			},
			"clerk": {Engine: manifest.EngineGo, Name: "clerk", Version: "2", OnError: manifest.OnErrorSkip},
		},
		Events: map[string]manifest.Event{
			"ticket.opened": {File: "ticket.json", Schema: canon.Sum([]byte("{}"))},
			"ticket.closed": {},
		},
		Effects: map[string]manifest.Effect{
			"tool.lookup": {
				Adapter: "recorded", Config: data("a1" + "68" + "6361737365747465" + "61" + "63"),
				Files: map[string]manifest.Hash{"cassette": canon.Sum([]byte("c"))},
			},
		},
		Caps: map[string]manifest.Cap{
			"tools": {Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"tool.*"}}, Expires: 100},
		},
		Policies: []manifest.Policy{{Name: "tools, all", When: "true", Decide: manifest.DecideAllow}},
		Routing: []manifest.Route{
			{Event: "ticket.*", Reducer: "agent", Key: "event.data.customer"},
			{Event: "*", Reducer: "clerk", Key: `"desk"`},
		},
	}.WithDefaults()
	return &m
}

// data returns bytes given as hex.
func data(s string) manifest.Data {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func TestGoodManifestHasNoFaults(t *testing.T) {
	require.Empty(t, good().Validate())
}

func TestValidateNamesTheFault(t *testing.T) {
	long := strings.Repeat("x", manifest.MaxNameBytes+1)
	reducer := func(edit func(*manifest.Reducer)) func(*manifest.Manifest) {
		return func(m *manifest.Manifest) {
			r := m.Reducers["agent"]
			edit(&r)
			m.Reducers["agent"] = r
		}
	}
	rename := func(name string) func(*manifest.Manifest) {
		return func(m *manifest.Manifest) { m.Reducers[name] = m.Reducers["clerk"] }
	}
	event := func(name string) func(*manifest.Manifest) {
		return func(m *manifest.Manifest) { m.Events[name] = manifest.Event{} }
	}
	effect := func(name string, e manifest.Effect) func(*manifest.Manifest) {
		return func(m *manifest.Manifest) { m.Effects[name] = e }
	}
	capKinds := func(kind string) func(*manifest.Manifest) {
		return func(m *manifest.Manifest) { m.Caps["tools"].Params.Kinds[0] = kind }
	}
	for name, c := range map[string]struct {
		edit func(*manifest.Manifest)
		path string
	}{
		"empty world":           {func(m *manifest.Manifest) { m.World = "" }, "/world"},
		"control in world":      {func(m *manifest.Manifest) { m.World = "a\nb" }, "/world"},
		"world not UTF-8":       {func(m *manifest.Manifest) { m.World = "a\xff" }, "/world"},
		"long world":            {func(m *manifest.Manifest) { m.World = long }, "/world"},
		"no tick":               {func(m *manifest.Manifest) { m.Clock.Tick = 0 }, "/clock/tick"},
		"negative tick":         {func(m *manifest.Manifest) { m.Clock.Tick = -1 }, "/clock/tick"},
		"no reducers":           {func(m *manifest.Manifest) { m.Reducers, m.Routing = nil, nil }, "/reducers"},
		"upper-case reducer":    {rename("Agent"), "/reducers/Agent"},
		"dotted reducer":        {rename("a.b"), "/reducers/a.b"},
		"escaped reducer":       {rename("a/b~c"), "/reducers/a~1b~0c"},
		"empty reducer name":    {rename(""), "/reducers/"},
		"long reducer name":     {rename(long), "/reducers/" + long},
		"reserved reducer":      {rename("operator"), "/reducers/operator"},
		"unknown engine":        {reducer(func(r *manifest.Reducer) { r.Engine = "lua" }), "/reducers/agent/engine"},
		"no source":             {reducer(func(r *manifest.Reducer) { r.Source = manifest.Hash{} }), "/reducers/agent/source"},
		"starlark with name":    {reducer(func(r *manifest.Reducer) { r.Name = "x" }), "/reducers/agent/name"},
		"starlark with version": {reducer(func(r *manifest.Reducer) { r.Version = "x" }), "/reducers/agent/version"},
		"go with source": {reducer(func(r *manifest.Reducer) {
			r.Engine, r.Name, r.Version = "go", "x", "1"
		}), "/reducers/agent/source"},
		"go without name": {reducer(func(r *manifest.Reducer) {
			*r = manifest.Reducer{Engine: "go", Version: "1", OnError: r.OnError, Limits: r.Limits}
		}), "/reducers/agent/name"},
		"go without version": {reducer(func(r *manifest.Reducer) {
			*r = manifest.Reducer{Engine: "go", Name: "x", OnError: r.OnError, Limits: r.Limits}
		}), "/reducers/agent/version"},
		"dangling grant":            {reducer(func(r *manifest.Reducer) { r.Grants = []string{"tools", "x"} }), "/reducers/agent/grants/1"},
		"unknown on_error":          {reducer(func(r *manifest.Reducer) { r.OnError = "retry" }), "/reducers/agent/on_error"},
		"zero gas":                  {reducer(func(r *manifest.Reducer) { r.Limits.Gas = 0 }), "/reducers/agent/limits/gas"},
		"huge value":                {reducer(func(r *manifest.Reducer) { r.Limits.Value = 1 << 40 }), "/reducers/agent/limits/value"},
		"upper-case event":          {event("Ticket"), "/events/Ticket"},
		"event ends in a dot":       {event("ticket."), "/events/ticket."},
		"event begins with a digit": {event("1.a"), "/events/1.a"},
		"reserved event":            {event("receipt"), "/events/receipt"},
		"schema without content": {func(m *manifest.Manifest) {
			m.Events["ticket.closed"] = manifest.Event{File: "x.json"}
		}, "/events/ticket.closed/schema"},
		"spaced effect":   {effect("tool lookup", manifest.Effect{Adapter: "x"}), "/effects/tool lookup"},
		"no adapter":      {effect("x", manifest.Effect{}), "/effects/x/adapter"},
		"config not CBOR": {effect("x", manifest.Effect{Adapter: "x", Config: data("ff")}), "/effects/x/config"},
		"config no map":   {effect("x", manifest.Effect{Adapter: "x", Config: data("01")}), "/effects/x/config"},
		"file without content": {effect("x", manifest.Effect{
			Adapter: "x", Files: map[string]manifest.Hash{"a": {}},
		}), "/effects/x/config/a"},
		"upper-case cap": {func(m *manifest.Manifest) { m.Caps["T"] = m.Caps["tools"] }, "/caps/T"},
		"unknown cap type": {func(m *manifest.Manifest) {
			m.Caps["tools"] = manifest.Cap{Type: "http"}
		}, "/caps/tools/type"},
		"star inside a kind":    {capKinds("to*ls"), "/caps/tools/params/kinds/0"},
		"star without a dot":    {capKinds("tool*"), "/caps/tools/params/kinds/0"},
		"empty kind":            {capKinds(""), "/caps/tools/params/kinds/0"},
		"nameless policy":       {func(m *manifest.Manifest) { m.Policies[0].Name = "" }, "/policies/0/name"},
		"policy name twice":     {func(m *manifest.Manifest) { m.Policies = append(m.Policies, m.Policies[0]) }, "/policies/1/name"},
		"blank when":            {func(m *manifest.Manifest) { m.Policies[0].When = " " }, "/policies/0/when"},
		"unknown decision":      {func(m *manifest.Manifest) { m.Policies[0].Decide = "maybe" }, "/policies/0/decide"},
		"route without reducer": {func(m *manifest.Manifest) { m.Routing[0].Reducer = "x" }, "/routing/0/reducer"},
		"route without event":   {func(m *manifest.Manifest) { m.Routing[1].Event = "order.*" }, "/routing/1/event"},
		"route with bad event":  {func(m *manifest.Manifest) { m.Routing[1].Event = "t*" }, "/routing/1/event"},
		"route with bad key":    {func(m *manifest.Manifest) { m.Routing[0].Key = "event.data" }, "/routing/0/key"},
		"zero limit":            {func(m *manifest.Manifest) { m.Limits.Mailbox = 0 }, "/limits/mailbox"},
		"huge limit":            {func(m *manifest.Manifest) { m.Limits.InFlight = 1 << 40 }, "/limits/in_flight"},
		"too many routes": {func(m *manifest.Manifest) {
			m.Routing = make([]manifest.Route, 10_001)
			for i := range m.Routing {
				m.Routing[i] = manifest.Route{Event: "*", Reducer: "agent", Key: "'x'"}
			}
		}, "/routing"},
	} {
		t.Run(name, func(t *testing.T) {
			m := good()
			c.edit(m)
			faults := m.Validate()
			require.Len(t, faults, 1)
			require.Equal(t, c.path, faults[0].Path)
			require.NotEmpty(t, faults[0].Msg)
		})
	}
}

func TestValidateReportsAllFaultsInOneOrder(t *testing.T) {
	m := good()
	m.World = ""
	m.Reducers["Z"], m.Reducers["A"] = m.Reducers["clerk"], m.Reducers["clerk"]
	m.Policies[0].Decide = ""
	want := []string{"/world", "/reducers/A", "/reducers/Z", "/policies/0/decide"}
	for range 20 {
		var got []string
		for _, f := range m.Validate() {
			got = append(got, f.Path)
		}
		require.Equal(t, want, got)
	}
}

func TestZeroManifestIsFaultyNotFatal(t *testing.T) {
	require.NotEmpty(t, new(manifest.Manifest).Validate())
}
