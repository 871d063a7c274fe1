package pglog

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

const owners = 8

// many is how often something is done: a few times in tests, and as the environment says in
// torture.
func many(t *testing.T, name string, few int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	return few
}

// contenders are the stores of eight processes.
func contenders(t *testing.T, url string) []*Store {
	t.Helper()
	var stores []*Store
	for i := range owners {
		stores = append(stores, open(t, url, Options{Node: fmt.Sprintf("node %d", i), Connections: 3, Patience: 2 * time.Minute}))
	}
	return stores
}

// contend has each of some processes take a world, a number of times, and more often while more says so.
func contend(t *testing.T, times int, stores []*Store, more func() bool) *witness {
	var w witness
	var all sync.WaitGroup
	for i, s := range stores {
		c := contender{
			Open:         func() journal.Log { return s.World("w", Claim{Key: testKey, Take: true}) },
			Random:       rand.New(rand.NewPCG(uint64(i), 1)),
			Acknowledged: w.Acknowledged,
			Beside:       writeBeside(i),
		}
		all.Go(func() {
			err := c.Run(t.Context(), times)
			for err == nil && more() {
				err = c.Run(t.Context(), 1)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return &w
}

func TestEightOwnersContend(t *testing.T) {
	url := newURL(t)
	s := open(t, url, Options{})
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	noteWritten(t, url)
	w := contend(t, many(t, "TAKEOVERS", 160)/owners, contenders(t, url), func() bool { return false })
	noOldToken(t, s, url, w.Check(t, s.World("w", Claim{})))
}

// TestOwnersContendOverABadWire has the network, the server's processes and the server fail.
func TestOwnersContendOverABadWire(t *testing.T) {
	server := pgtest.Start(t)
	direct := server.URL(t)
	require.NoError(t, Init(t.Context(), direct))
	s := open(t, direct, Options{})
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	noteWritten(t, direct)

	wanted := many(t, "WIRE_FAULTS", 150)
	var seed, struck atomic.Int64
	var bad atomic.Bool
	proxy := server.Proxy(t, func([]byte) pgtest.Fault {
		r := rand.New(rand.NewPCG(uint64(seed.Add(1)), 7))
		if !bad.Load() || r.IntN(6) > 0 {
			return pgtest.None
		}
		struck.Add(1)
		return pgtest.Fault(1 + r.IntN(pgtest.Faults-1))
	})
	var w *witness
	ended, stores := make(chan struct{}), contenders(t, proxy.URL(direct))
	bad.Store(true)
	strikes := []struct {
		what   string
		wanted int
		do     func()
	}{
		{"sessions terminated", many(t, "SESSIONS", 4), func() { hitAppend(t, s, "pg_terminate_backend(pid)") }},
		{"processes of the server killed", many(t, "KILLS", 1), func() {
			for killed := false; !killed; {
				killed = syscall.Kill(hitAppend(t, s, "true"), syscall.SIGKILL) == nil // else it has ended meanwhile
			}
		}},
		{"crashes", many(t, "CRASHES", 1), func() { server.Crash(t) }},
	}
	var struckAll atomic.Bool
	go func() {
		defer close(ended)
		w = contend(t, max(wanted*3/4/owners, 4), stores, func() bool { return !struckAll.Load() })
	}()
	for _, strike := range strikes {
		for range strike.wanted {
			strike.do()
		}
		t.Logf("%d %s", strike.wanted, strike.what)
	}
	struckAll.Store(true)
	<-ended
	t.Logf("%d faults of the wire", struck.Load())
	batches := w.Check(t, s.World("w", Claim{}))
	t.Logf("%d owners appended %d records", len(batches), end(t, s))
	noOldToken(t, s, direct, batches)
}

func end(t *testing.T, s *Store) journal.Seq {
	t.Helper()
	h, err := s.World("w", Claim{}).End(t.Context())
	require.NoError(t, err)
	return h.ID
}

// hitAppend does something to a session of the server while an owner appends by it, and returns the
// number of its process.
func hitAppend(t *testing.T, s *Store, does string) (pid int) {
	t.Helper()
	sql := `SELECT pid FROM (SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
		AND state = 'active' AND query LIKE '%INTO worldkernel.frame%' ORDER BY random() LIMIT 1) AS owner WHERE ` + does
	for pid == 0 { // nobody appends in this moment
		require.NoError(t, s.insist(t.Context(), func(ctx context.Context) error {
			if err := s.row(ctx, sql, nil, &pid); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		}))
	}
	return pid
}

// envContender has this test binary be a process that contends: the store's URL, and its number.
const envContender = "PGLOG_CONTENDER"

// TestContender is such a process. It prints the heads that were acknowledged to it.
func TestContender(t *testing.T) {
	number, url, given := strings.Cut(os.Getenv(envContender), " ")
	if !given {
		t.Skip("it is started by TestProcessesThatAreStoppedContend")
	}
	i, err := strconv.ParseUint(number, 10, 64)
	require.NoError(t, err)
	s := open(t, url, Options{Node: "process " + number, Connections: 3})
	out := bufio.NewWriter(os.Stdout)
	c := contender{
		Open:   func() journal.Log { return s.World("w", Claim{Key: testKey, Take: true}) },
		Random: rand.New(rand.NewPCG(i, 2)),
		Acknowledged: func(h journal.Head) {
			fmt.Fprintf(out, "ack %d %s\n", h.ID, hex.EncodeToString(h.Root[:]))
			_ = out.Flush()
		},
		Beside: writeBeside(int(i)),
	}
	require.NoError(t, c.Run(t.Context(), many(t, "TAKEOVERS", 80)/owners))
}

// TestProcessesThatAreStoppedContend stops processes with SIGSTOP at any moment, has others take
// the world over, and lets them go on.
func TestProcessesThatAreStoppedContend(t *testing.T) {
	url := newURL(t)
	s := open(t, url, Options{})
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	noteWritten(t, url)
	var w witness
	var processes []*exec.Cmd
	var readers sync.WaitGroup
	for i := range owners {
		cmd := exec.Command(os.Args[0], "-test.run=^TestContender$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", envContender, i, url))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		processes = append(processes, cmd)
		readers.Go(func() { acknowledged(t, out, &w) })
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		readers.Wait()
	}()
	stops := stopAtRandom(processes, ended)
	for _, p := range processes {
		require.NoError(t, p.Wait())
	}
	batches := w.Check(t, s.World("w", Claim{}))
	t.Logf("%d stops; %d owners appended %d records", stops, len(batches), end(t, s))
	noOldToken(t, s, url, batches)
}

// acknowledged reads what a process prints.
func acknowledged(t *testing.T, out io.Reader, w *witness) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var id uint64
		var root string
		if n, _ := fmt.Sscanf(lines.Text(), "ack %d %s", &id, &root); n < 2 {
			continue // the test's own words
		}
		b, err := hex.DecodeString(root)
		if err != nil || len(b) != len(canon.Hash{}) {
			t.Errorf("an acknowledged root %q", root)
			continue
		}
		w.Acknowledged(journal.Head{ID: journal.Seq(id), Root: journal.Hash(b)})
	}
}

func stopAtRandom(processes []*exec.Cmd, ended chan struct{}) int {
	r := rand.New(rand.NewPCG(3, 3))
	for n := 0; ; n++ {
		p := processes[r.IntN(len(processes))].Process
		_ = p.Signal(syscall.SIGSTOP) // one that has ended is not stopped
		select {
		case <-ended:
			_ = p.Signal(syscall.SIGCONT)
			return n
		case <-time.After(time.Duration(1+r.IntN(40)) * time.Millisecond):
			_ = p.Signal(syscall.SIGCONT)
		}
	}
}

// strike has the n-th request that moves a head meet a fault, and the others none.
func strike(t *testing.T, server *pgtest.Server, url string, n int, f pgtest.Fault) string {
	t.Helper()
	var seen atomic.Int64
	proxy := server.Proxy(t, func(request []byte) pgtest.Fault {
		if strings.Contains(string(request), "INSERT INTO worldkernel.frame") && strings.Contains(string(request), "\x00E\x00") || seen.Load() > 0 {
			if seen.Add(1) == int64(n) {
				return f
			}
		}
		return pgtest.None
	})
	return proxy.URL(url)
}

func TestEachFaultOfAnAppendIsSettled(t *testing.T) {
	for f := range pgtest.Fault(pgtest.Faults) {
		for n := range 4 {
			t.Run(fmt.Sprintf("fault %d of request %d", f, n+1), func(t *testing.T) {
				url := newURL(t)
				require.NoError(t, open(t, url, Options{}).Create(t.Context(), "w", testKey))
				s := open(t, strike(t, pgtest.Shared(t), url, n+1, f), Options{})
				l := s.World("w", Claim{Key: testKey})
				_, err := l.Own(t.Context())
				require.NoError(t, err)
				var c chain
				for range 4 {
					require.NoError(t, appended(l, c.batch(3, 10, "me")))
				}
				h, err := l.End(t.Context())
				require.NoError(t, err)
				require.Equal(t, c.at, h)
				got, err := readAll(t, l)
				require.NoError(t, err)
				require.Len(t, got, 12)
			})
		}
	}
}

// moved has a world owned and a batch appended; then its row, or the store, is another.
func moved(t *testing.T, change string) (*World, error) {
	t.Helper()
	url := newURL(t)
	s := open(t, url, Options{Patience: 10 * time.Second})
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	w := s.World("w", Claim{Key: testKey})
	_, err := w.Own(t.Context())
	require.NoError(t, err)
	var c chain
	require.NoError(t, appended(w, c.batch(2, 10, "me")))
	run(t, url, change)
	err = appended(w, c.batch(2, 10, "me"))
	require.Equal(t, err, appended(w, c.batch(2, 10, "me")), "it stays what it was")
	return w, err
}

func TestAWorldThatWasPutBackIsHalted(t *testing.T) {
	for name, change := range map[string]string{
		"an earlier head":                     "UPDATE worldkernel.world SET head = 1",
		"another root":                        "UPDATE worldkernel.world SET root = sha256('x')",
		"an earlier token and epoch":          "UPDATE worldkernel.world SET token = gen_random_uuid(), epoch = 0",
		"the same epoch, by another token":    "UPDATE worldkernel.world SET token = gen_random_uuid()",
		"a world that is gone":                "DELETE FROM worldkernel.world",
		"records that nobody has appended":    "INSERT INTO worldkernel.frame SELECT wid, 3, 3, epoch, root, '' FROM worldkernel.world",
		"an earlier head under the same root": "UPDATE worldkernel.world SET head = 0",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := moved(t, change)
			require.ErrorIs(t, err, journal.ErrRewound)
		})
	}
}

func TestAWorldThatAnotherHasIsFenced(t *testing.T) {
	w, err := moved(t, "UPDATE worldkernel.world SET token = gen_random_uuid(), epoch = epoch + 1")
	require.ErrorIs(t, err, journal.ErrFenced)
	require.ErrorIs(t, w.PutNote(context.Background(), journal.Note{Size: 1}), journal.ErrFenced)
}

func TestWhatTheServerWarnsOfIsUnknown(t *testing.T) {
	url := newURL(t)
	s := open(t, url, Options{})
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	w := s.World("w", Claim{Key: testKey})
	_, err := w.Own(t.Context())
	require.NoError(t, err)
	// As a wait for a standby that was cancelled does: the rows are there, and a warning.
	run(t, url, `CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'not replicated'; RETURN NEW; END $$;
		CREATE TRIGGER warns AFTER INSERT ON worldkernel.frame FOR EACH ROW EXECUTE FUNCTION warn()`)
	var c chain
	aboard := func(b journal.Batch) *flight {
		p := &pending{batch: b, done: make(chan struct{})}
		return &flight{world: w, wid: w.wid, token: w.token, epoch: w.epoch, after: b.After, head: b.Head, batches: []*pending{p}}
	}
	f := aboard(c.batch(1, 10, "me"))
	landed, err := s.transmit(t.Context(), []*flight{f})
	require.Error(t, err)
	require.Empty(t, landed)
	require.NoError(t, s.settle(f, err), "it is there")
}

func TestAClaimThatComesLateTakesNothing(t *testing.T) {
	s := testStore(t)
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	one, two := s.World("w", Claim{Key: testKey, Take: true}), s.World("w", Claim{Key: testKey, Take: true})
	v, err := one.readStand(t.Context())
	require.NoError(t, err)
	_, err = one.takeOver(t.Context(), v)
	require.NoError(t, err)
	_, err = two.Own(t.Context())
	require.NoError(t, err)
	again := []any{v.wid, one.token, s.opts.Node, s.run, v.token, true, false} // as it was sent
	require.ErrorIs(t, s.row(t.Context(), sqlClaim, again), pgx.ErrNoRows)
	var c chain
	require.NoError(t, appended(two, c.batch(1, 10, "two")))
}

func TestARedactionThatComesLateDestroysNothing(t *testing.T) {
	s := testStore(t)
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	w := s.World("w", Claim{Key: testKey})
	_, err := w.Own(t.Context())
	require.NoError(t, err)
	var c chain
	b := c.batch(1, 10, "me")
	require.NoError(t, appended(w, b))
	h := b.Blobs[0].Hash
	require.NoError(t, w.Redact(t.Context(), h))
	again := c.batch(1, 10, "me")
	again.Blobs = b.Blobs
	require.NoError(t, appended(w, again))
	var there bool
	require.NoError(t, s.row(t.Context(), sqlRedact, []any{w.wid, w.token, h[:], 1}, &there))
	require.False(t, there)
	_, err = w.Blob(h)
	require.NoError(t, err)
}
