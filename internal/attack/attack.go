// Package attack makes attempts at what must hold against those who mean harm, by
// seed. It is for tests: attack_test.go of a package holds the attacks on it, and
// this package what these share.
//
// Attempt n of SEED=s is the first of SEED=s+n, so that each can be made again by
// itself. A class makes ATTEMPTS attempts; where the environment does not say, Few.
// After the last one Run logs a line that tools/attack sums up:
//
//	attack: CLASS: N tried, M through
package attack

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Few is how many attempts of each class the tests make on every change.
const Few = 200

// maxTold is how many attempts that came through are printed.
const maxTold = 10

// Attempt is a source of all randomness of an attack, and the place for reporting a breach. It is
// not safe for concurrent use.
type Attempt struct {
	*rand.Rand
	Seed uint64

	through string
}

// Through says that the attempt came through, and how. The first time counts.
func (a *Attempt) Through(format string, args ...any) {
	if a.through == "" {
		a.through = fmt.Sprintf(format, args...)
	}
}

// Run makes the attempts of a class. One comes through that says so, that panics,
// or that fails the test; where that ends the test, it is the last.
func Run(t testing.TB, class string, try func(a *Attempt)) {
	t.Helper()
	first, attempts := number(t, "SEED", 1), number(t, "ATTEMPTS", Few)
	var tried, through uint64
	defer func() {
		t.Helper()
		t.Logf("attack: %s: %d tried, %d through", class, tried, through)
	}()
	for tried < attempts {
		a := newAttempt(class, first+tried)
		tried++
		through++ // unless one returns
		one(t, a, try)
		if a.through == "" {
			through--
		} else if through <= maxTold {
			t.Errorf("%s, seed %d: %s\nagain: %s", class, a.Seed, a.through, command(t, a.Seed))
		}
	}
}

// newAttempt returns an attempt whose choices are its class's and its seed's alone.
func newAttempt(class string, seed uint64) *Attempt {
	return &Attempt{Rand: rand.New(rand.NewChaCha8(canon.Sum(fmt.Append(nil, class, seed)))), Seed: seed}
}

// one makes an attempt. What ends the test leaves by runtime.Goexit, and is told of
// on its way.
func one(t testing.TB, a *Attempt, try func(a *Attempt)) {
	t.Helper()
	before, returned := t.Failed(), false
	defer func() {
		if p := recover(); p != nil {
			a.Through("panic: %v\n%s", p, debug.Stack())
		} else if !returned {
			t.Logf("seed %d ended the test\nagain: %s", a.Seed, command(t, a.Seed))
		} else if !before && t.Failed() {
			a.Through("it fails the test")
		}
	}()
	try(a)
	returned = true
}

// number returns a number of the environment.
func number(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// command is what makes one attempt again.
func command(t testing.TB, seed uint64) string {
	return fmt.Sprintf("SEED=%d ATTEMPTS=1 go test -count=1 -v -run '^%s$' %s", seed, t.Name(), here())
}

// here returns the package whose tests run, from the root of the module.
func here() string {
	dir, err := os.Getwd()
	for root := dir; err == nil && root != filepath.Dir(root); root = filepath.Dir(root) {
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil {
			if rel, err := filepath.Rel(root, dir); err == nil {
				return "./" + filepath.ToSlash(rel)
			}
		}
	}
	return "."
}

// Pick returns one of some values.
func Pick[T any](a *Attempt, of ...T) T { return of[a.IntN(len(of))] }

// Chance reports true once in n times.
func (a *Attempt) Chance(n int) bool { return a.IntN(n) == 0 }
