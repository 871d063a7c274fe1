package governance

import (
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/manifest"
)

// grant is a capability in the hands of a reducer.
type grant struct {
	name string
	manifest.Cap
}

// grantsOf resolves the names of a reducer's grants. A name that the manifest
// does not define is a capability that covers nothing.
func grantsOf(m *manifest.Manifest, names []string) []grant {
	out := make([]grant, len(names))
	for i, name := range names {
		out[i] = grant{name: name, Cap: m.Caps[name]}
	}
	return out
}

func (g *grant) covers(kind string) bool {
	if g.Type != manifest.CapAny {
		return false
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
	grants := g.grants[req.Cell.Reducer]
	if len(grants) == 0 {
		return nil, Decision{
			Code: CodeNoGrant, Cap: req.Cap,
			Reason: fmt.Sprintf("reducer %q holds no capability", req.Cell.Reducer),
		}
	}
	candidates := grants
	if req.Cap != "" {
		i := slices.IndexFunc(grants, func(h grant) bool { return h.name == req.Cap })
		if i < 0 {
			return nil, Decision{
				Code: CodeUnknownCap, Cap: req.Cap,
				Reason: fmt.Sprintf("reducer %q is not granted capability %q", req.Cell.Reducer, req.Cap),
			}
		}
		candidates = grants[i : i+1]
	}
	var expired *grant
	for i := range candidates {
		h := &candidates[i]
		switch {
		case !h.covers(req.Kind):
		case !h.expired(req.Time):
			return h, Decision{}
		case expired == nil:
			expired = h
		}
	}
	if expired != nil {
		return nil, Decision{
			Code: CodeExpired, Cap: expired.name,
			Reason: fmt.Sprintf("capability %q expired at tick %d, it is tick %d", expired.name, expired.Expires, req.Time),
		}
	}
	return nil, notCovered(req, candidates)
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
