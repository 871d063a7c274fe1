package owner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newDir makes a directory like that of a world.
func newDir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(append([]string{t.TempDir()}, path...)...)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".world"), 0o700))
	return dir
}

// attended carries out commands until the test ends.
func attended(t *testing.T, dir string, patience time.Duration, carryOut Command) *Owner {
	t.Helper()
	o, err := attend(t.Context(), dir, carryOut, patience)
	require.NoError(t, err)
	t.Cleanup(o.Close)
	return o
}

// echo prints its arguments.
func echo(_ context.Context, args []string, _ Origin, s Streams) int {
	_, err := fmt.Fprintln(s.Stdout, args)
	if err != nil {
		return 1
	}
	return 0
}

// typed has the owner carry out a command that reads nothing.
func typed(t *testing.T, dir string, args ...string) (printed string, answered bool, err error) {
	t.Helper()
	var out strings.Builder
	code, answered, err := Ask(t.Context(), dir, args, Origin{}, Streams{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	require.Zero(t, code, out.String())
	return out.String(), answered, err
}

// asking connects to an owner and asks it for something.
func asking(t *testing.T, dir string, asked request) *bufio.Reader {
	t.Helper()
	conn, err := dial(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, writeHeader(conn, asked))
	return bufio.NewReader(conn)
}

// TestOnlyTheOwnersUserMayUseTheSocket looks at who is kept out.
func TestOnlyTheOwnersUserMayUseTheSocket(t *testing.T) {
	dir := newDir(t)
	attended(t, dir, patienceLimit, echo)
	info, err := os.Stat(filepath.Join(dir, socketFile))
	require.NoError(t, err)
	require.Equal(t, fs.ModeSocket|0o600, info.Mode())
}

// TestTheSocketOfAKilledOwnerIsInNobodysWay leaves one behind that nobody listens
// on, and uses a path that is too long for one.
func TestTheSocketOfAKilledOwnerIsInNobodysWay(t *testing.T) {
	dir := newDir(t, strings.Repeat("deep", 30), "w")
	s, err := listen(dir)
	require.NoError(t, err)
	require.NoError(t, s.Close()) // as the end of a process does
	require.FileExists(t, s.path)
	_, answered, err := typed(t, dir, "status")
	require.Error(t, err)
	require.False(t, answered)

	attended(t, dir, patienceLimit, echo)
	printed, answered, err := typed(t, dir, "status")
	require.NoError(t, err)
	require.True(t, answered)
	require.Equal(t, "[status]\n", printed)
}

// TestACallerThatDoesNotReadIsDropped prints much to somebody who reads nothing.
func TestACallerThatDoesNotReadIsDropped(t *testing.T) {
	dir := newDir(t)
	failed := make(chan error, 1)
	attended(t, dir, time.Millisecond, func(_ context.Context, _ []string, _ Origin, s Streams) int {
		line := strings.Repeat("x", maxFrameBytes)
		for {
			if _, err := io.WriteString(s.Stdout, line); err != nil {
				failed <- err
				return 1
			}
		}
	})
	r := asking(t, dir, request{Version: socketVersion})
	require.NoError(t, readHeader(r, new(response)))
	require.ErrorIs(t, <-failed, ErrSlow)
}

func TestAnotherVersionIsRefused(t *testing.T) {
	dir := newDir(t)
	attended(t, dir, patienceLimit, echo)
	r := asking(t, dir, request{Version: socketVersion + 1, Args: []string{"status"}})
	var said response
	require.NoError(t, readHeader(r, &said))
	require.Equal(t, response{Version: socketVersion, Refused: fmt.Sprintf("version %d is asked for", socketVersion+1)}, said)
}

// TestAnOwnerOfAnotherVersionIsAClearError stands in for one.
func TestAnOwnerOfAnotherVersionIsAClearError(t *testing.T) {
	dir := newDir(t)
	s, err := listen(dir)
	require.NoError(t, err)
	defer s.close()
	go func() {
		conn, err := s.Accept()
		if err == nil {
			err = errors.Join(readHeader(bufio.NewReader(conn), new(request)), writeHeader(conn, response{Version: 7}), conn.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}()
	_, answered, err := typed(t, dir, "status")
	require.True(t, answered)
	require.ErrorIs(t, err, ErrVersion)
	require.ErrorContains(t, err, "its socket has version 7, this program knows 1")
}

func TestMoreCommandsThanTheLimitAreRefused(t *testing.T) {
	dir := newDir(t)
	o := attended(t, dir, patienceLimit, func(ctx context.Context, _ []string, _ Origin, _ Streams) int {
		<-ctx.Done()
		return 0
	})
	for range maxCommands {
		r := asking(t, dir, request{Version: socketVersion})
		require.NoError(t, readHeader(r, new(response)))
	}
	_, answered, err := typed(t, dir, "status")
	require.True(t, answered)
	require.ErrorIs(t, err, ErrRefuses)
	require.ErrorContains(t, err, "64 commands are being carried out already")
	o.Close()
}

// TestAnOwnerWaitsForItsCommands holds one up while the owner ends.
func TestAnOwnerWaitsForItsCommands(t *testing.T) {
	dir := newDir(t)
	release := make(chan struct{})
	o := attended(t, dir, patienceLimit, func(ctx context.Context, _ []string, _ Origin, s Streams) int {
		<-release
		if !errors.Is(context.Cause(ctx), ErrEnding) {
			t.Error("it is not told why it is interrupted")
		}
		return echo(ctx, []string{"late"}, Origin{}, s)
	})
	r := asking(t, dir, request{Version: socketVersion})
	require.NoError(t, readHeader(r, new(response)))
	left := make(chan int)
	go func() {
		o.Close()
		left <- len(o.commands)
	}()
	for _, err := os.Stat(o.socket.path); err == nil; _, err = os.Stat(o.socket.path) {
		runtime.Gosched()
	}
	close(release)
	require.Zero(t, <-left, "the world may be closed now")
	f, err := readFrame(r)
	require.NoError(t, err, "and whoever typed it gets the answer")
	require.Equal(t, frame{frameOut, []byte("[late]\n")}, f)
}
