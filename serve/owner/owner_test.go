package owner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
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

// asking asks an owner for something, and leaves it at that.
func asking(t *testing.T, dir string) io.Reader {
	t.Helper()
	body, said := io.Pipe()
	answer, err := post(t.Context(), dir, request{}, body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	t.Cleanup(func() { _ = errors.Join(said.Close(), answer.Body.Close()) })
	return answer.Body
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
		line := strings.Repeat("x", maxDataBytes)
		for {
			if _, err := io.WriteString(s.Stdout, line); err != nil {
				failed <- err
				return 1
			}
		}
	})
	asking(t, dir)
	require.ErrorIs(t, <-failed, ErrSlow)
}

func TestAnotherVersionIsRefused(t *testing.T) {
	dir := newDir(t)
	attended(t, dir, patienceLimit, echo)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://owner/v2/command", strings.NewReader("{}"))
	require.NoError(t, err)
	answer, err := transport(dir).RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
}

// TestAnOwnerOfAnotherVersionIsAClearError stands in for one.
func TestAnOwnerOfAnotherVersionIsAClearError(t *testing.T) {
	dir := newDir(t)
	s, err := listen(dir)
	require.NoError(t, err)
	other := http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: patienceLimit}
	go func() { _ = other.Serve(s) }()
	defer other.Close() //nolint:errcheck // with it the socket is closed
	_, answered, err := typed(t, dir, "status")
	require.True(t, answered)
	require.ErrorIs(t, err, ErrVersion)
	require.ErrorContains(t, err, "it does not know /v1/command")
}

func TestMoreCommandsThanTheLimitAreRefused(t *testing.T) {
	dir := newDir(t)
	o := attended(t, dir, patienceLimit, func(ctx context.Context, _ []string, _ Origin, _ Streams) int {
		<-ctx.Done()
		return 0
	})
	for range maxCommands {
		asking(t, dir)
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
	r := asking(t, dir)
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
	var m message
	require.NoError(t, linesOf(r).next(&m), "and whoever typed it gets the answer")
	require.Equal(t, message{kindOut, []byte("[late]\n")}, m)
}
