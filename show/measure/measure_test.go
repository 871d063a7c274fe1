package measure_test

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/measure"
	"github.com/worldkernel/worldkernel/world/source"
)

// given are cells for a test: names, and states as JSON.
type given struct {
	names  []string
	states []journal.Data
	unread error
}

func cellsOf(t testing.TB, pairs ...string) *given {
	t.Helper()
	g := new(given)
	for i := 0; i < len(pairs); i += 2 {
		data, err := canon.FromJSON([]byte(pairs[i+1]))
		require.NoError(t, err)
		g.names, g.states = append(g.names, pairs[i]), append(g.states, data)
	}
	return g
}

func (g *given) States() iter.Seq2[string, journal.Data] {
	return func(yield func(string, journal.Data) bool) {
		for i, name := range g.names {
			if !yield(name, g.states[i]) {
				return
			}
		}
	}
}

// SortedStates is not in the order of States.
func (g *given) SortedStates() iter.Seq2[string, journal.Data] {
	return func(yield func(string, journal.Data) bool) {
		sorted := slices.Clone(g.names)
		slices.Sort(sorted)
		for _, name := range sorted {
			if !yield(name, g.states[slices.Index(g.names, name)]) {
				return
			}
		}
	}
}

func (g *given) Unread() error { return g.unread }

func parse(t testing.TB, text string) ([]measure.Spec, error) {
	t.Helper()
	doc, err := source.NewDocument("m.yaml", "measures", []byte(text))
	require.NoError(t, err)
	specs := measure.Decode(doc, doc.Root())
	return specs, doc.Err()
}

func compile(t testing.TB, text string) *measure.Set {
	t.Helper()
	specs, err := parse(t, text)
	require.NoError(t, err)
	set, err := measure.Compile(specs, measure.Env{})
	require.NoError(t, err)
	return set
}

// asMap returns a row by the names of its columns.
func asMap(set *measure.Set, row measure.Row) map[string]any {
	out := make(map[string]any)
	for i, c := range set.Columns() {
		out[c.Name] = row[i]
	}
	return out
}

const agents = `
infected: {cells: agent, where: 'state.status == "I"', count: true}
wealth: {cells: agent, value: state.coins, take: [count, sum, mean, min, max, median, p90, variance, sd, gini]}
mean: {cells: agent, value: state.coins, take: mean}
status: {cells: agent, value: state.status, count: [S, I, R]}
coins: {cells: agent, value: state.coins, hist: {from: 0, to: 4, bins: 2}}
price: {cell: market/main, value: state.price}
open: {cell: market/main, value: state.open, type: bool}
share: infected / 4
rich: {expr: 'wealth.mean * 2 > price || tick > 100'}
all: {cells: [agent, market]}
shut: {cells: market, where: '!state.open'}
happy: {cells: agent, where: state.coins != null, value: state.coins > 1, take: mean}
`

func TestMeasuresOfCells(t *testing.T) {
	set := compile(t, agents)
	row, err := set.Eval(cellsOf(t,
		"agent/a", `{"status": "I", "coins": 1}`,
		"agent/b", `{"status": "S", "coins": 2}`,
		"agent/c", `{"status": "I", "coins": 3.5}`,
		"agent/d", `{"status": "X", "coins": null}`,
		"market/main", `{"price": 5, "open": true}`,
		"bank/x", `3`,
	), 7)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"infected":     int64(2),
		"wealth.count": int64(3), "wealth.sum": 6.5, "wealth.mean": 6.5 / 3, "wealth.min": 1.0, "wealth.max": 3.5,
		"wealth.median": 2.0, "wealth.p90": 3.2, "wealth.variance": 1.5833333333333333, "wealth.sd": math.Sqrt(1.5833333333333333),
		"wealth.gini": 0.2564102564102564,
		"mean":        6.5 / 3,
		"status.S":    int64(1), "status.I": int64(2), "status.R": int64(0),
		"coins.below": int64(0), "coins.b0": int64(1), "coins.b1": int64(2), "coins.above": int64(0),
		"price": 5.0, "open": true, "share": 0.5, "rich": false,
		"all": int64(5), "shut": int64(0), "happy": 2.0 / 3,
	}, asMap(set, row))
}

func TestMeasuresOfNoCells(t *testing.T) {
	set := compile(t, agents)
	for range 2 { // the second in the memory of the first
		row, err := set.Eval(cellsOf(t), 0)
		require.NoError(t, err)
		require.Equal(t, map[string]any{
			"infected":     int64(0),
			"wealth.count": int64(0), "wealth.sum": 0.0, "wealth.mean": nil, "wealth.min": nil, "wealth.max": nil,
			"wealth.median": nil, "wealth.p90": nil, "wealth.variance": nil, "wealth.sd": nil, "wealth.gini": nil,
			"mean":     nil,
			"status.S": int64(0), "status.I": int64(0), "status.R": int64(0),
			"coins.below": int64(0), "coins.b0": int64(0), "coins.b1": int64(0), "coins.above": int64(0),
			"price": nil, "open": nil, "share": 0.0, "rich": nil,
			"all": int64(0), "shut": int64(0), "happy": nil,
		}, asMap(set, row))
	}
}

func TestColumnsSayWhatTheyAre(t *testing.T) {
	var lines []string
	for _, c := range compile(t, agents).Columns() {
		lines = append(lines, fmt.Sprintf("%s %s: %s", c.Name, c.Type, c.Doc))
	}
	require.Equal(t, []string{
		`infected int: how many cells, of agent, where state.status == "I"`,
		`wealth.count int: count of state.coins, of agent`,
		`wealth.sum float: sum of state.coins, of agent`,
	}, lines[:3])
	require.Contains(t, lines, "coins.b1 int: how many times 2 <= state.coins < 4, of agent")
	require.Contains(t, lines, "price float: state.price of the cell market/main")
	require.Contains(t, lines, "rich bool: wealth.mean * 2 > price || tick > 100")
}

// What failed is said of the first cell by name, in whatever order the cells come.
func TestFailedMeasureNamesItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		`m: {cells: agent, value: state.lost, take: mean}`:        "measure m: state.lost, of cell agent/a, at tick 900: no such key: lost",
		`m: {cells: agent, value: state.name, take: mean}`:        "measure m: state.name, of cell agent/a, at tick 900: it gives no number",
		`m: {cells: agent, where: state.coins}`:                   "measure m: state.coins, of cell agent/a, at tick 900: it gives no boolean",
		`m: {cells: agent, value: state.coins / 0.0, take: mean}`: "measure m: state.coins / 0.0, of cell agent/a, at tick 900: it gives no finite number",
		`m: {cells: agent, value: 0 - state.coins, take: gini}`:   "measure m: 0 - state.coins, at tick 900: gini: a Gini coefficient is of values from 0 on",
		`m: {cells: agent, value: '1e308', take: sum}`:            "measure m: 1e308, at tick 900: sum: it is too large for a float",
		`m: {cell: agent/b, value: state.name}`:                   "measure m: state.name, of cell agent/b, at tick 900: it gives string, and the column is of type float: say type: string",
		"n: {cells: agent}\nm: n / 0":                             "measure m: n / 0, at tick 900: it gives no finite number",
	} {
		set := compile(t, text)
		cells := cellsOf(t, "agent/b", `{"coins": 1, "name": "b"}`, "agent/a", `{"coins": 2, "name": "a"}`, "agent/c", `{"coins": 2, "name": "c"}`)
		_, err := set.Eval(cells, 900)
		var fault *measure.Error
		require.ErrorAs(t, err, &fault, text)
		require.EqualError(t, err, want)
		require.Equal(t, manifest.Tick(900), fault.Tick)
	}
	broken := errors.New("broken")
	_, err := compile(t, `m: {cells: agent}`).Eval(&given{unread: broken}, 3)
	require.ErrorIs(t, err, broken)
}

// TestCountsAreOfWhatValuesStandFor: a state has 1.0 as easily as 1. Nothing else is counted, or
// remembered.
func TestCountsAreOfWhatValuesStandFor(t *testing.T) {
	set := compile(t, `m: {cells: x, value: state, count: [0, 1, true, one]}`)
	many := func() *given {
		var g given
		for i := range 1000 {
			data, err := canon.Marshal(fmt.Sprintf("a text of some length, which is no other one's: %d", i))
			require.NoError(t, err)
			g.names, g.states = append(g.names, fmt.Sprintf("x/%d", i)), append(g.states, data)
		}
		return &g
	}()
	for range 2 {
		row, err := set.Eval(cellsOf(t, "x/a", "1", "x/b", "1.0", "x/c", "-0.0", "x/d", "1.5", "x/e", "true", "x/f", `"one"`, "x/g", "1e300", "x/h", "null"), 0)
		require.NoError(t, err)
		require.Equal(t, measure.Row{int64(1), int64(2), int64(1), int64(1)}, row)
	}
	row, err := set.Eval(many, 0)
	require.NoError(t, err)
	require.Equal(t, measure.Row{int64(0), int64(0), int64(0), int64(0)}, row)
	before, after := new(runtime.MemStats), new(runtime.MemStats)
	fresh := compile(t, `m: {cells: x, value: state, count: [0, 1, true, one]}`)
	runtime.ReadMemStats(before)
	_, err = fresh.Eval(many, 0)
	runtime.ReadMemStats(after)
	require.NoError(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(180*1000), "a text and its box each, and no table of them")
}

func TestValuesInMemoryAreBounded(t *testing.T) {
	specs, err := parse(t, `m: {cells: agent, value: state, take: [mean, p50]}`)
	require.NoError(t, err)
	set, err := measure.Compile(specs, measure.Env{Limits: measure.Limits{Values: 2}})
	require.NoError(t, err)
	cells := cellsOf(t, "agent/a", `1`, "agent/b", `2`)
	_, err = set.Eval(cells, 1)
	require.NoError(t, err)
	_, err = set.Eval(cellsOf(t, "agent/a", `1`, "agent/b", `2`, "agent/c", `3`), 1)
	require.ErrorContains(t, err, "have more than 2 values in memory: raise limits.values")

	specs, err = parse(t, "m: {cells: x, value: state, take: p50}\nn: {cells: x, where: state > 1, value: state, take: gini}")
	require.NoError(t, err)
	set, err = measure.Compile(specs, measure.Env{Limits: measure.Limits{Values: 2}})
	require.NoError(t, err)
	for _, order := range [][]string{{"x/a", "1", "x/b", "2", "x/c", "3"}, {"x/c", "3", "x/b", "2", "x/a", "1"}} {
		_, err = set.Eval(cellsOf(t, order...), 1)
		require.EqualError(t, err, "measure m: state, at tick 1: limit exceeded: percentiles and Gini coefficients have more than 2 values in memory: raise limits.values",
			"of no cell: which is the third nobody can tell")
	}
	_, err = set.Eval(cellsOf(t, "x/a", "1", "x/b", "1"), 1)
	require.NoError(t, err)
}

func TestDocumentsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                             "1:1: want a mapping, not a list",
		`{}`:                             "1:1: holds no measure: NAME: {cells: REDUCER}",
		`{a-b: {cells: x}}`:              "1:2: measure a-b: a name is of letters, digits and _, at most 64, and begins with no digit",
		`{state: {cells: x}}`:            "1:2: measure state: state is a word of expressions: want another name",
		`{a: {cells: x}, a: {cells: x}}`: `1:17: duplicate key "a", first on line 1`,
		`{a: {}}`:                        "1:5: measure a: want cells, cell, expr or star",
		`{a: {cell: x, value: state}}`:   `1:5: measure a: "x" is not a cell: want REDUCER/KEY`,
		`{a: {cell: x/y}}`:               "1:5: measure a: cell is one cell: say its value, such as value: state.price",
		`{a: {cells: x, where: "true", expr: b}}`:                           "1:5: measure a: expr is over other measures: it has no cells, where, value, take, count or hist",
		`{a: {cells: x, take: mean}}`:                                       "1:5: measure a: take, count and hist are of a value: value: state.FIELD",
		`{a: {cells: x, value: state}}`:                                     "1:5: measure a: say what is taken of the value: take: mean, count: [VALUE], or hist: {from: 0, to: 100, bins: 10}",
		`{a: {cells: x, value: state, take: avg}}`:                          `1:36: measure a: "avg" is no statistic: want one of count, gini, max, mean, median, min, sd, sum, variance, p0 to p100`,
		`{a: {cells: x, value: state, take: hist}}`:                         "1:36: measure a: a histogram has a key of its own: hist: {from: 0, to: 100, bins: 10}",
		`{a: {cells: x, value: state, take: [p5, p5]}}`:                     "1:41: measure a: p5 is there already",
		`{a: {cells: x, value: state, take: p101}}`:                         `1:36: measure a: "p101" is no statistic: want one of count, gini, max, mean, median, min, sd, sum, variance, p0 to p100`,
		`{a: {cells: x, valeu: state}}`:                                     `1:16: unknown key "valeu": did you mean "value"?`,
		`{a: {cells: x, value: state, hist: {from: 1, to: 1, bins: 3}}}`:    "1:36: measure a: want from below to",
		`{a: {cells: x, value: state, hist: {from: 1, to: 2, bins: 1001}}}`: "1:36: measure a: want 1 to 1000 bins",
		`{a: {cells: x, value: state, hist: {from: .nan, to: 2, bins: 3}}}`: "1:43: measure a: want a number",
		`{a: {cells: x, value: state, count: [a, a]}}`:                      "1:41: measure a: a is there already",
		`{a: {cells: x, value: state, count: [1.5]}}`:                       "1:38: measure a: want values that are integers, booleans, or texts of letters, digits, _ and -, at most 64",
		`{a: {cell: x/y, value: state, type: text}}`:                        "1:37: measure a: want int, float, bool or string",
		`{a: {cells: x, type: int}}`:                                        "1:5: measure a: type is that of expr, of the value of one cell, or of what a program gives",
		`{a: ""}`:                                                           "1:5: measure a: want text",
	} {
		_, err := parse(t, text)
		var faults *source.Error
		require.ErrorAs(t, err, &faults, text)
		require.Equal(t, want, strings.TrimPrefix(faults.Faults[0].String(), "m.yaml:"), text)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "1:1: is empty: want measures: {NAME: {cells: REDUCER}}",
		"a: b: c":                              "1:5: is not YAML: ",
		"measures: {a: {cells: x}}\n---\n":     "2:1: a second document: want only one",
		"measures: {a: {cells: x}}\nlimit: {}": `2:1: unknown key "limit": did you mean "limits"?`,
		"at: end":                              "1:1: measures: want at least one: NAME: {cells: REDUCER}",
		"experiment: 1\nmeasures: {a: {}}\nseeds: 5": "2:15: measure a: want cells, cell, expr or star",
	} {
		_, err := measure.Parse("m.yaml", []byte(text))
		require.ErrorAs(t, err, new(*source.Error), text)
		require.True(t, strings.HasPrefix(err.Error(), "m.yaml:"+want), "%s\n%s", want, err)
		require.NotContains(t, err.Error(), " yaml:")
	}
	doc, err := measure.Parse("m.yaml", []byte("experiment: 1\nmeasures: {a: {cells: x}}\nseeds: 5\nat: end"))
	require.NoError(t, err)
	require.True(t, doc.At.End)
}

func TestMeasuresThatDoNotCompile(t *testing.T) {
	for text, want := range map[string]string{
		`{a: {cells: agnet}}`:                                            `1:2: measure a: the world has no reducer "agnet": did you mean "agent"?`,
		`{a: {cells: other}}`:                                            `1:2: measure a: the world has no reducer "other"; declared: agent, market`,
		`{a: {cell: mark/x, value: state}}`:                              `1:2: measure a: the world has no reducer "mark": did you mean "market"?`,
		`{a: {cells: agent, where: state.x ==}}`:                         `1:2: measure a: where: state.x ==, at 1:11: the expression ends in the middle`,
		`{a: {cells: agent, where: lost}}`:                               `1:2: measure a: where: lost, at 1:1: undeclared reference to 'lost'`,
		`{a: {cells: agent, where: "1 + 1"}}`:                            `1:2: measure a: where: 1 + 1 is no condition`,
		`{a: {cells: agent, value: cell.key, take: mean}}`:               `1:2: measure a: value: cell.key is no number`,
		`{a: b, b: {cells: agent}}`:                                      `1:2: measure a: expr: b, at 1:1: undeclared reference to 'b'`,
		`{a: {cells: agent}, b: "a + 'x'"}`:                              `1:21: measure b: expr: a + 'x', at 1:3: + does not take (double, string)`,
		`{a: {cells: agent, value: state, take: [mean], count: [mean]}}`: `1:2: measure a: the column a.mean is there twice`,
	} {
		specs, err := parse(t, text)
		require.NoError(t, err, text)
		_, err = measure.Compile(specs, measure.Env{Reducers: []string{"agent", "market"}})
		var all *measure.DocumentError
		require.ErrorAs(t, err, &all, text)
		require.True(t, strings.HasPrefix(err.Error(), want), "%s\n%s", want, err)
	}
}

const segregation = `
def measure(cells, tick):
    kinds = {}
    for c in cells:
        kinds[c.state["kind"]] = kinds.get(c.state["kind"], 0) + 1
    return {"kinds": len(kinds), "most": max(kinds.values()) / sum(kinds.values()), "first": sorted(kinds)[0]}

def sum(of):
    n = 0
    for x in of:
        n += x
    return n
`

func TestProgramsMeasure(t *testing.T) {
	files := map[string]string{
		"s.star": segregation, "one.star": "def measure(cells, tick):\n    return len(list(cells)) + tick", "bad.star": "def measure(cells): pass",
		"fails.star": "def measure(cells, tick):\n    for c in cells:\n        if c.key == 'b':\n            fail('no b')",
		"long.star":  "def measure(cells, tick):\n    while True: pass", "list.star": "def measure(cells, tick): return []", "none.star": "def measure(cells, tick): return None",
	}
	compiled := func(text string, limits measure.Limits) (*measure.Set, error) {
		specs, err := parse(t, text)
		require.NoError(t, err)
		return measure.Compile(specs, measure.Env{Limits: limits, Code: func(file string) (reducer.Code, error) {
			return reducer.Code{File: file, Source: []byte(files[file])}, nil
		}})
	}
	cells := cellsOf(t, "agent/b", `{"kind": "x"}`, "agent/a", `{"kind": "y"}`, "bank/a", `1`, "agent/c", `{"kind": "y"}`)
	set, err := compiled(`{s: {star: s.star, cells: agent, gives: {most: float, kinds: int, first: string, other: bool}}, n: {star: one.star, type: int}, share: s.most * 100, none: {star: none.star, gives: {a: int, b: string}}, nil: {star: none.star}}`, measure.Limits{})
	require.NoError(t, err)
	for range 2 {
		row, err := set.Eval(cells, 7)
		require.NoError(t, err)
		require.Equal(t, map[string]any{
			"s.most": 2.0 / 3, "s.kinds": int64(2), "s.first": "x", "s.other": nil, "n": int64(11), "share": 66.66666666666666, "none.a": nil, "none.b": nil, "nil": nil,
		}, asMap(set, row))
	}
	for text, want := range map[string]string{
		`m: {star: fails.star}`:                 "measure m, at tick 7: fails.star:4:17: no b",
		`m: {star: long.star}`:                  "measure m, at tick 7: long.star:1:1: limit exceeded: limits.gas is 5000 steps",
		`m: {star: list.star}`:                  "measure m, at tick 7: it gives no number, boolean or text: say what it gives: gives: {FIELD: float}",
		`m: {star: list.star, gives: {a: int}}`: "measure m, at tick 7: it gives no dict of the fields that gives names",
		`m: {star: s.star, cells: agent, gives: {most: float, kinds: int}}`: `measure m, at tick 7: it gives "first", which is not among gives`,
		`m: {star: one.star, type: bool}`:                                   "measure m, at tick 7: it gives int, and the column is of type bool: say type: int",
	} {
		set, err := compiled(text, measure.Limits{Gas: 5000})
		require.NoError(t, err)
		_, err = set.Eval(cells, 7)
		var fault *measure.Error
		require.ErrorAs(t, err, &fault, text)
		require.ErrorContains(t, err, want)
	}
	_, err = compiled(`m: {star: bad.star}`, measure.Limits{})
	require.ErrorContains(t, err, "1:11: measure m: bad.star:1:5: measure takes the parameters (cells, tick)")
	specs, _ := parse(t, `m: {star: bad.star}`)
	_, err = measure.Compile(specs, measure.Env{})
	require.ErrorContains(t, err, "there are no programs here")
}

func TestWhen(t *testing.T) {
	decode := func(text string) (measure.When, error) {
		doc, err := source.NewDocument("m.yaml", "when", []byte(text))
		require.NoError(t, err)
		w := measure.DecodeWhen(doc, doc.Root())
		return w, doc.Err()
	}
	for text, want := range map[string][]manifest.Tick{
		`every 4`:           {0, 4, 8},
		`[1, 5, 5, 3]`:      {1, 3, 5},
		`[every 4, 5, end]`: {0, 4, 5, 8},
		`7`:                 {7},
		`end`:               nil,
	} {
		w, err := decode(text)
		require.NoError(t, err, text)
		require.Equal(t, strings.Contains(text, "end"), w.End)
		var next []manifest.Tick
		for at, ok := w.Next(0); ok && at < 10; at, ok = w.Next(at + 1) {
			next = append(next, at)
		}
		require.Equal(t, want, next, text)
	}
	for _, text := range []string{`every`, `every 0`, `[]`, `-1`, `{}`, `[every 2, every 3]`, `soon`} {
		_, err := decode(text)
		require.Error(t, err, text)
	}
	w := measure.When{Every: 10}
	_, ok := w.Next(math.MaxUint64)
	require.False(t, ok)
}

func TestConditions(t *testing.T) {
	set := compile(t, agents)
	row, err := set.Eval(cellsOf(t, "agent/a", `{"status": "I", "coins": 1}`), 3)
	require.NoError(t, err)
	for text, want := range map[string]bool{
		`infected == 1 && tick > 2`: true,
		`wealth.mean > 1`:           false,
		`price > 0`:                 false, // there is none
	} {
		c, err := set.Condition(text)
		require.NoError(t, err, text)
		got, err := c.Holds(row, 3)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{`lost`, `infected + 1`} {
		_, err := set.Condition(text)
		require.Error(t, err, text)
	}
}

// Neither the order of the cells shows, nor who measured before.
func TestOrderDoesNotShow(t *testing.T) {
	set := compile(t, `m: {cells: x, value: state, take: [sum, mean, variance, sd, gini, p37]}`)
	rng := rand.New(rand.NewPCG(1, 2))
	var g given
	for i := range 1000 {
		data, err := canon.Marshal(math.Exp(40 * (rng.Float64() - 0.5)))
		require.NoError(t, err)
		g.names, g.states = append(g.names, fmt.Sprintf("x/%d", i)), append(g.states, data)
	}
	first, err := set.Eval(&g, 0)
	require.NoError(t, err)
	for range 3 {
		rng.Shuffle(len(g.states), func(i, j int) { g.states[i], g.states[j] = g.states[j], g.states[i] })
		row, err := set.Eval(&g, 0)
		require.NoError(t, err)
		require.Equal(t, first, row)
	}
	slices.SortFunc(g.states, func(a, b journal.Data) int { return strings.Compare(string(a), string(b)) })
	row, err := compile(t, `m: {cells: x, value: state, take: [sum, mean, variance, sd, gini, p37]}`).Eval(&g, 0)
	require.NoError(t, err)
	require.Equal(t, first, row)
}
