package gateway

import (
	"bytes"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/internal/canon"
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

// Differences returns the JSON pointers of the places at which two JSON texts differ, in canonical order: the first most of them.
func Differences(a, b []byte, most int) (paths []string) {
	was, _ := canon.FromJSON(a) // of no JSON there is nothing
	is, _ := canon.FromJSON(b)
	for _, c := range canon.Changes(was, is) {
		paths = append(paths, c.Path)
	}
	return paths[:min(len(paths), most)]
}
