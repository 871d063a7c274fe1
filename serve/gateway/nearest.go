package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/show/view"
)

// nearest finds, among the recorded calls whose answers are left, the one that has the most in
// common with a request from its beginning on, and where they differ first.
func (g *Gateway) nearest(r *relay.Asked, d *Divergence) {
	g.mu.Lock()
	left := g.models.left()
	g.mu.Unlock()
	slices.SortFunc(left, func(a, b *asking) int { return bytes.Compare(a.key.Hash[:], b.key.Hash[:]) })
	most := -1
	for _, of := range left {
		body := paramsOf[recorder.Request](g, of.key).Body
		if n := common(body, r.Body); n > most {
			most = n
			d.Nearest, d.Place = view.Short(of.key), strings.Join(Differences(body, r.Body, 1), "")
		}
	}
}

// common returns how many bytes two requests have in common from their beginning on.
func common(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Differences returns the paths of the places at which two JSON texts differ, in order: the first most of them.
func Differences(a, b []byte, most int) (paths []string) {
	var was, is any
	_ = json.Unmarshal(a, &was)
	_ = json.Unmarshal(b, &is)
	differ(was, is, "$", func(path string) bool {
		paths = append(paths, path)
		return len(paths) < most
	})
	return paths
}

// differ calls found with the path of each place at which two values differ, until that returns false; then it does, too.
func differ(a, b any, path string, found func(path string) bool) bool {
	switch was := a.(type) {
	case map[string]any:
		is, ok := b.(map[string]any)
		if !ok {
			return found(path)
		}
		both := maps.Clone(was)
		maps.Copy(both, is)
		for _, name := range slices.Sorted(maps.Keys(both)) {
			if !differ(was[name], is[name], path+"."+name, found) {
				return false
			}
		}
	case []any:
		is, ok := b.([]any)
		if !ok {
			return found(path)
		}
		for i := range max(len(was), len(is)) {
			at := fmt.Sprintf("%s[%d]", path, i)
			if i >= len(was) || i >= len(is) {
				return found(at) // and so does the rest
			}
			if !differ(was[i], is[i], at, found) {
				return false
			}
		}
	default:
		return reflect.DeepEqual(a, b) || found(path)
	}
	return true
}
