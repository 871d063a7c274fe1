package source

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// The text of a module that was released goes into manifests everywhere: whoever changes
// it changes what a proposal of the same files brings. It should be meant.
func TestModulesOfTheLibraryAreWhatTheyWere(t *testing.T) {
	for name, sum := range map[string]string{
		"@agent/v1":    "14762ce1f9db98aebed119a5f38f052f220e5b128cf4831815beba8e69a3e557",
		"@grid/v1":     "d71341d7b825c45653d075629bd6aae84ddfc0ce55d464ad6d05d0f63f1e5bed",
		"@network/v1":  "937a15e1407549160e461175ed6a7dc49a398527f379c44ad895424ac8b174b6",
		"@random/v1":   "f0eb2eb7bfc10281daaeaf1124c7b6dc3adef921556a36676e7c27a059d4dc53",
		"@schedule/v1": "84c37e3f4b3db119508ad3a772e24f7f6434209f0804ba79694ac2edd314a05e",
	} {
		text, err := libraryModule(name)
		require.NoError(t, err)
		require.Equal(t, sum, canon.Sum(text).String(), name)
	}
	_, err := libraryModule("@agent/v2")
	require.EqualError(t, err, `worldctl has no such module as "@agent/v2"; there are: @agent/v1, @grid/v1, @network/v1, @random/v1, @schedule/v1`)
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
