package world

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

func TestOtherEnginesAreRefused(t *testing.T) {
	run, err := programEngines().enginesOf(&manifest.Manifest{})
	require.NoError(t, err)
	require.NoError(t, checkEngines(run, run))
	require.NoError(t, checkEngines(run[:1], run), "one that came later is not named")
	require.NoError(t, checkKernel(KernelVersion))
	require.ErrorIs(t, checkKernel(KernelVersion+"0"), ErrEngine)
	for i := range run {
		for _, change := range []func(*journal.Engine){
			func(e *journal.Engine) { e.Version += "0" },
			func(e *journal.Engine) { e.Name += "0" },
		} {
			other := append(journal.Engines(nil), run...)
			change(&other[i])
			require.ErrorIs(t, checkEngines(other, run), ErrEngine)
		}
	}
}

func TestManifestNamesItsEngines(t *testing.T) {
	for _, e := range programEngines().all {
		run, err := programEngines().enginesOf(&manifest.Manifest{})
		require.NoError(t, err)
		require.Equal(t, e.versions[0], run.Of(e.name), "one that is not named is the first")
		for _, v := range e.versions {
			run, err := programEngines().enginesOf(&manifest.Manifest{Engines: manifest.Engines{e.name: v}})
			require.NoError(t, err)
			require.Equal(t, v, run.Of(e.name))
		}
		_, err = programEngines().enginesOf(&manifest.Manifest{Engines: manifest.Engines{e.name: e.name + "/0"}})
		require.ErrorIs(t, err, ErrEngine)
		var missing *manifest.MissingEngineError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, e.name, missing.Name)
		require.Equal(t, e.versions, missing.Carried)
	}
}

// madeUp is Starlark with a second version beside the first: there is none yet. A program
// that says one says two under it.
type madeUp struct{ star.Engine }

func (m madeUp) Versions() []string { return append(m.Engine.Versions(), "starlark/2") }

func (m madeUp) Compile(version string, code reducer.Code) (reducer.Program, error) {
	if version == "starlark/2" {
		version, code.Source = star.Version, bytes.ReplaceAll(code.Source, []byte("one"), []byte("two"))
	}
	return m.Engine.Compile(version, code)
}

// TestEnginesRunSideBySide: rules that name an engine run on it, whatever newer ones there
// are; others are refused by name; and a new world has the newest.
func TestEnginesRunSideBySide(t *testing.T) {
	source := []byte("def reduce(ctx, state, event):\n    return \"one\"\n")
	blobs := journal.BlobList{{Hash: canon.Sum(source), Bytes: source}}
	says := func(table *engineTable, named manifest.Engines) (string, error) {
		m := manifest.Manifest{
			World: "w", Version: 1, Engines: named,
			Reducers: map[string]manifest.Reducer{"r": {Engine: manifest.EngineStarlark, Source: canon.Sum(source), File: "r.star"}},
		}.WithDefaults()
		r, err := table.compileRules(&m, journal.Hash{}, blobs, nil, nil)
		if err != nil {
			return "", err
		}
		require.Equal(t, named[manifest.EngineStarlark], r.engines.Of(manifest.EngineStarlark))
		var out reducer.Output
		rule := r.reducers["r"]
		require.NoError(t, rule.impl.Reduce(&reducer.Input{Cell: reducer.Cell{Reducer: "r", Key: "a"}, Step: 1, Limits: rule.limits}, &out))
		return string(out.State), nil
	}
	table := newEngineTable(map[string]reducer.Engine{manifest.EngineStarlark: madeUp{}})
	require.Equal(t, manifest.Engines{manifest.EngineStarlark: "starlark/2"}, table.newest())
	require.Empty(t, NewestEngines(), "of one version there is nothing to name")
	for version, want := range map[string]string{star.Version: "one", "starlark/2": "two"} {
		got, err := says(table, manifest.Engines{manifest.EngineStarlark: version})
		require.NoError(t, err)
		require.Contains(t, got, want, version)
	}
	for _, refuses := range []*engineTable{table, programEngines()} {
		_, err := says(refuses, manifest.Engines{manifest.EngineStarlark: "starlark/3"})
		require.ErrorIs(t, err, ErrEngine)
		require.ErrorContains(t, err, "starlark/3")
	}
	_, err := says(programEngines(), manifest.Engines{manifest.EngineStarlark: "starlark/2"})
	require.ErrorIs(t, err, ErrEngine, "a program of before refuses what it does not have")
}
