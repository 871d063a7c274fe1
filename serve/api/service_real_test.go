package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// told is a log whose lines come one by one.
type told chan string

func (c told) Write(line []byte) (int, error) {
	c <- string(line)
	return len(line), nil
}

// A world with a real clock that is served goes on by itself when the wall clock comes
// to where something is due, nobody stepping it; and who watches is told when that clock
// was set back.
func TestAServedRealWorldGoesByTheWallClock(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../world/worldtest/testdata/bots")))
	file := filepath.Join(dir, "world.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := bytes.Replace(text, []byte("tick: 1s"), []byte("tick: 1s, mode: real"), 1)
	require.NoError(t, os.WriteFile(file, changed, 0o600))
	clock := worldtest.NewClock(time.Date(2026, 1, 1, 0, 1, 40, 0, time.UTC))
	opts := local.Options{Clock: clock}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w"}, opts))
	secret, hash := api.NewToken()
	tokens, err := api.ParseTokens([]byte("ada read,submit " + hash + " *\n"))
	require.NoError(t, err)
	lines, at := make(told, 100), make(chan string, 1)
	v := &api.Service{
		Config: api.Config{Tokens: tokens}, Options: opts, Events: slog.New(slog.NewTextHandler(lines, nil)),
		Serving: func(url string) error { at <- url; return nil },
	}
	require.NoError(t, v.Open(t.Context(), dir))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Serve(ctx, listener) }()
	url := <-at

	send := func(do ...map[string]any) {
		t.Helper()
		body, err := json.Marshal(act("a", do...))
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/worlds/w/events", bytes.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusCreated, res.StatusCode)
	}
	lw := v.Worlds()[0].Local
	sees := func(want string) {
		t.Helper()
		for state := ""; !strings.Contains(state, want); {
			head := lw.Head()
			lw.View(func(m *world.Moment) {
				if c, ok := m.Cell(reducer.Cell{Reducer: "bot", Key: "a"}); ok {
					b, err := c.State.MarshalJSON()
					require.NoError(t, err)
					state = string(b)
				}
			})
			if !strings.Contains(state, want) {
				require.NoError(t, lw.Await(ctx, head.ID), "%s is not in %s", want, state)
			}
		}
	}
	send(map[string]any{"timer": 3600})
	sees("100: go")
	clock.Move(time.Hour)
	sees("3700: alarm after 3600")

	clock.Move(-time.Hour)
	send()
	sees("3700: go")
	for line := range lines {
		if strings.Contains(line, "the wall clock is behind the world") {
			require.Contains(t, line, "by=1h0m0s")
			break
		}
	}
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, v.Close())
	require.NoError(t, v.Failed())
}
