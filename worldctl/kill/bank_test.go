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
	count   func(fault string)
	arrived chan struct{} // gets one for each request to pay, as far as somebody reads them

	mu    sync.Mutex
	alone *sync.Cond
	open  int // connections
	asked int // requests to pay
	book  []entry
	done  map[string]bool // by key
}

func newBank(t *testing.T, count func(string)) *bank {
	t.Helper()
	b := &bank{count: count, arrived: make(chan struct{}), done: make(map[string]bool)}
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
	b.mu.Lock()
	b.asked++
	n := b.asked
	b.mu.Unlock()
	select {
	case b.arrived <- struct{}{}:
	default:
	}
	switch {
	case n%11 == 0:
		b.count("the bank drops the connection before the deed")
		panic(http.ErrAbortHandler)
	case n%13 == 0:
		b.count("the bank says 429")
		w.Header().Set("Retry-After", "0")
		http.Error(w, "later", http.StatusTooManyRequests)
		return
	}
	b.execute(e)
	switch {
	case n%7 == 0:
		b.count("the bank is slow")
		<-time.After(time.Duration(n%40) * time.Millisecond)
	case n%17 == 0:
		b.count("the bank drops the connection after the deed")
		panic(http.ErrAbortHandler)
	case n%19 == 0:
		b.count("the bank's answer is cut")
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte(`{"n": `)) // nobody may be there to read it
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"n": %d}`, e.N)
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
	if !b.has(r.URL.Query().Get("key")) {
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
