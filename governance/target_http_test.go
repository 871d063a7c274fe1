package governance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func parseHTTP(t require.TestingT, config, params string) (*HTTPTarget, error) {
	c, err := canon.FromJSON([]byte(config))
	require.NoError(t, err)
	p, err := canon.FromJSON([]byte(params))
	require.NoError(t, err)
	return ParseHTTP(c, p)
}

// parseHTTPURL parses a GET of a URL that params give.
func parseHTTPURL(t require.TestingT, url string) (*HTTPTarget, error) {
	params, err := json.Marshal(map[string]string{"url": url})
	require.NoError(t, err)
	return parseHTTP(t, `{}`, string(params))
}

func requireHTTPCode(t *testing.T, code Code, err error, what string) {
	t.Helper()
	var denied *CapError
	require.ErrorAs(t, err, &denied, what)
	require.Equal(t, code, denied.Code, "%s: %v", what, denied)
}

func TestURLHasOneForm(t *testing.T) {
	for given, want := range map[string]string{
		"HTTP://Example.COM":                              "http://example.com/",
		"http://example.com.:80/":                         "http://example.com/",
		"https://example.com:0443/a":                      "https://example.com/a",
		"http://example.com:/":                            "http://example.com/",
		"https://example.com:80":                          "https://example.com:80/",
		"http://bücher.example/ä":                         "http://xn--bcher-kva.example/%C3%A4",
		"http://BÜCHER.example":                           "http://xn--bcher-kva.example/",
		"http://[::FFFF:10.0.0.1]/":                       "http://10.0.0.1/",
		"http://[::ffff:a00:1]:8080/":                     "http://10.0.0.1:8080/",
		"http://[2001:DB8:0:0::1]/":                       "http://[2001:db8::1]/",
		"http://10.0.0.1./":                               "http://10.0.0.1/",
		"http://example.com//a///b/":                      "http://example.com/a/b/",
		"http://example.com/a/../b":                       "http://example.com/b",
		"http://example.com/a/%2e%2E/b/.":                 "http://example.com/b/",
		"http://example.com/../../b":                      "http://example.com/b",
		"http://example.com/%41%7e%3b%20x":                "http://example.com/A~%3B%20x",
		"http://example.com/100%25":                       "http://example.com/100%25",
		"http://example.com?":                             "http://example.com/",
		"http://example.com/?a=1&b=%2F&c":                 "http://example.com/?a=1&b=%2F&c",
		"http://r3---sn-ap.example.com/":                  "http://r3---sn-ap.example.com/",
		"http://1password.com/x":                          "http://1password.com/x",
		"http://192.168.0.1.example.com/":                 "http://192.168.0.1.example.com/",
		"http://" + strings.Repeat("a", 63) + ".example/": "http://" + strings.Repeat("a", 63) + ".example/",
	} {
		got, err := parseHTTPURL(t, given)
		require.NoError(t, err, given)
		require.Equal(t, want, got.URL.String(), given)
		again, err := parseHTTPURL(t, got.URL.String())
		require.NoError(t, err, given)
		require.Equal(t, got, again, given)
	}
}

func TestURLWithTwoReadingsIsRefused(t *testing.T) {
	for _, url := range []string{
		"", "/", "example.com", "//example.com/", "http:", "http:/example.com", "http:///x", "http:example.com", "http://:80/",
		"http://user@example.com/", "http://user:pass@example.com/", "http://@example.com/", "http://example.com@evil.example/",
		"http://example.com#@evil.example/", "http://example.com/#a", "http://example.com\\@evil.example/", "http://example.com/a\\b",
		" http://example.com/", "http://example.com/ ", "http://exa mple.com/", "http://example.com/\r\nHost: evil", "http://example.com/\x00",
		"http://example.com/?a=\tb", "http://example.com/?ä", "http://example.com/\u2028", "http://ex\uFFFDample.com/",
		"http://2130706433/", "http://017700000001/", "http://0x7f000001/", "http://0x7f.1/", "http://127.1/", "http://127.0.1/",
		"http://0177.0.0.1/", "http://0x7f.0.0.1/", "http://127.0.0.01/", "http://256.0.0.1/", "http://1.2.3.4.5/", "http://0/", "http://0x/", "http://a.0x1/", "http://example.com.1/", "http://127.0.0.1../",
		"http://①②⑦.0.0.1/", "http://１２７.0.0.1/", "http://ｅxample.com/", "http://example。com/", "http://exam\u00adple.com/", "http://ex\u200bample.com/", "http://ex%41mple.com/", "http://%31%32%37.0.0.1/", "http://ﬁ.example/", "http://xn--a.example/", "http://xn--example-.com/",
		"http://example..com/", "http://.example.com/", "http://-a.example/", "http://a-.example/", "http://a_b.example/", "http://a*b.example/", "http://" + strings.Repeat("a", 64) + ".example/", "http://" + strings.Repeat("a.", 127) + "example/",
		"http://[::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1/", "http://::1/", "http://[127.0.0.1]/x:", "http://[example.com]/", "http://[::ffff:127.1]/",
		"http://example.com:0/", "http://example.com:65536/", "http://example.com:-1/", "http://example.com:http/", "http://example.com:80:80/",
		"http://example.com/a%2fb", "http://example.com/a%5Cb", "http://example.com/%00", "http://example.com/%0d%0a", "http://example.com/%zz",
		"http://example.com/%252e%252e/b", "http://example.com/a%25252fb", "http://example.com/..;/b", "http://example.com/%2e%2e%3bx/b",
		"http://example.com/" + strings.Repeat("a", maxURLBytes),
	} {
		_, err := parseHTTPURL(t, url)
		requireHTTPCode(t, CodeBadURL, err, url)
	}
	for _, url := range []string{"ftp://example.com/", "file://host/etc/passwd", "gopher://example.com/", "unix://a/b", "javascript://a/b"} {
		_, err := parseHTTPURL(t, url)
		requireHTTPCode(t, CodeSchemeNotAllowed, err, url)
	}
}

func TestConfigWinsOverParams(t *testing.T) {
	const config = `{"url": "https://api.example.com/v1/refunds?team=7", "method": "POST", "headers": {"X-Team": "blue"},
		"secret_headers": {"Authorization": "Bearer secret://TOKEN"}, "max_bytes": 9, "max_redirects": 2, "compensate_on": [409]}`
	got, err := parseHTTP(t, config, `{"method": "post", "path": "42/../43/a b", "query": {"team": 7, "tag": ["x", true, 1.5], "q": "a&b"},
		"headers": {"x-team": "blue", "Accept": "text/csv"}, "json": {"amount": 12345678901234567890123}}`)
	require.NoError(t, err)
	require.Equal(t, "https://api.example.com/v1/refunds/43/a%20b?team=7&q=a%26b&tag=x&tag=true&tag=1.5", got.URL.String())
	require.Equal(t, "POST", got.Method)
	require.Equal(t, "api.example.com", got.Host)
	require.Equal(t, uint64(443), got.Port)
	require.True(t, got.Reviewed)
	require.Equal(t, map[string]string{"x-team": "blue", "accept": "text/csv", "content-type": "application/json"}, got.Headers)
	require.Equal(t, map[string]string{"authorization": "Bearer secret://TOKEN"}, got.Secrets)
	require.JSONEq(t, `{"amount": 12345678901234567890123}`, string(got.Body))
	require.Equal(t, []uint64{9, 2, 409}, []uint64{got.MaxBytes, got.MaxRedirects, got.CompensateOn[0]})

	for params, code := range map[string]Code{
		`{"url": "https://api.example.com/v1/refunds"}`:  CodeParamNotAllowed,
		`{"method": "GET"}`:                              CodeParamNotAllowed,
		`{"headers": {"X-TEAM": "red"}}`:                 CodeParamNotAllowed,
		`{"headers": {"authorization": "Bearer x"}}`:     CodeParamNotAllowed,
		`{"headers": {"Host": "evil.example"}}`:          CodeParamNotAllowed,
		`{"headers": {"Content-Length": "0"}}`:           CodeParamNotAllowed,
		`{"headers": {"Idempotency-Key": "k"}}`:          CodeParamNotAllowed,
		`{"headers": {"Transfer-Encoding": "chunked"}}`:  CodeParamNotAllowed,
		`{"headers": {"Connection": "X-Team"}}`:          CodeParamNotAllowed,
		`{"headers": {"Proxy-Authorization": "x"}}`:      CodeParamNotAllowed,
		`{"headers": {"X-HTTP-Method-Override": "PUT"}}`: CodeParamNotAllowed,
		`{"headers": {"a b": "x"}}`:                      CodeParamNotAllowed,
		`{"headers": {"A": "1", "a": "2"}}`:              CodeParamNotAllowed,
		`{"headers": {"a": "x\r\nHost: evil"}}`:          CodeParamNotAllowed,
		`{"query": {"team": 8}}`:                         CodeParamNotAllowed,
		`{"query": {"team": [7, 8]}}`:                    CodeParamNotAllowed,
		`{"query": {"a": {"b": 1}}}`:                     CodeBadParams,
		`{"query": {"a": null}}`:                         CodeBadParams,
		`{"nothing": 1}`:                                 CodeParamNotAllowed,
		`{"path": 1}`:                                    CodeParamNotAllowed,
		`[]`:                                             CodeParamNotAllowed,
		`{"json": 1, "body": "x"}`:                       CodeBadParams,
		`{"body": 1}`:                                    CodeBadParams,
		`{"path": "../admin"}`:                           CodePathNotAllowed,
		`{"path": "../refundsx"}`:                        CodePathNotAllowed,
		`{"path": "%2e%2e/admin"}`:                       CodePathNotAllowed,
		`{"path": "/../../v1/refund"}`:                   CodePathNotAllowed,
		`{"path": "..%2fadmin"}`:                         CodeBadURL,
		`{"path": "..\\admin"}`:                          CodeBadURL,
		`{"path": "42?team=8"}`:                          CodeBadURL,
		`{"path": "42#x"}`:                               CodeBadURL,
		`{"path": "a\nb"}`:                               CodeBadURL,
	} {
		_, err := parseHTTP(t, config, params)
		requireHTTPCode(t, code, err, params)
	}
}

func TestParamsChooseWhatConfigLeavesOpen(t *testing.T) {
	for params, want := range map[string]string{
		`{"url": "http://a.example"}`:                              "GET http://a.example/ ",
		`{"url": "http://a.example", "json": null}`:                "POST http://a.example/ null",
		`{"url": "http://a.example", "body": null}`:                "GET http://a.example/ ",
		`{"url": "http://a.example", "body": "", "method": "PUT"}`: "PUT http://a.example/ ",
		`{"url": "http://a.example?x=1", "query": {"y": -2}}`:      "GET http://a.example/?x=1&y=-2 ",
		`{"url": "http://a.example", "method": "delete"}`:          "DELETE http://a.example/ ",
	} {
		got, err := parseHTTP(t, `{}`, params)
		require.NoError(t, err, params)
		require.Equal(t, want, got.Method+" "+got.URL.String()+" "+string(got.Body), params)
		require.False(t, got.Reviewed)
	}
	for params, code := range map[string]Code{
		`null`:           CodeBadURL,
		`{"path": "/x"}`: CodeParamNotAllowed,
		`{"url": "http://a.example", "method": "CONNECT"}`:          CodeMethodNotAllowed,
		`{"url": "http://a.example", "method": "GET /x"}`:           CodeMethodNotAllowed,
		`{"url": "http://a.example", "method": "GET", "body": "x"}`: CodeBadParams,
		`{"url": "http://a.example?a;b", "query": {"c": 1}}`:        CodeBadURL,
		`{"url": "http://a.example", "path": "/x"}`:                 CodeParamNotAllowed,
	} {
		_, err := parseHTTP(t, `{}`, params)
		requireHTTPCode(t, code, err, params)
	}
}

func TestBadHTTPConfigIsNamed(t *testing.T) {
	for _, config := range []string{
		`{"uri": "x"}`, `{"url": 1}`, `{"max_redirects": 21}`, `{"compensate_on": [99]}`, `{"headers": {"Host": "x"}}`, `{"headers": {"A": "1", "a": "1"}}`,
		`{"secret_headers": {"A": "in plain sight"}}`, `{"headers": {"Authorization": "Bearer secret://A"}}`, `{"url": "https://h/?key=secret://A"}`, `{"secret_headers": {"Cookie\n": "secret://A"}}`, `{"headers": {"a": "1"}, "secret_headers": {"A": "secret://A"}}`,
	} {
		_, err := parseHTTP(t, config, `{"url": "http://a.example"}`)
		requireHTTPCode(t, CodeBadConfig, err, config)
	}
}

func httpBounds() manifest.CapParams {
	return manifest.CapParams{
		Schemes: []string{"https"}, Hosts: []string{"api.example.com", "*.Shop.example", "10.0.0.1", "[::1]", "bücher.example", "*.0.0.1", "*"},
		Ports: []uint64{443, 8443}, Methods: []string{"GET", "POST"}, Paths: []string{"/v1/", "/open"}, MaxBytes: 4,
	}
}

func TestHTTPCapabilityBoundsTheTarget(t *testing.T) {
	bounds := httpBounds()
	for url, code := range map[string]Code{
		"https://api.example.com/v1":            "",
		"https://API.example.com.:8443/v1/x":    "",
		"https://a.shop.example/open":           "",
		"https://a.b.shop.example/open/":        "",
		"https://[::ffff:a00:1]/open":           "",
		"https://[0::1]/open":                   "",
		"https://xn--bcher-kva.example/open":    "",
		"http://api.example.com:443/v1":         CodeSchemeNotAllowed,
		"https://shop.example/open":             CodeHostNotAllowed,
		"https://evilshop.example/open":         CodeHostNotAllowed,
		"https://api.example.com.evil.org/open": CodeHostNotAllowed,
		"https://xapi.example.com/open":         CodeHostNotAllowed,
		"https://аpi.example.com/open":          CodeHostNotAllowed, // Cyrillic
		"https://127.0.0.1/open":                CodeHostNotAllowed,
		"https://api.example.com:8080/v1":       CodePortNotAllowed,
		"https://api.example.com/v10":           CodePathNotAllowed,
		"https://api.example.com/":              CodePathNotAllowed,
		"https://api.example.com/v1/../v2":      CodePathNotAllowed,
		"https://api.example.com/v1/%2e%2e/v2":  CodePathNotAllowed,
		"https://api.example.com/openx":         CodePathNotAllowed,
		"https://api.example.com/V1":            CodePathNotAllowed,
	} {
		target, err := parseHTTPURL(t, url)
		require.NoError(t, err, url)
		denied := target.Allowed(&bounds)
		if code == "" {
			require.Nil(t, denied, url)
			continue
		}
		require.NotNil(t, denied, url)
		require.Equal(t, code, denied.Code, url)
	}
	for params, code := range map[string]Code{
		`{"url": "https://api.example.com/v1", "body": "1234"}`:     "",
		`{"url": "https://api.example.com/v1", "body": "12345"}`:    CodeTooLarge,
		`{"url": "https://api.example.com/v1", "method": "DELETE"}`: CodeMethodNotAllowed,
	} {
		target, err := parseHTTP(t, `{}`, params)
		require.NoError(t, err)
		denied := target.Allowed(&bounds)
		require.Equal(t, code == "", denied == nil, params)
		if denied != nil {
			require.Equal(t, code, denied.Code)
		}
	}
}

func TestHeadersAreComparedAsServersDo(t *testing.T) {
	const config = `{"url": "https://api.example.com/", "headers": {"X-Team": "blue"}, "secret_headers": {"X-Api-Key": "secret://K"}}`
	for _, name := range []string{
		"X_Api_Key", "x-api_key", "x.api.key", "X_Team", "X_HTTP_Method_Override", "x_original_url", "Content_Length", "transfer_encoding", "Proxy_Authorization",
	} {
		params := `{"headers": {"` + name + `": "mine"}}`
		_, err := parseHTTP(t, config, params)
		t.Log(name)
		requireCode(t, CodeParamNotAllowed, err)
		_, denied := adapterOf(manifest.CapHTTP).parse.target(&manifest.Effect{Config: rawJSON(t, config)}, rawJSON(t, params))
		require.NotNil(t, denied)
		require.Equal(t, CodeParamNotAllowed, denied.Code)
	}
	target, err := parseHTTP(t, config, `{"headers": {"X_Trace": "1", "x-team": "blue"}}`)
	require.NoError(t, err)
	require.Len(t, target.Headers, 2)
	_, err = parseHTTP(t, `{"url": "https://api.example.com/", "headers": {"X_A": "1", "X-A": "2"}}`, `{}`)
	require.Error(t, err)
}

// TestPathHidesNothingFromServersThatFold says that characters which only look like
// dots and slashes, and UTF-8 that is longer than it may be, lead nowhere.
func TestPathHidesNothingFromServersThatFold(t *testing.T) {
	config := `{"url": "https://api.example.com/v1"}`
	for _, hidden := range []string{
		"%c0%ae%c0%ae/keys", "..%c0%af..%c0%afkeys", "%e0%80%ae./keys", "%c1%9ckeys", "%f0%80%80%afkeys", "%25c0%25af", "．．/keys", "%ef%bc%8e./keys", "‥/keys",
		"․․/keys", "..／keys", "..＼keys", "．．;x/keys", "..；/keys",
	} {
		params := `{"path": "` + hidden + `"}`
		_, err := parseHTTP(t, config, params)
		requireHTTPCode(t, CodeBadURL, err, hidden)
		target, err := parseHTTPURL(t, "https://api.example.com/v1")
		require.NoError(t, err)
		_, err = target.Follow("/v1/" + hidden)
		requireHTTPCode(t, CodeBadURL, err, hidden)
	}
	for _, plain := range []string{"a…b", "%e9t%e9", "caf%c3%a9", "５", "x..y", "%c0%20", "½", "．", "日本語", "%f0%9f%98%80"} {
		_, err := parseHTTP(t, config, `{"path": "x`+plain+`"}`)
		require.NoError(t, err, plain)
	}
}

func TestEmptyListAllowsNothing(t *testing.T) {
	target, err := parseHTTPURL(t, "https://api.example.com/v1")
	require.NoError(t, err)
	for code, empty := range map[Code]func(*manifest.CapParams){
		CodeSchemeNotAllowed: func(p *manifest.CapParams) { p.Schemes = nil },
		CodeHostNotAllowed:   func(p *manifest.CapParams) { p.Hosts = []string{} },
		CodePortNotAllowed:   func(p *manifest.CapParams) { p.Ports = nil },
		CodeMethodNotAllowed: func(p *manifest.CapParams) { p.Methods = nil },
		CodePathNotAllowed:   func(p *manifest.CapParams) { p.Paths = []string{""} },
	} {
		bounds := httpBounds()
		require.Nil(t, target.Allowed(&bounds))
		empty(&bounds)
		denied := target.Allowed(&bounds)
		require.NotNil(t, denied, code)
		require.Equal(t, code, denied.Code)
	}
}

func TestOnlyWholeNamesAreNamed(t *testing.T) {
	target, err := parseHTTPURL(t, "https://a.shop.example/")
	require.NoError(t, err)
	require.False(t, target.NamedIn([]string{"*.shop.example", "shop.example", "*"}))
	require.True(t, target.NamedIn([]string{"x.example", "A.Shop.example."}))
}

func TestRedirectKeepsNothingForStrangers(t *testing.T) {
	target, err := parseHTTP(t, `{"url": "https://api.example.com/a/b?x=1", "headers": {"X-Team": "blue", "Accept": "text/csv"},
		"secret_headers": {"Authorization": "secret://T"}}`, `{}`)
	require.NoError(t, err)
	for location, want := range map[string]string{
		"c":                             "https://api.example.com/a/c",
		"/c?y#frag":                     "https://api.example.com/c?y",
		"//api.example.com/c":           "https://api.example.com/c",
		"https://API.example.com:443/c": "https://api.example.com/c",
	} {
		next, err := target.Follow(location)
		require.NoError(t, err, location)
		require.Equal(t, want, next.URL.String())
		require.True(t, next.Reviewed)
		require.Equal(t, target.Headers, next.Headers)
		require.Equal(t, target.Secrets, next.Secrets)
	}
	for _, location := range []string{
		"http://api.example.com/c", "https://api.example.com:444/c", "//evil.example", "https://evil.example/",
	} {
		next, err := target.Follow(location)
		require.NoError(t, err, location)
		require.Equal(t, map[string]string{"accept": "text/csv"}, next.Headers, location)
		require.Empty(t, next.Secrets)
		require.False(t, next.Reviewed, location)
	}
	for _, location := range []string{
		"\\\\evil.example", "/\\evil.example", "http://evil@api.example.com/", "http://0x7f.1/", "http:evil", "https://a b/", "/a%2fb", "javascript:alert(1)",
		"file:///etc/passwd", "http://[::1", "?ä",
	} {
		_, err := target.Follow(location)
		var denied *CapError
		require.ErrorAs(t, err, &denied, location)
	}
	require.Equal(t, "https://api.example.com/a/b?x=1", target.URL.String(), "the first target is as it was")
	require.Len(t, target.Headers, 2)
}

func FuzzParseHTTP(f *testing.F) {
	for _, url := range []string{"http://a.example/b/../c?d", "https://[::ffff:1.2.3.4]:1/%2e/;", "http://bücher.example.:080/%25/..;"} {
		f.Add(url, "a/../b", "x-y", "https://b.example/%41")
	}
	bounds := httpBounds()
	f.Fuzz(func(t *testing.T, url, path, header, location string) {
		for _, p := range []map[string]any{
			{"url": url, "headers": map[string]string{header: path}, "query": map[string]string{header: path}},
			{"path": path},
		} {
			params, err := canon.Marshal(p)
			if err != nil {
				t.Skip()
			}
			var config canon.Raw
			if p["url"] == nil {
				config, err = canon.Marshal(map[string]any{"url": "http://a.example/base/"})
				require.NoError(t, err)
			}
			target, err := ParseHTTP(config, params)
			var denied *CapError
			if err != nil {
				require.ErrorAs(t, err, &denied)
				continue
			}
			requireStableURL(t, target)
			_ = target.Allowed(&bounds)
			if config != nil {
				require.True(t, strings.HasPrefix(target.URL.EscapedPath()+"/", "/base/"), target.URL)
			}
			next, err := target.Follow(location)
			if err != nil {
				require.ErrorAs(t, err, &denied)
				continue
			}
			requireStableURL(t, next)
		}
	})
}

// requireStableURL requires that what a target says of itself is what anyone
// reads who gets its URL.
func requireStableURL(t *testing.T, target *HTTPTarget) {
	if len(target.URL.String()) > maxURLBytes {
		return // what is escaped in it, and a query, come to more than one that is given may have
	}
	again, err := parseURL(target.URL.String())
	require.NoError(t, err, target.URL)
	require.Equal(t, target.Host, again.Host)
	require.Equal(t, target.Port, again.Port)
	require.Equal(t, target.URL.String(), again.URL.String())
	require.Equal(t, target.Host, strings.Trim(again.URL.Hostname(), "[]"))
	require.NotContains(t, target.URL.Path+"/", "/../")
}
