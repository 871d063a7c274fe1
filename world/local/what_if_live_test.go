package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// A cell asks for what it is told to, sets timers, tells others, and notes what came and when.
const diarist = `def reduce(ctx, state, event):
    state = (state or []) + [[ctx.time, event.name, ctx.random(1000)]]
    if event.name == "receipt":
        ctx.emit("go", {"to": "z", "what": event.data["payload"]})
        return state
    for act in event.data.get("do", []):
        if act == "ask":
            ctx.effect("outside.ask", [ctx.key, len(state)], tag="asked")
        elif act == "stub":
            ctx.effect("outside.stub", [ctx.key, len(state)])
        elif act == "cancel":
            ctx.cancel("asked")
        else:
            ctx.timer(act, "go", {"to": ctx.key, "do": ["cancel"] if act % 2 else []})
    return state
`

// far answers when a test has it answer.
type far struct {
	answers chan string
	asked   atomic.Int64 // and not answered
}

func (f *far) Perform(ctx context.Context, _ host.Call) (host.Result, error) {
	f.asked.Add(1)
	select {
	case text := <-f.answers:
		return host.OK(text)
	case <-ctx.Done():
		return host.Result{}, ctx.Err()
	}
}

// diary is a world of diarists, its outside, and the clock that it goes by.
type diary struct {
	dir   string
	far   *far
	clock *worldtest.Clock
}

func newDiary(t *testing.T, clock string) *diary {
	t.Helper()
	d := &diary{dir: t.TempDir(), far: &far{answers: make(chan string)}, clock: worldtest.NewClock(time.Unix(100, 0))}
	for name, text := range map[string]string{
		local.ManifestFile: "clock: {" + clock + "}\n" + worldtest.Caller("diary",
			"outside.ask: {adapter: far}\n  outside.stub: {adapter: stub, config: {answers: stub.jsonl}}"),
		"caller.star": diarist, "stub.jsonl": `{"kind": "outside.stub", "payload": "at once"}` + "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(d.dir, local.CreateOptions{ID: "parent"}, d.options()))
	return d
}

func (d *diary) options() local.Options {
	return local.Options{Clock: d.clock, Grace: time.Nanosecond, Adapters: map[string]host.Factory{
		"far": func(host.Setup) (host.Adapter, error) { return d.far, nil },
	}}
}

// drive has the world do what it can without the outside.
func (d *diary) drive(t *testing.T, w *local.World) {
	t.Helper()
	for {
		p, err := w.Next(t.Context())
		require.NoError(t, err)
		if p == world.Idle || p == world.Waiting {
			require.NoError(t, w.Sync())
			return
		}
	}
}

// live has a bit of everything happen: events at once and later, answers in any order and
// late, timers, cancels, and time that passes while nobody runs the world.
func (d *diary) live(t *testing.T, w *local.World, rng *rand.Rand) {
	t.Helper()
	acts := []any{"ask", "stub", "cancel", 1, 2, 3, 7}
	for range 12 {
		switch rng.IntN(4) {
		case 0:
			d.clock.Move(time.Duration(rng.IntN(5000)) * time.Millisecond)
		case 1:
			if d.drive(t, w); d.far.asked.Load() == 0 {
				continue
			}
			d.far.asked.Add(-1)
			d.far.answers <- []string{"yes", "no"}[rng.IntN(2)]
			require.NoError(t, w.Wait(t.Context()))
		default:
			var do []any
			for range rng.IntN(4) {
				do = append(do, acts[rng.IntN(len(acts))])
			}
			data, err := canon.Marshal(map[string]any{"to": string(rune('a' + rng.IntN(3))), "do": do})
			require.NoError(t, err)
			s := world.Submission{Name: "go", Data: data}
			if rng.IntN(3) == 0 {
				s.At = max(w.Status().Time, manifest.Tick(d.clock.Now().Unix())) + manifest.Tick(5+rng.IntN(5))
			}
			_, err = w.SubmitEvent(t.Context(), s)
			require.NoError(t, err)
		}
		if rng.IntN(3) > 0 {
			d.drive(t, w)
		}
	}
	d.drive(t, w)
}

// TestUnchangedWhatIfIsWhatWas, wherever it begins and whatever the clock: each answer is
// told where it was told, each tick is that which it was.
func TestUnchangedWhatIfIsWhatWas(t *testing.T) {
	for _, clock := range []string{"mode: real, tick: 1s, epoch: 1970-01-01T00:00:00Z", "tick: 1s"} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("%s, seed %d", clock[:5], seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 7))
				d := newDiary(t, clock)
				w := openPaying(t, d.dir, d.options())
				d.live(t, w, rng)
				end := w.Status()
				for _, at := range []journal.Seq{1, 1 + journal.Seq(rng.Uint64N(uint64(end.Head.ID)))} {
					d.same(t, w, at)
				}
				require.NoError(t, w.Close())
			})
		}
	}
}

// TestWhatIfWithoutACopyLeavesNoFork: who asked is told of none.
func TestWhatIfWithoutACopyLeavesNoFork(t *testing.T) {
	dir := create(t)
	w := open(t, dir)
	scratch := t.TempDir()
	fork, taken := filepath.Join(scratch, "fork"), filepath.Join(scratch, "taken")
	require.NoError(t, os.WriteFile(taken, nil, 0o600))
	_, err := w.Suppose(t.Context(), local.WhatIf{
		At: func(*local.World) (journal.Seq, error) { return 1, nil }, Dir: fork, Copy: taken, Actor: "ada",
	})
	require.Error(t, err)
	require.NoDirExists(t, fork)
	require.NoError(t, w.Close())
}

// TestRepeatThatWaitsForItsAnswerCatchesUpOnce, as docs/starlark.md says: answers come now,
// whatever the tick is in which they were asked for. One that does not wait fires for each
// time that was missed, in its tick.
func TestRepeatThatWaitsForItsAnswerCatchesUpOnce(t *testing.T) {
	page, err := os.ReadFile("../../docs/starlark.md")
	require.NoError(t, err)
	_, rest, marked := strings.Cut(string(page), "<!-- a repeat that catches up once -->")
	_, rest, opened := strings.Cut(rest, "```python\n")
	waits, _, closed := strings.Cut(rest, "```")
	require.True(t, marked && opened && closed, "docs/starlark.md has the example behind its mark")
	atOnce := strings.Replace(waits, `ctx.effect(`, "ctx.timer(\"1s\", \"poll\", tag=\"poll\")\n    ctx.effect(", 1)
	for code, polls := range map[string]string{waits: `{"polls":2}`, atOnce: `{"polls":26}`} {
		d := &diary{dir: t.TempDir(), far: &far{answers: make(chan string)}, clock: worldtest.NewClock(time.Unix(100, 0))}
		for name, text := range map[string]string{
			local.ManifestFile: "clock: {mode: real, tick: 1s, epoch: 1970-01-01T00:00:00Z}\n" + worldtest.Caller("post", "mail.check: {adapter: far}"), "caller.star": code,
		} {
			require.NoError(t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
		}
		require.NoError(t, local.Create(d.dir, local.CreateOptions{ID: "parent"}, d.options()))
		w := openPaying(t, d.dir, d.options())
		pay(t, w, "ada", "")
		d.answered(t, w)
		require.NoError(t, w.Close())

		d.clock.Move(25 * time.Second) // nobody runs the world
		w = openPaying(t, d.dir, d.options())
		d.drive(t, w)
		require.Equal(t, polls, toldOf(t, w, "ada"))
		require.NoError(t, w.Close())
	}
}

// answered has the outside answer what is asked.
func (d *diary) answered(t *testing.T, w *local.World) {
	t.Helper()
	d.drive(t, w)
	d.far.answers <- "yes"
	for d.drive(t, w); w.Status().Intents[receipt.StateInFlight] > 0; d.drive(t, w) {
		require.NoError(t, w.Wait(t.Context()))
	}
}

// same requires that the world comes to the same from a moment on.
func (d *diary) same(t *testing.T, w *local.World, at journal.Seq) {
	t.Helper()
	then, err := w.At(at)
	require.NoError(t, err)
	if !w.IsReal() && len(then.InFlight()) > 0 {
		return // it is permitted anew, which takes a tick
	}
	scratch := t.TempDir()
	x, err := w.Suppose(t.Context(), local.WhatIf{
		At: func(*local.World) (journal.Seq, error) { return at, nil }, Dir: filepath.Join(scratch, "fork"), Copy: filepath.Join(scratch, "copy"), Actor: "ada",
	})
	require.NoError(t, err)
	require.NoError(t, x.Run(t.Context(), d.options()))
	require.Empty(t, x.Unanswered)
	diff := differs(t, x.World, x.Fork)
	require.True(t, diff.Same(), "from #%d on: %+v", at, diff)
	require.Equal(t, x.World.Status().Time, x.Fork.Status().Time)
	require.NoError(t, x.Close())
}
