package node_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
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
)

// listed are the ids of all worlds that the node lists, page by page, and how many stores were away.
func (r *running) listed(page int) (ids []string, away int) {
	r.t.Helper()
	for path := any(fmt.Sprintf("/api/worlds?limit=%d", page)); path != nil; {
		status, answer := r.ask("GET", path.(string), "")
		require.Equal(r.t, http.StatusOK, status, answer)
		for _, w := range answer["worlds"].([]any) {
			ids = append(ids, w.(map[string]any)["id"].(string))
		}
		lacking, _ := answer["away"].(float64)
		away = int(lacking)
		path = answer["next"]
	}
	return ids, away
}

// becomes waits until the node says that some worlds wait for something, where the others do not.
func (r *running) becomes(waits ...any) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		status, answer := r.ask("GET", "/healthz", "")
		said, _ := answer["waiting"].([]any)
		return status == http.StatusOK && slices.Equal(said, waits)
	}, time.Minute, 200*time.Millisecond, "%v", waits) // it answers 20 times a second
}

// adds has an event be added to worlds, each of which answers.
func (r *running) adds(ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		status, answer := r.ask("POST", "/api/worlds/"+id+"/events", counting)
		require.Equal(r.t, http.StatusCreated, status, "%s: %v", id, answer)
	}
}

// TestWorldsOfSeveralStoresAreServedAsIfTheyLayInOne.
func TestWorldsOfSeveralStoresAreServedAsIfTheyLayInOne(t *testing.T) {
	a, b := createAs(t, pgtest.URL(t), "a", 2), createAs(t, pgtest.URL(t), "B", 2)
	one := runOf(t, []string{a, b}, "one", time.Hour)
	one.owns(4)
	one.becomes()
	one.adds("a0", "B1")
	for page := range 3 {
		ids, away := one.listed(page + 1)
		require.Equal(t, []string{"B0", "B1", "a0", "a1"}, ids, "by their bytes, whatever the databases' locales")
		require.Zero(t, away)
	}
	status, _ := one.ask("GET", "/api/worlds/nowhere", "")
	require.Equal(t, http.StatusNotFound, status)
	text := one.metricsText()
	for url, worlds := range map[string]int{a: 2, b: 2} {
		name, err := pglog.Where(url)
		require.NoError(t, err)
		for _, metric := range []string{"worldkernel_node_worlds", "worldkernel_store_worlds"} {
			require.Contains(t, text, fmt.Sprintf("%s{store=%q} %d\n", metric, name, worlds))
		}
	}
	connections := 0.0
	for _, s := range one.nodes.Stores() {
		connections += float64(s.Stats().PoolMax) + 1
	}
	require.LessOrEqual(t, connections, float64(node.MaxConnections))

	two := runOf(t, []string{a, b}, "two", time.Hour) // each store's are shared out
	two.owns(2)
	two.adds("a0", "a1", "B0", "B1")
}

// TestStoresThatAreOneAreRefused, and more than a process may have.
func TestStoresThatAreOneAreRefused(t *testing.T) {
	url := pgtest.URL(t)
	require.NoError(t, pglog.Init(t.Context(), url))
	alias := strings.Replace(url, "?", "?application_name=other&", 1)
	for _, urls := range [][]string{{url, url}, {url, alias}} {
		n := &node.Nodes{Events: slog.New(slog.DiscardHandler)}
		require.ErrorIs(t, n.Open(t.Context(), urls, shared.Options{Copies: t.TempDir()}), node.ErrSameStore)
	}
	n := &node.Nodes{Events: slog.New(slog.DiscardHandler)}
	require.ErrorIs(t, n.Open(t.Context(), make([]string, node.MaxStores+1), shared.Options{}), node.ErrTooMany)
}

// TestAStoreThatIsGoneStopsNoWorldOfAnother: also where it is gone when the node starts, and when it is back its worlds go on.
func TestAStoreThatIsGoneStopsNoWorldOfAnother(t *testing.T) {
	server := pgtest.Start(t)
	a, b := createAs(t, pgtest.URL(t), "a", 1), createAs(t, server.URL(t), "b", 1)
	server.Stop()
	one := runOf(t, []string{a, b}, "one", time.Millisecond, func(v *api.Service) { v.Limits.Moving = 10 * time.Second })
	alone := func() {
		t.Helper()
		one.becomes("store 2 of 2 does not answer: its worlds wait for it")
		one.adds("a0") // one that rests is opened, too
		ids, away := one.listed(1)
		require.Equal(t, []string{"a0"}, ids)
		require.Equal(t, 1, away)
		require.Contains(t, one.metricsText(), "worldkernel_store_up{store=")
	}
	alone()
	server.Crash(t) // starts it
	one.becomes()
	one.adds("b0", "a0")
	server.Stop()
	alone()
	server.Crash(t)
	one.becomes()
	one.adds("b0")
}

// TestANodeWaitsForItsStore that is away when it starts, and says so.
func TestANodeWaitsForItsStore(t *testing.T) {
	server := pgtest.Start(t)
	url := createAs(t, server.URL(t), "a", 1)
	server.Stop()
	var log lines
	one := runOf(t, []string{url}, "one", time.Hour, func(v *api.Service) {
		v.Events = slog.New(slog.NewTextHandler(&log, nil))
	})
	require.Contains(t, log.String(), "a store cannot be used, and is looked for: its worlds wait")
	require.Equal(t, http.StatusServiceUnavailable, one.status("/healthz"))
	server.Crash(t) // starts it
	one.becomes()
	one.adds("a0")
	require.Error(t, new(node.Nodes).Open(t.Context(), []string{"postgres://nobody@127.0.0.1:1/w?connect_timeout=x"}, shared.Options{Copies: t.TempDir()}),
		"what can never be used is told at once")
}

// TestAWorldThatTwoStoresHaveIsOpenedOfNeither, and that is told. It goes on when one has it no more: as where it has moved.
func TestAWorldThatTwoStoresHaveIsOpenedOfNeither(t *testing.T) {
	a, b := createAt(t, pgtest.URL(t), 2), createAt(t, pgtest.URL(t), 1)
	var log lines
	one := runOf(t, []string{a, b}, "one", time.Hour, func(v *api.Service) {
		v.Limits.Moving = time.Millisecond
		v.Events = slog.New(slog.NewTextHandler(&log, nil))
	})
	one.owns(1)
	one.becomes("1 of the worlds are in two stores, and are not opened: the log names them")
	status, _ := one.ask("GET", "/api/worlds/w0", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, []string{"w1"}, one.worlds())
	require.Equal(t, 1, strings.Count(log.String(), "two stores have a world of one id, and neither is opened"))
	other := openAt(t, b, false)
	_, err := other.MoveOut(t.Context(), "w0", t.TempDir()+"/out", options())
	require.NoError(t, err)
	one.becomes()
	require.Eventually(t, func() bool { return one.status("/api/worlds/w0") == http.StatusOK }, time.Minute, 10*time.Millisecond)
	status, cell := one.ask("GET", "/api/worlds/w0/cell?cell=counter/tea", "")
	require.Equal(t, http.StatusOK, status, cell)
	ids, _ := one.listed(10)
	require.Equal(t, []string{"w0", "w1"}, ids)
}

// openAt opens a store as whoever moves a world does.
func openAt(t *testing.T, url string, take bool) *shared.Store {
	t.Helper()
	s, err := shared.Open(t.Context(), url, shared.Options{Copies: t.TempDir(), Take: take})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// lines keep a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestAWorldThatMovesIsAnsweredForFromWhereItIs, by a node that has both stores, without being started again.
func TestAWorldThatMovesIsAnsweredForFromWhereItIs(t *testing.T) {
	a, b := createAt(t, pgtest.URL(t), 1), createAs(t, pgtest.URL(t), "b", 1)
	one := runOf(t, []string{a, b}, "one", time.Hour)
	one.owns(2)
	for _, taken := range []bool{false, true} { // there, when the node has given it up; and back, where it was not asked
		from, to := openAt(t, a, taken), openAt(t, b, taken)
		if taken {
			from, to = to, from
		}
		moved := make(chan error, 1)
		go func() {
			_, err := from.MoveTo(t.Context(), "w0", to, options())
			moved <- err
		}()
		for done := false; !done; {
			require.NotEqual(t, http.StatusNotFound, one.status("/api/worlds/w0"), "it is nowhere for a while, and waited for")
			select {
			case err := <-moved:
				require.NoError(t, err)
				done = true
			case <-time.After(20 * time.Millisecond):
			}
		}
		require.Eventually(t, func() bool {
			s, err := to.Owner(t.Context(), "w0")
			require.NoError(t, err)
			one.status("/api/worlds/w0")
			return s.Node == "one"
		}, time.Minute, 10*time.Millisecond)
		one.adds("w0", "b0")
	}
	one.becomes()
	ids, _ := one.listed(10)
	require.Equal(t, []string{"b0", "w0"}, ids)
}
