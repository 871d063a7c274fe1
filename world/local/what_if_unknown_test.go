package local_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// A cell does what it is told: it asks the outside, which the rest waits for, tells others, and
// sets timers.
const talker = `def reduce(ctx, state, event):
    was = state or {"steps": 0, "then": []}
    other = ""
    acts = was["then"] if event.name == "receipt" else event.data["do"]
    then = []
    for i, act in enumerate(acts):
        if act[0] == "ask":
            ctx.effect("outside.ask", act[1] + other)
            then = acts[i + 1:]
            break
        elif act[0] == "after":
            ctx.timer(act[1], "go", {"do": act[2]})
        else:
            ctx.emit(act[0], {"to": act[1] + other, "do": act[2]})
    return {"steps": was["steps"] + 1, "then": then}
`

const talk = `world: talk
version: 1
limits: {in_flight: %d}
reducers:
  desk: {engine: starlark, source: talk.star, grants: [outside]}
  agent: {engine: starlark, source: talk.star, grants: [outside]}
  board: {engine: starlark, source: talk.star, grants: [outside]}
events: {desk: , agent: , board: , go: }
effects:
  outside.ask: {adapter: till, on_in_doubt: ask}
caps:
  outside: {type: any, params: {kinds: ["outside.*"]}}
policies:
  - {name: all, when: "true", decide: allow}
routing:
  - {event: desk, reducer: desk, key: event.data.to}
  - {event: agent, reducer: agent, key: event.data.to}
  - {event: board, reducer: board, key: event.data.to}
`

// saidTo is an event for a cell.
type saidTo struct {
	event, to string
	do        []any
}

func (s saidTo) submit(ctx context.Context, w *local.World) error {
	_, err := w.Submit(ctx, s.event, map[string]any{"to": s.to, "do": append([]any{}, s.do...)})
	return err
}

func to(event, key string, do ...any) saidTo  { return saidTo{event, key, do} }
func tell(reducer, key string, do ...any) any { return []any{reducer, key, append([]any{}, do...)} }
func asks(what string) any                    { return []any{"ask", what} }

func agentAsks(name string, then ...any) saidTo {
	return to("agent", name, append([]any{asks(name)}, then...)...)
}

// TestOnlyWhatHangsOnAnUnknownEffectIsUnknown: the others go on, and are compared.
func TestOnlyWhatHangsOnAnUnknownEffectIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		slots   int
		change  string // who asks and tells otherwise; empty: agent/ada
		events  []saidTo
		send    []saidTo // instead of the change
		only    bool
		ticks   uint64
		unknown []string
	}{
		"one of two agents, and the board that it writes on": {
			events:  []saidTo{agentAsks("ada", tell("board", "ada")), agentAsks("ben", tell("board", "ben"))},
			unknown: []string{"agent/ada asks", "board/ada waits agent/ada"},
		},
		"not who only gives it work": {
			events:  []saidTo{to("desk", "main", tell("agent", "ada", asks("x")), tell("agent", "ben", asks("y"))), to("desk", "main")},
			unknown: []string{"agent/ada asks"},
		},
		"who gave it work and was answered": {
			events: []saidTo{
				to("desk", "main", tell("agent", "ben", asks("y"))), to("board", "quiet"),
				agentAsks("ada", tell("desk", "main", tell("board", "main"))), agentAsks("ben"),
			},
			unknown: []string{"agent/ada asks", "board/main waits desk/main", "desk/main waits agent/ada"},
		},
		"whom it tells something meanwhile": {
			events:  []saidTo{to("agent", "ada", []any{"after", 3, []any{tell("board", "late")}}, asks("x")), agentAsks("ben")},
			unknown: []string{"agent/ada asks", "board/late waits agent/ada", "board/late! told agent/ada"},
		},
		"who waits for a slot that it takes": {
			slots: 1, events: []saidTo{agentAsks("ada"), agentAsks("ben"), to("board", "quiet")},
			unknown: []string{"agent/ada asks", "agent/ben room agent/ada"},
		},
		"who gives work to a new one, for those like it answer": {
			events:  []saidTo{to("desk", "main", tell("agent", "ben", asks("y"), tell("desk", "main"))), agentAsks("cid")},
			send:    []saidTo{to("desk", "main", tell("agent", "eve", asks("z"), tell("desk", "main")))},
			unknown: []string{"agent/eve asks", "desk/main waits agent/eve", "agent/ben told desk/main"},
		},
		"not where those like it do not": {
			events:  []saidTo{to("desk", "main", tell("agent", "ben", asks("y"), tell("board", "main"))), agentAsks("cid")},
			send:    []saidTo{to("desk", "main", tell("agent", "eve", asks("z"), tell("board", "eve")))},
			unknown: []string{"agent/eve asks"},
		},
		"not whom it told something before": {
			change:  `ctx.key == "ada" and was["steps"] > 0`,
			events:  []saidTo{to("agent", "ada", tell("board", "early")), agentAsks("ada")},
			unknown: []string{"agent/ada asks"},
		},
		"not who is told something when it is over": {
			events:  []saidTo{to("agent", "ada", []any{"after", 5, []any{tell("board", "late")}}, asks("x"))},
			ticks:   2,
			unknown: []string{"agent/ada asks"},
		},
		"not whom it has answered": {
			events: []saidTo{to("desk", "main", tell("agent", "ben", asks("y"), tell("desk", "main")))},
			send: []saidTo{
				to("agent", "eve", []any{"after", 5, []any{asks("z")}}),
				to("desk", "main", tell("agent", "eve", tell("desk", "main"))),
			},
			unknown: []string{"agent/eve asks"},
		},
		"also without what came after": {
			events:  []saidTo{agentAsks("ada")},
			send:    []saidTo{agentAsks("eve"), to("board", "quiet")},
			only:    true,
			unknown: []string{"agent/eve asks"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := new(till)
			dir := t.TempDir()
			write := func(code string) {
				rules := fmt.Sprintf(talk, cmp.Or(c.slots, 100))
				for name, text := range map[string]string{local.ManifestFile: rules, "talk.star": code} {
					require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
				}
			}
			write(talker)
			require.NoError(t, local.Create(dir, local.CreateOptions{ID: "parent"}, p.options()))
			w := openPaying(t, dir, p.options())
			for _, e := range c.events {
				require.NoError(t, e.submit(t.Context(), w))
				require.NoError(t, w.Run(t.Context()))
			}
			q := local.WhatIf{
				At: func(*local.World) (journal.Seq, error) { return 1, nil }, Actor: "ada", Alone: c.only, Ticks: c.ticks,
				Dir: filepath.Join(t.TempDir(), "fork"), Copy: filepath.Join(t.TempDir(), "copy"),
			}
			if c.send == nil {
				who := cmp.Or(c.change, `ctx.key == "ada"`)
				write(strings.Replace(talker, `other = ""`, `other = "!" if `+who+` else ""`, 1))
				rules, err := local.Load(filepath.Join(dir, local.ManifestFile), p.options())
				require.NoError(t, err)
				q.Amend = rules.Amend
			} else {
				q.Send = func(ctx context.Context, fork *local.World) (uint64, error) {
					for _, e := range c.send {
						if err := e.submit(ctx, fork); err != nil {
							return 0, err
						}
					}
					return uint64(len(c.send)), nil
				}
			}
			x, err := w.Suppose(t.Context(), q)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.NoError(t, x.Run(t.Context(), p.options()))
			var is, names []string
			for _, u := range x.Unknown {
				is, names = append(is, strings.TrimSpace(fmt.Sprintf("%s %s %s", u.Cell, u.Why, u.Of))), append(names, u.Cell)
				require.Equal(t, x.Unanswered[0], u.Effect)
				require.Positive(t, u.Since)
			}
			require.ElementsMatch(t, c.unknown, is)
			if c.send == nil && c.ticks == 0 { // what is known is as it was
				x.World.View(func(a *world.Moment) {
					x.Fork.View(func(b *world.Moment) {
						d := world.Compare(a, b, names...)
						require.True(t, d.Same(), "%+v", d)
					})
				})
			}
			require.NoError(t, x.Close())
		})
	}
}
