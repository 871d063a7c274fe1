package worldctl

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/owner"
	"github.com/worldkernel/worldkernel/world/local"
)

// besideRun makes a world and has it run, in this process, until the test ends. end
// interrupts that and returns the run's exit code.
func besideRun(t *testing.T) (dir string, end func() int) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "w")
	code, _, _ := inProcess(t.Context(), "init", dir)
	require.Equal(t, exitOK, code)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		code, _, said := inProcess(ctx, "-w", dir, "run", "--until-idle=false")
		if code != exitInterrupted {
			t.Errorf("the run ended with %d: %s", code, said)
		}
		ended <- code
	}()
	awaitOwner(dir)
	end = sync.OnceValue(func() int {
		stop()
		return <-ended
	})
	t.Cleanup(func() { end() })
	return dir, end
}

// awaitOwner returns once the owner of a world carries out commands.
func awaitOwner(dir string) {
	for {
		if _, answered, _ := owner.Ask(context.Background(), dir, []string{"version"}, owner.Origin{}, owner.Streams{Stdout: io.Discard, Stderr: io.Discard}); answered {
			return
		}
		runtime.Gosched()
	}
}

// attended owns a world without driving it.
func attended(t *testing.T, dir string) {
	t.Helper()
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	end, err := attend(t.Context(), lw, released())
	require.NoError(t, err)
	t.Cleanup(func() {
		end()
		require.NoError(t, lw.Close())
	})
}

// socketFile is where the owner of a world listens.
const socketFile = ".world/owner.sock"

func newWorld(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "w")
	code, _, _ := inProcess(t.Context(), "init", dir)
	require.Equal(t, exitOK, code)
	return dir
}

// TestManyCommandsAtOnceLoseNothing has many processes' worth of commands work on
// a world that is run meanwhile.
func TestManyCommandsAtOnceLoseNothing(t *testing.T) {
	dir, end := besideRun(t)
	const clients, events = 6, 5
	var working sync.WaitGroup
	for n := range clients {
		working.Go(func() {
			for range events {
				code, _, said := inProcess(t.Context(), "-w", dir, "send", "counter.added", fmt.Sprintf(`{"name": "c%d", "by": 1}`, n))
				if code != exitOK {
					t.Error(said)
				}
				for _, verb := range [][]string{{"status"}, {"cell", "list"}, {"tail", "--last", "5"}, {"audit", "--kind", "cell.*"}} {
					if code, _, said := inProcess(t.Context(), append([]string{"-w", dir, "-o", "json"}, verb...)...); code != exitOK {
						t.Error(said)
					}
				}
			}
		})
	}
	working.Go(func() {
		for n := range events {
			if code, _, said := inProcess(t.Context(), "-w", dir, "snapshot", "create", fmt.Sprintf("n%d", n)); code != exitOK {
				t.Error(said)
			}
		}
	})
	working.Wait()
	require.Equal(t, exitInterrupted, end())
	code, _, said := inProcess(t.Context(), "-w", dir, "run")
	require.Equal(t, exitOK, code, said)
	for n := range clients {
		_, out, _ := inProcess(t.Context(), "-w", dir, "cell", "show", fmt.Sprintf("counter/c%d", n), "-o", "jsonl")
		require.Contains(t, out, fmt.Sprintf(`"n":%d`, events))
	}
	require.True(t, verified(t, dir).OK)
}

// TestFollowersGetEveryRecordOnce follows a journal while it grows, with and
// without a filter that cuts turns.
func TestFollowersGetEveryRecordOnce(t *testing.T) {
	dir, end := besideRun(t)
	for _, by := range [][]string{{}, {"--cell", "counter/tea"}} {
		in, out := io.Pipe()
		var said bytes.Buffer
		var followed sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		followed.Go(func() {
			args := append([]string{"-w", dir, "tail", "-f", "-o", "jsonl"}, by...)
			if code := run(ctx, released(), args, strings.NewReader(""), out, &said); code != exitInterrupted {
				t.Errorf("it ended with %d: %s", code, said.String())
			}
			_ = out.Close()
		})
		lines := bufio.NewScanner(in)
		code, _, _ := inProcess(t.Context(), "-w", dir, "send", "counter.added", `{"name": "tea", "by": 1}`)
		require.Equal(t, exitOK, code)
		var got []string
		for lines.Scan() {
			if got = append(got, lines.Text()); strings.Contains(lines.Text(), `"cell.stepped"`) && len(got) > 1 {
				break
			}
		}
		stop()
		for lines.Scan() {
			got = append(got, lines.Text())
		}
		followed.Wait()
		require.Empty(t, said.String())
		_, all, _ := inProcess(t.Context(), append([]string{"-w", dir, "tail", "-o", "jsonl"}, by...)...)
		require.True(t, strings.HasPrefix(all, strings.Join(got, "\n")), "followed:\n%s\nall:\n%s", strings.Join(got, "\n"), all)
	}
	require.Equal(t, exitInterrupted, end())
}

// TestFollowersEndWithTheOwner lets the process end that runs the world.
func TestFollowersEndWithTheOwner(t *testing.T) {
	dir, end := besideRun(t)
	in, out := io.Pipe()
	var said bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), released(), []string{"-w", dir, "tail", "-f"}, strings.NewReader(""), out, &said)
		_ = out.Close()
	}()
	lines := bufio.NewScanner(in)
	require.True(t, lines.Scan())
	end()
	for lines.Scan() {
		t.Log(lines.Text())
	}
	require.Equal(t, exitOK, <-code)
	require.Contains(t, said.String(), "the process that ran this world has ended")
}

// TestStdinThatStandsStillHoldsNobodyUp leaves the stdin of a bulk open between
// its lines.
func TestStdinThatStandsStillHoldsNobodyUp(t *testing.T) {
	dir, _ := besideRun(t)
	in, lines := io.Pipe()
	var out, said bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- run(t.Context(), released(), []string{"-w", dir, "send", "-"}, in, &out, &said) }()
	line := `{"event": "counter.added", "data": {"name": "tea", "by": 1}}` + "\n"
	for range 2 {
		_, err := io.WriteString(lines, line+line[:9])
		require.NoError(t, err)
		status, _, _ := inProcess(t.Context(), "-w", dir, "status")
		require.Equal(t, exitOK, status)
		_, err = io.WriteString(lines, line[9:])
		require.NoError(t, err)
	}
	require.NoError(t, lines.Close())
	require.Equal(t, exitOK, <-code, said.String())
	require.Contains(t, out.String(), "4 events accepted")
}

// TestAnInterruptReachesTheCommand interrupts a bulk that waits for its next line.
func TestAnInterruptReachesTheCommand(t *testing.T) {
	dir, _ := besideRun(t)
	in, lines := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	var said bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- run(ctx, released(), []string{"-w", dir, "send", "-"}, in, io.Discard, &said) }()
	_, err := io.WriteString(lines, `{"event": "counter.added", "data": {"name": "tea", "by": 1}}`+"\n")
	require.NoError(t, err)
	_, err = io.WriteString(lines, "{") // it was asked for: the line before has been taken
	require.NoError(t, err)
	stop()
	require.Equal(t, exitInterrupted, <-code)
	require.Contains(t, said.String(), "after 1 accepted events")
	require.NoError(t, lines.Close())
}

func TestASocketIsGoneWithItsOwner(t *testing.T) {
	dir, end := besideRun(t)
	end()
	require.NoFileExists(t, filepath.Join(dir, socketFile))
}

// answerTo has the owner of a world carry out a command line that reads nothing, and
// returns what it prints and how it ends.
func answerTo(t *testing.T, dir string, from owner.Origin, args ...string) (printed string, code int) {
	t.Helper()
	var out strings.Builder
	code, answered, err := owner.Ask(t.Context(), dir, append([]string{"-w", dir}, args...), from,
		owner.Streams{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	require.NoError(t, err)
	require.True(t, answered)
	return out.String(), code
}

// TestASocketThatNobodyListensOnIsALockedWorld leaves what a killed owner would.
func TestASocketThatNobodyListensOnIsALockedWorld(t *testing.T) {
	dir := newWorld(t)
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, socketFile), nil, 0o600))
	code, _, said := inProcess(t.Context(), "-w", dir, "status")
	require.Equal(t, exitConflict, code)
	require.Contains(t, said, "locked by pid")
	require.NoError(t, lw.Close())
}

// TestWhatTheOwnerDoesNotDoIsAConflict has no owner of another version, or one with
// too much to do: see package owner.
func TestWhatTheOwnerDoesNotDoIsAConflict(t *testing.T) {
	for _, err := range []error{owner.ErrVersion, owner.ErrRefuses} {
		code, hint := judge(fmt.Errorf("%w: really", err))
		require.Equal(t, exitConflict, code)
		require.NotEmpty(t, hint)
	}
}

// TestWhatIsOnItsWayCanBeRead reads each record as soon as the world has it, which
// is before it can be read.
func TestWhatIsOnItsWayCanBeRead(t *testing.T) {
	lw, err := local.Open(newWorld(t), local.Options{})
	require.NoError(t, err)
	for range 200 {
		_, err := lw.Submit(t.Context(), "counter.added", map[string]any{"name": "tea", "by": uint64(1)})
		require.NoError(t, err)
		_, err = lw.Next(t.Context())
		require.NoError(t, err)
		last := lw.Head().ID
		e, err := recordsOf(lw).Entry(last)
		require.NoError(t, err)
		require.Equal(t, last, e.ID)
	}
	require.NoError(t, lw.Close())
}

// TestVerbsOfTheirOwnAreRefusedBesideTheOwner asks an owner for what its callers
// do not ask for.
func TestVerbsOfTheirOwnAreRefusedBesideTheOwner(t *testing.T) {
	dir := newWorld(t)
	attended(t, dir)
	for _, verb := range [][]string{{"run"}, {"step"}, {"init", "x"}, {"restore", "x"}, {"import", "journal", "x"}, {"gc"}, {"keys", "rotate"}} {
		printed, code := answerTo(t, dir, owner.Origin{Dir: dir}, verb...)
		require.Equal(t, exitConflict, code, "%s: %s", verb, printed)
		own, _, said := inProcess(t.Context(), append([]string{"-w", dir}, "run")...)
		require.Equal(t, exitConflict, own, said)
	}
	require.NoDirExists(t, filepath.Join(dir, "x"))
}

// TestPathsAndNamesAreThoseOfWhoeverTypedThem sends a file of another directory,
// as somebody else, with a passphrase variable of its own.
func TestPathsAndNamesAreThoseOfWhoeverTypedThem(t *testing.T) {
	dir, there := newWorld(t), t.TempDir()
	attended(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(there, "tea.json"), []byte(`{"name": "tea", "by": 3}`), 0o600))
	ask := func(args ...string) string {
		printed, code := answerTo(t, dir, owner.Origin{Dir: there, Login: "ada"}, args...)
		require.Equal(t, exitOK, code, printed)
		return printed
	}
	require.Contains(t, ask("send", "counter.added", "@tea.json"), `"by":3`)
	ask("export", "out.jsonl", "--format", "jsonl")
	require.FileExists(t, filepath.Join(there, "out.jsonl"))
	ask("audit", "--save", "audit.jsonl")
	require.FileExists(t, filepath.Join(there, "audit.jsonl"))
	ask("backup", "copy")
	require.DirExists(t, filepath.Join(there, "copy", ".world"))
	require.Contains(t, ask("fork", "child"), "world")
	require.DirExists(t, filepath.Join(there, "child", ".world"))
	ask("snapshot", "create", "here")
	ask("snapshot", "save", "here", ".")
	require.FileExists(t, filepath.Join(there, "here"+savedSuffix))
	require.Contains(t, ask("tail", "--kind", "snapshot.created"), "says ada")
}

// TestAPromptIsAnsweredWhereTheCommandWasTyped proposes with a key that needs a
// passphrase, which comes over the socket.
func TestAPromptIsAnsweredWhereTheCommandWasTyped(t *testing.T) {
	dir := newWorld(t)
	key := filepath.Join(t.TempDir(), "key")
	t.Setenv(passphraseEnv, "open sesame")
	code, _, said := inProcess(t.Context(), "keys", "new", "--approver", key, "--encrypt")
	require.Equal(t, exitOK, code, said)
	attended(t, dir)
	edit := filepath.Join(dir, "world.yaml")
	text, err := os.ReadFile(edit)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(edit, bytes.Replace(text, []byte("version: 1"), []byte("version: 2"), 1), 0o600))

	for _, typed := range []string{"", "open sesame"} {
		var asked string
		var out strings.Builder
		code, answered, err := owner.Ask(t.Context(), dir, []string{"-w", dir, "propose", "--key", key, "-m", "x"}, owner.Origin{}, owner.Streams{
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
			Prompt: func(text string) ([]byte, error) {
				if asked = text; typed == "" {
					return nil, errNoPassphrase
				}
				return []byte(typed), nil
			},
		})
		require.NoError(t, err)
		require.True(t, answered)
		require.Contains(t, asked, "passphrase of "+key)
		require.Equal(t, typed == "open sesame", code == exitOK, out.String())
	}
}
