package manifest_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/manifest"
)

func TestMergeTakesWhatDoesNotMeet(t *testing.T) {
	for name, c := range map[string]struct {
		patches []string
		edit    func(*manifest.Manifest)
	}{
		"no patch":        {nil, func(*manifest.Manifest) {}},
		"two fields":      {[]string{`[{"op":"set","path":"/seed","value":1}]`, `[{"op":"set","path":"/clock/epoch","value":2}]`}, func(m *manifest.Manifest) { m.Seed, m.Clock.Epoch = 1, 2 }},
		"equal ops":       {[]string{`[{"op":"remove","path":"/policies/0"}]`, `[{"op":"remove","path":"/policies/0"},{"op":"set","path":"/seed","value":1}]`}, func(m *manifest.Manifest) { m.Policies, m.Seed = nil, 1 }},
		"items of a list": {[]string{`[{"op":"set","path":"/routing/0/key","value":"'x'"}]`, `[{"op":"set","path":"/routing/1/key","value":"'y'"}]`}, func(m *manifest.Manifest) { m.Routing[0].Key, m.Routing[1].Key = "'x'", "'y'" }},
		"an item and one more": {[]string{`[{"op":"set","path":"/reducers/agent/grants/0","value":"web"}]`, `[{"op":"set","path":"/reducers/agent/grants/-","value":"disk"}]`}, func(m *manifest.Manifest) {
			r := m.Reducers["agent"]
			r.Grants = []string{"web", "disk"}
			m.Reducers["agent"] = r
		}},
		"one item more, asked for twice": {[]string{`[{"op":"set","path":"/reducers/agent/grants/-","value":"web"}]`, `[{"op":"set","path":"/reducers/agent/grants/-","value":"web"}]`}, func(m *manifest.Manifest) {
			r := m.Reducers["agent"]
			r.Grants = []string{"tools", "web"}
			m.Reducers["agent"] = r
		}},
		"what only the later op of a patch says": {[]string{`[{"op":"set","path":"/seed","value":1},{"op":"set","path":"/seed","value":2}]`, `[{"op":"set","path":"/seed","value":2}]`}, func(m *manifest.Manifest) { m.Seed = 2 }},
		"what needs both to be valid":            {[]string{`[{"op":"set","path":"/reducers/agent/grants","value":["new"]}]`, `[{"op":"set","path":"/caps/new","value":{"type":"any","params":{}}}]`}, func(m *manifest.Manifest) { grantNew(m) }},
		"names with / and ~":                     {[]string{`[{"op":"set","path":"/effects/tool.lookup/config/a~1b","value":1}]`, `[{"op":"set","path":"/effects/tool.lookup/config/a","value":2}]`}, func(m *manifest.Manifest) { configure(t, m, `{"cassette":"c","a/b":1,"a":2}`) }},
	} {
		t.Run(name, func(t *testing.T) {
			base, want := good(), good()
			c.edit(want)
			for range 2 {
				got, conflicts, err := manifest.Merge(base, patches(t, c.patches...))
				require.NoError(t, err)
				require.Empty(t, conflicts)
				require.Equal(t, hashOf(t, want), hashOf(t, got))
				require.Equal(t, good(), base)
				slices.Reverse(c.patches)
			}
		})
	}
}

func grantNew(m *manifest.Manifest) {
	r := m.Reducers["agent"]
	r.Grants = []string{"new"}
	m.Reducers["agent"] = r
	m.Caps["new"] = manifest.Cap{Type: manifest.CapAny}
}

func configure(t require.TestingT, m *manifest.Manifest, config string) {
	e := m.Effects["tool.lookup"]
	e.Config = fromJSON(t, config)
	m.Effects["tool.lookup"] = e
}

func patches(t require.TestingT, ops ...string) []manifest.Patch {
	out := make([]manifest.Patch, len(ops))
	for i := range ops {
		out[i] = *patch(t, ops[i])
	}
	return out
}

func TestMergeReportsWhatMeets(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want []string
	}{
		"other values":                        {`{"op":"set","path":"/seed","value":1}`, `{"op":"set","path":"/seed","value":2}`, []string{"/seed same_path error"}},
		"a value and none":                    {`{"op":"remove","path":"/caps/web"}`, `{"op":"set","path":"/caps/web","value":{"type":"any","params":{}}}`, []string{"/caps/web same_path error"}},
		"a change below what is removed":      {`{"op":"remove","path":"/caps/web"}`, `{"op":"set","path":"/caps/web/expires","value":7}`, []string{"/caps/web prefix_overlap warning"}},
		"a change below what is set":          {`{"op":"set","path":"/caps/web","value":{"type":"any","params":{}}}`, `{"op":"set","path":"/caps/web/expires","value":7}`, []string{"/caps/web prefix_overlap error"}},
		"the same change below what is set":   {`{"op":"set","path":"/caps/web","value":{"type":"any","params":{},"expires":7}}`, `{"op":"set","path":"/caps/web/expires","value":7}`, []string{"/caps/web prefix_overlap warning"}},
		"the same removal below what is set":  {`{"op":"set","path":"/caps/tools","value":{"type":"any","params":{}}}`, `{"op":"remove","path":"/caps/tools/expires"}`, []string{"/caps/tools prefix_overlap warning"}},
		"another removal below what is set":   {`{"op":"set","path":"/caps/tools","value":{"type":"any","params":{},"expires":7}}`, `{"op":"remove","path":"/caps/tools/expires"}`, []string{"/caps/tools prefix_overlap error"}},
		"the whole":                           {`{"op":"set","path":"","value":{}}`, `{"op":"set","path":"/seed","value":2}`, []string{" prefix_overlap error"}},
		"two items more":                      {`{"op":"set","path":"/routing/-","value":1}`, `{"op":"set","path":"/routing/-","value":2}`, []string{"/routing/- same_path warning"}},
		"an item more, and the list":          {`{"op":"set","path":"/routing/-","value":1}`, `{"op":"set","path":"/routing","value":[]}`, []string{"/routing prefix_overlap error"}},
		"an item, and the list":               {`{"op":"set","path":"/routing/1/key","value":"'x'"}`, `{"op":"set","path":"/routing","value":[]}`, []string{"/routing prefix_overlap error"}},
		"two items less":                      {`{"op":"remove","path":"/routing/0"}`, `{"op":"remove","path":"/routing/1"}`, []string{"/routing same_path warning"}},
		"an item less, and the list":          {`{"op":"remove","path":"/routing/0"}`, `{"op":"set","path":"/routing","value":[]}`, []string{"/routing same_path warning"}},
		"an item less, and one that moves":    {`{"op":"remove","path":"/routing/0"}`, `{"op":"set","path":"/routing/1/key","value":"'x'"}`, []string{"/routing prefix_overlap warning"}},
		"an item more, and one before it":     {`{"op":"set","path":"/routing/-","value":1},{"op":"set","path":"/routing/2","value":3}`, `{"op":"set","path":"/routing/-","value":1}`, []string{"/routing/- same_path warning"}},
		"an item more, and one more of it":    {`{"op":"set","path":"/routing/-","value":1},{"op":"set","path":"/routing/-","value":1}`, `{"op":"set","path":"/routing/-","value":1}`, []string{"/routing/- same_path warning"}},
		"an order":                            {`{"op":"set","path":"/seed","value":1},{"op":"set","path":"/seed","value":2}`, `{"op":"set","path":"/seed","value":2},{"op":"set","path":"/seed","value":1}`, []string{"/seed same_path error"}},
		"one more op below equal ones":        {`{"op":"set","path":"/clock","value":{"epoch":1,"tick":1}},{"op":"set","path":"/clock/tick","value":2}`, `{"op":"set","path":"/clock","value":{"epoch":1,"tick":1}}`, []string{"/clock prefix_overlap error"}},
		"each thing once, though others meet": {`{"op":"set","path":"/seed","value":1},{"op":"remove","path":"/caps/web"},{"op":"remove","path":"/caps/disk"}`, `{"op":"set","path":"/seed","value":2},{"op":"remove","path":"/caps/disk"},{"op":"set","path":"/caps/web/expires","value":1}`, []string{"/caps/web prefix_overlap warning", "/seed same_path error"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := patches(t, "["+c.a+"]", "["+c.b+"]")
			for range 2 {
				m, conflicts, err := manifest.Merge(good(), all)
				require.NoError(t, err)
				require.Nil(t, m)
				var got []string
				for _, x := range conflicts {
					require.Equal(t, []int{0, 1}, x.Patches)
					require.Len(t, x.Ops, 2)
					for i, op := range x.Ops {
						require.Contains(t, all[i].Ops, op)
					}
					got = append(got, fmt.Sprintf("%s %s %s", x.Path, x.Kind, x.Severity))
				}
				require.Equal(t, c.want, got)
				slices.Reverse(all)
			}
		})
	}
}

func TestMergeSaysWhichOfMany(t *testing.T) {
	all := patches(t, `[{"op":"set","path":"/seed","value":1}]`, `[{"op":"set","path":"/clock/tick","value":1}]`, `[{"op":"set","path":"/seed","value":2}]`, `[{"op":"set","path":"/seed","value":1}]`)
	_, conflicts, err := manifest.Merge(good(), all)
	require.NoError(t, err)
	require.Equal(t, []manifest.Conflict{
		{Path: "/seed", Kind: manifest.ConflictSamePath, Patches: []int{0, 2}, Ops: []manifest.Op{all[0].Ops[0], all[2].Ops[0]}, Severity: manifest.SeverityError},
		{Path: "/seed", Kind: manifest.ConflictSamePath, Patches: []int{2, 3}, Ops: []manifest.Op{all[2].Ops[0], all[3].Ops[0]}, Severity: manifest.SeverityError},
	}, conflicts)
}

func TestMergedVersionIsTheOneThatAllWant(t *testing.T) {
	all := patches(t, `[]`, `[{"op":"set","path":"/seed","value":1}]`, `[]`)
	two, three := uint64(2), uint64(3)
	all[0].NewVersion, all[1].NewVersion = &two, &two
	m, conflicts, err := manifest.Merge(good(), all)
	require.NoError(t, err)
	require.Empty(t, conflicts)
	require.Equal(t, two, m.Version)

	all[2].NewVersion = &three
	_, conflicts, err = manifest.Merge(good(), all)
	require.NoError(t, err)
	require.Len(t, conflicts, 2)
	for _, c := range conflicts {
		require.Equal(t, "/version same_path error", c.Path+" "+c.Kind+" "+c.Severity)
	}
}

func TestMergeSaysWhichPatchLeadsNowhere(t *testing.T) {
	other := patches(t, `[]`, `[]`)
	other[1].Base = manifest.Hash{}
	for name, c := range map[string]struct {
		patches []manifest.Patch
		want    error
	}{
		"another base": {other, manifest.ErrOtherBase},
		"no path":      {patches(t, `[]`, `[{"op":"remove","path":"/caps/x"}]`), manifest.ErrNoPath},
		"what only the other makes": {
			patches(t, `[{"op":"set","path":"/caps/x","value":{"type":"any","params":{}}}]`, `[{"op":"set","path":"/caps/x/expires","value":1}]`), manifest.ErrNoPath,
		},
		"no patch": {[]manifest.Patch{other[0], {Base: other[0].Base, Ops: []manifest.Op{{Op: "add", Path: "/seed"}}}}, manifest.ErrBadPatch},
	} {
		_, conflicts, err := manifest.Merge(good(), c.patches)
		require.ErrorIs(t, err, c.want, name)
		require.Empty(t, conflicts, name)
		var at *manifest.PatchError
		require.ErrorAs(t, err, &at, name)
		require.Equal(t, 1, at.Patch, name)
	}
}

func TestMergedManifestMustBeValid(t *testing.T) {
	all := patches(t, `[{"op":"set","path":"/reducers/agent/grants","value":["web"]}]`, `[{"op":"remove","path":"/caps/web"}]`)
	for _, p := range all {
		_, err := p.Apply(good())
		require.NoError(t, err)
	}
	_, _, err := manifest.Merge(good(), all)
	var faults *manifest.FaultsError
	require.ErrorAs(t, err, &faults)

	_, _, err = manifest.Merge(good(), patches(t, `[{"op":"remove","path":"/limits"}]`))
	require.ErrorIs(t, err, manifest.ErrBadValue)
	_, _, err = manifest.Merge(good(), make([]manifest.Patch, manifest.MaxMergePatches+1))
	require.Error(t, err)
}

// mergeBase returns a manifest with a config that has maps and lists in one
// another.
func mergeBase(t require.TestingT) *manifest.Manifest {
	m := good()
	configure(t, m, `{"a":{"b":{"c":1},"d":[1,[2,3],{"e":4}]},"f":null,"-":{"0":0}}`)
	return m
}

const inConfig = "/effects/tool.lookup/config"

// somePath leads to what mergeBase has in its config, and to new places.
func somePath() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"/a", "/a/b", "/a/b/c", "/a/d", "/a/d/0", "/a/d/1", "/a/d/1/0", "/a/d/1/1", "/a/d/1/-", "/a/d/2", "/a/d/2/e", "/a/d/-",
		"/f", "/-", "/-/0", "/n", "/a/n", "/a/d/2/n", "/a/d/3", "/a/d/3/e", "/n/b",
	})
}

func someOp(t *rapid.T) manifest.Op {
	path := inConfig + somePath().Draw(t, "path")
	if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
		return manifest.Op{Op: manifest.OpRemove, Path: path}
	}
	value := rapid.SampledFrom([]string{"1", "2", "null", `{"e":4}`, `{"b":{"c":1}}`, `{"b":{"c":2},"d":[5,[2,3]]}`, "[1,[2,9]]", "[]"}).Draw(t, "value")
	return manifest.Op{Op: manifest.OpSet, Path: path, Value: fromJSON(t, value)}
}

// somePatch draws ops that base takes, each that keep takes too.
func somePatch(t *rapid.T, base *manifest.Manifest, keep func([]manifest.Op, manifest.Op) bool) manifest.Patch {
	p := manifest.Patch{Base: hashOf(t, base), Ops: []manifest.Op{}}
	for range rapid.IntRange(1, 5).Draw(t, "ops") {
		longer := p
		op := someOp(t)
		longer.Ops = append(slices.Clone(p.Ops), op)
		if _, err := longer.Apply(base); err == nil && keep(p.Ops, op) {
			p = longer
		}
	}
	return p
}

func anyOp([]manifest.Op, manifest.Op) bool { return true }

func overlap(a, b string) bool {
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

// apart keeps the ops of a patch from meeting one another, lists from moving, and
// patches off what they have appended themselves.
func apart(ops []manifest.Op, op manifest.Op) bool {
	_, err := strconv.Atoi(op.Path[strings.LastIndexByte(op.Path, '/')+1:])
	item := err == nil && strings.HasPrefix(op.Path, inConfig+"/a/d/")
	if op.Op == manifest.OpRemove && item || strings.HasPrefix(op.Path, inConfig+"/a/d/3") {
		return false
	}
	return !slices.ContainsFunc(ops, func(o manifest.Op) bool { return overlap(o.Path, op.Path) })
}

func TestMergeReportsEveryPairThatMeets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := mergeBase(t)
		all := make([]manifest.Patch, rapid.IntRange(1, 3).Draw(t, "patches"))
		for i := range all {
			all[i] = somePatch(t, base, apart)
		}
		want := []manifest.Conflict{}
		for j := range all {
			for i := range j {
				for _, a := range all[i].Ops {
					for _, b := range all[j].Ops {
						if c, ok := modelConflict(t, base, a, b); ok {
							c.Patches = []int{i, j}
							want = append(want, c)
						}
					}
				}
			}
		}
		m, got, err := manifest.Merge(base, all)
		require.NoError(t, err)
		require.Equal(t, len(want) > 0, m == nil)
		require.True(t, slices.IsSortedFunc(got, func(a, b manifest.Conflict) int { return strings.Compare(a.Path, b.Path) }))
		require.ElementsMatch(t, want, got)
	})
}

// modelConflict says what Merge should about two ops, whatever else there is.
func modelConflict(t require.TestingT, base *manifest.Manifest, a, b manifest.Op) (manifest.Conflict, bool) {
	if !overlap(a.Path, b.Path) || a.Op == b.Op && a.Path == b.Path && string(a.Value) == string(b.Value) {
		return manifest.Conflict{}, false
	}
	c := manifest.Conflict{Path: a.Path, Kind: manifest.ConflictSamePath, Ops: []manifest.Op{a, b}, Severity: manifest.SeverityError}
	if a.Path == b.Path {
		if strings.HasSuffix(a.Path, "/d/-") || strings.HasSuffix(a.Path, "/1/-") {
			c.Severity = manifest.SeverityWarning
		}
		return c, true
	}
	upper, lower := a, b
	if len(b.Path) < len(a.Path) {
		upper, lower = b, a
	}
	c.Path, c.Kind = upper.Path, manifest.ConflictPrefixOverlap
	p := manifest.Patch{Base: hashOf(t, base), Ops: []manifest.Op{upper}}
	one, err := p.Apply(base)
	require.NoError(t, err)
	p.Ops = append(p.Ops, lower)
	both, err := p.Apply(base)
	same := err == nil && hashOf(t, one) == hashOf(t, both) || err != nil && lower.Op == manifest.OpRemove
	if same || upper.Op == manifest.OpRemove {
		c.Severity = manifest.SeverityWarning
	}
	return c, true
}

func TestMergeKnowsNoOrder(t *testing.T) {
	merged := 0
	rapid.Check(t, func(t *rapid.T) {
		base := mergeBase(t)
		all := make([]manifest.Patch, rapid.IntRange(1, 4).Draw(t, "patches"))
		for i := range all {
			all[i] = somePatch(t, base, anyOp)
		}
		order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order")
		order = slices.DeleteFunc(order, func(i int) bool { return i >= len(all) })
		var other []manifest.Patch
		for _, i := range order {
			other = append(other, all[i])
		}
		a, conflicts, err := manifest.Merge(base, all)
		require.NoError(t, err)
		b, others, err := manifest.Merge(base, other)
		require.NoError(t, err)
		require.ElementsMatch(t, conflicts, renumbered(others, order))
		if len(conflicts) > 0 {
			require.Nil(t, a)
			return
		}
		require.Equal(t, hashOf(t, a), hashOf(t, b))
		if len(all) > 1 {
			merged++
		}
		oneAfterTheOther(t, base, all, a)
	})
	require.Positive(t, merged)
}

// renumbered returns conflicts of patches in another order with the indexes that
// the patches had before.
func renumbered(conflicts []manifest.Conflict, order []int) []manifest.Conflict {
	var out []manifest.Conflict
	for _, c := range conflicts {
		i, j := order[c.Patches[0]], order[c.Patches[1]]
		ops := slices.Clone(c.Ops)
		if i > j {
			i, j = j, i
			slices.Reverse(ops)
		}
		c.Patches, c.Ops = []int{i, j}, ops
		out = append(out, c)
	}
	return out
}

// oneAfterTheOther requires that patches, each made for what those before it have
// made, come to want, if no two have an op in common.
func oneAfterTheOther(t *rapid.T, base *manifest.Manifest, all []manifest.Patch, want *manifest.Manifest) {
	seen := make(map[string]int)
	m := base
	for i, p := range all {
		for _, op := range p.Ops {
			key := op.Op + " " + op.Path + " " + string(op.Value)
			if by, ok := seen[key]; ok && by != i {
				return
			}
			seen[key] = i
		}
		p.Base = hashOf(t, m)
		var err error
		m, err = p.Apply(m)
		require.NoError(t, err)
	}
	require.Equal(t, hashOf(t, want), hashOf(t, m))
}

func TestEqualPatchesNeverConflict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := mergeBase(t)
		p := somePatch(t, base, anyOp)
		want, err := p.Apply(base)
		require.NoError(t, err)
		for n := range 3 {
			got, conflicts, err := manifest.Merge(base, slices.Repeat([]manifest.Patch{p}, n+1))
			require.NoError(t, err)
			require.Empty(t, conflicts)
			require.Equal(t, hashOf(t, want), hashOf(t, got))
		}
	})
}

func TestMergeOfOneDiffIsTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := twoValid(t)
		p, err := manifest.Diff(a, b)
		require.NoError(t, err)
		none := manifest.Patch{Base: p.Base}
		got, conflicts, err := manifest.Merge(a, []manifest.Patch{none, p})
		require.NoError(t, err)
		require.Empty(t, conflicts)
		require.Equal(t, hashOf(t, b), hashOf(t, got))
	})
}
