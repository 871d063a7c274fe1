package source

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// The text of a module that was released goes into manifests everywhere: whoever changes
// it changes what a proposal of the same files brings. It should be meant.
func TestModulesOfTheLibraryAreWhatTheyWere(t *testing.T) {
	text, err := libraryModule("@agent/v1")
	require.NoError(t, err)
	require.Equal(t, "14762ce1f9db98aebed119a5f38f052f220e5b128cf4831815beba8e69a3e557", canon.Sum(text).String())
	_, err = libraryModule("@agent/v2")
	require.EqualError(t, err, `worldctl has no such module as "@agent/v2"; there are: @agent/v1`)
	for _, name := range []string{"@", "@agent", "@../library/agent/v1", "@agent/v1.star"} {
		_, err = libraryModule(name)
		require.ErrorIs(t, err, errNoLibrary, name)
	}
}

func TestAModuleOfTheLibraryIsPartOfTheManifest(t *testing.T) {
	loaded, err := load(loadingFiles(map[string]string{
		"a.star": "load(\"@agent/v1\", \"agent\")\ndef reduce(ctx, state, event):\n    return agent(ctx, state, event)\n",
	}), "world.yaml")
	require.NoError(t, err)
	text, err := libraryModule("@agent/v1")
	require.NoError(t, err)
	require.Equal(t, text, loaded.Contents[loaded.Manifest.Reducers["a"].Modules["@agent/v1"]])
}
