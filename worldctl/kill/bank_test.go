package kill

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/worldkernel/worldkernel/internal/fault"
)

// payment is what a cell asks the bank for. Nobody asks twice for the same in one
// history.
type payment struct {
	Cell string `json:"cell"`
	N    int    `json:"n"`
}

// entry is one execution in the bank's book. The key is that of the intent, without
// the attempt.
type entry struct {
	key string
	payment
	kind string
}

// bank is the outside: it lives as long as the test, whoever is killed beside it, and
// keeps a book. Now and then it does not answer, or badly.
type bank struct {
	server  *httptest.Server
	struck  *fault.Struck
	arrived chan struct{} // gets one for each request to pay, as far as somebody reads them

	mu    sync.Mutex
	alone *sync.Cond
	open  int // connections
	asked int // requests to pay
	storm int // so many more are told that it is busy
	looks int // of verifiers
	book  []entry
	done  map[string]bool // by key
}

func newBank(t *testing.T, struck *fault.Struck) *bank {
	t.Helper()
	b := &bank{struck: struck, arrived: make(chan struct{}), done: make(map[string]bool)}
	b.alone = sync.NewCond(&b.mu)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{kind}", func(w http.ResponseWriter, r *http.Request) { b.pay(w, r, r.PathValue("kind")) })
	mux.HandleFunc("GET /seen", b.seen)
	b.server = httptest.NewUnstartedServer(mux)
	b.server.Config.ConnState = b.changed
	b.server.Start()
	t.Cleanup(b.server.Close)
	return b
}

func (b *bank) port() string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(b.server.URL, "http://"))
	return port
}

func (b *bank) changed(_ net.Conn, s http.ConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch s {
	case http.StateNew:
		b.open++
	case http.StateClosed, http.StateHijacked:
		b.open--
		b.alone.Broadcast()
	}
}

// settle returns when all that was sent to the bank is in its book. No process may
// be there that sends.
func (b *bank) settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.open > 0 {
		b.alone.Wait()
	}
}

// pay executes a request, and answers as its number says.
func (b *bank) pay(w http.ResponseWriter, r *http.Request, kind string) {
	e := entry{key: unattempted(r.Header.Get("Idempotency-Key")), kind: kind}
	if err := json.NewDecoder(r.Body).Decode(&e.payment); err != nil {
		return // it was cut
	}
	select {
	case b.arrived <- struct{}{}:
	default:
	}
	n := b.next()
	switch {
	case n == 0:
		b.busy(w, "storm of busy")
	case n%11 == 0:
		b.struck.Count("connection dropped before the deed")
		panic(http.ErrAbortHandler)
	case n%13 == 0:
		b.busy(w, "busy")
	default:
		b.execute(e)
		b.answer(w, n, e.N)
	}
}

// next returns the number of a request, or 0 where the bank is busy for some time.
func (b *bank) next() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.storm > 0 {
		b.storm--
		return 0
	}
	b.asked++
	if b.asked%37 == 0 {
		b.storm = 5
	}
	return b.asked
}

func (b *bank) busy(w http.ResponseWriter, name string) {
	b.struck.Count(name)
	w.Header().Set("Retry-After", "0")
	http.Error(w, "later", http.StatusTooManyRequests)
}

// answer says that a payment is made, or does not get that far.
func (b *bank) answer(w http.ResponseWriter, n, order int) {
	w.Header().Set("Content-Type", "application/json")
	body := fmt.Sprintf(`{"n": %d}`, order)
	switch {
	case n%7 == 0:
		b.struck.Count("slow answer")
		<-time.After(time.Duration(n%40) * time.Millisecond)
	case n%17 == 0:
		b.struck.Count("connection dropped after the deed")
		panic(http.ErrAbortHandler)
	case n%19 == 0:
		b.struck.Count("answer cut")
		w.Header().Set("Content-Length", "100")
	case n%23 == 0:
		b.struck.Count("answer malformed")
		body = "{\"n\": \xff\x00"
	case n%29 == 0:
		b.struck.Count("answer too large")
		body = `{"n": "` + strings.Repeat("x", 5<<20) + `"}`
	}
	_, _ = w.Write([]byte(body)) // nobody may be there to read it
}

// execute enters a payment. One of a kind that is idempotent is executed once.
func (b *bank) execute(e entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.kind == again && b.done[e.key] {
		return
	}
	b.done[e.key] = true
	b.book = append(b.book, e)
}

// seen tells a verifier whether a payment was made.
func (b *bank) seen(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.looks++
	away := b.looks%5 == 0
	b.mu.Unlock()
	switch {
	case away:
		b.struck.Count("verifier unavailable")
		http.Error(w, "later", http.StatusServiceUnavailable)
	case !b.has(r.URL.Query().Get("key")):
		http.NotFound(w, r)
	}
}

func (b *bank) has(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done[unattempted(key)]
}

// entries returns what the book has from the n-th entry on.
func (b *bank) entries(n int) []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.book[n:len(b.book):len(b.book)]
}

// unattempted returns an external key without the attempt that it may end with.
func unattempted(key string) string {
	parts := strings.SplitN(key, ":", 4)
	return strings.Join(parts[:min(len(parts), 3)], ":")
}
