package source

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

const loadingWorld = `world: w
reducers:
  a: {engine: starlark, source: a.star, params: {greeting: hi, share: 0.5}}
  b: {engine: starlark, source: a.star, params: {greeting: ho}}
events: {x: }
`

const loadingStar = "load(\"lib/f.star\", \"f\")\ndef reduce(ctx, state, event):\n    return f(state)\n"

func loadingFiles(more map[string]string) fstest.MapFS {
	all := fstest.MapFS{
		"world.yaml": {Data: []byte(loadingWorld)}, "a.star": {Data: []byte(loadingStar)},
		"lib/f.star": {Data: []byte("load(\"lib/g.star\", \"g\")\ndef f(x):\n    return g\n")},
		"lib/g.star": {Data: []byte("g = 1\n")},
	}
	for name, text := range more {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

func TestModulesArePartOfTheManifest(t *testing.T) {
	files := loadingFiles(nil)
	loaded, err := load(files, "world.yaml")
	require.NoError(t, err)
	a, b := loaded.Manifest.Reducers["a"], loaded.Manifest.Reducers["b"]
	require.Equal(t, map[string]manifest.Hash{
		"lib/f.star": canon.Sum(files["lib/f.star"].Data), "lib/g.star": canon.Sum(files["lib/g.star"].Data),
	}, a.Modules)
	require.Equal(t, a.Modules, b.Modules)
	require.Equal(t, a.Source, b.Source)
	require.JSONEq(t, `{"greeting": "hi", "share": 0.5}`, toJSON(t, a.Params))
	require.JSONEq(t, `{"greeting": "ho"}`, toJSON(t, b.Params))
	require.ElementsMatch(t, slices.Collect(maps.Keys(loaded.Contents)), loaded.Manifest.Contents())
	require.Len(t, loaded.Contents, 3)

	bare, err := load(files, "world.yaml", WithoutCode())
	require.NoError(t, err)
	require.Equal(t, loaded, bare)

	next, err := load(loadingFiles(map[string]string{"lib/g.star": "g = 2\n"}), "world.yaml")
	require.NoError(t, err)
	changes := manifest.Changes(loaded.Manifest, next.Manifest, nil)
	require.Len(t, changes, 2)
	require.Equal(t, "/reducers/a/modules/lib~1g.star", changes[0].Path)
	require.Contains(t, changes[0].Text, "other code: ")
}

func TestFaultsOfModulesCarryTheirPlace(t *testing.T) {
	for name, x := range map[string]struct {
		files map[string]string
		want  string
	}{
		"missing":    {map[string]string{"lib/f.star": "\nload(\"lib/none.star\", \"f\")\n"}, `lib/f.star:2:6: there is no file "lib/none.star"`},
		"outside":    {map[string]string{"lib/f.star": "load(\"../f.star\", \"f\")\n"}, `lib/f.star:1:6: "../f.star" is not the path of a file`},
		"a secret":   {map[string]string{"lib/f.star": "load(\".world/secrets/KEY\", \"f\")\n", ".world/secrets/KEY": "f = 1\n"}, `lib/f.star:1:6: ".world/secrets/KEY" is not the path of a file`},
		"unclean":    {map[string]string{"a.star": "load(\"./lib/f.star\", \"f\")\n"}, `a.star:1:6: "./lib/f.star" is not the path`},
		"a circle":   {map[string]string{"lib/g.star": "load(\"lib/f.star\", \"f\")\n"}, `lib/g.star:1:6: "lib/f.star" is loaded in a circle: a.star loads lib/f.star loads lib/g.star loads lib/f.star`},
		"no code":    {map[string]string{"lib/g.star": "g = \n"}, "lib/g.star:1:5: "},
		"no program": {map[string]string{"a.star": "load(\"lib/f.star\", \"f\")\n"}, "a.star:1:1: the program does not define reduce"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(loadingFiles(x.files), "world.yaml")
			require.ErrorContains(t, err, x.want)
		})
	}
}

// A link that leads out of the directory leads nowhere.
func TestModulesStayInTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "g.star"), []byte("g = 1\n"), 0o600))
	at := filepath.Join(dir, "world")
	for name, file := range loadingFiles(nil) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(at, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(at, name), file.Data, 0o600))
	}
	_, err := Load(filepath.Join(at, "world.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(at, "lib", "g.star")))
	require.NoError(t, os.Symlink(filepath.Join("..", "..", "g.star"), filepath.Join(at, "lib", "g.star")))
	_, err = Load(filepath.Join(at, "world.yaml"))
	require.ErrorContains(t, err, "lib/f.star:1:6: ")
}

// TestFilesThatAreReadAreNamed also where one is not there, or does not compile.
func TestFilesThatAreReadAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		more map[string]string
		want []string
	}{
		"all is well":     {nil, []string{"a.star", "lib/f.star", "lib/g.star"}},
		"it is broken":    {map[string]string{"lib/g.star": "g ="}, []string{"a.star", "lib/f.star", "lib/g.star"}},
		"it is not there": {map[string]string{"lib/f.star": `load("lib/none.star", "g")`}, []string{"a.star", "lib/f.star", "lib/none.star"}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(map[string]bool)
			_, err := load(loadingFiles(c.more), "world.yaml", WithOpened(func(name string) { seen[name] = true }))
			require.Equal(t, c.more != nil, err != nil, "%v", err)
			require.ElementsMatch(t, c.want, slices.Collect(maps.Keys(seen)))
		})
	}
}
