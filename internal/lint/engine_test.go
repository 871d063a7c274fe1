package lint

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The three files of a made-up engine: a program is a text, and every step appends it to the state.
const (
	madeUpEngine = `package upper

import (
	"bytes"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
)

type Engine struct{}

func (Engine) Versions() []string { return []string{"upper/1"} }

func (Engine) Compile(_ string, code reducer.Code) (reducer.Program, error) {
	text := bytes.TrimSpace(code.Source)
	if !bytes.Equal(text, bytes.ToUpper(text)) {
		return nil, &reducer.SyntaxError{File: code.File, Line: 1, Column: 1, Msg: fmt.Sprintf("%q is not upper case", text)}
	}
	return program(text), nil
}

type program string

func (p program) Start(reducer.Setting, *reducer.Bounds) (reducer.Reducer, reducer.Used, error) {
	return p, reducer.Used{}, nil
}

func (p program) Reduce(in *reducer.Input, out *reducer.Output) error {
	was := ""
	if len(in.State) > 0 {
		if err := canon.Unmarshal(in.State, &was); err != nil {
			return err
		}
	}
	out.State = canon.AppendText(out.State, was+string(p))
	return nil
}
`
	starRow  = "{name: EngineStarlark, code: true}"
	upperRow = starRow + `, {name: "upper", code: true}`

	starEngine  = "manifest.EngineStarlark: star.Engine{},"
	upperEngine = starEngine + "\n\t\t\"upper\": upper.Engine{},"
	starImport  = `"github.com/worldkernel/worldkernel/reducer/star"`
	upperImport = starImport + "\n\t" + `"github.com/worldkernel/worldkernel/reducer/upper"`
)

// TestAnotherEngineIsThreeFiles: with a package, its row in the table of engines and its name in the
// manifest's, the whole program runs worlds of another engine, and tells what is wrong with its code.
func TestAnotherEngineIsThreeFiles(t *testing.T) {
	if os.Getenv("NIGHTLY") == "" {
		t.Skip("it builds the program anew: NIGHTLY=1")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	changed := func(name string, pairs ...string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		for i := 0; i < len(pairs); i += 2 {
			require.Equal(t, 1, strings.Count(string(text), pairs[i]), "%s: %s", name, pairs[i])
		}
		return put(name, strings.NewReplacer(pairs...).Replace(string(text)))
	}
	files := map[string]string{
		"reducer/upper/upper.go": put("upper.go", madeUpEngine),
		"manifest/engines.go":    changed("manifest/engines.go", starRow, upperRow),
	}
	files["reducer/engines/engines.go"] = changed("reducer/engines/engines.go", starEngine, upperEngine, starImport, upperImport)
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for name, file := range files {
		overlay.Replace[filepath.Join(root, name)] = file
	}
	b, err := json.Marshal(overlay)
	require.NoError(t, err)
	program := filepath.Join(dir, "worldctl")
	run := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("go", "build", "-overlay", put("overlay.json", string(b)), "-o", program, "./cmd/worldctl")
	require.NoError(t, err, out)

	world := filepath.Dir(put("world/world.yaml", `world: town
version: 1
events: {hello: {}}
routing: [{event: hello, reducer: shout, key: "'a'"}]
reducers: {shout: {source: shout.txt, engine: upper}}
`))
	put("world/shout.txt", "hey\n")
	out, err = run(program, "validate", filepath.Join(world, "world.yaml"))
	require.Error(t, err)
	require.Contains(t, out, `shout.txt:1:1: "hey" is not upper case`)
	put("world/shout.txt", "HEY\n")
	for _, line := range []string{"init " + world, "send hello", "send hello", "run", "verify", "manifest show", "cell show shout/a"} {
		out, err = run(program, append([]string{"-w", world}, strings.Fields(line)...)...)
		require.NoError(t, err, "%s: %s", line, out)
	}
	require.Contains(t, out, "HEYHEY")
	out, err = run(program, "version")
	require.NoError(t, err)
	require.Contains(t, out, "upper/1")
}
