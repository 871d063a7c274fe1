package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// httpAdapter makes requests. What came of one is told by its answer; without
// an answer the request happened or not, and only what has not left this
// machine surely did not.
type httpAdapter struct {
	client httpClient
	setup  Setup
}

// newHTTP returns the factory of http adapters; see governance.ParseHTTP for
// their config and params.
func newHTTP(network *httpNetwork) Factory {
	return func(s Setup) (Adapter, error) {
		if err := checkHTTPConfig(s.Config); err != nil {
			return nil, err
		}
		return &httpAdapter{httpClient{network, s.Secret}, s}, nil
	}
}

// Waits implements Waiting.
func (a *httpAdapter) Waits() bool { return true }

// checkHTTPConfig refuses a config that no params fit.
func checkHTTPConfig(config manifest.Data) error {
	var params manifest.Data
	if _, err := canon.Lookup(config, "url"); err != nil { // it comes with each call
		params = canon.AppendText(canon.AppendText(canon.AppendMap(nil, 1), "url"), "http://localhost/")
	}
	_, err := governance.ParseHTTP(config, params)
	return err
}

// Perform makes the request and follows the redirects that config allows, each
// of which is judged like the first.
func (a *httpAdapter) Perform(ctx context.Context, call Call) (Result, error) {
	first, err := governance.ParseHTTP(a.setup.Config, call.Permit.Params)
	if err != nil {
		return unsentFault(err), nil
	}
	t, redirects := first, uint64(0)
	for {
		answer, err := a.sendRequest(ctx, t, call, first)
		if err != nil {
			return a.unanswered(err, t, redirects)
		}
		location := answer.redirect(t)
		if location == "" || redirects == t.MaxRedirects {
			return a.answered(t, answer)
		}
		redirects++
		next, err := t.Follow(location)
		if err != nil {
			return a.unanswered(err, t, redirects)
		}
		t = next
	}
}

// sendRequest sends one request, if the capability allows it, or config.url where the
// capability says nothing of requests. What names the attempt is for the first
// origin only.
func (a *httpAdapter) sendRequest(ctx context.Context, t *governance.HTTPTarget, call Call, first *governance.HTTPTarget) (*httpAnswer, error) {
	denied := t.Configured()
	if call.Cap.Type == manifest.CapHTTP {
		denied = t.Allowed(&call.Cap.Params)
	}
	if denied != nil {
		return nil, denied
	}
	if a.setup.egress != nil {
		if err := a.setup.egress(t.URL, secretsIn(t)); err != nil {
			return nil, err
		}
	}
	named := &call
	if !t.SameOrigin(first) {
		named = nil
	}
	return a.client.send(ctx, t, named, t.Reviewed || namedBy(call.Cap, t))
}

// secretsIn returns the names of the secrets in a request, in their order.
func secretsIn(t *governance.HTTPTarget) []string {
	var names []string
	for _, header := range slices.Sorted(maps.Keys(t.Secrets)) {
		_, name, _ := strings.Cut(t.Secrets[header], secretScheme)
		names = append(names, name)
	}
	return names
}

// namedBy reports whether a capability names the host itself, so that it may be
// a private one.
func namedBy(c manifest.Cap, t *governance.HTTPTarget) bool {
	return c.Type == manifest.CapHTTP && t.NamedIn(c.Params.Hosts)
}

// redirect returns where an answer sends the request of t, or "".
func (a *httpAnswer) redirect(t *governance.HTTPTarget) string {
	if t.Method != http.MethodGet && t.Method != http.MethodHead {
		return ""
	}
	switch a.status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return a.header.Get("Location")
	}
	return ""
}

// unanswered classifies a request without an answer that came after some
// redirects, all of which were answered.
func (a *httpAdapter) unanswered(err error, t *governance.HTTPTarget, redirects uint64) (Result, error) {
	if fault, ok := errors.AsType[*noAnswerError](err); ok && fault.left && !a.setup.Effect.Idempotent {
		return Result{}, fmt.Errorf("%s %s: %w", t.Method, resourceOf(t), err)
	}
	result := unsentFault(err)
	result.Unsent = result.Unsent && redirects == 0
	return result, nil
}

// answered classifies what the outside said.
func (a *httpAdapter) answered(t *governance.HTTPTarget, answer *httpAnswer) (Result, error) {
	success := answer.status >= 200 && answer.status < 300
	retryable := slices.Contains(t.RetryOn, uint64(answer.status)) ||
		a.setup.Effect.Idempotent && (answer.status >= 500 || answer.status == http.StatusTooManyRequests)
	payload := answer.payload()
	r := Result{
		Status: receipt.StatusError, ExternalRef: answer.reference(),
		Cost: receipt.Cost{Bytes: uint64(len(t.Body) + len(answer.body))},
	}
	if success {
		r.StateChange = answer.stateChange(t)
	}
	r.Exact = answer.status >= 500 || answer.status == http.StatusTooManyRequests // it was refused
	payload["code"] = "http_status"
	payload["error"] = strings.TrimSpace(strconv.Itoa(answer.status) + " " + http.StatusText(answer.status))
	switch {
	case slices.Contains(t.CompensateOn, uint64(answer.status)):
		r.Class = receipt.OutcomeCompensatable
	case retryable:
		r.Class = receipt.OutcomeRetryableFailure
		r.RetryAfter = RetryAfter(answer.header, time.Now())
	case success && !answer.tooLarge:
		r.Status = receipt.StatusOK
		delete(payload, "code")
		delete(payload, "error")
	case success: // it happened, and nobody can tell what came of it
		r.Class = receipt.OutcomeCompensatable
	}
	if answer.tooLarge {
		payload["code"], payload["error"] = "response_too_large", "the body is larger than max_bytes"
	}
	r.Payload = httpPayload(payload)
	return r, nil
}

// resourceOf returns the URL of a target without what looks like a secret in
// its query.
func resourceOf(t *governance.HTTPTarget) string {
	u := *t.URL
	if u.RawQuery != "" {
		u.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(u.RawQuery, "&"), secretPair), "&")
	}
	return u.String()
}

func secretPair(pair string) bool {
	name, _, _ := strings.Cut(pair, "=")
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	name = strings.ToLower(name)
	return name == "sig" || slices.ContainsFunc([]string{"apikey", "api_key", "api-key", "credential", "passw", "secret", "signature", "token"},
		func(part string) bool { return strings.Contains(name, part) })
}
