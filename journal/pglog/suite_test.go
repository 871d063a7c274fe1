package pglog

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

var testKey = []byte("a key of thirty-two bytes for it")

// newURL returns the URL of an empty store.
func newURL(t testing.TB) string {
	t.Helper()
	url := pgtest.URL(t)
	require.NoError(t, Init(t.Context(), url))
	return url
}

// open is another process with the store.
func open(t testing.TB, url string, o Options) *Store {
	t.Helper()
	if o.Node == "" {
		o.Node = fmt.Sprintf("node %s %p", t.Name(), &o)
	}
	s, err := Open(t.Context(), url, o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// testStore returns an empty store.
func testStore(t testing.TB) *Store {
	t.Helper()
	return open(t, newURL(t), Options{})
}

// inTurn returns what makes worlds that two processes own in turn.
func inTurn(t *testing.T) func(t *testing.T) func() journal.Log {
	t.Helper()
	url := newURL(t)
	one, two := open(t, url, Options{}), open(t, url, Options{})
	worlds := 0
	return func(t *testing.T) func() journal.Log {
		worlds++
		id := fmt.Sprintf("w%d", worlds)
		require.NoError(t, one.Create(t.Context(), id, testKey))
		next, other := one, two
		return func() journal.Log {
			next, other = other, next
			return next.World(id, Claim{Key: testKey, Take: true})
		}
	}
}

func TestPostgresIsALog(t *testing.T) { holdTo(t, inTurn(t)) }

func TestPostgresKeepsAttempts(t *testing.T) { holdAttempts(t, inTurn(t)) }

func TestPostgresIsMovable(t *testing.T) {
	url := newURL(t)
	one, two := open(t, url, Options{}), open(t, url, Options{})
	worlds := 0
	holdMovable(t, func(*testing.T) func() journal.Log {
		worlds++
		id := fmt.Sprintf("w%d", worlds)
		next, other := one, two
		return func() journal.Log {
			next, other = other, next
			return next.World(id, Claim{Key: testKey, Take: true, Made: true})
		}
	})
}

// The log in memory, by which what is built on logs is tested, keeps the same laws.

func TestMemoryIsALog(t *testing.T) {
	holdTo(t, func(*testing.T) func() journal.Log { return new(logtest.Server).Log })
}

func TestMemoryKeepsAttempts(t *testing.T) {
	holdAttempts(t, func(*testing.T) func() journal.Log { return (&logtest.Server{Lease: time.Minute}).Log })
}

func TestMemoryIsMovable(t *testing.T) {
	holdMovable(t, func(*testing.T) func() journal.Log { return new(logtest.Server).Log })
}
