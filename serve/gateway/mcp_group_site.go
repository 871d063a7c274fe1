package gateway

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/host/mcp"
)

// GroupSite serves several servers as one over HTTP, in the protocol with sessions: each session has a Group of its own. Of
// clients of the protocol without sessions it takes no request, so that they begin a session. It is safe for concurrent use.
type GroupSite struct {
	Name string                 // as clients know it
	New  func() (*Group, error) // makes the group of a session, without Client and Out

	path string
	life context.Context // of all sessions

	under sync.WaitGroup // groups that run

	mu       sync.Mutex
	sessions map[string]*groupSession
}

// Listen listens at an address, which is one of this machine alone.
func Listen(address string) (net.Listener, error) {
	on, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if at, _ := on.Addr().(*net.TCPAddr); at == nil || !at.IP.IsLoopback() {
		return nil, errors.Join(errors.New("want an address of this machine alone, such as 127.0.0.1:0"), on.Close())
	}
	return on, nil
}

// Serve serves until ctx ends, on a listener of Listen. Told is told where: the address has a secret in it.
func (x *GroupSite) Serve(ctx context.Context, on net.Listener, told func(url string)) error {
	x.path, x.life, x.sessions = "/a/"+rand.Text()+"/"+Tools+"/"+url.PathEscape(x.Name), ctx, make(map[string]*groupSession)
	server := &http.Server{Handler: x, ReadHeaderTimeout: writeTime, MaxHeaderBytes: maxEnvelope}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	told("http://" + on.Addr().String() + x.path)
	if err := server.Serve(on); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	x.under.Wait()
	return nil
}

// groupSession is a session of a client.
type groupSession struct {
	in *queue

	attached int       // requests of HTTP, guarded by the site
	last     time.Time // that came or went, likewise

	mu        sync.Mutex
	waits     map[string]*groupWait // by id: requests that were not answered
	others    chan []byte           // what servers say that answers nothing
	listeners atomic.Int64          // to it alone
	gone      chan struct{}         // closed when the group has ended, and all that it has said was heard
}

// groupWait is a request that waits for its answer.
type groupWait struct {
	id     json.RawMessage // by which the servers know it
	about  string          // equal requests have equal ones
	key    string          // the id by which its client asks, which is another one where it has asked again
	left   bool            // its client has gone: who asks again gets the answer
	ended  chan struct{}   // closed when it was answered or cancelled
	answer *mcpMessage     // nil: there is none
}

// end ends a wait, once.
func (w *groupWait) end(answer *mcpMessage) {
	if !isClosed(w.ended) {
		w.answer = answer
		close(w.ended)
	}
}

// ServeHTTP implements http.Handler.
func (x *GroupSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !loopback(r.Host) || subtle.ConstantTimeCompare([]byte(r.URL.EscapedPath()), []byte(x.path)) != 1 {
		http.Error(w, "no such servers", http.StatusNotFound)
		return
	}
	if ofElsewhere(r) {
		http.Error(w, pageElsewhere, http.StatusForbidden)
		return
	}
	x.mu.Lock()
	s := x.sessions[r.Header.Get(sessionHeader)]
	x.attach(s, 1)
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.attach(s, -1)
	}()
	var m *mcpMessage
	if r.Method == http.MethodPost {
		if m, _ = readPost(w, r); m == nil {
			return
		}
		if m.method == methodInitialize && s == nil {
			if s = x.begin(w); s == nil {
				return
			}
		}
	}
	switch {
	case s == nil && m != nil && r.Header.Get(sessionHeader) == "":
		answerJSON(w, http.StatusBadRequest, fault(m.id, codeRequest, "worldkernel: the protocol with sessions is spoken here: begin one"))
	case s == nil:
		http.Error(w, "no such session", http.StatusNotFound)
	case m != nil && (m.method == "" || m.id == nil):
		s.in.put(s.cancelled(m), []byte("\n"))
		w.WriteHeader(http.StatusAccepted)
	case m != nil:
		s.ask(w, r, m)
	case r.Method == http.MethodGet:
		s.tell(w, r)
	case r.Method == http.MethodDelete:
		s.in.close()
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// attach counts the requests of a session; nil: of none. It is called with mu held.
func (x *GroupSite) attach(s *groupSession, more int) {
	if s != nil {
		s.attached, s.last = s.attached+more, time.Now()
	}
}

// endOldest ends the session whose client has been away for longest, if one has, and reports that. It is called with mu held.
func (x *GroupSite) endOldest() bool {
	var oldest string
	for id, s := range x.sessions { // order cannot show: times differ
		if s.attached == 0 && (oldest == "" || s.last.Before(x.sessions[oldest].last)) {
			oldest = id
		}
	}
	if oldest != "" {
		x.sessions[oldest].in.close()
		delete(x.sessions, oldest)
	}
	return oldest != ""
}

// begin begins a session; nil: it has answered why there is none.
func (x *GroupSite) begin(w http.ResponseWriter) *groupSession {
	g, err := x.New()
	if err != nil {
		http.Error(w, "worldkernel: "+err.Error(), http.StatusInternalServerError)
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.sessions) >= maxServers && !x.endOldest() {
		http.Error(w, "too many sessions", http.StatusServiceUnavailable)
		return nil
	}
	s, id := &groupSession{attached: 1, waits: make(map[string]*groupWait), others: make(chan []byte, maxAsked), gone: make(chan struct{})}, rand.Text()
	client, in := io.Pipe()
	said, out := io.Pipe()
	s.in = newQueue(in, func(error) { _ = in.Close() })
	g.Client, g.Out = client, out
	x.sessions[id] = s
	heard := make(chan struct{})
	go func() {
		eachLine(said, maxLine+maxEnvelope, s.hear, nil) // the group says nothing that is longer
		close(heard)
	}()
	x.under.Go(func() {
		_ = g.Run(x.life) // each request is told what is wrong with its server
		_ = out.Close()
		_ = client.Close()
		<-heard
		close(s.gone)
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.sessions, id)
	})
	w.Header().Set(sessionHeader, id)
	return s
}

// hear takes what the group says.
func (s *groupSession) hear(line []byte) {
	m, err := readServer(line)
	if err != nil {
		return
	}
	if m.method == "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		if wait := s.waits[m.key]; wait != nil {
			wait.end(m)
		}
		return
	}
	select {
	case s.others <- m.line:
	default: // nobody listens
	}
}

// cancelled takes what is no request. Where it cancels one, that is answered with nothing. It returns what the servers are sent.
func (s *groupSession) cancelled(m *mcpMessage) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, wait := range s.waits { // order cannot show: ids differ
		if wait.key == m.takenBack() && !isClosed(wait.ended) {
			wait.end(nil)
			delete(s.waits, key)
			return m.with("requestId", wait.id)
		}
	}
	return m.line
}

// waitFor returns what a request waits for, which is what an equal one has waited for whose client has gone. A call whose equal
// waits for its client waits for a while as well: that may be about to go. Nil: the id is taken.
func (s *groupSession) waitFor(m *mcpMessage) (wait *groupWait, key string) {
	about := digest(m.method, string(with(m.params, []byte("null"), "_meta")))
	for begun := time.Now(); ; <-time.After(lookAgain) {
		s.mu.Lock()
		twin := false
		for id, of := range s.waits { // order cannot show: they are equal
			if of.about == about && of.left {
				wait, key = of, id
			}
			twin = twin || of.about == about
		}
		if wait == nil && twin && m.method == methodCall && time.Since(begun) < twinTime {
			s.mu.Unlock()
			continue
		}
		defer s.mu.Unlock()
		if wait == nil && len(s.waits) >= maxAsked || s.waits[m.key] != nil {
			maps.DeleteFunc(s.waits, func(_ string, of *groupWait) bool { return of != wait && of.left && isClosed(of.ended) })
		}
		switch {
		case wait != nil:
			wait.key, wait.left = m.key, false
		case s.waits[m.key] == nil && len(s.waits) < maxAsked:
			wait, key = &groupWait{id: m.id, about: about, key: m.key, ended: make(chan struct{})}, m.key
			s.waits[key] = wait
			s.in.put(m.line, []byte("\n"))
		}
		return wait, key
	}
}

// ask answers a request of the client, or one that is made again since its stream broke.
func (s *groupSession) ask(w http.ResponseWriter, r *http.Request, m *mcpMessage) {
	wait, key := s.waitFor(m)
	if wait == nil {
		answerJSON(w, http.StatusBadRequest, fault(m.id, codeRequest, "worldkernel: the id is that of another request that was not answered yet, or there are too many of these"))
		return
	}
	x := &webCall{w: w, header: r.Header}
	if !s.await(r.Context(), x, wait, m) {
		return
	}
	s.mu.Lock()
	if s.waits[key] == wait {
		delete(s.waits, key)
	}
	answer, cancelled := wait.answer, wait.answer == nil && isClosed(wait.ended)
	s.mu.Unlock()
	switch {
	case cancelled:
		x.end(nil)
	case answer == nil:
		x.status.Store(http.StatusNotFound) // so the client begins another
		x.end(fault(m.id, codeInternal, "worldkernel: the session has ended"))
	case answer.result == nil:
		x.end(response(m.id, "error", answer.fault))
	default:
		x.end(response(m.id, "result", answer.result))
	}
}

// await waits for the answer to a request, and reports whether its client does as well. What servers say meanwhile is for that client,
// unless one listens to a stream of such.
func (s *groupSession) await(ctx context.Context, x *webCall, wait *groupWait, m *mcpMessage) bool {
	for {
		others := s.others
		if s.listeners.Load() > 0 || m.method == methodInitialize || !x.takesEvents() {
			others = nil
		}
		select {
		case line := <-others: // those of before the answer are there before it
			_, _ = x.Write(new(mcp.Event).Text(line))
			continue
		default:
		}
		select {
		case line := <-others:
			_, _ = x.Write(new(mcp.Event).Text(line))
		case <-wait.ended:
			if len(others) == 0 {
				return true
			}
		case <-s.gone:
			return true
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			wait.left = true
			return false
		}
	}
}

// tell streams what servers say that answers nothing.
func (s *groupSession) tell(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), typeEvents) {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	s.listeners.Add(1)
	defer s.listeners.Add(-1)
	w.Header().Set("Content-Type", typeEvents)
	out := http.NewResponseController(w)
	for _ = out.Flush(); ; _ = out.Flush() {
		select {
		case line := <-s.others:
			if _, err := w.Write(new(mcp.Event).Text(line)); err != nil {
				return
			}
		case <-s.gone:
			return
		case <-r.Context().Done():
			return
		}
	}
}
