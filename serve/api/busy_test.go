package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// steps has a world be amid a step until what is returned is called.
func steps(t *testing.T, lw *local.World) (end func()) {
	t.Helper()
	begun, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = lw.Update(func(*world.World) error {
			close(begun)
			<-over
			return nil
		})
	}()
	<-begun
	return func() {
		close(over)
		<-ended
	}
}

// asks sends a request that waits, and returns what has its caller leave and where its end is told.
func (s *served) asks(path string) (leave func(), ended <-chan struct{}) {
	ctx, leave := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	req := s.request("GET", path, nil).WithContext(ctx)
	go func() {
		defer close(done)
		if res, err := s.http.Client().Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	return leave, done
}

// TestAWorldWhoseStepIsLongHoldsNobodyElsesTurn: who waits for it has the other worlds answer meanwhile.
func TestAWorldWhoseStepIsLongHoldsNobodyElsesTurn(t *testing.T) {
	all := worlds(t, "a", "b")
	s := serve(t, api.Config{Worlds: all, Limits: api.Limits{Turns: api.Slots{All: 2, Token: 1}, Wait: time.Minute}})
	end := steps(t, all[0])
	leave, ended := s.asks("/api/worlds/a")
	defer leave()
	require.Equal(t, http.StatusOK, s.get("/api/worlds/b").Status)
	require.Equal(t, http.StatusOK, s.get("/metrics").Status)
	end()
	<-ended
	require.Equal(t, http.StatusOK, s.get("/api/worlds/a").Status)
}

// TestWhoLeavesGivesBackWhatTheyHold: also while their request waits for a world.
func TestWhoLeavesGivesBackWhatTheyHold(t *testing.T) {
	all := worlds(t, "a", "b")
	s := serve(t, api.Config{Worlds: all, Limits: api.Limits{Requests: api.Slots{All: 1, Token: 1}, Wait: time.Minute}})
	end := steps(t, all[0])
	defer end()
	leave, ended := s.asks("/api/worlds/a")
	require.Eventually(t, func() bool { return s.api.Used("requests", "ada") == 1 }, time.Minute, time.Millisecond)
	leave()
	<-ended
	require.Equal(t, http.StatusOK, s.get("/api/worlds/b").Status)
	require.Equal(t, http.StatusOK, s.get("/metrics").Status)
}

// TestListsSayWhichWorldIsBusy, and have what the others say.
func TestListsSayWhichWorldIsBusy(t *testing.T) {
	all := worlds(t, "a", "b", "c")
	s := serve(t, api.Config{Worlds: all})
	end := steps(t, all[1])
	for range 2 { // one that waits already is not waited for again
		list := ok[api.Worlds](s.get("/api/worlds"))
		require.Len(t, list.Worlds, 3)
		for i, line := range list.Worlds {
			require.Equal(t, i == 1, line.Busy)
			require.Equal(t, all[i].Head(), line.Head, "as it was last seen")
		}
		require.Equal(t, []string{"b"}, ok[api.Inbox](s.get("/api/inbox")).Busy)
	}
	end()
	require.Eventually(t, func() bool { return !ok[api.Worlds](s.get("/api/worlds")).Worlds[1].Busy }, time.Minute, time.Millisecond)
	require.Empty(t, ok[api.Inbox](s.get("/api/inbox")).Busy)
}
