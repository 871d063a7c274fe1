package api_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
)

// quoting is what lists of receipts and of decisions have of an item.
type quoting struct {
	Cell     string `json:"cell"`
	Kind     string `json:"kind"`
	Status   string `json:"status"`
	Decision string `json:"decision"`
}

// TestReceiptsAndDecisionsAreThoseOfWhoAsked, of a kind, and that came out so, in pages
// that are full.
func TestReceiptsAndDecisionsAreThoseOfWhoAsked(t *testing.T) {
	s := lived(t)
	s.post("/api/worlds/w/events", act("b", map[string]any{"effect": "tool.a", "param": "y"}))
	ok[view.Course](s.post("/api/worlds/w/step", map[string]any{"ticks": 2}))
	for list, word := range map[string]func(quoting) string{
		"receipts": func(q quoting) string { return q.Status }, "decisions": func(q quoting) string { return q.Decision },
	} {
		name := map[string]string{"receipts": "status", "decisions": "decision"}[list]
		read := func(query url.Values) (all []quoting) {
			for next := "/api/worlds/w/" + list + "?" + query.Encode(); next != ""; {
				page := ok[map[string]any](s.get(next))
				items := ok[map[string][]quoting](only(s.get(next), list))[list]
				if page["next"] != nil && query.Has("limit") {
					require.Len(t, items, 1, "what is left out does not count")
				}
				all = append(all, items...)
				next, _ = page["next"].(string)
			}
			return all
		}
		every := read(url.Values{})
		require.Greater(t, len(every), 3, list)
		for _, like := range every {
			for _, c := range []struct {
				query url.Values
				fits  func(quoting) bool
			}{
				{url.Values{"cell": {like.Cell}}, func(q quoting) bool { return q.Cell == like.Cell }},
				{url.Values{"cell": {"bot/*"}}, func(quoting) bool { return true }},
				{url.Values{"cell": {"cat/*"}}, func(quoting) bool { return false }},
				{url.Values{"kind": {like.Kind}}, func(q quoting) bool { return q.Kind == like.Kind }},
				{url.Values{name: {word(like)}}, func(q quoting) bool { return word(q) == word(like) }},
				{url.Values{"kind": {like.Kind}, "cell": {like.Cell}, "limit": {"1"}}, func(q quoting) bool { return q.Kind == like.Kind && q.Cell == like.Cell }},
			} {
				var want []quoting
				for _, q := range every {
					if c.fits(q) {
						want = append(want, q)
					}
				}
				require.Equal(t, want, read(c.query), "%s %v", list, c.query)
			}
		}
	}
	s.get("/api/worlds/w/receipts?status=fine").problem(http.StatusBadRequest, "malformed")
	s.get("/api/worlds/w/decisions?cell=x").problem(http.StatusBadRequest, "malformed")
}

func TestCheckpointsAreThoseThatTheWorldHasSigned(t *testing.T) {
	w := create(t, "w")
	s := serve(t, api.Config{Worlds: wrap(w)})
	require.Empty(t, ok[listed](s.get("/api/worlds/w/checkpoints")).Checkpoints)
	var want []view.Checkpoint
	for range 3 {
		ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
		signed, err := w.Checkpoint()
		require.NoError(t, err)
		want = append(want, view.CheckpointOf(signed))
	}
	var got []view.Checkpoint
	for next := "/api/worlds/w/checkpoints?limit=2"; next != ""; {
		page := ok[listed](s.get(next))
		got, next = append(got, page.Checkpoints...), linkOf(page.Next)
	}
	require.Equal(t, want, got)
}
