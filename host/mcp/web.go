package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessionHeader names the session of a request.
const sessionHeader = "Mcp-Session-Id"

// web returns the transport to a server over HTTP.
func (sv *server) web() mcp.Transport {
	return &mcp.StreamableClientTransport{
		Endpoint: sv.target.URL.String(),
		HTTPClient: &http.Client{
			Transport:     &roundTripper{server: sv, next: transport()},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		DisableStandaloneSSE: true,                // nobody here listens to it
		MaxEventSize:         2 * maxMessageBytes, // never reached: see bounded
	}
}

func transport() *http.Transport {
	return &http.Transport{
		DialContext: new(net.Dialer).DialContext, // and no Proxy
		// Of a request on a kept connection that turns out to be closed nobody could
		// tell whether it had left.
		DisableKeepAlives: true,
	}
}

// roundTripper adds the headers that config has and watches over calls.
type roundTripper struct {
	*server
	next http.RoundTripper
}

// RoundTrip is for http.Client.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	x, _ := req.Context().Value(exchangeKey{}).(*exchange)
	// The first POST is the call itself; the SDK sends that it was given up in
	// the same context, and GETs go on with the response of the call.
	if x != nil && req.Method == http.MethodPost && x.begun.Swap(true) {
		x = nil
	}
	ctx := req.Context()
	if x != nil && req.Method == http.MethodPost {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { x.sent.Store(true) }})
	}
	req = req.Clone(ctx)
	if x != nil && req.Method == http.MethodPost {
		if err := x.rewriteBody(req); err != nil {
			return nil, err
		}
	}
	if err := t.addHeaders(req.Header); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	resp, err := t.next.RoundTrip(req)
	if err == nil && resp.StatusCode/100 != 2 && x != nil && req.Method == http.MethodGet && x.request.Load() != nil {
		_ = resp.Body.Close()
		return x.notResumed(resp.Status), nil
	}
	if err != nil {
		return nil, err
	}
	if x != nil && req.Method == http.MethodPost {
		x.status.Store(int32(resp.StatusCode)) //nolint:gosec // three digits
	}
	if probe, _ := req.Context().Value(probeKey{}).(bool); probe {
		return probed(resp), nil
	}
	if req.Header.Get(sessionHeader) != "" {
		resp.Header.Del(sessionHeader) // the SDK would end a session whose server calls it something else
	}
	normalize(resp, x)
	if x != nil && resp.StatusCode/100 != 2 {
		x.refused(resp, req.Header.Get(sessionHeader) != "")
	}
	return resp, nil
}

// rewriteBody is out for a request over HTTP, and notes what leaves.
func (x *exchange) rewriteBody(req *http.Request) error {
	data, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return err
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return err
	}
	r, err := x.out(msg)
	if err != nil {
		return err
	}
	if r == nil {
		r, _ = msg.(*jsonrpc.Request)
	} else if data, err = jsonrpc.EncodeMessage(r); err != nil {
		return err
	}
	x.request.Store(r)
	req.Body, req.ContentLength, req.GetBody = io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
	return nil
}

func (t *roundTripper) addHeaders(header http.Header) error {
	for name, value := range t.target.Headers {
		header.Set(name, value)
	}
	for name, reference := range t.target.SecretHeaders {
		value, err := t.setup.Secret(reference)
		if err != nil {
			return fmt.Errorf("secret_headers.%s: %w", name, err)
		}
		header.Set(name, value)
	}
	return nil
}
