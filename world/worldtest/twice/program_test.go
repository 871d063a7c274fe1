package twice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// These tell a process of a program's life what it is: the host that runs the
// program, or the program; where; how long the params are; and after how many
// bytes of them the program stops to wait.
const (
	roleOf  = "TWICE_ROLE"
	dirOf   = "TWICE_DIR"
	sizeOf  = "TWICE_SIZE"
	pauseOf = "TWICE_PAUSE"
)

// Files of a program's life.
const (
	ledgerFile = "ledger" // what the program acted on
	socketFile = "s"      // on which it says that it has read so far, and waits
)

func TestMain(m *testing.M) {
	roles := map[string]func() error{"host": beHost, "program": beProgram}
	if be, ok := roles[os.Getenv(roleOf)]; ok {
		if err := be(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestProgramsActOnWholeParamsOrOnNone kills hosts with SIGKILL while a program
// of theirs reads its params: at random lengths, after random parts. The program
// acts on what it got, when it has got all there is. Every tenth life is one.
func TestProgramsActOnWholeParamsOrOnNone(t *testing.T) {
	first, lives := number(t, "SEED", 1), int(number(t, "LIVES", fewRaced))
	struck, acted := fault.NewStruck(fault.Programs), 0
	for n := 0; n < lives; n += 10 {
		seed := first + uint64(n)
		l := newProgramLife(t, seed)
		got := l.live()
		if len(got) > 0 {
			acted++
		}
		if l.kill {
			struck.Count("host of a program killed")
		}
		if len(got) > 0 || !l.kill {
			require.True(t, bytes.Equal(paramsOfSize(l.size), bytes.TrimSuffix(got, []byte("\n"))),
				"after %d lives the program acted on %d of %d bytes; its host was killed after %d; to see it again: make twice SEED=%d LIVES=1",
				n+1, len(got), l.size, l.pause, seed)
		}
	}
	if lives >= fewRaced {
		require.NotZero(t, acted)
		require.Empty(t, struck.Never())
	}
	t.Logf("SEED=%d: %d programs, %d acted\n%s", first, lives/10, acted, struck)
}

// programLife is one attempt of an exec effect.
type programLife struct {
	t           *testing.T
	dir         string
	size, pause int
	kill        bool
}

func newProgramLife(t *testing.T, seed uint64) *programLife {
	rng := rand.New(rand.NewPCG(seed, 4))
	l := &programLife{t: t, size: 20 + rng.IntN(1000), kill: rng.IntN(8) > 0}
	if rng.IntN(3) > 0 { // more than a pipe holds
		l.size = 20 + rng.IntN(900_000)
	}
	l.pause = rng.IntN(l.size)
	var err error
	l.dir, err = os.MkdirTemp("", "twice") //nolint:usetesting // a socket's path has to be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(l.dir) })
	return l
}

// live has the host perform the effect, kills it where the program has read so
// far, and returns what the program acted on once it has ended.
func (l *programLife) live() []byte {
	listener, err := net.Listen("unix", filepath.Join(l.dir, socketFile))
	require.NoError(l.t, err)
	defer func() { _ = listener.Close() }()
	self, err := os.Executable()
	require.NoError(l.t, err)
	cmd := exec.CommandContext(l.t.Context(), self)
	cmd.Env = []string{
		roleOf + "=host", dirOf + "=" + l.dir, sizeOf + "=" + strconv.Itoa(l.size), pauseOf + "=" + strconv.Itoa(l.pause),
	}
	cmd.Stderr = os.Stderr
	require.NoError(l.t, cmd.Start())
	program, err := listener.Accept()
	require.NoError(l.t, err)
	if l.kill {
		require.NoError(l.t, cmd.Process.Kill())
		require.Error(l.t, cmd.Wait())
	}
	_, err = program.Write([]byte{1})
	require.NoError(l.t, err)
	_, err = io.ReadAll(program) // until it has ended
	require.NoError(l.t, err)
	if !l.kill {
		require.NoError(l.t, cmd.Wait())
	}
	got, err := os.ReadFile(filepath.Join(l.dir, ledgerFile))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(l.t, err)
	}
	return got
}

// paramsOfSize are params of so many bytes of JSON.
func paramsOfSize(size int) []byte {
	const frame = `{"what":""}`
	return []byte(`{"what":"` + strings.Repeat("x", size-len(frame)) + `"}`)
}

// beHost performs one exec effect.
func beHost() error {
	dir, size := os.Getenv(dirOf), os.Getenv(sizeOf)
	n, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	m := manifest.Manifest{Effects: map[string]manifest.Effect{"run": {Adapter: "exec", Config: encoded(map[string]any{
		"program": self, "env": map[string]string{roleOf: "program", dirOf: dir, pauseOf: os.Getenv(pauseOf)},
	})}}}.WithDefaults()
	home := newHome("world", dir, nil)
	h, err := host.New(host.Config{World: home.id, Manifest: &m, Keys: home.keys, Dir: dir, EffectLog: filepath.Join(dir, "effects")})
	if err != nil {
		return err
	}
	params := encoded(map[string]any{"what": strings.Repeat("x", n-len(`{"what":""}`))})
	in := receipt.Intent{Step: "client/ada@1.0~0", Cell: "client/ada", Kind: "run", Params: params}
	in.Key = receipt.NewKey(home.id, in.Step, in.Kind, in.Params)
	h.Start([]receipt.Task{{Work: receipt.Perform, Permit: receipt.Permit{Intent: in, Attempt: 1}}})
	if err := h.Wait(context.Background()); err != nil {
		return err
	}
	return h.Close()
}

// beProgram acts on its standard input, after it has paused in the middle.
func beProgram() error {
	dir := os.Getenv(dirOf)
	pause, err := strconv.Atoi(os.Getenv(pauseOf))
	if err != nil {
		return err
	}
	var got bytes.Buffer
	if _, err := io.CopyN(&got, os.Stdin, int64(pause)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	conn, err := net.Dial("unix", filepath.Join(dir, socketFile))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // says that the ledger is written
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return err
	}
	if _, err := got.ReadFrom(os.Stdin); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, ledgerFile), got.Bytes(), 0o600); err != nil {
		return err
	}
	_, _ = os.Stdout.WriteString("{}") // nobody may be there to read it
	return nil
}
