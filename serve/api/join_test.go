package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// keeping is a service whose worlds come and go.
type keeping struct {
	*api.Service
	t           *testing.T
	url, secret string
}

func keep(t *testing.T) *keeping {
	t.Helper()
	secret, hash := api.NewToken()
	tokens, err := api.ParseTokens([]byte("ada read,submit,admin " + hash + " *\n"))
	require.NoError(t, err)
	at, ended := make(chan string, 1), make(chan error, 1)
	v := &api.Service{
		Config:  api.Config{Tokens: tokens},
		Serving: func(url string) error { at <- url; return nil },
		Keep:    func(ctx context.Context) { <-ctx.Done() },
	}
	require.NoError(t, v.Open(t.Context()))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- v.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, v.Close())
		require.NoError(t, v.Failed())
	})
	return &keeping{v, t, <-at, secret}
}

// ask makes a request, whose answer the caller closes.
func (k *keeping) ask(method, path, body, accept string) *http.Response {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.t.Context(), method, k.url+path, strings.NewReader(body))
	require.NoError(k.t, err)
	req.Header.Set("Authorization", "Bearer "+k.secret)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	require.NoError(k.t, err)
	return res
}

func (k *keeping) status(method, path, body string) int {
	k.t.Helper()
	res := k.ask(method, path, body, "")
	require.NoError(k.t, res.Body.Close())
	return res.StatusCode
}

// going is an event that the bot a hears.
func going(t *testing.T) string {
	text, err := json.Marshal(act("a"))
	require.NoError(t, err)
	return string(text)
}

// TestWorldsComeAndGoWhileOthersAreServed, and who follows one that goes is told by the end of
// the stream.
func TestWorldsComeAndGoWhileOthersAreServed(t *testing.T) {
	dirs := map[string]string{}
	for _, id := range []string{"a", "b"} {
		w := create(t, id)
		dirs[id] = w.Dir()
		require.NoError(t, w.Close())
	}
	k := keep(t)
	require.Equal(t, http.StatusNotFound, k.status("GET", "/api/worlds/a", ""))
	a, err := k.Join(t.Context(), "a", dirs["a"], k.Options)
	require.NoError(t, err)
	_, err = k.Join(t.Context(), "a", dirs["a"], k.Options)
	require.Error(t, err, "it is open")
	_, err = k.Join(t.Context(), "b", dirs["b"], k.Options)
	require.NoError(t, err)
	require.Len(t, k.Worlds(), 2)
	require.Equal(t, http.StatusCreated, k.status("POST", "/api/worlds/a/events", going(t)))

	res := k.ask("GET", "/api/worlds/a/records", "", "text/event-stream")
	defer res.Body.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(res.Body)
	require.True(t, lines.Scan())
	require.NoError(t, k.Leave(a))
	for lines.Scan() { // to its end, which there is
	}
	require.Equal(t, http.StatusNotFound, k.status("GET", "/api/worlds/a", ""))
	require.Equal(t, http.StatusOK, k.status("GET", "/api/worlds/b", ""))
	require.NoError(t, k.Leave(a), "again")
	w, err := local.Open(filepath.Clean(dirs["a"]), local.Options{})
	require.NoError(t, err, "it was given up")
	require.NoError(t, w.Close())

	a, err = k.Join(t.Context(), "a", dirs["a"], k.Options)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, k.status("POST", "/api/worlds/a/events", going(t)))
	require.Equal(t, "a", a.ID)
}

// TestAWorldLeavesWhileManyAsk and each of them has its answer, or is told to ask again.
func TestAWorldLeavesWhileManyAsk(t *testing.T) {
	w := create(t, "a")
	dir := w.Dir()
	require.NoError(t, w.Close())
	k := keep(t)
	text := going(t)
	statuses := make(chan int, 1000)
	stop := make(chan struct{})
	asking := make(chan struct{})
	for range 4 {
		go func() {
			for {
				statuses <- k.status("POST", "/api/worlds/a/events", text) // each counts: no choice may drop it
				select {
				case <-stop:
					asking <- struct{}{}
					return
				default:
				}
			}
		}()
	}
	taken := 0
	for range 5 {
		a, err := k.Join(t.Context(), filepath.Base(dir), dir, k.Options)
		require.NoError(t, err)
		for before := taken; taken < before+10; {
			if status := <-statuses; status == http.StatusCreated {
				taken++
			} else {
				require.Contains(t, []int{http.StatusNotFound, http.StatusServiceUnavailable}, status)
			}
		}
		require.NoError(t, k.Leave(a))
	}
	close(stop)
	for range 4 {
		<-asking
	}
	close(statuses)
	for status := range statuses {
		if status == http.StatusCreated {
			taken++
		}
	}
	w, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	defer w.Close() //nolint:errcheck // it was only read
	submitted := 0
	for r, err := range w.Scan(0) {
		require.NoError(t, err)
		if r.Record.Kind == "event.submitted" {
			submitted++
		}
	}
	require.Equal(t, taken, submitted)
}

// TestAWorldStaysUntilWhoAsksIsAnswered, while who comes later is told to ask again.
func TestAWorldStaysUntilWhoAsksIsAnswered(t *testing.T) {
	w := create(t, "a")
	dir := w.Dir()
	require.NoError(t, w.Close())
	k := keep(t)
	a, err := k.Join(t.Context(), filepath.Base(dir), dir, k.Options)
	require.NoError(t, err)
	text := going(t)
	body, rest := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.url+"/api/worlds/a/events", body)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+k.secret)
	req.Header.Set("Content-Type", "application/json")
	status := make(chan int, 1)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			close(status)
			return
		}
		_ = res.Body.Close()
		status <- res.StatusCode
	}()
	_, err = rest.Write([]byte(text[:10]))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return k.Inside("a") }, time.Minute, time.Millisecond)
	left := make(chan error, 1)
	go func() { left <- k.Leave(a) }()
	require.Eventually(t, func() bool {
		res := k.ask("GET", "/api/worlds/a", "", "")
		defer res.Body.Close() //nolint:errcheck // it was only read
		return res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "1"
	}, time.Minute, time.Millisecond)
	_, err = rest.Write([]byte(text[10:]))
	require.NoError(t, err)
	require.NoError(t, rest.Close())
	require.Equal(t, http.StatusCreated, <-status)
	require.NoError(t, <-left)
}
