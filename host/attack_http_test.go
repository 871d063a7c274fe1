package host

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// notPublic are the blocks of the IANA registries of special-purpose addresses, and
// what clouds put between the public ones. The guard has a list of its own.
var notPublic = prefixes(`
	0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.168.0.0/16
	198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32 100.100.100.200/32
	::/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/32 2001:db8::/32 2002::/16 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8
	fd00:ec2::/32 fd20:ce::/32`)

// inside are those in which a host may be that is named.
var inside = prefixes(`10.0.0.0/8 127.0.0.0/8 172.16.0.0/12 192.168.0.0/16 ::1/128 fc00::/7`)

// clouds are in them and nobody's.
var clouds = prefixes(`fd00:ec2::/32 fd20:ce::/32`)

func prefixes(list string) (all []netip.Prefix) {
	for text := range strings.FieldsSeq(list) {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func inAny(all []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// hostileAddr draws an address; three of four are not public.
func hostileAddr(a *attack.Attempt) netip.Addr {
	if a.Chance(4) {
		return netip.MustParseAddr(attack.Pick(a, "93.184.216.34", "8.8.8.8", "2606:4700::1111", "1.1.1.1"))
	}
	if a.Chance(3) {
		return netip.MustParseAddr(attack.Pick(a, "127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", "::", "fd00:ec2::254", "100.100.100.200"))
	}
	p := notPublic[a.IntN(len(notPublic))]
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= byte(a.IntN(2)) << (7 - i%8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

// spelled writes an address as something reads it: a browser, a C library, an
// engineer who is in a hurry.
func spelled(a *attack.Attempt, addr netip.Addr) string {
	if !addr.Is4() {
		forms := []string{addr.String(), addr.StringExpanded(), strings.ToUpper(addr.String()), addr.String() + "%25eth0", addr.String() + "%eth0"}
		return "[" + attack.Pick(a, forms...) + "]"
	}
	b := addr.As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	number := func(n uint32) string {
		return fmt.Sprintf(attack.Pick(a, "%d", "0%o", "0x%x", "0X%X", "00%o", "%d", "0x0%x", "+%d"), n)
	}
	hi, lo := n>>16, n&0xffff
	text := attack.Pick(a,
		addr.String(), addr.String()+".", number(n), number(hi>>8)+"."+number(n&0xffffff), number(hi>>8)+"."+number(hi&0xff)+"."+number(lo),
		number(uint32(b[0]))+"."+number(uint32(b[1]))+"."+number(uint32(b[2]))+"."+number(uint32(b[3])),
		fmt.Sprintf("%03d.%03d.%03d.%03d", b[0], b[1], b[2], b[3]), fmt.Sprintf("%d", uint64(n)+1<<32),
		fmt.Sprintf("[::ffff:%s]", addr), fmt.Sprintf("[::ffff:%x:%x]", hi, lo), fmt.Sprintf("[::%s]", addr), fmt.Sprintf("[64:ff9b::%x:%x]", hi, lo),
		fmt.Sprintf("[64:ff9b:1::%s]", addr), fmt.Sprintf("[2002:%x:%x::1]", hi, lo), fmt.Sprintf("[2001:0:1:2:3:4:%x:%x]", hi^0xffff, lo^0xffff),
		fmt.Sprintf("[0:0:0:0:0:ffff:%s]", addr), fmt.Sprintf("[::ffff:0:%s]", addr), addr.String()+".nip.test", "["+addr.String()+"]",
	)
	switch a.IntN(8) {
	case 0: // other digits and dots
		return strings.NewReplacer("1", "１", "2", "②", "0", "⓪", ".", attack.Pick(a, "。", "．", "｡", ".")).Replace(text)
	case 1:
		return percent(a, text)
	}
	return text
}

// percent encodes some characters that need it not.
func percent(a *attack.Attempt, s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch a.IntN(4) {
		case 0:
			fmt.Fprintf(&b, attack.Pick(a, "%%%02x", "%%%02X", "%%25%02x", "%%2525%02x"), c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

var hostNames = []string{
	"api.example.com", "API.example.com.", "api.example.com.evil.test", "evil-api.example.com", "xapi.example.com", "a.example.org", "example.org",
	"a.example.org.evil.test", "evilexample.org", "localhost", "LOCALHOST.", "localhost.localdomain", "metadata.google.internal", "ｌocalhost", "lo\u00adcalhost",
	"api\u3002example.com", "ａpi.example.com", "api.example.com\u200b", "api。example。com.evil.test", "xn--localhost-.test", "*.example.org", "*", "api_.example.com",
}

// hostileURL draws a URL that means an address, a name, or what nobody knows.
func hostileURL(a *attack.Attempt, port uint64) string {
	host := attack.Pick(a, hostNames...)
	if !a.Chance(3) {
		host = spelled(a, hostileAddr(a))
	}
	at := attack.Pick(a, "", "", fmt.Sprintf(":%d", port), fmt.Sprintf(":%d", port), ":80", ":", ":0", ":00080", ":65616", ":22", ":+80", ":80:80")
	user := attack.Pick(a, "", "", "", "", "api.example.com@", "api.example.com:80@", "%61@", "a:b@c@", "api.example.com%40", "api.example.com\\@", "api.example.com#@", "api.example.com?@", "api.example.com;@", " @", "\t")
	scheme := attack.Pick(a, "http://", "http://", "http://", "http://", "https://", "HTTP://", "http:/", "http:", "//", "", "http:///", "http:\\\\", "file://", "gopher://", "ftp://", "unix://", "jar:http://", "http+unix://", "view-source:http://", "\thttp://", "http://http://")
	u := scheme + user + host + at + hostilePath(a)
	if a.Chance(6) { // anything, anywhere
		i := a.IntN(len(u) + 1)
		u = u[:i] + attack.Pick(a, "\x00", "\r\n", "\t", " ", "\\", "@", "#", "?", "/", "%", ":", "[", "]", "\u2028", "\ufeff", "\u202e", "\xff", ";", "..") + u[i:]
	}
	return u
}

// hostilePath draws the path of a URL, which may seem to be below /v1/items.
func hostilePath(a *attack.Attempt) string {
	p := attack.Pick(a, "", "/", "/v1/items", "/v1/items", "/v1/items/", "/v1", "/v1/items2", "/v1/ITEMS")
	for range a.IntN(6) {
		dots := attack.Pick(a, "..", "..", ".", "...", "", "7", "..;", "..;x=y", "%2e%2e", ".%2E", "%252e%252e", "%2e%2e%2f", "..%2f", "..%5c", "..\\", "%c0%ae%c0%ae",
			"%e0%80%ae.", "．．", "‥", "%uff0e%uff0e", "%u002e.", "..%00", "..%20", "..%09", "keys", ". .", "..%3b", "%25252e%25252e", "..%c0%af..", "..%ef%bc%8f..", "%2e%2e%253b")
		p += attack.Pick(a, "/", "/", "/", "//", "\\", "%2f", "%5c", ";/", "%252f", "%c0%af") + dots
	}
	return p + attack.Pick(a, "", "", "", "/keys", "?x=/v1/items", "?", "#/v1/items", "#")
}

// leniently reads a path as the most obliging server does, and returns what it is
// then.
func leniently(p string) string {
	for range 6 {
		plain, err := url.PathUnescape(p)
		if err != nil || plain == p {
			break
		}
		p = plain
	}
	p = strings.NewReplacer("\\", "/", "\xc0\xae", ".", "\xc0\xaf", "/", "\xe0\x80\xae", ".", "\xe0\x80\xaf", "/", "．", ".", "／", "/", "\x00", "").Replace(p)
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return path.Clean("/" + strings.Join(segments, "/"))
}

// netWatch is the network of an attempt: it sees who is asked about, what is
// dialled, and what arrives.
type netWatch struct {
	a        *attack.Attempt
	mu       sync.Mutex
	asked    map[string]bool // names, of a resolver
	location string          // where the server redirects to
	hops     int
	honest   bool // the resolver, about who is named

	named   []string // hosts that capability or config name
	ours    string   // address of the server that is theirs
	theirs  []string // paths there
	anyHost bool     // nothing says which hosts
}

// dialling judges a connection that the guard lets through.
func (w *netWatch) dialling(addr netip.AddrPort) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := addr.Addr().Unmap()
	ok := !inAny(notPublic, at)
	byName := false
	for _, host := range w.named {
		literal, err := netip.ParseAddr(host)
		byName = byName || err != nil && w.asked[host]
		ok = ok || err == nil && literal == at || err != nil && w.asked[host] && inAny(inside, at) && !inAny(clouds, at)
	}
	if !ok {
		w.a.Through("%s is dialled, names asked about: %v", addr, w.asked)
	}
	if !w.anyHost && !byName && !slices.Contains(w.named, at.String()) && !w.wild() {
		w.a.Through("%s is dialled for a host that is not allowed, names asked about: %v", addr, w.asked)
	}
	if addr.String() == w.ours && ok {
		return nil
	}
	return errNoPacketLeaves
}

// wild reports whether a name below *.example.org was asked about.
func (w *netWatch) wild() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(w.asked)), func(name string) bool { return strings.HasSuffix(name, ".example.org") })
}

// answer is a resolver that means the worst, and something else each time.
func (w *netWatch) answer(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	name = strings.ToLower(name)
	w.asked[name] = true
	if slices.Contains(w.named, name) && w.honest {
		return []string{"127.0.0.1"}
	}
	out := make([]string, 1+w.a.IntN(3))
	for i := range out {
		out[i] = hostileAddr(w.a).String()
	}
	return out
}

// ServeHTTP is the server that is theirs: it sends on whoever comes.
func (w *netWatch) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	raw, _, _ := strings.Cut(r.RequestURI, "?")
	if read := leniently(raw); !slices.ContainsFunc(w.theirs, func(p string) bool { return read == p || strings.HasPrefix(read, strings.TrimSuffix(p, "/")+"/") }) {
		w.a.Through("%s is %s to some servers, and allowed are %q", r.RequestURI, read, w.theirs)
	}
	if w.hops++; w.hops < 4 {
		to.Header()["Location"] = []string{strings.NewReplacer("\r", "", "\n", "").Replace(w.location)}
		to.WriteHeader(attack.Pick(w.a, 301, 302, 303, 307, 308))
	}
}

// TestAttackHTTP asks an http effect for addresses that are nobody's, in all forms
// that something reads: as its url, its path, a redirect, the answer of a resolver,
// the resource of a receipt.
func TestAttackHTTP(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"} {
		t.Setenv(name, "http://127.0.0.1:9")
	}
	var w *netWatch
	_, addr := httpServer(t, func(to http.ResponseWriter, r *http.Request) { w.ServeHTTP(to, r) })
	port := netPort(addr)
	attack.Run(t, "http", func(a *attack.Attempt) {
		w = &netWatch{a: a, asked: map[string]bool{}, honest: !a.Chance(4), ours: addr, location: hostileURL(a, port)}
		if a.Chance(3) {
			w.location = hostilePath(a)
		}
		x := httpTrial{config: m{}, idempotent: true, params: m{"url": hostileURL(a, port)}}
		switch a.IntN(4) {
		case 0: // nothing is named
			w.anyHost = true
		case 1: // a capability names a host, and others by *
			w.named, w.theirs = []string{"api.example.com"}, []string{"/v1/items"}
			x.cap = manifest.Cap{Type: manifest.CapHTTP, Params: manifest.CapParams{
				Schemes: []string{"http", "https"}, Hosts: []string{"api.example.com", "*.example.org"}, Ports: []uint64{port, 80}, Methods: []string{"GET"}, Paths: []string{"/v1/items"},
			}}
			x.config = m{"max_redirects": 5}
			if a.Chance(2) {
				x.params = m{"url": fmt.Sprintf("http://api.example.com:%d%s", port, hostilePath(a))}
			}
		case 2: // config does, and the capability says nothing
			w.named, w.theirs = []string{"api.example.com"}, []string{"/v1/items"}
			x.config = m{"url": fmt.Sprintf("http://api.example.com:%d/v1/items", port), "max_redirects": 5}
			x.params = m{"path": strings.TrimLeft(hostilePath(a), "/"), "query": m{"u": hostileURL(a, port)}}
		case 3: // an address is named
			w.named, w.theirs = []string{"127.0.0.1"}, []string{"/"}
			x.cap = manifest.Cap{Type: manifest.CapHTTP, Params: manifest.CapParams{
				Schemes: []string{"http"}, Hosts: []string{"127.0.0.1"}, Ports: []uint64{port}, Methods: []string{"GET"}, Paths: []string{"/"},
			}}
			x.config = m{"max_redirects": 5}
		}
		n := newHTTPNetwork()
		n.resolver, n.dialling = fakeResolver(t, w.answer), w.dialling
		w.perform(t, &x, n)
	})
}

// perform performs an effect, or has its result confirmed.
func (w *netWatch) perform(t *testing.T, x *httpTrial, n *httpNetwork) {
	call := Call{External: "worldkernel:town:abc", Cap: x.cap}
	if call.Cap.Type == "" {
		call.Cap.Type = manifest.CapAny
	}
	if w.a.Chance(8) && w.anyHost {
		v, err := newHTTPVerifier(n)(x.setup(t))
		require.NoError(t, err)
		_, _ = v.Confirm(t.Context(), call, &receipt.Receipt{StateChange: &receipt.StateChange{Resource: x.params.(m)["url"].(string)}})
		return
	}
	adapter, err := newHTTP(n)(x.setup(t))
	require.NoError(t, err)
	call.Permit.Params = httpCBOR(t, x.params)
	_, _ = adapter.Perform(context.Background(), call)
}
