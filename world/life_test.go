package world_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world/worldtest"
)

// counted is a life that ends when it is looked at for the last time.
type counted struct {
	context.Context

	looks, last int
}

func (c *counted) Err() error {
	if c.looks++; c.last != 0 && c.looks >= c.last {
		return errWaited
	}
	return nil
}

// Done says that it can end.
func (*counted) Done() <-chan struct{} { return make(chan struct{}) }

// Value has nothing: else context.Cause would not ask it.
func (*counted) Value(any) any { return nil }

// TestLongLoopsLookWhetherTheWorldEnds: each of what comes of one step, and each that falls due in one tick,
// is a place where the world in memory can end. What was under way is nowhere then, and comes when it is opened again.
func TestLongLoopsLookWhetherTheWorldEnds(t *testing.T) {
	const many = 2000
	rules := strings.Replace(plain, "source: r.star}", "source: r.star, limits: {events: 65536, timers: 65536}}", 1) + "limits: {mailbox: 65536}\n"
	for name, x := range map[string]struct {
		program string
		before  int // ticks
	}{
		"events of a step": {`
def reduce(ctx, state, event):
    for i in range(2000):
        ctx.emit("more", i)
`, 0},
		"timers of a step": {`
def reduce(ctx, state, event):
    for i in range(2000 if event.name == "go" else 0):
        ctx.timer(10, "t", i)
`, 0},
		"timers of a tick": {`
def reduce(ctx, state, event):
    if event.name != "go":
        fail("it is halted: no step looks")
    for i in range(2000):
        ctx.timer(10, "t", i)
`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, contents := rulesOf(t, rules, x.program)
			lived := func(last int) (*worldtest.World, *counted) {
				life := &counted{Context: t.Context()}
				w := worldtest.New(t, *m, contents, worldtest.Options{Life: life})
				w.Crash() // a world has a life once it is opened
				w.Submit("go", map[string]any{"to": "a"})
				for range x.before {
					_, err := w.Next(t.Context())
					require.NoError(t, err)
				}
				life.looks, life.last = 0, last
				return w, life
			}
			w, life := lived(0)
			_, err := w.Next(t.Context())
			require.NoError(t, err)
			require.Greater(t, life.looks, many)
			all := life.looks
			w.Run()
			whole := w.Status().Head
			for _, last := range []int{all / 4, all / 2, 3 * all / 4, many - 10} {
				w, life := lived(last)
				_, err := w.Next(t.Context())
				require.ErrorIs(t, err, errWaited, "%d of %d", last, all)
				require.Less(t, life.looks, last+100, "soon")
				life.last = 0
				w.Crash()
				w.Run()
				require.Equal(t, whole, w.Status().Head)
			}
		})
	}
}
