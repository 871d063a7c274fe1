package worldctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/llm"
	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/local"
)

func TestMain(m *testing.M) {
	if asks := os.Getenv(askerEnv); asks != "" && os.Getenv("WORLDKERNEL_AGENT") != "" {
		texts, file, _ := strings.Cut(asks, " ")
		os.Exit(asker(texts, file))
	}
	testlog.Begin()
	// Programs built with -race sleep for a second before they exit, and say by
	// their exit code that there was a race only where it would have been 0.
	if _, set := os.LookupEnv("GORACE"); !set {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0 halt_on_error=1")
	}
	testscript.Main(processes(m), map[string]func(){
		"worldctl": func() {
			if os.Getenv(carriesEnv) != "" {
				carryOut()
			}
			Main(released())
		}, "sink": sinkMain,
		"deskctl": func() { // a program of one's own
			Main(Options{Reducers: reducer.Registry{"ticket@1": reducer.Typed(1, func(_ *reducer.Context, n int, _ struct{ ID string }) (int, error) {
				return n + 1, nil
			})}})
		},
	})
}

// released is what the released program adds to worlds.
func released() Options {
	return Options{Adapters: map[string]host.Factory{"llm": llm.New, "mcp": mcp.New}}
}

const scriptDir = "testdata/script"

// racedScripts are those whose worlds perform effects by processes, are left in
// the midst of it, and look up what was done; and that in which many commands use
// one world at once.
var racedScripts = []string{"beside", "confirm", "doubt"}

// raced lets the processes that a test starts be the test itself, which has the
// race detector if it was built with it.
func raced(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", racedPath(t))
}

// racedPath is a PATH that finds the test itself as worldctl: in the directory of
// the sink, which it always is.
func racedPath(t *testing.T) string {
	t.Helper()
	sink, err := exec.LookPath("sink")
	require.NoError(t, err)
	return pathFrom(filepath.Dir(sink))
}

// pathFrom is a PATH that finds programs in a directory first.
func pathFrom(dir string) string {
	return dir + string(filepath.ListSeparator) + os.Getenv("PATH")
}

// TestScripts runs the stories in testdata/script. Besides testscript's own
// commands they have
//
//	exits N COMMAND...     run a command that must exit with N
//	hold DIR, release      own a world in this process, which is another than worldctl's
//	awaits TEXT COMMAND... run a command again and again until it prints the text
//	owned DIR              wait until the owner of a world carries out the commands of others
//	field VAR NAME         set VAR to the text of a field in the JSON that was printed last, cut to 12 bytes
//	number VAR NAME        likewise of a number
//	forge DIR IN OUT HOW   make of a printed receipt one that must not be taken for it
//	extends FILE LONGER    the second file is longer, and begins with the first
//	flip IN OUT NTH        copy a file with one bit of the middle byte of its NTH tenth changed
//	sql STATEMENT          run a statement in the database $PG, and print the first column of what it answers
//	holds FILE KEYRING     the file holds the first secret of a keyring that is not sealed
//
// and the condition [log]: journals lie in PostgreSQL, and directories have copies. What they
// execute as worldctl in the foreground is not a process each: see carriedScripts.
func TestScripts(t *testing.T) {
	t.Parallel()
	worlds, err := filepath.Abs("testdata/worlds")
	require.NoError(t, err)
	path := racedPath(t)
	files, carried := carriedScripts(t, scripts(t))
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Values["held"] = new(*local.World)
			if strings.HasPrefix(filepath.Base(e.WorkDir), "script-store_") {
				e.Setenv("PG", pgtest.URL(e.T().(testing.TB)))
			}
			if strings.HasPrefix(filepath.Base(e.WorkDir), "script-store_two") {
				e.Setenv("PG2", pgtest.URL(e.T().(testing.TB)))
			}
			name := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
			if testlog.On() || slices.Contains(racedScripts, name) {
				e.Setenv("PATH", path)
			}
			e.Setenv(testlog.Env, os.Getenv(testlog.Env))
			c := new(carrier)
			for _, v := range e.Vars {
				set, _, _ := strings.Cut(v, "=")
				c.names = append(c.names, set)
			}
			if !carried[name] {
				c = nil
			}
			e.Values["carrier"] = c
			e.Defer(func() { require.NoError(e.T().(testing.TB), c.end()) })
			return os.CopyFS(e.WorkDir, os.DirFS(worlds))
		},
		Condition: func(cond string) (bool, error) {
			if cond != "log" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return testlog.On(), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "hold": hold, "release": release, "owned": owned, "awaits": awaits, "forge": forge, "field": field, "number": numberOf, "holds": holds,
			"extends": extends, "flip": flip, "sql": sql, "carried": carriedLine, "feed": feed, "assign": assign,
		},
	})
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if c := carrierOf(ts); c != nil && args[1] == "worldctl" {
		got = c.show(ts, args[2:])
	} else if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s exited with %d, not %d", strings.Join(args[1:], " "), got, want)
	}
}

func sql(ts *testscript.TestScript, _ bool, args []string) {
	conn, err := pgx.Connect(context.Background(), ts.Getenv("PG"))
	ts.Check(err)
	defer conn.Close(context.Background()) //nolint:errcheck // a test's
	answers, err := conn.PgConn().Exec(context.Background(), args[0]).ReadAll()
	ts.Check(err)
	for _, row := range answers[0].Rows {
		fmt.Fprintf(ts.Stdout(), "%s\n", row[0])
	}
}

func hold(ts *testscript.TestScript, _ bool, args []string) {
	lw, err := local.Open(ts.MkAbs(args[0]), local.Options{})
	ts.Check(err)
	*ts.Value("held").(**local.World) = lw
	ts.Defer(func() { _ = lw.Close() })
}

func awaits(ts *testscript.TestScript, _ bool, args []string) {
	const most, pause = 5000, 20 * time.Millisecond
	for range most {
		// The cell may not be there yet.
		if c := carrierOf(ts); c != nil && args[1] == "worldctl" {
			if did := c.carry(ts, args[2:]); did.Code == exitOK && bytes.Contains(did.Stdout, []byte(args[0])) {
				_, _ = ts.Stdout().Write(did.Stdout)
				return
			}
		} else if err := ts.Exec(args[1], args[2:]...); err == nil && strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
		<-time.After(pause)
	}
	ts.Fatalf("%s never said %s", strings.Join(args[1:], " "), args[0])
}

func owned(ts *testscript.TestScript, _ bool, args []string) {
	awaitOwner(ts.MkAbs(args[0]))
}

func release(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check((*ts.Value("held").(**local.World)).Close())
}

func field(ts *testscript.TestScript, _ bool, args []string) {
	var object map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &object))
	value := object[args[1]].(string)
	if args[1] != "digest" { // which is not cut short
		value = value[:12]
	}
	ts.Setenv(args[0], value)
}

func numberOf(ts *testscript.TestScript, _ bool, args []string) {
	var object map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &object))
	ts.Setenv(args[0], strconv.Itoa(int(object[args[1]].(float64))))
}

func extends(ts *testscript.TestScript, _ bool, args []string) {
	file, longer := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	if len(longer) <= len(file) || longer[:len(file)] != file {
		ts.Fatalf("%s does not go on from %s", args[1], args[0])
	}
}

func flip(ts *testscript.TestScript, _ bool, args []string) {
	data := []byte(ts.ReadFile(args[0]))
	nth, err := strconv.Atoi(args[2])
	ts.Check(err)
	at := (2*nth + 1) * len(data) / 20
	for utf8.Valid(data) && (data[at]|0x20 < 'b' || data[at]|0x20 > 'y') {
		at++ // of a text, a letter: it is another one then
	}
	data[at] ^= 1
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o600))
}

func forge(ts *testscript.TestScript, _ bool, args []string) {
	keyring, err := os.ReadFile(ts.MkAbs(filepath.Join(args[0], ".world", "keyring")))
	ts.Check(err)
	own, err := receipt.DecodeKeyring(keyring)
	ts.Check(err)
	var printed struct {
		Raw []byte `json:"raw"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &printed))
	r, err := receipt.Decode(printed.Raw)
	ts.Check(err)
	printed.Raw, err = forged(r, own, args[3])
	ts.Check(err)
	out, err := json.Marshal(printed)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), out, 0o600))
}

// forged returns a receipt that must not be taken for r.
func forged(r *receipt.Receipt, own *receipt.Keyring, how string) ([]byte, error) {
	strange := []receipt.Epoch{{Number: 1, Secret: bytes.Repeat([]byte{7}, receipt.SecretBytes)}}
	switch how {
	case "mac":
		r.MAC[0] ^= 1
		return r.Encode()
	case "content":
		r.Status = receipt.StatusError
		return r.Encode()
	case "foreign":
		r.World = "elsewhere"
		keys, err := receipt.NewKeyring(r.World, strange)
		if err != nil {
			return nil, err
		}
		return keys.Sign(r)
	case "stranger":
		keys, err := receipt.NewKeyring(r.World, strange)
		if err != nil {
			return nil, err
		}
		return keys.Sign(r)
	case "unknown":
		r.Key.Hash[0] ^= 1
		return own.Sign(r)
	case "duplicate":
		r.Status = receipt.StatusError
		return own.Sign(r)
	}
	return nil, fmt.Errorf("no way to forge: %s", how)
}

// TestInterruptedRunStopsWith130 interrupts a run before the world is open: what
// was accepted before stays, and the next run does it.
func TestInterruptedRunStopsWith130(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	code, _, _ := inProcess(t.Context(), "init", dir)
	require.Equal(t, exitOK, code)
	code, _, _ = inProcess(t.Context(), "-w", dir, "send", "counter.added", `{"name": "tea", "by": 2}`)
	require.Equal(t, exitOK, code)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, said := inProcess(interrupted, "-w", dir, "run", "-o", "jsonl")
	require.Equal(t, exitInterrupted, code, said)
	code, out, _ := inProcess(t.Context(), "-w", dir, "status", "-o", "jsonl")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, `"events_pending":1`)
	code, out, _ = inProcess(t.Context(), "-w", dir, "run", "-o", "jsonl")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, `"idle":true`)
}

// TestWaitingRunEndsWithItsTime lets a run wait at idle until --for is over.
func TestWaitingRunEndsWithItsTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	code, _, _ := inProcess(t.Context(), "init", dir)
	require.Equal(t, exitOK, code)
	code, out, _ := inProcess(t.Context(), "-w", dir, "run", "--until-idle=false", "--for", "1ms", "-o", "jsonl")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, `"idle":true`)
}

// TestReadOnlyDirectoryIsRefused tries to make a world where nobody may write.
func TestReadOnlyDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	if probe, err := os.CreateTemp(dir, ""); err == nil { // root may write anywhere but here
		require.NoError(t, errors.Join(probe.Close(), os.Remove(probe.Name())))
		dir = "/sys"
		if _, err := os.Stat(dir); err != nil {
			t.Skip("no directory is read-only for root on this system")
		}
	}
	code, out, hint := inProcess(t.Context(), "init", filepath.Join(dir, "w"))
	require.Equal(t, exitFailed, code)
	require.Empty(t, out)
	require.Contains(t, hint, "hint: worldctl writes to the world's directory")
	require.NoDirExists(t, filepath.Join(dir, "w"))
}

// TestFullDiskUnderStdoutIsAnError lets the answer get lost.
func TestFullDiskUnderStdoutIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	t.Cleanup(func() { require.NoError(t, full.Close()) })
	var stderr bytes.Buffer
	code := run(t.Context(), released(), []string{"version"}, strings.NewReader(""), full, &stderr)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr.String(), "hint: make room on the disk")
}

// TestEveryVerbExplainsItself holds help to one line of what, and an example, and help.txt to verbs that there are.
func TestEveryVerbExplainsItself(t *testing.T) {
	c, texts := &cli{}, verbTexts()
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
		delete(texts, cmd.CommandPath())
		if !cmd.HasSubCommands() {
			require.NotEmpty(t, cmd.Example, cmd.CommandPath())
		}
		for _, verb := range cmd.Commands() {
			check(verb)
		}
	}
	check(newRootCommand(c))
	require.Empty(t, texts)
}

// inProcess runs the program in this process.
func inProcess(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(ctx, released(), args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

func TestParanoidReachesTheWorld(t *testing.T) {
	for _, verb := range []string{"step", "run"} {
		c := &cli{}
		root := newRootCommand(c)
		require.False(t, c.options().Paranoid)
		cmd, args, err := root.Find([]string{verb, "--paranoid"})
		require.NoError(t, err)
		require.NoError(t, cmd.ParseFlags(args))
		require.True(t, c.options().Paranoid, verb)
	}
}
