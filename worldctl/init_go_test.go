package worldctl

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGoProgramsOutsideOfTheModule makes the template a module of its own, with all Go
// examples of the packages and of docs/go.md beside it: they compile, and the program
// does what its README says. It reads no more modules than go mod tidy of the checkout.
func TestGoProgramsOutsideOfTheModule(t *testing.T) {
	t.Parallel()
	checkout, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "desk")
	require.Zero(t, run(t.Context(), Options{}, []string{"init", dir, "--template", "go"}, nil, io.Discard, io.Discard))
	require.NoDirExists(t, filepath.Join(dir, ".world"))
	lines, shown := 0, ""
	files, err := filepath.Glob(filepath.Join(dir, "*.*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		shown += string(text)
		if strings.HasSuffix(file, ".go") {
			lines += strings.Count(string(text), "\n")
		}
	}
	require.LessOrEqual(t, lines, 120)
	examples, err := filepath.Glob(filepath.Join(checkout, "*", "example*_test.go"))
	require.NoError(t, err)
	deeper, err := filepath.Glob(filepath.Join(checkout, "*", "*", "example*_test.go"))
	require.NoError(t, err)
	for _, file := range append(examples, deeper...) {
		if pkg := filepath.Base(filepath.Dir(file)); pkg != "examples" {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			shown += string(text)
			require.NoError(t, os.MkdirAll(filepath.Join(dir, pkg), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, pkg, filepath.Base(file)), text, 0o600))
		}
	}
	docs, err := os.ReadFile(filepath.Join(checkout, "docs", "go.md"))
	require.NoError(t, err)
	for i, block := range strings.Split(string(docs), "```") {
		if i%2 == 1 {
			_, code, _ := strings.Cut(block, "\n")
			require.Contains(t, shown, code, "docs/go.md shows what the template has, or an example")
		}
	}
	do := func(program string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK="+filepath.Join(dir, "go.work"), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %s: %s", program, args, out)
	}
	// In a workspace the checkout's packages are those that its own tests have in the cache of builds. There go looks for
	// packages in one more module, which has none that is needed.
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "none"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "none", "go.mod"), []byte("module google.golang.org/genproto\n"), 0o600))
	do("go", "work", "init", ".", checkout)
	do("go", "work", "edit", "-replace", "google.golang.org/genproto=./none", "-replace", modulePath+"@v0.0.0="+checkout)
	do("go", "vet", "./...")
	do("go", "test", ".")
	desk := filepath.Join(dir, "desk")
	do("go", "build", "-o", desk, ".")
	do(desk, "init")
	do(desk, "send", "ticket.opened", `{"id": "7", "text": "no tea"}`)
	do(desk, "run", "--until-idle")
	do(desk, "verify")
	sent, err := os.ReadFile(filepath.Join(dir, "letters.txt"))
	require.NoError(t, err)
	require.Equal(t, "We have got it: no tea\n", string(sent))
}

func TestGoModRequiresWhatThisProgramIs(t *testing.T) {
	for want, m := range map[string]debug.Module{
		"\nrequire " + modulePath + " v1.2.3\n":                          {Path: modulePath, Version: "v1.2.3"},
		"\n// worldctl was built from a checkout: go mod edit -replace ": {Path: modulePath, Version: "(devel)"},
		"require " + modulePath + " v0.0.0\n":                            {Path: modulePath, Version: "v1.2.3+dirty"},
		"\nreplace " + modulePath + " => /there\n":                       {Path: modulePath, Replace: &debug.Module{Path: "/there"}},
	} {
		require.Contains(t, goMod(&debug.BuildInfo{Main: m}), want)
		require.Contains(t, goMod(&debug.BuildInfo{Main: debug.Module{Path: "desk"}, Deps: []*debug.Module{&m}}), want)
	}
	require.Contains(t, goMod(nil), "checkout")
}
