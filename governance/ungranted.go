package governance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// Gap is why nobody may ask for a kind of effect.
type Gap struct{ Kind, Msg string }

// Ungranted returns the kinds of effects that no reducer is granted, whatever the params:
// no capability fits them, those that fit are granted to nobody, or all of these leave out
// what the effect's config fixes: its model, server, program, request or directory.
func Ungranted(m *manifest.Manifest) []Gap {
	granted := make(map[string]bool)
	for _, r := range m.Reducers { // order cannot show: a set
		for _, name := range r.Grants {
			granted[name] = true
		}
	}
	var caps []grant
	for _, name := range slices.Sorted(maps.Keys(m.Caps)) {
		caps = append(caps, grantOf(m, name))
	}
	var out []Gap
	left := mostPairs
	for _, kind := range slices.Sorted(maps.Keys(m.Effects)) {
		e := m.Effects[kind]
		why := deniedBy(caps, granted, kind, &e, &left)
		if left < 0 {
			break
		}
		if why != "" {
			out = append(out, Gap{kind, why})
		}
	}
	return out
}

// mostPairs is how many pairs of an effect and a capability are looked at: a manifest of 4 MiB has 10^8.
// What is found is a warning, and those of the first do.
const mostPairs = 1 << 21

func grantOf(m *manifest.Manifest, name string) grant {
	return grant{name: name, Cap: m.Caps[name], parse: adapterOf(m.Caps[name].Type).parse}
}

// deniedBy says why no capability that is granted holds an effect; "": one does.
func deniedBy(caps []grant, granted map[string]bool, kind string, e *manifest.Effect, left *int) string {
	why := "no capability fits it: whoever asks is denied"
	for i := range caps {
		if *left--; *left < 0 {
			break
		}
		g := &caps[i]
		if !g.fits(kind, e.Adapter) {
			continue
		}
		if !granted[g.name] {
			why = fmt.Sprintf("capability %q fits it, and no reducer is granted it", g.name)
		} else if exceeded := fixedBound(e, &g.Params, g.Type); exceeded != nil {
			why = fmt.Sprintf("capability %q does not: %s", g.name, exceeded.Reason)
		} else {
			return ""
		}
	}
	return why
}

// fixedBound returns the bound that an effect exceeds by its config alone; nil: none.
func fixedBound(e *manifest.Effect, p *manifest.CapParams, capType string) *CapError {
	if e.Adapter == manifest.AdapterRelay || e.Adapter == manifest.AdapterOutside {
		return nil // the call says where it goes
	}
	if fixed := adapterOf(capType).fixed; fixed != nil {
		return fixed(e.Config, p)
	}
	return nil
}

// leave takes a method and a path that a capability allows, where config leaves them to params.
func (t *HTTPTarget) leave(p *manifest.CapParams, config canon.Raw) {
	if c, err := parseHTTPConfig(config); err == nil && c.Method == "" && len(p.Methods) > 0 {
		t.Method = p.Methods[0]
	}
	for _, prefix := range p.Paths {
		if within(t.base, prefix) {
			t.URL.Path = prefix
		}
	}
}

// Unmeasured returns the kinds of effects that are denied where a budget counts a unit of
// which they do not say what an attempt costs at most.
func Unmeasured(m *manifest.Manifest) []Gap {
	grants, budgets := granted(m)
	var out []Gap
	left := mostPairs
	for _, kind := range slices.Sorted(maps.Keys(m.Effects)) {
		if left -= len(grants); left < 0 {
			break
		}
		e := m.Effects[kind]
		of := []budgetOf{{m.Budget, "the world"}}
		for i := range grants {
			if grants[i].fits(kind, e.Adapter) {
				of = append(of, budgets[i])
			}
		}
		for u := range unitCount { // of calls each effect says it
			i := slices.IndexFunc(of, func(b budgetOf) bool { bounds := amounts(&b.Budget); return *u.Of(&bounds) != 0 })
			if _, says := most(&e, nil, u); i >= 0 && !says && canUse(e.Adapter, u) {
				out = append(out, Gap{kind, fmt.Sprintf("the budget of %s counts %s, and max_cost does not say how many an attempt takes: it is denied", of[i].of, u)})
			}
		}
	}
	return out
}

// granted returns what reducers are granted that has a budget, and that of each: the capability's, the
// reducer's.
func granted(m *manifest.Manifest) (grants []grant, budgets []budgetOf) {
	for _, name := range slices.Sorted(maps.Keys(m.Reducers)) {
		r := m.Reducers[name]
		for _, held := range r.Grants {
			g := grantOf(m, held)
			for _, b := range []budgetOf{{g.Budget, fmt.Sprintf("capability %q", held)}, {r.Budget, "reducer " + name}} {
				if b.Tokens != 0 || b.Bytes != 0 || b.Micros != 0 {
					grants, budgets = append(grants, g), append(budgets, b)
				}
			}
		}
	}
	return grants, budgets
}

// budgetOf is a budget, and of what it is.
type budgetOf struct {
	manifest.Budget
	of string
}
