package world_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// frail is a bot that panics as it is told.
func frail(ctx *reducer.Context, s botState, e reducer.Event) (botState, error) {
	o, err := reducer.Decode[order](e.Data)
	if err != nil {
		return s, err
	}
	switch o.Say {
	case "index":
		return s, errMany[len(s.Seen)]
	case "map":
		noMap["a"]++
	case "text":
		panic("I cannot")
	case "error":
		panic(errBot)
	case "pointer":
		panic(&s)
	case "nil":
		return *(*botState)(nil), nil
	}
	return bot(ctx, s, e)
}

var (
	errMany []error
	noMap   map[string]int
)

// logged is a test that remembers what it is told last.
type logged struct {
	testing.TB

	said string
}

func (l *logged) Logf(format string, args ...any) { l.said = fmt.Sprintf(format, args...) }

// The code of a cell that panics fails its step, as one that returns an error does: other cells
// go on, and so does whoever opens the world or computes it again.
func TestAPanicOfAReducerFailsItsStep(t *testing.T) {
	for how, said := range map[string]string{
		"index": "it panicked: runtime error: index out of range [0] with length 0", "map": "it panicked: assignment to entry in nil map",
		"text": "it panicked: I cannot", "error": "it panicked: bot told to fail", "pointer": "it panicked: with a *world_test.botState",
		"nil": "it panicked: runtime error: invalid memory address or nil pointer dereference",
	} {
		t.Run(how, func(t *testing.T) {
			log := &logged{TB: t}
			w := botsWith(log, worldtest.Options{Reducers: reducer.Registry{"bot@1": reducer.Typed(1, frail)}})
			var told []world.Failure
			w.TellFailures(func(f world.Failure) { told = append(told, f) })
			w.Submit("go", order{To: "a", Say: how})
			w.Submit("skip.go", order{To: "a", Say: how})
			w.Submit("go", order{To: "b", Say: "well"})
			w.Run()
			require.Len(t, told, 2)
			require.Equal(t, said, told[0].Error)
			require.Contains(t, log.said, "world_test.frail(", "where it panicked is for whoever tests it")
			require.JSONEq(t, `{"seen": ["1:go well"]}`, w.State("bot/b"))
			failed := worldtest.Bodies[*journal.Failed](t, w.Journal)
			require.Len(t, failed, 2)
			require.True(t, failed[0].Halted)
			require.False(t, failed[1].Halted)
			w.Crash()
			w.Submit("go", order{To: "b", Say: "still"})
			w.Run()
			w.RequireReplay()
		})
	}
}

// A migration that panics keeps the rules as they are.
func TestAPanicOfAMigrationKeepsTheManifest(t *testing.T) {
	r := botRegistry()
	r["bot@2"] = reducer.Migrating(r["bot@1"], func(reducer.Data) (botState, error) { panic("not this one") })
	w := botsWith(t, worldtest.Options{Reducers: r})
	w.Submit("go", order{To: "a", Say: "hello"})
	w.Run()
	next := *w.Manifest()
	next.Reducers = map[string]manifest.Reducer{"bot": next.Reducers["bot"], "skip": next.Reducers["skip"]}
	def := next.Reducers["bot"]
	def.Version = "2"
	next.Reducers["bot"] = def
	err := adopt(t, w, &next)
	require.ErrorIs(t, err, world.ErrMigration)
	require.ErrorContains(t, err, "it panicked: not this one")
	w.Submit("go", order{To: "a", Say: "again"})
	w.Run()
	require.JSONEq(t, `{"seen": ["1:go hello", "2:go again"]}`, w.State("bot/a"))
	w.RequireReplay()
}

// A step whose goroutine ends, as that of a test that fails does, is no step: the world is
// to be opened again, and then it is as if the step had not begun.
func TestAStepThatIsBrokenOffStopsItsWorld(t *testing.T) {
	ends := true
	w := botsWith(t, worldtest.Options{Reducers: reducer.Registry{"bot@1": reducer.Typed(1, func(ctx *reducer.Context, s botState, e reducer.Event) (botState, error) {
		if ends && ctx.Cell().Key == "a" {
			runtime.Goexit()
		}
		return bot(ctx, s, e)
	})}})
	w.Submit("go", order{To: "a", Say: "first"})
	w.Submit("go", order{To: "b", Say: "second"})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.World.Run(t.Context())
	}()
	<-done
	ends = false
	require.ErrorContains(t, w.World.Run(t.Context()), "open it again: a step was broken off")
	require.ErrorContains(t, w.TrySubmit("go", order{To: "b"}), "open it again: a step was broken off")
	w.Crash()
	w.Run()
	require.JSONEq(t, `{"seen": ["1:go first"]}`, w.State("bot/a"))
	w.RequireReplay()
}
