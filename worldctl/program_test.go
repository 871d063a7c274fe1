package worldctl

import (
	"bufio"
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/owner"
)

// TestHintsNameTheProgram: what a program of one's own tells people to type is itself.
func TestHintsNameTheProgram(t *testing.T) {
	opts := released()
	opts.program = "desk"
	typed := func(args ...string) (out, said string) {
		var stdout, stderr bytes.Buffer
		run(t.Context(), opts, args, strings.NewReader(""), &stdout, &stderr)
		return stdout.String(), stderr.String()
	}
	dir := filepath.Join(t.TempDir(), "w")
	_, said := typed("-w", dir, "status")
	require.Contains(t, said, "hint: desk init "+dir)
	_, said = typed("init", dir)
	require.Contains(t, said, "desk -w "+dir+" run")
	_, said = typed("-w", dir, "cell", "show", "nobody")
	require.Contains(t, said, "hint: desk -w "+dir+" cell list")
	_, said = typed("-w", dir, "nonsense")
	require.Contains(t, said, "hint: type desk --help")
	out, _ := typed("send", "--help")
	require.Contains(t, out, "desk send ticket.opened")
	require.NotContains(t, out, "worldctl")
	out, _ = typed("serve", "--help")
	require.Contains(t, out, "see desk token")
}

// TestBytesAreNotShownOnATerminal: a terminal would take them for its commands.
func TestBytesAreNotShownOnATerminal(t *testing.T) {
	dir := newCounter(t, "w")
	for format, code := range map[string]int{"bundle": exitUsage, "jsonl": exitOK} {
		var stdout, stderr bytes.Buffer
		c := &cli{
			args: []string{"-w", dir, "export", "-", "--format", format}, origin: owner.Origin{Width: 80},
			stdin: strings.NewReader(""), stdout: bufio.NewWriter(&stdout), stderr: &stderr,
		}
		require.Equal(t, code, c.execute(t.Context()), format)
		require.Equal(t, code == exitOK, stdout.Len() > 0, format)
		if code != exitOK {
			require.Contains(t, stderr.String(), "hint: worldctl -w "+dir+" export FILE --format "+format)
		}
	}
}
