package notify_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/serve/link"
	"github.com/worldkernel/worldkernel/serve/notify"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

var key = []byte("0123456789abcdef")

// receiver takes messages, and answers as it is told.
type receiver struct {
	t      *testing.T
	answer func(n int) int // the status of the n-th answer
	links  bool            // it is sent links
	got    chan notify.Message
	server *httptest.Server

	mu  sync.Mutex
	ids []string // of all requests
}

func newReceiver(t *testing.T, answer func(n int) int) *receiver {
	t.Helper()
	r := &receiver{t: t, answer: answer, got: make(chan notify.Message, 100)}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// ServeHTTP checks the signature as docs/api.md has it.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	stamp, sum, _ := strings.Cut(req.Header.Get(notify.SignatureHeader), ",v1=")
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.TrimPrefix(stamp, "t=") + "." + string(body)))
	if hex.EncodeToString(mac.Sum(nil)) != sum {
		r.t.Errorf("signed %q", req.Header.Get(notify.SignatureHeader))
	}
	var m notify.Message
	if err := json.Unmarshal(body, &m); err != nil || m.ID != req.Header.Get("Idempotency-Key") {
		r.t.Errorf("%v: %s", err, body)
	}
	r.mu.Lock()
	r.ids = append(r.ids, m.ID)
	n := len(r.ids)
	r.mu.Unlock()
	status := r.answer(n)
	w.WriteHeader(status)
	if status == http.StatusOK {
		r.got <- m
	}
}

func taken(int) int { return http.StatusOK }

// next returns the next message that was taken.
func (r *receiver) next() notify.Message {
	r.t.Helper()
	select {
	case m := <-r.got:
		return m
	case <-time.After(time.Minute):
		require.FailNow(r.t, "nothing was told")
		return notify.Message{}
	}
}

// noted returns once it is noted that a message was taken: one whose sender ends before is
// sent again.
func (r *receiver) noted(lw *local.World, m *notify.Message) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		data, err := os.ReadFile(lw.NotifiedFile())
		return err == nil && strings.Contains(string(data), m.New[0].ID)
	}, time.Minute, time.Millisecond)
}

// create makes a world of bots, in which tool.b waits for a person.
func create(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../world/worldtest/testdata/bots")))
	file := filepath.Join(dir, "world.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	text = bytes.Replace(text, []byte("policies:\n"), []byte("policies:\n  - {name: ask, when: 'intent.kind == \"tool.b\"', decide: require_approval}\n"), 1)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w"}, local.Options{}))
	return dir
}

// watched opens a world, and has it watched until what it returns is called.
func (r *receiver) watched(dir string, log io.Writer) (lw *local.World, end func()) {
	r.t.Helper()
	lw, err := local.Open(dir, local.Options{})
	require.NoError(r.t, err)
	n, err := notify.New(notify.Config{
		URL: r.server.URL + "/secret-path", Key: key, Decide: r.links, Log: slog.New(slog.NewTextHandler(log, nil)), Settle: time.Millisecond, Retry: time.Millisecond,
	})
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(r.t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { n.Watch(ctx, lw, "http://here/ui/#/w/inbox", "http://here/decide/w/") })
	return lw, func() {
		cancel()
		watching.Wait()
		require.NoError(r.t, lw.Close())
	}
}

// ask has a bot ask for tool.b, or fail.
func ask(t *testing.T, lw *local.World, to string, acts ...map[string]any) {
	t.Helper()
	_, err := lw.Submit(t.Context(), "go", map[string]any{"to": to, "do": append([]map[string]any{}, acts...)})
	require.NoError(t, err)
	require.NoError(t, lw.Run(t.Context()))
}

func wait(param string) map[string]any { return map[string]any{"effect": "tool.b", "param": param} }

// TestWhatNewlyWaitsIsToldOnce, once it is taken, also where the process ended meanwhile.
func TestWhatNewlyWaitsIsToldOnce(t *testing.T) {
	r := newReceiver(t, func(n int) int {
		if n < 4 {
			return http.StatusBadGateway
		}
		return http.StatusOK
	})
	dir := create(t)
	var log bytes.Buffer
	lw, end := r.watched(dir, &log)
	ask(t, lw, "a", wait("x"))
	m := r.next()
	require.Equal(t, []any{"w", "w: 1 effect waits for approval\nhttp://here/ui/#/w/inbox", 1, 0}, []any{m.World, m.Text, m.Waiting, m.More})
	require.Len(t, m.New, 1)
	require.Equal(t, []any{view.WantsApprove, "bot/a", "tool.b", ""}, []any{m.New[0].Wants, m.New[0].Cell, m.New[0].Kind, m.New[0].Decide})
	ask(t, lw, "b", map[string]any{"fail": "as told"})
	second := r.next()
	require.Equal(t, "w: 1 cell is halted", strings.Split(second.Text, "\n")[0])
	require.Equal(t, 2, second.Waiting)
	r.noted(lw, &second)
	end()
	require.Equal(t, []string{m.ID, m.ID, m.ID}, r.ids[:3], "what is told again has the same id")
	require.Contains(t, log.String(), "502")
	require.NotContains(t, log.String(), "secret-path")

	lw, end = r.watched(dir, io.Discard)
	ask(t, lw, "c", wait("y"))
	third := r.next()
	require.Len(t, third.New, 1, "the others were told before")
	require.Equal(t, "bot/c", third.New[0].Cell)
	require.NoError(t, lw.Update(func(w *world.World) error {
		for _, e := range w.Undecided() {
			if _, err := w.Resolve(t.Context(), journal.Resolved{Key: e.Intent.Key, Params: e.Params, How: journal.Disapprove, Actor: "ada", Reason: "no"}); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, lw.Run(t.Context()))
	ask(t, lw, "c", wait("z"))
	last := r.next()
	require.Equal(t, 2, last.Waiting)
	r.noted(lw, &last)
	end()

	other := newReceiver(t, taken)
	other.links = true
	lw, end = other.watched(dir, io.Discard)
	all := other.next().New
	require.Len(t, all, 2, "who was never told is told all")
	for _, x := range all {
		ticket, is := strings.CutPrefix(x.Decide, "http://here/decide/w/")
		e, found := link.Find(lw, ticket)
		require.Equal(t, []bool{x.Wants == view.WantsApprove, found}, []bool{is, is}, "of what waits for approval alone")
		require.Equal(t, found, e.Intent.Cell == x.Cell)
	}
	end()
	require.Empty(t, r.got)
}

// TestWordsOfOthersDoNoHarm: the text has none, names are short and of one line.
func TestWordsOfOthersDoNoHarm(t *testing.T) {
	r := newReceiver(t, taken)
	dir := create(t)
	lw, end := r.watched(dir, io.Discard)
	for _, name := range []string{"<!channel>", "@all", "a\u202eb", strings.Repeat("long ", 40)} {
		ask(t, lw, name, wait(name))
	}
	items := map[string]bool{}
	for len(items) < 4 {
		m := r.next()
		require.NotContains(t, m.Text, "channel")
		require.NotContains(t, m.Text, "@")
		for _, x := range m.New {
			items[x.Cell] = true
			require.LessOrEqual(t, len(x.Cell), 300)
			require.NotContains(t, x.Cell, "\u202e")
		}
	}
	end()
}

func TestManyAreOneMessage(t *testing.T) {
	r := newReceiver(t, taken)
	dir := create(t)
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	for i := range 60 {
		_, err := lw.Submit(t.Context(), "go", map[string]any{"to": fmt.Sprint("c", i), "do": []any{wait("x")}})
		require.NoError(t, err)
	}
	require.NoError(t, lw.Run(t.Context()))
	require.NoError(t, lw.Close())
	_, end := r.watched(dir, io.Discard)
	m := r.next()
	require.Equal(t, []int{50, 10, 60}, []int{len(m.New), m.More, m.Waiting})
	require.Contains(t, m.Text, "60 effects wait for approval")
	end()
}

func TestWhoIsToldIsSaidWhole(t *testing.T) {
	for _, cfg := range []notify.Config{{URL: "file:///x", Key: key}, {URL: "https://", Key: key}, {URL: "://", Key: key}, {URL: "https://host/secret", Key: key[:15]}} {
		_, err := notify.New(cfg)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
	}
}
