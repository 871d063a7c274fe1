package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/snapshot"
)

// TestRangesAreThoseOfTheCommandLine asks for parts of the journal by moments.
func TestRangesAreThoseOfTheCommandLine(t *testing.T) {
	s := lived(t)
	ok[snapshot.Snapshot](s.post("/api/worlds/w/snapshots", map[string]any{"name": "here"}))
	s.post("/api/worlds/w/events", act("a"))
	type list struct {
		Records []struct {
			ID   journal.Seq   `json:"id"`
			Time manifest.Tick `json:"time"`
		} `json:"records"`
		Next *string `json:"next"`
	}
	whole := ok[list](s.get("/api/worlds/w/records")).Records
	head := whole[len(whole)-1].ID
	for query, wanted := range map[string]func(id journal.Seq, at manifest.Tick) bool{
		"from=3":                            func(id journal.Seq, _ manifest.Tick) bool { return id >= 3 },
		"to=%235":                           func(id journal.Seq, _ manifest.Tick) bool { return id <= 5 },
		"from=t1&to=t2":                     func(_ journal.Seq, at manifest.Tick) bool { return at >= 1 && at <= 2 },
		"from=here":                         func(id journal.Seq, _ manifest.Tick) bool { return id >= head-1 },
		"from=-1&to=head":                   func(id journal.Seq, _ manifest.Tick) bool { return id >= head-1 },
		"from=3&after=5":                    func(id journal.Seq, _ manifest.Tick) bool { return id > 5 },
		"from=t99":                          func(journal.Seq, manifest.Tick) bool { return false },
		"from=2&to=t1&kind=event.submitted": func(id journal.Seq, at manifest.Tick) bool { return id >= 2 && id <= 4 && at <= 1 },
	} {
		want := whole[:0:0]
		for _, r := range whole {
			if wanted(r.ID, r.Time) {
				want = append(want, r)
			}
		}
		got, path := whole[:0:0], "/api/worlds/w/records?limit=2&"+query
		for path != "" {
			page := ok[list](s.get(path))
			got, path = append(got, page.Records...), ""
			if page.Next != nil {
				path = *page.Next
			}
		}
		require.Equal(t, want, got, query)
	}
	told := ok[list](s.get("/api/worlds/w/timeline?cell=bot/a&from=t1&to=t1")).Records
	require.NotEmpty(t, told)
	for _, r := range told {
		require.EqualValues(t, 1, r.Time)
	}
	all := ok[listed](s.get("/api/worlds/w/decisions")).Decisions
	require.NotEmpty(t, all)
	require.Empty(t, ok[listed](s.get("/api/worlds/w/decisions?to=2")).Decisions)
	require.Equal(t, all, ok[listed](s.get("/api/worlds/w/decisions?from=t1")).Decisions)
	for query, status := range map[string]int{
		"from=5&to=3": http.StatusBadRequest, "from=nowhere": http.StatusNotFound, "to=1969-01-01T00:00:00Z": http.StatusNotFound,
	} {
		require.Equal(t, status, s.get("/api/worlds/w/records?"+query).Status, query)
	}
}
