package view_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/measure"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/memory"
	"github.com/worldkernel/worldkernel/world/source"
)

const tradersYAML = `
world: traders
version: 1
seed: 7
reducers: {agent: {engine: starlark, source: agent.star}}
events: {start: , coin: }
routing:
  - {event: coin, reducer: agent, key: event.data.to}
`

const traders = `
def reduce(ctx, state, event):
    state = state or {"coins": 5, "rate": 0.5, "mood": "new"}
    if event.name == "coin":
        state["coins"] += 1
        return state
    if state["coins"] > 0:
        state["coins"] -= 1
        state["rate"] = state["rate"] * 1.1 + ctx.random(100) / 97.0
        state["mood"] = "rich" if state["coins"] > 5 else "poor"
        ctx.emit("coin", {"to": str(ctx.random(20))})
    ctx.timer(1, "start")
    return state
`

const groups = `
def measure(cells, tick):
    last = 0.0
    for c in cells:
        last = last * 0.5 + c.state["rate"]
    return last
`

const ofTraders = `
measures:
  agents: {cells: agent}
  coins: {cells: agent, value: state.coins, take: [sum, mean, sd, gini, median, p90]}
  rate: {cells: agent, value: state.rate, take: [sum, mean, variance, gini, p37]}
  mood: {cells: agent, value: state.mood, count: [new, rich, poor]}
  bins: {cells: agent, value: state.coins, hist: {from: 0, to: 10, bins: 4}}
  one: {cell: agent/3, value: state.rate}
  weighted: {star: groups.star}
  share: mood.rich / agents * tick
`

// TestAMeasureIsTheSameWhereverItIsTaken: while the world runs, in memory, of its past from
// images and without them, with all its cells outside of memory, and of a replay.
func TestAMeasureIsTheSameWhereverItIsTaken(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"world.yaml": tradersYAML, "agent.star": traders} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	doc, err := measure.Parse("m.yaml", []byte(ofTraders))
	require.NoError(t, err)
	set, err := measure.Compile(doc.Specs, measure.Env{Reducers: []string{"agent"}, Code: func(file string) (reducer.Code, error) {
		return reducer.Code{File: file, Source: []byte(groups)}, nil
	}})
	require.NoError(t, err)

	const ticks = 12
	loaded, err := source.Load(filepath.Join(dir, "world.yaml"))
	require.NoError(t, err)
	inMemory, err := memory.New(loaded.Manifest, loaded.Contents, memory.Options{ID: "w"})
	require.NoError(t, err)
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w"}, local.Options{}))
	lw, err := local.Open(dir, local.Options{Checkpoint: 100, Memory: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, lw.Close()) }()
	for i := range 20 {
		s := world.Submission{Name: "start", To: &reducer.Cell{Reducer: "agent", Key: fmt.Sprint(i)}}
		_, err := inMemory.Submit(t.Context(), s)
		require.NoError(t, err)
		_, err = lw.SubmitEvent(t.Context(), s)
		require.NoError(t, err)
	}
	var want, running []measure.Row // from tick 1 on
	for tick := manifest.Tick(1); tick <= ticks; tick++ {
		require.NoError(t, inMemory.Step(t.Context()))
		require.Equal(t, tick, inMemory.Time())
		row, err := set.Eval(inMemory, tick)
		require.NoError(t, err)
		want = append(want, row)
		require.NoError(t, lw.Step(t.Context()))
		lw.View(func(m *world.Moment) {
			require.Equal(t, tick, m.Time())
			row, err = set.Eval(m, tick)
		})
		require.NoError(t, err)
		running = append(running, row)
	}
	require.Equal(t, want, running)
	require.NotEqual(t, want[3], want[9])

	past := func(memory int) (rows []measure.Row) {
		for m, err := range (view.Journal{Local: lw}).Measure(t.Context(), &view.Measuring{Set: set, When: measure.When{Every: 1}, From: "t1", Memory: memory}) {
			require.NoError(t, err)
			require.Equal(t, manifest.Tick(len(rows)+1), m.Tick)
			rows = append(rows, m.Row)
		}
		return rows
	}
	require.Equal(t, want, past(0), "of the past")
	require.Equal(t, want, past(1), "with what is not used outside of memory")
	var replayed []measure.Row
	j := view.Journal{Local: lw}
	for tick := manifest.Tick(1); tick <= ticks; tick++ {
		at, err := j.EndOf(tick, j.End())
		require.NoError(t, err)
		m, err := lw.At(at)
		require.NoError(t, err)
		row, err := set.Eval(m, tick)
		require.NoError(t, err)
		replayed = append(replayed, row)
	}
	require.Equal(t, want, replayed)

	// The bits are those of this machine and of any other: nothing is rounded but once.
	text, err := json.Marshal(want[ticks-1])
	require.NoError(t, err)
	require.Equal(t, golden, string(text))
}

const golden = `[20,100,5,2.2710998958306754,0.245,5,7.2,248.18836776148115,12.409418388074057,4.153450339133999,` +
	`0.09177118270786568,11.395643899797411,0,4,16,0,3,6,9,1,1,11.53002819833731,24.662897801653337,2.4000000000000004]`

func TestAPageOfCellsEndsWhereStatesAreLong(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"world.yaml": tradersYAML, "agent.star": traders} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w"}, local.Options{}))
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, lw.Close()) }()
	for i := range 5 {
		_, err := lw.SubmitEvent(t.Context(), world.Submission{Name: "start", To: &reducer.Cell{Reducer: "agent", Key: fmt.Sprint(i)}})
		require.NoError(t, err)
	}
	require.NoError(t, lw.Step(t.Context()))
	var names []string
	s := view.CellSelection{State: true, Bytes: 1}
	for {
		page, err := (view.Journal{Local: lw}).CellPage(&s)
		require.NoError(t, err)
		require.Len(t, page.Cells, 1)
		require.NotEmpty(t, *page.Cells[0].State)
		s.After = page.Cells[0].Cell
		if names = append(names, s.After); !page.More {
			break
		}
	}
	var want []string
	lw.View(func(m *world.Moment) {
		for _, v := range m.Cells() {
			want = append(want, v.Cell.String())
		}
	})
	require.Greater(t, len(want), 5)
	require.Equal(t, want, names)
}
