package world

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// aSaved is a file's content with everything in it.
func aSaved() *SavedSnapshot {
	ten := journal.Data(canon.AppendUint(nil, 10))
	return &SavedSnapshot{
		head: savedHead{
			Format: savedFormat, World: "w", Name: "before", Record: 9, At: 8, Time: 3, Cells: 2,
			Reducers: []savedReducer{{Name: "bot", Code: journal.Hash{1}}},
		},
		cells: []savedCell{
			{Cell: "bot/a", N: 3, History: journal.Hash{2}, State: ten, Mail: []savedMail{{Name: "go", Data: ten}}},
			{Cell: "bot/b", N: 1, State: journal.Data(canon.Null), Parked: true, Mail: []savedMail{}},
		},
		alarms: savedAlarms{
			Scheduled: []savedAlarm{{Remaining: 2, To: []string{"bot/a"}, Name: "go", Data: ten}},
			Timers:    []savedAlarm{{Remaining: manifest.Tick(7), To: []string{"bot/b"}, Name: "late", Data: ten}},
		},
	}
}

// Every byte is one that the state root, the journal or the form of a file
// answers for.
func TestSavedSnapshotReadsAsItWasWritten(t *testing.T) {
	data, err := aSaved().encode()
	require.NoError(t, err)
	x, err := decodeSaved(data)
	require.NoError(t, err)
	require.Equal(t, aSaved(), x)
	for n := range data {
		_, err := decodeSaved(data[:n])
		require.Error(t, err, "cut off at %d", n)
	}
	_, err = decodeSaved(append(data, data[0]))
	require.Error(t, err, "something follows")
}

func TestSavedCellsAreSortedAndThereOnce(t *testing.T) {
	for name, spoil := range map[string]func(x *SavedSnapshot){
		"twice":      func(x *SavedSnapshot) { x.cells[1] = x.cells[0] },
		"unsorted":   func(x *SavedSnapshot) { x.cells[0], x.cells[1] = x.cells[1], x.cells[0] },
		"one less":   func(x *SavedSnapshot) { x.head.Cells-- },
		"one more":   func(x *SavedSnapshot) { x.head.Cells++ },
		"far more":   func(x *SavedSnapshot) { x.head.Cells = 1 << 62 },
		"new format": func(x *SavedSnapshot) { x.head.Format += "2" },
	} {
		x := aSaved()
		spoil(x)
		data, err := x.encode()
		require.NoError(t, err)
		_, err = decodeSaved(data)
		require.Error(t, err, name)
	}
}

// Whatever is changed of cells, mailboxes and timers changes the state root.
func TestSavedContentHasOneStateRoot(t *testing.T) {
	spoils := []func(x *SavedSnapshot){
		func(x *SavedSnapshot) { x.cells[0].Cell = "bot/A" },
		func(x *SavedSnapshot) { x.cells[0].N++ },
		func(x *SavedSnapshot) { x.cells[0].History[0]++ },
		func(x *SavedSnapshot) { x.cells[0].State = journal.Data(canon.Null) },
		func(x *SavedSnapshot) { x.cells[1].Parked = false },
		func(x *SavedSnapshot) { x.cells[0].Mail[0].Name = "no" },
		func(x *SavedSnapshot) { x.cells[0].Mail = nil },
		func(x *SavedSnapshot) { x.alarms.Scheduled[0].Remaining++ },
		func(x *SavedSnapshot) { x.alarms.Timers[0].To[0] = "bot/a" },
		func(x *SavedSnapshot) { x.alarms.Timers[0].Name = "soon" },
		func(x *SavedSnapshot) { x.alarms.Scheduled, x.alarms.Timers = x.alarms.Timers, x.alarms.Scheduled },
		func(x *SavedSnapshot) { x.head.Reducers[0].Code[0]++ },
	}
	rapid.Check(t, func(rt *rapid.T) {
		x := aSaved()
		require.Error(rt, x.check(), "a wrong root")
		x.head.State = x.stateRoot()
		require.NoError(rt, x.check())
		rapid.SampledFrom(spoils).Draw(rt, "spoil")(x)
		require.Error(rt, x.check())
	})
}

func FuzzDecodeSaved(f *testing.F) {
	data, err := aSaved().encode()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := decodeSaved(data)
		if err != nil {
			return
		}
		_ = x.check() // must not panic
		again, err := x.encode()
		require.NoError(t, err)
		require.Equal(t, data, again)
	})
}
