package scenario_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/scenario"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

const shop = `world: shop
reducers:
  desk: {engine: starlark, source: desk.star, grants: [till]}
events:
  paid:
  told:
effects:
  card.charge: {adapter: http, config: {url: "http://127.0.0.1:1/"}, retry: {attempts: 2, backoff: 24h}, idempotent: true}
  card.look: {adapter: stub, config: {answers: look.jsonl}}
caps:
  till: {type: any, params: {kinds: ["card.*"]}}
policies:
  - {name: all, when: 'intent.kind != "card.charge" || intent.params.cents < 1000', decide: allow}
  - {name: large, when: 'intent.kind == "card.charge" && intent.params.cents >= 1000 && intent.params.cents < 5000', decide: require_approval}
routing:
  - {event: paid, reducer: desk, key: event.data.who}
`

const desk = `def reduce(ctx, state, event):
    if event.name == "receipt":
        ctx.emit("told", {"status": event.data["status"]})
        return {"status": event.data["status"], "payload": event.data["payload"]}
    return asks(ctx, event.data)

def asks(ctx, data):
    ctx.effect(data.get("kind", "card.charge"), {"cents": data["cents"]})
    return {"status": "asked"}
`

func loaded(t *testing.T) *source.Loaded {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"world.yaml": shop, "desk.star": desk, "look.jsonl": `{"kind": "card.look", "payload": "fine"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l, err := local.Read(filepath.Join(dir, "world.yaml"), local.Options{})
	require.NoError(t, err)
	return l
}

// plays returns what is not as expected in a scenario, in YAML.
func plays(t *testing.T, text string) []string {
	t.Helper()
	all, err := scenario.Read("x.yaml", []byte(text))
	require.NoError(t, err)
	require.Len(t, all, 1)
	l := loaded(t)
	faults, err := scenario.Play(t.Context(), l, &all[0], local.Options{})
	require.NoError(t, err)
	again, err := scenario.Play(t.Context(), l, &all[0], local.Options{})
	require.NoError(t, err)
	require.Equal(t, faults, again, "it comes to the same each time")
	return faults
}

// A scenario waits for no wall clock, and the world that it is made of stays as it is.
func TestARealWorldIsPlayedOnASimulatedClock(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"world.yaml": `world: nap
clock: {mode: real, tick: 1m}
reducers: {nap: {engine: starlark, source: nap.star}}
events: {asked:}
routing: [{event: asked, reducer: nap, key: event.data.who}]
`,
		"nap.star": `def reduce(ctx, state, event):
    if event.name == "asked":
        ctx.timer("24h", "awake")
    return {"last": event.name, "at": ctx.time}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l, err := local.Read(filepath.Join(dir, "world.yaml"), local.Options{})
	require.NoError(t, err)
	all, err := scenario.Read("x.yaml", []byte(`
given: [{event: asked, data: {who: ada}}, {run: 3}]
expect: {cells: {nap/ada: {last: awake, at: 1441}}}`))
	require.NoError(t, err)
	faults, err := scenario.Play(t.Context(), l, &all[0], local.Options{})
	require.NoError(t, err)
	require.Empty(t, faults)
	require.True(t, l.Manifest.Clock.Real())
}

func TestWhatIsAsExpected(t *testing.T) {
	for name, text := range map[string]string{
		"all of it": `
given: [{event: paid, data: {who: ada, cents: 7}}]
answers: [{effect: card.charge, params: {cents: 7}, reply: {id: 1}}]
expect:
  cells: {desk/ada: {payload: {id: 1}}, desk/ben: null}
  events: [{event: told, data: {status: ok}}]
  intents: [{effect: card.charge, params: {cents: 7}, cell: desk/ada, state: committed}]`,
		"again after a failure": `
given: [{event: paid, data: {who: ada, cents: 7}}]
answers:
  - {effect: card.charge, error: busy, outcome: retryable_failure}
  - {effect: card.charge, reply: done}
expect: {cells: {desk/ada: {status: ok, payload: done}}}`,
		"a person": `
given: [{event: paid, data: {who: ada, cents: 1000}}, {event: paid, data: {who: ben, cents: 2000}}, {approve: card.charge}, {deny: card.charge}]
answers: [{effect: card.charge, always: true, reply: 1}]
expect:
  cells: {desk/ada: {status: ok}, desk/ben: {status: denied}}
  denials: [{effect: card.charge, cell: desk/ben}]`,
		"the gate":    "given: [{event: paid, data: {who: ada, cents: 5000}}]\nexpect: {denials: [{effect: card.charge, code: no_policy}]}",
		"a stub":      "given: [{event: paid, data: {who: ada, cents: 1, kind: card.look}}]\nexpect: {cells: {desk/ada: {payload: fine}}}",
		"its own way": "given: [{event: paid, data: {who: ada, cents: 1, kind: card.look}}]\nanswers: [{effect: card.look, says: hi, calls: [{tool: t}]}]\nexpect: {cells: {desk/ada: {payload: {message: {content: hi}}}}}",
		"a failure":   "given: [{event: paid, data: {who: ada}}]\nexpect: {fails: ['key \"cents\" not in dict (in asks, called by reduce at desk.star:5)']}",
		"later":       "given: [{event: paid, data: {who: ada, cents: 1, kind: card.look}, at: 50}, {run: 3}, {event: paid, to: desk/x, data: {cents: 1, kind: card.look}}]\nexpect: {cells: {desk/ada: {status: ok}, desk/x: {status: ok}}}",
	} {
		t.Run(name, func(t *testing.T) { require.Empty(t, plays(t, text)) })
	}
}

// The deadline of docs/starlark.md: an answer in time, one that is late, and none.
func TestAnswersComeWhenTheyDo(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"world.yaml": `world: post
clock: {epoch: 2026-01-01T00:00:00Z, tick: 1m}
reducers: {post: {engine: starlark, source: post.star, grants: [mail]}}
events: {asked:}
effects: {mail.send: {adapter: stub, config: {answers: none.jsonl}, on_in_doubt: ask}}
caps: {mail: {type: any, params: {kinds: [mail.send]}}}
defaults: {approval_ttl: 48h}
policies: [{name: all, when: "true", decide: allow}, {name: boss, when: 'intent.params.to == "boss"', decide: require_approval}]
routing: [{event: asked, reducer: post, key: event.data.who}]
`,
		"none.jsonl": "",
		"post.star": `def reduce(ctx, state, event):
    if event.name == "overdue":
        ctx.cancel("letter")
        return {"told": "nothing in time", "at": ctx.time}
    if event.name == "receipt":
        if event.data.get("cancelled"):
            return state | {"late": event.data["status"]}
        ctx.cancel("letter")
        return {"told": event.data["status"], "at": ctx.time}
    ctx.effect("mail.send", {"to": ctx.key}, tag="letter")
    ctx.timer("24h", "overdue", tag="letter")
    return {"told": None}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l, err := local.Read(filepath.Join(dir, "world.yaml"), local.Options{})
	require.NoError(t, err)
	const ask = "given: [{event: asked, data: {who: ada}}]\n"
	for name, text := range map[string]string{
		"at once":        ask + "answers: [{effect: mail.send, reply: 1}]\nexpect: {cells: {post/ada: {told: ok, at: 1}}}",
		"in time":        ask + "answers: [{effect: mail.send, after: 2h, reply: 1}]\nexpect: {cells: {post/ada: {told: ok, at: 121}}}",
		"in ticks":       ask + "answers: [{effect: mail.send, after: 7, error: full}]\nexpect: {cells: {post/ada: {told: error, at: 8}}}",
		"late":           ask + "answers: [{effect: mail.send, after: 25h, reply: 1}]\nexpect: {cells: {post/ada: {told: nothing in time, at: 1441, late: ok}}, intents: [{effect: mail.send, state: committed}]}",
		"with the timer": ask + "answers: [{effect: mail.send, after: 24h, reply: 1}]\nexpect: {cells: {post/ada: {told: nothing in time, late: ok}}}",
		"never":          ask + "answers: [{effect: mail.send, never: true}]\nexpect: {cells: {post/ada: {told: nothing in time, late: null}}, intents: [{effect: mail.send, state: in_flight}]}",
		"doubt":          ask + "answers: [{effect: mail.send, after: 2h, outcome: in_doubt, error: the line is dead}]\nexpect: {cells: {post/ada: {told: nothing in time}}, intents: [{effect: mail.send, state: in_doubt}]}",
		"not begun":      "given: [{event: asked, data: {who: boss}}, {run: 25h}]\nexpect: {cells: {post/boss: {late: cancelled}}, intents: [{effect: mail.send, state: cancelled}]}",
		"each its own":   "given: [{event: asked, data: {who: ada}}, {event: asked, data: {who: ben}, in: 1h}]\nanswers: [{effect: mail.send, params: {to: ben}, reply: 1}, {effect: mail.send, params: {to: ada}, after: 3h, reply: 1}]\nexpect: {cells: {post/ada: {at: 181}, post/ben: {at: 60}}}",
		"at a time":      "given: [{event: asked, data: {who: ada}, at: 2026-01-01T02:00Z}, {run: 3h}]\nanswers: [{effect: mail.send, reply: 1}]\nexpect: {cells: {post/ada: {told: ok, at: 120}}}",
		"run over it":    ask[:len(ask)-2] + ", {run: 3h}, {event: asked, data: {who: ben}}]\nanswers: [{effect: mail.send, after: 2h, reply: 1}, {effect: mail.send, reply: 1}]\nexpect: {cells: {post/ada: {at: 121}, post/ben: {at: 181}}}",
	} {
		t.Run(name, func(t *testing.T) {
			all, err := scenario.Read("x.yaml", []byte(text))
			require.NoError(t, err)
			faults, err := scenario.Play(t.Context(), l, &all[0], local.Options{})
			require.NoError(t, err)
			require.Empty(t, faults)
		})
	}
}

// The scenarios of docs/testing-worlds.md, with the reducer of docs/starlark.md.
func TestDeadlinesOfTheDocs(t *testing.T) {
	block := func(file, fence, has string) string {
		page, err := os.ReadFile(filepath.Join("../../docs", file))
		require.NoError(t, err)
		for part := range strings.SplitSeq(string(page), "```"+fence+"\n") {
			if code, _, _ := strings.Cut(part, "```"); strings.Contains(code, has) {
				return code
			}
		}
		require.Fail(t, file+" has no example with "+has)
		return ""
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"world.yaml": `world: letters
reducers: {letter: {engine: starlark, source: letter.star, grants: [mail]}}
events: {letter.asked:}
effects: {mail.send: {adapter: exec, config: {program: /bin/false}}}
caps: {mail: {type: any, params: {kinds: [mail.send]}}}
policies: [{name: all, when: "true", decide: allow}]
routing: [{event: letter.asked, reducer: letter, key: event.data.to}]
`,
		"letter.star": block("starlark.md", "python", `ctx.cancel("letter")`),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l, err := local.Read(filepath.Join(dir, "world.yaml"), local.Options{})
	require.NoError(t, err)
	all, err := scenario.Read("testing-worlds.md", []byte(block("testing-worlds.md", "yaml", "never: true")))
	require.NoError(t, err)
	require.Len(t, all, 3)
	for _, s := range all {
		faults, err := scenario.Play(t.Context(), l, &s, local.Options{})
		require.NoError(t, err)
		require.Empty(t, faults, s.Name)
	}
}

// Time goes by in one stride to where something happens: an answer, a timer, the end of a
// wait for a person, a budget that renews while an answer is under way.
func TestTicksWithoutAnythingAreJumpedOver(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"world.yaml": `world: slow
clock: {mode: real, tick: 1s}
reducers: {slow: {engine: starlark, source: slow.star, grants: [once, any]}}
events: {asked:, woken:}
effects:
  once.pay: {adapter: stub, config: {answers: none.jsonl}}
  any.ask: {adapter: stub, config: {answers: none.jsonl}}
caps:
  once: {type: any, params: {kinds: [once.*]}, budget: {calls: 2, per: 1h}}
  any: {type: any, params: {kinds: [any.*]}}
policies:
  - {name: pay, when: 'intent.kind == "once.pay"', decide: allow}
  - {name: ask, when: 'intent.kind == "any.ask"', decide: require_approval}
routing: [{event: asked, reducer: slow, key: event.data.who}]
`,
		"none.jsonl": "",
		"slow.star": `def reduce(ctx, state, event):
    if event.name == "receipt":
        return (state or []) + [[event.data["status"], ctx.time]]
    if event.name == "woken":
        return (state or []) + [["woken", ctx.time]]
    if ctx.key == "timer":
        ctx.timer("20h", "woken")
    else:
        ctx.effect("any.ask" if ctx.key == "person" else "once.pay", {"of": ctx.key}, cap="any" if ctx.key == "person" else "once")
    return state
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l, err := local.Read(filepath.Join(dir, "world.yaml"), local.Options{})
	require.NoError(t, err)
	for _, text := range []string{
		"given: [{event: asked, data: {who: ada}}, {run: 1000000h}, {event: asked, data: {who: ben}}]\nanswers: [{effect: once.pay, reply: 1, always: true}]\nexpect: {cells: {slow/ada: [[ok, 1]], slow/ben: [[ok, 3600000001]]}}\nticks: 4",
		"given: [{event: asked, data: {who: timer}}, {run: 24h}]\nexpect: {cells: {slow/timer: [[woken, 72001]]}}\nticks: 3",
		"given: [{event: asked, data: {who: person}}, {run: 25h}]\nexpect: {cells: {slow/person: [[denied, 86401]]}}\nticks: 4",
		"given: [{event: asked, data: {who: ada}}, {event: asked, data: {who: ben}}, {event: asked, data: {who: eve}}, {run: 24h}]\nanswers: [{effect: once.pay, params: {of: ada}, after: 9h, reply: 1}, {effect: once.pay, times: 2, reply: 1}]\nexpect: {cells: {slow/ada: [[ok, 32401]], slow/ben: [[ok, 1]], slow/eve: [[ok, 3600]]}}\nticks: 6",
	} {
		all, err := scenario.Read("x.yaml", []byte(text))
		require.NoError(t, err)
		faults, err := scenario.Play(t.Context(), l, &all[0], local.Options{})
		require.NoError(t, err)
		require.Empty(t, faults, text)
	}
}

// Who interrupts a scenario need not wait for what it still has before it.
func TestInterruptedScenarioEnds(t *testing.T) {
	all, err := scenario.Read("x.yaml", []byte("given: [{run: 3}]"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = scenario.Play(ctx, loaded(t), &all[0], local.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// A world that goes on and on ends its scenario, within ticks or within one of them.
func TestEndlessWorldIsEnded(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"world.yaml": `world: hum
reducers: {hum: {engine: starlark, source: hum.star}}
events: {sung:}
routing: [{event: sung, reducer: hum, key: event.data.by}]
`,
		"hum.star": `def reduce(ctx, state, event):
    if ctx.key == "timer":
        ctx.timer(1, "again")
    else:
        ctx.emit("sung", {"by": ctx.key})
    return 1
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l, err := local.Read(filepath.Join(dir, "world.yaml"), local.Options{})
	require.NoError(t, err)
	for text, want := range map[string]string{
		"given: [{event: sung, data: {by: timer}}]\nticks: 50":              "within 50 ticks; ticks of the scenario allows more. hum/timer goes on, at last by timer again: ",
		"given: [{event: sung, data: {by: timer}}, {run: 1000}]\nticks: 50": "within 50 ticks; ticks of the scenario allows more. hum/timer",
		"given: [{event: sung, data: {by: timer}}, {run: 1000}]\nsteps: 20": "within 20 steps; steps of the scenario allows more. hum/timer",
		"given: [{event: sung, data: {by: echo}}]\nsteps: 500":              "within 500 steps; steps of the scenario allows more. hum/echo goes on, at last by event sung: ",
	} {
		all, err := scenario.Read("x.yaml", []byte(text))
		require.NoError(t, err)
		faults, err := scenario.Play(t.Context(), l, &all[0], local.Options{})
		require.NoError(t, err)
		require.Len(t, faults, 1)
		require.Contains(t, faults[0], want)
	}
}

func TestWhatIsNotAsExpectedIsNamed(t *testing.T) {
	const given = "given: [{event: paid, data: {who: ada, cents: 7}}]\nanswers: [{effect: card.charge, reply: {id: 1}}]\n"
	for text, want := range map[string]string{
		given + "expect: {cells: {desk/ada: {payload: {id: 2}}}}":                                                            `cell desk/ada: $.payload.id: want 2, not 1`,
		given + "expect: {cells: {desk/ada: {money: 2}}}":                                                                    `cell desk/ada: $.money: want 2, and it is not there`,
		given + "expect: {cells: {desk/ada: null}}":                                                                          `cell desk/ada: want no state, not {`,
		given + "expect: {events: [{event: told, data: {status: error}}]}":                                                   `event 1, told: there is none; nearest: $.status: want "error", not "ok"`,
		given + "expect: {events: [{event: told}, {event: told}]}":                                                           `event 2, told: there is none after those before`,
		given + "expect: {intents: [{effect: card.charge, state: failed}]}":                                                  `intent 1, card.charge: there is none; nearest: it is committed, not failed`,
		given + "expect: {denials: [{effect: card.charge}]}":                                                                 `denial 1, card.charge: there is none`,
		given + "expect: {events: [{event: sold}]}":                                                                          `the manifest declares no event "sold"`,
		"given: [{event: paid, data: {who: ada, cents: 7}}]":                                                                 `the scenario has no answer for cell desk/ada`,
		"given: [{event: paid, data: {who: ada, cents: 7}}]\nanswers: [{effect: card.charge, params: {cents: 8}, reply: 1}]": `answer 1 differs: $.cents: want 8, not 7`,
		given + "  # and one too many\n  \nticks: 5":                                                                         "",
		"given: []\nanswers: [{effect: card.charge, reply: 1, times: 2}]":                                                    `answer 1, to card.charge, was asked for 0 of 2 times`,
		"given: [{deny: card.chrage}]":                                                                                       `the manifest declares no effect "card.chrage"`,
		given + "expect: {cells: {dest/ada: null}}":                                                                          `cell dest/ada: the manifest declares no reducer "dest"`,
		given + "expect: {cells: {desk: null}}":                                                                              `"desk" is not a cell: want REDUCER/KEY`,
		given + "expect: {intents: [{effect: card.charge, cell: dest/ada}]}":                                                 `cell dest/ada: the manifest declares no reducer "dest"`,
		given + "expect: {events: [{event: told, to: dest/ada}]}":                                                            `cell dest/ada: the manifest declares no reducer "dest"`,
		"given: [{event: padi}]\nexpect: {events: [{event: tell}]}":                                                          `the manifest declares no event "tell": did you mean "told"?`,
		"given: [{event: paid, data: {who: ada}}]":                                                                           `a step failed: desk/ada: desk.star:8:`,
		"given: [{event: sold}]":                                                                                             `given, item 1: event: the manifest declares no such event`,
		"given: [{approve: card.charge}]":                                                                                    `given, item 1: card.charge: there is no such intent`,
		"given: [{event: paid, data: {who: ada, cents: 9000}}]\nexpect: {cells: {desk/ada: {status: ok}}}":                   `card.charge of desk/ada was denied: no_policy`,
	} {
		faults := plays(t, text)
		if want == "" {
			require.Empty(t, faults, text)
			continue
		}
		require.NotEmpty(t, faults, text)
		all := ""
		for _, f := range faults {
			all += f + "\n"
		}
		require.Contains(t, all, want)
	}
}

// TestTheCauseComesFirst: that a step failed, before all that is not there for it.
func TestTheCauseComesFirst(t *testing.T) {
	faults := plays(t, "given: [{event: paid, data: {who: ada}}]\nanswers: [{effect: card.charge, reply: 1}]\nexpect: {cells: {desk/ada: {status: ok}}, events: [{event: told}], intents: [{effect: card.charge}]}")
	require.Greater(t, len(faults), 3)
	require.Contains(t, faults[0], "a step failed: desk/ada: desk.star:8:")
	faults = plays(t, "given: [{event: paid, data: {who: ada, cents: 9000}}]\nexpect: {cells: {desk/ada: {status: ok}}}")
	require.Contains(t, faults[0], "card.charge of desk/ada was denied: no_policy")
}

func TestWhatIsNoScenario(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "holds no scenario",
		"scenaro: a":                  "field scenaro not found",
		"given: [{event: a, run: 1}]": "given, item 1: want one of event, run, approve and deny",
		"given: [{}]":                 "given, item 1: want one of",
		"answers: [{reply: 1}]":       "answers, item 1: want the kind of an effect",
		"answers: [{effect: a, reply: 1, says: b}]":     "want one of reply, error, and says or calls",
		"answers: [{effect: a, outcome: x}]":            "outcome is that of an error",
		"answers: [{effect: a, error: b, outcome: x}]":  `outcome "x" is none of`,
		"answers: [{effect: a, never: true, reply: 1}]": "what never comes has no answer",
		"answers: [{effect: a, reply: 1, after: soon}]": `x: line 1: want a number of ticks or a duration such as 2h, not "soon"`,
		"given: [{event: a, at: noon}]":                 `x: line 1: want a tick or a time such as 2026-12-24T18:00Z, not "noon"`,
		"given: [{event: a, at: 1, in: 2h}]":            "at or in is when an event falls due",
		"given: [{run: 1, in: 2h}]":                     "at or in is when an event falls due",
		"expect: {events: [{data: 1}]}":                 "expect, events, item 1: want the name of an event",
		"expect: {intents: [{effect: a}, {}]}":          "expect, intents, item 2: want the kind of an effect",
		"expect: {denials: [{code: x}]}":                "expect, denials, item 1: want the kind of an effect",
		"a: [":                                          "did not find expected",
		"given:\n\t- {event: a}":                        "x: line 2: a tab: YAML is indented with spaces",
		"just text":                                     "line 1: str `just text` does not fit here",
		"given: {a: 1}":                                 "does not fit here",
		"given:\n  - {run: -1}\n  - {run: x}":           "want a number of ticks or a duration",
	} {
		_, err := scenario.Read("x", []byte(text))
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "yaml: ")
	}
}
