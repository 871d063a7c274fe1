package api_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestExamplesOfTheDocsWork runs what docs/api.md tells its readers to type.
func TestExamplesOfTheDocsWork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the examples are typed with curl")
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/counter")))
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "my-counter"}, local.Options{}))
	w, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })

	text, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, blocks)
	token := typed(t, dir, blocks[0][1]+`printf %s "$TOKEN"`)
	tokens, err := api.ReadTokens(dir + "/tokens")
	require.NoError(t, err)

	s := serve(t, api.Config{Worlds: wrap(w), Tokens: tokens})
	var script strings.Builder
	for _, b := range blocks[1:] {
		script.WriteString(b[1])
	}
	out := typed(t, dir, script.String(), "TOKEN="+token, "SERVER="+s.http.URL)
	require.Contains(t, out, `"state":{"times":1,"total":2}`)
	require.Contains(t, out, `"accepted":2`)
	require.Contains(t, out, "event: event.submitted\n")
	require.Contains(t, out, `"statement":"worldkernel approval v1`)
	require.Contains(t, out, "worldkernel_events_submitted_total")
}

// typed runs a script and returns what it prints.
func typed(t *testing.T, dir, script string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s%s", out, errs.String())
	return string(out)
}
