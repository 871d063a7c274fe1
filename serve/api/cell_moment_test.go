package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
)

type alarm struct {
	Record, At uint64
	Name, Tag  string
	Data       any
}

// cellThen is a cell with what falls due for it.
type cellThen struct {
	N, At             uint64
	State             json.RawMessage
	Mailbox           []map[string]any
	Scheduled, Timers []alarm
	MailboxLen        int `json:"mailbox_len"`
	ScheduledLen      int `json:"scheduled_len"`
	TimersLen         int `json:"timers_len"`
}

// TestCellTellsWhatFallsDueForIt: of now and of then it says the same.
func TestCellTellsWhatFallsDueForIt(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	s.post("/api/worlds/w/events", act("a", map[string]any{"timer": 3}, map[string]any{"timer": 2}))
	ok[view.Course](s.post("/api/worlds/w/step", map[string]any{"ticks": 1}))
	for at := 9; at > 5; at-- {
		ok[api.Submitted](s.post("/api/worlds/w/events", map[string]any{"event": "ping", "to": "bot/a", "at": at}))
	}
	for range 3 {
		s.post("/api/worlds/w/events", act("a"))
	}
	const path = "/api/worlds/w/cell?cell=bot/a"
	now := ok[cellThen](s.get(path))
	require.Equal(t, []int{3, 4, 2}, []int{now.MailboxLen, now.ScheduledLen, now.TimersLen})
	require.Len(t, now.Mailbox, 3)
	for i, x := range now.Scheduled {
		require.EqualValues(t, 6+i, x.At)
		require.Equal(t, "ping", x.Name)
	}
	require.Less(t, now.Timers[0].At, now.Timers[1].At)
	short := ok[cellThen](s.get(path + "&mail=1"))
	require.Equal(t, []int{1, 1, 1, 3, 4, 2}, []int{
		len(short.Mailbox), len(short.Scheduled), len(short.Timers), short.MailboxLen, short.ScheduledLen, short.TimersLen,
	})
	require.Empty(t, ok[cellThen](s.get(path+"&mail=0")).Mailbox)
	s.get(path+"&mail=x").problem(http.StatusBadRequest, "malformed")

	ok[view.Course](s.post("/api/worlds/w/step", map[string]any{"ticks": 9}))
	require.Zero(t, ok[cellThen](s.get(path)).ScheduledLen)
	then := ok[cellThen](s.get(path + fmt.Sprintf("&at=%d", now.At)))
	require.Equal(t, now, then)
}

type cellDiff struct {
	A, B  uint64
	Same  bool
	State []struct {
		Path string
		A, B any
	}
}

// TestWhatAStepChangedIsTold of the last one by a moment, or between two.
func TestWhatAStepChangedIsTold(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	submit := func(name string) {
		s.post("/api/worlds/w/events", act(name))
		ok[view.Course](s.post("/api/worlds/w/step", map[string]any{"ticks": 1}))
	}
	const path = "/api/worlds/w/cell/diff?cell=bot/a"
	submit("a")
	first := ok[cellDiff](s.get(path))
	submit("a")
	submit("b")
	last := ok[cellDiff](s.get(path))
	require.Equal(t, last.A+1, last.B, "between the step and the record before it")
	require.False(t, last.Same)
	require.NotEmpty(t, last.State)
	require.Greater(t, last.A, first.B)
	require.Equal(t, first, ok[cellDiff](s.get(path+fmt.Sprintf("&at=%d", last.A))))
	require.Equal(t, last, ok[cellDiff](s.get(path+fmt.Sprintf("&a=%d&b=%d", last.A, last.B))))
	require.True(t, ok[cellDiff](s.get(path+fmt.Sprintf("&a=%d&b=head", last.B))).Same)

	s.get(path+"&a=1").problem(http.StatusBadRequest, "malformed")
	s.get(path+"&b=1").problem(http.StatusBadRequest, "malformed")
	s.get(path+"&a=1&b=2&at=3").problem(http.StatusBadRequest, "malformed")
	s.get(path+"&at=1").problem(http.StatusNotFound, "not-found")
	s.get(path+"&at=nowhere").problem(http.StatusNotFound, "not-found")
	s.get(path+"&a=nowhere&b=head").problem(http.StatusNotFound, "not-found")
	s.get("/api/worlds/w/cell/diff?cell=bot/nobody").problem(http.StatusNotFound, "not-found")
	s.get("/api/worlds/w/cell/diff?cell=bot").problem(http.StatusBadRequest, "malformed")
}

// TestACellThatHasTakenNoStepHasChangedNothing: it waits with its first event.
func TestACellThatHasTakenNoStepHasChangedNothing(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	s.post("/api/worlds/w/events", act("a"))
	x := ok[cellDiff](s.get("/api/worlds/w/cell/diff?cell=bot/a"))
	require.True(t, x.Same)
	require.Empty(t, x.State)
	require.Equal(t, x.A, x.B)
}

// TestWhatARollbackChangedSinceTheLastStepIsTold in the place of what that step did.
func TestWhatARollbackChangedSinceTheLastStepIsTold(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	submit := func() {
		s.post("/api/worlds/w/events", act("a"))
		ok[view.Course](s.post("/api/worlds/w/step", map[string]any{"ticks": 1}))
	}
	const path = "/api/worlds/w/cell/diff?cell=bot/a"
	submit()
	s.post("/api/worlds/w/snapshots", map[string]any{"name": "one"})
	submit()
	step := ok[cellDiff](s.get(path))
	back := ok[rolledBack](s.post("/api/worlds/w/rollback", map[string]any{"snapshot": "one", "reason": "astray"}))
	x := ok[cellDiff](s.get(path))
	require.Equal(t, []uint64{step.B, *back.Record}, []uint64{x.A, x.B}, "from the step to the rollback")
	require.False(t, x.Same)
	require.Equal(t, step, ok[cellDiff](s.get(path+fmt.Sprintf("&at=%d", step.B))), "of then it is what it was")
}

type cellsThen struct {
	At    uint64
	Cells []struct {
		Cell  string
		N     uint64
		State json.RawMessage
	}
	Next *string
}

func (c cellsThen) names() (names []string) {
	for _, x := range c.Cells {
		names = append(names, x.Cell)
	}
	return names
}

// TestCellsOfAMomentAreListed in pages, all or some.
func TestCellsOfAMomentAreListed(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	for _, name := range []string{"a", "ab", "b"} {
		s.post("/api/worlds/w/events", act(name))
		ok[view.Course](s.post("/api/worlds/w/step", map[string]any{"ticks": 1}))
	}
	list := func(query string) cellsThen { return ok[cellsThen](s.get("/api/worlds/w/cells?" + query)) }
	now := list("")
	require.Equal(t, []string{"bot/a", "bot/ab", "bot/b"}, now.names())
	require.Equal(t, now, list("at=head"))
	require.Equal(t, []string{"bot/a", "bot/ab"}, list("at=t1").names())
	require.Equal(t, []string{"bot/a"}, list("at=t0&select=bot/*").names())
	require.Equal(t, []string{"bot/a", "bot/ab"}, list("select=bot/a*").names())
	require.Equal(t, []string{"bot/a", "bot/b"}, list("select=bot/b&select=bot/a").names())
	require.Equal(t, []string{"bot/a"}, list("at=t1&select=bot/b&select=bot/a&select=bot/a").names())
	require.Empty(t, list("at=1").names())

	for _, some := range []string{"", "&select=bot/b&select=bot/a&select=bot/ab"} {
		page := list("at=-1&limit=2" + some)
		require.Equal(t, []string{"bot/a", "bot/ab"}, page.names())
		require.NotNil(t, page.Next)
		next, err := url.Parse(*page.Next)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(page.At), next.Query().Get("at"), "the next page is of the same moment")
		s.post("/api/worlds/w/events", act("later"))
		rest := ok[cellsThen](s.get(*page.Next))
		require.Equal(t, []string{"bot/b"}, rest.names())
		require.Equal(t, page.At, rest.At)
		require.Nil(t, rest.Next)
	}
	for _, x := range list("at=t1&state=true").Cells {
		state := ok[struct{ State json.RawMessage }](s.get("/api/worlds/w/cell?at=t1&cell=" + x.Cell)).State
		require.NotEmpty(t, state)
		require.JSONEq(t, string(state), string(x.State))
	}
	require.Empty(t, list("").Cells[0].State)
	s.get("/api/worlds/w/cells?state=some").problem(http.StatusBadRequest, "malformed")
	s.get("/api/worlds/w/cells?at=nowhere").problem(http.StatusNotFound, "not-found")
	s.get("/api/worlds/w/cells?select=bot").problem(http.StatusBadRequest, "malformed")
}
