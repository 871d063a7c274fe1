package scenario_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/scenario"
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

func TestWhatIsNoScenario(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "holds no scenario",
		"scenaro: a":                  "field scenaro not found",
		"given: [{event: a, run: 1}]": "given, item 1: want one of event, run, approve and deny",
		"given: [{}]":                 "given, item 1: want one of",
		"answers: [{reply: 1}]":       "answers, item 1: want the kind of an effect",
		"answers: [{effect: a, reply: 1, says: b}]": "want one of reply, error, and says or calls",
		"answers: [{effect: a, outcome: x}]":        "outcome is that of an error",
		"expect: {events: [{data: 1}]}":             "expect, events, item 1: want the name of an event",
		"expect: {intents: [{effect: a}, {}]}":      "expect, intents, item 2: want the kind of an effect",
		"expect: {denials: [{code: x}]}":            "expect, denials, item 1: want the kind of an effect",
		"a: [":                                      "did not find expected",
		"just text":                                 "line 1: str `just text` does not fit here",
		"given: {a: 1}":                             "does not fit here",
		"given:\n  - {run: -1}\n  - {run: x}":       "line 2: int `-1` does not fit here; line 3: str `x` does not fit here",
	} {
		_, err := scenario.Read("x", []byte(text))
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "yaml: ")
	}
}
