package governance

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

const (
	maxURLBytes  = 8192
	maxHostBytes = 253 // RFC 1035 2.3.4, as text
)

// Follow returns the request that a redirect of t to location asks for: t
// again, elsewhere. Another origin gets no headers of t but accept and
// accept-language: nobody knows which others are meant for its eyes.
func (t *HTTPTarget) Follow(location string) (*HTTPTarget, error) {
	location, _, _ = strings.Cut(location, "#")
	if err := checkURLText(location); err != nil {
		return nil, err
	}
	resolved, err := t.URL.Parse(location)
	if err != nil {
		return nil, capErrorf(CodeBadURL, "%q is not a URL", location)
	}
	next, err := parseURL(resolved.String())
	if err != nil {
		return nil, err
	}
	if err := checkReadings(next.URL.Path); err != nil {
		return nil, err
	}
	out := *t
	out.URL, out.Host, out.Port = next.URL, next.Host, next.Port
	out.Reviewed = t.Reviewed && t.Host == next.Host && t.Port == next.Port
	if !t.SameOrigin(next) {
		out.Secrets, out.Headers = nil, maps.Clone(t.Headers)
		maps.DeleteFunc(out.Headers, func(name, _ string) bool { return name != "accept" && name != "accept-language" })
	}
	return &out, nil
}

// Configured returns nil where t is at config.url or below it, as each request is
// before it is redirected, or where config has no url.
func (t *HTTPTarget) Configured() *CapError {
	switch {
	case t.base == "":
		return nil
	case !t.Reviewed:
		return capErrorf(CodeHostNotAllowed, "host %q, port %d is not that of config.url", t.Host, t.Port)
	case !within(t.base, t.URL.Path):
		return capErrorf(CodePathNotAllowed, "path %q is not below %q of config.url", t.URL.Path, t.base)
	}
	return nil
}

// SameOrigin reports whether two targets have scheme, host and port in common.
func (t *HTTPTarget) SameOrigin(o *HTTPTarget) bool {
	return t.URL.Scheme == o.URL.Scheme && t.Host == o.Host && t.Port == o.Port
}

// parseURL returns the canonical form of a URL, and nothing else of a target.
// It refuses whatever a client, a proxy and a server might read differently.
func parseURL(raw string) (*HTTPTarget, error) {
	if err := checkURLText(raw); err != nil {
		return nil, err
	}
	_, rest, ok := strings.Cut(raw, "://")
	authority := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority = rest[:i]
	}
	switch {
	case strings.Contains(raw, "#"):
		return nil, capErrorf(CodeBadURL, "%q has a fragment", raw)
	case strings.Contains(authority, "@"):
		return nil, capErrorf(CodeBadURL, "a url with a user or a password in it")
	case !ok || authority == "" || strings.Contains(authority, "%"):
		return nil, capErrorf(CodeBadURL, "%q is not scheme://host/path", raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, capErrorf(CodeBadURL, "%q is not a URL", raw)
	}
	t := &HTTPTarget{URL: u}
	switch u.Scheme {
	case "http":
		t.Port = 80
	case "https":
		t.Port = 443
	default:
		return nil, capErrorf(CodeSchemeNotAllowed, "%q has the scheme %q: want http or https", raw, u.Scheme)
	}
	usual := t.Port
	if u.Port() != "" {
		if t.Port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil || t.Port == 0 {
			return nil, capErrorf(CodeBadURL, "%q has the port %s", raw, u.Port())
		}
	}
	if t.Host, err = canonicalHost(u.Hostname()); err != nil {
		return nil, capErrorf(CodeBadURL, "host %q: %v", u.Hostname(), err)
	}
	u.Host = t.Host
	if strings.Contains(t.Host, ":") {
		u.Host = "[" + t.Host + "]"
	}
	if t.Port != usual {
		u.Host += ":" + strconv.FormatUint(t.Port, 10)
	}
	u.ForceQuery = false
	return t, t.setPath(u.EscapedPath())
}

// checkURLText refuses characters that parsers disagree about.
func checkURLText(raw string) error {
	_, query, _ := strings.Cut(raw, "?")
	switch {
	case len(raw) > maxURLBytes:
		return capErrorf(CodeBadURL, "%.32q… has %d bytes, at most %d are allowed", raw, len(raw), maxURLBytes)
	case strings.ContainsFunc(raw, func(r rune) bool {
		return r == '\\' || r == utf8.RuneError || unicode.IsControl(r) || unicode.IsSpace(r)
	}):
		return capErrorf(CodeBadURL, "%q holds a blank, a backslash or a control character", raw)
	case strings.ContainsFunc(query, func(r rune) bool { return r > unicode.MaxASCII }):
		return capErrorf(CodeBadURL, "%q has a query that is not percent-encoded", raw)
	}
	return nil
}

// canonicalHost returns a host, without brackets, in lower-case ASCII or as an
// address in its shortest form.
func canonicalHost(host string) (string, error) {
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return "", errors.New("it is not an address, or has a zone")
		}
		return addr.Unmap().String(), nil
	}
	host = strings.TrimSuffix(host, ".")
	// Hyphens may stand anywhere, as they do in names that exist.
	ascii, err := idna.New(idna.MapForLookup(), idna.BidiRule(), idna.CheckHyphens(false)).ToASCII(host)
	if err != nil {
		return "", errors.New("it is not a domain name")
	}
	given, labels := strings.Split(host, "."), strings.Split(ascii, ".")
	if len(given) != len(labels) || len(ascii) > maxHostBytes {
		return "", errors.New("it is not a domain name")
	}
	for i, label := range labels {
		plain := !strings.ContainsFunc(given[i], func(r rune) bool { return r > unicode.MaxASCII })
		switch {
		case label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-':
			return "", fmt.Errorf("%q cannot be a part of a domain name", given[i])
		case !plain && !strings.HasPrefix(label, "xn--"):
			return "", fmt.Errorf("%q stands for %q: write that", given[i], label)
		}
	}
	if last := labels[len(labels)-1]; numeric(last) {
		addr, err := netip.ParseAddr(ascii)
		if err != nil {
			return "", errors.New("it is a number, not a name: want an address in dotted decimal")
		}
		return addr.String(), nil
	}
	return ascii, nil
}

// numeric reports whether C libraries and browsers take a host that ends in
// this label for an address, however many dots it has.
func numeric(label string) bool {
	digits, set := label, "0123456789"
	if rest, hex := strings.CutPrefix(label, "0x"); hex {
		digits, set = rest, set+"abcdef"
	}
	return strings.Trim(digits, set) == ""
}

// setPath sets the path in its canonical form: no dot segments, no empty ones
// but the last, the same characters encoded whoever wrote it. A path that
// decodes further to something else than it seems to be is refused.
func (t *HTTPTarget) setPath(escaped string) error {
	segments := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for i, s := range segments {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return capErrorf(CodeBadURL, "path %q: %v", escaped, err)
		}
		deep := plain
		for again, err := url.PathUnescape(deep); err == nil && again != deep; again, err = url.PathUnescape(deep) {
			deep = again
		}
		name, _, _ := strings.Cut(deep, ";")
		hidden := (name == "." || name == "..") && name != plain
		if hidden || strings.ContainsAny(deep, `/\`) || strings.ContainsFunc(deep, unicode.IsControl) {
			return capErrorf(CodeBadURL, "path %q hides a slash, a dot segment or a control character", escaped)
		}
		segments[i] = plain
	}
	clean := path.Clean("/" + strings.Join(segments, "/"))
	switch segments[len(segments)-1] {
	case "", ".", "..":
		clean = strings.TrimSuffix(clean, "/") + "/"
	}
	t.URL.Path = clean
	segments = strings.Split(clean, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	t.URL.RawPath = strings.Join(segments, "/")
	return nil
}

// checkReadings refuses a path in which some servers find slashes and dot segments
// that others do not: those that fold characters which only look the same, and those
// that take UTF-8 which is longer than it may be.
func checkReadings(p string) error {
	for again, err := url.PathUnescape(p); err == nil && again != p; again, err = url.PathUnescape(p) {
		p = again
	}
	folded := norm.NFKC.String(p)
	hidden := overlong(p) || strings.Contains(folded, `\`) || strings.Count(folded, "/") != strings.Count(p, "/")
	for segment := range strings.SplitSeq(folded, "/") {
		name, _, _ := strings.Cut(segment, ";")
		hidden = hidden || name == "." || name == ".."
	}
	if hidden {
		return capErrorf(CodeBadURL, "path %q holds a slash, a backslash or a dot segment to some servers", p)
	}
	return nil
}

// overlong reports whether text holds a character that is encoded in more bytes than
// it takes (RFC 3629 3), as %c0%af is for a slash.
func overlong(text string) bool {
	for i := 1; i < len(text); i++ {
		switch first, next := text[i-1], text[i]; {
		case (first == 0xc0 || first == 0xc1) && next >= 0x80 && next < 0xc0,
			first == 0xe0 && next >= 0x80 && next < 0xa0,
			first == 0xf0 && next >= 0x80 && next < 0x90:
			return true
		}
	}
	return false
}

// descend goes to a path below the target's.
func (t *HTTPTarget) descend(below string) error {
	base := t.URL.Path
	if strings.ContainsAny(below, `?#\`) || strings.ContainsFunc(below, unicode.IsControl) {
		return capErrorf(CodeBadURL, "params.path %q holds a character that no path has", below)
	}
	if err := t.setPath(t.URL.EscapedPath() + "/" + below); err != nil {
		return err
	}
	if len(t.URL.RawPath) > maxURLBytes {
		return capErrorf(CodeBadURL, "params.path has %d bytes, at most %d are allowed", len(below), maxURLBytes)
	}
	if !within(base, t.URL.Path) {
		return capErrorf(CodePathNotAllowed, "params.path %q leaves %q", below, base)
	}
	return nil
}

// within reports whether a path is prefix or below it, by whole segments.
func within(prefix, full string) bool {
	dir := strings.TrimSuffix(prefix, "/")
	return strings.HasPrefix(prefix, "/") && (full == dir || strings.HasPrefix(full, dir+"/"))
}

// cleanHeaders returns headers by lower-case name and refuses what would make
// another request of the one that was judged.
func cleanHeaders(headers map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(headers))
	for _, given := range slices.Sorted(maps.Keys(headers)) {
		name, value := strings.ToLower(given), headers[given]
		_, twice := out[name]
		switch {
		case name == "" || strings.Trim(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") != "":
			return nil, fmt.Errorf("%q is not the name of a header", given)
		case twice:
			return nil, fmt.Errorf("header %q is there twice", name)
		case reservedHeader(name):
			return nil, fmt.Errorf("header %q is not yours to set", name)
		case strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
			return nil, fmt.Errorf("header %q holds a control character", name)
		}
		out[name] = value
	}
	return out, nil
}

// checkHeaderNames refuses what a server may take for another header: HTTP tells
// x_a from x-a, but CGI and all that came of it make HTTP_X_A of both.
func (t *HTTPTarget) checkHeaderNames() error {
	names := append(slices.Sorted(maps.Keys(t.Headers)), slices.Sorted(maps.Keys(t.Secrets))...)
	known := make(map[string]string, len(names))
	for _, name := range names {
		plain := plainHeader(name)
		if other, taken := known[plain]; taken {
			return capErrorf(CodeParamNotAllowed, "header %q is %q to some servers", name, other)
		}
		if reservedHeader(plain) {
			return capErrorf(CodeParamNotAllowed, "header %q is %q to some servers, which is not yours to set", name, plain)
		}
		known[plain] = name
	}
	return nil
}

// plainHeader returns the name of a header as servers that tell the fewest apart
// have it.
func plainHeader(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}

func reservedHeader(name string) bool {
	switch name {
	case "connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", // of the connection
		"content-length", "host", "idempotency-key", // the adapter's
		"x-http-method", "x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url":
		return true // some servers take these for method and path
	}
	return strings.HasPrefix(name, "proxy-")
}
