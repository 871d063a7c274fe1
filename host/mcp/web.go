package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
)

const (
	sessionHeader = "Mcp-Session-Id" // names the session of a request
	typeJSON      = "application/json"
	typeEvents    = "text/event-stream"
	maxQuoted     = 200         // bytes of an answer that an error has
	maxResumes    = 5           // of an answer that does not go on
	maxResumeWait = time.Minute // before the rest of an answer is asked for
	codeNoSession = -32001      // what servers say that do not know a session
)

// errCut says that an answer has ended before its end.
var errCut = errors.New("the server's answer has no end")

// web is the link to a server over HTTP.
type web struct {
	*server
	c    *client
	next *http.Client

	session atomic.Value // a text
}

func (sv *server) web(c *client) *web {
	return &web{server: sv, c: c, next: &http.Client{
		Transport:     transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func transport() *http.Transport {
	return &http.Transport{
		DialContext: new(net.Dialer).DialContext, // and no Proxy
		// Of a request on a kept connection that turns out to be closed nobody could
		// tell whether it had left.
		DisableKeepAlives: true,
	}
}

// close is for link.
func (w *web) close() {
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	if w.session.Load() == nil {
		return
	}
	if resp, err := w.do(ctx, http.MethodDelete, new(outgoing), nil, ""); err == nil {
		_ = resp.Body.Close()
	}
}

// do makes a request of HTTP. Last is the event after which an answer is to go on.
func (w *web) do(ctx context.Context, method string, m *outgoing, x *exchange, last string) (*http.Response, error) {
	if x != nil && method == http.MethodPost {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { x.sent.Store(true) }})
	}
	req, err := http.NewRequestWithContext(ctx, method, w.target.URL.String(), bytes.NewReader(m.line))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // it is sent once
	speaks := w.c.spoken.Load()
	session, _ := w.session.Load().(string)
	headers := map[string]string{"Accept": typeEvents, "Last-Event-Id": last, "Mcp-Protocol-Version": speaks.version, sessionHeader: session}
	if method == http.MethodPost {
		headers["Content-Type"], headers["Accept"] = typeJSON, typeJSON+", "+typeEvents
	}
	if speaks.meta != nil {
		headers["Mcp-Method"], headers["Mcp-Name"] = m.method, headerText(m.tool)
	}
	for name, value := range headers { // order cannot show: names differ
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if speaks.meta != nil && x != nil {
		for name, value := range x.headers { // order cannot show: a map is built from a map
			req.Header.Set("Mcp-Param-"+name, value) // also an empty one
		}
	}
	for name, value := range w.target.Headers {
		req.Header.Set(name, value)
	}
	for name, reference := range w.target.SecretHeaders {
		value, err := w.setup.Secret(reference)
		if err != nil {
			return nil, fmt.Errorf("secret_headers.%s: %w", name, err)
		}
		req.Header.Set(name, value)
	}
	return w.next.Do(req)
}

// send is for link.
func (w *web) send(ctx context.Context, m *outgoing, x *exchange) error {
	session := w.session.Load() != nil
	resp, err := w.do(ctx, http.MethodPost, m, x, "")
	if err != nil {
		return err
	}
	if x == nil {
		return resp.Body.Close()
	}
	x.status.Store(int32(resp.StatusCode)) //nolint:gosec // three digits
	if resp.StatusCode/100 != 2 {
		return w.refused(resp, x, session)
	}
	if id := resp.Header.Get(sessionHeader); x.method == methodInitialize && id != "" {
		w.session.Store(id)
	}
	last, wait, err := w.read(resp, x)
	for tries := 0; last != "" && !x.over() && ctx.Err() == nil && tries <= maxResumes; tries++ {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		resp, failed := w.do(ctx, http.MethodGet, new(outgoing), x, last)
		switch {
		case failed != nil:
			err = failed
			continue
		case resp.StatusCode/100 != 2:
			return errors.Join(fmt.Errorf("the server does not go on with its answer: %s", resp.Status), resp.Body.Close())
		}
		var next string
		if next, wait, err = w.read(resp, x); next != "" && next != last {
			last, tries = next, -1
		}
	}
	if x.over() {
		return nil
	}
	return err
}

// refused takes an answer that is no 2xx, and finds out whether it is that of a server that does not know the session any
// more: 404, as the protocol has it, unless it is an answer to just this request and not one that says so; or 400 with an
// answer to none that speaks of sessions. Nothing was done then.
func (w *web) refused(resp *http.Response, x *exchange, ofSession bool) error {
	data, _ := readAll(resp.Body, x) // what can be read of it
	_ = resp.Body.Close()
	other := w.hearAll(data, x)
	switch {
	case ofSession && resp.StatusCode == http.StatusNotFound && (!x.over() || x.reply.fault != nil && x.reply.fault.Code == codeNoSession),
		ofSession && resp.StatusCode == http.StatusBadRequest && !x.over() && bytes.Contains(bytes.ToLower(data), []byte("session")):
		x.missing.Store(true)
		return errSessionMissing
	case other:
		return fmt.Errorf("%s: the server has answered another request", resp.Status)
	default:
		return fmt.Errorf("%s: %q", resp.Status, w.setup.Head(data, maxQuoted))
	}
}

// hearAll takes the messages that a body has, and reports whether any answers another request.
func (w *web) hearAll(data []byte, x *exchange) (other bool) {
	messages, _ := plain(data)
	for _, m := range messages {
		other = other || m.method == "" && m.id != x.id
		w.c.hear(m, x)
	}
	return other
}

// read reads an answer. Last is the event after which it can go on; empty: it cannot.
func (w *web) read(resp *http.Response, x *exchange) (last string, wait time.Duration, err error) {
	defer resp.Body.Close() //nolint:errcheck // it was read, or is of no use
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
	}
	if strings.ToLower(strings.TrimSpace(kind)) == typeEvents {
		return w.readEvents(resp.Body, x)
	}
	data, err := readAll(resp.Body, x)
	other := w.hearAll(data, x)
	if m := ofNone(data, x.id); m != nil && !x.over() {
		w.c.hear(m, x)
	}
	switch {
	case x.over():
		return "", 0, nil
	case err != nil:
		return "", 0, fmt.Errorf("the server's answer broke off: %w", err)
	case other:
		return "", 0, errors.New("the server has answered another request")
	default:
		return "", 0, fmt.Errorf("the server's answer is no message: %q", w.setup.Head(data, maxQuoted))
	}
}

// readEvents reads a stream of events up to the answer.
func (w *web) readEvents(body io.Reader, x *exchange) (last string, wait time.Duration, err error) {
	in := NewEvents(body)
	for wait = time.Second; ; {
		e, err := ReadEvent(in, maxMessageBytes)
		if !e.Other {
			w.hearAll(e.Data, x)
		}
		switch {
		case x.over():
			return "", 0, nil
		case !e.Other && x.isLarge(e.Large):
			return "", 0, errTooLarge
		case errors.Is(err, io.EOF):
			return last, wait, errCut
		case err != nil:
			return last, wait, err
		}
		last = cmp.Or(e.ID, last)
		if d, err := time.ParseDuration(e.Retry + "ms"); err == nil {
			wait = min(max(d, minPoll), maxResumeWait)
		}
	}
}

// readAll reads the body of a response that is no stream.
func readAll(body io.Reader, x *exchange) ([]byte, error) {
	data, whole, err := ReadBody(body, maxMessageBytes)
	if !whole && err == nil {
		_, err = x.isLarge(data), errTooLarge
	}
	return data, err
}

// isLarge notes whether both ends of what is larger than is read are those of the answer, and not of a request of the server.
func (x *exchange) isLarge(ends []byte) bool {
	is := string(LineID(ends)) == strconv.FormatInt(x.id, 10) && !bytes.Contains(ends[:min(len(ends), 100)], []byte(`"method"`))
	x.tooLarge.Store(is || x.tooLarge.Load())
	return is
}

// ofNone returns a whole body that is a response without an id as that to the one request that it can answer; nil: it is none.
func ofNone(data []byte, id int64) *message {
	var said map[string]json.RawMessage
	if json.Unmarshal(data, &said) != nil || said["method"] != nil || said["jsonrpc"] == nil ||
		said["id"] != nil && string(said["id"]) != "null" || said["result"] == nil && said["error"] == nil {
		return nil
	}
	said["id"] = fmt.Append(nil, id)
	return readResponse(said)
}

// headerName is how a header is called.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// headersOf adds the headers that a tool wants of arguments, by the annotation x-mcp-header of their schemas. What no header can have
// is left out. Known are the headers of all schemas, in lower case. The error says why no client may call the tool (SEP-2243).
func headersOf(schema any, arguments canon.Raw, out map[string]string, known map[string]bool) error {
	of, _ := schema.(map[string]any)
	properties, _ := of["properties"].(map[string]any) // what has other properties has no annotations
	for name, p := range properties {                  // order cannot show but in which of several faults is told
		property, _ := p.(map[string]any)
		given := item(arguments, name)
		if said, annotated := property["x-mcp-header"]; annotated {
			header, _ := said.(string)
			lower := strings.ToLower(header)
			switch kind := property["type"]; {
			case !headerName.MatchString(header):
				return fmt.Errorf("x-mcp-header of %q is no name of a header: %.100q", name, fmt.Sprint(said))
			case kind != "string" && kind != "integer" && kind != "boolean":
				return fmt.Errorf("x-mcp-header of %q, which is no text, integer or boolean", name)
			case known[lower]:
				return fmt.Errorf("x-mcp-header of %q is that of another argument, too: %q", name, header)
			}
			known[lower] = true
			switch canon.NewReader(given).Kind() { //nolint:exhaustive // of the rest nothing is sent
			case canon.KindText:
				out[header] = headerText(textOf(given))
			case canon.KindInt, canon.KindBool:
				text, _ := canon.ToJSON(given) // it is canonical
				out[header] = string(text)
			}
		}
		if err := headersOf(property, given, out, known); err != nil {
			return err
		}
	}
	return nil
}

// headerText returns a text as a header has it: in base64 where it is not plain.
func headerText(text string) string {
	odd := strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
	if odd || strings.TrimSpace(text) != text || strings.HasPrefix(text, "=?base64?") {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
	}
	return text
}
