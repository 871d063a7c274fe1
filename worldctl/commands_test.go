package worldctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// command is what a script would have a process of its own carry out.
type command struct {
	Dir       string
	Env, Args []string
	Stdin     []byte
}

// carriedOut is what came of a command.
type carriedOut struct {
	Code           int
	Stdout, Stderr []byte
}

// carriesEnv names the environment variable that makes of a worldctl a carrier's process.
const carriesEnv = "WORLDCTL_TEST_CARRIES"

// carryOut is a process that carries out one command after another: to begin costs a process
// more than what most commands of a script do.
func carryOut() {
	debug.SetGCPercent(collectorPercent)
	commands, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr
	for {
		var c command
		err := commands.Decode(&c)
		if errors.Is(err, io.EOF) {
			os.Exit(exitOK)
		}
		os.Clearenv()
		for _, v := range c.Env {
			name, value, _ := strings.Cut(v, "=")
			err = errors.Join(err, os.Setenv(name, value))
		}
		var stdout, stderr bytes.Buffer
		opts := released()
		opts.program = "worldctl"
		if err = errors.Join(err, os.Chdir(c.Dir)); err == nil {
			code := run(context.Background(), opts, c.Args, bytes.NewReader(c.Stdin), &stdout, &stderr)
			err = answers.Encode(carriedOut{code, stdout.Bytes(), stderr.Bytes()})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFailed)
		}
	}
}

// carrier has the commands of one script carried out by one process.
type carrier struct {
	names   []string // in the environment of the script
	stdin   []byte   // of the next command
	process *exec.Cmd
	to      io.WriteCloser
	from    *json.Decoder
}

// carrierOf is the carrier of a script; nil: it starts its processes itself.
func carrierOf(ts *testscript.TestScript) *carrier { return ts.Value("carrier").(*carrier) }

func (c *carrier) begin(env []string) (err error) {
	c.process = exec.Command("worldctl")
	c.process.Env, c.process.Stderr = append(env, carriesEnv+"=1"), os.Stderr
	if c.to, err = c.process.StdinPipe(); err != nil {
		return err
	}
	from, err := c.process.StdoutPipe()
	c.from = json.NewDecoder(from)
	return errors.Join(err, c.process.Start())
}

func (c *carrier) end() error {
	if c == nil || c.process == nil {
		return nil
	}
	return errors.Join(c.to.Close(), c.process.Wait())
}

func (c *carrier) carry(ts *testscript.TestScript, args []string) (did carriedOut) {
	do := command{Dir: ts.MkAbs("."), Args: args, Stdin: c.stdin}
	for _, name := range c.names {
		do.Env = append(do.Env, name+"="+ts.Getenv(name))
	}
	if c.process == nil {
		ts.Check(c.begin(do.Env))
	}
	c.stdin = nil
	ts.Check(json.NewEncoder(c.to).Encode(do))
	ts.Check(c.from.Decode(&did))
	return did
}

// show has a command carried out, and shows what it says.
func (c *carrier) show(ts *testscript.TestScript, args []string) int {
	did := c.carry(ts, args)
	_, _ = ts.Stdout().Write(did.Stdout)
	_, _ = ts.Stderr().Write(did.Stderr)
	return did.Code
}

// carriedLine is what a script says of worldctl in the foreground.
func carriedLine(ts *testscript.TestScript, neg bool, args []string) {
	if code := carrierOf(ts).show(ts, args); neg != (code != exitOK) {
		ts.Fatalf("it exits with %d", code)
	}
}

func feed(ts *testscript.TestScript, _ bool, args []string) {
	carrierOf(ts).stdin = []byte(ts.ReadFile(args[0]))
}

// assign is testscript's env, of which nobody else can ask what is set.
func assign(ts *testscript.TestScript, _ bool, args []string) {
	for _, v := range args {
		name, value, _ := strings.Cut(v, "=")
		ts.Setenv(name, value)
		carrierOf(ts).names = append(carrierOf(ts).names, name)
	}
}

var (
	// passesOn finds who needs a process: it passes on its terminal, or what it prints to.
	passesOn   = regexp.MustCompile(`ttyin|worldctl agent run`)
	foreground = regexp.MustCompile(`(?m)^((?:\[[^\]]+\] )?(?:! )?)exec worldctl( .*[^&\n])$`)
	fed        = regexp.MustCompile(`(?m)^stdin (.*\n(?:! )?(?:carried|exits \d+ worldctl) )`)
	assigned   = regexp.MustCompile(`(?m)^env (\w+=)`)
)

// carriedScripts writes scripts anew, in which one process carries out what the script would have
// processes of their own do in the foreground, and names them. Lines keep their numbers.
func carriedScripts(t *testing.T, files []string) (out []string, names map[string]bool) {
	t.Helper()
	dir := t.TempDir()
	names = make(map[string]bool)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if slices.Contains(racedScripts, name) || passesOn.Match(text) {
			out = append(out, file)
			continue
		}
		script, files, found := strings.Cut(string(text), "\n-- ")
		if found {
			files = "\n-- " + files
		}
		script = foreground.ReplaceAllString(script, "${1}carried$2")
		script = assigned.ReplaceAllString(fed.ReplaceAllString(script, "feed $1"), "assign $1")
		names[name] = true
		out = append(out, filepath.Join(dir, filepath.Base(file)))
		require.NoError(t, os.WriteFile(out[len(out)-1], []byte(script+files), 0o600))
	}
	return out, names
}
