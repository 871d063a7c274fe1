package worldctl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// client is what is known of a program that is an agent. The zero value: that it heeds its environment.
type client struct {
	asks    bool // by hooks, before each of its own tools; and it opens links for its user
	recalls bool // its hook asks only whether a tool ran before

	pointed func(argv []string, openai string) []string                                // leads to the gateway
	hooked  func(argv []string, program, dir string) ([]string, error)                 // has hooks that ask a program
	servers func(t *toolServers, argv []string, self string) (out []string, err error) // has its servers of tools behind the gateway
}

// clientOf returns what is known of the program of a command.
func clientOf(command []string) client {
	switch program := append(command, "")[0]; strings.TrimSuffix(filepath.Base(program), ".exe") {
	case "claude":
		return client{asks: true, hooked: hookedClaude, servers: (*toolServers).ofClaude}
	case "codex":
		return client{recalls: true, pointed: pointedCodex, hooked: hookedCodex, servers: (*toolServers).ofCodex}
	}
	return client{}
}

// beforeDashes returns the arguments of a command line before "--".
func beforeDashes(argv []string) []string {
	if end := slices.Index(argv, "--"); end >= 0 {
		return argv[:end]
	}
	return argv
}

// hasFlag reports whether a command line has a flag, of any of these names.
func hasFlag(argv []string, names ...string) bool {
	return slices.ContainsFunc(beforeDashes(argv), func(arg string) bool { return slices.Contains(names, arg) })
}

// flagged returns the values of a flag of a command line, each of so many arguments at most, and the command line without them.
func flagged(argv []string, flag string, most int) (values, rest []string) {
	for i := 0; i < len(argv); i++ {
		value, is := strings.CutPrefix(argv[i], flag+"=")
		switch {
		case argv[i] == "--":
			return values, append(rest, argv[i:]...)
		case is:
			values = append(values, value)
		case argv[i] == flag:
			for n := 0; n < most && i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "-"); n++ {
				i++
				values = append(values, argv[i])
			}
		default:
			rest = append(rest, argv[i])
		}
	}
	return values, rest
}

// readGiven reads what a flag of an agent gives: JSON, or the name of a file in the agent's directory.
func readGiven(text, dir string, v any) error {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return json.Unmarshal([]byte(text), v)
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(dir, text)
	}
	return readJSON(text, v)
}

// readJSON reads a file.
func readJSON(file string, v any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return &os.PathError{Op: "read", Path: file, Err: err}
	}
	return nil
}
