package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
)

// refused holds an answer to a limit that was reached.
func refused(a *answer, status int, limit string) {
	a.t.Helper()
	p := a.problem(status, "busy")
	require.Equal(a.t, limit, p.Limit)
	require.Contains(a.t, p.Detail, "worldctl serve --limit "+limit+"=N")
	require.Equal(a.t, "1", a.Header.Get("Retry-After"))
}

func (s *served) getAs(user, path string) *answer {
	s.t.Helper()
	return s.do(s.as(user, s.request("GET", path, nil)))
}

func (s *served) streamAs(user, world string) *answer {
	s.t.Helper()
	req := s.as(user, s.request("GET", "/api/worlds/"+world+"/records?to=1", nil)) // which ends by itself
	req.Header.Set("Accept", "text/event-stream")
	return s.do(req)
}

func (s *served) waitAs(user, world string) *answer {
	s.t.Helper()
	return s.do(s.as(user, s.request("POST", "/api/worlds/"+world+"/effects/acquire", api.AcquireRequest{Worker: "w", WaitSeconds: 1})))
}

// impatient has calls not wait for a slot.
const impatient = time.Nanosecond

func TestHealthIsToldWhoeverAsksForWhat(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Wait: impatient, Health: 1, Requests: api.Slots{All: 2}}})
	free := s.api.Busy("requests", "ada", "", 1)
	require.Equal(t, http.StatusOK, s.get("/healthz").Status)
	refused(s.get("/api/worlds"), http.StatusTooManyRequests, "requests.token")
	free()
	require.Equal(t, http.StatusOK, s.get("/api/worlds").Status)
	defer s.api.Busy("health", "", "", 1)()
	refused(s.get("/healthz"), http.StatusServiceUnavailable, "health")
}

// TestNoTokenAndNoWorldTakesAllSlots: each kind of slots by itself; that of workers is
// in TestWorkersWaitsHaveSlotsOfTheirOwn.
func TestNoTokenAndNoWorldTakesAllSlots(t *testing.T) {
	most := api.Slots{All: 8} // 2 of a token, 6 about a world
	s := serve(t, api.Config{Worlds: worlds(t, "w", "x"), Limits: api.Limits{
		Wait: impatient, Requests: most, Followers: most, Verifications: most, Turns: api.Slots{All: 64},
	}})
	kinds := map[string]func(user, world string) *answer{
		"requests":      func(user, world string) *answer { return s.getAs(user, "/api/worlds/"+world) },
		"followers":     s.streamAs,
		"verifications": func(user, world string) *answer { return s.getAs(user, "/api/worlds/"+world+"/verify") },
	}
	for _, world := range []string{"w", "x"} { // so that a stream of the first record ends
		ok[api.Submitted](s.post("/api/worlds/"+world+"/events", act("a")))
	}
	answered := func(kind, user, world string) {
		t.Helper()
		a := kinds[kind](user, world)
		require.Equal(t, http.StatusOK, a.Status, "%s of %s about %s: %s", kind, user, world, a.Body)
	}
	for kind, ask := range kinds {
		token := s.api.Busy(kind, "ada", "w", 2)
		refused(ask("ada", "w"), http.StatusTooManyRequests, kind+".token")
		refused(ask("ada", "x"), http.StatusTooManyRequests, kind+".token")
		answered(kind, "reader", "w")
		for other := range kinds {
			if other != kind && kind != "requests" { // which a stream is, too, until it is let in
				answered(other, "ada", "w")
			}
		}
		world := []func(){s.api.Busy(kind, "a", "w", 2), s.api.Busy(kind, "b", "w", 2)}
		reader := s.api.Busy(kind, "reader", "x", 1)
		refused(ask("reader", "w"), http.StatusServiceUnavailable, kind+".world")
		answered(kind, "reader", "x")
		all := s.api.Busy(kind, "c", "x", 1)
		refused(ask("reader", "x"), http.StatusServiceUnavailable, kind)
		reader()
		answered(kind, "reader", "w") // who has none under way gets one
		all()
		token()
		for _, free := range world {
			free()
		}
		answered(kind, "ada", "w")
	}
}

func TestWorkersWaitsHaveSlotsOfTheirOwn(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{
		Wait: impatient, Requests: api.Slots{All: 4}, Followers: api.Slots{All: 4}, Waits: api.Slots{All: 4}, Turns: api.Slots{All: 64},
	}})
	free := s.api.Busy("waits", "hand", "w", 1)
	refused(s.waitAs("hand", "w"), http.StatusTooManyRequests, "waits.token")
	require.Equal(t, http.StatusOK, s.getAs("hand", "/api/worlds").Status)
	free()
	s.waitAs("hand", "w").problem(http.StatusConflict, "not-remote")
	defer s.api.Busy("followers", "ada", "w", 1)()
	s.waitAs("ada", "w").problem(http.StatusConflict, "not-remote")
	refused(s.streamAs("ada", "w"), http.StatusTooManyRequests, "followers.token")
	require.Equal(t, http.StatusOK, s.get("/api/worlds").Status, "a follower takes no slot of a request")
}

// TestWhoWaitsForASlotGetsIt: a call that finds none is answered once there is one, and
// first the one whose token has the fewest.
func TestWhoWaitsForASlotGetsIt(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Wait: time.Minute, Requests: api.Slots{All: 4, Token: 3}}})
	held := []func(){s.api.Busy("requests", "a", "", 2), s.api.Busy("requests", "b", "", 1), s.api.Busy("requests", "c", "", 1)}
	got := make(chan string, 3)
	wait := func(token string, n int) {
		go func() {
			_ = s.api.Busy("requests", token, "", 1)
			got <- token
		}()
		require.Eventually(t, func() bool { return s.api.Queued("requests") == n }, time.Minute, time.Millisecond)
	}
	wait("a", 1)
	wait("b", 2)
	wait("c", 3)
	held[2]() // then c has none
	require.Equal(t, "c", <-got)
	require.Equal(t, 2, s.api.Queued("requests"))
	held[1]()
	require.Equal(t, "b", <-got)
	held[0]()
	require.Equal(t, "a", <-got)
}

// TestWhoWorksTakesTurns: what takes the processor waits for others of its token; what
// waits for the net or the disk does not.
func TestWhoWorksTakesTurns(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Wait: impatient, Turns: api.Slots{All: 4, Token: 1}}})
	free := s.api.Busy("turns", "ada", "w", 1)
	line, err := json.Marshal(act("a"))
	require.NoError(t, err)
	refused(s.get("/api/worlds/w/records"), http.StatusTooManyRequests, "turns.token")
	refused(s.post("/api/worlds/w/events", line), http.StatusTooManyRequests, "turns.token")
	refused(s.post("/api/worlds/w/events", act("a")), http.StatusTooManyRequests, "turns.token")
	refused(s.post("/api/worlds/w/step", map[string]any{}), http.StatusTooManyRequests, "turns.token")
	renew := api.RenewRequest{Worker: "w", Nonce: strings.Repeat("0", 64)}
	require.NotEqual(t, http.StatusTooManyRequests, s.post("/api/worlds/w/effects/renew", renew).Status, "a lease does not wait")
	require.Equal(t, http.StatusOK, s.getAs("reader", "/api/worlds/w/records").Status)
	free()
	ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
	require.Equal(t, http.StatusOK, s.get("/api/worlds/w/records").Status)
	f := s.follow("?after=1", "")
	_, more := f.next()
	require.True(t, more)
	require.Eventually(t, func() bool { return s.api.Used("turns", "ada") == 0 }, time.Minute, time.Millisecond)
	require.Equal(t, http.StatusOK, s.get("/api/worlds/w/verify").Status)
	require.Zero(t, s.api.Used("turns", "ada"))
	require.Zero(t, s.api.Used("requests", "ada"))
	require.Equal(t, 1, s.api.Used("followers", "ada"))
}

// TestHonestCallersAreAnsweredBesideSlowAndGreedyOnes has slow and greedy callers hold
// all that they can.
func TestHonestCallersAreAnsweredBesideSlowAndGreedyOnes(t *testing.T) {
	most := api.Slots{All: 8}
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{
		Wait: impatient, Requests: most, Followers: most, Turns: api.Slots{All: 64}, BodyGrace: time.Minute, Connections: api.Connections{All: 64},
	}})
	head := func(user, rest string) string {
		return fmt.Sprintf("POST /api/worlds/w/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s",
			s.http.Listener.Addr(), s.secrets[user], rest)
	}
	for i := range 64 {
		s.dial(head("nobody", "")[:i])
	}
	const slow = "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	for range 2 {
		s.dial(head("ada", slow))
	}
	require.Eventually(t, func() bool { return s.api.Used("requests", "ada") == 2 }, time.Minute, time.Millisecond)
	refused(s.get("/api/worlds/w"), http.StatusTooManyRequests, "requests.token")
	for range 2 {
		_, status, _ := s.ask("admin", "/api/worlds", "application/json")
		require.Equal(t, http.StatusForbidden, status)
		_, status, _ = s.ask("reader", "/api/worlds/w/records", "text/event-stream")
		require.Equal(t, http.StatusOK, status)
	}
	refused(s.streamAs("reader", "w"), http.StatusTooManyRequests, "followers.token")
	for range 8 {
		req := s.as("submitter", s.request("POST", "/api/worlds/w/events", act("a")))
		ok[api.Submitted](s.do(req))
		require.Equal(t, http.StatusOK, s.getAs("reader", "/api/worlds/w/records").Status)
		require.Equal(t, http.StatusOK, s.get("/healthz").Status)
	}
	require.Equal(t, 2, s.api.Used("requests", "ada"), "they are slow still")
}

func TestLimitsAreSetByName(t *testing.T) {
	var l api.Limits
	require.NoError(t, l.Set("requests=8"))
	require.NoError(t, l.Set("waits.token=7"))
	for _, x := range l.Named() {
		require.Positive(t, x.Value)
		switch x.Name {
		case "requests":
			require.Equal(t, 8, x.Value)
		case "requests.token":
			require.Equal(t, 2, x.Value)
		case "requests.world":
			require.Equal(t, 6, x.Value)
		case "waits.token":
			require.Equal(t, 7, x.Value)
		}
	}
	for _, bad := range []string{"", "requests", "requests=", "requests=0", "requests=-1", "requests=x", "request=1", "=1"} {
		require.Error(t, l.Set(bad), bad)
	}
}

func TestDocsNameEveryLimit(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	for _, l := range (api.Limits{}).Named() {
		row := regexp.MustCompile("(?m)^.*`" + regexp.QuoteMeta(l.Name) + "`.*$").FindString(string(text))
		if !strings.HasPrefix(l.Name, "turns") { // which follow from the machine
			require.Contains(t, row, fmt.Sprintf(" %d |", l.Value), l.Name)
		}
		require.NotEmpty(t, row, l.Name)
	}
}
