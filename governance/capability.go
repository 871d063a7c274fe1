package governance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// grant is a capability in the hands of a reducer.
type grant struct {
	name string
	manifest.Cap
	parse parser // of the targets that its type bounds; nil: of type any, or of none
}

// grantsByReducer returns what the reducers of a manifest hold, by their names, and the operator, who
// holds every capability. The name of a grant that the manifest does not define
// is a capability that covers nothing.
func grantsByReducer(m *manifest.Manifest) map[string][]grant {
	grantsOf := func(names []string) []grant {
		out := make([]grant, len(names))
		for i, name := range names {
			out[i] = grantOf(m, name)
		}
		return out
	}
	out := make(map[string][]grant, len(m.Reducers)+1)
	for name, r := range m.Reducers { // order cannot show: a map is built from a map
		out[name] = grantsOf(r.Grants)
	}
	out[reducer.Operator] = grantsOf(slices.Sorted(maps.Keys(m.Caps)))
	return out
}

// fits reports whether a capability is one for a kind of effect. What another
// type than any bounds within the kind shows only in the target.
func (g *grant) fits(kind, adapter string) bool {
	if g.Type != manifest.CapAny {
		return g.parse != nil && (g.Type == adapter || g.Type == manifest.CapLLM && adapter == manifest.AdapterRelay ||
			g.Type == manifest.CapMCP && adapter == manifest.AdapterOutside)
	}
	for _, pattern := range g.Params.Kinds {
		if manifest.Match(pattern, kind) {
			return true
		}
	}
	return false
}

func (g *grant) expired(now manifest.Tick) bool { return g.Expires != 0 && now >= g.Expires }

// capability finds the grant that an effect may use, or says with the code of
// a Decision why there is none.
func (g *Gate) capability(req *Request) (*grant, Decision) {
	candidates, denied := candidatesOf(req, g.grants[req.Cell.Reducer])
	if denied.Code != "" {
		return nil, denied
	}
	effect := g.effect(req.Kind)
	var touched touched
	var expired *grant
	for i := range candidates {
		c := &candidates[i]
		switch {
		case !c.fits(req.Kind, effect.Adapter):
		case c.expired(req.Time):
			expired = cmp.Or(expired, c)
		default:
			exceeded := touched.exceeds(c, effect, req.Params)
			if exceeded == nil {
				return c, Decision{}
			}
			denied = Decision{Code: exceeded.Code, Cap: c.name, Reason: exceeded.Reason}
		}
	}
	switch {
	case denied.Code != "":
		return nil, denied
	case expired != nil:
		return nil, Decision{
			Code: CodeExpired, Cap: expired.name,
			Reason: fmt.Sprintf("capability %q expired at tick %d, it is tick %d", expired.name, expired.Expires, req.Time),
		}
	default:
		return nil, notCovered(req, candidates)
	}
}

// candidatesOf returns the grants that a request may use.
func candidatesOf(req *Request, held []grant) ([]grant, Decision) {
	if len(held) == 0 {
		return nil, Decision{
			Code: CodeNoGrant, Cap: req.Cap,
			Reason: fmt.Sprintf("reducer %q holds no capability", req.Cell.Reducer),
		}
	}
	if req.Cap == "" {
		if req.Cell.Reducer == reducer.Operator {
			return nil, Decision{Code: CodeUnknownCap, Reason: "an operator's effect must name the capability that it uses"}
		}
		return held, Decision{}
	}
	i := slices.IndexFunc(held, func(c grant) bool { return c.name == req.Cap })
	if i < 0 {
		return nil, Decision{
			Code: CodeUnknownCap, Cap: req.Cap,
			Reason: fmt.Sprintf("reducer %q is not granted capability %q", req.Cell.Reducer, req.Cap),
		}
	}
	return held[i : i+1], Decision{}
}

func notCovered(req *Request, candidates []grant) Decision {
	names := make([]string, len(candidates))
	for i, h := range candidates {
		names[i] = h.name
	}
	d := Decision{
		Code:   CodeKindNotAllowed,
		Reason: fmt.Sprintf("effect kind %q is not covered by capability %s", req.Kind, quoted(names)),
	}
	if len(names) == 1 {
		d.Cap = names[0]
	}
	return d
}
