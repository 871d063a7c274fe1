package worldctl

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shellLine is a command of a page, with the output that the page shows below it.
type shellLine struct {
	command string
	shown   []string
}

var (
	exitShown = regexp.MustCompile(`exit code (\d+)`)
	frames    = regexp.MustCompile(`[\s│]+`)
)

// commandsOf returns the commands of a block. Lines below a command are its output, but for
// those that go on a line which ends with |.
func commandsOf(block string) (commands []shellLine) {
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(line)
		last := len(commands) - 1
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands = append(commands, shellLine{command: command})
		} else if strings.HasSuffix(commands[last].command, "|") {
			commands[last].command += " " + line
		} else if line != "" {
			commands[last].shown = append(commands[last].shown, line)
		}
	}
	return commands
}

// typePage types commands in one shell, and compares exit codes and output with the page.
func typePage(t *testing.T, dir string, commands []shellLine) {
	t.Helper()
	script := strings.Builder{}
	script.WriteString("exec 2>&1; make() { :; }\n")
	for i, c := range commands {
		fmt.Fprintf(&script, "%s\necho \"@end %d $?\"\n", c.command, i)
	}
	script.WriteString("kill $! 2>/dev/null\n")
	shell := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+racedPath(t), "TMPDIR="+t.TempDir(), "OPENAI_API_KEY=none")
	out, err := shell.CombinedOutput()
	require.NotNil(t, shell.ProcessState, err)
	rest := string(out)
	for i, c := range commands {
		said, after, ended := strings.Cut(rest, fmt.Sprintf("@end %d ", i))
		require.True(t, ended, "%s\n%s", c.command, rest)
		code, next, _ := strings.Cut(after, "\n")
		rest = next
		want := 0
		if m := exitShown.FindStringSubmatch(c.command); m != nil {
			want, err = strconv.Atoi(m[1])
			require.NoError(t, err)
		} else if strings.Contains(strings.Join(c.shown, "\n"), "error: ") {
			want = exitFailed
		}
		require.Equal(t, strconv.Itoa(want), code, "%s\n%s", c.command, said)
		plain := frames.ReplaceAllString(said, " ")
		for _, line := range c.shown {
			require.Contains(t, plain, frames.ReplaceAllString(line, " "), c.command)
		}
	}
}

// TestEveryCommandOfTheStartPagesDoesWhatThePageSays types each page into a shell in an empty
// directory: it writes the files that the page names, runs the commands, and compares the output shown.
func TestEveryCommandOfTheStartPagesDoesWhatThePageSays(t *testing.T) {
	for _, name := range []string{"agent", "world", "simulation"} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath("python3"); err != nil && name == "agent" {
				t.Skip("python3 is not here")
			}
			page, err := os.ReadFile("../docs/start-" + name + ".md")
			require.NoError(t, err)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			_, port, err := net.SplitHostPort(listener.Addr().String())
			require.NoError(t, err)
			require.NoError(t, listener.Close())
			parts := strings.Split(strings.ReplaceAll(string(page), "8099", port), "```")
			dir := filepath.Join(t.TempDir(), "empty")
			require.NoError(t, os.Mkdir(dir, 0o700))
			var commands []shellLine
			for i := 1; i < len(parts); i += 2 {
				language, block, _ := strings.Cut(parts[i], "\n")
				if language == "console" {
					commands = append(commands, commandsOf(block)...)
					continue
				}
				before := strings.TrimSpace(parts[i-1])
				m := regexp.MustCompile("^`([a-z./]+)` ").FindStringSubmatch(before[strings.LastIndex(before, "\n")+1:])
				require.NotNil(t, m, "a block is commands, or a file whose name begins the line above: %s", before)
				commands = append(commands, shellLine{command: fmt.Sprintf("mkdir -p \"$(dirname %[1]s)\"; cat > %[1]s <<'@EOF'\n%[2]s@EOF", m[1], block)})
			}
			typePage(t, dir, commands)
		})
	}
}

// TestReadmeCommandsRun types the README's blocks that need neither an editor nor a key of the run before.
func TestReadmeCommandsRun(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile(`(?m)(?:^    .*\n)+`).FindAllString(string(readme), -1)
	ran := 0
	for _, block := range blocks {
		if !strings.HasPrefix(block, "    $ ") || strings.Contains(block, "KEY") || strings.Contains(block, "$EDITOR") {
			continue
		}
		commands := commandsOf(block)
		if strings.HasPrefix(commands[0].command, "worldctl send counter.added") {
			commands = append([]shellLine{{command: "worldctl init my-counter; cd my-counter"}}, commands...)
		}
		typePage(t, t.TempDir(), commands)
		ran += len(commands)
	}
	require.Greater(t, ran, 20)
}
