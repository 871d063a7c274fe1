package worldctl

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// toucher is a world whose one effect has a program touch a file.
func toucher(t *testing.T, file string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "toucher")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, text := range map[string]string{
		"world.yaml": fmt.Sprintf(`world: toucher
version: 1
reducers:
  asker: {engine: starlark, source: asker.star, grants: [any]}
events:
  asked: {}
effects:
  touch: {adapter: exec, config: {program: sh, args: ["-c", "touch %s; echo true"]}}
caps:
  any: {type: any, params: {kinds: ["*"]}}
policies:
  - {name: all, when: 'true', decide: allow}
routing:
  - {event: asked, reducer: asker, key: '"one"'}
`, file),
		"asker.star": "def reduce(ctx, state, event):\n    if event.name == \"asked\":\n        ctx.effect(\"touch\", {})\n    return {}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func typed(t *testing.T, args ...string) string {
	t.Helper()
	code, out, said := inProcess(t.Context(), args...)
	require.Equal(t, exitOK, code, "%v: %s", args, said)
	return out
}

// proposeTouch proposes, shadows and approves that the world's program touches another file.
func proposeTouch(t *testing.T, dir, now, next string) {
	t.Helper()
	path := filepath.Join(dir, "world.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), now, next)), 0o600))
	typed(t, "-w", dir, "propose", "-m", "another program")
}

func approveIt(t *testing.T, dir, proposal string) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	typed(t, "keys", "new", "--approver", key)
	code, _, said := inProcess(t.Context(), "-w", dir, "shadow", proposal)
	require.Equal(t, exitFailed, code, "no record says what the other program answers: %s", said)
	typed(t, "-w", dir, "approve", proposal, "--key", key)
}

func awaitFile(t *testing.T, file string) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, time.Minute, 10*time.Millisecond, file)
}

// TestRulesOverHTTPStartNoProgram that the server was not started with, though tokens are good for all that puts
// rules in force; whoever runs the server may have it started.
func TestRulesOverHTTPStartNoProgram(t *testing.T) {
	files := t.TempDir()
	first, second, third := filepath.Join(files, "first"), filepath.Join(files, "second"), filepath.Join(files, "third")
	dir := toucher(t, first)
	typed(t, "init", dir, "--id", "w")
	s := startServe(t, dir, "--forks", files)
	ask := func() {
		t.Helper()
		status, answer := s.ask("POST", "/api/worlds/w/events", `{"event": "asked"}`)
		require.Equal(t, http.StatusCreated, status, answer)
	}
	ask()
	awaitFile(t, first) // as it was when the server started

	proposeTouch(t, dir, first, second)
	approveIt(t, dir, "p1")
	status, answer := s.ask("POST", "/api/worlds/w/proposals/p1/apply", "{}")
	require.Equal(t, http.StatusForbidden, status, answer)
	require.Contains(t, answer, "urn:worldkernel:problem:not-trusted")
	require.Contains(t, answer, "/effects/touch/config: it needs the program sh, and there is no trust file")
	status, answer = s.ask("POST", "/api/worlds/w/fork", `{"id": "f", "effects": "hold", "patch": `+patchOf(t, dir)+`}`)
	require.Equal(t, http.StatusForbidden, status, answer)
	require.NoDirExists(t, filepath.Join(files, "f"))
	ask()
	typed(t, "-w", dir, "apply", "p1")
	ask()
	awaitFile(t, second)

	proposeTouch(t, dir, second, third)
	approveIt(t, dir, "p2")
	require.Equal(t, exitInterrupted, s.end())

	trusted := filepath.Join(files, "trust")
	require.NoError(t, os.WriteFile(trusted, []byte("kind touch\nadapter exec\nprogram sh -c *\n"), 0o600))
	s = startServe(t, dir, "--trust", trusted)
	status, answer = s.ask("POST", "/api/worlds/w/proposals/p2/apply", "{}")
	require.Equal(t, http.StatusOK, status, answer)
	ask()
	awaitFile(t, third)
}

func patchOf(t *testing.T, dir string) string {
	t.Helper()
	_, out, said := inProcess(t.Context(), "-w", dir, "diff", "head", filepath.Join(dir, "world.yaml"), "--patch") // 1: they differ
	require.NotEmpty(t, out, said)
	return out
}

// TestANodePerformsWhatItsFileTrusts: what it does not waits, with the reason in the log and on the intent, and is in
// doubt neither then nor when the node ends; a node with the file performs it, once.
func TestANodePerformsWhatItsFileTrusts(t *testing.T) {
	files := t.TempDir()
	file := filepath.Join(files, "touched")
	t.Setenv("WORLDCTL_STORE", pgtest.URL(t))
	t.Setenv("WORLDCTL_PASSPHRASE", "open")
	t.Setenv("HOME", files)
	dir := toucher(t, file)
	typed(t, "store", "init")
	typed(t, "init", "w", "--from", dir)
	typed(t, "-w", "w", "send", "asked", "{}")
	s := startServe(t, "--node", "one", "--copies", filepath.Join(files, "copies"))
	line := s.await("they are not trusted")
	require.Contains(t, line, "kind=touch")
	require.Contains(t, line, "it needs the program sh, and there is no trust file")
	require.Eventually(t, func() bool { // permitted, with the reason on it: of what is performed it has none
		status, answer := s.ask("GET", "/api/worlds/w/intents", "")
		return status == http.StatusOK && strings.Contains(answer, `"in_flight"`) &&
			strings.Contains(answer, "it is not performed here, and waits: ") && strings.Contains(answer, "there is no trust file")
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, exitInterrupted, s.end())
	require.NoFileExists(t, file)
	left := typed(t, "-w", "w", "intent", "list", "-o", "json")
	require.NotContains(t, left, "in_doubt")
	require.NotContains(t, left, "committed")

	trusted := filepath.Join(files, "trust")
	require.NoError(t, os.WriteFile(trusted, []byte("kind touch\nadapter exec\nprogram sh -c *\n"), 0o600))
	s = startServe(t, "--node", "one", "--copies", filepath.Join(files, "copies"), "--trust", trusted)
	awaitFile(t, file)
	require.Equal(t, exitInterrupted, s.end())
}
