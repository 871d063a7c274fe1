package world_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// talker prints what it is told, and fails on what it has not been told to say.
const talker = `
def reduce(ctx, state, event):
    print(ctx.key, "has", state)
    if event.data["say"] == "":
        fail("nothing to say")
    return (state or []) + [event.data["say"]]
`

// talks is a world of talkers with what its steps print.
func talks(t *testing.T, source string) *worldtest.World {
	t.Helper()
	m := manifest.Manifest{
		World: "talks", Version: 1,
		Reducers: map[string]manifest.Reducer{
			"talker": {Engine: manifest.EngineStarlark, File: "talker.star", Source: canon.Sum([]byte(source)), OnError: manifest.OnErrorSkip},
		},
		Events:  map[string]manifest.Event{"tell": {}},
		Routing: []manifest.Route{{Event: "tell", Reducer: "talker", Key: "event.data.to"}},
	}
	return worldtest.New(t, m, map[manifest.Hash][]byte{canon.Sum([]byte(source)): []byte(source)}, worldtest.Options{})
}

func tell(w *worldtest.World, to, say string) { w.Submit("tell", map[string]any{"to": to, "say": say}) }

// A journal holds nothing of what steps print; who computes them again hears it, of
// failed steps, too.
func TestAReplayHearsWhatStepsPrint(t *testing.T) {
	w := talks(t, talker)
	tell(w, "a", "x")
	tell(w, "b", "y")
	w.Run()
	tell(w, "a", "")
	w.Run()
	at := reducer.Print{Place: "talker.star:3:10"}
	said := func(text string) reducer.Print { at.Text = text; return at }
	want := []world.Printed{
		{Record: 5, Cell: "talker/a", N: 1, Print: said("a has None")},
		{Record: 6, Cell: "talker/b", N: 1, Print: said("b has None")},
		{Record: 9, Cell: "talker/a", N: 2, Print: said(`a has ["x"]`)},
	}
	for _, paranoid := range []bool{false, true} {
		var heard []world.Printed
		replayed, err := world.Replay(context.Background(), w.Journal, world.ReplayConfig{
			Paranoid: paranoid, OnPrint: func(p world.Printed) { heard = append(heard, p) },
		})
		require.NoError(t, err)
		require.Equal(t, w.Head(), replayed.Head)
		require.Equal(t, want, heard)
	}
	for _, p := range want {
		rec, err := journal.Read(w.Journal, p.Record)
		require.NoError(t, err)
		require.Contains(t, []journal.Kind{journal.KindStepped, journal.KindFailed}, rec.Kind)
	}
}

// Steps are taken again from the images before them: what is printed then is what a replay
// of everything hears.
func TestPrintsOfSomeSteps(t *testing.T) {
	w := talks(t, talker)
	for i := range 4 {
		for _, to := range []string{"a", "b"} {
			tell(w, to, []string{"x", ""}[i%2])
			w.Run()
		}
		_, err := w.Snapshot(t.Context(), string(rune('p'+i)), "", "test")
		require.NoError(t, err)
	}
	var all []world.Printed
	_, err := world.Replay(t.Context(), w.Journal, world.ReplayConfig{OnPrint: func(p world.Printed) { all = append(all, p) }})
	require.NoError(t, err)
	require.Len(t, all, 8)
	var records []journal.Seq
	for id := range w.Head().ID {
		records = append(records, id+1)
	}
	for from := range records {
		for to := range len(records) + 1 {
			if from > to || from%3 != 0 {
				continue
			}
			var want []world.Printed
			for _, p := range all {
				if slices.Contains(records[from:to], p.Record) {
					want = append(want, p)
				}
			}
			got, err := world.PrintsOf(t.Context(), w.Journal, w.Landmarks(), records[from:to], nil, world.Bounds{})
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}

// Rules that are in force may allow a step more than who reads does.
func TestPrintsOfSomeStepsAreBounded(t *testing.T) {
	w := talks(t, talker)
	tell(w, "a", "x")
	w.Run()
	var records []journal.Seq
	for id := range w.Head().ID {
		records = append(records, id+1)
	}
	_, err := world.PrintsOf(t.Context(), w.Journal, w.Landmarks(), records, nil, world.Bounds{Gas: 3})
	var bound *world.BoundError
	require.ErrorAs(t, err, &bound)
}
