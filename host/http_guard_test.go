package host

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// fakeResolver is Go's own resolver, asking a server in this process.
func fakeResolver(t *testing.T, answer func(name string) []string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			var err error
			for err == nil {
				err = serveDNS(server, answer)
			}
			_ = server.Close()
		}()
		t.Cleanup(func() { _ = client.Close() })
		return client, nil
	}}
}

// serveDNS answers one question as RFC 1035 4.2.2 says of streams.
func serveDNS(conn net.Conn, answer func(name string) []string) error {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	packet := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, packet); err != nil {
		return err
	}
	var msg dnsmessage.Message
	if err := msg.Unpack(packet); err != nil {
		return err
	}
	q := msg.Questions[0]
	msg.Response, msg.Additionals = true, nil
	var addrs []string
	if answer != nil {
		addrs = answer(strings.TrimSuffix(q.Name.String(), "."))
	}
	if addrs == nil {
		msg.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		addr := netip.MustParseAddr(a)
		var body dnsmessage.ResourceBody
		switch {
		case addr.Is4() && q.Type == dnsmessage.TypeA:
			body = &dnsmessage.AResource{A: addr.As4()}
		case addr.Is6() && q.Type == dnsmessage.TypeAAAA:
			body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
		default:
			continue
		}
		msg.Answers = append(msg.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 0}, Body: body})
	}
	out, err := msg.Pack()
	if err != nil {
		return err
	}
	_, err = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	return err
}

// hostileURLs are addresses that a cell has no business with, and what the
// gate's parser says; empty: it has a reading, and the guard refuses it.
var hostileURLs = map[string]governance.Code{
	"http://127.0.0.1/":                             "",
	"http://127.0.0.1:22/":                          "",
	"http://127.255.255.254/":                       "",
	"http://localhost/":                             "",
	"http://LOCALHOST./":                            "",
	"http://loop.test/":                             "",
	"http://loop6.test/":                            "",
	"http://mapped.test/":                           "",
	"http://metadata.test/latest/meta-data/":        "",
	"http://mixed.test/":                            "",
	"http://nat64.test/":                            "",
	"http://0.0.0.0/":                               "",
	"http://10.0.0.1/":                              "",
	"http://172.16.0.1/":                            "",
	"http://172.31.255.255/":                        "",
	"http://192.168.1.1/":                           "",
	"http://100.64.0.1/":                            "",
	"http://100.100.100.200/latest/meta-data/":      "", // a cloud's metadata
	"http://169.254.169.254/latest/meta-data/":      "",
	"http://169.254.170.2/v2/credentials":           "",
	"http://168.63.129.16/machine":                  "",
	"http://192.0.0.192/":                           "", // a cloud's metadata
	"http://192.0.2.1/":                             "",
	"http://198.18.0.1/":                            "",
	"http://198.51.100.1/":                          "",
	"http://203.0.113.1/":                           "",
	"http://224.0.0.1/":                             "",
	"http://240.0.0.1/":                             "",
	"http://255.255.255.255/":                       "",
	"http://[::]/":                                  "",
	"http://[::1]/":                                 "",
	"http://[0:0:0:0:0:0:0:1]:8080/":                "",
	"http://[::ffff:127.0.0.1]/":                    "",
	"http://[::ffff:7f00:1]/":                       "",
	"http://[::ffff:a9fe:a9fe]/latest/meta-data/":   "",
	"http://[::127.0.0.1]/":                         "",
	"http://[64:ff9b::7f00:1]/":                     "",
	"http://[64:ff9b:1::a9fe:a9fe]/":                "",
	"http://[2002:7f00:1::]/":                       "",
	"http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]": "",
	"http://[2001:db8::1]/":                         "",
	"http://[fc00::1]/":                             "",
	"http://[fd00:ec2::254]/latest/meta-data/":      "",
	"http://[fe80::1]/":                             "",
	"http://[fec0::1]/":                             "",
	"http://[ff02::1]/":                             "",
	"http://[5f00::1]/":                             "",
	"http://[fe80::1%25eth0]/":                      governance.CodeBadURL,
	"http://2130706433/":                            governance.CodeBadURL,
	"http://017700000001/":                          governance.CodeBadURL,
	"http://0x7f000001/":                            governance.CodeBadURL,
	"http://0x7f.1/":                                governance.CodeBadURL,
	"http://127.1/":                                 governance.CodeBadURL,
	"http://0177.0.0.1/":                            governance.CodeBadURL,
	"http://127.0.0.1.\u3002/":                      governance.CodeBadURL,
	"http://①②⑦.⓪.⓪.①/":                             governance.CodeBadURL,
	"http://%6c%6f%63%61%6c%68%6f%73%74/":           governance.CodeBadURL,
	"http://lo\u00adcalhost/":                       governance.CodeBadURL,
	"http://api.example.com@127.0.0.1/":             governance.CodeBadURL,
	"http://127.0.0.1#@api.example.com/":            governance.CodeBadURL,
	"http://127.0.0.1\\@api.example.com/":           governance.CodeBadURL,
	"http://127.0.0.1:0/":                           governance.CodeBadURL,
	"http:127.0.0.1/":                               governance.CodeBadURL,
	"http:///127.0.0.1/":                            governance.CodeBadURL,
	"file:///etc/passwd":                            governance.CodeBadURL,
	"file://localhost/etc/passwd":                   governance.CodeSchemeNotAllowed,
	"gopher://127.0.0.1:6379/_FLUSHALL":             governance.CodeSchemeNotAllowed,
	"dict://127.0.0.1:11211/stat":                   governance.CodeSchemeNotAllowed,
}

func hostileNames(name string) []string {
	return map[string][]string{
		"localhost":     {"127.0.0.1", "::1"},
		"loop.test":     {"127.0.0.1"},
		"loop6.test":    {"::1"},
		"mapped.test":   {"::ffff:127.0.0.1"},
		"metadata.test": {"169.254.169.254"},
		"mixed.test":    {"10.0.0.1", "fd00::1"},
		"nat64.test":    {"64:ff9b::a9fe:a9fe"},
	}[name]
}

func TestHostileURLsReachNobody(t *testing.T) {
	bounds := manifest.CapParams{
		Schemes: []string{"http", "https"}, Hosts: []string{"api.example.com", "*.example.org"}, Ports: []uint64{80, 8080, 22},
		Methods: []string{"GET"}, Paths: []string{"/"},
	}
	require.GreaterOrEqual(t, len(hostileURLs), 40)
	for url, code := range hostileURLs {
		x := httpTrial{params: m{"url": url}, config: m{}, dns: hostileNames, idempotent: true}
		target, err := governance.ParseHTTP(nil, httpCBOR(t, x.params))
		if code != "" {
			var denied *governance.CapError
			require.ErrorAs(t, err, &denied, url)
			require.Equal(t, code, denied.Code, url)
		} else {
			require.NoError(t, err, url)
			denied := target.Allowed(&bounds)
			require.NotNil(t, denied, url)
			require.Equal(t, governance.CodeHostNotAllowed, denied.Code, url)
			code = "address_not_allowed"
		}
		// A capability of type any bounds nothing: the guard alone stands there.
		r, payload := x.get(t)
		require.Equal(t, receipt.StatusError, r.Status, url)
		require.Empty(t, r.Class, url)
		require.True(t, r.Unsent, url)
		require.Equal(t, string(code), payload["code"], "%s: %v", url, payload["error"])

		x.cap = manifest.Cap{Type: manifest.CapHTTP, Params: bounds}
		r, _ = x.get(t)
		require.True(t, r.Unsent, url)
	}
}

func TestHostileRedirectsReachNobody(t *testing.T) {
	var location string
	base, addr := httpServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	})
	bounds := manifest.CapParams{
		Schemes: []string{"http"}, Hosts: []string{"127.0.0.1"}, Ports: []uint64{netPort(addr)}, Methods: []string{"GET"}, Paths: []string{"/"},
	}
	for url := range hostileURLs {
		for _, c := range []manifest.Cap{{Type: manifest.CapAny}, {Type: manifest.CapHTTP, Params: bounds}} {
			location = url
			x := httpTrial{config: m{"url": base, "max_redirects": 3}, open: []string{addr}, dns: hostileNames, cap: c, idempotent: true}
			r, payload := x.get(t)
			require.Equal(t, receipt.StatusError, r.Status, url)
			require.Empty(t, r.Class, url)
			require.False(t, r.Unsent, "the first request left")
			require.Contains(t, payload["code"], "_", "%s: %v", url, payload)
			require.NotEqual(t, "http_status", payload["code"], "%s: %v", url, payload)
		}
	}
}

func netPort(addr string) uint64 { return uint64(netip.MustParseAddrPort(addr).Port()) }

func TestNameThatChangesItsAddressGainsNothing(t *testing.T) {
	_, addr := httpServer(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	var asked atomic.Int64
	x := httpTrial{
		config:   m{},
		params:   m{"url": fmt.Sprintf("http://rebind.test:%d/", netPort(addr))},
		expected: []string{fmt.Sprintf("93.184.216.34:%d", netPort(addr))},
	}
	x.dns = func(string) []string {
		if asked.Load() == 0 {
			return []string{"93.184.216.34"}
		}
		return []string{"127.0.0.1"}
	}
	r, payload := x.get(t)
	require.Equal(t, "unreachable", payload["code"], "it passed the guard, and no packet leaves")
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
	asked.Store(1)
	r, payload = x.get(t)
	require.Equal(t, "address_not_allowed", payload["code"])
	require.Empty(t, r.Class)
}

func TestLoopbackIsForWhoIsNamed(t *testing.T) {
	base, addr := httpServer(t, func(http.ResponseWriter, *http.Request) {})
	port := netPort(addr)
	bounds := manifest.CapParams{
		Schemes: []string{"http"}, Hosts: []string{"127.0.0.1", "*.shop.test", "inside.test"}, Ports: []uint64{port}, Methods: []string{"GET"}, Paths: []string{"/"},
	}
	dns := func(string) []string { return []string{"127.0.0.1"} }
	for _, c := range []struct {
		what           string
		config, params m
		cap            manifest.Cap
		code           any
	}{
		{"named address", m{}, m{"url": base}, manifest.Cap{Type: manifest.CapHTTP, Params: bounds}, nil},
		{"named address, mapped", m{}, m{"url": fmt.Sprintf("http://[::ffff:127.0.0.1]:%d", port)}, manifest.Cap{Type: manifest.CapHTTP, Params: bounds}, nil},
		{"named host", m{}, m{"url": fmt.Sprintf("http://inside.test:%d", port)}, manifest.Cap{Type: manifest.CapHTTP, Params: bounds}, nil},
		{"reviewed url", m{"url": base}, m{}, manifest.Cap{Type: manifest.CapAny}, nil},
		{"by wildcard", m{}, m{"url": fmt.Sprintf("http://a.shop.test:%d", port)}, manifest.Cap{Type: manifest.CapHTTP, Params: bounds}, "address_not_allowed"},
		{"named by a capability of another type", m{}, m{"url": base}, manifest.Cap{Type: manifest.CapAny, Params: bounds}, "address_not_allowed"},
		{"not named", m{}, m{"url": fmt.Sprintf("http://127.0.0.2:%d", port)}, manifest.Cap{Type: manifest.CapHTTP, Params: bounds}, "host_not_allowed"},
		{"reviewed url, not in the capability", m{"url": fmt.Sprintf("http://127.0.0.2:%d", port)}, m{}, manifest.Cap{Type: manifest.CapHTTP, Params: bounds}, "host_not_allowed"},
	} {
		x := httpTrial{config: c.config, params: c.params, cap: c.cap, open: []string{addr}, dns: dns}
		r, payload := x.get(t)
		require.Equal(t, c.code, payload["code"], "%s: %v", c.what, payload)
		require.Equal(t, c.code == nil, r.Status == receipt.StatusOK, c.what)
	}
}

func TestGuardKnowsWhatANameMayMean(t *testing.T) {
	n := newHTTPNetwork()
	for addr, named := range map[string]bool{ // whether a named host may be there; no other may
		"127.0.0.1": true, "10.1.2.3": true, "192.168.0.1": true, "172.20.0.1": true, "::1": true, "fd12::1": true, "::ffff:10.0.0.1": true,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "168.63.129.16": false, "0.0.0.0": false, "100.100.100.200": false,
		"fd00:ec2::254": false, "fd20:ce::254": false, "fe80::1": false, "224.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "::": false,
	} {
		a := netip.MustParseAddr(addr)
		require.Error(t, n.check(a, "a.test", false), addr)
		require.Equal(t, named, n.check(a, "a.test", true) == nil, addr)
		require.NoError(t, n.check(a, a.Unmap().String(), true), "%s itself is named", addr)
		require.Error(t, n.check(a, "fe80::99", true), "%s is not the address that is named", addr)
	}
	for _, addr := range []string{"93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"} {
		require.NoError(t, n.check(netip.MustParseAddr(addr), "a.test", false), addr)
		require.NoError(t, n.check(netip.MustParseAddr(addr), "a.test", true), addr)
	}
}

func TestRedirectsAreFollowedAsFarAsConfigSays(t *testing.T) {
	var seen []*http.Request
	hop := func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, r) }
	_, otherAddr := httpServer(t, hop)
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		hop(w, r)
		switch r.URL.Path {
		case "/1":
			http.Redirect(w, r, "/2", http.StatusMovedPermanently)
		case "/2":
			http.Redirect(w, r, "http://"+otherAddr+"/3", http.StatusTemporaryRedirect)
		}
	})
	x := httpTrial{
		config:  m{"url": base + "/1", "max_redirects": 2, "headers": m{"X-Team": "blue"}, "secret_headers": m{"Authorization": "secret://T"}},
		open:    []string{addr, otherAddr},
		secrets: map[string]string{"secret://T": "s3cr3t"},
		cap: manifest.Cap{Type: manifest.CapHTTP, Params: manifest.CapParams{
			Schemes: []string{"http"}, Hosts: []string{"127.0.0.1"}, Ports: []uint64{netPort(addr), netPort(otherAddr)}, Methods: []string{"GET", "POST"}, Paths: []string{"/"},
		}},
	}
	r, payload := x.get(t)
	require.Equal(t, receipt.StatusOK, r.Status, payload)
	require.Len(t, seen, 3)
	for i, kept := range []bool{true, true, false} {
		for _, name := range []string{"Authorization", "X-Team", "Idempotency-Key", "Traceparent"} {
			require.Equal(t, kept, seen[i].Header.Get(name) != "", "%s %d", name, i)
		}
	}
	all := x.config.(m)
	for name, change := range map[string]func(config m){
		"too many":   func(config m) { config["max_redirects"] = 1 },
		"none":       func(config m) { delete(config, "max_redirects") },
		"not a read": func(config m) { config["max_redirects"], config["method"] = 9, "POST" },
	} {
		seen = nil
		config := maps.Clone(all)
		change(config)
		x.config = config
		r, payload := x.get(t)
		require.Equal(t, receipt.StatusError, r.Status, name)
		require.Equal(t, "http_status", payload["code"], name)
		require.LessOrEqual(t, len(seen), 2, name)
	}
	x.config = all
	x.cap.Params.Ports = []uint64{netPort(addr)}
	r, payload = x.get(t)
	require.Equal(t, string(governance.CodePortNotAllowed), payload["code"])
	require.False(t, r.Unsent)
}

// TestRedirectStaysWhereConfigSays: a capability of type any says nothing of
// requests, so config.url does.
func TestRedirectStaysWhereConfigSays(t *testing.T) {
	var seen []string
	var location string
	_, otherAddr := httpServer(t, func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, "other "+r.URL.Path) })
	base, addr := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if seen = append(seen, r.URL.Path); len(seen) == 1 {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		}
	})
	x := httpTrial{
		config:  m{"url": base + "/v1/items", "max_redirects": 2, "secret_headers": m{"Authorization": "secret://T"}},
		open:    []string{addr, otherAddr},
		secrets: map[string]string{"secret://T": "s3cr3t"},
	}
	for to, code := range map[string]governance.Code{
		"/v1/items/7":                         "",
		"items/../items?p2":                   "",
		"/v1/items/../keys":                   governance.CodePathNotAllowed,
		"/v1/items-of-all":                    governance.CodePathNotAllowed,
		"/v1/ITEMS/7":                         governance.CodePathNotAllowed,
		"/admin":                              governance.CodePathNotAllowed,
		"http://" + otherAddr + "/v1/items/7": governance.CodeHostNotAllowed,
	} {
		seen, location = nil, to
		r, payload := x.get(t)
		if code == "" {
			require.Equal(t, receipt.StatusOK, r.Status, "%s: %v", to, payload)
			require.Len(t, seen, 2, to)
			continue
		}
		require.Equal(t, string(code), payload["code"], "%s: %v", to, payload)
		require.Len(t, seen, 1, "%s: nothing is sent there", to)
		require.False(t, r.Unsent)
	}
}
