package worldctl

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
)

// TestWhatInitSaysToTypeWorks sends the event that init names.
func TestWhatInitSaysToTypeWorks(t *testing.T) {
	for _, name := range examples.Names() {
		dir := filepath.Join(t.TempDir(), name)
		code, _, said := inProcess(t.Context(), "init", dir, "--template", name)
		require.Equal(t, exitOK, code, said)
		if name == "go" { // sends nothing: TestGoProgramsOutsideOfTheModule does what it says
			require.Contains(t, said, "go run . init")
			continue
		}
		line := regexp.MustCompile(`worldctl -w \S+ send (\S+) ('.*'|< .*)\n`).FindStringSubmatch(said)
		require.NotNil(t, line, said)
		if line[1] == "-" {
			require.FileExists(t, strings.TrimPrefix(line[2], "< "))
			continue
		}
		code, _, said = inProcess(t.Context(), "-w", dir, "send", line[1], strings.Trim(line[2], "'"))
		require.Equal(t, exitOK, code, said)
	}
}

// TestDemoNamesARecordWithCauses holds the Makefile's demo to a record that
// shows what why is good for.
func TestDemoNamesARecordWithCauses(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	record := regexp.MustCompile(`worldctl .* why (\d+)`).FindSubmatch(makefile)
	require.NotNil(t, record)
	dir := townSent(t)
	worldctl(t, nil, "-w", dir, "run")
	causes := string(worldctl(t, nil, "-w", dir, "why", string(record[1]), "-o", "jsonl"))
	require.Greater(t, strings.Count(causes, "\n"), 5, causes)
	require.Contains(t, strings.SplitN(causes, "\n", 2)[0], "invocation.finished")
}
