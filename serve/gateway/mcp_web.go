package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/host/relay"
)

// A server that is reached over HTTP is at /a/TOKEN/mcp/NAME/ADDRESS for its client. What the two
// say passes with its headers, and nothing of these is recorded. Each call of a tool is a POST of the gateway's own: it goes on
// though its client goes, and is read on where its stream broke off.

const (
	sessionHeader = "Mcp-Session-Id"
	typeJSON      = "application/json"
	typeEvents    = "text/event-stream"

	maxWeb       = 256         // requests of a server at once
	maxRedirects = 5           // within a server
	maxResumes   = 1000        // of the stream of a call
	maxRetry     = time.Minute // before a stream is read on
	writeTime    = 30 * time.Second
)

var (
	errAstray = errors.New("gateway: the server sends its clients elsewhere")
	errAnswer = errors.New("gateway: the server has not answered what it was asked")
)

// webServer is a server over HTTP.
type webServer struct {
	*mcpServer
	at       *url.URL
	next     http.RoundTripper
	unnamed  atomic.Uint64 // messages of no session
	requests atomic.Int64  // under way
}

// webServer returns the server with a name at an address.
func (g *Gateway) webServer(name, where string) (*webServer, error) {
	at, err := url.Parse(where)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || name == "" || len(name) > maxName {
		return nil, errors.New("want the address of a server over HTTP: " + Tools + "/NAME/https://…")
	}
	key := digest(name, where)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tools.web[key] == nil && len(g.tools.web) >= maxServers {
		return nil, errors.New("too many servers")
	} else if g.tools.web[key] == nil {
		// A connection that is kept is closed before servers close it: of a request that meets its end nobody could tell whether it was read.
		g.tools.web[key] = &webServer{mcpServer: g.newServer(name), at: at, next: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true, IdleConnTimeout: 2 * time.Second, MaxResponseHeaderBytes: maxEnvelope,
		}}
		g.serves(name)
	}
	return g.tools.web[key], nil
}

// WebURL returns where a client finds a server over HTTP. Tools is Gateway.URL of Tools.
func WebURL(tools, name, where string) string {
	return tools + "/" + url.PathEscape(name) + "/" + url.PathEscape(where) // some lose a query
}

// do makes a request of the server, once, and follows it within the server.
func (s *webServer) do(ctx context.Context, method string, header http.Header, body []byte) (*http.Response, error) {
	header = ofAllHops(header)
	for at, n := s.at, 0; n < maxRedirects; n++ {
		req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		if req.Header, req.GetBody = header, nil; len(body) == 0 {
			req.Body = http.NoBody
		}
		resp, err := s.next.RoundTrip(req)
		if err != nil || resp.StatusCode/100 != 3 && resp.StatusCode/100 != 1 {
			return resp, err
		}
		_ = resp.Body.Close()
		if at, err = resp.Location(); err != nil || at.Scheme != s.at.Scheme || at.Host != s.at.Host || resp.StatusCode < http.StatusTemporaryRedirect {
			break
		}
	}
	return nil, errAstray
}

// ofAllHops returns a header without what is about one connection.
func ofAllHops(header http.Header) http.Header {
	header = header.Clone()
	maps.DeleteFunc(header, func(name string, _ []string) bool { return relay.OfTheHop(name) })
	return header
}

// serveWeb serves a request of a client to a server over HTTP.
func (g *Gateway) serveWeb(w http.ResponseWriter, r *http.Request, path string) {
	name, where, _ := strings.Cut(path, "/http")
	if where = "http" + where; r.URL.RawQuery != "" {
		where += "?" + r.URL.RawQuery
	}
	s, err := g.webServer(name, where)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer s.requests.Add(-1)
	// What tells the ids of a session from those of others; clients without sessions may all count from 0.
	scope := strings.Join(r.Header.Values(sessionHeader), ",") + " "
	if scope == " " {
		scope = strconv.FormatUint(s.unnamed.Add(1), 10) + "  "
	}
	switch {
	case s.requests.Add(1) > maxWeb:
		http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
	case r.Method == http.MethodPost:
		s.post(w, r, scope)
	case g.cfg.Offline || r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		s.forward(w, r, nil, "", scope)
	}
}

// readPost reads a message that a client posts, and its bytes; nil: it has answered why it is none.
func readPost(w http.ResponseWriter, r *http.Request) (*mcpMessage, []byte) {
	kind, more, err := mime.ParseMediaType(strings.Join(r.Header.Values("Content-Type"), ","))
	charset := strings.ToLower(more["charset"])
	if err != nil || kind != typeJSON || charset != "" && charset != "utf-8" || r.Header.Get("Content-Encoding") != "" { // others would read other text
		http.Error(w, "want application/json in UTF-8", http.StatusUnsupportedMediaType)
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLine))
	if err != nil {
		answerJSON(w, http.StatusRequestEntityTooLarge, fault(nil, codeRequest, fmt.Sprintf("the message is larger than %d bytes, or was cut", maxLine)))
		return nil, nil
	}
	m, err := readClient(body)
	if err != nil {
		answerJSON(w, http.StatusBadRequest, fault(nil, codeParse, "worldkernel: "+err.Error()))
		return nil, nil
	}
	return m, body
}

// post serves a message of a client.
func (s *webServer) post(w http.ResponseWriter, r *http.Request, scope string) {
	m, body := readPost(w, r)
	if m == nil {
		return
	}
	m.key, m.session = scope+m.key, r.Header.Get(sessionHeader)
	switch {
	case callsTool(m.method) && m.id != nil:
		s.call(w, r, m)
	case callsTool(r.Header.Get("Mcp-Method")) && !callsTool(m.method):
		answerJSON(w, http.StatusBadRequest, fault(m.id, codeRequest, "worldkernel: the header Mcp-Method differs from the message"))
	case m.method != "" && m.id != nil:
		if c, id := s.asksTask(m); c != nil {
			c.left = r.Context().Done()
			answerJSON(w, http.StatusOK, c.serveTask(id))
			return
		}
		s.ask(w, r, m, body, scope)
	case s.g.cfg.Offline || callsTool(m.method) || s.cancels(m, scope) || answersOffer(m): // nothing for the server
		w.WriteHeader(http.StatusAccepted)
	default:
		s.forward(w, r, body, "", scope)
	}
}

// ask serves a request of a client.
func (s *webServer) ask(w http.ResponseWriter, r *http.Request, m *mcpMessage, body []byte, scope string) {
	if refused := s.take(m); refused != nil {
		answerJSON(w, http.StatusBadRequest, refused)
		return
	}
	if s.meet(m); s.g.cfg.Offline {
		answerJSON(w, http.StatusOK, s.recorded(m))
		return
	}
	if !s.forward(w, r, body, m.key, scope) {
		s.answers(m.key)
	}
}

func answerJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// forward passes what a client sends on, and the answer back. It reports whether that was a stream of a session, which
// the client may read on. Key is of the request that it is; empty: it is none.
func (s *webServer) forward(w http.ResponseWriter, r *http.Request, body []byte, key, scope string) (resumes bool) {
	resp, err := s.do(r.Context(), r.Method, r.Header, body)
	if err == nil {
		defer resp.Body.Close() //nolint:errcheck // it was read
		s.mu.Lock()
		if asked := s.asked[key]; asked != nil && asked.method == methodInitialize {
			s.begins(asked, resp.Header.Get(sessionHeader))
		} else if r.Method == http.MethodDelete {
			delete(s.can, r.Header.Get(sessionHeader))
		}
		s.mu.Unlock()
		err = s.readAnswer(resp, key, scope)
	}
	if err != nil {
		http.Error(w, "worldkernel: "+err.Error(), http.StatusBadGateway)
		return false
	}
	if err := passOn(w, resp); err != nil {
		panic(http.ErrAbortHandler) // it ends as it came: the connection is reset
	}
	return isKind(resp, typeEvents) && r.Header.Get(sessionHeader) != ""
}

// passOn answers with what a server has answered.
func passOn(w http.ResponseWriter, resp *http.Response) error {
	for name, values := range ofAllHops(resp.Header) { // order cannot show: a map is built from a map
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	out := http.NewResponseController(w)
	for buffer := make([]byte, 32<<10); ; {
		_ = out.Flush()
		n, err := resp.Body.Read(buffer)
		if _, gone := w.Write(buffer[:n]); gone != nil || errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func isKind(resp *http.Response, want string) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == want
}

// readAnswer has the body of an answer be what its client may have of it, and gives calls their answers. Key is of the request that is
// answered, with its scope; empty: it is none.
func (s *webServer) readAnswer(resp *http.Response, key, scope string) error {
	if of := resp.Header.Get("Content-Encoding"); of != "" && of != "identity" {
		return fmt.Errorf("%w: in an encoding that nobody has asked for", errAnswer)
	}
	if isKind(resp, typeEvents) {
		resp.Body = &events{Closer: resp.Body, in: mcp.NewEvents(resp.Body), s: s.mcpServer, scope: scope}
		return nil
	}
	data, whole, err := mcp.ReadBody(resp.Body, maxLine)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	ok := resp.StatusCode < http.StatusMultipleChoices
	m, err := readServer(data)
	if !whole {
		id := idKey(mcp.LineID(data)) // what does not have it is no answer
		if data = nil; ok && key == scope+id {
			data = s.largeAnswer(scope, id)
		}
		if data == nil {
			return errAnswer
		}
	} else if err == nil && !s.passes(m, scope) && (ok || m.result != nil) || err != nil && (ok && key != "" && len(data) > 0 || bytes.Contains(data, []byte(`"result"`))) {
		return errAnswer
	} else if err == nil && m.changed {
		data = m.line
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return nil
}
