package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/show/view"
)

// event is one server-sent event.
type event struct {
	id   journal.Seq
	kind string
	data string
}

// follower reads a stream.
type follower struct {
	t    testing.TB
	res  *http.Response
	text *bufio.Scanner
	end  context.CancelFunc
}

func (s *served) follow(query, lastEventID string) *follower {
	s.t.Helper()
	return s.followPath("/api/worlds/w/records"+query, lastEventID)
}

func (s *served) followPath(path, lastEventID string) *follower {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	req := s.request("GET", path, nil).WithContext(ctx)
	req.Header.Set("Accept", "text/event-stream")
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	res, err := s.http.Client().Do(req) //nolint:bodyclose // the follower closes it
	require.NoError(s.t, err)
	s.check(req, res, nil)
	require.Equal(s.t, http.StatusOK, res.StatusCode)
	require.Equal(s.t, "text/event-stream", res.Header.Get("Content-Type"))
	f := &follower{s.t, res, bufio.NewScanner(res.Body), cancel}
	s.t.Cleanup(f.close)
	return f
}

func (f *follower) close() {
	f.end()
	_ = f.res.Body.Close() // it was only read
}

// next returns the next event with data; ok is false where the stream has ended.
func (f *follower) next() (e event, ok bool) {
	for f.text.Scan() {
		name, value, _ := strings.Cut(f.text.Text(), ": ")
		switch name {
		case "id":
			id, err := strconv.ParseUint(value, 10, 64)
			require.NoError(f.t, err)
			e.id = journal.Seq(id)
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if e.data != "" {
				return e, true
			}
		}
	}
	return e, false
}

// TestFollowersMissNothingAndGetNothingTwice: followers come, go, and resume where
// they were, while others submit and step.
func TestFollowersMissNothingAndGetNothingTwice(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	const submitters, each = 3, 12
	var work sync.WaitGroup
	for i := range submitters {
		work.Go(func() {
			for range each {
				s.post("/api/worlds/w/events", act(fmt.Sprint("bot", i), map[string]any{"emit": "ping", "to": "x"}))
				s.post("/api/worlds/w/step", nil)
			}
		})
	}
	const last = submitters * each // so many clock.advanced are there in the end
	for i := range 3 {
		work.Go(func() {
			var got []event
			f, ticks, resume := s.follow("", ""), 0, ""
			for ticks < last {
				e, more := f.next()
				if !more {
					t.Error("the stream has ended")
					return
				}
				if got = append(got, e); e.kind == "clock.advanced" {
					ticks++
				}
				if resume = strconv.Itoa(int(e.id)); len(got)%(17+i) == 0 {
					f.close()
					f = s.follow("", resume)
				}
			}
			for n, e := range got {
				if e.id != journal.Seq(n+1) {
					t.Errorf("event %d is #%d", n, e.id)
					return
				}
			}
		})
	}
	work.Wait()
}

func TestStreamSaysWhatPagesSay(t *testing.T) {
	s := lived(t)
	for _, query := range []string{"", "?after=5", "?kind=intent.*&kind=timer.set", "?cell=bot/a", "?cell=bot/a&kind=cell.stepped&after=9", "?from=3&to=t2", "?from=t1", "?to=head"} {
		page := ok[struct{ Records []json.RawMessage }](s.get("/api/worlds/w/records" + query))
		require.NotEmpty(t, page.Records, query)
		f := s.follow(query, "")
		for _, want := range page.Records {
			e, more := f.next()
			require.True(t, more)
			require.Equal(t, string(want), e.data)
			var line struct {
				ID   journal.Seq
				Kind string
			}
			require.NoError(t, json.Unmarshal(want, &line))
			require.Equal(t, line.ID, e.id)
			require.Equal(t, line.Kind, e.kind)
		}
		if strings.HasSuffix(query, "to=t2") {
			for f.text.Scan() { // how far it looked, and no heartbeat
				require.NotEqual(t, ":", f.text.Text())
			}
			require.NoError(t, f.text.Err(), "the range has ended, and so does the stream")
		}
		f.close()
	}
	req := s.request("GET", "/api/worlds/w/records", nil)
	req.Header.Set("Accept", "text/html, text/event-stream;q=0.5")
	req.Header.Set("Last-Event-ID", "x")
	s.do(req).problem(http.StatusBadRequest, "malformed")
}

// TestStreamOfFewSaysHowFarItLooked: who comes back need not pass all again.
func TestStreamOfFewSaysHowFarItLooked(t *testing.T) {
	s := lived(t)
	head := ok[view.Status](s.get("/api/worlds/w")).Head.ID
	f := s.follow("?kind=world.created", "")
	require.True(t, f.text.Scan())
	require.Equal(t, "id: 1", f.text.Text())
	for f.text.Scan() && f.text.Text() != fmt.Sprintf("id: %d", head) {
		continue
	}
	require.NoError(t, f.text.Err())
}

func TestIdleStreamsLiveOn(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Heartbeat: time.Millisecond}})
	f := s.follow("?after=1", "")
	for range 3 {
		require.True(t, f.text.Scan())
		require.Equal(t, ":", f.text.Text())
		require.True(t, f.text.Scan())
	}
	ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
	e, more := f.next()
	require.True(t, more)
	require.EqualValues(t, 2, e.id)
}

func TestShutdownEndsStreamsAndFinishesRequests(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w")})
	f := s.follow("", "")
	_, more := f.next()
	require.True(t, more)
	require.NoError(t, s.http.Config.Shutdown(t.Context()))
	_, more = f.next()
	require.False(t, more)
	require.NoError(t, f.text.Err(), "the stream ends as streams do")
	require.NoError(t, s.api.Close())
}

// pipes is a network of which every connection holds nothing: what is written waits
// for its reader.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// requests is told of every request that is over.
type requests chan string

func (r requests) Write(b []byte) (int, error) { r <- string(b); return len(b), nil }

// TestSlowReaderIsDroppedAndResumes: one who reads nothing holds nobody up.
func TestSlowReaderIsDroppedAndResumes(t *testing.T) {
	over := make(requests, 8)
	s := serve(t, api.Config{
		Worlds: worlds(t, "w"), Log: slog.New(slog.NewTextHandler(over, nil)), Limits: api.Limits{Flush: 10 * time.Millisecond},
	})
	for range 30 { // more than a connection's buffers hold
		ok[api.Submitted](s.post("/api/worlds/w/events", act("a", map[string]any{"note": strings.Repeat("x", 3000)})))
		<-over
	}
	_, end := s.followByPipe()
	line := <-over // it has been given up, though its reader has not read a record
	require.Contains(t, line, "status=200")
	end()

	patient, cfg := *s, s.cfg
	cfg.Limits = api.Limits{}
	patient.start(cfg)
	e, more := patient.follow("", "1").next()
	require.True(t, more)
	require.EqualValues(t, 2, e.id)
}

// TestSlowReaderHoldsNoTurn is one who begins to read what fits into the server's buffers.
func TestSlowReaderHoldsNoTurn(t *testing.T) {
	s := serve(t, api.Config{Worlds: worlds(t, "w"), Limits: api.Limits{Turns: api.Slots{All: 4, Token: 1}}})
	ok[api.Submitted](s.post("/api/worlds/w/events", act("a")))
	reader, end := s.followByPipe()
	defer end()
	_, err := reader.Read(make([]byte, 1)) // the server waits for the next
	require.NoError(t, err)
	require.Zero(t, s.api.Used("turns", "ada"))
	require.Equal(t, 1, s.api.Used("followers", "ada"))
}

// followByPipe follows the world w over a connection without a buffer, of which the head
// of the answer is read, until end.
func (s *served) followByPipe() (reader net.Conn, end func()) {
	net0 := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := s.api.HTTPServer()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(net0) }()
	reader, its := net.Pipe()
	net0.conns <- its
	_, err := fmt.Fprintf(reader, "GET /api/worlds/w/records HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n", s.secrets["ada"])
	require.NoError(s.t, err)
	for head, one := "", make([]byte, 1); err == nil && !strings.HasSuffix(head, "\r\n\r\n"); head += string(one) {
		_, err = reader.Read(one) // which the server may have given up
	}
	return reader, func() {
		require.NoError(s.t, srv.Close())
		require.ErrorIs(s.t, <-served, http.ErrServerClosed)
		require.NoError(s.t, reader.Close())
	}
}
