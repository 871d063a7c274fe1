package examples_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/recording"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// create makes and opens a world of an example; its journal depends on nothing
// but the inputs that follow.
func create(t *testing.T, name string) *local.World {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, examples.Copy(name, dir))
	keys, err := receipt.NewKeyring(name, []receipt.Epoch{{Number: 1, Secret: bytes.Repeat([]byte{1}, receipt.SecretBytes)}})
	require.NoError(t, err)
	ring, err := keys.Encode()
	require.NoError(t, err)
	require.NoError(t, local.Create(dir, local.CreateOptions{Keyring: ring}, local.Options{}))
	w, err := local.Open(dir, local.Options{Paranoid: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// lines parses the lines that worldctl send - takes.
func lines(r io.Reader) iter.Seq2[world.Submission, error] {
	return func(yield func(world.Submission, error) bool) {
		for dec := json.NewDecoder(r); ; {
			var line struct {
				Event string
				Data  json.RawMessage
				At    manifest.Tick
			}
			err := dec.Decode(&line)
			if errors.Is(err, io.EOF) {
				return
			}
			var data canon.Raw
			if err == nil {
				data, err = canon.FromJSON(line.Data)
			}
			if !yield(world.Submission{Name: line.Event, Data: data, When: world.When{At: line.At}}, err) || err != nil {
				return
			}
		}
	}
}

// runTown runs the town's day until nothing is left to happen.
func runTown(t *testing.T) *local.World {
	t.Helper()
	w := create(t, "town")
	day, err := os.Open(filepath.Join(w.Dir(), "events.jsonl"))
	require.NoError(t, err)
	defer day.Close() //nolint:errcheck // only read
	_, _, err = w.SubmitAll(t.Context(), lines(day))
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))
	return w
}

func cells(t *testing.T, w *local.World) []world.CellView {
	t.Helper()
	var out []world.CellView
	w.View(func(w *world.Moment) { out = w.Cells() })
	return out
}

func state[T any](t *testing.T, w *local.World, cell string) T {
	t.Helper()
	id, err := reducer.ParseCell(cell)
	require.NoError(t, err)
	var s T
	w.View(func(w *world.Moment) {
		c, ok := w.Cell(id)
		require.True(t, ok, cell)
		text, err := canon.ToJSON(c.State)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &s))
	})
	return s
}

func TestCounterCounts(t *testing.T) {
	w := create(t, "counter")
	for _, by := range []int{2, 3, -1} {
		_, err := w.Submit(t.Context(), "counter.added", map[string]any{"name": "tea", "by": by})
		require.NoError(t, err)
	}
	_, err := w.Submit(t.Context(), "counter.added", map[string]any{"name": "tea", "by": "two"})
	require.ErrorIs(t, err, world.ErrSchema)
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, map[string]int{"times": 3, "total": 4}, state[map[string]int](t, w, "counter/tea"))
}

// person is what the tests look at of a person's state.
type person struct {
	Coins, Aside   int
	Goods          map[string]int
	Promises, Lent map[string]any
	Asked, Giving  map[string]any
	Kept, Broken   int
	Diary          []string
}

func TestTheTownComesToRest(t *testing.T) {
	s := runTown(t).Status()
	require.True(t, s.Idle)
	require.Zero(t, s.Halted, "no reducer failed")
	require.Zero(t, s.EventsPending)
	require.Less(t, s.Time, manifest.Tick(60))
	require.Equal(t, 1, s.Intents[receipt.StateDenied], "the gift that is too great")
	require.NotZero(t, s.Intents[receipt.StateFailed], "an answer that is an error")
	require.Greater(t, s.Intents[receipt.StateCommitted], 20)
}

func TestTheTownMakesNoMoneyAndLosesNone(t *testing.T) {
	w := runTown(t)
	day, err := os.Open(filepath.Join(w.Dir(), "events.jsonl"))
	require.NoError(t, err)
	defer day.Close() //nolint:errcheck // only read
	brought, have := map[string]int{}, map[string]int{}
	for s, err := range lines(day) {
		require.NoError(t, err)
		if s.Name != "person.came" {
			continue
		}
		text, err := canon.ToJSON(s.Data)
		require.NoError(t, err)
		var newcomer person
		require.NoError(t, json.Unmarshal(text, &newcomer))
		count(brought, newcomer)
	}
	for _, c := range cells(t, w) {
		if c.Cell.Reducer == "person" {
			p := state[person](t, w, c.Cell.String())
			require.Zero(t, p.Aside, "%s has set coins aside for nothing", c.Cell)
			count(have, p)
		}
	}
	require.Equal(t, brought, have)
}

func count(things map[string]int, p person) {
	things["coins"] += p.Coins + p.Aside
	for item, n := range p.Goods {
		things[item] += n
	}
}

func TestTheTownKeepsItsPromises(t *testing.T) {
	w := runTown(t)
	kept := 0
	for _, c := range cells(t, w) {
		if c.Cell.Reducer != "person" {
			continue
		}
		p := state[person](t, w, c.Cell.String())
		require.Empty(t, p.Promises, c.Cell)
		require.Empty(t, p.Lent, c.Cell)
		require.Empty(t, p.Asked, c.Cell)
		require.Empty(t, p.Giving, c.Cell)
		require.Zero(t, p.Broken, c.Cell)
		for item, n := range p.Goods {
			require.GreaterOrEqual(t, n, 0, "%s owes %s", c.Cell, item)
		}
		kept += p.Kept
	}
	market := state[struct{ Deals int }](t, w, "market/main")
	require.Equal(t, 2*market.Deals+1, kept, "a deal is two promises, and there is one loan")
	require.GreaterOrEqual(t, market.Deals, 5)
}

func TestTwoTownsAreAlike(t *testing.T) {
	a, b := runTown(t).Status(), runTown(t).Status()
	require.Equal(t, a.Head, b.Head)
}

func TestReplayOfTheTown(t *testing.T) {
	w := runTown(t)
	got, err := w.Replay(t.Context(), 0, nil)
	require.NoError(t, err)
	require.Equal(t, w.Status().Head, got.Head)
}

func TestVilleRemembersEveryMeetingTwice(t *testing.T) {
	file, err := os.Open(recording.Shared(t, recording.Ville))
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // only read
	moves, err := gzip.NewReader(file)
	require.NoError(t, err)
	w := create(t, "ville")
	_, taken, err := w.SubmitAll(t.Context(), lines(moves))
	require.NoError(t, err)
	require.EqualValues(t, 25_965, taken)
	require.NoError(t, w.Run(t.Context()))

	require.Zero(t, w.Status().Halted)
	moved, met := 0, map[[3]string]int{}
	for _, c := range cells(t, w) {
		require.Less(t, len(c.State), 4<<10, "the state of %s is bounded", c.Cell)
		if c.Cell.Reducer != "villager" {
			continue
		}
		v := state[struct {
			Moves    int
			Meetings []struct {
				With, Place string
				Times       int
			}
		}](t, w, c.Cell.String())
		moved += v.Moves
		for _, m := range v.Meetings {
			met[[3]string{c.Cell.Key, m.With, m.Place}] += m.Times
		}
	}
	require.Equal(t, 25_965, moved, "none is lost")
	require.NotEmpty(t, met)
	for m, times := range met {
		require.Equal(t, times, met[[3]string{m[1], m[0], m[2]}], m)
	}
	got, err := w.Replay(t.Context(), 0, nil)
	require.NoError(t, err)
	require.Equal(t, w.Status().Head, got.Head)
}
