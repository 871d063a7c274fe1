package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// house is a server with two worlds, and somebody at its door.
type house struct {
	*served
	worlds map[string]*local.World
	routes []api.RouteOf
	clean  *http.Client // follows nothing
}

// mayChange are the users whose requests may change a world, and which.
var mayChange = map[string]string{"ada": "w elsewhere", "hand": "w elsewhere", "submitter": "w elsewhere", "approver": "w elsewhere", "admin": "w elsewhere", "other": "elsewhere"}

// mayRead are those who may be told of world w.
var mayRead = []string{"ada", "reader"}

const houseCanary = "CANARY-OF-W"

func newHouse(t *testing.T) *house {
	both := worlds(t, "w", "elsewhere")
	h := &house{served: serve(t, api.Config{Worlds: both}), worlds: map[string]*local.World{"w": both[0], "elsewhere": both[1]}, routes: api.RoutesOf()}
	h.clean = &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ok[api.Submitted](h.post("/api/worlds/w/events", act(houseCanary, map[string]any{"effect": "tool.a", "param": houseCanary})))
	ok[json.RawMessage](h.post("/api/worlds/w/step", nil))
	return h
}

func (h *house) heads() map[string]journal.Head {
	out := make(map[string]journal.Head)
	for id, w := range h.worlds {
		out[id] = w.Head()
	}
	return out
}

// text draws what a part of a request is.
func text(a *attack.Attempt) string {
	return attack.Pick(a, "w", "elsewhere", "1", "2", "0", "-1", "99999999999999999999", "18446744073709551615", "a", "bot/a", "now", "", "..", ".", "../w", "w/../w", "%2e%2e", "w%2f", "W", "w\x00",
		"'; drop table worlds; --", "<script>", "\r\nX-Evil: 1", "\u202e", "\xff", "ａ", strings.Repeat("a", 300), strings.Repeat("0", 64), "{{7*7}}", "${jndi:ldap://x}", "null", "true", "%00", "%", "1e999", "0x1", "#1", "@1")
}

// body draws a body: one that fits some route, bent, or anything.
func body(a *attack.Attempt) (content, mediaType string) {
	fields := []string{"event", "data", "to", "at", "ticks", "name", "label", "executed", "params_hash", "reuse", "reason", "worker", "kinds", "most", "wait_seconds", "lease", "nonce", "attempt", "key", "receipt", "status", "payload", "how", "manifest", "patch", "message", "signature", "report", "record"}
	value := func() any {
		return attack.Pick[any](a, text(a), text(a), "go", float64(a.IntN(5)-1), nil, true, []any{}, []any{text(a)}, map[string]any{"to": "a", "do": []any{}}, map[string]any{text(a): text(a)}, 1e300, json.RawMessage(strings.Repeat("9", 5000)))
	}
	m := map[string]any{}
	if a.Chance(3) {
		m = act("a", map[string]any{})
	}
	for range a.IntN(5) {
		m[attack.Pick(a, fields...)] = value()
	}
	data, err := json.Marshal(m)
	if err != nil {
		data = nil
	}
	mediaType = attack.Pick(a, "application/json", "application/json", "application/json", "application/json; charset=utf-16", "application/x-ndjson", "text/plain", "", "multipart/form-data", "application/cbor", "APPLICATION/JSON")
	switch a.IntN(8) {
	case 0:
		if i := a.IntN(len(data) + 1); i > 0 {
			data = data[:i]
		}
	case 1:
		data = bytes.Repeat(data, 2)
	case 2:
		data = []byte(attack.Pick(a, "", "null", "[]", "{", "\"", "0", strings.Repeat("[", 20_000), strings.Repeat("{\"a\":", 20_000), "\xef\xbb\xbf{}", "{\"event\":\"go\",\"event\":\"stop\"}", "\x00", "{\"data\":\"\\ud800\"}", strings.Repeat("9", 100_000)))
	case 3:
		if len(data) > 0 {
			data[a.IntN(len(data))] ^= 1 << a.IntN(8)
		}
	}
	return string(data), mediaType
}

// credentials draws who asks, and what is said of it; nobody, where it is not a token.
func (h *house) credentials(a *attack.Attempt) (user string, headers []string) {
	user = attack.Pick(a, "ada", "hand", "reader", "reader", "submitter", "approver", "admin", "other", "other", "reader")
	secret := h.secrets[user]
	if !a.Chance(3) {
		return user, []string{"Bearer " + secret}
	}
	i := a.IntN(len(secret))
	wrong := attack.Pick(a, "", "Bearer", "Basic "+secret, secret, "Bearer "+secret[:i], "Bearer "+secret+"a", "Bearer "+secret[:i]+"A"+secret[i:], "Bearer "+strings.ToUpper(secret), "Bearer "+user, "Bearer *", "Bearer "+strings.Repeat("a", 5000),
		"Bearer "+secret[:i]+" "+secret[i:], "Token "+secret, "Bearer "+secret+"\t"+secret, "Digest username=\"ada\"", "Bearer "+secret[:len(secret)-1]+string(secret[len(secret)-1]^1), "Negotiate "+secret)
	return "", []string{wrong}
}

// request draws a request.
func (h *house) hostile(a *attack.Attempt) (user string, req *http.Request) {
	rt := h.routes[a.IntN(len(h.routes))]
	id := attack.Pick(a, "w", "w", "w", "elsewhere", url.PathEscape(text(a)))
	path := strings.NewReplacer("{id}", id, "{n}", attack.Pick(a, "1", "2", url.PathEscape(text(a))), "{key}", attack.Pick(a, strings.Repeat("0", 64), url.PathEscape(text(a))), "{hash}", strings.Repeat("0", 64)).Replace(rt.Path)
	switch a.IntN(12) {
	case 0:
		path = strings.Replace(path, "/", attack.Pick(a, "//", "/./", "/../", "/%2e%2e/", "/%2f", "/;x=y/", "\\", "/%00"), 1+a.IntN(3))
	case 1:
		path = attack.Pick(a, strings.ToUpper(path), path+"/", path+"%20", path+";", path+"/..", path+".json", strings.ReplaceAll(path, "/", "%2f"), "/api/worlds/elsewhere/../w/records", "/api/worlds/elsewhere%2f..%2fw/records")
	}
	query := url.Values{}
	for range a.IntN(4) {
		query.Add(attack.Pick(a, "after", "from", "to", "limit", "kind", "cell", "at", "state", "attempt", "all", "world", "id", "scope", "access_token", "token"), text(a))
	}
	method := attack.Pick(a, rt.Method, rt.Method, rt.Method, rt.Method, rt.Method, "POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "post", "CONNECT1")
	content, mediaType := body(a)
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.http.URL+"/", strings.NewReader(content))
	require.NoError(h.t, err)
	if req.URL.Opaque = "//" + req.URL.Host + path; !strings.HasPrefix(path, "/") {
		req.URL.Opaque += "/"
	}
	req.URL.RawQuery = query.Encode()
	var auth []string
	if user, auth = h.credentials(a); auth[0] != "" {
		req.Header["Authorization"] = auth
	}
	if a.Chance(12) { // two of them: neither counts, or the first
		other := h.secrets["ada"]
		req.Header["Authorization"] = append(auth, "Bearer "+other[:len(other)-2])
	}
	req.Header.Set("Content-Type", mediaType)
	for range a.IntN(3) {
		name := attack.Pick(a, "X-HTTP-Method-Override", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-For", "X-Forwarded-Host", "X-Scope", "X-User", "Last-Event-Id", "Accept", "Range", "If-None-Match", "Idempotency-Key", "Cookie", "Origin", "Referer", "Accept-Encoding", "Content-Encoding", "Upgrade")
		req.Header.Set(name, attack.Pick(a, "POST", "DELETE", "/api/worlds/w/step", "127.0.0.1", "ada", "admin", "text/event-stream; q=0", "bytes=0-", "*", "gzip", "http://evil.example", "null", "-1", "h2c"))
	}
	if strings.Contains(req.Header.Get("Accept"), "event-stream") {
		req.Header.Del("Accept")
	}
	return user, req
}

// judge says what of an answer is not what it should be.
func (h *house) judge(a *attack.Attempt, user string, req *http.Request, before map[string]journal.Head) {
	res, err := h.clean.Do(req)
	if err != nil {
		return // the client refuses to send it
	}
	defer res.Body.Close() //nolint:errcheck // it is read
	content, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	what := fmt.Sprintf("%s %s?%s as %q: %d %.300s", req.Method, req.URL.Opaque, req.URL.RawQuery, user, res.StatusCode, content)
	if err != nil && res.StatusCode < 400 {
		a.Through("%s: %v", what, err)
	}
	if res.StatusCode >= 500 && res.StatusCode != http.StatusServiceUnavailable {
		a.Through("%s", what)
	}
	if res.StatusCode >= 400 && req.Method != http.MethodHead && !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") && res.StatusCode != http.StatusBadRequest {
		a.Through("no problem: %s", what)
	}
	open := strings.Contains(req.URL.Opaque, "/healthz")
	if user == "" && res.StatusCode < 400 && !open {
		a.Through("nobody is answered: %s", what)
	}
	if !slices.Contains(mayRead, user) && user != "submitter" && user != "admin" && user != "approver" && user != "hand" && bytes.Contains(content, []byte(houseCanary)) {
		a.Through("told of world w: %s", what)
	}
	for name, secret := range h.secrets {
		if bytes.Contains(content, []byte(secret)) {
			a.Through("the token of %s is told: %s", name, what)
		}
	}
	after := h.heads()
	for id := range after {
		switch {
		case after[id] == before[id]:
		case user == "" || !slices.Contains(strings.Fields(mayChange[user]), id):
			a.Through("world %s has changed: %s", id, what)
		case res.StatusCode >= 400 && !strings.Contains(req.Header.Get("Content-Type"), "ndjson"):
			a.Through("world %s has changed, and it was refused: %s", id, what)
		case req.Method == http.MethodGet || req.Method == http.MethodHead:
			a.Through("world %s has changed, and it was read: %s", id, what)
		}
	}
	if user == "reader" && req.Method != http.MethodGet && req.Method != http.MethodHead && res.StatusCode < 400 {
		a.Through("a reader may: %s", what)
	}
}

// TestAttackAPI makes requests with other tokens, methods, paths, bodies and headers
// than they should have.
func TestAttackAPI(t *testing.T) {
	h := newHouse(t)
	attack.Run(t, "api", func(a *attack.Attempt) {
		before := h.heads()
		user, req := h.hostile(a)
		h.judge(a, user, req, before)
	})
}

// raw draws bytes that are a request to some servers, and two to others.
func (h *house) raw(a *attack.Attempt) string {
	host := h.http.Listener.Addr().String()
	smuggled := "POST /api/worlds/w/step HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 0\r\n\r\n"
	auth := attack.Pick(a, "", "", "Authorization: Bearer "+h.secrets["reader"]+"\r\n", "Authorization: Bearer x\r\n", "Authorization : Bearer "+h.secrets["ada"][:9]+"\r\n")
	line := attack.Pick(a, "POST /api/worlds/w/events HTTP/1.1", "GET /api/worlds/w HTTP/1.1", "POST /api/worlds/w/step HTTP/1.0", "GET /api/worlds", "GET http://"+host+"/api/worlds/w HTTP/1.1", "POST * HTTP/1.1", "CONNECT x:1 HTTP/1.1",
		"PRI * HTTP/2.0", "GET /\x00 HTTP/1.1", "GET /api/worlds/w HTTP/9.9", "\x16\x03\x01\x02\x00\x01", "GET  /api/worlds HTTP/1.1", "POST /api/worlds/w/step\thttp/1.1", strings.Repeat("A", 100_000), "")
	head := "Host: " + attack.Pick(a, host, host, host, "evil.example", "", host+"\r\nHost: evil.example", "[::1", host+"@evil") + "\r\n" + auth
	for range a.IntN(5) {
		head += attack.Pick(a, "Content-Length: 5", "Content-Length: 0", "Content-Length: +5", "Content-Length: -1", "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked", "Transfer-Encoding: xchunked",
			"Transfer-Encoding : chunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding:\tchunked", "transfer-encoding: CHUNKED", "Content-Type: application/json", "Connection: Authorization", "Connection: close", "X: "+strings.Repeat("b", 70_000), "\x00: x", ": x", "no colon", " folded",
			"Expect: 100-continue", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAAA", "Content-Encoding: gzip", "Trailer: Authorization") + attack.Pick(a, "\r\n", "\r\n", "\r\n", "\n", "\r")
	}
	return line + attack.Pick(a, "\r\n", "\r\n", "\n", "\r") + head + "\r\n" + attack.Pick(a, "", "{}", "0\r\n\r\n", "5\r\n{\"a\":\r\n0\r\n\r\n", "0\r\nAuthorization: Bearer "+h.secrets["ada"]+"\r\n\r\n", "ffffffffffffffff\r\n", "-1\r\n", "1;"+strings.Repeat("x", 9000)+"\r\na\r\n0\r\n\r\n") + smuggled
}

// TestAttackAPIBytes sends bytes that are no request, or two for one. Nothing is done
// for them, and the server goes on.
func TestAttackAPIBytes(t *testing.T) {
	h := newHouse(t)
	attack.Run(t, "api bytes", func(a *attack.Attempt) {
		before, sent := h.heads(), h.raw(a)
		conn, err := net.Dial("tcp", h.http.Listener.Addr().String())
		require.NoError(t, err)
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		for rest := sent; rest != "" && err == nil; {
			n := min(1+a.IntN(1<<a.IntN(17)), len(rest))
			_, err = conn.Write([]byte(rest[:n])) // the server may have gone
			rest = rest[n:]
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		told, _ := io.ReadAll(bufio.NewReader(io.LimitReader(conn, 1<<20)))
		if bytes.Contains(told, []byte("HTTP/1.1 5")) && !bytes.Contains(told, []byte("HTTP/1.1 503")) && !bytes.Contains(told, []byte("HTTP/1.1 501")) && !bytes.Contains(told, []byte("HTTP/1.1 505")) {
			a.Through("%.600q is answered with %.600q", sent, told)
		}
		for id, head := range h.heads() {
			if head != before[id] {
				a.Through("world %s has changed after %.600q", id, sent)
			}
		}
		if bytes.Contains(told, []byte(houseCanary)) && !strings.Contains(sent, h.secrets["reader"]) {
			a.Through("%.600q is told of world w: %.600q", sent, told)
		}
	})
	require.Equal(t, http.StatusOK, h.get("/healthz").Status)
}
