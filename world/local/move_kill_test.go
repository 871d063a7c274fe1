package local_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/world/local"
)

// movingAs tells a process what it is to move, and when it is to die.
const movingAs = "WORLDKERNEL_TEST_MOVING"

// movement is a move in a process of its own.
type movement struct {
	URL, Dir string
	To       string // empty: into the store
	Call     int    // to the log, that it dies at; 0: at none
	After    bool   // the call has taken effect
}

// strikingRing is a striking log that keeps keyrings, too.
type strikingRing struct {
	striking
	ring local.KeyringLog
}

func (s strikingRing) Keyring(ctx context.Context) ([]byte, error) { return s.ring.Keyring(ctx) }

func (s strikingRing) PutKeyring(ctx context.Context, sealed []byte) error {
	return s.call(func() error { return s.ring.PutKeyring(ctx, sealed) })
}

// counted strikes at one call of a log that keeps keyrings, and counts them.
func counted(calls *atomic.Int64, at int, after bool, strike func() error) func(movable) journal.Movable {
	return func(l movable) journal.Movable {
		return strikingRing{striking{l, calls, at, after, func() {}, strike}, l.(local.KeyringLog)}
	}
}

// move moves the world shop, whose calls to the log go through wrap.
func (m movement) move(t *testing.T, wrap func(movable) journal.Movable) error {
	t.Helper()
	s, err := pglog.Open(t.Context(), m.URL, pglog.Options{})
	require.NoError(t, err)
	defer s.Close()
	opts := new(till).options()
	opts.Passphrase = func() ([]byte, error) { return []byte("open sesame"), nil }
	place := local.OtherStore{Where: "a store", Log: func(id string, key []byte) (journal.Movable, error) {
		return wrap(s.World(id, pglog.Claim{Key: key, Take: true, Made: m.To == ""})), nil
	}}
	if m.To == "" {
		_, err = local.MoveInto(t.Context(), m.Dir, opts, place)
	} else {
		_, err = local.MoveOut(t.Context(), "shop", m.Dir, m.To, opts, place)
	}
	return err
}

// TestMovingProcess is no test but the process that is killed.
func TestMovingProcess(t *testing.T) {
	text := os.Getenv(movingAs)
	if text == "" {
		t.Skip("it is run by TestKilledMovesLeaveOneWorld")
	}
	var m movement
	require.NoError(t, json.Unmarshal([]byte(text), &m))
	fmt.Println("it moves")
	require.NoError(t, m.move(t, counted(new(atomic.Int64), cmp.Or(m.Call, 1<<30), m.After, func() error {
		die()
		return nil
	})))
}

// killed moves in a process that is killed after a while, unless it dies or has done it before that.
func (m movement) killed(t *testing.T, while time.Duration) bool {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(m)
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run", "^TestMovingProcess$")
	child.Env = append(os.Environ(), movingAs+"="+string(text))
	var said bytes.Buffer
	child.Stderr = &said
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	end := time.AfterFunc(while, func() { _ = child.Process.Kill() })
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	err = child.Wait()
	end.Stop()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.ExitCode(), "a signal ended it, and not: %s%s", rest, &said)
	return true
}

// roads has a world go into a store and back, while the processes that move it are killed.
type roads struct {
	*testing.T
	url   string
	rng   *rand.Rand
	calls map[bool]int           // of a move into the store, and out of it
	took  map[bool]time.Duration // likewise
	kills int
}

// stands says where the world lives: nowhere, or in one place.
func (r *roads) stands(dir string) (inStore bool) {
	r.Helper()
	s, err := pglog.Open(r.Context(), r.url, pglog.Options{})
	require.NoError(r, err)
	defer s.Close()
	inStore = standing(r.T, s.World("shop", pglog.Claim{Made: true})).State == journal.Live
	require.False(r, inStore && livesIn(dir), "two live worlds")
	return inStore
}

// kill has a move killed at a call, or at any moment, and ended by another.
func (r *roads) kill(m movement, dir string) {
	r.Helper()
	into, while := m.To == "", time.Minute
	if r.rng.IntN(2) == 0 {
		while = time.Duration(r.rng.Int64N(int64(r.took[into])))
	} else {
		m.Call, m.After = 1+r.rng.IntN(r.calls[into]), r.rng.IntN(2) == 0
	}
	if m.killed(r.T, while) {
		r.kills++
	}
	r.stands(dir)
	conn, err := pgx.Connect(r.Context(), r.url)
	require.NoError(r, err)
	_, err = conn.Exec(r.Context(), "DELETE FROM worldkernel.node") // its lease has run out
	require.NoError(r, errors.Join(err, conn.Close(r.Context())))
	require.NoError(r, m.move(r.T, plainly), "%+v, %v", m, while)
	require.Equal(r, into, r.stands(dir))
	require.Equal(r, !into, livesIn(dir))
}

// TestKilledMovesLeaveOneWorld has processes killed that move a world into a store on PostgreSQL and
// out of it: at most one world lives, the same again ends the move, and the world stays what it was.
// MOVES says how many are to be killed, and SEED when.
func TestKilledMovesLeaveOneWorld(t *testing.T) {
	number := func(name string, otherwise int) int {
		n, _ := strconv.Atoi(os.Getenv(name))
		return cmp.Or(n, otherwise)
	}
	r := &roads{
		T: t, url: pgtest.URL(t), rng: rand.New(rand.NewPCG(uint64(number("SEED", 1)), 0)), //nolint:gosec // not for secrets
		calls: make(map[bool]int), took: make(map[bool]time.Duration),
	}
	require.NoError(t, pglog.Init(t.Context(), r.url))
	p := new(till)
	opts := p.options()
	opts.Passphrase = func() ([]byte, error) { return []byte("open sesame"), nil }
	dir := movingShop(t, p)
	require.NoError(t, local.Seal(dir, opts))
	rest, want := besides(t, dir), exportedFrom(t, dir, opts)
	out := func() string { return filepath.Join(t.TempDir(), "out") }
	there, back := movement{URL: r.url, Dir: dir}, movement{URL: r.url, Dir: rest, To: out()}
	for _, m := range []movement{there, back} { // undisturbed
		began, calls := time.Now(), new(atomic.Int64)
		require.NoError(t, m.move(t, counted(calls, 1<<30, false, nil)))
		r.calls[m.To == ""], r.took[m.To == ""] = int(calls.Load()), time.Since(began)
	}
	for wanted := number("MOVES", 4); r.kills < wanted; {
		dir = back.To
		r.kill(movement{URL: r.url, Dir: dir}, dir)
		back.To = out()
		r.kill(back, back.To)
		require.Equal(t, want, exportedFrom(t, back.To, opts))
	}
	t.Logf("%d moves were killed; one makes %d calls to the log, and %d back", r.kills, r.calls[true], r.calls[false])
}
