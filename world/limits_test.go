package world_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// bounded is a world with one limit of the whole world and one of its reducer's steps.
const bounded = `
world: w
version: 1
reducers:
  r: {engine: starlark, source: r.star, grants: [all], limits: {%s}}
events: {go: }
effects: {ask: {adapter: exec, config: {program: "true"}}}
caps: {all: {type: any, params: {kinds: [ask]}}}
policies: [{name: all, when: "true", decide: allow}]
routing: [{event: go, reducer: r, key: '"a"'}]
limits: {%s}
`

// over are the values of limits, and the bodies of a step that goes over them: in
// Starlark, or else an input that is refused. Limits at which nothing fails say why.
var over = map[string]struct {
	limit, step string
	input       func(w *worldtest.World) error
	waits       string
}{
	"limits.events_per_tick": {waits: "the other events are handled in the next tick"},
	"limits.in_flight":       {waits: "the other effects are performed when these are"},
	"limits.submit_keys":     {waits: "the keys that came first are forgotten"},

	"limits.mailbox": {limit: "1", step: `[ctx.emit("go") for _ in range(2)]`},
	"limits.alarms":  {limit: "1", step: `[ctx.timer(1, "t%d" % i) for i in range(2)]`},
	"limits.payload": {limit: "100", step: `ctx.effect("ask", "x" * 100)`},
	"limits.receipt": {limit: "100", input: func(w *worldtest.World) error {
		return worldtest.ErrorOf(w.Receive(make([]byte, 101)))
	}},

	"reducers.r.limits.gas":     {limit: "1000", step: `[i for i in range(1000)]`},
	"reducers.r.limits.state":   {limit: "100", step: `return "x" * 100`},
	"reducers.r.limits.events":  {limit: "1", step: `[ctx.emit("go") for _ in range(2)]`},
	"reducers.r.limits.effects": {limit: "1", step: `[ctx.effect("ask") for _ in range(2)]`},
	"reducers.r.limits.timers":  {limit: "1", step: `[ctx.timer(1, "t%d" % i) for i in range(2)]`},
	"reducers.r.limits.value":   {limit: "100", step: `"x" * 101`},
	"reducers.r.limits.memory":  {limit: "1000", step: `["x" * 100 for _ in range(20)]`},
}

// also are other ways over a limit of the world.
var also = map[string][]string{
	"limits.payload": {`ctx.emit("go", "x" * 100)`, `ctx.timer(1, "t", "x" * 100)`},
}

// keysOf returns the names of the fields of limits.
func keysOf(limits any) (keys []string) {
	typ := reflect.TypeOf(limits)
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("cbor"), ",")
		keys = append(keys, name)
	}
	return keys
}

// TestWhatIsOverALimitNamesItsKey goes over every limit that there is.
func TestWhatIsOverALimitNamesItsKey(t *testing.T) {
	var all []string
	for _, key := range keysOf(manifest.Limits{}) {
		all = append(all, "limits."+key)
	}
	for _, key := range keysOf(manifest.ReducerLimits{}) {
		all = append(all, "reducers.r.limits."+key)
	}
	require.Len(t, over, len(all))
	for _, key := range all {
		t.Run(key, func(t *testing.T) {
			x, ok := over[key]
			require.True(t, ok, "a limit without a way over it")
			if x.waits != "" {
				return
			}
			of, name, _ := strings.Cut(key, "limits.")
			if x.input != nil {
				require.ErrorContains(t, x.input(boundedBy(t, of, name, x.limit, "return 1")), key)
				return
			}
			for _, step := range append(also[key], x.step) {
				w := boundedBy(t, of, name, x.limit, step)
				w.Submit("go", nil)
				w.Step(1)
				failed := worldtest.Bodies[*journal.Failed](t, w.Journal)
				require.Len(t, failed, 1)
				require.Contains(t, failed[0].Error, "limits."+name, "of the cell's reducer, or of the world")
				w.RequireReplay()
			}
		})
	}
}

func boundedBy(t *testing.T, of, name, value, step string) *worldtest.World {
	t.Helper()
	whole, reducers := name+": "+value, ""
	if of != "" {
		whole, reducers = reducers, whole
	}
	m, contents := rulesOf(t, fmt.Sprintf(bounded, reducers, whole), "def reduce(ctx, state, event):\n    "+step+"\n")
	return worldtest.New(t, *m, contents, worldtest.Options{Answer: func(receipt.Permit) worldtest.Reply { return worldtest.OK(nil) }})
}

// TestRefusedInputsNameTheLimit: what comes from outside is refused with the key, too.
func TestRefusedInputsNameTheLimit(t *testing.T) {
	submit := func(w *worldtest.World, x world.Submission) error {
		return worldtest.ErrorOf(w.World.Submit(context.Background(), x))
	}
	w := boundedBy(t, "", "payload", "100", "return 1")
	long := world.Submission{Name: "go", Data: mustData(t, strings.Repeat("x", 101))}
	require.ErrorContains(t, submit(w, long), "limits.payload")
	_, _, err := w.Emit(context.Background(), journal.OperatorEffect{Actor: "a", Kind: "ask", Params: make(journal.Data, 101)})
	require.ErrorContains(t, err, "limits.payload")

	w = boundedBy(t, "", "mailbox", "1", "return 1")
	w.Submit("go", nil)
	require.ErrorContains(t, submit(w, world.Submission{Name: "go"}), "limits.mailbox")

	w = boundedBy(t, "", "alarms", "1", "return 1")
	later := world.Submission{Name: "go", When: world.When{At: 5}}
	require.NoError(t, submit(w, later))
	require.ErrorContains(t, submit(w, later), "limits.alarms")
}
