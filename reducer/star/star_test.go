package star_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// counter is a reducer of the usual kind: a few fields, one emit.
const counter = `
def reduce(ctx, state, event):
    if state == None:
        state = {"count": 0, "name": ctx.key, "seen": [], "total": 0}
    state["count"] += 1
    state["total"] += event.data["amount"]
    state["last"] = event.name
    if state["count"] % 2 == 0:
        state["even"] = True
    ctx.emit("counted", {"count": state["count"], "by": ctx.key})
    return state
`

func instance(t testing.TB, source string) reducer.Reducer {
	t.Helper()
	p, err := star.Compile(star.Version, "test.star", []byte(source))
	require.NoError(t, err)
	r, err := p.Reducer()
	require.NoError(t, err)
	return r
}

func data(t testing.TB, json string) reducer.Data {
	t.Helper()
	d, err := canon.FromJSON([]byte(json))
	require.NoError(t, err)
	return d
}

func input(t testing.TB, state, eventData string) *reducer.Input {
	t.Helper()
	in := &reducer.Input{
		Cell:   reducer.Cell{Reducer: "agent", Key: "ann"},
		Step:   3,
		Event:  reducer.Event{Name: "poke", Data: data(t, eventData)},
		Time:   17,
		Limits: manifest.ReducerLimits{}.WithDefaults(),
		Seed:   reducer.Seed{World: 42, Cell: reducer.Cell{Reducer: "agent", Key: "ann"}, Step: 3},
	}
	if state != "" {
		in.State = data(t, state)
	}
	return in
}

// eval runs the body of reduce on a new cell and returns its state as JSON.
func eval(t testing.TB, body string) (string, error) {
	t.Helper()
	r := instance(t, "def reduce(ctx, state, event):\n"+body)
	var out reducer.Output
	if err := r.Reduce(input(t, "", `{"n": 7, "s": "text", "list": [3, 1, 2], "f": 1.5}`), &out); err != nil {
		return "", err
	}
	if len(out.State) == 0 {
		return "", nil
	}
	text, err := canon.ToJSON(out.State)
	require.NoError(t, err)
	return string(text), nil
}

func BenchmarkReduce(b *testing.B) {
	r := instance(b, counter)
	in := input(b, "", `{"amount": 5, "who": "bob", "note": "a short text"}`)
	var out reducer.Output
	require.NoError(b, r.Reduce(in, &out))
	in.State = append(reducer.Data(nil), out.State...)
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		if err := r.Reduce(in, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(out.Gas), "gas")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func TestCounter(t *testing.T) {
	r := instance(t, counter)
	var out reducer.Output
	in := input(t, "", `{"amount": 5}`)
	require.NoError(t, r.Reduce(in, &out))
	in.State = append(reducer.Data(nil), out.State...)
	out.Reset()
	require.NoError(t, r.Reduce(in, &out))
	require.JSONEq(t, `{"count":2,"name":"ann","seen":[],"total":10,"last":"poke","even":true}`, string(must(canon.ToJSON(out.State))))
	require.Len(t, out.Events, 1)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func compile(source string) (*star.Program, error) {
	return star.Compile(star.Version, "test.star", []byte(source))
}
