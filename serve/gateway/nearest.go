package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/show/view"
)

// nearest finds, among the recorded calls whose answers are left, the one that has the most in
// common with a request from its beginning on, and where they differ first.
func (g *Gateway) nearest(r *relay.Asked, d *Divergence) {
	g.mu.Lock()
	var left []asked
	for key, past := range g.past { // order cannot show: sorted below
		given := 0
		for _, a := range g.now[key] {
			if a.served {
				given++
			}
		}
		left = append(left, past[min(given, len(past)):]...)
	}
	g.mu.Unlock()
	slices.SortFunc(left, func(a, b asked) int { return bytes.Compare(a.key.Hash[:], b.key.Hash[:]) })
	most := -1
	for _, of := range left {
		body := g.bodyOf(of)
		if n := common(body, r.Body); n > most {
			most = n
			d.Nearest, d.Place = view.Short(of.key), difference(decoded(body), decoded(r.Body), "$")
		}
	}
}

// bodyOf returns the recorded request of an intent; nil: it cannot be read.
func (g *Gateway) bodyOf(of asked) []byte {
	e := g.entry(of.key)
	var request recorder.Request
	if g.paramsOf(&e, &request) != nil {
		return nil
	}
	return request.Body
}

// common returns how many bytes two requests have in common from their beginning on.
func common(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func decoded(body []byte) (v any) {
	_ = json.Unmarshal(body, &v)
	return v
}

// difference returns the path of the first place at which two values differ; empty: there is none.
func difference(a, b any, path string) string {
	switch was := a.(type) {
	case map[string]any:
		is, ok := b.(map[string]any)
		if !ok {
			return path
		}
		names := slices.Sorted(maps.Keys(was))
		for _, name := range slices.Compact(slices.Sorted(slices.Values(append(names, slices.Collect(maps.Keys(is))...)))) {
			if at := difference(was[name], is[name], path+"."+name); at != "" {
				return at
			}
		}
	case []any:
		is, ok := b.([]any)
		if !ok {
			return path
		}
		for i := range max(len(was), len(is)) {
			if i >= len(was) || i >= len(is) {
				return fmt.Sprintf("%s[%d]", path, i)
			}
			if at := difference(was[i], is[i], fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
	default:
		if !reflect.DeepEqual(a, b) {
			return path
		}
	}
	return ""
}
