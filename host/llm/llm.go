// Package llm performs chat completions against servers that speak the OpenAI
// API. The one request that it makes is net/http's: an SDK cost more to build
// than all the rest of the program.
//
// governance.ParseLLM says what config and params are. Each call is one request
// with the header Idempotency-Key, on a connection of its own; those of idempotent
// effects follow each other on one. Redirects are not followed, and neither proxies nor keys come from the environment. An
// address is dialled wherever it is: base_url stands in the manifest, which
// people review.
//
// # Payload
//
//	message        the first choice's, as the server wrote it: role, content, tool_calls, …
//	finish_reason  likewise
//	error          likewise, or else that beside the choices: routers have what went wrong half-way there
//	model, usage   as the server wrote them, or null
//	ignored        names of params that were not sent, or not as a whole; absent if all were
//
// and of what failed {code, error, status?}: status is that of HTTP, code the
// provider's word for it where it has one.
//
// # Failures
//
//	no connection was made         retryable, nothing left
//	no whole answer came           nobody can tell; of an idempotent effect: retryable
//	429, 5xx                       permanent; of an idempotent effect: retryable, after Retry-After
//	any other status but 2xx       permanent
//	the answer is no completion    permanent: it was made, and paid for
//	the answer is larger than 16 MiB    compensatable: likewise
package llm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// New is a host.Factory.
func New(s host.Setup) (host.Adapter, error) {
	target, err := governance.ParseLLM(s.Config, nil)
	if err != nil {
		return nil, err
	}
	address, err := url.JoinPath(target.BaseURL, "chat/completions")
	if err != nil {
		return nil, err
	}
	return &adapter{setup: s, url: address, client: &http.Client{
		Transport:     transport(s.Effect.Idempotent),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// idle is how long a connection is kept for the next call. Servers that close theirs do
// not do it so soon: of a call on one that was closed meanwhile nobody can tell whether
// it had arrived.
const idle = 2 * time.Second

// transport keeps connections for calls that may be made again.
func transport(idempotent bool) *http.Transport {
	return &http.Transport{
		DialContext:         new(net.Dialer).DialContext, // and no Proxy
		DisableKeepAlives:   !idempotent,
		MaxIdleConnsPerHost: host.DefaultCalls,
		IdleConnTimeout:     idle,
	}
}

// Waits implements host.Waiting.
func (a *adapter) Waits() bool { return true }

type adapter struct {
	setup  host.Setup
	url    string
	client *http.Client
}

// Perform requests a completion.
func (a *adapter) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	target, err := governance.ParseLLM(a.setup.Config, call.Permit.Params)
	if err != nil {
		return host.Refused(err), nil
	}
	body, err := canon.ToJSON(target.Request)
	if err != nil {
		return host.Refused(err), nil
	}
	x := &exchange{requestBytes: len(body), ignored: target.Ignored(call.Permit.Params)}
	req, err := x.request(ctx, a.url, body)
	if err != nil {
		return host.Refused(err), nil
	}
	req.Header.Set("Idempotency-Key", call.External)
	req.Header.Set("Traceparent", call.Permit.Key.TraceParent(call.Permit.Attempt))
	if target.APIKey != "" {
		key, err := a.setup.Secret(target.APIKey)
		if err != nil {
			return host.Refused(err), nil
		}
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if err := x.perform(a.client, req); err != nil {
		return a.unanswered(ctx, x, err)
	}
	return a.answered(x, target.Price), nil
}

// unanswered is the result of a request without a whole answer.
func (a *adapter) unanswered(ctx context.Context, x *exchange, err error) (host.Result, error) {
	sent := x.sent.Load()
	if sent && !a.setup.Effect.Idempotent {
		return host.Result{}, fmt.Errorf("llm: %w", err)
	}
	r := host.Result{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Unsent: !sent, Short: host.Short(err)}
	code := "not_sent"
	if sent {
		r.Status, code = receipt.StatusTimeout, "no_answer"
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.Status, code = receipt.StatusTimeout, "timeout"
	}
	r.Payload = fault(code, err.Error(), 0)
	return r, nil
}
