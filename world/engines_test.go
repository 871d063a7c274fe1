package world

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

func TestOtherEnginesAreRefused(t *testing.T) {
	run, err := enginesOf(&manifest.Manifest{})
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
	for _, e := range engines() {
		run, err := enginesOf(&manifest.Manifest{})
		require.NoError(t, err)
		require.Equal(t, e.versions[0], run.Of(e.name), "one that is not named is the first")
		for _, v := range e.versions {
			run, err := enginesOf(&manifest.Manifest{Engines: manifest.Engines{e.name: v}})
			require.NoError(t, err)
			require.Equal(t, v, run.Of(e.name))
		}
		_, err = enginesOf(&manifest.Manifest{Engines: manifest.Engines{e.name: e.name + "/0"}})
		require.ErrorIs(t, err, ErrEngine)
		var missing *manifest.MissingEngineError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, e.name, missing.Name)
		require.Equal(t, e.versions, missing.Carried)
	}
}
