// Package relay performs the model calls of agents that run beside a world: it passes a request on to
// the provider as the agent sent it, and the answer back as it came. It is a part of worldctl, and not
// an API.
//
// An agent's request is handed in at a [Desk], under cell and tag of the intent that the session's cell asks
// for (package reducer/recorder). A permit for an intent that nobody has handed in performs
// nothing: the caller has gone. So only who sent a request can have it made.
//
// What is sent is what the permit says, whatever waits at the desk: it is what was judged and, where a person was
// asked, approved. Of the caller come the headers, and to it goes the answer.
//
// Config is what governance.ParseRelay reads: where the providers are, which secrets go
// in the place of the agent's own key, and what tokens cost. The agent's headers are
// passed on and never recorded.
//
// # Outcomes
//
//	the provider answered 2xx, whole     ok, with a recorder.Answer
//	it answered another status           error, with a recorder.Answer: nothing was used
//	the answer was cut off               error, with a recorder.Answer of what came, and Cut: what came is paid
//	no connection was made               error, unsent
//	no answer came                       nobody can tell: in doubt
package relay

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/callers"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// MaxAnswer is how many bytes of an answer are recorded, and so how long one may be.
const MaxAnswer = 8 << 20

// Desk is where requests wait for their permits.
type Desk = callers.Callers[Caller]

// Caller is the agent's side of a request. Its functions are called by one goroutine.
type Caller struct {
	*Asked

	Upstream string // where the provider of the dialect is, unless the config says it
	// Begin is told how the provider answers, before anything of the answer.
	Begin func(status int, header http.Header)
	// Instead is answered in the place of what the provider would, which is not asked: see Asked.Given; nil: it is asked.
	Instead []byte
	// Flow gets the part of the answer that the agent may have at once.
	Flow func(p []byte)
}

// New returns a host.Factory of adapters that perform what is handed in at a desk; nil: they perform
// nothing, since no agent runs here.
func New(desk *Desk) host.Factory {
	return func(s host.Setup) (host.Adapter, error) {
		config, err := governance.ParseRelay(s.Config, nil)
		if err != nil {
			return nil, err
		}
		return &adapter{desk: desk, setup: s, config: config, client: &http.Client{
			Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, Proxy: http.ProxyFromEnvironment},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}, nil
	}
}

type adapter struct {
	desk   *Desk
	setup  host.Setup
	config *governance.RelayTarget
	client *http.Client
}

// Waits implements host.Waiting.
func (a *adapter) Waits() bool { return true }

// Close implements io.Closer.
func (a *adapter) Close() error {
	a.client.CloseIdleConnections()
	return nil
}

// errNoCaller says that a request is no more.
var errNoCaller = errors.New("the agent that asked is gone: it asks again when it is started again")

// Perform implements host.Adapter. The call goes on to its end though its caller goes.
func (a *adapter) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	caller := a.desk.Await(ctx, callers.ID{Cell: call.Permit.Cell, Tag: call.Permit.Tag})
	if caller == nil {
		return host.Refused(errNoCaller), nil
	}
	judged := &Asked{Header: caller.Header}
	if err := call.Decode(&judged.Request); err != nil {
		return host.Refused(err), nil
	}
	judged.form = formOf(judged.Dialect, judged.Method, judged.Path)
	c := *caller
	if c.Asked = judged; c.Instead != nil {
		header, body, err := judged.Given(c.Instead)
		if err != nil {
			return host.Refused(err), nil
		}
		return a.passAnswer(&c, &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(body))})
	}
	var sent atomic.Bool
	req, err := a.request(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	}), &c)
	if err != nil {
		return host.Refused(err), nil
	}
	resp, err := a.client.Do(req)
	switch {
	case err != nil && !sent.Load():
		return host.Refused(err), nil
	case err != nil:
		return host.Result{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	return a.passAnswer(&c, resp)
}

// request is the agent's, on its way to the provider.
func (a *adapter) request(ctx context.Context, c *Caller) (*http.Request, error) {
	base := a.config.Upstream[c.Dialect]
	if base == "" {
		base = c.Upstream
	}
	at, err := url.Parse(strings.TrimSuffix(base, "/") + c.Path)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, at.String(), bytes.NewReader(c.Body))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // a request is sent once
	for name, values := range c.Header {
		if !OfTheHop(name) && name != "Cookie" {
			req.Header[name] = values
		}
	}
	// What is held in a stream is found in its text.
	if c.Stream || !strings.Contains(c.Header.Get("Accept-Encoding"), "gzip") {
		req.Header.Set("Accept-Encoding", "identity")
	} else {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	return req, a.authorize(req, c.Dialect)
}

// authorize puts the host's secret in the place of the agent's own key.
func (a *adapter) authorize(req *http.Request, dialect string) error {
	reference := a.config.Keys[dialect]
	if reference == "" {
		return nil
	}
	key, err := a.setup.Secret(reference)
	if err != nil {
		return err
	}
	req.Header.Del("Authorization")
	req.Header.Del("X-Api-Key")
	if dialect == Anthropic {
		req.Header.Set("X-Api-Key", key)
	} else {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return nil
}

// OfTheHop reports whether a header, named in its canonical form, is about one connection only.
func OfTheHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Expect", "Host", "Content-Length", "Accept-Encoding":
		return true
	}
	return false
}

// passAnswer passes the answer on, and returns what came of the call.
func (a *adapter) passAnswer(c *Caller, resp *http.Response) (host.Result, error) {
	c.Begin(resp.StatusCode, resp.Header)
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	r := newReading(c.Asked, stream && resp.StatusCode == http.StatusOK)
	body, err := pass(c, r, resp.Body)
	answer := r.readWhole(c.Asked, plain(resp.Header, body))
	answer.Status, answer.Header, answer.Body = resp.StatusCode, kept(resp.Header), body
	answer.Cut = err != nil || r.stream && c.form != formOther && !r.ended
	result := host.Result{Status: receipt.StatusOK, ExternalRef: resp.Header.Get("Request-Id") + resp.Header.Get("X-Request-Id")}
	if resp.StatusCode > 299 {
		result.Status, result.Exact = receipt.StatusError, true
		answer.Usage = recorder.Usage{}
	} else if answer.Cut {
		result.Status = receipt.StatusError
	}
	if c.form == formOther || c.Instead != nil {
		answer.Usage = recorder.Usage{}
		result.Exact = true
	}
	used := &answer.Usage
	price, _ := a.config.Price(c.Model)
	used.Micros = price.Micros(used.Input, used.CacheRead, used.CacheWrite, used.Output)
	result.Cost.Tokens, result.Cost.Micros = used.Tokens(), used.Micros
	result.Payload, err = canon.Marshal(answer)
	return result, err
}

// pass reads an answer to its end, and lets flow what may.
func pass(c *Caller, r *reading, from io.Reader) (body []byte, err error) {
	flowed := 0
	for {
		body = slices.Grow(body, 4<<10)
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		flows, bad := r.add(body[len(body)-n:])
		if flows > flowed {
			c.Flow(body[flowed:flows])
			flowed = flows
		}
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return body, err
		case bad != nil:
			return body, bad
		case len(body) > MaxAnswer:
			return body[:MaxAnswer], fmt.Errorf("relay: the answer is larger than %d bytes", MaxAnswer)
		}
	}
}

// plain returns an answer as its server wrote it before it was compressed, as far as it goes.
func plain(header http.Header, body []byte) []byte {
	if header.Get("Content-Encoding") != "gzip" {
		return body
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	text, _ := io.ReadAll(io.LimitReader(z, maxFrame))
	return text
}

// kept are the headers of an answer that the agent gets, when it is given from the record, too. The others
// are about one connection, or name who has asked.
func kept(header http.Header) map[string]string {
	out := make(map[string]string)
	for name, values := range header {
		lower := strings.ToLower(name)
		switch {
		case lower == "content-type", lower == "content-encoding", lower == "retry-after", lower == "retry-after-ms", lower == "x-should-retry",
			strings.HasPrefix(lower, "anthropic-"), strings.HasPrefix(lower, "openai-"), strings.HasPrefix(lower, "x-ratelimit-"),
			strings.HasSuffix(lower, "request-id"):
			out[lower] = strings.Join(values, ", ")
		}
	}
	return out
}
