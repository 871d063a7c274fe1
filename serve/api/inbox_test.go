package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
)

// inbox is the part of an Inbox that can be parsed again.
type inbox struct {
	Owed []struct {
		World  string      `json:"world"`
		Wants  view.Wanted `json:"wants"`
		Cell   string      `json:"cell"`
		Since  journal.Seq `json:"since"`
		Intent *struct {
			intent

			Deadline uint64 `json:"deadline"`
		} `json:"intent"`
		Failure *view.CellFailure `json:"failure"`
	} `json:"owed"`
	Next *string `json:"next"`
}

// TestTheInboxHasWhatWaitsInAllWorlds that a token is for, in pages too, until it is
// decided.
func TestTheInboxHasWhatWaitsInAllWorlds(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "v", "w", "elsewhere")})
	for _, world := range []string{"v", "w", "elsewhere"} {
		for n := range 2 {
			s.post("/api/worlds/"+world+"/events", act("a", map[string]any{"effect": "tool.b", "param": fmt.Sprint(n)}))
		}
		s.post("/api/worlds/"+world+"/events", act("c/d ?é", map[string]any{"fail": "as told"}))
		s.post("/api/worlds/"+world+"/events", act("b"))
		ok[view.Course](s.post("/api/worlds/"+world+"/step", map[string]any{"ticks": 3}))
	}
	all := ok[inbox](s.get("/api/inbox"))
	require.Len(t, all.Owed, 9)
	require.Nil(t, all.Next)
	var short inbox
	for next := "/api/inbox?limit=2"; next != ""; {
		page := ok[inbox](s.get(next))
		require.LessOrEqual(t, len(page.Owed), 2)
		short.Owed, next = append(short.Owed, page.Owed...), linkOf(page.Next)
	}
	require.Equal(t, all, short)
	for i, o := range all.Owed {
		require.Equal(t, []string{"elsewhere", "v", "w"}[i/3], o.World)
		if i%3 == 2 {
			require.Equal(t, []any{view.WantsResume, "bot/c/d ?é"}, []any{o.Wants, o.Cell})
			require.Contains(t, o.Failure.Error, "as told")
			require.Equal(t, o.Failure.Event, o.Since)
			continue
		}
		require.Equal(t, []any{view.WantsApprove, "bot/a", receipt.StateAwaitingApproval}, []any{o.Wants, o.Cell, o.Intent.State})
		require.Equal(t, "intent.awaiting_approval", ok[map[string]any](s.get(fmt.Sprintf("/api/worlds/%s/records/%d", o.World, o.Since)))["kind"])
		shown := ok[intent](s.get("/api/worlds/" + o.World + "/intents/" + o.Intent.Key))
		require.Equal(t, []any{shown.ParamsHash, shown.Reason}, []any{o.Intent.ParamsHash, o.Intent.Reason})
	}
	mine := ok[inbox](s.do(s.as("other", s.request("GET", "/api/inbox", nil))))
	require.Equal(t, all.Owed[:3], mine.Owed)

	first := all.Owed[0]
	ok[map[string]any](s.post("/api/worlds/elsewhere/intents/"+first.Intent.Key+"/deny", map[string]any{"reason": "no"}))
	ok[map[string]any](s.post("/api/worlds/elsewhere/cell/skip", map[string]any{"cell": "bot/c/d ?é"}))
	left := ok[inbox](s.get("/api/inbox")).Owed
	require.Equal(t, append(all.Owed[1:2:2], all.Owed[3:]...), left)
	s.api.Stop("v", errors.New("its disk is full"))
	require.Equal(t, append(all.Owed[1:2:2], all.Owed[6:]...), ok[inbox](s.get("/api/inbox")).Owed, "nobody can decide there")
	s.get("/api/inbox?limit=x").problem(http.StatusBadRequest, "malformed")
}

func TestWhoeverAsksIsToldWhoTheyAre(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	me := ok[api.TokenLine](s.do(s.as("other", s.request("GET", "/api/whoami", nil))))
	require.Equal(t, api.TokenLine{
		Name: "other", Scopes: []api.Scope{api.ScopeRead, api.ScopeSubmit, api.ScopeApprove, api.ScopeAdmin}, Worlds: []string{"elsewhere"},
	}, me)
	require.Nil(t, ok[api.TokenLine](s.do(s.as("hand", s.request("GET", "/api/whoami", nil)))).Worlds)
}
