package manifest_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
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
				Grants: []string{"tools"}, Limits: manifest.ReducerLimits{State: 256 << 10, Value: 1 << 20},
			},
			"clerk": {
				Engine: manifest.EngineGo, Name: "clerk", Version: "2", OnError: manifest.OnErrorSkip,
				Limits: manifest.ReducerLimits{State: 256 << 10, Value: 1 << 20},
			},
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
			"tool.pay": {
				Adapter: "http", Timeout: 5_000_000_000, Class: manifest.ClassDestructive, Idempotent: true,
				ExternalKey: manifest.ExternalPerAttempt, Retry: manifest.Retry{Attempts: 5, Backoff: 1},
				OnInDoubt: manifest.InDoubtVerify, OnRepeat: manifest.RepeatReuse,
				Verify: &manifest.Verify{
					Adapter: "exec", Config: data("a0"), Files: map[string]manifest.Hash{"x": canon.Sum([]byte("x"))},
					Mode: manifest.VerifyHuman,
				},
				Compensate: &manifest.Compensate{Kind: "tool.lookup", Params: "receipt.payload"},
				MaxCost:    manifest.MaxCost{Tokens: new(uint64(1)), Bytes: new(uint64(2)), Micros: new(uint64(3))},
			},
		},
		Caps: map[string]manifest.Cap{
			"tools": {
				Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"tool.*"}}, Expires: 100,
				Budget: manifest.Budget{Calls: 1, Tokens: 2, Bytes: 3, Micros: 4},
			},
			"web": {Type: manifest.CapHTTP, Params: manifest.CapParams{
				Schemes: []string{"https", "http"}, Hosts: []string{"*.example.com", "[::1]"}, Ports: []uint64{1, 65_535},
				Methods: []string{"GET"}, Paths: []string{"/", "/a b"}, MaxBytes: 1,
			}},
			"model": {Type: manifest.CapLLM, Params: manifest.CapParams{
				Providers: []string{"api.example.com"}, Models: []string{"gpt*"}, Tools: []string{"*"}, MaxTokens: 1,
			}},
			"server": {Type: manifest.CapMCP, Params: manifest.CapParams{Servers: []string{"npx"}, Tools: []string{"*"}}},
			"disk": {Type: manifest.CapFile, Params: manifest.CapParams{
				Root: "data", Access: []string{"read", "write"}, MaxBytes: 1,
			}},
			"shell": {Type: manifest.CapExec, Params: manifest.CapParams{
				Programs: []string{"./lookup"}, Args: []string{"-v", "", "*\n"},
			}},
		},
		Budget:   manifest.Budget{Calls: 1_000_000},
		Limits:   manifest.Limits{InFlight: 1024, Payload: 1 << 20},
		Defaults: manifest.Defaults{SnapshotEvery: 100},
		Policies: []manifest.Policy{{Name: "tools, all", When: "true", Decide: manifest.DecideAllow}},
		Governance: manifest.Governance{Approvals: 2, FourEyes: true, Approvers: []manifest.Approver{
			{Name: "alice", File: "approvers/alice.pub", Key: publicKey("alice")}, {Name: "bob", Key: publicKey("bob")},
		}},
		Routing: []manifest.Route{
			{Event: "ticket.*", Reducer: "agent", Key: "event.data.customer"},
			{Event: "*", Reducer: "clerk", Key: `"desk"`},
		},
	}.WithDefaults()
	return &m
}

// publicKey returns bytes that stand for somebody's key.
func publicKey(of string) manifest.PublicKey { return manifest.PublicKey(canon.Sum([]byte(of))) }

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
		return func(m *manifest.Manifest) {
			m.Effects[name] = e
			*m = m.WithDefaults()
		}
	}
	pay := func(edit func(*manifest.Effect)) func(*manifest.Manifest) {
		return func(m *manifest.Manifest) {
			e := m.Effects["tool.pay"]
			edit(&e)
			m.Effects["tool.pay"] = e
		}
	}
	capOf := func(name string, edit func(*manifest.Cap)) func(*manifest.Manifest) {
		return func(m *manifest.Manifest) {
			c := m.Caps[name]
			edit(&c)
			m.Caps[name] = c
		}
	}
	params := func(name string, edit func(*manifest.CapParams)) func(*manifest.Manifest) {
		return capOf(name, func(c *manifest.Cap) { edit(&c.Params) })
	}
	capKinds := func(kind string) func(*manifest.Manifest) {
		return func(m *manifest.Manifest) { m.Caps["tools"].Params.Kinds[0] = kind }
	}
	for name, c := range map[string]struct {
		edit func(*manifest.Manifest)
		path string
	}{
		"empty world":             {func(m *manifest.Manifest) { m.World = "" }, "/world"},
		"control in world":        {func(m *manifest.Manifest) { m.World = "a\nb" }, "/world"},
		"world not UTF-8":         {func(m *manifest.Manifest) { m.World = "a\xff" }, "/world"},
		"long world":              {func(m *manifest.Manifest) { m.World = long }, "/world"},
		"no tick":                 {func(m *manifest.Manifest) { m.Clock.Tick = 0 }, "/clock/tick"},
		"negative tick":           {func(m *manifest.Manifest) { m.Clock.Tick = -1 }, "/clock/tick"},
		"no reducers":             {func(m *manifest.Manifest) { m.Reducers, m.Routing = nil, nil }, "/reducers"},
		"upper-case reducer":      {rename("Agent"), "/reducers/Agent"},
		"dotted reducer":          {rename("a.b"), "/reducers/a.b"},
		"escaped reducer":         {rename("a/b~c"), "/reducers/a~1b~0c"},
		"empty reducer name":      {rename(""), "/reducers/"},
		"long reducer name":       {rename(long), "/reducers/" + long},
		"reserved reducer":        {rename("operator"), "/reducers/operator"},
		"an engine of no version": {func(m *manifest.Manifest) { m.Engines = manifest.Engines{"go": "1"} }, "/engines/go"},
		"a version of nothing":    {func(m *manifest.Manifest) { m.Engines = manifest.Engines{"cel": ""} }, "/engines/cel"},
		"a version too long":      {func(m *manifest.Manifest) { m.Engines = manifest.Engines{"cel": long + long} }, "/engines/cel"},
		"unknown engine":          {reducer(func(r *manifest.Reducer) { r.Engine = "lua" }), "/reducers/agent/engine"},
		"no source":               {reducer(func(r *manifest.Reducer) { r.Source = manifest.Hash{} }), "/reducers/agent/source"},
		"starlark with name":      {reducer(func(r *manifest.Reducer) { r.Name = "x" }), "/reducers/agent/name"},
		"starlark with version":   {reducer(func(r *manifest.Reducer) { r.Version = "x" }), "/reducers/agent/version"},
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
			m.Caps["tools"] = manifest.Cap{Type: "ftp", Params: manifest.CapParams{Root: "x"}}
		}, "/caps/tools/type"},
		"no timeout":            {pay(func(e *manifest.Effect) { e.Timeout = 0 }), "/effects/tool.pay/timeout"},
		"endless timeout":       {pay(func(e *manifest.Effect) { e.Timeout = 1 << 62 }), "/effects/tool.pay/timeout"},
		"unknown class":         {pay(func(e *manifest.Effect) { e.Class = "safe" }), "/effects/tool.pay/class"},
		"unknown external key":  {pay(func(e *manifest.Effect) { e.ExternalKey = "none" }), "/effects/tool.pay/external_key"},
		"no attempts":           {pay(func(e *manifest.Effect) { e.Retry.Attempts = 0 }), "/effects/tool.pay/retry/attempts"},
		"endless attempts":      {pay(func(e *manifest.Effect) { e.Retry.Attempts = 1001 }), "/effects/tool.pay/retry/attempts"},
		"negative backoff":      {pay(func(e *manifest.Effect) { e.Retry.Backoff = -1 }), "/effects/tool.pay/retry/backoff"},
		"endless backoff":       {pay(func(e *manifest.Effect) { e.Retry.Backoff = 1 << 62 }), "/effects/tool.pay/retry/backoff"},
		"unknown on_in_doubt":   {pay(func(e *manifest.Effect) { e.OnInDoubt = "guess" }), "/effects/tool.pay/on_in_doubt"},
		"settles for nobody":    {pay(func(e *manifest.Effect) { e.OnInDoubt, e.SettlesAfter = manifest.InDoubtAsk, 1 }), "/effects/tool.pay/settles_after"},
		"settles before":        {pay(func(e *manifest.Effect) { e.SettlesAfter = -1 }), "/effects/tool.pay/settles_after"},
		"unknown on_repeat":     {pay(func(e *manifest.Effect) { e.OnRepeat = "guess" }), "/effects/tool.pay/on_repeat"},
		"verify without Verify": {pay(func(e *manifest.Effect) { e.Verify = nil }), "/effects/tool.pay/on_in_doubt"},
		"retry of what is not idempotent": {pay(func(e *manifest.Effect) {
			e.OnInDoubt, e.Idempotent, e.ExternalKey = manifest.InDoubtRetry, false, ""
		}), "/effects/tool.pay/on_in_doubt"},
		"retry under another key": {pay(func(e *manifest.Effect) {
			e.OnInDoubt = manifest.InDoubtRetry
		}), "/effects/tool.pay/on_in_doubt"},
		"verify without adapter": {pay(func(e *manifest.Effect) { e.Verify.Adapter = "" }), "/effects/tool.pay/verify/adapter"},
		"verify in no mode":      {pay(func(e *manifest.Effect) { e.Verify.Mode = "" }), "/effects/tool.pay/verify/mode"},
		"verify config no map":   {pay(func(e *manifest.Effect) { e.Verify.Config = data("01") }), "/effects/tool.pay/verify/config"},
		"verify file without content": {pay(func(e *manifest.Effect) {
			e.Verify.Files["x"] = manifest.Hash{}
		}), "/effects/tool.pay/verify/config/x"},
		"compensate by nothing":         {pay(func(e *manifest.Effect) { e.Compensate.Kind = "x" }), "/effects/tool.pay/compensate/kind"},
		"compensate by itself":          {pay(func(e *manifest.Effect) { e.Compensate.Kind = "tool.pay" }), "/effects/tool.pay/compensate/kind"},
		"compensate without params":     {pay(func(e *manifest.Effect) { e.Compensate.Params = " " }), "/effects/tool.pay/compensate/params"},
		"a rate of nothing":             {pay(func(e *manifest.Effect) { e.Rate = manifest.Rate{Per: 1} }), "/effects/tool.pay/rate/calls"},
		"a rate in no time":             {pay(func(e *manifest.Effect) { e.Rate = manifest.Rate{Calls: 1} }), "/effects/tool.pay/rate/per"},
		"a renewal of nothing":          {func(m *manifest.Manifest) { m.Budget = manifest.Budget{Per: 5} }, "/budget/per"},
		"max_cost in calls":             {pay(func(e *manifest.Effect) { e.MaxCost.Calls = 1 }), "/effects/tool.pay/max_cost/calls"},
		"max_cost beyond integers":      {pay(func(e *manifest.Effect) { e.MaxCost.Micros = new(uint64(1 << 63)) }), "/effects/tool.pay/max_cost/micros"},
		"cap budget beyond integers":    {capOf("web", func(c *manifest.Cap) { c.Budget.Calls = 1 << 63 }), "/caps/web/budget/calls"},
		"cell budget beyond integers":   {reducer(func(r *manifest.Reducer) { r.Budget.Tokens = 1 << 63 }), "/reducers/agent/budget/tokens"},
		"world budget beyond integers":  {func(m *manifest.Manifest) { m.Budget.Bytes = 1 << 63 }, "/budget/bytes"},
		"no approval_ttl":               {func(m *manifest.Manifest) { m.Defaults.ApprovalTTL = 0 }, "/defaults/approval_ttl"},
		"endless approval_ttl":          {func(m *manifest.Manifest) { m.Defaults.ApprovalTTL = 1 << 62 }, "/defaults/approval_ttl"},
		"snapshots all the time":        {func(m *manifest.Manifest) { m.Defaults.SnapshotEvery = 99 }, "/defaults/snapshot_every"},
		"snapshots never again":         {func(m *manifest.Manifest) { m.Defaults.SnapshotEvery = 1 << 62 }, "/defaults/snapshot_every"},
		"checkpoints all the time":      {func(m *manifest.Manifest) { m.Defaults.CheckpointEvery = 99 }, "/defaults/checkpoint_every"},
		"checkpoints never again":       {func(m *manifest.Manifest) { m.Defaults.CheckpointEvery = 1<<24 + 1 }, "/defaults/checkpoint_every"},
		"endless max_snapshots":         {func(m *manifest.Manifest) { m.Defaults.Retention.MaxSnapshots = 10_001 }, "/defaults/retention/max_snapshots"},
		"more approvals than approvers": {func(m *manifest.Manifest) { m.Governance.Approvals = 3 }, "/governance/approvals"},
		"two approvals of any keys":     {func(m *manifest.Manifest) { m.Governance = manifest.Governance{Approvals: 2} }, "/governance/approvals"},
		"four eyes of any keys":         {func(m *manifest.Manifest) { m.Governance = manifest.Governance{FourEyes: true} }, "/governance/four_eyes"},
		"four eyes of one approver": {func(m *manifest.Manifest) {
			m.Governance.Approvals, m.Governance.Approvers = 1, m.Governance.Approvers[:1]
		}, "/governance/four_eyes"},
		"too many approvers": {func(m *manifest.Manifest) {
			for i := range 99 {
				name := strconv.Itoa(i)
				m.Governance.Approvers = append(m.Governance.Approvers, manifest.Approver{Name: name, Key: publicKey(name)})
			}
		}, "/governance/approvers"},
		"nameless approver":      {func(m *manifest.Manifest) { m.Governance.Approvers[0].Name = "" }, "/governance/approvers/0/name"},
		"control in an approver": {func(m *manifest.Manifest) { m.Governance.Approvers[0].Name = "a\n" }, "/governance/approvers/0/name"},
		"approver twice":         {func(m *manifest.Manifest) { m.Governance.Approvers[1].Name = "alice" }, "/governance/approvers/1/name"},
		"approver without key":   {func(m *manifest.Manifest) { m.Governance.Approvers[0].Key = manifest.PublicKey{} }, "/governance/approvers/0/key"},
		"key of two approvers":   {func(m *manifest.Manifest) { m.Governance.Approvers[1].Key = publicKey("alice") }, "/governance/approvers/1/key"},
		"unknown scheme":         {params("web", func(p *manifest.CapParams) { p.Schemes[1] = "ftp" }), "/caps/web/params/schemes/1"},
		"URL for a host":         {params("web", func(p *manifest.CapParams) { p.Hosts[0] = "http://a.b" }), "/caps/web/params/hosts/0"},
		"empty host":             {params("web", func(p *manifest.CapParams) { p.Hosts[0] = "" }), "/caps/web/params/hosts/0"},
		"port 0":                 {params("web", func(p *manifest.CapParams) { p.Ports[0] = 0 }), "/caps/web/params/ports/0"},
		"port beyond 16 bits":    {params("web", func(p *manifest.CapParams) { p.Ports[1]++ }), "/caps/web/params/ports/1"},
		"lower-case method":      {params("web", func(p *manifest.CapParams) { p.Methods[0] = "get" }), "/caps/web/params/methods/0"},
		"relative path":          {params("web", func(p *manifest.CapParams) { p.Paths[0] = "a" }), "/caps/web/params/paths/0"},
		"control in a model":     {params("model", func(p *manifest.CapParams) { p.Models[0] = "a\x00" }), "/caps/model/params/models/0"},
		"control in a root":      {params("disk", func(p *manifest.CapParams) { p.Root = "a\n" }), "/caps/disk/params/root"},
		"unknown access":         {params("disk", func(p *manifest.CapParams) { p.Access[0] = "delete" }), "/caps/disk/params/access/0"},
		"long argument":          {params("shell", func(p *manifest.CapParams) { p.Args[0] = strings.Repeat("x", 4097) }), "/caps/shell/params/args/0"},
		"too many hosts": {params("web", func(p *manifest.CapParams) {
			p.Hosts = slices.Repeat([]string{"a"}, 10_001)
		}), "/caps/web/params/hosts"},
		"star inside a kind":       {capKinds("to*ls"), "/caps/tools/params/kinds/0"},
		"star without a dot":       {capKinds("tool*"), "/caps/tools/params/kinds/0"},
		"empty kind":               {capKinds(""), "/caps/tools/params/kinds/0"},
		"nameless policy":          {func(m *manifest.Manifest) { m.Policies[0].Name = "" }, "/policies/0/name"},
		"policy name twice":        {func(m *manifest.Manifest) { m.Policies = append(m.Policies, m.Policies[0]) }, "/policies/1/name"},
		"blank when":               {func(m *manifest.Manifest) { m.Policies[0].When = " " }, "/policies/0/when"},
		"unknown decision":         {func(m *manifest.Manifest) { m.Policies[0].Decide = "maybe" }, "/policies/0/decide"},
		"route without reducer":    {func(m *manifest.Manifest) { m.Routing[0].Reducer = "x" }, "/routing/0/reducer"},
		"route without event":      {func(m *manifest.Manifest) { m.Routing[1].Event = "order.*" }, "/routing/1/event"},
		"route with bad event":     {func(m *manifest.Manifest) { m.Routing[1].Event = "t*" }, "/routing/1/event"},
		"route to each, and a key": {func(m *manifest.Manifest) { m.Routing[0].Each = true }, "/routing/0/key"},
		"route in an order":        {func(m *manifest.Manifest) { m.Routing[0].Order = "random" }, "/routing/0/order"},
		"route in no order": {func(m *manifest.Manifest) {
			m.Routing[0].Each, m.Routing[0].Key, m.Routing[0].Order = true, "", "age"
		}, "/routing/0/order"},
		"route with bad key": {func(m *manifest.Manifest) { m.Routing[0].Key = "event.data" }, "/routing/0/key"},
		"zero limit":         {func(m *manifest.Manifest) { m.Limits.Mailbox = 0 }, "/limits/mailbox"},
		"huge limit":         {func(m *manifest.Manifest) { m.Limits.InFlight = 1 << 40 }, "/limits/in_flight"},
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

func TestCapsHaveOnlyTheParamsOfTheirType(t *testing.T) {
	full := manifest.CapParams{
		Kinds: []string{"*"}, Schemes: []string{"http"}, Hosts: []string{"a"}, Ports: []uint64{1}, Methods: []string{"GET"},
		Paths: []string{"/"}, Providers: []string{"a"}, Models: []string{"a"}, MaxTokens: 1, Servers: []string{"a"},
		Tools: []string{"a"}, Root: "a", Access: []string{"read"}, Programs: []string{"a"}, Args: []string{"a"}, MaxBytes: 1,
	}
	for capType, own := range map[string][]string{
		manifest.CapAny:  {"kinds"},
		manifest.CapHTTP: {"schemes", "hosts", "ports", "methods", "paths", "max_bytes"},
		manifest.CapLLM:  {"providers", "models", "max_tokens", "tools"},
		manifest.CapMCP:  {"servers", "tools"},
		manifest.CapFile: {"root", "access", "max_bytes"},
		manifest.CapExec: {"programs", "args"},
	} {
		m := good()
		m.Caps["tools"] = manifest.Cap{Type: capType, Params: full}
		left := []string{
			"kinds", "schemes", "hosts", "ports", "methods", "paths", "providers", "models", "max_tokens", "servers",
			"tools", "root", "access", "programs", "args", "max_bytes",
		}
		left = slices.DeleteFunc(left, func(name string) bool { return slices.Contains(own, name) })
		var got []string
		for _, f := range m.Validate() {
			name := strings.TrimPrefix(f.Path, "/caps/tools/params/")
			require.Contains(t, f.Msg, name)
			got = append(got, name)
		}
		require.Equal(t, left, got, capType)
	}
}

func TestOnlyWhatIsIdempotentUnderOneKeyIsRetriedInDoubt(t *testing.T) {
	for _, c := range []struct {
		effect manifest.Effect
		want   string
	}{
		{manifest.Effect{}, manifest.InDoubtAsk},
		{manifest.Effect{Idempotent: true}, manifest.InDoubtRetry},
		{manifest.Effect{Idempotent: true, ExternalKey: manifest.ExternalPerAttempt}, manifest.InDoubtAsk},
		{manifest.Effect{Idempotent: true, OnInDoubt: manifest.InDoubtFail}, manifest.InDoubtFail},
	} {
		m := manifest.Manifest{Effects: map[string]manifest.Effect{"x": c.effect}}.WithDefaults()
		require.Equal(t, c.want, m.Effects["x"].OnInDoubt)
	}
}

func TestManifestsFromBeforeAKeyAreInForce(t *testing.T) {
	m := good()
	pay := m.Effects["tool.pay"]
	pay.OnRepeat = ""
	m.Effects["tool.pay"], m.Defaults.Retention = pay, manifest.Retention{}
	require.Empty(t, m.Validate())
	filled := m.WithDefaults()
	require.Equal(t, manifest.RepeatAsk, filled.Effects["tool.pay"].OnRepeat)
	require.Equal(t, uint64(manifest.DefaultMaxSnapshots), filled.Defaults.Retention.MaxSnapshots)
}

func TestContentsOfVerifiersAreContents(t *testing.T) {
	require.Contains(t, good().Contents(), canon.Sum([]byte("x")))
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

func TestEffectsCannotMakeUpForEachOther(t *testing.T) {
	m := good()
	up := func(kind, by string) {
		e := m.Effects["tool.pay"]
		e.Compensate = &manifest.Compensate{Kind: by, Params: "null"}
		m.Effects[kind] = e
	}
	up("a", "b")
	up("b", "c")
	up("c", "d")
	up("d", "b")
	var got []string
	for _, f := range m.Validate() {
		got = append(got, f.Path+": "+f.Msg)
	}
	const circle = "these effects make up for each other in a circle: "
	require.Equal(t, []string{
		"/effects/b/compensate/kind: " + circle + "b, c, d",
	}, got, "it is told once")
}

// TestALongChainOfCompensationsIsFollowedOnce: from each of its effects to the end it would take days.
func TestALongChainOfCompensationsIsFollowedOnce(t *testing.T) {
	m := good()
	name := func(i int) string { return fmt.Sprintf("up%04d", i) }
	const all = 9000
	for i := range all {
		m.Effects[name(i)] = manifest.Effect{Adapter: "exec", Config: m.Effects["mail.send"].Config, Compensate: &manifest.Compensate{Kind: name(i + 1), Params: "{}"}}
	}
	m.Effects[name(all)] = manifest.Effect{Adapter: "exec", Config: m.Effects["mail.send"].Config}
	with := m.WithDefaults()
	require.Empty(t, with.Validate())
}

// A manifest of some megabytes can have a million faults, and each names what there is.
func TestNoMoreFaultsAreToldThanSomebodyReads(t *testing.T) {
	m := good()
	r := m.Reducers["agent"]
	for i := range 1000 {
		r.Grants = append(r.Grants, fmt.Sprint("none", i))
	}
	m.Reducers["agent"] = r
	require.Len(t, m.Validate(), 100)
}
