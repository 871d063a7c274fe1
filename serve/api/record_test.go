package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// toldRecord is the part of a RecordView that can be parsed again.
type toldRecord struct {
	ID    journal.Seq  `json:"id"`
	Kind  journal.Kind `json:"kind"`
	How   string       `json:"how"`
	Name  string       `json:"name"`
	Cells []string     `json:"cells"`
	Key   *string      `json:"key"`
	Cause journal.Seq  `json:"cause"`
	What  string       `json:"what"`
}

// toldRecords is a page of them.
type toldRecords struct {
	Records []toldRecord `json:"records"`
	Next    *string      `json:"next"`
}

// livedIn is lived, and the world besides.
func livedIn(t testing.TB, limits api.Limits) (*served, view.Journal) {
	t.Helper()
	w := create(t, "w", asked...)
	s := serve(t, api.Config{Worlds: []*local.World{w}, Limits: limits})
	live(s)
	return s, view.Journal{Local: w}
}

const allTold = "/api/worlds/w/records?raw=false&limit=1000"

// TestARecordIsToldAsTheCommandLineTellsIt, one by one, in pages and as a stream.
func TestARecordIsToldAsTheCommandLineTellsIt(t *testing.T) {
	s, j := livedIn(t, api.Limits{})
	page := ok[struct{ Records []json.RawMessage }](s.get(allTold))
	require.Len(t, page.Records, int(j.End()))
	f := s.follow("?raw=false", "")
	for i, line := range page.Records {
		var got toldRecord
		require.NoError(t, json.Unmarshal(line, &got))
		e, err := j.Entry(journal.Seq(i + 1))
		require.NoError(t, err)
		want, err := view.Describer{Journal: j}.Describe(e)
		require.NoError(t, err)
		cause, err := j.CauseOf(e)
		require.NoError(t, err)
		require.Equal(t, []any{e.ID, e.Kind, want, cause, append([]string{}, j.Cells(e)...)}, []any{got.ID, got.Kind, got.What, got.Cause, got.Cells})
		if key, _ := e.Intent(); !key.IsZero() {
			require.Equal(t, key.String(), *got.Key)
			require.NotEmpty(t, got.Name, "the kind of the effect")
		}
		alone := s.get(fmt.Sprintf("/api/worlds/w/records/%d?raw=false", i+1))
		require.JSONEq(t, string(line), string(alone.Body))
		streamed, more := f.next()
		require.True(t, more)
		require.Equal(t, string(line), streamed.data)
	}
	s.get("/api/worlds/w/records/1?raw=no").problem(http.StatusBadRequest, "malformed")
}

// TestPagesBeforeARecordAreThoseAfterItTurnedRound, whatever ends a page.
func TestPagesBeforeARecordAreThoseAfterItTurnedRound(t *testing.T) {
	for _, limits := range []api.Limits{{}, {PageBytes: 300}, {Scan: 3}} {
		s, j := livedIn(t, limits)
		for _, query := range []string{"", "&kind=intent.*&kind=cell.stepped", "&cell=bot/a", "&from=5&to=t2", "&from=9&kind=cell.failed"} {
			var want, got []journal.Seq
			for next := allTold + query; next != ""; {
				page := ok[toldRecords](s.get(next))
				for _, r := range page.Records {
					want = append(want, r.ID)
				}
				next = linkOf(page.Next)
			}
			for next := fmt.Sprintf("/api/worlds/w/records?raw=false&limit=4&before=%d%s", j.End()+1, query); next != ""; {
				page := ok[toldRecords](s.get(next))
				require.LessOrEqual(t, len(page.Records), 4)
				require.True(t, slices.IsSortedFunc(page.Records, func(a, b toldRecord) int { return int(a.ID) - int(b.ID) }))
				for _, r := range slices.Backward(page.Records) {
					got = append(got, r.ID)
				}
				next = linkOf(page.Next)
			}
			slices.Reverse(got)
			require.Equal(t, want, got, "%v %s", limits, query)
		}
		require.Empty(t, ok[toldRecords](s.get("/api/worlds/w/records?raw=false&before=1")).Records)
		s.get("/api/worlds/w/records?before=9&after=3").problem(http.StatusBadRequest, "malformed")
	}
}

func linkOf(next *string) string {
	if next == nil {
		return ""
	}
	return *next
}

func TestRecordsComeByTheirNumbers(t *testing.T) {
	s, j := livedIn(t, api.Limits{Page: 3, PageBytes: 120})
	var got []journal.Seq
	pages := 0
	for next := "/api/worlds/w/records?ids=7,2,3"; next != ""; pages++ {
		page := ok[records](s.get(next))
		for _, r := range page.Records {
			got = append(got, r.ID)
		}
		next = linkOf(page.Next)
	}
	require.Equal(t, []journal.Seq{7, 2, 3}, got)
	require.Greater(t, pages, 1, "a page is bounded by its bytes")
	for query, status := range map[string]int{
		"ids=1,2,3,4": http.StatusBadRequest, "ids=1,x": http.StatusBadRequest, "ids=1&kind=cell.stepped": http.StatusBadRequest,
		fmt.Sprintf("ids=%d", j.End()+1): http.StatusNotFound, "ids=0": http.StatusNotFound,
	} {
		require.Equal(t, status, s.get("/api/worlds/w/records?"+query).Status, query)
	}
	for _, query := range []string{"ids=1", "before=5", "caused_by=2"} {
		req := s.request("GET", "/api/worlds/w/records?"+query, nil)
		req.Header.Set("Accept", "text/event-stream")
		s.do(req).problem(http.StatusBadRequest, "malformed")
	}
}

// TestWhatARecordBroughtAboutIsWhatNamesItAsCause, and its graph is of that.
func TestWhatARecordBroughtAboutIsWhatNamesItAsCause(t *testing.T) {
	s, _ := livedIn(t, api.Limits{})
	all := ok[toldRecords](s.get(allTold)).Records
	for _, r := range all {
		var want, got []journal.Seq
		for _, x := range all {
			if x.Cause == r.ID {
				want = append(want, x.ID)
			}
		}
		for _, x := range ok[toldRecords](s.get(fmt.Sprint(allTold, "&caused_by=", r.ID))).Records {
			got = append(got, x.ID)
		}
		require.Equal(t, want, got, "#%d %s", r.ID, r.Kind)
		g := ok[view.Graph](s.get(fmt.Sprintf("/api/worlds/w/records/%d/graph?depth=1", r.ID)))
		require.True(t, g.Whole)
		var drawn []journal.Seq
		for _, e := range g.Edges {
			if e.From == r.ID {
				drawn = append(drawn, e.To)
			} else {
				require.Equal(t, view.GraphEdge{From: r.Cause, To: r.ID}, e)
			}
		}
		require.Equal(t, want, drawn)
	}
	at := slices.IndexFunc(all, func(r toldRecord) bool { return strings.HasPrefix(r.What, "event go") })
	g := ok[view.Graph](s.get(fmt.Sprintf("/api/worlds/w/records/%d/graph?limit=3", all[at].ID)))
	require.Len(t, g.Nodes, 3)
	require.False(t, g.Whole)
	s.get("/api/worlds/w/records/99999/graph").problem(http.StatusNotFound, "not-found")
	for _, beyond := range []string{"99999", "18446744073709551615"} {
		s.get("/api/worlds/w/records?caused_by="+beyond).problem(http.StatusNotFound, "not-found")
	}
	s.get("/api/worlds/w/records/1/graph?depth=x").problem(http.StatusBadRequest, "malformed")
}
