package worldctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world"
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
	awaitOwner(t, dir)
	end = sync.OnceValue(func() int {
		stop()
		return <-ended
	})
	t.Cleanup(func() { end() })
	return dir, end
}

func awaitOwner(t *testing.T, dir string) {
	t.Helper()
	for {
		conn, err := dial(dir)
		if err == nil {
			require.NoError(t, conn.Close())
			return
		}
		runtime.Gosched()
	}
}

// attended owns a world without driving it.
func attended(t *testing.T, dir string, patience time.Duration) *owner {
	t.Helper()
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	o, err := attend(t.Context(), lw, released(), patience)
	require.NoError(t, err)
	t.Cleanup(func() {
		o.close()
		require.NoError(t, lw.Close())
	})
	return o
}

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
				for _, verb := range [][]string{{"status"}, {"cell", "list"}, {"tail", "--limit", "5"}, {"audit", "--kind", "cell.*"}} {
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

// TestOnlyTheOwnersUserMayUseTheSocket looks at who is kept out.
func TestOnlyTheOwnersUserMayUseTheSocket(t *testing.T) {
	dir := newWorld(t)
	attended(t, dir, ownerPatience)
	info, err := os.Stat(filepath.Join(dir, socketFile))
	require.NoError(t, err)
	require.Equal(t, fs.ModeSocket|0o600, info.Mode())
}

// TestTheSocketOfAKilledOwnerIsInNobodysWay leaves one behind that nobody listens
// on, and uses a path that is too long for one.
func TestTheSocketOfAKilledOwnerIsInNobodysWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 30), "w")
	code, _, said := inProcess(t.Context(), "init", dir)
	require.Equal(t, exitOK, code, said)
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	s, err := listen(dir)
	require.NoError(t, err)
	require.NoError(t, s.Close()) // as the end of a process does
	require.FileExists(t, s.path)
	code, _, said = inProcess(t.Context(), "-w", dir, "status")
	require.Equal(t, exitConflict, code)
	require.Contains(t, said, "locked by pid")
	require.NoError(t, lw.Close())

	code, _, said = inProcess(t.Context(), "-w", dir, "status")
	require.Equal(t, exitOK, code, said)
	attended(t, dir, ownerPatience)
	code, _, said = inProcess(t.Context(), "-w", dir, "status")
	require.Equal(t, exitOK, code, said)
}

func TestASocketIsGoneWithItsOwner(t *testing.T) {
	dir, end := besideRun(t)
	end()
	require.NoFileExists(t, filepath.Join(dir, socketFile))
}

// TestACallerThatDoesNotReadIsDropped prints much to somebody who reads nothing.
func TestACallerThatDoesNotReadIsDropped(t *testing.T) {
	dir := newWorld(t)
	var lines strings.Builder
	for range 4000 {
		lines.WriteString(`{"event": "counter.added", "data": {"name": "tea", "by": 1}}` + "\n")
	}
	code := run(t.Context(), released(), []string{"-w", dir, "send", "-"}, strings.NewReader(lines.String()), io.Discard, io.Discard)
	require.Equal(t, exitOK, code)
	o := attended(t, dir, time.Millisecond)
	conn, r := asking(t, dir, request{Version: socketVersion, Args: []string{"-w", dir, "tail", "-o", "jsonl"}})
	require.NoError(t, readHeader(r, new(response)))
	o.commandsEnd()
	require.NoError(t, conn.Close())
	require.True(t, verifiedOpen(t, o.lw))
}

// commandsEnd returns once no command is being carried out.
func (o *owner) commandsEnd() {
	for len(o.commands) > 0 {
		runtime.Gosched()
	}
}

func verifiedOpen(t *testing.T, lw *local.World) bool {
	r, err := lw.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	return r.OK
}

// asking connects to an owner and asks it for something.
func asking(t *testing.T, dir string, asked request) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := dial(dir)
	require.NoError(t, err)
	require.NoError(t, writeHeader(conn, asked))
	return conn, bufio.NewReader(conn)
}

// answerTo returns what the owner prints and how the command ends.
func answerTo(t *testing.T, dir string, asked request) (said response, printed string, code int) {
	t.Helper()
	conn, r := asking(t, dir, asked)
	defer conn.Close() //nolint:errcheck // it was read to its end
	require.NoError(t, readHeader(r, &said))
	if said.Refused != "" {
		return said, "", 0
	}
	for {
		f, err := readFrame(r)
		require.NoError(t, err)
		if f.kind == frameExit {
			return said, printed, int(f.data[0])
		}
		printed += string(f.data)
	}
}

func TestAnotherVersionIsRefused(t *testing.T) {
	dir := newWorld(t)
	attended(t, dir, ownerPatience)
	said, _, _ := answerTo(t, dir, request{Version: socketVersion + 1, Args: []string{"status"}})
	require.Equal(t, response{Version: socketVersion, Refused: fmt.Sprintf("version %d is asked for", socketVersion+1)}, said)
}

// TestAnOwnerOfAnotherVersionIsAClearError stands in for one.
func TestAnOwnerOfAnotherVersionIsAClearError(t *testing.T) {
	dir := newWorld(t)
	lw, err := local.Open(dir, local.Options{})
	require.NoError(t, err)
	s, err := listen(dir)
	require.NoError(t, err)
	go func() {
		conn, err := s.Accept()
		if err == nil {
			err = errors.Join(readHeader(bufio.NewReader(conn), new(request)), writeHeader(conn, response{Version: 7}), conn.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}()
	code, _, said := inProcess(t.Context(), "-w", dir, "status")
	require.Equal(t, exitConflict, code)
	require.Contains(t, said, "its socket has version 7, this program knows 1")
	require.Contains(t, said, "hint: ")
	s.close()
	require.NoError(t, lw.Close())
}

func TestMoreCommandsThanTheLimitAreRefused(t *testing.T) {
	dir := newWorld(t)
	o := attended(t, dir, ownerPatience)
	for range maxCommands {
		conn, r := asking(t, dir, request{Version: socketVersion, Args: []string{"-w", dir, "tail", "-f"}})
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, readHeader(r, new(response)))
	}
	code, _, said := inProcess(t.Context(), "-w", dir, "status")
	require.Equal(t, exitConflict, code)
	require.Contains(t, said, "64 commands are being carried out already")
	o.close()
}

// TestAnOwnerWaitsForItsCommands holds one up while the owner ends.
func TestAnOwnerWaitsForItsCommands(t *testing.T) {
	dir := newWorld(t)
	o := attended(t, dir, ownerPatience)
	held, release := make(chan struct{}), make(chan struct{})
	var holding sync.WaitGroup
	holding.Go(func() {
		o.lw.View(func(*world.Moment) {
			close(held)
			<-release
		})
	})
	<-held
	conn, r := asking(t, dir, request{Version: socketVersion, Args: []string{"-w", dir, "status"}})
	require.NoError(t, readHeader(r, new(response)))
	left := make(chan int)
	go func() {
		o.close()
		left <- len(o.commands)
	}()
	for _, err := os.Stat(o.socket.path); err == nil; _, err = os.Stat(o.socket.path) {
		runtime.Gosched()
	}
	close(release)
	require.Zero(t, <-left, "the world may be closed now")
	holding.Wait()
	f, err := readFrame(r)
	require.NoError(t, err, "and whoever typed it gets the answer")
	require.Equal(t, frameOut, f.kind)
	require.NoError(t, conn.Close())
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
	attended(t, dir, ownerPatience)
	for _, verb := range [][]string{{"run"}, {"step"}, {"init", "x"}, {"restore", "x"}, {"import", "journal", "x"}, {"gc"}, {"keys", "rotate"}} {
		_, printed, code := answerTo(t, dir, request{Version: socketVersion, Args: append([]string{"-w", dir}, verb...), Origin: origin{Dir: dir}})
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
	attended(t, dir, ownerPatience)
	require.NoError(t, os.WriteFile(filepath.Join(there, "tea.json"), []byte(`{"name": "tea", "by": 3}`), 0o600))
	ask := func(args ...string) string {
		_, printed, code := answerTo(t, dir, request{
			Version: socketVersion, Args: append([]string{"-w", dir}, args...), Origin: origin{Dir: there, Login: "ada"},
		})
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
	attended(t, dir, ownerPatience)
	edit := filepath.Join(dir, "world.yaml")
	text, err := os.ReadFile(edit)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(edit, bytes.Replace(text, []byte("version: 1"), []byte("version: 2"), 1), 0o600))

	for _, typed := range []string{"", "open sesame"} {
		conn, r := asking(t, dir, request{Version: socketVersion, Args: []string{"-w", dir, "propose", "--key", key, "-m", "x"}})
		require.NoError(t, readHeader(r, new(response)))
		for asked := false; ; {
			f, err := readFrame(r)
			require.NoError(t, err)
			if f.kind == framePrompt {
				require.Contains(t, string(f.data), "passphrase of "+key)
				reply := frame{frameAnswer, []byte(typed)}
				if typed == "" {
					reply = frame{kind: frameNobody}
				}
				require.NoError(t, writeFrame(conn, reply))
				asked = true
			}
			if f.kind == frameExit {
				require.True(t, asked)
				require.Equal(t, typed == "open sesame", int(f.data[0]) == exitOK)
				break
			}
		}
		require.NoError(t, conn.Close())
	}
}
