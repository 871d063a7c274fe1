package worldctl

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestADoctorSaysWhatChangesRacesAndRunsAgain of an agent, and asks no provider, makes no world, and leaves nothing.
func TestADoctorSaysWhatChangesRacesAndRunsAgain(t *testing.T) {
	provider := newAnswers(t)
	dir, temporary := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	t.Setenv("TMPDIR", temporary)
	self, err := os.Executable()
	require.NoError(t, err)
	claude := filepath.Join(temporary, "claude")
	require.NoError(t, os.Symlink(self, claude))
	examined := func(texts, program string) (code int, a agentReport, errs string) {
		t.Helper()
		t.Setenv(askerEnv, texts+" "+filepath.Join(temporary, "answer"))
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), released(), []string{"agent", "doctor", "-o", "json", "--", program}, strings.NewReader(""), &stdout, &stderr)
		if stdout.Len() > 0 {
			require.NoError(t, json.Unmarshal(stdout.Bytes(), &a))
		}
		return code, a, stderr.String()
	}
	code, a, errs := examined("offers,now,two", self)
	require.Equal(t, exitVerify, code, errs)
	require.Contains(t, errs, "1 request of the second run would not be recognized")
	require.Contains(t, errs, "turns after the first were not seen")
	require.Len(t, a.Requests, 3)
	for i, differs := range [][]string{{}, {"/messages/0/content"}, {}} {
		r := a.Requests[i]
		require.Equal(t, differs, r.Differs)
		require.Equal(t, len(differs) == 0, r.Recognized)
		require.Empty(t, r.Beside)
	}
	require.Equal(t, []toolReport{{"Bash", "answers: the agent has no hooks", "runs again"}, {"Read", "answers: the agent has no hooks", "runs again"}}, a.Tools)

	code, a, errs = examined("offers,pair", claude)
	require.Zero(t, code, errs)
	require.Equal(t, [][]int{{}, {3}, {2}}, [][]int{a.Requests[0].Beside, a.Requests[1].Beside, a.Requests[2].Beside})
	require.Equal(t, []toolReport{{"Bash", "hooks", "is not repeated; in doubt if it was under way"}, {"Read", "hooks", "runs again: it only reads"}}, a.Tools)

	code, _, errs = examined("hook:Bash", "true")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "nothing of the agent reached the gateway")
	require.Empty(t, provider.asked)
	requireEmptyDir(t, dir)
	left, err := filepath.Glob(filepath.Join(temporary, "worldctl-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func requireEmptyDir(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
