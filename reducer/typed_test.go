package reducer_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

type count struct {
	N uint64 `cbor:"n"`
}

type add struct {
	Amount uint64 `cbor:"amount"`
}

func counter() reducer.Reducer {
	return reducer.Typed(7, func(_ *reducer.Context, s count, e add) (count, error) {
		s.N += e.Amount
		return s, nil
	})()
}

func encoded(t testing.TB, v any) reducer.Data {
	t.Helper()
	b, err := canon.Marshal(v)
	require.NoError(t, err)
	return b
}

func poke(t testing.TB, state, data any) *reducer.Input {
	t.Helper()
	cell := reducer.Cell{Reducer: "counter", Key: "a"}
	in := &reducer.Input{Cell: cell, Step: 1, Event: reducer.Event{Name: "poke", Data: encoded(t, data)}, Time: 9}
	in.Seed = reducer.Seed{World: 42, Cell: cell, Step: 1}
	if state != nil {
		in.State = encoded(t, state)
	}
	return in
}

func TestTypedStartsFromTheZeroValue(t *testing.T) {
	var out reducer.Output
	require.NoError(t, counter().Reduce(poke(t, nil, add{5}), &out))
	require.Equal(t, encoded(t, count{5}), out.State)
	require.EqualValues(t, 7, out.Gas)
}

func TestTypedGoesOnFromItsState(t *testing.T) {
	var out reducer.Output
	require.NoError(t, counter().Reduce(poke(t, count{3}, add{5}), &out))
	require.Equal(t, encoded(t, count{8}), out.State)
}

func TestTypedStepAllocatesAtMostOnce(t *testing.T) {
	r, in := counter(), poke(t, count{3}, add{5})
	var out reducer.Output
	require.NoError(t, r.Reduce(in, &out))
	allocs := testing.AllocsPerRun(1000, func() {
		out.Reset()
		if err := r.Reduce(in, &out); err != nil {
			panic(err)
		}
	})
	require.LessOrEqual(t, allocs, 1.0)
}

func BenchmarkTyped(b *testing.B) {
	r, in := counter(), poke(b, count{3}, add{5})
	var out reducer.Output
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		if err := r.Reduce(in, &out); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTypedKeepsNothing: what a step leaves in scratch memory does not reach the next.
func TestTypedKeepsNothing(t *testing.T) {
	type bag struct {
		Items map[string]int `cbor:"items"`
		List  []int          `cbor:"list"`
	}
	r := reducer.Typed(1, func(_ *reducer.Context, s, e bag) (bag, error) {
		if e.Items != nil {
			e.Items["seen"] = 1
		}
		s.List = append(s.List, e.List...)
		return s, nil
	})()
	var first, second reducer.Output
	require.NoError(t, r.Reduce(poke(t, bag{List: []int{1}}, bag{Items: map[string]int{"a": 1}, List: []int{2, 3}}), &first))
	require.Equal(t, encoded(t, bag{List: []int{1, 2, 3}}), first.State)
	require.NoError(t, r.Reduce(poke(t, nil, bag{}), &second))
	require.Equal(t, encoded(t, bag{}), second.State)
	require.Equal(t, encoded(t, bag{List: []int{1, 2, 3}}), first.State)
}

func TestTypedContext(t *testing.T) {
	r := reducer.Typed(1, func(ctx *reducer.Context, s count, e reducer.Event) (count, error) {
		require.Equal(t, "counter/a", ctx.Cell().String())
		require.EqualValues(t, 9, ctx.Time())
		require.Equal(t, e, ctx.Event())
		ctx.Emit("a", map[string]any{"x": 1})
		ctx.EmitTo("b", nil, "bob")
		ctx.Effect("tool.x", "p", "tag")
		ctx.Timer(3, "wake", []int{1})
		s.N = ctx.Random(10)
		return s, nil
	})()
	in := poke(t, nil, 1)
	var out reducer.Output
	require.NoError(t, r.Reduce(in, &out))
	require.Equal(t, []reducer.Emit{
		{Name: "a", Data: encoded(t, map[string]any{"x": 1})}, {Name: "b", Data: encoded(t, nil), Key: "bob"},
	}, out.Events)
	require.Equal(t, []reducer.Effect{{Kind: "tool.x", Params: encoded(t, "p"), Tag: "tag"}}, out.Effects)
	require.Equal(t, []reducer.Timer{{After: 3, Name: "wake", Data: encoded(t, []int{1})}}, out.Timers)
	n, err := in.Seed.New().Below(10)
	require.NoError(t, err)
	require.Equal(t, encoded(t, count{n}), out.State)
}

func TestTypedDelete(t *testing.T) {
	r := reducer.Typed(1, func(ctx *reducer.Context, s count, _ add) (count, error) {
		ctx.Delete()
		return s, nil
	})()
	out := reducer.Output{State: reducer.Data{1}}
	require.NoError(t, r.Reduce(poke(t, count{1}, add{1}), &out))
	require.Empty(t, out.State)
}

func TestTypedFailures(t *testing.T) {
	boom := errors.New("boom")
	for name, reduce := range map[string]func(*reducer.Context, map[string]any, reducer.Event) (map[string]any, error){
		"own error": func(*reducer.Context, map[string]any, reducer.Event) (map[string]any, error) { return nil, boom },
		"state of no form": func(*reducer.Context, map[string]any, reducer.Event) (map[string]any, error) {
			return map[string]any{"a": math.NaN()}, nil
		},
		"event of no form": func(c *reducer.Context, _ map[string]any, _ reducer.Event) (map[string]any, error) {
			c.Emit("a", math.Inf(1))
			return nil, nil
		},
		"random below 0": func(c *reducer.Context, _ map[string]any, _ reducer.Event) (map[string]any, error) {
			c.Random(0)
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out reducer.Output
			require.Error(t, reducer.Typed(1, reduce)().Reduce(poke(t, nil, 1), &out))
		})
	}
	var out reducer.Output
	require.Error(t, counter().Reduce(poke(t, nil, "text"), &out))
	require.Error(t, counter().Reduce(poke(t, nil, map[string]any{"unknown": 1}), &out))
	require.Error(t, counter().Reduce(poke(t, "text", add{1}), &out))
}

func TestDecode(t *testing.T) {
	r, err := reducer.Decode[reducer.Receipt](encoded(t, reducer.Receipt{Tag: "t", Kind: "k", Status: "ok", Payload: encoded(t, 1)}))
	require.NoError(t, err)
	require.Equal(t, reducer.Receipt{Tag: "t", Kind: "k", Status: "ok", Payload: encoded(t, 1)}, r)
	_, err = reducer.Decode[int](encoded(t, "x"))
	require.Error(t, err)
}

func TestCheckLimitsNamesTheLimit(t *testing.T) {
	limits := manifest.ReducerLimits{Gas: 1, State: 1, Events: 1, Effects: 1, Timers: 1, Value: 1}
	fits := reducer.Output{State: make(reducer.Data, 1), Events: make([]reducer.Emit, 1), Effects: make([]reducer.Effect, 1), Timers: make([]reducer.Timer, 1), Gas: 1}
	require.NoError(t, fits.CheckLimits(limits))
	for name, change := range map[string]func(*reducer.Output){
		"limits.gas":     func(o *reducer.Output) { o.Gas = 2 },
		"limits.state":   func(o *reducer.Output) { o.State = make(reducer.Data, 2) },
		"limits.events":  func(o *reducer.Output) { o.Events = make([]reducer.Emit, 2) },
		"limits.effects": func(o *reducer.Output) { o.Effects = make([]reducer.Effect, 2) },
		"limits.timers":  func(o *reducer.Output) { o.Timers = make([]reducer.Timer, 2) },
	} {
		out := fits
		change(&out)
		err := out.CheckLimits(limits)
		require.ErrorIs(t, err, reducer.ErrLimit)
		require.ErrorContains(t, err, name)
	}
}

func TestParseCell(t *testing.T) {
	c, err := reducer.ParseCell("agent/a/b")
	require.NoError(t, err)
	require.Equal(t, reducer.Cell{Reducer: "agent", Key: "a/b"}, c)
	require.Equal(t, "agent/a/b", c.String())
	for _, bad := range []string{"", "agent", "agent/", "/a", "agent/\n", "agent/\xff"} {
		_, err := reducer.ParseCell(bad)
		require.Error(t, err, bad)
	}
}

// TestPayloadsComeFromGoAndJSON and go there again.
func TestPayloadsComeFromGoAndJSON(t *testing.T) {
	made, err := reducer.Encode(count{7})
	require.NoError(t, err)
	text, err := json.Marshal(made)
	require.NoError(t, err)
	require.Equal(t, `{"n":7}`, string(text))
	var read reducer.Data
	require.NoError(t, json.Unmarshal([]byte(` {"n": 7} `), &read))
	require.Equal(t, made, read)
	back, err := reducer.Decode[count](read)
	require.NoError(t, err)
	require.Equal(t, count{7}, back)
	require.Error(t, json.Unmarshal([]byte(`{"n": 1, "n": 2}`), &read))
	_, err = reducer.Encode(math.NaN())
	require.Error(t, err)
}
