package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/node"
	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/world/local"
)

func options() local.Options {
	return local.Options{Passphrase: func() ([]byte, error) { return []byte("open"), nil }}
}

// ada is a token that all nodes know.
var ada = sync.OnceValues(func() (string, *api.Tokens) {
	secret, hash := api.NewToken()
	tokens, err := api.ParseTokens([]byte("ada read,submit,approve,admin,work " + hash + " *\n"))
	if err != nil {
		panic(err)
	}
	return secret, tokens
})

// running is a node under test.
type running struct {
	t           *testing.T
	store       *shared.Store // the first
	nodes       *node.Nodes
	service     *api.Service
	url, secret string
	end         func() // drains it
}

// run starts a node; one without a name has no address that others know.
func run(t *testing.T, url, name string, idle time.Duration, with ...func(*api.Service)) *running {
	t.Helper()
	return runOf(t, []string{url}, name, idle, with...)
}

// runOf is run for a node of several stores.
func runOf(t *testing.T, urls []string, name string, idle time.Duration, with ...func(*api.Service)) *running {
	t.Helper()
	return runAs(t, &node.Nodes{Idle: idle}, urls, name, with...)
}

// runAs is runOf for what has no service yet.
func runAs(t *testing.T, n *node.Nodes, urls []string, name string, with ...func(*api.Service)) *running {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := shared.Options{Copies: t.TempDir(), Node: name}
	if name != "" {
		at.URL = "http://" + listener.Addr().String()
	}
	secret, tokens := ada()
	serving, ended := make(chan string, 1), make(chan error, 1)
	events := slog.New(slog.NewTextHandler(t.Output(), nil)).With("node", name)
	v := &api.Service{
		Config: api.Config{Tokens: tokens}, Events: events, Options: options(),
		Serving: func(url string) error { serving <- url; return nil },
	}
	v.Limits.Moving = time.Minute
	for _, with := range with {
		with(v)
	}
	n.Service, n.Events = v, v.Events
	at.Passphrase = v.Options.Passphrase
	require.NoError(t, n.Open(t.Context(), urls, at))
	v.Keep, v.Stores, v.Health, v.Metrics = n.Keep, n, n.Health, n.Metrics()
	require.NoError(t, v.Open(t.Context()))
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- v.Serve(ctx, listener) }()
	var first *shared.Store // nil: none could be used yet
	if all := n.Stores(); len(all) > 0 {
		first = all[0]
	}
	r := &running{t: t, store: first, nodes: n, service: v, url: <-serving, secret: secret}
	done := false
	r.end = func() {
		if done {
			return
		}
		done = true
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, v.Close())
		n.Close()
	}
	t.Cleanup(r.end)
	return r
}

// worlds are the ids of those that the node owns.
func (r *running) worlds() (ids []string) {
	for _, w := range r.service.Worlds() {
		ids = append(ids, w.ID)
	}
	return ids
}

func (r *running) owns(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return len(r.worlds()) == n }, time.Minute, 10*time.Millisecond, "%d", n)
}

// create makes worlds in which something is due at once, and returns the store's URL.
func create(t *testing.T, n int) string {
	t.Helper()
	return createAt(t, pgtest.URL(t), n)
}

// createAt is create in a database.
func createAt(t *testing.T, url string, n int) string {
	t.Helper()
	return createAs(t, url, "w", n)
}

// createAs is createAt with ids that begin as is said.
func createAs(t *testing.T, url, prefix string, n int) string {
	t.Helper()
	require.NoError(t, pglog.Init(t.Context(), url))
	s, err := shared.Open(t.Context(), url, shared.Options{Copies: t.TempDir()})
	require.NoError(t, err)
	defer s.Close()
	loaded, err := local.Load(filepath.Join("..", "..", "examples", "counter", local.ManifestFile), options())
	require.NoError(t, err)
	for i := range n {
		id := fmt.Sprint(prefix, i)
		require.NoError(t, s.Create(t.Context(), id, loaded, local.CreateOptions{}, options()))
		w, err := s.World(id)
		require.NoError(t, err)
		lw, err := local.Open(w.Dir, w.In(options()))
		require.NoError(t, err)
		_, err = lw.Submit(t.Context(), "counter.added", map[string]any{"name": "tea", "by": i})
		require.NoError(t, err)
		require.NoError(t, lw.Close())
	}
	return url
}

func (r *running) status(path string) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), "GET", r.url+path, strings.NewReader(""))
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+r.secret)
	res, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	require.NoError(r.t, res.Body.Close())
	return res.StatusCode
}

// TestNodesShareTheWorldsThatHaveSomethingToDo, and one has all when the other ends.
func TestNodesShareTheWorldsThatHaveSomethingToDo(t *testing.T) {
	url := create(t, 6)
	one := run(t, url, "one", time.Hour)
	one.owns(6)
	two := run(t, url, "two", time.Hour)
	two.owns(3)
	one.owns(3)
	for _, id := range two.worlds() {
		require.Equal(t, http.StatusOK, two.status("/api/worlds/"+id))
	}
	one.end() // their work is done: nobody needs them open
	all, err := two.store.Nodes(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	free := 0
	for w, err := range two.store.List(t.Context()) {
		require.NoError(t, err)
		require.Greater(t, uint64(w.Head.ID), uint64(2))
		if w.Node == "" {
			free++
			require.Nil(t, w.Due)
		}
	}
	require.Equal(t, 3, free)
}

// runInRoom is run for a node that has room for so many worlds, each of which is to stay open for an hour.
func runInRoom(t *testing.T, url, name string, worlds int) *running {
	t.Helper()
	n := &node.Nodes{Idle: time.Hour}
	n.HaveRoom(worlds)
	return runAs(t, n, []string{url}, name)
}

// resting counts the worlds that nobody owns and that have nothing to do.
func (r *running) resting() (rest int) {
	r.t.Helper()
	for w, err := range r.store.List(r.t.Context()) {
		require.NoError(r.t, err)
		if w.Node == "" && w.Due == nil {
			rest++
		}
	}
	return rest
}

// TestAWorldThatRestsIsARow.
func TestAWorldThatRestsIsARow(t *testing.T) {
	url := create(t, 2)
	one := run(t, url, "one", time.Millisecond)
	require.Eventually(t, func() bool { return one.resting() == 2 }, time.Minute, 10*time.Millisecond)
	require.Empty(t, one.worlds())
}

// TestWorldsTakeTurnsWhereThereIsNoRoomForAll, though each is to stay open for an hour, and one that is
// asked for is answered when there is.
func TestWorldsTakeTurnsWhereThereIsNoRoomForAll(t *testing.T) {
	const all, room = 3, 2
	url := create(t, all)
	one := runInRoom(t, url, "one", room)
	one.owns(room)
	handled := func() (n int) {
		for w, err := range one.store.List(t.Context()) {
			require.NoError(t, err)
			if uint64(w.Head.ID) > 2 {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool {
		require.LessOrEqual(t, len(one.worlds()), room)
		return handled() == all
	}, time.Minute, 10*time.Millisecond)
	for i := range all {
		path := fmt.Sprint("/api/worlds/w", i)
		require.Eventually(t, func() bool {
			require.LessOrEqual(t, len(one.worlds()), room)
			code := one.status(path)
			require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, code)
			return code == http.StatusOK
		}, time.Minute, 50*time.Millisecond)
	}
}

// TestNoMoreWorldsAreOpenThanThereIsRoomFor, though all are due and asked for at once.
func TestNoMoreWorldsAreOpenThanThereIsRoomFor(t *testing.T) {
	const all, room = 16, 4
	url := create(t, all)
	one := runInRoom(t, url, "one", room)
	one.owns(room)
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Second) // may be late: it only ends the looking
	defer stop()
	var work sync.WaitGroup
	for i := range all {
		work.Go(func() {
			for ctx.Err() == nil {
				_ = one.status(fmt.Sprint("/api/worlds/w", i))
			}
		})
	}
	most := 0
	for look := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-look.C {
		most = max(most, len(one.worlds()))
	}
	work.Wait()
	require.LessOrEqual(t, most, room)
	require.Positive(t, most)
}

// TestAWorldThatIsGivenToANodeWithoutRoomIsOpenedThere: nobody else would.
func TestAWorldThatIsGivenToANodeWithoutRoomIsOpenedThere(t *testing.T) {
	url := create(t, 4)
	one := run(t, url, "one", time.Hour)
	one.owns(4)
	two := runInRoom(t, url, "two", 1)
	two.owns(1)
	one.owns(3)
	require.NoError(t, one.store.Give(t.Context(), one.worlds()[0], "two"))
	two.owns(2)
	one.owns(2)
}
