package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/worldkernel/worldkernel/governance"
)

const (
	defaultAnswerBytes = 1 << 20  // of a body, where config.max_bytes does not say
	maxAnswerHeaders   = 64 << 10 // bytes
)

// httpClient sends single requests: it follows nothing and repeats nothing.
type httpClient struct {
	network *httpNetwork
	secret  func(reference string) (string, error)
}

// httpAnswer is what the outside said.
type httpAnswer struct {
	status   int
	header   http.Header
	body     []byte
	tooLarge bool // body is not kept
}

// noAnswerError says why there is no answer.
type noAnswerError struct {
	left bool // something of the request may have left this machine
	err  error
}

func (e *noAnswerError) Error() string { return e.err.Error() }
func (e *noAnswerError) Unwrap() error { return e.err }

// send makes the request of a target, and names the attempt that it is for, if any.
// Its error is a *noAnswerError but for a request that cannot be put together.
func (c *httpClient) send(ctx context.Context, t *governance.HTTPTarget, call *Call, named bool) (*httpAnswer, error) {
	var connected atomic.Bool
	work, end := context.WithCancel(ctx)
	defer end()
	req, err := c.request(httptrace.WithClientTrace(work, &httptrace.ClientTrace{
		// The first moment from which on bytes may leave: headers that fill the
		// buffer are sent before WroteHeaders.
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	}), t, call)
	if err != nil {
		return nil, err
	}
	res, err := c.transport(work, t.Host, named).RoundTrip(req)
	if err != nil {
		return nil, faultOf(ctx, connected.Load(), err)
	}
	defer func() { _ = res.Body.Close() }() // it has been read
	limit := t.MaxBytes
	if limit == 0 {
		limit = defaultAnswerBytes
	}
	limit = min(limit, 1<<40) // more than there is memory, and one more does not overflow
	body, err := ReadAnswer(work, res.Body, int64(limit))
	if err != nil {
		return nil, faultOf(ctx, true, fmt.Errorf("status %d, and then: %w", res.StatusCode, err))
	}
	a := &httpAnswer{status: res.StatusCode, header: res.Header, body: body}
	if uint64(len(body)) > limit {
		a.body, a.tooLarge = nil, true
	}
	a.decode(int64(limit))
	return a, nil
}

// Of the answers that come at once few may be long, or they filled the memory together.
const (
	shortAnswer = 32 << 10
	longAnswers = 64
)

// longs has an item for each long answer that the process reads.
var longs = make(chan struct{}, longAnswers) //nolint:gochecknoglobals // a process has one memory

// ReadAnswer reads another machine's answer: all of it, or a byte more than limit. Long answers are
// read in turns, a few at a time. When ctx ends, so does the wait for one.
func ReadAnswer(ctx context.Context, from io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, min(shortAnswer, limit+1)))
	if err != nil || int64(len(body)) < min(shortAnswer, limit+1) {
		return body, err
	}
	select {
	case longs <- struct{}{}:
		defer func() { <-longs }()
	case <-ctx.Done():
		return body, ctx.Err()
	}
	rest, err := io.ReadAll(io.LimitReader(from, limit+1-int64(len(body))))
	return append(body, rest...), err
}

// faultOf prefers the end of ctx to what it made of the connection.
func faultOf(ctx context.Context, left bool, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &noAnswerError{left, err}
}

// transport returns a transport for one request, whose connection ends with
// ctx: net/http lets one that is being opened go on when its request has ended.
// Connections are not kept: net/http silently repeats a request, with an
// Idempotency-Key even a POST, when a kept connection breaks, and one that was
// opened under a capability must not serve another.
func (c *httpClient) transport(ctx context.Context, host string, named bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := c.network.dialer(host, named)
	return &http.Transport{
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() })
			}
			return conn, err
		},
		TLSClientConfig:        &tls.Config{RootCAs: c.network.roots, MinVersion: tls.VersionTLS12},
		Protocols:              protocols,
		DisableKeepAlives:      true,
		DisableCompression:     true, // max_bytes is about what arrives, too: see decode
		MaxResponseHeaderBytes: maxAnswerHeaders,
	}
}

func (c *httpClient) request(ctx context.Context, t *governance.HTTPTarget, call *Call) (*http.Request, error) {
	var body io.Reader
	if len(t.Body) > 0 {
		body = bytes.NewReader(t.Body)
	}
	req, err := http.NewRequestWithContext(ctx, t.Method, t.URL.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "worldkernel")
	if call != nil && (t.Method == http.MethodGet || t.Method == http.MethodPost) { // of others the ETag would be another
		req.Header.Set("Accept-Encoding", "gzip")
	}
	if call != nil { // a call's own traceparent goes before
		req.Header.Set("Traceparent", call.Permit.Key.TraceParent(call.Permit.Attempt))
	}
	for name, value := range t.Headers {
		req.Header.Set(name, value)
	}
	for name, value := range t.Secrets {
		if value, err = c.reveal(value); err != nil {
			return nil, fmt.Errorf("secret header %s: %w", name, err)
		}
		req.Header.Set(name, value)
	}
	if call != nil {
		req.Header.Set("Idempotency-Key", call.External)
	}
	return req, nil
}

// errSecretHeader keeps the value out of the error of net/http.
var errSecretHeader = errors.New("the secret holds a control character, which no header can")

// reveal returns the value of a secret header: what stands before the
// reference, such as "Bearer ", and the secret.
func (c *httpClient) reveal(value string) (string, error) {
	before, name, _ := strings.Cut(value, secretScheme)
	secret, err := c.secret(secretScheme + name)
	if err == nil && strings.ContainsFunc(secret, unicode.IsControl) {
		err = errSecretHeader
	}
	return before + secret, err
}
