package kill

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// life is one world, whose processes are killed again and again.
type life struct {
	t     *testing.T
	rng   *rand.Rand
	run   *run
	bank  *bank
	base  string // everything of the life
	dir   string // the world
	key   string // file of an approver's key
	story []string

	seen    seen
	promise map[journal.Kind]span
	orders  map[int]span // how often each was sent
	next    int          // number of an order
	last    []order      // that were sent, oldest first
	made    int          // directories and files beside the world
	version int          // of the rules that were proposed last
}

// span bounds how many there may be: what was acknowledged, and what was tried.
type span struct{ least, most int }

type order struct {
	Cell string `json:"cell"`
	Kind string `json:"kind"`
	N    int    `json:"n"`
}

// newLife makes a world, and kills whoever makes it.
func newLife(t *testing.T, seed uint64, r *run) *life {
	t.Helper()
	k := &life{
		t: t, rng: rand.New(rand.NewPCG(seed, 9)), run: r, bank: newBank(t, r.struck), base: home(t),
		promise: make(map[journal.Kind]span), orders: make(map[int]span), version: 1,
	}
	k.dir, k.key = filepath.Join(k.base, "world"), filepath.Join(k.base, "approver")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s\nto see such a life again: make kill KILLS=25 SEED=%d", strings.Join(k.story, "\n"), seed)
		}
	})
	k.must("keys", "new", "--approver", k.key)
	k.write(k.dir, k.version)
	for range 5 {
		k.attempt(verb{name: "init", args: []string{"init", k.dir}})
		if _, err := os.Stat(filepath.Join(k.dir, ".world")); err == nil {
			k.look()
			return k
		}
	}
	k.must("init", k.dir)
	k.look()
	return k
}

// home returns a new directory, in memory where the system has such: what a killed
// process has written is there either way, and no disk is under test.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(memory(), "kill") //nolint:usetesting // in memory, where it can be
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func memory() string {
	if _, err := os.Stat("/dev/shm"); err == nil {
		return "/dev/shm"
	}
	return ""
}

// tell adds a command, and what became of it, to the story.
func (k *life) tell(args []string, format string, of ...any) {
	var line strings.Builder
	for _, arg := range args {
		line.WriteString(strings.TrimPrefix(arg[:min(len(arg), 90)], k.base+"/") + " ")
	}
	fmt.Fprintf(&line, format, of...)
	k.story = append(k.story, line.String())
}

// verb is a command that may be killed.
type verb struct {
	name  string
	args  []string
	stdin string
	kind  journal.Kind // of the record that it makes, if any
	codes []int        // that it may exit with besides 0
	then  func(acknowledged bool)
}

// attempt begins a command, and kills it at a random moment unless it ends before. It
// reports whether it said that it has done what it was asked for.
func (k *life) attempt(v verb) (acknowledged bool) {
	k.t.Helper()
	cmd := k.command(v.args...)
	cmd.Stdin = strings.NewReader(v.stdin)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	start := time.Now()
	require.NoError(k.t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // its state says how it ended
	}()
	if k.moment(v.name, done) {
		k.end(cmd.Process)
	}
	<-done
	took, code := time.Since(start), cmd.ProcessState.ExitCode()
	require.Less(k.t, took, patience, "%s: it does not end", v.args)
	s := k.promise[v.kind]
	s.most++
	switch {
	case code == interrupted:
		k.run.struck.Count("process stopped")
		k.tell(v.args, "interrupted after %s", took.Round(time.Millisecond))
	case code < 0:
		k.run.killed(v.name)
		k.tell(v.args, "killed after %s", took.Round(time.Millisecond))
	case code == 0:
		s.least++
		fallthrough
	default:
		k.run.ended(v.name, took)
		k.tell(v.args, "exit %d", code)
		require.Contains(k.t, append(v.codes, 0), code, "%s: %s", v.args, &said)
	}
	k.promise[v.kind] = s
	if v.then != nil {
		v.then(code == 0)
	}
	return code == 0
}

// end kills a command, or interrupts it. It may have ended just now.
func (k *life) end(p *os.Process) {
	if k.rng.IntN(8) == 0 {
		_ = p.Signal(os.Interrupt)
		return
	}
	_ = p.Kill()
}

// moment waits until a command is to be killed: some time after it began, mostly before
// its usual end, or after so many requests have come to the bank. It reports whether
// that was before the command ended, as it does where it is not to be killed.
func (k *life) moment(verb string, done <-chan struct{}) bool {
	if k.rng.IntN(3) == 0 {
		return false
	}
	after := k.run.moment(k.rng, verb)
	if verb == "run" && k.rng.IntN(2) == 0 {
		after = time.Duration(k.rng.IntN(3000)) * time.Microsecond
		for range 1 + k.rng.IntN(6) {
			select {
			case <-k.bank.arrived:
			case <-done:
				return false
			}
		}
	}
	select {
	case <-done:
		return false
	case <-time.After(after):
		return true
	}
}

// patience is how long a command may take, on a machine that others use too.
const patience = 10 * time.Minute

// command is a command of the program, for the life's world.
func (k *life) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	k.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, k.run.program, append([]string{"-w", k.dir, "-q"}, args...)...)
	return cmd
}

// must runs a command that nobody kills.
func (k *life) must(args ...string) {
	k.t.Helper()
	out, err := k.command(args...).CombinedOutput()
	k.tell(args, "%v", err)
	require.NoError(k.t, err, "%s: %s", args, out)
}

// live does something, and is killed, until there were so many kills.
func (k *life) live(kills int) {
	k.t.Helper()
	for all := k.run.kills + kills; k.run.kills < all; {
		before := k.run.kills
		if k.rng.IntN(24) == 0 {
			k.owned()
			continue
		}
		if v, ok := k.choose(); ok {
			k.attempt(v)
		}
		if k.run.kills > before {
			k.look()
		}
	}
	k.finish()
}
