package star

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.starlark.net/starlark"
)

// TestTablesAreTheLibrarys fails where the library lays out its dicts and sets in
// another way than table.go reads them.
func TestTablesAreTheLibrarys(t *testing.T) {
	for _, v := range []reflect.Type{reflect.TypeFor[starlark.Dict](), reflect.TypeFor[starlark.Set]()} {
		require.Equal(t, 1, v.NumField(), "%s holds nothing but its table", v)
		alike(t, v.Field(0).Type, reflect.TypeFor[table](), make(map[reflect.Type]bool))
	}
}

// alike requires that the fields of a type of ours lie where those of the library's lie,
// and hold the same.
func alike(t *testing.T, theirs, ours reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	require.Equal(t, theirs.Kind(), ours.Kind(), "%s and %s", theirs, ours)
	if seen[ours] {
		return
	}
	seen[ours] = true
	switch ours.Kind() {
	case reflect.Struct:
		for i := range ours.NumField() {
			require.Equal(t, theirs.Field(i).Offset, ours.Field(i).Offset, "%s and %s", theirs, ours)
			alike(t, theirs.Field(i).Type, ours.Field(i).Type, seen)
		}
	case reflect.Array:
		require.Equal(t, theirs.Len(), ours.Len())
		require.Equal(t, theirs.Elem().Size(), ours.Elem().Size())
		alike(t, theirs.Elem(), ours.Elem(), seen)
	case reflect.Slice, reflect.Pointer:
		alike(t, theirs.Elem(), ours.Elem(), seen)
	case reflect.Interface:
		require.Equal(t, theirs, ours)
	}
}

func TestTableTellsWhatADictHolds(t *testing.T) {
	d := starlark.NewDict(0)
	for i := range 1000 {
		require.NoError(t, d.SetKey(starlark.MakeInt(i), starlark.None))
	}
	x, found := tableOf(d), 0
	require.EqualValues(t, d.Len(), x.len)
	for i := range x.buckets {
		for b := &x.buckets[i]; b != nil; b = b.next {
			for _, e := range b.entries {
				if e.hash != 0 {
					found++
				}
			}
		}
	}
	require.Equal(t, d.Len(), found)
}
