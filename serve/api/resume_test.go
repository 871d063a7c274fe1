package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
)

// TestHaltedCellSaysWhy: by the record of its last failure, with the error, until it goes on.
func TestHaltedCellSaysWhy(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	event := ok[api.Submitted](s.post("/api/worlds/w/events", act("a", map[string]any{"fail": "as told"})))
	show := func(at string) view.Cell {
		return ok[struct {
			Schema string `json:"schema"`
			view.Cell
		}](s.get("/api/worlds/w/cell?cell=bot/a" + at)).Cell
	}
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	first := show("")
	require.True(t, first.Halted)
	require.Equal(t, &view.CellFailure{Record: first.At, Event: event.ID, Error: "bot.star:25:17: as told"}, first.Failure)

	ok[view.Resumed](s.post("/api/worlds/w/cell/resume", map[string]any{"cell": "bot/a"}))
	require.Nil(t, show("").Failure)
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	again := show("")
	require.Greater(t, again.Failure.Record, first.Failure.Record, "the last failure, not the first")
	require.Equal(t, first, show(fmt.Sprintf("&at=%d", first.At)), "as it was then")

	ok[view.Resumed](s.post("/api/worlds/w/cell/skip", map[string]any{"cell": "bot/a"}))
	require.Nil(t, show("").Failure)
}

// TestWhoResumesACellIsOnTheRecord: by the name of the token, with the reason given.
func TestWhoResumesACellIsOnTheRecord(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	ok[api.Submitted](s.post("/api/worlds/w/events", act("a", map[string]any{"fail": "as told"})))
	s.post("/api/worlds/w/cell/skip", map[string]any{"cell": "bot/a"}).problem(http.StatusConflict, "not-halted")
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	s.post("/api/worlds/w/cell/skip", map[string]any{"cell": "bot/z"}).problem(http.StatusNotFound, "not-found")
	s.post("/api/worlds/w/cell/skip", map[string]any{"cell": "a"}).problem(http.StatusBadRequest, "malformed")
	for _, user := range []string{"reader", "admin"} {
		s.do(s.as(user, s.request("POST", "/api/worlds/w/cell/resume", map[string]any{"cell": "bot/a"}))).problem(http.StatusForbidden, "scope")
	}

	again := ok[view.Resumed](s.post("/api/worlds/w/cell/resume", map[string]any{"cell": "bot/a", "reason": "once more"}))
	require.Equal(t, view.Resumed{Cell: "bot/a", Record: again.Record, Actor: "ada", Reason: "once more"}, again)
	ok[view.Course](s.post("/api/worlds/w/step", nil))
	past := ok[view.Resumed](s.do(s.as("approver", s.request("POST", "/api/worlds/w/cell/skip", map[string]any{"cell": "bot/a"}))))
	require.Equal(t, "approver", past.Actor)

	var said []string
	for _, r := range ok[records](s.get("/api/worlds/w/records?kind=cell.resumed")).Records {
		said = append(said, string(r.Payload))
	}
	require.Equal(t, []string{
		`{"v":1,"cell":"bot/a","skip":false,"actor":"ada","reason":"once more"}`,
		`{"v":1,"cell":"bot/a","skip":true,"actor":"approver","reason":""}`,
	}, said)
}
