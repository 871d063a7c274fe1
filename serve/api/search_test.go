package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// searched is the part of a Search that can be parsed again.
type searched struct {
	Record  *struct{ ID uint64 }
	Cells   []string
	Names   []string
	Intents []struct{ Key, Cell, Kind, State string }
	More    bool
}

func TestWhatATextMeansIsFound(t *testing.T) {
	s := lived(t)
	find := func(query string) searched { return ok[searched](s.get("/api/worlds/w/search?q=" + query)) }
	require.EqualValues(t, 3, find("%233").Record.ID)
	require.NotNil(t, find("t1").Record)
	require.Nil(t, find("t99").Record)
	require.Equal(t, []string{"bot/a", "bot/b", "bot/c/d ?é"}, find("bot/").Cells)
	require.Equal(t, []string{"bot/c/d ?é"}, find("d%20%3f").Cells)
	require.Contains(t, find("tool").Names, "tool.b")
	require.Equal(t, []string{"bot/a"}, find("bot/&limit=1").Cells)
	require.True(t, find("bot/&limit=1").More)
	key := ok[intents](s.get("/api/worlds/w/intents?state=awaiting_approval")).Intents[0].Key
	for _, part := range []string{key[:8], key[:11], key} {
		found := find(part).Intents
		require.Len(t, found, 1)
		require.Equal(t, []string{key, "bot/a", "tool.b", "awaiting_approval"}, []string{found[0].Key, found[0].Cell, found[0].Kind, found[0].State})
	}
	require.Empty(t, find(key[:7]).Intents)
	s.get("/api/worlds/w/search").problem(http.StatusBadRequest, "malformed")
	s.get("/api/worlds/w/search?q=x&limit=x").problem(http.StatusBadRequest, "malformed")
}

// series is the part of a Series that can be parsed again.
type series struct {
	Ticks []struct {
		From, To uint64
		Counts   map[string]uint64
		Cost     journal.Spending
	}
	Kinds, Cells []struct {
		Name    string
		Answers uint64
	}
}

// TestSeriesHaveEveryRecord of the journal, and every receipt.
func TestSeriesHaveEveryRecord(t *testing.T) {
	s := lived(t)
	all := ok[records](s.get("/api/worlds/w/records?limit=1000")).Records
	receipts := 0
	for _, r := range all {
		if r.Kind == journal.KindFinished {
			receipts++
		}
	}
	for _, query := range []string{"", "?buckets=1", "?buckets=1000"} {
		x := ok[series](s.get("/api/worlds/w/series" + query))
		n, answers := uint64(0), uint64(0)
		for _, k := range x.Ticks {
			answers += k.Cost.Answers
			for _, c := range k.Counts {
				n += c
			}
		}
		require.EqualValues(t, len(all), n)
		require.EqualValues(t, receipts, answers)
		require.Len(t, x.Kinds, 1)
		require.Equal(t, "bot/a", x.Cells[0].Name)
	}
	part := ok[series](s.get("/api/worlds/w/series?from=%232&to=t1"))
	require.Less(t, part.Ticks[len(part.Ticks)-1].To, uint64(2))
	for _, query := range []string{"buckets=0", "buckets=1001", "buckets=x", "from=t3&to=t1", "limit=0"} {
		s.get("/api/worlds/w/series?"+query).problem(http.StatusBadRequest, "malformed")
	}
	s.get("/api/worlds/w/series?from=t99").problem(http.StatusNotFound, "not-found")
}
