package examples_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/llm"
	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/host/outside"
	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/world/local"
)

func TestEveryExampleIsDescribedAndValid(t *testing.T) {
	require.Equal(t, []string{"agent", "commons", "counter", "elfarol", "gateway", "go", "research", "schelling", "sir", "support", "town", "ville", "wealth"}, examples.Names())
	for _, name := range examples.Names() {
		t.Run(name, func(t *testing.T) {
			require.NotEmpty(t, examples.Describe(name))
			dir := filepath.Join(t.TempDir(), "deep", name)
			require.NoError(t, examples.Copy(name, dir))
			if name == "go" { // its own program knows its reducer
				return
			}
			_, err := local.Load(filepath.Join(dir, local.ManifestFile), local.Options{
				Adapters: map[string]host.Factory{"llm": llm.New, "mcp": mcp.New, "relay": relay.New(nil), "outside": outside.New(nil)},
				Reducers: reducer.Registry{"recorder@1": recorder.New},
			})
			require.NoError(t, err)
		})
	}
}

// The lines that make the agent live do so.
func TestTheAgentIsMadeLiveByThreeLines(t *testing.T) {
	lines := examples.Live("agent")
	require.Len(t, lines, 3)
	dir := filepath.Join(t.TempDir(), "agent")
	require.NoError(t, examples.Copy("agent", dir))
	file := filepath.Join(dir, local.ManifestFile)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	world := strings.Split(string(text), "\n")
	for i, line := range lines {
		mark := fmt.Sprintf("(%d)", i+1)
		at := slices.IndexFunc(world, func(s string) bool { return strings.HasSuffix(s, "# "+mark) })
		require.Positive(t, at, mark)
		_, said, _ := strings.Cut(line, mark)
		require.Equal(t, len(world[at])-len(strings.TrimLeft(world[at], " ")), len(said)-len(strings.TrimLeft(said, " ")), "its place in the file")
		world[at] = said
	}
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(world, "\n")), 0o600))
	loaded, err := local.Load(file, local.Options{Adapters: map[string]host.Factory{"llm": llm.New}})
	require.NoError(t, err)
	require.Equal(t, "llm", loaded.Manifest.Effects["model.ask"].Adapter)
	require.Equal(t, "llm", loaded.Manifest.Caps["model"].Type)
}

func TestCopyOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "schemas", "paid.json")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	before := listing(t, dir)

	err := examples.Copy("town", dir)
	require.ErrorIs(t, err, fs.ErrExist)
	var at *fs.PathError
	require.ErrorAs(t, err, &at)
	require.Equal(t, file, at.Path)
	require.Equal(t, before, listing(t, dir))
	mine, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "mine", string(mine))
}

func TestCopyIntoAFileLeavesIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Error(t, examples.Copy("town", file))
	require.Error(t, examples.Copy("town", filepath.Join(file, "below")))
}

func TestUnknownExample(t *testing.T) {
	for _, name := range []string{"", "city", ".", "town/schemas", "../town"} {
		dir := filepath.Join(t.TempDir(), "x")
		require.ErrorIs(t, examples.Copy(name, dir), examples.ErrUnknown, name)
		require.Empty(t, examples.Describe(name))
		_, err := os.Stat(dir)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		out = append(out, path)
		return errors.Join(err)
	}))
	return out
}
