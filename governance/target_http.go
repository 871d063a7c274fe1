package governance

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// Codes of http targets.
const (
	CodeBadURL           Code = "bad_url"            // not an absolute URL that has just one reading
	CodeSchemeNotAllowed Code = "scheme_not_allowed" // also of any scheme but http and https
	CodeHostNotAllowed   Code = "host_not_allowed"
	CodePortNotAllowed   Code = "port_not_allowed"
	CodeMethodNotAllowed Code = "method_not_allowed"
	CodePathNotAllowed   Code = "path_not_allowed" // also of a path that leaves config.url
)

// maxRedirects bounds config.max_redirects.
const maxRedirects = 20

// HTTPTarget is the request that an http effect makes, in the one form that the
// gate judges and the adapter sends.
type HTTPTarget struct {
	Method  string            // in capitals
	URL     *url.URL          // canonical; without user and fragment
	Host    string            // of URL: a lower-case ASCII name or an address in its shortest form, without brackets
	Port    uint64            // of URL, or its scheme's
	Headers map[string]string // by lower-case name
	Secrets map[string]string // headers by lower-case name; their values hold a reference to a secret
	Body    []byte

	// Host and Port are those of config.url, which was reviewed with the manifest.
	Reviewed bool
	base     string // path of config.url; empty: config has none

	MaxBytes     uint64   // of the answer's body; 0: the adapter's default
	MaxRedirects uint64   // how often the adapter may Follow
	CompensateOn []uint64 // statuses of failures that leave something behind
	RetryOn      []uint64 // statuses of failures that leave nothing behind
}

type httpConfig struct {
	URL           string            `cbor:"url"`
	Method        string            `cbor:"method"`
	Headers       map[string]string `cbor:"headers"`
	SecretHeaders map[string]string `cbor:"secret_headers"`
	MaxBytes      uint64            `cbor:"max_bytes"`
	MaxRedirects  uint64            `cbor:"max_redirects"`
	CompensateOn  []uint64          `cbor:"compensate_on"`
	RetryOn       []uint64          `cbor:"retry_on"`
}

type httpParams struct {
	Method  string               `cbor:"method"`
	URL     string               `cbor:"url"`
	Path    string               `cbor:"path"`
	Query   map[string]canon.Raw `cbor:"query"`
	Headers map[string]string    `cbor:"headers"`
	JSON    canon.Raw            `cbor:"json"`
	Body    canon.Raw            `cbor:"body"`
}

// ParseHTTP works out the request of an http effect. The error is a *CapError.
//
//	config  url, method, headers, secret_headers {name: "Bearer secret://NAME"},
//	        max_bytes, max_redirects, compensate_on [status], retry_on [status]
//	params  url or, below config.url, path; method, query {name: value or list},
//	        headers, json or body
//
// Config wins: params that say otherwise are denied. Without a method it is POST
// with a body and GET without. Names of headers that only some servers tell apart,
// such as x_a and X-A, are one name.
func ParseHTTP(config, params canon.Raw) (*HTTPTarget, error) {
	c, err := parseHTTPConfig(config)
	if err != nil {
		return nil, err
	}
	p := new(httpParams)
	if len(params) > 0 {
		if err := canon.UnmarshalTrusted(params, p); err != nil {
			return nil, capErrorf(CodeParamNotAllowed, "params: %v", err)
		}
	}
	t, err := p.locate(c.URL)
	if err != nil {
		return nil, err
	}
	t.MaxBytes, t.MaxRedirects, t.CompensateOn, t.RetryOn, t.Secrets = c.MaxBytes, c.MaxRedirects, c.CompensateOn, c.RetryOn, c.SecretHeaders
	if t.Headers, err = p.headers(c); err != nil {
		return nil, err
	}
	contentType, err := p.body(t)
	if err != nil {
		return nil, err
	}
	if _, given := t.Headers["content-type"]; contentType != "" && !given {
		t.Headers["content-type"] = contentType
	}
	if err := p.method(t, c.Method); err != nil {
		return nil, err
	}
	if err := t.checkHeaderNames(); err != nil {
		return nil, err
	}
	return t, checkReadings(t.URL.Path)
}

func parseHTTPConfig(config canon.Raw) (*httpConfig, error) {
	c := new(httpConfig)
	if len(config) > 0 {
		if err := canon.UnmarshalTrusted(config, c); err != nil {
			return nil, capErrorf(CodeBadConfig, "%v", err)
		}
	}
	if holdsSecret(c.URL) {
		return nil, capErrorf(CodeBadConfig, "url holds a reference to a secret, which would be sent as it is written: a secret goes into secret_headers")
	}
	if c.MaxRedirects > maxRedirects {
		return nil, capErrorf(CodeBadConfig, "max_redirects is %d, at most %d are allowed", c.MaxRedirects, maxRedirects)
	}
	for _, status := range c.CompensateOn {
		if status < 100 || status > 599 {
			return nil, capErrorf(CodeBadConfig, "compensate_on names the status %d", status)
		}
	}
	for _, status := range c.RetryOn {
		switch status {
		case 408, 409, 423, 425: // too slow, in conflict, locked, too early: the server has not acted
		default: // 429 and 5xx of an idempotent effect are retried anyway; of another one nobody can tell
			return nil, capErrorf(CodeBadConfig, "retry_on names the status %d: it may have 408, 409, 423 and 425", status)
		}
	}
	var err error
	if c.Headers, err = cleanHeaders(c.Headers); err != nil {
		return nil, capErrorf(CodeBadConfig, "%v", err)
	}
	if c.SecretHeaders, err = cleanHeaders(c.SecretHeaders); err != nil {
		return nil, capErrorf(CodeBadConfig, "%v", err)
	}
	if err := plainHeaders(c.Headers); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.SecretHeaders)) {
		if _, twice := c.Headers[name]; twice {
			return nil, capErrorf(CodeBadConfig, "header %q is in headers and in secret_headers", name)
		}
		if !holdsSecret(c.SecretHeaders[name]) {
			return nil, capErrorf(CodeBadConfig, "secret header %q holds no reference such as secret://NAME", name)
		}
	}
	return c, nil
}

// holdsSecret reports whether a text has a reference to a secret in it.
func holdsSecret(text string) bool { return strings.Contains(text, "secret://") }

// plainHeaders refuses headers that hold a reference to a secret: it would be sent as it is written.
func plainHeaders(headers map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if holdsSecret(headers[name]) {
			return capErrorf(CodeBadConfig, "header %q holds a reference to a secret: it belongs in secret_headers", shortened(name))
		}
	}
	return nil
}

// locate finds the URL: the params', or the config's with the params' path.
func (p *httpParams) locate(fixed string) (*HTTPTarget, error) {
	switch {
	case fixed != "" && p.URL != "":
		return nil, capErrorf(CodeParamNotAllowed, "params.url is %q, and config.url is fixed", p.URL)
	case fixed == "" && p.Path != "":
		return nil, capErrorf(CodeParamNotAllowed, "params.path is %q, and there is no config.url that it could be below", p.Path)
	case fixed == "" && p.URL == "":
		return nil, capErrorf(CodeBadURL, "neither config nor params have a url")
	}
	t, err := parseURL(fixed + p.URL)
	if err != nil {
		return nil, err
	}
	if fixed != "" {
		t.Reviewed, t.base = true, t.URL.Path
	}
	if p.Path != "" {
		if err := t.descend(p.Path); err != nil {
			return nil, err
		}
	}
	return t, p.query(t)
}

// query adds the params' query to the URL's.
func (p *httpParams) query(t *HTTPTarget) error {
	if len(p.Query) == 0 {
		return nil
	}
	fixed, err := url.ParseQuery(t.URL.RawQuery)
	if err != nil {
		return capErrorf(CodeBadURL, "the query of %q: %v", t.URL, err)
	}
	more := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(p.Query)) {
		values, err := queryValues(p.Query[name])
		if err != nil {
			return capErrorf(CodeBadParams, "params.query.%s: %v", name, err)
		}
		switch there, given := fixed[name]; {
		case !given:
			more[name] = values
		case !slices.Equal(there, values):
			return capErrorf(CodeParamNotAllowed, "params.query.%s is %q, and the url fixes it to %q", name, values, there)
		}
	}
	query := t.URL.RawQuery
	if query != "" && len(more) > 0 {
		query += "&"
	}
	t.URL.RawQuery = query + more.Encode()
	return nil
}

// queryValues returns a text, number or boolean, or each of a list, as text.
func queryValues(data canon.Raw) ([]string, error) {
	v, err := canon.Decode(data)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]string, len(list))
	for i, v := range list {
		switch v := v.(type) {
		case string:
			out[i] = v
		case nil, []byte, []any, map[string]any:
			return nil, fmt.Errorf("want text, a number, a boolean or a list of these, not %T", v)
		case float64:
			out[i] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			out[i] = fmt.Sprint(v)
		}
	}
	return out, nil
}

// headers returns the config's headers and, where those do not say otherwise,
// the params'.
func (p *httpParams) headers(c *httpConfig) (map[string]string, error) {
	given, err := cleanHeaders(p.Headers)
	if err != nil {
		return nil, capErrorf(CodeParamNotAllowed, "params: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, secret := c.SecretHeaders[name]; secret {
			return nil, capErrorf(CodeParamNotAllowed, "params: header %q is a secret of config", name)
		}
		if fixed, ok := c.Headers[name]; ok && fixed != given[name] {
			return nil, capErrorf(CodeParamNotAllowed, "params: header %q is %q, and config fixes it to %q", name, given[name], fixed)
		}
	}
	maps.Copy(given, c.Headers)
	return given, nil
}

// body fills in the body and returns its type, or "" without one.
func (p *httpParams) body(t *HTTPTarget) (string, error) {
	hasBody := len(p.Body) > 0 && string(p.Body) != canon.Null
	switch {
	case len(p.JSON) > 0 && hasBody:
		return "", capErrorf(CodeBadParams, "params have json and body: want one")
	case len(p.JSON) > 0:
		text, err := canon.ToJSON(p.JSON)
		if err != nil {
			return "", capErrorf(CodeBadParams, "params.json: %v", err)
		}
		t.Body = text
		return "application/json", nil
	case !hasBody:
		return "", nil
	}
	v, err := canon.Decode(p.Body)
	if err != nil {
		return "", capErrorf(CodeBadParams, "params.body: %v", err)
	}
	switch v := v.(type) {
	case string:
		t.Body = []byte(v)
		return "text/plain; charset=utf-8", nil
	case []byte:
		t.Body = v
		return "application/octet-stream", nil
	default:
		return "", capErrorf(CodeBadParams, "params.body is %T: want text or bytes", v)
	}
}

// method fills in the method: the config's, the params', or what fits the body.
func (p *httpParams) method(t *HTTPTarget, fixed string) error {
	fixed, given := strings.ToUpper(fixed), strings.ToUpper(p.Method)
	switch t.Method = fixed; {
	case fixed != "" && given != "" && given != fixed:
		return capErrorf(CodeParamNotAllowed, "params.method is %q, and config fixes it to %q", given, fixed)
	case fixed == "" && given != "":
		t.Method = given
	case fixed == "" && t.Body != nil:
		t.Method = "POST"
	case fixed == "":
		t.Method = "GET"
	}
	switch t.Method {
	case "GET", "HEAD":
		if t.Body != nil {
			return capErrorf(CodeBadParams, "a %s has no body", t.Method)
		}
	case "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
	default:
		return capErrorf(CodeMethodNotAllowed, "method %q is not supported", t.Method)
	}
	return nil
}

// Allowed returns the first bound that the target exceeds, or nil. A host in p
// is a name or an address, or "*.example.com" for all names below example.com.
func (t *HTTPTarget) Allowed(p *manifest.CapParams) *CapError {
	method := func(m string) bool { return strings.EqualFold(m, t.Method) }
	scheme := func(s string) bool { return strings.EqualFold(s, t.URL.Scheme) }
	switch {
	case !slices.ContainsFunc(p.Schemes, scheme):
		return capErrorf(CodeSchemeNotAllowed, "scheme %q is not in %q", t.URL.Scheme, p.Schemes)
	case !t.NamedIn(p.Hosts) && !slices.ContainsFunc(p.Hosts, t.below):
		return capErrorf(CodeHostNotAllowed, "host %q is not in %q", t.Host, p.Hosts)
	case !slices.Contains(p.Ports, t.Port):
		return capErrorf(CodePortNotAllowed, "port %d is not in %d", t.Port, p.Ports)
	case !slices.ContainsFunc(p.Methods, method):
		return capErrorf(CodeMethodNotAllowed, "method %q is not in %q", t.Method, p.Methods)
	case !slices.ContainsFunc(p.Paths, func(prefix string) bool { return within(prefix, t.URL.Path) }):
		return capErrorf(CodePathNotAllowed, "path %q is not below %q", t.URL.Path, p.Paths)
	case p.MaxBytes > 0 && uint64(len(t.Body)) > p.MaxBytes:
		return capErrorf(CodeTooLarge, "the body has %d bytes, max_bytes is %d", len(t.Body), p.MaxBytes)
	}
	return nil
}

// NamedIn reports whether hosts name the target's host itself, not by "*.".
func (t *HTTPTarget) NamedIn(hosts []string) bool {
	return slices.Contains(hosts, t.Host) || slices.ContainsFunc(hosts, func(h string) bool {
		name, err := canonicalHost(strings.TrimSuffix(strings.TrimPrefix(h, "["), "]"))
		return err == nil && name == t.Host
	})
}

// below reports whether pattern is "*." and a name that the host is below.
func (t *HTTPTarget) below(pattern string) bool {
	name, ok := strings.CutPrefix(pattern, "*.")
	if !ok {
		return false
	}
	name, err := canonicalHost(name)
	return err == nil && strings.HasSuffix(t.Host, "."+name)
}

func httpAdapter() adapter {
	return adapter{
		parse: func(config, params canon.Raw) (target, error) { return ParseHTTP(config, params) },
		uses:  butTokens,
		reads: func(config, params canon.Raw) bool {
			t, err := ParseHTTP(config, params)
			return err == nil && (t.Method == "GET" || t.Method == "HEAD" || t.Method == "OPTIONS")
		},
		fixed: func(config canon.Raw, p *manifest.CapParams) *CapError {
			t, err := ParseHTTP(config, nil)
			if err != nil {
				return nil
			}
			t.leave(p, config)
			return t.Allowed(p)
		},
		needs: func(config canon.Raw) (Needs, error) {
			address, fixed, err := textOf(config, "url")
			if err != nil || !fixed {
				return Needs{Roaming: true}, err
			}
			return goesTo(address)
		},
	}
}

// ParseAddress returns the target of a request to an address, in canonical form.
func ParseAddress(address string) (*HTTPTarget, error) {
	params, err := canon.Marshal(map[string]string{"url": address})
	if err != nil {
		return nil, err
	}
	return ParseHTTP(nil, params)
}

// goesTo returns the needs of an effect that goes to an address.
func goesTo(address string) (Needs, error) {
	t, err := ParseAddress(address)
	if err != nil {
		return Needs{}, err
	}
	return Needs{To: t.URL}, nil
}

// textOf returns a text of a config, and whether it is there.
func textOf(config canon.Raw, key string) (string, bool, error) {
	item, err := canon.Lookup(config, key)
	if err != nil {
		return "", false, nil // it is not
	}
	r := canon.NewReader(item)
	s := r.Text()
	return s, true, r.Close()
}
