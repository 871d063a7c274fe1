package source

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// The text of a module that was released goes into manifests everywhere: whoever changes
// it changes what a proposal of the same files brings. It should be meant.
func TestModulesOfTheLibraryAreWhatTheyWere(t *testing.T) {
	for name, sum := range map[string]string{
		"@agent/v1":    "98f762fc57c39c93e0e54c44d92b83dc0733bb942695af29401c7f0e9f7d5aed",
		"@grid/v1":     "d71341d7b825c45653d075629bd6aae84ddfc0ce55d464ad6d05d0f63f1e5bed",
		"@network/v1":  "937a15e1407549160e461175ed6a7dc49a398527f379c44ad895424ac8b174b6",
		"@random/v1":   "f0eb2eb7bfc10281daaeaf1124c7b6dc3adef921556a36676e7c27a059d4dc53",
		"@schedule/v1": "84c37e3f4b3db119508ad3a772e24f7f6434209f0804ba79694ac2edd314a05e",
	} {
		text, err := libraryModule(name)
		require.NoError(t, err)
		require.Equal(t, sum, canon.Sum(text).String(), name)
	}
	_, err := libraryModule("@agent/v2")
	require.EqualError(t, err, `worldctl has no such module as "@agent/v2"; there are: @agent/v1, @grid/v1, @network/v1, @random/v1, @schedule/v1`)
	for _, name := range []string{"@", "@agent", "@../library/agent/v1", "@agent/v1.star"} {
		_, err = libraryModule(name)
		require.ErrorIs(t, err, errNoLibrary, name)
	}
}

func TestAModuleOfTheLibraryIsPartOfTheManifest(t *testing.T) {
	loaded, err := load(loadingFiles(map[string]string{
		"a.star": "load(\"@agent/v1\", \"agent\")\ndef reduce(ctx, state, event):\n    return agent(ctx, state, event)\n",
	}), "world.yaml")
	require.NoError(t, err)
	text, err := libraryModule("@agent/v1")
	require.NoError(t, err)
	require.Equal(t, text, loaded.Contents[loaded.Manifest.Reducers["a"].Modules["@agent/v1"]])
}

// TestOptionsOfAgentsNameWhatThereIs: in params and in code.
func TestOptionsOfAgentsNameWhatThereIs(t *testing.T) {
	try := func(params, call string) error {
		world := `world: a
reducers:
  helper: {engine: starlark, source: a.star, params: {` + params + `}}
events: {helper.asked: , helper.ended: }
effects:
  model.ask: {adapter: exec, config: {program: x}}
  note.write: {adapter: exec, config: {program: x}}
routing:
  - {event: helper.asked, reducer: helper, key: "'a'"}
`
		code := "load(\"@agent/v1\", \"agent\")\n\ndef reduce(ctx, state, event):\n    return agent(ctx, state, event" + call + ")\n"
		_, err := load(fstest.MapFS{"world.yaml": {Data: []byte(world)}, "a.star": {Data: []byte(code)}}, "world.yaml")
		return err
	}
	for _, x := range []struct{ params, call, want string }{
		{`tools: ["note.*"], model: model.ask, emits: helper.ended, asks: ""`, ", **ctx.params", ""},
		{`tools: [note.wirte]`, ", **ctx.params", `world.yaml:3:63: no effect matches the tool "note.wirte": did you mean "note.write"?`},
		{`tools: [note.wirte]`, "", ""}, // which nobody takes for options
		{`tools: ["note.*", "ntoe.*"]`, ", **ctx.params", `world.yaml:3:73: no effect matches the tool "ntoe.*"; declared: model.ask, note.write`},
		{`emits: helper.edned`, ", **ctx.params", `world.yaml:3:62: there is no event "helper.edned" for the agent to emit: did you mean "helper.ended"?`},
		{"", `, model = "model.aks"`, `a.star:4:45: there is no effect "model.aks" for the agent to ask: did you mean "model.ask"?`},
		{`tools: "note.*"`, ", **ctx.params", `world.yaml:3:62: agent of @agent/v1: tools: want a list, not the text "note.*": did you mean ["note.*"]?`},
		{`tools: [note.write, 3]`, ", **ctx.params", `world.yaml:3:55: agent of @agent/v1: tools: want the names of effects, and item 2 is 3`},
		{`tools: {note.write: }`, ", **ctx.params", `tools: want a list, not a mapping`},
		{`turns: "8"`, ", **ctx.params", `world.yaml:3:62: agent of @agent/v1: turns: want an integer, not the text "8": did you mean 8?`},
		{`turns: -1`, ", **ctx.params", `turns: want an integer from 0 on, not -1`},
		{`turns: 0`, ", **ctx.params", `turns: want an integer from 1 on, not 0: it would never ask its model`},
		{`turns: `, ", **ctx.params", `turns: want an integer, not nothing`},
		{`keep: yes`, ", **ctx.params", `keep: want an integer, not the text "yes"`},
		{`keep: true`, ", **ctx.params", `keep: want an integer, not true`},
		{`person: "yes"`, ", **ctx.params", `person: want true or false, not the text "yes": did you mean true?`},
		{`headers: 0`, ", **ctx.params", `headers: want true or false, not 0: did you mean false?`},
		{`model: [model.ask]`, ", **ctx.params", `model: want text, not a list: did you mean "model.ask"?`},
		{`system: 5`, ", **ctx.params", `system: want text, not 5: did you mean "5"?`},
		{`request: [temperature]`, ", **ctx.params", `request: want a mapping, not a list`},
		{`finished: done`, ", **ctx.params", `finished: want a function, which code can give, not the text "done"`},
		{`keep: , tokens: , asks: , person: , prompt: `, ", **ctx.params", ""}, // nothing, which is not asked for
		{`turns: "8"`, "", ""}, // which nobody takes for options
		{"", `, tools = "note.*"`, `a.star:4:45: agent of @agent/v1: tools: want a list, not the text "note.*": did you mean ["note.*"]?`},
		{"", `, turns = -1`, `a.star:4:45: agent of @agent/v1: turns: want an integer from 0 on, not -1`},
		{"", `, keep = True, turns = (8)`, `a.star:4:44: agent of @agent/v1: keep: want an integer, not true`},
		{"", `, turns = 4 + 4, tools = [t for t in []], finished = reduce, request = {"n": 1}, shorten = None`, ""},
		{"", `, tools = ["note.wirte"]`, `a.star:4:46: no effect matches the tool "note.wirte": did you mean "note.write"?`},
	} {
		err := try(x.params, x.call)
		if x.want == "" {
			require.NoError(t, err, x)
			continue
		}
		require.ErrorContains(t, err, x.want)
	}
}

// Of other modules of the library, too.
func TestOptionsOfModulesHaveTheirTypes(t *testing.T) {
	try := func(params, module, call string) error {
		world := "world: a\nreducers:\n  a: {engine: starlark, source: a.star, params: {" + params + "}}\nevents: {go: }\nrouting:\n  - {event: go, reducer: a, key: \"'a'\"}\n"
		code := "load(\"@" + module + "/v1\", f = \"" + call + ")\n"
		_, err := load(fstest.MapFS{"world.yaml": {Data: []byte(world)}, "a.star": {Data: []byte(code)}}, "world.yaml")
		return err
	}
	const reduce = "\n\ndef reduce(ctx, state, event):\n    f("
	require.NoError(t, try("", "grid", `grid")`+reduce+`3, 3, torus = False`))
	require.ErrorContains(t, try("", "grid", `grid")`+reduce+`3, 3, torus = "no"`), `a.star:4:21: grid of @grid/v1: torus: want true or false, not the text "no": did you mean false?`)
	require.ErrorContains(t, try("radius: 1.5", "grid", `moore")`+reduce+`{}, 1, 1, **ctx.params`), `radius: want an integer, not 1.5`)
	require.NoError(t, try("", "random", `uniform")`+reduce+`ctx, high = 4`))
	require.NoError(t, try("", "schedule", `every")`+reduce+`ctx, 1, "go", data = 3`))
	require.ErrorContains(t, try("", "random", `normal")`+reduce+`ctx, sd = "1"`), `normal of @random/v1: sd: want a number, not the text "1": did you mean 1?`)
}

// A name that a module does not define is a fault: no step of such a program begins.
func TestWhatIsLoadedHasToBeDefined(t *testing.T) {
	try := func(code, lib string) error {
		world := "world: a\nreducers:\n  a: {engine: starlark, source: a.star}\nevents: {go: }\nrouting:\n  - {event: go, reducer: a, key: \"'a'\"}\n"
		files := fstest.MapFS{"world.yaml": {Data: []byte(world)}, "a.star": {Data: []byte(code + "\ndef reduce(ctx, state, event):\n    return state\n")}, "lib.star": {Data: []byte(lib)}}
		_, err := load(files, "world.yaml")
		return err
	}
	const lib = "def one(x):\n    return x\n\nTWO = 2\nTHREE, (FOUR, five) = 3, (4, 5)\n_six = 6\n"
	require.NoError(t, try(`load("lib.star", "one", "TWO", "FOUR", t = "THREE", five = "five")`, lib))
	require.NoError(t, try(`load("@agent/v1", "agent", "keep_last")`, lib))
	require.ErrorContains(t, try(`load("@agent/v1", "agnt")`, lib), `a.star:1:20: the module "@agent/v1" defines no "agnt": did you mean "agent"?`)
	require.ErrorContains(t, try(`load("lib.star", "one", two = "TW")`, lib), `the module "lib.star" defines no "TW": did you mean "TWO"?`)
	require.ErrorContains(t, try(`load("lib.star", "one")`, "load(\"@grid/v1\", \"gird\")\n"+lib), `lib.star:1:19: the module "@grid/v1" defines no "gird": did you mean "grid"?`)
}
