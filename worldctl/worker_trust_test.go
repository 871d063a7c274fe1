package worldctl

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ownersManifest has a worker's secret sent to the world's owner.
const ownersManifest = `world: owners
reducers:
  cell: {engine: starlark, source: cell.star, grants: [all]}
events:
  cell.begun:
effects:
  bank.pay:
    adapter: http
    config: {url: "%[1]s/mine", secret_headers: {Authorization: "Bearer secret://BANK"}}
  shell.run:
    adapter: exec
    config: {program: sh, args: ["-c", "touch %[2]s; echo true"]}
  news.read:
    adapter: http
    config: {url: "%[1]s/news"}
caps:
  all: {type: any, params: {kinds: ["*"]}}
policies:
  - {name: everything, when: "true", decide: allow}
routing:
  - {event: cell.begun, reducer: cell, key: event.data.to}
`

const ownersReducer = `def reduce(ctx, state, event):
    if event.name != "receipt":
        for kind in ["bank.pay", "shell.run", "news.read"]:
            ctx.effect(kind, {})
    return {}
`

func TestWorkerKeepsItsSecretFromTheWorldsOwner(t *testing.T) {
	const secret = "canary-of-the-worker"
	t.Setenv("WORLDCTL_SECRET_BANK", secret)
	var mu sync.Mutex
	var got []string // paths, with what was in Authorization
	owner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.URL.Path+" "+r.Header.Get("Authorization"))
	}))
	defer owner.Close()
	dir, touched := filepath.Join(t.TempDir(), "w"), filepath.Join(t.TempDir(), "touched")
	makeWorld(t, dir, map[string]string{"world.yaml": fmt.Sprintf(ownersManifest, owner.URL, touched), "cell.star": ownersReducer})
	worldctl(t, nil, "-w", dir, "send", "cell.begun", `{"to": "a"}`)
	s := newShop(t, &sinkWorld{t: t, dir: dir}, time.Minute)
	t.Setenv("WORLDCTL_TOKEN", s.token)

	// work has a worker with this trust file perform so many effects; empty: without one.
	work := func(trust string, effects int) string {
		args := []string{"worker", "--dir", t.TempDir(), "--server", s.url}
		if trust != "" {
			file := filepath.Join(t.TempDir(), "trust")
			require.NoError(t, os.WriteFile(file, []byte(trust), 0o600))
			args = append(args, "--trust", file)
		}
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan string, 1)
		go func() {
			_, _, said := inProcess(ctx, args...)
			ended <- said
		}()
		require.True(t, s.progress(effects))
		interrupt()
		return <-ended
	}

	said := work("", 1)
	require.Contains(t, said, "kind=bank.pay reason=\"it needs the secret BANK, and there is no trust file\"")
	require.Contains(t, said, "kind=shell.run reason=\"it needs the program sh, and there is no trust file\"")
	require.Equal(t, []string{"/news "}, got, "what needs nothing is performed")
	require.NoFileExists(t, touched)

	worldctl(t, nil, "-w", dir, "send", "cell.begun", `{"to": "b"}`)
	said = work("kind *\nadapter http exec\nhost *\nprogram true\nsecret BANK https://bank.example\n", 1)
	require.Contains(t, said, "no line secret has BANK for "+owner.URL)
	require.Contains(t, said, "no line program names sh -c touch")
	require.Equal(t, []string{"/news ", "/news "}, got)
	require.NoFileExists(t, touched)
	require.NotContains(t, said, secret)

	work("kind *\nadapter http exec\nhost 127.0.0.1\nprogram sh -c *\nsecret BANK "+owner.URL+"\n", 4)
	require.FileExists(t, touched)
	require.Equal(t, []string{"/mine Bearer " + secret, "/mine Bearer " + secret}, got[2:])
}

func TestTrustFileIsTheWorkersOwn(t *testing.T) {
	t.Setenv("WORLDCTL_TOKEN", "wk_x")
	file := filepath.Join(t.TempDir(), "trust")
	for _, c := range []struct {
		text, want string
		mode       os.FileMode
	}{
		{"kind *\nhosts *\n", file + ": line 2: \"hosts\" is not", 0o600},
		{"kind *\n", "chmod go-w", 0o620},
		{"kind *\n", "chmod go-w", 0o602},
		{strings.Repeat("#\n", 1<<20), "too large", 0o600},
	} {
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		require.NoError(t, os.Chmod(file, c.mode))
		code, _, said := inProcess(t.Context(), "worker", "--dir", t.TempDir(), "--server", "http://127.0.0.1:1", "--trust", file)
		require.Equal(t, exitFailed, code, said)
		require.Contains(t, said, c.want)
		require.Contains(t, said, "hint: ")
	}
	for _, file := range []string{t.TempDir(), "/dev/null"} {
		code, _, said := inProcess(t.Context(), "worker", "--dir", t.TempDir(), "--server", "http://127.0.0.1:1", "--trust", file)
		require.Equal(t, exitFailed, code, said)
		require.Contains(t, said, file+": it is no file\nhint: ")
	}
	code, _, said := inProcess(t.Context(), "worker", "--dir", t.TempDir(), "--server", "http://127.0.0.1:1", "--trust", file+"s")
	require.Equal(t, exitUsage, code, said)
}
