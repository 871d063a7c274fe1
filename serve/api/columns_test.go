package api_test

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/columns"
	"github.com/worldkernel/worldkernel/show/view"
)

// rowsOf reads a page of columns.
func rowsOf(t testing.TB, page []byte) []columns.Row {
	t.Helper()
	p, err := columns.Decode(page)
	require.NoError(t, err)
	return slices.Collect(p.Rows())
}

func (s *served) columns(after journal.Seq) []columns.Row {
	s.t.Helper()
	a := s.get(fmt.Sprintf("/api/worlds/w/columns?after=%d", after))
	require.Equal(s.t, http.StatusOK, a.Status)
	require.Equal(s.t, "application/octet-stream", a.Header.Get("Content-Type"))
	return rowsOf(s.t, a.Body)
}

func TestColumnsHaveEveryRecord(t *testing.T) {
	s := lived(t)
	all := s.columns(0)
	want := ok[records](s.get("/api/worlds/w/records?limit=1000")).Records
	require.Len(t, all, len(want))
	for i, r := range want {
		kind, _, _ := strings.Cut(all[i].What, " ")
		require.Equal(t, []any{r.ID, string(r.Kind)}, []any{all[i].Record, kind})
	}
	require.Equal(t, all[7:], s.columns(7))
	require.Empty(t, s.columns(journal.Seq(len(all))), "the end")
	require.Empty(t, s.columns(1<<62), "and what is beyond it")
	s.post("/api/worlds/w/events", act("z"))
	added := s.columns(journal.Seq(len(all)))
	require.Len(t, added, 1, "what is accepted is there")
	require.Equal(t, []string{"bot/z"}, added[0].Cells)
	s.get("/api/worlds/w/columns?after=x").problem(http.StatusBadRequest, "malformed")
	s.do(s.as("submitter", s.request("GET", "/api/worlds/w/columns", nil))).problem(http.StatusForbidden, "scope")
}

// TestColumnsComeInGzip to who takes that, and to nobody else.
func TestColumnsComeInGzip(t *testing.T) {
	s := lived(t)
	for accept, zipped := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "deflate, gzip; q=1": true, "identity": false, "gzip;q=0": false, "": false, "x-gzip": false,
	} {
		req := s.request("GET", "/api/worlds/w/columns", nil)
		req.Header.Set("Accept-Encoding", accept)
		res, err := s.http.Client().Transport.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, "Accept-Encoding", res.Header.Get("Vary"))
		body, from := io.Reader(res.Body), res.Header.Get("Content-Encoding")
		require.Equal(t, zipped, from == "gzip", accept)
		if zipped {
			body, err = gzip.NewReader(res.Body)
			require.NoError(t, err)
		}
		page, err := io.ReadAll(body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.NotEmpty(t, rowsOf(t, page))
	}
}

// TestFollowersOfColumnsMissNothing: what comes is as it is in pages, across a stream that
// was cut.
func TestFollowersOfColumnsMissNothing(t *testing.T) {
	s := lived(t)
	var got []columns.Row
	f := s.followPath("/api/worlds/w/columns", "")
	for n := range 6 {
		e, more := f.next()
		require.True(t, more)
		require.Equal(t, "columns", e.kind)
		page, err := base64.StdEncoding.DecodeString(e.data)
		require.NoError(t, err)
		got = append(got, rowsOf(t, page)...)
		require.Equal(t, got[len(got)-1].Record, e.id)
		if n == 2 {
			f.close()
			f = s.followPath("/api/worlds/w/columns", fmt.Sprint(e.id))
		}
		s.post("/api/worlds/w/events", act("a"))
	}
	require.Equal(t, s.columns(0)[:len(got)], got)
}

// TestRevokedTokenEndsAStreamOfColumns before anything more is sent.
func TestRevokedTokenEndsAStreamOfColumns(t *testing.T) {
	w := create(t, "w")
	s := serve(t, api.Config{Worlds: wrap(w)})
	f := s.followPath("/api/worlds/w/columns", "")
	_, more := f.next()
	require.True(t, more)
	ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
	_, more = f.next()
	require.True(t, more)
	s.api.SetTokens(new(api.Tokens))
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": []any{}})
	require.NoError(t, err)
	_, more = f.next()
	require.False(t, more)
}

// TestRevokedTokenEndsAStreamInWhichNothingHappens, long before it says that it lives.
func TestRevokedTokenEndsAStreamInWhichNothingHappens(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Heartbeat: time.Hour}})
	followers := []*follower{s.followPath("/api/worlds/w/columns", ""), s.followPath("/api/worlds/w/records", "")}
	for _, f := range followers {
		_, more := f.next()
		require.True(t, more)
	}
	s.api.SetTokens(new(api.Tokens))
	for _, f := range followers {
		for more := true; more; {
			_, more = f.next()
		}
	}
}

func TestDensityOfAWorld(t *testing.T) {
	s := lived(t)
	got := ok[api.Density](s.get("/api/worlds/w/density"))
	require.Len(t, got.Buckets, 1)
	b := got.Buckets[0]
	head := ok[view.Status](s.get("/api/worlds/w")).Head.ID
	require.Equal(t, []journal.Seq{1, head}, []journal.Seq{b.First, b.Last})
	sum := uint64(0)
	for _, n := range b.Counts {
		sum += n
	}
	require.EqualValues(t, head, sum)
	for _, n := range []string{"0", "10001", "x"} {
		s.get("/api/worlds/w/density?buckets="+n).problem(http.StatusBadRequest, "malformed")
	}
}
