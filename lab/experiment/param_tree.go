package experiment

import (
	"fmt"
	"maps"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// paramsOf returns the params of a reducer, as canon.Decode has them.
func paramsOf(r *manifest.Reducer) (map[string]any, error) {
	if len(r.Params) == 0 {
		return map[string]any{}, nil
	}
	tree, err := canon.Decode(r.Params)
	if err != nil {
		return nil, err
	}
	params, _ := tree.(map[string]any)
	return params, nil
}

func lookUp(tree map[string]any, path []string) (any, bool) {
	v, ok := tree[path[0]]
	if len(path) == 1 || !ok {
		return v, ok
	}
	below, _ := v.(map[string]any)
	return lookUp(below, path[1:])
}

// setParam returns m with a param set, which it declares.
func setParam(m *manifest.Manifest, name string, value any) (*manifest.Manifest, error) {
	reducer, path, _ := splitParam(name)
	next := *m
	next.Reducers = maps.Clone(m.Reducers)
	r := next.Reducers[reducer]
	tree, err := paramsOf(&r)
	if err != nil {
		return nil, err
	}
	at := tree
	for _, name := range path[:len(path)-1] {
		at, _ = at[name].(map[string]any)
		if at == nil {
			return nil, fmt.Errorf("%s: world.yaml declares no such param", name)
		}
	}
	at[path[len(path)-1]] = value
	if r.Params, err = canon.Marshal(tree); err != nil {
		return nil, err
	}
	next.Reducers[reducer] = r
	return &next, nil
}
