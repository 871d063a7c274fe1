package api_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
)

// flood pipelines requests on a connection, and returns how many were answered with a
// status before it was closed.
func (s *served) flood(path, authorization string) (answered map[int]int) {
	s.t.Helper()
	const many = 200
	conn := s.dial("")
	one := "GET " + path + " HTTP/1.1\r\nHost: " + s.http.Listener.Addr().String() + "\r\n" + authorization + "\r\n"
	go func() { _, _ = io.WriteString(conn, strings.Repeat(one, many)) }()
	require.NoError(s.t, conn.SetReadDeadline(time.Now().Add(time.Minute))) //nolint:forbidigo // of a socket
	answered = make(map[int]int)
	for from := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(from, nil)
		if err != nil {
			require.False(s.t, isTimeout(err), "the connection is closed")
			return answered
		}
		_, _ = io.Copy(io.Discard, res.Body)
		require.NoError(s.t, res.Body.Close())
		answered[res.StatusCode]++
	}
}

func isTimeout(err error) bool {
	var slow interface{ Timeout() bool }
	return errors.As(err, &slow) && slow.Timeout()
}

// TestStrangersAreAnsweredNowAndThen: requests without a token cost an address its
// connection, once they come too fast; who has a token is answered.
func TestStrangersAreAnsweredNowAndThen(t *testing.T) {
	const conns, most = 8, 80 // of 1,600 requests: the seconds that the test may take are in it
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Wait: impatient, Strangers: api.Strangers{All: 4, Address: 2}}})
	for name, f := range map[string]struct {
		path, authorization string
		status              int
	}{
		"no token":    {"/api/worlds", "", http.StatusUnauthorized},
		"a wrong one": {"/api/worlds/w", "Authorization: Bearer wk_x\r\n", http.StatusUnauthorized},
		"no path":     {"/nothing", "", http.StatusNotFound},
		"health":      {"/healthz", "", http.StatusOK},
		"and a token": {"/healthz", "Authorization: Bearer " + s.secrets["ada"] + "\r\n", http.StatusOK},
	} {
		answered := 0
		for range conns {
			got := s.flood(f.path, f.authorization)
			require.Equal(t, 1, got[http.StatusTooManyRequests], "%s: %v", name, got)
			require.LessOrEqual(t, len(got), 2, "%s: %v", name, got)
			answered += got[f.status]
		}
		require.LessOrEqual(t, answered, most, name)
		require.Equal(t, http.StatusOK, s.get("/api/worlds/w").Status, name)
	}
}

// TestPageIsThereWhole for whoever opens it in many tabs: its parts take no rate, and what
// strangers ask of the API does.
func TestPageIsThereWhole(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("part")) })
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Page: page, Limits: api.Limits{Wait: impatient, Strangers: api.Strangers{All: 4, Address: 2}}})
	status := func(path string) int {
		req := s.request("GET", path, nil)
		req.Header.Del("Authorization")
		res, err := s.http.Client().Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	for range 200 {
		require.Equal(t, http.StatusOK, status("/ui/app.js"))
	}
	require.Equal(t, http.StatusUnauthorized, status("/api/worlds"), "the page took none of it")
	require.Eventually(t, func() bool { return status("/api/worlds") == http.StatusTooManyRequests }, time.Minute, time.Millisecond)
}

// TestWhatIsRefusedTakesATurn: a token whose requests fail at once waits for itself.
func TestWhatIsRefusedTakesATurn(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Wait: time.Minute, Turns: api.Slots{All: 4, Token: 1}}})
	for path, status := range map[string]int{
		"/nothing": http.StatusNotFound, "/api/worlds/x": http.StatusNotFound, "/api/worlds?x=1": http.StatusBadRequest,
	} {
		free := s.api.Busy("turns", "ada", "", 1)
		got := make(chan int)
		go func() { got <- s.get(path).Status }()
		require.Eventually(t, func() bool { return s.api.Queued("turns") == 1 }, time.Minute, time.Millisecond, path)
		free()
		require.Equal(t, status, <-got, path)
	}
}
