package manifest_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func TestChangesAreWeighed(t *testing.T) {
	reducer := func(m *manifest.Manifest, edit func(*manifest.Reducer)) {
		r := m.Reducers["agent"]
		edit(&r)
		m.Reducers["agent"] = r
	}
	effect := func(m *manifest.Manifest, edit func(*manifest.Effect)) {
		e := m.Effects["tool.pay"]
		edit(&e)
		m.Effects["tool.pay"] = e
	}
	capability := func(m *manifest.Manifest, name string, edit func(*manifest.Cap)) {
		c := m.Caps[name]
		edit(&c)
		m.Caps[name] = c
	}
	for name, c := range map[string]struct {
		edit        func(*manifest.Manifest)
		there, back string // of the edit, and of what undoes it
	}{
		"a grant": {func(m *manifest.Manifest) {
			reducer(m, func(r *manifest.Reducer) { r.Grants = []string{"tools", "web"} })
		}, "gains /reducers/agent/grants", "loses /reducers/agent/grants"},
		"the order of grants": {func(m *manifest.Manifest) {
			reducer(m, func(r *manifest.Reducer) { r.Grants = []string{"tools", "tools"} })
		}, "neutral /reducers/agent/grants", "neutral /reducers/agent/grants"},
		"code": {func(m *manifest.Manifest) {
			reducer(m, func(r *manifest.Reducer) { r.Source = canon.Sum([]byte("x")) })
		}, "neutral /reducers/agent/source", "neutral /reducers/agent/source"},
		"on_error":               {func(m *manifest.Manifest) { reducer(m, func(r *manifest.Reducer) { r.OnError = "skip" }) }, "gains /reducers/agent/on_error", "loses /reducers/agent/on_error"},
		"a cell's budget":        {func(m *manifest.Manifest) { reducer(m, func(r *manifest.Reducer) { r.Budget.Calls = 1 }) }, "loses /reducers/agent/budget/calls", "gains /reducers/agent/budget/calls"},
		"a reducer's limit":      {func(m *manifest.Manifest) { reducer(m, func(r *manifest.Reducer) { r.Limits.Effects++ }) }, "gains /reducers/agent/limits/effects", "loses /reducers/agent/limits/effects"},
		"a reducer":              {func(m *manifest.Manifest) { m.Reducers["x"] = m.Reducers["clerk"] }, "neutral /reducers/x", "neutral /reducers/x"},
		"a reducer with a grant": {func(m *manifest.Manifest) { m.Reducers["x"] = m.Reducers["agent"] }, "gains /reducers/x/grants neutral /reducers/x", "loses /reducers/x/grants neutral /reducers/x"},
		"the engine of policies": {func(m *manifest.Manifest) { m.Engines = manifest.Engines{"cel": "cel/9"} }, "gains /engines/cel", "gains /engines/cel"},
		"the engine of reducers": {func(m *manifest.Manifest) { m.Engines = manifest.Engines{"starlark": "starlark/9"} }, "neutral /engines/starlark", "neutral /engines/starlark"},
		"an event":               {func(m *manifest.Manifest) { m.Events["x"] = manifest.Event{} }, "neutral /events/x", "neutral /events/x"},
		"an effect":              {func(m *manifest.Manifest) { m.Effects["x/y"] = m.Effects["tool.pay"] }, "gains /effects/x~1y", "loses /effects/x~1y"},
		"an adapter":             {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.Adapter = "exec" }) }, "gains /effects/tool.pay/adapter", "gains /effects/tool.pay/adapter"},
		"a config":               {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.Config = data("a0") }) }, "gains /effects/tool.pay/config", "gains /effects/tool.pay/config"},
		"idempotent":             {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.Idempotent = false }) }, "loses /effects/tool.pay/idempotent", "gains /effects/tool.pay/idempotent"},
		"one key":                {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.ExternalKey = "" }) }, "loses /effects/tool.pay/external_key", "gains /effects/tool.pay/external_key"},
		"attempts":               {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.Retry.Attempts = 6 }) }, "gains /effects/tool.pay/retry/attempts", "loses /effects/tool.pay/retry/attempts"},
		"in doubt, a person":     {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.OnInDoubt = "ask" }) }, "loses /effects/tool.pay/on_in_doubt", "gains /effects/tool.pay/on_in_doubt"},
		"in doubt, failed":       {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.OnInDoubt = "fail" }) }, "neutral /effects/tool.pay/on_in_doubt", "neutral /effects/tool.pay/on_in_doubt"},
		"settles sooner":         {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.SettlesAfter = 1 }) }, "gains /effects/tool.pay/settles_after", "loses /effects/tool.pay/settles_after"},
		"repeated":               {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.OnRepeat = "run" }) }, "gains /effects/tool.pay/on_repeat", "loses /effects/tool.pay/on_repeat"},
		"no verifier":            {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.Verify = nil }) }, "gains /effects/tool.pay/verify", "loses /effects/tool.pay/verify"},
		"no compensation":        {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.Compensate = nil }) }, "loses /effects/tool.pay/compensate", "gains /effects/tool.pay/compensate"},
		"a rate": {func(m *manifest.Manifest) {
			effect(m, func(e *manifest.Effect) { e.Rate = manifest.Rate{Calls: 3, Per: 5} })
		}, "loses /effects/tool.pay/rate", "gains /effects/tool.pay/rate"},
		"a budget that renews": {func(m *manifest.Manifest) { m.Budget.Per = 9 }, "gains /budget/per", "loses /budget/per"},
		"cost":                 {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.MaxCost.Bytes = nil }) }, "gains /effects/tool.pay/max_cost", "gains /effects/tool.pay/max_cost"},
		"class":                {func(m *manifest.Manifest) { effect(m, func(e *manifest.Effect) { e.Class = "" }) }, "gains /effects/tool.pay/class", "gains /effects/tool.pay/class"},
		"a capability":         {func(m *manifest.Manifest) { m.Caps["x"] = m.Caps["web"] }, "gains /caps/x gains /caps/x/params/schemes gains /caps/x/params/hosts gains /caps/x/params/ports gains /caps/x/params/methods gains /caps/x/params/paths", "loses /caps/x"},
		"a kind": {func(m *manifest.Manifest) {
			capability(m, "tools", func(c *manifest.Cap) { c.Params.Kinds = []string{"*"} })
		}, "gains /caps/tools/params/kinds", "loses /caps/tools/params/kinds"},
		"a kind that is there": {func(m *manifest.Manifest) {
			capability(m, "tools", func(c *manifest.Cap) { c.Params.Kinds = []string{"tool.*", "tool.pay"} })
		}, "neutral /caps/tools/params/kinds", "neutral /caps/tools/params/kinds"},
		"a host of its own": {func(m *manifest.Manifest) {
			capability(m, "web", func(c *manifest.Cap) { c.Params.Hosts = append(c.Params.Hosts, "a.example.com") })
		}, "gains /caps/web/params/hosts", "loses /caps/web/params/hosts"},
		"a port": {func(m *manifest.Manifest) {
			capability(m, "web", func(c *manifest.Cap) { c.Params.Ports = []uint64{1} })
		}, "loses /caps/web/params/ports", "gains /caps/web/params/ports"},
		"a path": {func(m *manifest.Manifest) {
			capability(m, "web", func(c *manifest.Cap) { c.Params.Paths = []string{"/a b"} })
		}, "loses /caps/web/params/paths", "gains /caps/web/params/paths"},
		"other hosts": {func(m *manifest.Manifest) {
			capability(m, "web", func(c *manifest.Cap) { c.Params.Hosts = []string{"x"} })
		}, "gains /caps/web/params/hosts loses /caps/web/params/hosts", "gains /caps/web/params/hosts loses /caps/web/params/hosts"},
		"bytes":         {func(m *manifest.Manifest) { capability(m, "web", func(c *manifest.Cap) { c.Params.MaxBytes = 0 }) }, "gains /caps/web/params/max_bytes", "loses /caps/web/params/max_bytes"},
		"tokens":        {func(m *manifest.Manifest) { capability(m, "model", func(c *manifest.Cap) { c.Params.MaxTokens = 2 }) }, "gains /caps/model/params/max_tokens", "loses /caps/model/params/max_tokens"},
		"a deeper root": {func(m *manifest.Manifest) { capability(m, "disk", func(c *manifest.Cap) { c.Params.Root = "data/x" }) }, "loses /caps/disk/params/root", "gains /caps/disk/params/root"},
		"a root with a longer name": {func(m *manifest.Manifest) {
			capability(m, "disk", func(c *manifest.Cap) { c.Params.Root = "database" })
		}, "gains /caps/disk/params/root", "gains /caps/disk/params/root"},
		"a root beside": {func(m *manifest.Manifest) {
			capability(m, "disk", func(c *manifest.Cap) { c.Params.Root = "data/../x" })
		}, "gains /caps/disk/params/root", "gains /caps/disk/params/root"},
		"an argument":     {func(m *manifest.Manifest) { capability(m, "shell", func(c *manifest.Cap) { c.Params.Args = nil }) }, "loses /caps/shell/params/args", "gains /caps/shell/params/args"},
		"a budget's end":  {func(m *manifest.Manifest) { capability(m, "tools", func(c *manifest.Cap) { c.Budget.Tokens = 0 }) }, "gains /caps/tools/budget/tokens", "loses /caps/tools/budget/tokens"},
		"no end":          {func(m *manifest.Manifest) { capability(m, "tools", func(c *manifest.Cap) { c.Expires = 0 }) }, "gains /caps/tools/expires", "loses /caps/tools/expires"},
		"an earlier end":  {func(m *manifest.Manifest) { capability(m, "tools", func(c *manifest.Cap) { c.Expires = 7 }) }, "loses /caps/tools/expires", "gains /caps/tools/expires"},
		"an allow":        {func(m *manifest.Manifest) { m.Policies = append(m.Policies, policy("x", "allow")) }, "gains /policies/1", "loses /policies/1"},
		"a deny":          {func(m *manifest.Manifest) { m.Policies = append(m.Policies, policy("x", "deny")) }, "loses /policies/1", "gains /policies/1"},
		"an approval":     {func(m *manifest.Manifest) { m.Policies = append(m.Policies, policy("x", "require_approval")) }, "loses /policies/1", "gains /policies/1"},
		"a decision":      {func(m *manifest.Manifest) { m.Policies[0].Decide = "require_approval" }, "loses /policies/0/decide", "gains /policies/0/decide"},
		"an expression":   {func(m *manifest.Manifest) { m.Policies[0].When = "false" }, "gains /policies/0/when", "gains /policies/0/when"},
		"a route":         {func(m *manifest.Manifest) { m.Routing = m.Routing[1:] }, "neutral /routing/0", "neutral /routing/0"},
		"a route to each": {func(m *manifest.Manifest) { m.Routing[0].Each, m.Routing[0].Key = true, "" }, "neutral /routing/0 neutral /routing/0", "neutral /routing/0 neutral /routing/0"},
		"order of routes": {func(m *manifest.Manifest) { slices.Reverse(m.Routing) }, "neutral /routing", "neutral /routing"},
		"the world":       {func(m *manifest.Manifest) { m.Budget.Calls++ }, "gains /budget/calls", "loses /budget/calls"},
		"a limit":         {func(m *manifest.Manifest) { m.Limits.InFlight-- }, "loses /limits/in_flight", "gains /limits/in_flight"},
		"a default":       {func(m *manifest.Manifest) { m.Defaults.SnapshotEvery++ }, "neutral /defaults/snapshot_every", "neutral /defaults/snapshot_every"},
		"signed checkpoints": {
			func(m *manifest.Manifest) { m.Defaults.CheckpointEvery = 1000 },
			"neutral /defaults/checkpoint_every", "neutral /defaults/checkpoint_every",
		},
		"fewer approvals": {func(m *manifest.Manifest) { m.Governance.Approvals = 1 }, "gains /governance/approvals", "loses /governance/approvals"},
		"two eyes":        {func(m *manifest.Manifest) { m.Governance.FourEyes = false }, "gains /governance/four_eyes", "loses /governance/four_eyes"},
		"an approver": {func(m *manifest.Manifest) {
			m.Governance.Approvers = append(m.Governance.Approvers, manifest.Approver{Name: "carol", Key: publicKey("carol")})
		}, "gains /governance/approvers/2", "loses /governance/approvers/2"},
		"an approver's name": {
			func(m *manifest.Manifest) { m.Governance.Approvers[1].Name = "carol" },
			"gains /governance/approvers/1 loses /governance/approvers/1", "gains /governance/approvers/1 loses /governance/approvers/1",
		},
		"an approver's key":  {func(m *manifest.Manifest) { m.Governance.Approvers[0].Key = publicKey("x") }, "gains /governance/approvers/0/key", "gains /governance/approvers/0/key"},
		"an approver's file": {func(m *manifest.Manifest) { m.Governance.Approvers[0].File = "x" }, "neutral /governance/approvers/0/file", "neutral /governance/approvers/0/file"},
		"order of approvers": {func(m *manifest.Manifest) { slices.Reverse(m.Governance.Approvers) }, "neutral /governance/approvers", "neutral /governance/approvers"},
		"any approver": {
			func(m *manifest.Manifest) { m.Governance = manifest.Governance{} },
			"gains /governance/approvals gains /governance/four_eyes gains /governance/approvers",
			"loses /governance/approvals loses /governance/four_eyes loses /governance/approvers",
		},
		"what gains first": {func(m *manifest.Manifest) { m.Seed, m.Budget.Calls, m.Limits.InFlight = 1, 0, 1 }, "gains /budget/calls loses /limits/in_flight neutral /seed", "gains /limits/in_flight loses /budget/calls neutral /seed"},
	} {
		t.Run(name, func(t *testing.T) {
			edited := good()
			c.edit(edited)
			require.Equal(t, c.there, weights(manifest.Changes(good(), edited, unknown)))
			require.Equal(t, c.back, weights(manifest.Changes(edited, good(), unknown)))
		})
	}
}

func TestRatesAreWeighedByWhatTheyAllow(t *testing.T) {
	weigh := func(was, is manifest.Rate) string {
		a, b := good(), good()
		of := func(m *manifest.Manifest, r manifest.Rate) {
			e := m.Effects["tool.pay"]
			e.Rate = r
			m.Effects["tool.pay"] = e
		}
		of(a, was)
		of(b, is)
		return weights(manifest.Changes(a, b, unknown))
	}
	rate := manifest.Rate{Calls: 3, Per: 5}
	require.Empty(t, weigh(rate, rate))
	for _, more := range []manifest.Rate{{Calls: 4, Per: 5}, {Calls: 3, Per: 4}, {Calls: 1 << 32, Per: 1 << 32}} {
		require.Equal(t, "gains /effects/tool.pay/rate", weigh(rate, more))
		require.Equal(t, "loses /effects/tool.pay/rate", weigh(more, rate))
	}
}

// unknown is an answer about expressions: nobody can tell.
func unknown(string, string) int { return 0 }

func TestAPolicyThatHoldsMoreOftenIsWeighedByItsDecision(t *testing.T) {
	for decide, want := range map[string]string{"allow": "gains", "deny": "loses", "require_approval": "loses"} {
		a, b := good(), good()
		a.Policies, b.Policies = []manifest.Policy{policy("a rule", decide)}, []manifest.Policy{policy("a rule", decide)}
		b.Policies[0].When = "false"
		wider := manifest.Changes(a, b, func(was, is string) int {
			require.Equal(t, []string{"true", "false"}, []string{was, is})
			return 1
		})
		require.Equal(t, want+" /policies/0/when", weights(wider))
		narrower := manifest.Changes(a, b, func(string, string) int { return -1 })
		require.NotEqual(t, wider[0].Risk, narrower[0].Risk)
	}
}

func policy(name, decide string) manifest.Policy {
	return manifest.Policy{Name: name, When: "true", Decide: decide}
}

func weights(changes []manifest.Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, string(c.Risk)+" "+c.Path)
	}
	return strings.Join(out, " ")
}

func TestChangesSayWhatDiffDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := twoValid(t)
		p, err := manifest.Diff(a, b)
		require.NoError(t, err)
		changes := manifest.Changes(a, b, unknown)
		for _, op := range p.Ops {
			require.True(t, slices.ContainsFunc(changes, func(c manifest.Change) bool {
				for _, list := range []string{"/policies", "/routing", "/governance/approvers"} { // whose items are not compared by their places
					if strings.HasPrefix(op.Path, list) {
						return strings.HasPrefix(c.Path, list)
					}
				}
				return overlap(c.Path, strings.Replace(op.Path, "/files", "/config", 1))
			}), "%s in %v", op.Path, changes)
		}
		require.Equal(t, len(p.Ops) > 0 || p.NewVersion != nil, len(changes) > 0)
		require.Empty(t, manifest.Changes(a, a, unknown))
	})
}

// TestChangesKnowEveryField sees fields that come later, which good uses: what
// gains rights must not go unseen.
func TestChangesKnowEveryField(t *testing.T) {
	encoded, err := good().Encode()
	require.NoError(t, err)
	tree, err := canon.Decode(encoded)
	require.NoError(t, err)
	var walk func(path string, v any, put func(any))
	walk = func(path string, v any, put func(any)) {
		var other any
		switch v := v.(type) {
		case map[string]any:
			for name, child := range v {
				walk(path+"/"+name, child, func(x any) { v[name] = x })
			}
			return
		case []any:
			for i, child := range v {
				walk(path+"/"+strconv.Itoa(i), child, func(x any) { v[i] = x })
			}
			return
		case string:
			other = v + "x"
		case int64:
			other = v + 1
		case bool:
			other = !v
		case []byte:
			other = append([]byte{v[0] + 1}, v[1:]...)
		}
		put(other)
		changed, err := canon.Marshal(tree)
		require.NoError(t, err)
		m, err := manifest.Decode(changed)
		if err == nil { // false may be absent, and is not written
			require.NotEmpty(t, manifest.Changes(good(), m, unknown), path)
		}
		put(v)
	}
	walk("", tree, nil)
}
