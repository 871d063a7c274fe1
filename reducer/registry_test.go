package reducer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

func TestRegistryMakesInstancesOfTheirOwn(t *testing.T) {
	r := reducer.Registry{"counter@1": counter}
	a, err := r.New("counter", "1")
	require.NoError(t, err)
	b, err := r.New("counter", "1")
	require.NoError(t, err)
	require.NotSame(t, a, b)
}

func TestRegistryNamesWhatItLacksAndHas(t *testing.T) {
	r := reducer.Registry{"counter@1": counter, "agent@2": counter}
	var lacks *reducer.MissingError
	r["odd@1"], r["odd@2"], r["odd@3"] = func() reducer.Reducer { return nil }, func() reducer.Reducer { panic("not today") }, nil
	for version, said := range map[string]string{"1": "its factory makes none", "2": "it panicked: not today", "3": "it panicked: runtime error"} {
		_, err := r.New("odd", version)
		require.ErrorContains(t, err, said)
		delete(r, "odd@"+version)
	}
	_, err := r.New("counter", "2")
	require.ErrorAs(t, err, &lacks)
	require.Equal(t, &reducer.MissingError{Reducers: []string{"counter@2"}, Known: []string{"agent@2", "counter@1"}}, lacks)

	m := &manifest.Manifest{Reducers: map[string]manifest.Reducer{
		"a": {Engine: manifest.EngineGo, Name: "counter", Version: "1"}, "s": {Engine: manifest.EngineStarlark},
	}}
	require.NoError(t, r.Lacks(m))
	for _, name := range []string{"x", "y"} {
		m.Reducers[name] = manifest.Reducer{Engine: manifest.EngineGo, Name: "counter", Version: "3"}
	}
	m.Reducers["b"] = manifest.Reducer{Engine: manifest.EngineGo, Name: "agent", Version: "3"}
	require.ErrorAs(t, r.Lacks(m), &lacks)
	require.Equal(t, []string{"agent@3", "counter@3"}, lacks.Reducers)
	require.ErrorAs(t, reducer.Registry(nil).Lacks(m), &lacks)
	require.Empty(t, lacks.Known)
}
