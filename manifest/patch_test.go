package manifest_test

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func hashOf(t require.TestingT, m *manifest.Manifest) manifest.Hash {
	b, err := m.Encode()
	require.NoError(t, err)
	return canon.Sum(b)
}

func fromJSON(t require.TestingT, text string) manifest.Data {
	d, err := canon.FromJSON([]byte(text))
	require.NoError(t, err)
	return d
}

// patch returns a patch of good from ops as people write them.
func patch(t require.TestingT, ops string) *manifest.Patch {
	p, err := manifest.ParsePatchJSON([]byte(`{"base_manifest_hash":"` + hashOf(t, good()).String() + `","ops":` + ops + `}`))
	require.NoError(t, err)
	return p
}

func TestOpsChangeWhatTheyName(t *testing.T) {
	hash := canon.Sum([]byte("new"))
	for name, c := range map[string]struct {
		ops  string
		edit func(*manifest.Manifest)
	}{
		"nothing":        {`[]`, func(*manifest.Manifest) {}},
		"a field":        {`[{"op":"set","path":"/seed","value":43}]`, func(m *manifest.Manifest) { m.Seed = 43 }},
		"a large number": {`[{"op":"set","path":"/seed","value":18446744073709551615}]`, func(m *manifest.Manifest) { m.Seed = 1<<64 - 1 }},
		"a hash": {`[{"op":"set","path":"/events/ticket.opened/schema","value":"` + hash.String() + `"}]`, func(m *manifest.Manifest) {
			m.Events["ticket.opened"] = manifest.Event{File: "ticket.json", Schema: hash}
		}},
		"hashes below": {`[{"op":"set","path":"/events","value":{"ticket.x":{"file":"x","schema":"` + hash.String() + `"}}}]`, func(m *manifest.Manifest) {
			m.Events = map[string]manifest.Event{"ticket.x": {File: "x", Schema: hash}}
		}},
		"a key": {`[{"op":"set","path":"/governance/approvers/1/key","value":"` + publicKey("x").String() + `"}]`, func(m *manifest.Manifest) {
			m.Governance.Approvers[1].Key = publicKey("x")
		}},
		"who can change the rules": {`[{"op":"set","path":"/governance","value":{"approvals":0,"approvers":[{"name":"x","key":"` + publicKey("x").String() + `"}]}}]`, func(m *manifest.Manifest) {
			m.Governance = manifest.Governance{Approvers: []manifest.Approver{{Name: "x", Key: publicKey("x")}}}
		}},
		"whoever can change the rules": {`[{"op":"set","path":"/governance","value":{"approvals":0,"four_eyes":false,"approvers":[]}}]`, func(m *manifest.Manifest) {
			m.Governance = manifest.Governance{}
		}},
		"a new entry": {`[{"op":"set","path":"/events/ticket.lost","value":{}}]`, func(m *manifest.Manifest) {
			m.Events["ticket.lost"] = manifest.Event{}
		}},
		"an entry less": {`[{"op":"remove","path":"/events/ticket.closed"}]`, func(m *manifest.Manifest) { delete(m.Events, "ticket.closed") }},
		"an item":       {`[{"op":"set","path":"/routing/1/key","value":"'x'"}]`, func(m *manifest.Manifest) { m.Routing[1].Key = "'x'" }},
		"an item more": {`[{"op":"set","path":"/routing/-","value":{"event":"*","reducer":"agent","key":"'x'"}}]`, func(m *manifest.Manifest) {
			m.Routing = append(m.Routing, manifest.Route{Event: "*", Reducer: "agent", Key: "'x'"})
		}},
		"an item less":  {`[{"op":"remove","path":"/routing/0"}]`, func(m *manifest.Manifest) { m.Routing = m.Routing[1:] }},
		"the last item": {`[{"op":"remove","path":"/policies/0"}]`, func(m *manifest.Manifest) { m.Policies = nil }},
		"config": {`[{"op":"set","path":"/effects/tool.lookup/config/a~1b~0","value":{"":null}}]`, func(m *manifest.Manifest) {
			e := m.Effects["tool.lookup"]
			e.Config = fromJSON(t, `{"cassette":"c","a/b~":{"":null}}`)
			m.Effects["tool.lookup"] = e
		}},
		"what is empty is absent": {`[{"op":"set","path":"/effects/tool.pay/idempotent","value":false},
			{"op":"set","path":"/effects/tool.pay/verify/files","value":{}},
			{"op":"set","path":"/effects/tool.pay/max_cost","value":{}},
			{"op":"set","path":"/events/ticket.opened","value":{"file":"","schema":"` + manifest.Hash{}.String() + `"}}]`, func(m *manifest.Manifest) {
			e := m.Effects["tool.pay"]
			e.Idempotent, e.Verify.Files, e.MaxCost = false, nil, manifest.MaxCost{}
			m.Effects["tool.pay"], m.Events["ticket.opened"] = e, manifest.Event{}
		}},
		"an empty config stays": {`[{"op":"remove","path":"/effects/tool.lookup/config/cassette"}]`, func(m *manifest.Manifest) {
			e := m.Effects["tool.lookup"]
			e.Config = data("a0")
			m.Effects["tool.lookup"] = e
		}},
		"in order": {`[{"op":"remove","path":"/routing/0"},{"op":"set","path":"/routing/0/key","value":"'y'"},
			{"op":"set","path":"/seed","value":1},{"op":"set","path":"/seed","value":2}]`, func(m *manifest.Manifest) {
			m.Routing = m.Routing[1:]
			m.Routing[0].Key, m.Seed = "'y'", 2
		}},
	} {
		t.Run(name, func(t *testing.T) {
			base, want := good(), good()
			c.edit(want)
			require.Empty(t, want.Validate())
			got, err := patch(t, c.ops).Apply(base)
			require.NoError(t, err)
			require.Equal(t, hashOf(t, want), hashOf(t, got))
			require.Equal(t, good(), base)
		})
	}
}

func TestWholeManifestCanBeSet(t *testing.T) {
	want := good()
	want.World = "other"
	text, err := json.Marshal(want)
	require.NoError(t, err)
	got, err := patch(t, `[{"op":"set","path":"","value":`+string(text)+`}]`).Apply(good())
	require.NoError(t, err)
	require.Equal(t, hashOf(t, want), hashOf(t, got))
}

func TestNewVersionIsTheVersion(t *testing.T) {
	p := patch(t, `[{"op":"set","path":"/version","value":2}]`)
	version := uint64(1<<64 - 1)
	p.NewVersion = &version
	got, err := p.Apply(good())
	require.NoError(t, err)
	require.Equal(t, version, got.Version)
}

func TestApplyRefusesAnotherBase(t *testing.T) {
	base := good()
	base.Seed++
	_, err := patch(t, `[]`).Apply(base)
	require.ErrorIs(t, err, manifest.ErrOtherBase)
}

func TestApplyNamesWhereItCannot(t *testing.T) {
	for ops, c := range map[string]struct {
		want error
		path string
	}{
		`{"op":"remove","path":"/events/x"}`:                                             {manifest.ErrNoPath, "/events/x"},
		`{"op":"remove","path":"/effects/tool.lookup/verify"}`:                           {manifest.ErrNoPath, "/effects/tool.lookup/verify"},
		`{"op":"remove","path":"/policies/1"}`:                                           {manifest.ErrNoPath, "/policies/1"},
		`{"op":"remove","path":"/policies/-"}`:                                           {manifest.ErrNoPath, "/policies/-"},
		`{"op":"remove","path":"/policies/00"}`:                                          {manifest.ErrNoPath, "/policies/00"},
		`{"op":"remove","path":"/seed/x"}`:                                               {manifest.ErrNoPath, "/seed/x"},
		`{"op":"set","path":"/effects/x/timeout","value":1}`:                             {manifest.ErrNoPath, "/effects/x/timeout"},
		`{"op":"set","path":"/policies/1","value":{}}`:                                   {manifest.ErrNoPath, "/policies/1"},
		`{"op":"set","path":"/policies/+0/when","value":"x"}`:                            {manifest.ErrNoPath, "/policies/+0/when"},
		`{"op":"set","path":"/policies/-/when","value":"x"}`:                             {manifest.ErrNoPath, "/policies/-/when"},
		`{"op":"set","path":"/world/x","value":1}`:                                       {manifest.ErrNoPath, "/world/x"},
		`{"op":"set","path":"/colour","value":1}`:                                        {manifest.ErrBadValue, "/colour"},
		`{"op":"set","path":"/effects/tool.pay/retry/a~1b","value":1}`:                   {manifest.ErrBadValue, "/effects/tool.pay/retry/a~1b"},
		`{"op":"set","path":"/effects/tool.new","value":{"adapter":"x"}}`:                {manifest.ErrBadValue, "/effects/tool.new/timeout"},
		`{"op":"remove","path":"/limits/alarms"}`:                                        {manifest.ErrBadValue, "/limits/alarms"},
		`{"op":"set","path":"/seed","value":-1}`:                                         {manifest.ErrBadValue, "/seed"},
		`{"op":"set","path":"/seed","value":1.0}`:                                        {manifest.ErrBadValue, "/seed"},
		`{"op":"set","path":"/seed","value":18446744073709551616}`:                       {manifest.ErrBadValue, "/seed"},
		`{"op":"set","path":"/clock/epoch","value":9223372036854775808}`:                 {manifest.ErrBadValue, "/clock/epoch"},
		`{"op":"set","path":"/world","value":null}`:                                      {manifest.ErrBadValue, "/world"},
		`{"op":"set","path":"/effects/tool.pay/verify","value":null}`:                    {manifest.ErrBadValue, "/effects/tool.pay/verify"},
		`{"op":"set","path":"/effects/tool.pay/verify","value":{}}`:                      {manifest.ErrBadValue, "/effects/tool.pay/verify/adapter"},
		`{"op":"set","path":"/effects/tool.pay/idempotent","value":0}`:                   {manifest.ErrBadValue, "/effects/tool.pay/idempotent"},
		`{"op":"set","path":"/reducers/agent/grants/0","value":7}`:                       {manifest.ErrBadValue, "/reducers/agent/grants/0"},
		`{"op":"set","path":"/reducers/agent/grants","value":"tools"}`:                   {manifest.ErrBadValue, "/reducers/agent/grants"},
		`{"op":"set","path":"/reducers/agent/source","value":"abc"}`:                     {manifest.ErrBadValue, "/reducers/agent/source"},
		`{"op":"set","path":"/events","value":[]}`:                                       {manifest.ErrBadValue, "/events"},
		`{"op":"set","path":"","value":true}`:                                            {manifest.ErrBadValue, "true"},
		`{"op":"set","path":"/effects/tool.pay/verify/config","value":` + nested() + `}`: {manifest.ErrBadValue, "deep"},
	} {
		_, err := patch(t, "["+ops+"]").Apply(good())
		require.ErrorIs(t, err, c.want, ops)
		require.ErrorContains(t, err, c.path, ops)
	}
}

func TestPublicKeysHaveTheirLength(t *testing.T) {
	for _, value := range []string{"40", "43010203", "5821" + strings.Repeat("00", 33)} {
		p := patch(t, `[]`)
		p.Ops = append(p.Ops, manifest.Op{Op: manifest.OpSet, Path: "/governance/approvers/1/key", Value: data(value)})
		_, err := p.Apply(good())
		require.ErrorIs(t, err, manifest.ErrBadValue)
		require.ErrorContains(t, err, "/governance/approvers/1/key: want a public key")
	}
}

func TestHashesHaveTheirLength(t *testing.T) {
	for _, value := range []string{"40", "43010203", "5820" + strings.Repeat("00", 32)} {
		p := patch(t, `[]`)
		p.Ops = append(p.Ops, manifest.Op{Op: manifest.OpSet, Path: "/events/ticket.closed/schema", Value: data(value)})
		_, err := p.Apply(good())
		if len(value) == 2*(2+32) {
			require.NoError(t, err) // none, which is absent
		} else {
			require.ErrorIs(t, err, manifest.ErrBadValue)
		}
	}
}

// nested returns JSON that fits a patch and is too deep for a manifest.
func nested() string {
	return strings.Repeat("[", canon.MaxDepth-3) + strings.Repeat("]", canon.MaxDepth-3)
}

func TestApplyNamesAllFaultsOfWhatItMakes(t *testing.T) {
	_, err := patch(t, `[{"op":"remove","path":"/caps/tools"},{"op":"set","path":"/world","value":""}]`).Apply(good())
	var faults *manifest.FaultsError
	require.ErrorAs(t, err, &faults)
	var paths []string
	for _, f := range faults.Faults {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{"/world", "/reducers/agent/grants/0"}, paths)
	for _, path := range paths {
		require.Contains(t, err.Error(), path)
	}
}

func TestBadOpsAreNoPatch(t *testing.T) {
	one := data("01")
	for name, p := range map[string]manifest.Patch{
		"unknown op":           {Ops: []manifest.Op{{Op: "add", Path: "/seed", Value: one}}},
		"set without value":    {Ops: []manifest.Op{{Op: manifest.OpSet, Path: "/seed"}}},
		"remove with value":    {Ops: []manifest.Op{{Op: manifest.OpRemove, Path: "/seed", Value: one}}},
		"remove with no value": {Ops: []manifest.Op{{Op: manifest.OpRemove, Path: "/seed", Value: manifest.Data{}}}},
		"remove everything":    {Ops: []manifest.Op{{Op: manifest.OpRemove}}},
		"relative path":        {Ops: []manifest.Op{{Op: manifest.OpSet, Path: "seed", Value: one}}},
		"bad escape":           {Ops: []manifest.Op{{Op: manifest.OpSet, Path: "/a~2", Value: one}}},
		"open escape":          {Ops: []manifest.Op{{Op: manifest.OpSet, Path: "/a~", Value: one}}},
		"deep path":            {Ops: []manifest.Op{{Op: manifest.OpSet, Path: strings.Repeat("/a", canon.MaxDepth+1), Value: one}}},
		"path not UTF-8":       {Ops: []manifest.Op{{Op: manifest.OpSet, Path: "/\xff", Value: one}}},
		"value not canonical":  {Ops: []manifest.Op{{Op: manifest.OpSet, Path: "/seed", Value: data("1801")}}},
		"too many ops":         {Ops: slices.Repeat([]manifest.Op{{Op: manifest.OpSet, Path: "/seed", Value: one}}, manifest.MaxPatchOps+1)},
	} {
		_, err := p.Encode()
		require.ErrorIs(t, err, manifest.ErrBadPatch, name)
		p.Base = hashOf(t, good())
		_, err = p.Apply(good())
		require.Error(t, err, name)
	}
}

func TestParsePatchJSONRefusesWhatIsNoPatch(t *testing.T) {
	hash := hashOf(t, good()).String()
	for _, text := range []string{
		``, `[]`, `null`, `{}`, `{"ops":[]}`,
		`{"base_manifest_hash":"` + hash + `"}`,
		`{"base_manifest_hash":"` + hash + `","ops":null}`,
		`{"base_manifest_hash":"abc","ops":[]}`,
		`{"base_manifest_hash":"` + hash + `","ops":[],"colour":1}`,
		`{"base_manifest_hash":"` + hash + `","Ops":[],"ops":[]}`,
		`{"base_manifest_hash":"` + hash + `","ops":[],"ops":[]}`,
		`{"base_manifest_hash":"` + hash + `","ops":[],"new_version":-1}`,
		`{"base_manifest_hash":"` + hash + `","ops":[]} 1`,
		`{"base_manifest_hash":"` + hash + `","ops":[{"op":"remove","path":"/a","colour":1}]}`,
		`{"base_manifest_hash":"` + hash + `","ops":[{"op":"set","path":"/a"}]}`,
		`{"base_manifest_hash":"` + hash + `","ops":[{"op":"remove"}]}`,
	} {
		_, err := manifest.ParsePatchJSON([]byte(text))
		require.ErrorIs(t, err, manifest.ErrBadPatch, text)
	}
}

func TestPatchPrintsWithHashesInHex(t *testing.T) {
	a, b := good(), good()
	b.Events["ticket.closed"] = manifest.Event{Schema: canon.Sum(nil)}
	b.Version = 0
	p, err := manifest.Diff(a, b)
	require.NoError(t, err)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{"base_manifest_hash":"`+hashOf(t, a).String()+`","new_version":0,"ops":[
		{"op":"set","path":"/events/ticket.closed/schema","value":"`+canon.Sum(nil).String()+`"}]}`, string(text))

	text, err = json.Marshal(manifest.Patch{})
	require.NoError(t, err)
	_, err = manifest.ParsePatchJSON(text)
	require.NoError(t, err)
}

// roundTrips requires that p comes back from its bytes and from its JSON.
func roundTrips(t require.TestingT, p *manifest.Patch) {
	b, err := p.Encode()
	require.NoError(t, err)
	decoded, err := manifest.DecodePatch(b)
	require.NoError(t, err)
	require.Equal(t, p, decoded)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	parsed, err := manifest.ParsePatchJSON(text)
	require.NoError(t, err)
	require.Equal(t, p, parsed)
}

func TestNullIsAValue(t *testing.T) {
	roundTrips(t, patch(t, `[{"op":"set","path":"/effects/tool.pay/config/x","value":null}]`))
}

func FuzzDecodePatch(f *testing.F) {
	for _, ops := range []string{
		`[]`, `[{"op":"remove","path":"/policies/0"}]`, `[{"op":"set","path":"/a~1b/-","value":[null,{"a":-1.5}]}]`,
	} {
		b, err := patch(f, ops).Encode()
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := manifest.DecodePatch(data)
		if err != nil {
			return
		}
		again, err := p.Encode()
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(data), hex.EncodeToString(again))
		base := good()
		p.Base = hashOf(t, base)
		if made, err := p.Apply(base); err == nil {
			require.Empty(t, made.Validate())
		}
	})
}

func FuzzParsePatchJSON(f *testing.F) {
	hash := hashOf(f, good()).String()
	for _, ops := range []string{
		`[]`, `[{"op":"remove","path":"/policies/0"}]`, `[{"op":"set","path":"/reducers/agent/source","value":"` + hash + `"}]`,
	} {
		f.Add([]byte(`{"base_manifest_hash":"` + hash + `","ops":` + ops + `,"new_version":7}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := manifest.ParsePatchJSON(data)
		if err != nil {
			return
		}
		roundTrips(t, p)
	})
}

func TestApplyOfDiffIsTheIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := twoValid(t)
		p, err := manifest.Diff(a, b)
		require.NoError(t, err)
		made, err := p.Apply(a)
		require.NoError(t, err)
		require.Equal(t, hashOf(t, b), hashOf(t, made))
		require.Equal(t, a.Version != b.Version, p.NewVersion != nil)
		roundTrips(t, &p)
	})
}

func TestDiffOfEqualsIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyManifest(t)
		p, err := manifest.Diff(&m, &m)
		require.NoError(t, err)
		require.Equal(t, manifest.Patch{Base: hashOf(t, &m), Ops: []manifest.Op{}}, p)
	})
}

func TestDiffNeedsEachOfItsOps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := twoValid(t)
		p, err := manifest.Diff(a, b)
		require.NoError(t, err)
		require.True(t, slices.IsSortedFunc(p.Ops, func(a, b manifest.Op) int { return strings.Compare(a.Path, b.Path) }))
		for i := range p.Ops {
			require.NotEqual(t, "/version", p.Ops[i].Path)
			less := p
			less.Ops = slices.Delete(slices.Clone(p.Ops), i, i+1)
			if made, err := less.Apply(a); err == nil {
				require.NotEqual(t, hashOf(t, b), hashOf(t, made), "without %s", p.Ops[i].Path)
			}
			for _, other := range less.Ops {
				require.False(t, strings.HasPrefix(other.Path+"/", p.Ops[i].Path+"/"), "%s and %s", p.Ops[i].Path, other.Path)
			}
		}
	})
}

func TestDiffGoesAsDeepAsMapsGo(t *testing.T) {
	a, b := good(), good()
	b.Seed = 43
	b.Reducers["a-b"] = b.Reducers["clerk"]
	delete(b.Effects, "tool.pay")
	e := b.Effects["tool.lookup"]
	e.Config, e.Timeout = fromJSON(t, `{"cassette":"d","x/y":[1]}`), 7
	b.Effects["tool.lookup"] = e
	b.Policies = append(b.Policies, manifest.Policy{Name: "x", When: "true", Decide: manifest.DecideDeny})
	b.Routing[1].Key = "'x'"
	b.Budget = manifest.Budget{}
	p, err := manifest.Diff(a, b)
	require.NoError(t, err)
	var got []string
	for _, op := range p.Ops {
		got = append(got, op.Op+" "+op.Path)
	}
	require.Equal(t, []string{
		"remove /budget",
		"set /effects/tool.lookup/config/cassette",
		"set /effects/tool.lookup/config/x~1y",
		"set /effects/tool.lookup/timeout",
		"remove /effects/tool.pay",
		"set /policies",
		"set /reducers/a-b",
		"set /routing/1",
		"set /seed",
	}, got)
}

func TestDiffHasNoMoreOpsThanAPatch(t *testing.T) {
	values := make(map[string]bool)
	for i := range manifest.MaxPatchOps + 1 {
		values[strconv.Itoa(i)] = true
	}
	config, err := canon.Marshal(values)
	require.NoError(t, err)
	a, b := good(), good()
	e := b.Effects["tool.lookup"]
	e.Config = config
	b.Effects["tool.lookup"] = e
	_, err = manifest.Diff(a, b)
	require.ErrorIs(t, err, manifest.ErrBadPatch)
}

func TestDiffRefusesWhatHasNoBytes(t *testing.T) {
	bad := good()
	bad.World = "\xff"
	_, err := manifest.Diff(good(), bad)
	require.Error(t, err)
	_, err = manifest.Diff(bad, good())
	require.Error(t, err)
}
