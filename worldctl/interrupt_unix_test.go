//go:build unix

package worldctl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/source"
)

// signals is interrupts of which a test is the clock and the process.
type signals struct {
	*interrupts
	t     *testing.T
	at    time.Time
	ended context.Context
	said  chan string

	seconds chan time.Time // one passes when it is sent
	killed  os.Signal
}

func newSignals(t *testing.T) *signals {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	s := &signals{interrupts: newInterrupts(end), t: t, at: time.Unix(0, 0), ended: ctx, said: make(chan string, 8), seconds: make(chan time.Time)}
	s.now = func() time.Time { return s.at }
	s.wait = func(time.Duration) <-chan time.Time { return s.seconds }
	s.kill = func(by os.Signal) { s.killed = by }
	s.say = func(text string) { s.said <- text }
	return s
}

// pay has a payment be under way.
func (s *signals) pay(n byte) (ended func()) {
	return s.underWay(receipt.Permit{Intent: receipt.Intent{Kind: "bank.pay", Key: receipt.Key{Hash: receipt.Hash{n}}}})
}

// after has a signal come a time after the one before.
func (s *signals) after(d time.Duration, by os.Signal) {
	s.at = s.at.Add(d)
	s.hear(by)
}

func TestSignalsThatComeTogetherAreOne(t *testing.T) {
	for _, first := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		s := newSignals(t)
		s.pay(1)
		s.hear(first)
		require.ErrorIs(t, s.ended.Err(), context.Canceled)
		require.Contains(t, <-s.said, "finishing 1 effect under way: bank.pay 01000000")
		for range 99 {
			s.after(together/100, syscall.SIGINT)
			s.hear(syscall.SIGTERM)
		}
		require.Empty(t, s.said)
		require.Nil(t, s.killed)
	}
}

// A first signal ends the process in bounded time, whatever blocks it: soon where a world is being opened,
// else when servers and effects have had their time, and not before effects under way have ended.
func TestASignalEndsWhatDoesNotEndByItself(t *testing.T) {
	for seconds, before := range map[int]func(s *signals) (ended func()){
		2:  func(s *signals) func() { s.opening(); return func() {} },
		30: func(s *signals) func() { s.opening()(); return func() {} },
		33: func(s *signals) func() { return s.pay(1) },
	} {
		s := newSignals(t)
		killed := make(chan os.Signal, 1)
		s.kill = func(by os.Signal) { killed <- by }
		ended := before(s)
		s.hear(syscall.SIGTERM)
		for n := range seconds - 1 {
			s.seconds <- time.Time{}
			require.Empty(t, killed, "%d of %d", n, seconds)
		}
		ended()
		select {
		case s.seconds <- time.Time{}:
			require.Equal(t, syscall.SIGTERM, <-killed)
		case by := <-killed: // the second before was looked at late
			require.Equal(t, syscall.SIGTERM, by)
		}
	}
}

// TestASignalEndsALongStep of each kind that takes long: what it would have done is thrown away, and what
// was submitted is there.
func TestASignalEndsALongStep(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"a reducer": "def reduce(ctx, state, event):\n    for i in range(1000000):\n        for j in range(1000000):\n            pass\n",
		"checks":    "def reduce(ctx, state, event):\n    dear = [[k] for k in range(1300)]\n    for i in range(50000):\n        ctx.emit(\"dear\", dear, key = \"x\")\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "w")
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "reducers"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "reducers", "long.star"), []byte(source), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "dear.json"), []byte(`{"uniqueItems": true}`), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(longWorld), 0o600))
			worldctl(t, nil, "init", dir)
			for _, by := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
				worldctl(t, nil, "-w", dir, "send", "go", `{}`)
				for _, verb := range []string{"run", "serve"} {
					cmd := exec.Command("worldctl", "-w", dir, verb, "-v")
					said, err := cmd.StderrPipe()
					require.NoError(t, err)
					require.NoError(t, cmd.Start())
					require.Eventually(t, func() bool { return usedCPU(t, cmd.Process.Pid) > time.Second/2 }, time.Minute, 10*time.Millisecond)
					require.NoError(t, cmd.Process.Signal(by))
					text, err := io.ReadAll(said)
					require.NoError(t, err)
					_ = cmd.Wait()
					want := exitInterrupted
					if verb == "serve" && by == syscall.SIGTERM {
						want = exitOK
					}
					require.NotContains(t, string(text), "awaiting")
					require.Equal(t, want, cmd.ProcessState.ExitCode(), "%s", text)
				}
				require.True(t, verified(t, dir).OK)
			}
			_, out, _ := outcome(t, "-w", dir, "status", "-o", "jsonl")
			require.Contains(t, out, `"events_pending":2`)
		})
	}
}

const longWorld = `
world: long
version: 1
reducers:
  long: {engine: starlark, source: reducers/long.star, limits: {gas: 10000000000, memory: 1073741824, events: 65536}}
events:
  go:
  dear: {schema: dear.json}
routing:
  - {event: go, reducer: long, key: '"a"'}
limits: {payload: 8388608}
`

// usedCPU is how much of a processor a process has used.
func usedCPU(t *testing.T, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skip("it takes /proc")
	}
	fields := strings.Fields(string(text))
	user, err := strconv.Atoi(fields[13])
	require.NoError(t, err)
	return time.Duration(user) * 10 * time.Millisecond
}

func TestWhatWillBeInDoubtIsSaidBeforeASignalKillsAPayment(t *testing.T) {
	s := newSignals(t)
	one := s.pay(1)
	s.pay(2)
	for n := byte(3); n < 9; n++ {
		s.pay(n)
	}
	s.hear(syscall.SIGINT)
	<-s.said
	one()
	s.after(together, syscall.SIGINT)
	require.Nil(t, s.killed, "a payment is under way")
	said := <-s.said
	require.Contains(t, said, "leaves in doubt 7 effects under way: bank.pay 020000000000, bank.pay 030000000000")
	require.Contains(t, said, "and 2 more")
	s.after(together-1, syscall.SIGTERM)
	require.Nil(t, s.killed, "two at once are one")
	s.after(1, syscall.SIGTERM)
	require.Equal(t, syscall.SIGTERM, s.killed)
	require.Empty(t, s.said)
}

func TestASecondSignalEndsWhatPerformsNothing(t *testing.T) {
	s := newSignals(t)
	s.pay(1)()
	t.Setenv("TMPDIR", t.TempDir())
	gone, _, err := s.temporary("")
	require.NoError(t, err)
	kept, _, err := s.temporary("")
	require.NoError(t, err)
	s.keep(kept)
	s.hear(syscall.SIGINT)
	require.DirExists(t, gone)
	s.after(together, syscall.SIGINT)
	require.NoDirExists(t, gone, "nobody comes to remove it")
	require.DirExists(t, kept)
	require.Equal(t, syscall.SIGINT, s.killed)
	require.Empty(t, s.said)
}

func TestSIGTERMIsHowServersEnd(t *testing.T) {
	for by, want := range map[syscall.Signal]error{syscall.SIGTERM: nil, syscall.SIGINT: context.Canceled, syscall.SIGHUP: context.Canceled} {
		s := newSignals(t)
		ended, err := untilTerm(s.ended, func() error { s.hear(by); return nil })
		require.NoError(t, err)
		require.ErrorIs(t, ended, want)
	}
	s := newSignals(t)
	s.leave(syscall.SIGHUP)
	s.hear(syscall.SIGHUP)
	require.NoError(t, s.ended.Err(), "the tokens are read again")
}

const payingProgram = `world: till
reducers:
  payer: {engine: starlark, source: payer.star, grants: [all]}
events:
  pay:
effects:
  bank.pay:
    adapter: exec
    config: {program: sh, args: ["-c", "echo > begun; while [ ! -e go ]; do sleep 0.02; done; echo >> paid; echo '{}'"]}
caps:
  all: {type: any, params: {kinds: ["*"]}}
policies:
  - {name: payments, when: "true", decide: allow}
routing:
  - {event: pay, reducer: payer, key: '"one"'}
`

// till is a world with a payment that a program makes when it is let, and a run at work on it, in a process
// group of its own as what is started at a terminal is.
type till struct {
	t   *testing.T
	dir string
	run *exec.Cmd
	err *bufio.Scanner
}

func runTill(t *testing.T, verb ...string) *till {
	t.Helper()
	x := &till{t: t, dir: filepath.Join(t.TempDir(), "w")}
	makeWorld(t, x.dir, map[string]string{
		"world.yaml": payingProgram,
		"payer.star": "def reduce(ctx, state, event):\n    if event.name == \"pay\":\n        ctx.effect(\"bank.pay\", {})\n    return state\n",
	})
	worldctl(t, nil, "-w", x.dir, "send", "pay")
	x.run = exec.Command("worldctl", append([]string{"-w", x.dir}, verb...)...)
	x.run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := x.run.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, x.run.Start())
	t.Cleanup(func() { _ = x.run.Process.Kill() })
	x.err = bufio.NewScanner(stderr)
	x.awaits("begun")
	return x
}

// awaits returns when a file is there.
func (x *till) awaits(name string) {
	for {
		if _, err := os.Stat(filepath.Join(x.dir, name)); err == nil {
			return
		}
		select {
		case <-x.t.Context().Done():
			require.NoError(x.t, x.t.Context().Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// press is a key at the terminal: all of the process group hears it.
func (x *till) press(s syscall.Signal) {
	x.t.Helper()
	require.NoError(x.t, syscall.Kill(-x.run.Process.Pid, s))
}

// says returns the next line with a text.
func (x *till) says(text string) string {
	x.t.Helper()
	for x.err.Scan() {
		if strings.Contains(x.err.Text(), text) {
			return x.err.Text()
		}
	}
	require.Fail(x.t, "it did not say "+text)
	return ""
}

func (x *till) let() { require.NoError(x.t, os.WriteFile(filepath.Join(x.dir, "go"), nil, 0o600)) }

// TestTwoSignalsAtOnceKillNoPayment: timeout sends one to its child and one to the group of both.
func TestTwoSignalsAtOnceKillNoPayment(t *testing.T) {
	for _, verb := range [][]string{{"run"}, {"step"}, {"serve", "--manual=false"}} {
		for _, sig := range [][2]syscall.Signal{{syscall.SIGINT, syscall.SIGTERM}, {syscall.SIGHUP, syscall.SIGINT}} {
			t.Run(fmt.Sprint(verb[0], sig), func(t *testing.T) {
				x := runTill(t, verb...)
				x.press(sig[0])
				x.press(sig[1])
				require.Contains(t, x.says("finishing"), "1 effect under way: bank.pay ")
				x.let()
				for x.err.Scan() { // to the end
				}
				_ = x.run.Wait()
				require.True(t, x.run.ProcessState.Exited(), "%v", x.run.ProcessState)
				paid, err := os.ReadFile(filepath.Join(x.dir, "paid"))
				require.NoError(t, err)
				require.Equal(t, "\n", string(paid))
				worldctl(t, nil, "-w", x.dir, "run") // its result was kept
				require.Contains(t, string(worldctl(t, nil, "-w", x.dir, "intent", "list")), "committed")
			})
		}
	}
}

// TestTheLastCtrlCEndsAPaymentThatWasNamed, and the next command has it in doubt.
func TestTheLastCtrlCEndsAPaymentThatWasNamed(t *testing.T) {
	x := runTill(t, "run")
	go interrupted(x.run)
	x.says("finishing 1 effect under way: bank.pay ")
	named := x.says("leaves in doubt 1 effect under way: bank.pay ")
	for x.err.Scan() { // to the end
	}
	key, _, _ := strings.Cut(named[strings.Index(named, "bank.pay ")+len("bank.pay "):], ";")
	seen := worldctl(t, nil, "-w", x.dir, "intent", "list", "--state", "in_doubt")
	require.Contains(t, string(seen), key)
	x.let()
	x.awaits("paid") // the program does not hear of the terminal
}

// TestReadingAWorldFileEndsSoon: what a stranger's file holds can take long to read, as a world to open.
func TestReadingAWorldFileEndsSoon(t *testing.T) {
	s := newSignals(t)
	c := &cli{opts: Options{interrupts: s.interrupts}}
	var during []int
	_, err := c.loadWorld(filepath.Join(newWorld(t), "world.yaml"), source.WithOpened(func(string) { during = append(during, s.opens) }))
	require.NoError(t, err)
	require.NotEmpty(t, during)
	require.NotContains(t, during, 0)
	require.Zero(t, s.opens)
}
