package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/host/mcp"
)

// groupWeb is the client of a server over HTTP in a group.
type groupWeb struct {
	*member
	at  string
	out io.Writer

	under    sync.WaitGroup
	renewing sync.Mutex

	mu               sync.Mutex // of what is written, too
	session, version string
	hello            []byte // how the client has begun the session
}

// run sends the server the messages of a reader, until that ends or ctx does.
func (w *groupWeb) run(ctx context.Context, in io.ReadCloser) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(ctx, func() { _ = in.Close() })()
	eachLine(in, maxLine+maxEnvelope, func(line []byte) {
		m, err := readServer(line)
		switch {
		case err != nil:
		case m.method == methodInitialize, m.method == methodInitialized: // what comes after them needs the session, and is heard
			w.post(ctx, m)
		case m.method == "": // nobody answers an answer
			m.id = nil
			fallthrough
		default:
			w.under.Go(func() { w.post(ctx, m) })
		}
	}, nil) // the group says nothing that is longer
	end()
	w.under.Wait()
	if w.session != "" {
		ctx, end := context.WithTimeout(context.WithoutCancel(ctx), serverGrace)
		defer end()
		if resp, err := w.do(ctx, http.MethodDelete, nil, make(map[string]string)); err == nil {
			_ = resp.Body.Close()
		}
	}
	return errors.New("its client has gone")
}

func (w *groupWeb) do(ctx context.Context, method string, body []byte, header map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if w.Header != nil {
		req.Header = w.Header.Clone()
	}
	w.mu.Lock()
	header[sessionHeader], header["Mcp-Protocol-Version"] = w.session, cmp.Or(header["Mcp-Protocol-Version"], w.version)
	w.mu.Unlock()
	for name, value := range header { // order cannot show: a map is built from a map
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return http.DefaultClient.Do(req)
}

// post sends a message, and has the client hear the answer.
func (w *groupWeb) post(ctx context.Context, m *mcpMessage) {
	var params struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.params, &params) // as far as it has this form
	header := map[string]string{
		"Content-Type": typeJSON, "Accept": typeJSON + ", " + typeEvents, "Mcp-Method": m.method, "Mcp-Name": cmp.Or(params.Name, params.URI),
		"Mcp-Protocol-Version": params.Meta.Version,
	}
	w.mu.Lock()
	before := w.session
	w.mu.Unlock()
	resp, err := w.do(ctx, http.MethodPost, m.line, header)
	if err == nil && resp.StatusCode == http.StatusNotFound && before != "" && w.renew(ctx, before) { // it was not taken
		_ = resp.Body.Close()
		resp, err = w.do(ctx, http.MethodPost, m.line, header) //nolint:bodyclose // hear does
	}
	if err != nil {
		w.say(fault(m.id, codeInternal, "worldkernel: "+err.Error()), m)
		return
	}
	if m.method == methodInitialize {
		w.mu.Lock()
		w.session, w.hello = resp.Header.Get(sessionHeader), m.line
		w.mu.Unlock()
	}
	if answered, text := w.hear(resp, m); !answered {
		w.say(fault(m.id, codeInternal, fmt.Sprintf("worldkernel: the server %s has not answered: status %d: %.200q", w.Name, resp.StatusCode, text)), m)
	}
	if m.method == methodInitialized {
		w.listens(ctx)
	}
}

// renew begins another session, as the client has begun the first, in the place of one that the server does not know any more. It
// reports whether there is another one.
func (w *groupWeb) renew(ctx context.Context, lost string) bool {
	w.renewing.Lock()
	defer w.renewing.Unlock()
	w.mu.Lock()
	session, hello := w.session, w.hello
	if session == lost {
		w.session = ""
	}
	w.mu.Unlock()
	if session != lost { // it was renewed for another request
		return session != ""
	}
	for _, line := range [][]byte{hello, []byte(`{"jsonrpc":"2.0","method":"` + methodInitialized + `"}`)} {
		resp, err := w.do(ctx, http.MethodPost, line, map[string]string{"Content-Type": typeJSON, "Accept": typeJSON + ", " + typeEvents})
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxLine)) // the client has heard the first
		_ = resp.Body.Close()
		w.mu.Lock()
		w.session = cmp.Or(resp.Header.Get(sessionHeader), w.session)
		session = w.session
		w.mu.Unlock()
	}
	w.listens(ctx)
	return session != ""
}

// listens has the client hear what the server says of itself. It waits for that to begin, for a while: what the server says before is lost.
func (w *groupWeb) listens(ctx context.Context) {
	begun, cancel := context.WithTimeout(ctx, serverGrace)
	w.under.Go(func() { w.listen(ctx, cancel) })
	<-begun.Done()
}

func (w *groupWeb) listen(ctx context.Context, begun func()) {
	for ctx.Err() == nil {
		resp, err := w.do(ctx, http.MethodGet, nil, map[string]string{"Accept": typeEvents})
		begun()
		if err != nil {
			return
		}
		if w.hear(resp, &mcpMessage{}); resp.StatusCode != http.StatusOK {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// hear has the client hear an answer, and reports whether it answers a message. Text is what the answer is, unless it is a stream.
func (w *groupWeb) hear(resp *http.Response, of *mcpMessage) (answered bool, text []byte) {
	defer resp.Body.Close() //nolint:errcheck // it was read, or is of no use
	if !isKind(resp, typeEvents) {
		text, _ = io.ReadAll(io.LimitReader(resp.Body, maxLine)) // what is cut is no message
		return w.say(text, of), text
	}
	for r := mcp.NewEvents(resp.Body); ; {
		e, err := mcp.ReadEvent(r, maxLine+maxEnvelope)
		if err != nil {
			return answered, nil
		}
		answered = e.Data != nil && w.say(e.Data, of) || answered
	}
}

// say has the client hear a message, and reports whether it answers another one.
func (w *groupWeb) say(line []byte, of *mcpMessage) (answers bool) {
	m, err := readServer(line)
	if err != nil || m.method == "" && (of.id == nil || m.key != of.key) {
		return of.id == nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if of.method == methodInitialize {
		var said struct {
			Version string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(m.result, &said) // of a fault there is none
		w.version = cmp.Or(said.Version, w.version)
	}
	_, _ = w.out.Write(append(m.line, '\n'))
	return m.method == ""
}
