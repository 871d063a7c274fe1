// Package twice looks by machine for whatever is done twice, over any history:
// see docs/testing.md.
package twice

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/internal/testrace"
	"github.com/worldkernel/worldkernel/receipt"
)

// fewLives are lived where nobody asks for more, and fewRaced with the race detector. In
// so many each fault strikes.
const (
	fewLives = 1000
	fewRaced = 150
)

// TestNothingIsDoneTwiceOverAnyHistory lives random lives through rollbacks,
// forks, repeats, verifiers, kills and stops, beside a bank that counts. Nothing
// is paid twice under one key, nor for one cell, kind and params, but as often as
// somebody said so. Nothing is left behind in silence, and nothing is lost.
//
// Life n of SEED=s is the first life of SEED=s+n. LIVES says how many to live.
func TestNothingIsDoneTwiceOverAnyHistory(t *testing.T) {
	first, lives := number(t, "SEED", 1), int(number(t, "LIVES", uint64(few())))
	total, struck := make(map[string]int), fault.NewStruck(fault.Lives)
	for n := range lives {
		seed := first + uint64(n)
		l, err := lived(t, seed, total, struck)
		if err != nil {
			t.Fatalf("SEED=%d, after %d lives: %v\n\n%s\nto see it again: make twice LIVES=1 SEED=%d", seed, n+1, err, l.tale(), seed)
		}
	}
	t.Logf("SEED=%d: %d lives: %v\n%s", first, lives, total, struck)
	if lives >= few() { // they are what they are for
		require.Empty(t, struck.Never())
		for _, what := range []string{
			"snapshot", "rollback", "rollback refused", "fork hold", "fork live", "executed", "refunded", "listed",
			"approve", "deny", "not_executed", "told ok", "told error", "told denied", "told rejected",
			"withdrawn", "cancelled unbegun", "timer cancelled", "timer fired", "told apart", "told cancelled",
		} {
			require.NotZero(t, total[what], what)
		}
	}
}

// TestALifeIsItsSeed says that a seed shows again what it has shown, but where cells
// cancel: whether an attempt has begun by then is up to the machine.
func TestALifeIsItsSeed(t *testing.T) {
	for _, seed := range []uint64{6, 20, 49} {
		first, err := lived(t, seed, make(map[string]int), fault.NewStruck(fault.Lives))
		require.NoError(t, err)
		second, err := lived(t, seed, make(map[string]int), fault.NewStruck(fault.Lives))
		require.NoError(t, err)
		require.Equal(t, first.tale(), second.tale())
	}
}

// few returns how many lives are lived where nobody asks for more.
func few() int {
	if testrace.On {
		return fewRaced
	}
	return fewLives
}

// lived lives the life of a seed, where time costs nothing. Its effect stores are
// files in memory where the system has such: no disk is under test, and its syncs
// would take most of the time.
func lived(t *testing.T, seed uint64, total map[string]int, struck *fault.Struck) (l *life, err error) {
	t.Helper()
	base := ""
	if _, err := os.Stat("/dev/shm"); err == nil {
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "twice") //nolint:usetesting // in memory, where it can be
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	synctest.Test(t, func(*testing.T) { l, err = live(seed, dir, total, struck) })
	return l, err
}

// number returns a number of the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return n
}

// sorted returns keys in an order of their own.
func sorted(keys map[receipt.Key]bool) []receipt.Key {
	out := make([]receipt.Key, 0, len(keys))
	for key := range keys {
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b receipt.Key) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return out
}
