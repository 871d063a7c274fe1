package attack

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listener is a test that only hears what it is told.
type listener struct {
	testing.TB
	failed bool
	told   strings.Builder
}

func (l *listener) Helper()      {}
func (l *listener) Name() string { return "TestAttackX" }
func (l *listener) Failed() bool { return l.failed }

func (l *listener) Logf(format string, args ...any) { fmt.Fprintf(&l.told, format+"\n", args...) }

func (l *listener) Errorf(format string, args ...any) {
	l.failed = true
	l.Logf(format, args...)
}

func (l *listener) FailNow() {
	l.failed = true
	runtime.Goexit()
}

// told returns what a test hears of a class.
func told(try func(l *listener, a *Attempt)) string {
	l, done := new(listener), make(chan struct{})
	go func() {
		defer close(done)
		Run(l, "doors", func(a *Attempt) { try(l, a) })
	}()
	<-done
	return l.told.String()
}

func TestRunCountsWhatComesThrough(t *testing.T) {
	t.Setenv("SEED", "40")
	t.Setenv("ATTEMPTS", "9")
	for _, c := range []struct {
		what string
		try  func(l *listener, a *Attempt)
		want []string
	}{
		{"nothing", func(*listener, *Attempt) {}, []string{"attack: doors: 9 tried, 0 through\n"}},
		{"one that says so", func(_ *listener, a *Attempt) {
			if a.Seed == 44 {
				a.Through("the door is %s", "open")
				a.Through("and the window")
			}
		}, []string{
			"doors, seed 44: the door is open\nagain: SEED=44 ATTEMPTS=1 go test -count=1 -v -run '^TestAttackX$' ./internal/attack\n",
			"attack: doors: 9 tried, 1 through\n",
		}},
		{"one that panics", func(_ *listener, a *Attempt) {
			if a.Seed == 48 {
				panic("out of doors")
			}
		}, []string{"seed 48: panic: out of doors", "9 tried, 1 through"}},
		{"one that fails", func(l *listener, a *Attempt) {
			if a.Seed == 41 {
				l.Errorf("no")
			}
		}, []string{"seed 41: it fails the test", "9 tried, 1 through"}},
		{"one that ends the test", func(l *listener, a *Attempt) {
			if a.Seed == 43 {
				l.FailNow()
			}
		}, []string{"seed 43 ended the test\nagain: SEED=43 ", "attack: doors: 4 tried, 1 through\n"}},
	} {
		for _, want := range c.want {
			require.Contains(t, told(c.try), want, c.what)
		}
	}
}

func TestAnAttemptIsItsSeed(t *testing.T) {
	draw := func(class string, seed uint64) (out [8]uint64) {
		a := newAttempt(class, seed)
		for i := range out {
			out[i] = a.Uint64()
		}
		return out
	}
	again := draw("doors", 7)
	require.Equal(t, draw("doors", 7), again)
	require.NotEqual(t, draw("doors", 7), draw("doors", 8))
	require.NotEqual(t, draw("doors", 7), draw("walls", 7))
}
