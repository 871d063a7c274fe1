package source

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/kit"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// steps returns a reducer of a text, which loads modules of the library.
func steps(t *testing.T, text string) reducer.Reducer {
	t.Helper()
	code := reducer.Code{File: "main.star", Source: []byte(text), Modules: make(map[string][]byte)}
	for left := [][]byte{code.Source}; len(left) > 0; left = left[1:] {
		loads, err := star.Engine{}.Loads("a file", left[0])
		require.NoError(t, err)
		for _, l := range loads {
			if code.Modules[l.Module] == nil {
				code.Modules[l.Module], err = libraryModule(l.Module)
				require.NoError(t, err)
				left = append(left, code.Modules[l.Module])
			}
		}
	}
	p, err := star.Engine{}.Compile(star.Version, code)
	require.NoError(t, err)
	r, _, err := p.Start(reducer.Setting{}, nil)
	require.NoError(t, err)
	return r
}

// take takes a step of agent/ann.
func take(r reducer.Reducer, n uint64) (reducer.Output, error) {
	cell := reducer.Cell{Reducer: "agent", Key: "ann"}
	var out reducer.Output
	err := r.Reduce(&reducer.Input{
		Cell: cell, Step: n, Event: reducer.Event{Name: "go"}, Time: 10,
		Limits: manifest.ReducerLimits{Gas: 10_000_000}.WithDefaults(), Seed: reducer.Seed{World: 42, Cell: cell, Step: n},
	}, &out)
	return out, err
}

// returned is the state that a program's reduce comes to, whose text follows what it loads.
func returned(t *testing.T, load, body string) string {
	t.Helper()
	out, err := take(steps(t, load+"\ndef reduce(ctx, state, event):\n"+body), 3)
	require.NoError(t, err)
	text, err := canon.ToJSON(out.State)
	require.NoError(t, err)
	return string(text)
}

const drawing = `
load("@network/v1", "edges", "random_graph", "scale_free", "small_world")
load("@random/v1", "chance", "choice", "exponential", "geometric", "integer", "normal", "sample", "shuffle", "stream", "uniform", "unit", "weighted_choice")

def draws(s):
    return {
        "units": [unit(s) for _ in range(8)],
        "uniforms": [uniform(s, -3.0, 7.5) for _ in range(8)],
        "integers": [integer(s, -7, 13) for _ in range(8)],
        "chances": [chance(s, 0.3) for _ in range(16)],
        "normals": [normal(s, 10.0, 2.5) for _ in range(500)],
        "exponentials": [exponential(s, 4.0) for _ in range(500)],
        "geometrics": [geometric(s, 0.05) for _ in range(16)],
        "choices": [choice(s, ["a", "b", "c", "d", "e"]) for _ in range(8)],
        "weighted": [weighted_choice(s, [0, 1, 2, 3], [1, 0, 5, 94]) for _ in range(16)],
        "weighted_floats": [weighted_choice(s, [0, 1, 2, 3], [0.5, 0.0, 0.125, 2.75]) for _ in range(16)],
        "shuffle": shuffle(s, list(range(20))),
        "sample": sample(s, list(range(20)), 5),
        "small_world": edges(small_world(s, 20, 4, 0.3)),
        "random_graph": edges(random_graph(s, 15, 0.3)),
        "scale_free": edges(scale_free(s, 20, 2)),
    }
`

// TestTheModulesDrawWhatASecondImplementationDraws holds them to the vectors of reducer/kit.
func TestTheModulesDrawWhatASecondImplementationDraws(t *testing.T) {
	var want map[string]json.RawMessage
	text, err := os.ReadFile("../../reducer/kit/testdata/vectors.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &want))
	require.Equal(t, floats(t, want["ctx"]), floats(t, []byte(returned(t, drawing, "    return draws(ctx)\n"))))
	require.Equal(t, floats(t, want["stream"]), floats(t, []byte(returned(t, drawing, "    return draws(stream(-7))\n"))))
}

// floats parses JSON, of which floats keep each bit.
func floats(t *testing.T, text []byte) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, &v))
	return v
}

// TestTheModulesAreTheKit draws and looks around in both, far from what the vectors have.
func TestTheModulesAreTheKit(t *testing.T) {
	s := kit.NewStream(5)
	normals, exponentials := make([]any, 3000), make([]any, 3000)
	for i := range normals {
		normals[i], exponentials[i] = kit.Normal(s, 0, 1), kit.Exponential(s, 1)
	}
	text, err := json.Marshal([]any{normals, exponentials})
	require.NoError(t, err)
	require.Equal(t, floats(t, text), floats(t, []byte(returned(t, `load("@random/v1", "exponential", "normal", "stream")`, `
    s, normals, exponentials = stream(5), [], []
    for _ in range(3000):
        normals.append(normal(s))
        exponentials.append(exponential(s))
    return [normals, exponentials]
`))))

	var all []any
	for _, torus := range []bool{true, false} {
		for _, size := range [][2]int{{1, 1}, {2, 3}, {3, 4}, {5, 7}} {
			g := kit.Grid{Width: size[0], Height: size[1], Torus: torus}
			for i := range g.Width * g.Height {
				p := g.Place(i)
				for radius := range 4 {
					all = append(all, places(g.Moore(p, radius)), places(g.VonNeumann(p, radius)))
				}
				for j := range g.Width * g.Height {
					dx, dy := g.Offset(p, g.Place(j))
					all = append(all, g.Index(p), []int{dx, dy}, places([]kit.Place{g.Move(p, dx, dy), g.Move(p, j-7, 9-j)}))
				}
			}
		}
	}
	text, err = json.Marshal(all)
	require.NoError(t, err)
	require.JSONEq(t, string(text), returned(t, `load("@grid/v1", "grid", "index", "moore", "move", "offset", "place", "von_neumann")`, `
    all = []
    for torus in (True, False):
        for width, height in ((1, 1), (2, 3), (3, 4), (5, 7)):
            g = grid(width, height, torus)
            for i in range(width * height):
                x, y = place(g, i)
                for radius in range(4):
                    all.extend([moore(g, x, y, radius), von_neumann(g, x, y, radius)])
                for j in range(width * height):
                    dx, dy = offset(g, x, y, *place(g, j))
                    all.extend([index(g, x, y), (dx, dy), [move(g, x, y, dx, dy), move(g, x, y, j - 7, 9 - j)]])
    return all
`))
}

func places(of []kit.Place) [][2]int {
	out := make([][2]int, len(of))
	for i, p := range of {
		out[i] = [2]int{p.X, p.Y}
	}
	return out
}

// TestTheModulesScheduleAsTheKit compares the timers that both set.
func TestTheModulesScheduleAsTheKit(t *testing.T) {
	module := steps(t, `load("@schedule/v1", "at", "every", "sometime", "stages")
def reduce(ctx, state, event):
    every(ctx, 3, "tick", {"n": 1})
    at(ctx, 17, "end")
    sometime(ctx, 0.01, "birth", 7)
    stages(ctx, "eat", ["move", "eat", "rest"])
    stages(ctx, "rest", ["move", "eat", "rest"], 2)
    return 1
`)
	program := reducer.Typed(1, func(ctx *reducer.Context, _ int, _ reducer.Event) (int, error) {
		kit.Every(ctx, 3, "tick", map[string]int{"n": 1})
		require.NoError(t, kit.At(ctx, 17, "end", nil))
		kit.Sometime(ctx, 0.01, "birth", 7)
		require.NoError(t, kit.Stages(ctx, "eat", []string{"move", "eat", "rest"}, 1))
		require.NoError(t, kit.Stages(ctx, "rest", []string{"move", "eat", "rest"}, 2))
		require.Error(t, kit.At(ctx, 10, "end", nil))
		require.Error(t, kit.Stages(ctx, "sleep", []string{"move"}, 2))
		return 1, nil
	})()
	for n := range uint64(20) {
		a, err := take(module, n)
		require.NoError(t, err)
		b, err := take(program, n)
		require.NoError(t, err)
		require.Equal(t, b.Timers, a.Timers)
	}
}

// TestWhatTheModulesRefuse fails the step, and says where and why.
func TestWhatTheModulesRefuse(t *testing.T) {
	for call, want := range map[string]string{
		`choice(ctx, [])`:                           "random: n is 0",
		`integer(ctx, 3, 2)`:                        "random: n is 0",
		`integer(stream(1), 3, 2)`:                  "random: n is 0",
		`weighted_choice(ctx, [1], [1, 2])`:         "1 items have 2 weights",
		`weighted_choice(ctx, [1, 2], [2, -1])`:     "a weight is -1",
		`weighted_choice(ctx, [1, 2], [0, 0.0])`:    "no weight is above 0",
		`weighted_choice(ctx, [], [])`:              "no weight is above 0",
		`sample(ctx, [1, 2], 3)`:                    "sample: 3 of 2 items",
		`geometric(ctx, 0)`:                         "geometric: p is 0",
		`uniform(ctx, 2.0, 1.0)`:                    "uniform: want low <= high",
		`uniform(ctx, float("nan"), 1.0)`:           "uniform: want low <= high",
		`uniform(ctx, 0, float("inf"))`:             "uniform: want low <= high",
		`uniform(ctx, -1.7e308, 1.7e308)`:           "a width that a float holds",
		`uniform(ctx, float("inf"), float("inf"))`:  "a width that a float holds",
		`normal(ctx, 0.0, -1.0)`:                    "normal: want a finite mean and an sd from 0 on",
		`normal(ctx, 0.0, float("nan"))`:            "normal: want",
		`normal(ctx, 0.0, float("inf"))`:            "normal: want",
		`normal(ctx, float("-inf"), 1)`:             "normal: want",
		`exponential(ctx, -1.0)`:                    "exponential: want a finite mean from 0 on: mean is -1",
		`exponential(ctx, float("nan"))`:            "exponential: want",
		`exponential(ctx, float("inf"))`:            "exponential: want",
		`ring(5, 3)`:                                "a ring of 5 nodes with 3 neighbours each",
		`ring(4, 4)`:                                "a ring of 4 nodes with 4 neighbours each",
		`scale_free(ctx, 2, 2)`:                     "2 nodes with 2 links each",
		`grid(0, 3)`:                                "a grid of 0 by 3 places",
		`at(ctx, 10, "end")`:                        "tick 10 is not after 10",
		`stages(ctx, "sleep", ["move"])`:            "value not in list",
		`sometime(ctx, 0.0, "end")`:                 "geometric: p is 0.0",
		`integer(SHARED, 1, 6)`:                     "frozen list",
		`weighted_choice(ctx, [1], [float("inf")])`: "the weights come to +inf",
	} {
		_, err := take(steps(t, `
load("@grid/v1", "grid")
load("@network/v1", "ring", "scale_free")
load("@random/v1", "choice", "exponential", "geometric", "integer", "normal", "sample", "stream", "uniform", "weighted_choice")
load("@schedule/v1", "at", "sometime", "stages")
SHARED = stream(1)
def reduce(ctx, state, event):
    return `+call+"\n"), 1)
		require.ErrorContains(t, err, want, call)
	}
}

// TestModelsDocNamesEveryFunction holds docs/models.md to the modules: each function that can
// be loaded is there, with its parameters.
func TestModelsDocNamesEveryFunction(t *testing.T) {
	doc, err := os.ReadFile("../../docs/models.md")
	require.NoError(t, err)
	function := regexp.MustCompile(`(?m)^def ([a-z].*):$`)
	for _, name := range []string{"random", "grid", "network", "schedule"} {
		text, err := libraryModule("@" + name + "/v1")
		require.NoError(t, err)
		found := function.FindAllSubmatch(text, -1)
		require.NotEmpty(t, found)
		for _, f := range found {
			require.Contains(t, string(doc), "`"+string(f[1])+"`", name)
		}
	}
}
