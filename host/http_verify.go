package host

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// httpVerifier asks a server about effects. Its config is {url, headers,
// secret_headers}; without url, where and how the effect's own config says.
type httpVerifier struct {
	client httpClient
	config map[string]canon.Raw // of requests, without method
}

// newHTTPVerifier returns the factory of http verifiers.
func newHTTPVerifier(network *httpNetwork) VerifierFactory {
	return func(s Setup) (Verifier, error) {
		var own struct {
			URL           canon.Raw `cbor:"url"`
			Headers       canon.Raw `cbor:"headers"`
			SecretHeaders canon.Raw `cbor:"secret_headers"`
		}
		if err := s.Decode(&own); err != nil {
			return nil, err
		}
		effect := map[string]canon.Raw{}
		if s.Effect.Adapter == "http" && len(own.URL) == 0 && len(s.Effect.Config) > 0 {
			if err := canon.UnmarshalTrusted(s.Effect.Config, &effect); err != nil {
				return nil, fmt.Errorf("the effect's config: %w", err)
			}
		}
		v := &httpVerifier{httpClient{network, s.Secret}, map[string]canon.Raw{}}
		for key, value := range map[string]canon.Raw{"url": own.URL, "headers": own.Headers, "secret_headers": own.SecretHeaders} {
			if value == nil {
				value = effect[key]
			}
			if value != nil {
				v.config[key] = value
			}
		}
		config, err := canon.Marshal(v.config)
		if err != nil {
			return nil, err
		}
		return v, checkHTTPConfig(config)
	}
}

// target returns the target of a request with config and params.
func (v *httpVerifier) target(method string, config map[string]canon.Raw, params map[string]any) (*governance.HTTPTarget, error) {
	config = maps.Clone(config)
	config["method"] = canon.AppendText(nil, method)
	c, err := canon.Marshal(config)
	if err != nil {
		return nil, err
	}
	p, err := canon.Marshal(params)
	if err != nil {
		return nil, err
	}
	return governance.ParseHTTP(c, p)
}

// Verify asks with GET ?key=KEY and the header Idempotency-Key: 200 says that
// the effect happened, and its JSON body, which
// need not be declared as such, what came of it; 404 that it did not yet,
// and 410 (RFC 9110 15.5.11: likely to be permanent) that it never will.
func (v *httpVerifier) Verify(ctx context.Context, call Call) (receipt.Found, error) {
	if v.config["url"] == nil {
		return receipt.Found{Verdict: receipt.Unknown, Reason: "neither verify.config nor the effect's config has a url to ask"}, nil
	}
	t, err := v.target(http.MethodGet, v.config, map[string]any{"query": map[string]string{"key": call.External}})
	if err != nil {
		return httpUnknown("verify", err), nil
	}
	answer, err := v.client.send(ctx, t, &call, t.Reviewed || namedBy(call.Cap, t))
	if err != nil {
		return httpUnknown("GET "+resourceOf(t), err), nil
	}
	found := receipt.Found{Verdict: receipt.Unknown, Reason: fmt.Sprintf("GET %s: %d", resourceOf(t), answer.status)}
	switch answer.status {
	case http.StatusNotFound:
		found.Verdict = receipt.NotHappened
	case http.StatusGone:
		found.Verdict, found.Final = receipt.NotHappened, true
	case http.StatusOK:
		json, err := answer.json()
		if len(answer.header.Values("Content-Type")) == 0 {
			json, err = canon.FromJSON(answer.body) // it says what it is by what it holds
		}
		if len(answer.body) > 0 && json == nil || answer.tooLarge || err != nil && len(answer.body) > 0 {
			found.Reason += ", but the body is not JSON or too large"
			break
		}
		found.Verdict = receipt.Happened
		if len(answer.body) > 0 {
			found.Payload = json
		}
	}
	return found, nil
}

// Confirm asks for the head of the resource that a receipt says was changed.
func (v *httpVerifier) Confirm(ctx context.Context, call Call, r *receipt.Receipt) (receipt.Found, error) {
	if r.StateChange == nil || r.StateChange.Resource == "" {
		return receipt.Found{Verdict: receipt.Unknown, Reason: "the receipt names no resource"}, nil
	}
	t, err := v.resource(r.StateChange.Resource)
	if err != nil {
		return httpUnknown("confirm", err), nil
	}
	answer, err := v.client.send(ctx, t, nil, t.Reviewed || namedBy(call.Cap, t))
	if err != nil {
		return httpUnknown("HEAD "+resourceOf(t), err), nil
	}
	verdict, reason := answer.compare(r.StateChange)
	return receipt.Found{Verdict: verdict, Reason: fmt.Sprintf("HEAD %s: %d%s", resourceOf(t), answer.status, reason)}, nil
}

// resource returns the target of a resource that a receipt names. Headers and
// secrets are for the origin of config.url; without that, for whatever the
// effect was sent to.
func (v *httpVerifier) resource(name string) (*governance.HTTPTarget, error) {
	config := maps.Clone(v.config)
	delete(config, "url")
	t, err := v.target(http.MethodHead, config, map[string]any{"url": name})
	if err != nil || v.config["url"] == nil {
		return t, err
	}
	origin, err := v.target(http.MethodHead, v.config, nil)
	if err != nil {
		return nil, err
	}
	t.Reviewed = t.Host == origin.Host && t.Port == origin.Port
	if !t.SameOrigin(origin) {
		t.Headers, t.Secrets = nil, nil
	}
	return t, nil
}

// compare compares the head of a resource with what a receipt says of it, and
// says what differs.
func (a *httpAnswer) compare(change *receipt.StateChange) (verdict receipt.FoundVerdict, reason string) {
	there, gone := a.status >= 200 && a.status < 300, a.status == http.StatusNotFound || a.status == http.StatusGone
	deleted := change.Version == httpGone
	etag, modified := a.text("etag"), a.text("last-modified")
	differs := func(what, now, then string) (receipt.FoundVerdict, string) {
		if now != then {
			return receipt.NotHappened, fmt.Sprintf(", %s is %s, the receipt says %s", what, now, then)
		}
		return receipt.Happened, ", the receipt's " + what
	}
	switch {
	case !there && !gone:
		return receipt.Unknown, ""
	case there == deleted:
		return receipt.NotHappened, ""
	case gone:
		return receipt.Happened, ""
	case change.ETag != "" && etag != "": // weakly, RFC 9110 8.8.3.2: compressing the answer weakens its tag
		return differs("ETag", strings.TrimPrefix(etag, "W/"), strings.TrimPrefix(change.ETag, "W/"))
	case change.Version != "" && modified != "":
		return differs("Last-Modified", modified, change.Version)
	default:
		return receipt.Happened, ""
	}
}

func httpUnknown(what string, err error) receipt.Found {
	return receipt.Found{Verdict: receipt.Unknown, Reason: fmt.Sprintf("%s: %v", what, err)}
}
