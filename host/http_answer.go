package host

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// httpGone is the version of a resource that was deleted.
const httpGone = "deleted"

// payload returns what the cell is told of an answer.
func (a *httpAnswer) payload() map[string]any {
	p := map[string]any{"status": a.status, "headers": a.headers()}
	if len(a.body) == 0 {
		return p
	}
	json, err := a.json()
	switch {
	case err != nil:
		p["json_error"] = err.Error()
	case json != nil:
		p["json"] = json
		return p
	}
	p["body"] = a.body
	if utf8.Valid(a.body) {
		p["body"] = string(a.body)
	}
	return p
}

// json returns a body that is declared as JSON; nil: it is not.
func (a *httpAnswer) json() (canon.Raw, error) {
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";") // of its parameters many are wrong
	media = strings.ToLower(strings.TrimSpace(media))
	if media != "application/json" && media != "text/json" && !strings.HasSuffix(media, "+json") {
		return nil, nil
	}
	if coding := a.text("content-encoding"); coding != "" {
		return nil, fmt.Errorf("the body is encoded as %s", coding)
	}
	return canon.FromJSON(a.body)
}

// decode takes gzip off a body, which may have limit bytes afterwards, too. What is no gzip
// stays as it came, and the answer says so.
func (a *httpAnswer) decode(limit int64) {
	coding := strings.ToLower(strings.TrimSpace(a.header.Get("Content-Encoding")))
	switch coding {
	case "", "identity":
		a.header.Del("Content-Encoding")
		return
	case "gzip", "x-gzip":
	default:
		return
	}
	if len(a.body) > 0 {
		z, err := gzip.NewReader(bytes.NewReader(a.body))
		if err != nil {
			return
		}
		plain, err := io.ReadAll(io.LimitReader(z, limit+1))
		if err != nil {
			return
		}
		if a.body = plain; int64(len(plain)) > limit {
			a.body, a.tooLarge = nil, true
		}
	}
	a.header.Del("Content-Encoding")
}

// headers returns the headers that a cell may have use for.
func (a *httpAnswer) headers() map[string]any {
	out := map[string]any{}
	for _, name := range []string{
		"content-encoding", "content-type", "etag", "last-modified", "location", "retry-after", "request-id", "x-request-id", "x-correlation-id",
	} {
		if value := a.text(name); value != "" {
			out[name] = value
		}
	}
	return out
}

func (a *httpAnswer) text(header string) string {
	return strings.ToValidUTF8(a.header.Get(header), "\uFFFD")
}

// reference returns the outside's name for what it did.
func (a *httpAnswer) reference() string {
	for _, name := range []string{"location", "request-id", "x-request-id", "x-correlation-id"} {
		if value := a.text(name); value != "" {
			return value
		}
	}
	return ""
}

// stateChange says what a successful request has changed: the resource that it
// named or, of 201, the one that it made there (RFC 9110 15.3.2).
func (a *httpAnswer) stateChange(t *governance.HTTPTarget) *receipt.StateChange {
	change := &receipt.StateChange{ETag: a.text("etag"), Version: a.text("last-modified"), ExternalRef: a.reference()}
	switch t.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	case http.MethodDelete:
		change.ETag, change.Version = "", httpGone
	default:
		return nil
	}
	if location := a.text("location"); a.status == http.StatusCreated && location != "" {
		if made, err := t.Follow(location); err == nil && made.SameOrigin(t) {
			t = made
		}
	}
	change.Resource = resourceOf(t)
	return change
}

// httpPayload returns the canonical form of a payload of texts, numbers and
// what is canonical already.
func httpPayload(p map[string]any) receipt.Data {
	if text, ok := p["error"].(string); ok {
		p["error"] = strings.ToValidUTF8(text, "\uFFFD")
	}
	b, err := canon.Marshal(p)
	if err != nil {
		panic(err) // all its texts are UTF-8
	}
	return b
}
