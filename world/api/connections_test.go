package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world/api"
)

// dial connects to a server and says something, which need not be a whole request.
func (s *served) dial(said string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.http.Listener.Addr().String())
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, said)
	require.NoError(s.t, err)
	return conn
}

func TestHealthIsToldWhoeverAsksForWhat(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Requests: 2}})
	free := s.api.Busy()
	require.Equal(t, http.StatusOK, s.get("/healthz").Status)
	s.get("/api/worlds").problem(http.StatusServiceUnavailable, "busy")
	free()
	require.Equal(t, http.StatusOK, s.get("/api/worlds").Status)
}

// TestConnectionsThatWaitGiveWay has more callers connect than the server takes: those
// that say nothing, too little, or no token that it knows go, and who follows stays.
func TestConnectionsThatWaitGiveWay(t *testing.T) {
	const limit = 8
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Connections: limit}})
	f := s.follow("?after=1", "")
	var strangers []net.Conn
	for i := range 10 * limit {
		strangers = append(strangers, s.dial([]string{
			"", "GET /api/worlds HT", "GET /api/worlds HTTP/1.1\r\nHost: " + s.http.Listener.Addr().String() + "\r\nAuthorization: Bearer wk_x\r\n\r\n",
			"POST /api/worlds/w/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n",
		}[i%4]))
		if i%limit == 0 {
			require.Equal(t, http.StatusOK, s.get("/api/worlds").Status, "who is known is answered")
		}
	}
	left, soon := 0, time.Now().Add(2*time.Second) //nolint:forbidigo // of a socket
	for _, conn := range strangers {
		require.NoError(t, conn.SetReadDeadline(soon))
		_, err := io.Copy(io.Discard, conn)
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() {
			left++
		}
	}
	require.LessOrEqual(t, left, limit-1, "the others have gone")
	ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
	e, more := f.next()
	require.True(t, more, "who follows with a token stays")
	require.EqualValues(t, 2, e.id)
}

// TestSlowBodyGivesItsSlotBack has a caller send less of a body than it has to.
func TestSlowBodyGivesItsSlotBack(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Requests: 1, BodyGrace: 100 * time.Millisecond, BodyRate: 1 << 20}})
	conn := s.dial(fmt.Sprintf("POST /api/worlds/w/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", s.http.Listener.Addr(), s.secrets["ada"]))
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second))) //nolint:forbidigo // of a socket
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer res.Body.Close() //nolint:errcheck // of a test
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, res.StatusCode, "%s", body)
	require.Eventually(t, func() bool { return s.get("/api/worlds").Status == http.StatusOK }, 10*time.Second, time.Millisecond)
	ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
}
