package world_test

import (
	"bytes"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// cellIndex is a journal with an index of the records that concern each cell.
type cellIndex struct {
	*worldtest.Journal
	records map[string][]journal.Seq
}

func indexOf(t *testing.T, j *worldtest.Journal) cellIndex {
	t.Helper()
	x := cellIndex{Journal: j, records: make(map[string][]journal.Seq)}
	asker := make(map[journal.Hash]string)
	for _, s := range j.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		require.NoError(t, rec.Load(j))
		add := func(cell []byte) {
			all := x.records[string(cell)]
			if len(all) == 0 || all[len(all)-1] != s.ID {
				x.records[string(cell)] = append(all, s.ID)
			}
		}
		require.NoError(t, journal.EachCell(rec.Kind, rec.Payload, add))
		if key, cell, ok := journal.IntentOf(rec.Kind, rec.Payload); ok {
			if len(cell) > 0 {
				asker[key] = string(cell)
			}
			add([]byte(asker[key]))
		}
	}
	return x
}

func (x cellIndex) CellRecords(cell string, after journal.Seq) iter.Seq2[journal.Seq, error] {
	return func(yield func(journal.Seq, error) bool) {
		for _, id := range x.records[cell] {
			if id > after && !yield(id, nil) {
				return
			}
		}
	}
}

func (x cellIndex) IntentVersion(key journal.Hash, at journal.Seq) (*journal.IntentVersion, error) {
	img, err := x.Image(at)
	if img == nil || err != nil {
		return nil, err
	}
	for i := range img.Intents {
		if img.Intents[i].Key == key {
			return &img.Intents[i], nil
		}
	}
	return nil, nil
}

// ways counts how cells were found.
type ways struct{ asked, fast int }

// requireCellsAt requires that every cell at every record is what the whole world
// says, and counts how it was found.
func requireCellsAt(t *testing.T, w *worldtest.World, count *ways) {
	t.Helper()
	index, known, registry := indexOf(t, w.Journal), w.Landmarks(), cellAtRegistry()
	all := []reducer.Cell{{Reducer: "bot", Key: "nobody"}}
	for name := range index.records {
		if strings.HasSuffix(name, "/") {
			continue // everyone
		}
		cell, err := reducer.ParseCell(name)
		require.NoError(t, err)
		all = append(all, cell)
	}
	require.NoError(t, world.EachMoment(w.Journal, registry, func(at journal.Seq, moment *world.Moment) {
		whole := false
		for _, cell := range all {
			count.asked++
			_, _, err := world.FoldCell(index, known, cell, at, registry)
			if err == nil {
				count.fast++
			} else {
				require.ErrorIs(t, err, world.ErrWhole(), "%s at #%d", cell, at)
				if whole {
					continue // the whole world is the same for the next cell
				}
				whole = true
			}
			got, found, err := world.CellAt(t.Context(), index, known, cell, at, registry)
			require.NoError(t, err)
			want, there := moment.Cell(cell)
			require.Equal(t, there, found, "%s at #%d", cell, at)
			require.Equal(t, want, got, "%s at #%d", cell, at)
		}
	}))
}

// lookedAt lives worlds and looks at their cells. It returns what was done to the worlds
// and how the cells were found. The worlds roll back where returns says so.
func lookedAt(t *testing.T, returns bool) (map[string]int, ways) {
	t.Helper()
	total := make(map[string]int)
	var count ways
	for seed := range uint64(12) {
		l := newLife(t, seed, returns, total)
		l.live()
		requireCellsAt(t, l.World, &count)
	}
	t.Log(count, total)
	return total, count
}

func TestCellAtIsTheCellOfTheWholeWorld(t *testing.T) {
	total, count := lookedAt(t, false)
	require.Greater(t, float64(count.fast), 0.95*float64(count.asked), "nearly all is found without folding the world")
	lived(t, total, journal.KindResumed, journal.KindFailed, journal.KindFired, journal.KindDenied, journal.KindWaiting, journal.KindEnded,
		journal.KindExpired, journal.KindDue, journal.KindResolved, journal.KindFinished, journal.KindSnapshot, journal.KindApplied)
}

func TestCellAtIsTheCellOfTheWholeWorldThroughRollbacks(t *testing.T) {
	total, count := lookedAt(t, true)
	require.NotZero(t, count.fast)
	require.Less(t, count.fast, count.asked, "some cells are not found without folding the world")
	lived(t, total, journal.KindRollback, journal.KindInDoubt, journal.KindWaiting, journal.KindEnded, journal.KindApplied)
}

// lived requires that worlds had records of all these kinds.
func lived(t *testing.T, total map[string]int, kinds ...journal.Kind) {
	t.Helper()
	for _, kind := range kinds {
		require.NotZero(t, total[string(kind)], kind)
	}
}

func TestCellAtOfAForkIsTheCellOfTheWholeWorld(t *testing.T) {
	var count ways
	for seed := range uint64(3) {
		l := newLife(t, seed, seed%3 == 0, make(map[string]int))
		l.live()
		require.NoError(t, l.Sync()) // a fork begins with what is durable
		effects := []journal.ForkEffects{journal.ForkHold, journal.ForkLive, journal.ForkRecorded}[seed%3]
		l.out = l.outside()
		l.World = l.Fork(effects, worldtest.Options{
			ID: "child", Outside: l.out, Reducers: cellAtRegistry(), CheckpointRecords: journal.Seq(5 + l.rng.IntN(50)),
		})
		l.live()
		requireCellsAt(t, l.World, &count)
	}
	t.Log(count)
	require.NotZero(t, count.fast)
}

// damaged is an index of a journal in which some records are others.
type damaged struct {
	cellIndex
	record func(id journal.Seq, data []byte) []byte
}

func (d damaged) Record(id journal.Seq) ([]byte, error) {
	data, err := d.cellIndex.Record(id)
	return d.record(id, data), err
}

func TestCellAtTakesNoStepThatTheJournalDoesNotConfirm(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Say: "one"})
	w.Run()
	index, known := indexOf(t, w.Journal), w.Landmarks()
	cell := reducer.Cell{Reducer: "bot", Key: "a"}
	forged := damaged{index, func(_ journal.Seq, data []byte) []byte {
		return bytes.Replace(data, []byte("one"), []byte("two"), 1)
	}}
	_, _, err := world.FoldCell(forged, known, cell, known.Head, botRegistry())
	require.ErrorIs(t, err, world.ErrWhole())
	_, _, err = world.FoldCell(index, known, cell, known.Head, botRegistry())
	require.NoError(t, err)
}

func TestCellAtTakesNoStepWhoseEventItHasNot(t *testing.T) {
	w := bots(t)
	for range 2 {
		w.Submit("go", order{To: "a"})
	}
	w.Run()
	index, known := indexOf(t, w.Journal), w.Landmarks()
	index.records["bot/a"] = index.records["bot/a"][1:]
	_, _, err := world.FoldCell(index, known, reducer.Cell{Reducer: "bot", Key: "a"}, known.Head-1, botRegistry())
	require.ErrorIs(t, err, world.ErrWhole())
}

func TestCellAtKnowsNothingBeforeTheFirstRecordOrOfPeople(t *testing.T) {
	w := bots(t)
	_, key, err := w.Emit(t.Context(), journal.OperatorEffect{Actor: "ada", Kind: "tool.a", Cap: "tools", Reason: "so"})
	require.NoError(t, err)
	require.NotZero(t, key)
	w.Run()
	index, known := indexOf(t, w.Journal), w.Landmarks()
	for _, cell := range []reducer.Cell{{Reducer: reducer.Operator, Key: "ada"}, {Reducer: "bot", Key: "a"}} {
		for _, at := range []journal.Seq{0, 1, known.Head, journal.Last} {
			_, ok, err := world.CellAt(t.Context(), index, known, cell, at, botRegistry())
			require.NoError(t, err)
			require.False(t, ok, "%s at #%d", cell, at)
			_, _, err = world.FoldCell(index, known, cell, max(at, 1), botRegistry())
			require.NoError(t, err, "%s at #%d", cell, at)
		}
	}
}

func TestCellAtFoldsACellWhoseReducerHasParamsAndSeesSchemas(t *testing.T) {
	w := given(t, `{"title": "Pay"}`)
	w.Submit("go", map[string]any{"params": map[string]any{}})
	w.Step(1)
	index, known, cell := indexOf(t, w.Journal), w.Landmarks(), reducer.Cell{Reducer: "payer", Key: "p"}
	want, there := w.Cell(cell)
	require.True(t, there)
	got, found, err := world.FoldCell(index, known, cell, known.Head, nil)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, want, got)
}
