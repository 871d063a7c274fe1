package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
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

// TestConnectionsThatWaitGiveWay has more callers connect than the server takes: those
// that say nothing, too little, or no token that it knows go, and who follows stays.
func TestConnectionsThatWaitGiveWay(t *testing.T) {
	const limit = 8
	limits := api.Limits{Connections: api.Connections{All: limit}, BodyGrace: time.Hour} // none goes for its own slowness
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: limits})
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
	gone := make(chan bool)
	for _, conn := range strangers {
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			select {
			case gone <- true:
			case <-t.Context().Done():
			}
		}()
	}
	for range len(strangers) - (limit - 1) {
		<-gone
	}
	ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
	e, more := f.next()
	require.True(t, more, "who follows with a token stays")
	require.EqualValues(t, 2, e.id)
}

// TestSlowBodyGivesItsSlotBack has a caller send less of a body than it has to.
func TestSlowBodyGivesItsSlotBack(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Requests: api.Slots{All: 1}, BodyGrace: 100 * time.Millisecond, BodyRate: 1 << 20}})
	conn := s.dial(fmt.Sprintf("POST /api/worlds/w/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", s.http.Listener.Addr(), s.secrets["ada"]))
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute))) //nolint:forbidigo // of a socket
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer res.Body.Close() //nolint:errcheck // of a test
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestTimeout, res.StatusCode, "%s", body)
	require.Contains(t, string(body), "urn:worldkernel:problem:slow-body")
	require.Eventually(t, func() bool { return s.get("/api/worlds").Status == http.StatusOK }, time.Minute, time.Millisecond)
}

// ask makes a request on a connection of its own, which stays open.
func (s *served) ask(user, path, accept string) (conn net.Conn, status int, head http.Header) {
	s.t.Helper()
	conn = s.dial(fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: %s\r\n\r\n",
		path, s.http.Listener.Addr(), s.secrets[user], accept))
	require.NoError(s.t, conn.SetReadDeadline(time.Now().Add(time.Minute))) //nolint:forbidigo // of a socket
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)               //nolint:bodyclose // that of a stream ends with its connection
	require.NoError(s.t, err)
	if accept == "application/json" {
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(s.t, err)
	}
	return conn, res.StatusCode, res.Header
}

// TestNoTokenTakesAllConnections: one more than it may have takes the place of the one
// that is longest without a request, and none where all have one.
func TestNoTokenTakesAllConnections(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Connections: api.Connections{All: 8}}})
	const listed, records = "/api/worlds", "/api/worlds/w/records"
	idle := func(n int) { // which a server finds out after it has answered
		require.Eventually(t, func() bool { return s.api.Idle("ada") == n }, time.Minute, time.Millisecond)
	}
	first, _, _ := s.ask("ada", listed, "application/json")
	idle(1)
	second, _, _ := s.ask("ada", listed, "application/json")
	idle(2)
	s.ask("ada", listed, "application/json")
	idle(2)
	_, err := first.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, second.SetReadDeadline(time.Now().Add(50*time.Millisecond))) //nolint:forbidigo // may be late: what must not come cannot be waited for
	_, err = second.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	for range 2 {
		_, status, _ := s.ask("ada", records, "text/event-stream")
		require.Equal(t, http.StatusOK, status)
	}
	require.NoError(t, second.SetReadDeadline(time.Now().Add(time.Minute))) //nolint:forbidigo // of a socket
	_, err = second.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "it had no request")
	conn, status, head := s.ask("ada", listed, "application/json")
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, "1", head.Get("Retry-After"))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "who is refused is connected no more")

	for range 2 { // as many as there are besides those of strangers
		for _, user := range []string{"reader", "admin", "approver"} {
			s.ask(user, listed, "application/json")
		}
	}
	_, status, _ = s.ask("hand", listed, "application/json")
	require.Equal(t, http.StatusOK, status)
}
