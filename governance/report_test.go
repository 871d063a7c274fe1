package governance

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// filled sets all that a value holds to something other than zero; of lists one item.
func filled(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			filled(v.Index(i))
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetUint(7)
	}
}

func fullReport() *Report {
	r := new(Report)
	filled(reflect.ValueOf(r).Elem())
	return r
}

func TestReportOfNoDifferenceIsNoOp(t *testing.T) {
	r := fullReport()
	r.Counts, r.Divergence, r.CostIs = Counts{}, nil, r.CostWas
	require.True(t, r.NoOp(), "on whatever it ran")
	require.True(t, new(Report).NoOp())
}

// A count that comes with a new kind of difference counts here, too.
func TestEveryDifferenceIsNotNoOp(t *testing.T) {
	for i := range reflect.TypeFor[Counts]().NumField() {
		r := new(Report)
		reflect.ValueOf(&r.Counts).Elem().Field(i).SetUint(1)
		require.False(t, r.NoOp(), reflect.TypeFor[Counts]().Field(i).Name)
	}
	for _, cost := range []string{"CostWas", "CostIs"} {
		of := reflect.ValueOf(Report{}).FieldByName(cost).Type()
		for i := range of.NumField() {
			r := new(Report)
			reflect.ValueOf(r).Elem().FieldByName(cost).Field(i).SetUint(1)
			require.False(t, r.NoOp(), cost+"."+of.Field(i).Name)
		}
	}
	require.False(t, (&Report{Divergence: new(Divergence)}).NoOp())
}

// Every list has its count, by the name that people see.
func TestEveryListOfAReportIsCounted(t *testing.T) {
	names := make(map[string]bool)
	for i := range reflect.TypeFor[Counts]().NumField() {
		names[reflect.TypeFor[Counts]().Field(i).Tag.Get("json")] = true
	}
	for i := range reflect.TypeFor[Report]().NumField() {
		if f := reflect.TypeFor[Report]().Field(i); f.Type.Kind() == reflect.Slice {
			require.True(t, names[f.Tag.Get("json")], f.Name)
		}
	}
}

func TestReportIsWhatItsBytesSay(t *testing.T) {
	r := fullReport()
	r.V = 0
	data, err := r.Encode()
	require.NoError(t, err)
	back, err := DecodeReport(data)
	require.NoError(t, err)
	require.Equal(t, r, back)
	hash, err := r.Hash()
	require.NoError(t, err)
	require.Equal(t, canon.Sum(data), hash)
	require.NoError(t, canon.Valid(data))
}

// An approval binds the hash: whatever a report says is in it.
func TestEveryFieldOfAReportIsInItsHash(t *testing.T) {
	none, err := new(Report).Hash()
	require.NoError(t, err)
	seen := map[Hash]string{none: "nothing"}
	var each func(v reflect.Value, name string, r *Report)
	each = func(v reflect.Value, name string, r *Report) {
		if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				each(v.Field(i), name+"."+v.Type().Field(i).Name, r)
			}
			return
		}
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		filled(v)
		hash, err := r.Hash()
		require.NoError(t, err)
		if name != ".V" { // Encode sets it
			require.Empty(t, seen[hash], name)
			seen[hash] = name
		}
		v.Set(was)
	}
	r := new(Report)
	each(reflect.ValueOf(r).Elem(), "", r)
	require.Greater(t, len(seen), 30)
}

func TestReportOfAnotherVersionIsRefused(t *testing.T) {
	for _, v := range []uint64{0, reportVersion + 1} {
		r := fullReport()
		r.V = v
		data, err := canon.Marshal(r)
		require.NoError(t, err)
		_, err = DecodeReport(data)
		require.Error(t, err, "version %d", v)
	}
}

// Scripts read a report by these names.
func TestReportPrintsAsTheCommandSays(t *testing.T) {
	text, err := json.Marshal(fullReport())
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(text, &got))
	for _, name := range []string{
		"base", "candidate", "from", "events", "first_divergence", "cells_changed", "intents_new", "intents_gone",
		"decisions_changed", "events_new", "events_gone", "failed", "refused", "unknown", "cost_was", "cost_is",
	} {
		require.Contains(t, got, name)
	}
	require.NotContains(t, got, "v")
}

func FuzzDecodeReport(f *testing.F) {
	for _, r := range []*Report{{}, fullReport()} {
		data, err := r.Encode()
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeReport(data)
		if err != nil {
			return
		}
		back, err := r.Encode()
		require.NoError(t, err)
		require.Equal(t, data, back)
		hash, err := r.Hash()
		require.NoError(t, err)
		require.Equal(t, canon.Sum(data), hash)
	})
}

// hostile announces more items than there are bytes in the world.
var hostile = []byte{0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}

func TestHostileSizesAreRefused(t *testing.T) {
	for _, head := range []byte{0x9b, 0xbb, 0x5b, 0x7b} { // of an array, a map, bytes and text
		data := append([]byte{head}, hostile[1:]...)
		_, err := DecodeReport(data)
		require.Error(t, err)
		require.Error(t, new(Proposals).UnmarshalCBOR(data))
	}
}
