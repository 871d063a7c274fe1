package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// A line on the page does the same in any shell, wherever that is and whatever the directory
// of the world is called.
func TestLinesCanBePasted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's $HOME; here")
	require.NoError(t, os.Mkdir(dir, 0o700))
	desk, town := made(t, dir, "desk", "support"), made(t, dir, "town", "town")
	s := look(t, dir, "--manual", desk, town)
	tried := make(map[string]bool)
	for _, place := range []string{"", desk + "/inbox", desk + "/timeline", desk + "/conversations", desk + "/records?of=5", desk + "/cells", desk + "/history", desk + "/meters", desk + "/proof", desk + "/compare?a=5&b=8"} {
		at, isOf := strings.CutPrefix(place, desk)
		if isOf {
			at = worldID(t, desk) + at
		}
		s.at("#/" + at)
		s.await(map[bool]string{true: "desk' ", false: "town' status"}[isOf])
		for _, line := range s.lines() {
			if tried[line] {
				continue
			}
			tried[line] = true
			program, err := built()
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
			cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); err != nil {
				require.ErrorAs(t, err, &exit, line)
				require.Contains(t, []int{1, 6}, exit.ExitCode(), "%s: %s", line, out)
			}
		}
	}
	require.Greater(t, len(tried), 10)
	s.at("#/")
	s.await("Worlds\n2\n")
	require.Len(t, s.lines(), 2, "one for each world")
}

// lines returns the lines of worldctl that are shown.
func (s *sight) lines() []string {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("[...document.querySelectorAll('.command code')].map((e) => e.textContent)"))
	require.NoError(s.t, err)
	return found
}

// The page of worldctl serve says nothing of where a world is: others may read it.
func TestPageOfServeTellsNoDirectory(t *testing.T) {
	desk := support(t)
	s := bearing(t, desk, "--scope", "read")
	s.await("Worlds\n1\n")
	s.at("#/" + worldID(t, desk) + "/history")
	s.await("worldctl snapshot list")
	require.NotContains(t, s.text(), filepath.Dir(desk))
}
