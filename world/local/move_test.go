package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// movable is what the logs of the tests are.
type movable interface {
	journal.Movable
	host.Attempts
}

// striking is a log whose connection goes, or whose process dies, at one call: before it takes
// effect, or after. Nothing answers any more then.
type striking struct {
	movable

	calls  *atomic.Int64 // images are kept beside the rest
	at     int
	after  bool
	each   func() // called at each, before and after
	strike func() error
}

var errStruck = errors.New("the connection is gone")

func (s striking) call(do func() error) error {
	n := int(s.calls.Add(1))
	s.each()
	if n > s.at || n == s.at && !s.after {
		return s.strike()
	}
	err := do()
	s.each()
	if n == s.at {
		return s.strike()
	}
	return err
}

func (s striking) Make(ctx context.Context, m journal.Making) error {
	return s.call(func() error { return s.movable.Make(ctx, m) })
}

func (s striking) Publish(ctx context.Context) error {
	return s.call(func() error { return s.movable.Publish(ctx) })
}

func (s striking) MoveAway(ctx context.Context, to string) error {
	return s.call(func() error { return s.movable.MoveAway(ctx, to) })
}

func (s striking) Release(ctx context.Context, wake journal.Wake) error {
	return s.call(func() error { return s.movable.Release(ctx, wake) })
}

func (s striking) PutImage(ctx context.Context, img *journal.KeptImage) error {
	return s.call(func() error { return s.movable.PutImage(ctx, img) })
}

func (s striking) PutNote(ctx context.Context, n journal.Note) error {
	return s.call(func() error { return s.movable.PutNote(ctx, n) })
}

func (s striking) Redact(ctx context.Context, h journal.Hash) error {
	return s.call(func() error { return s.movable.Redact(ctx, h) })
}

func (s striking) Own(ctx context.Context) (o journal.Owned, err error) {
	err = s.call(func() error {
		o, err = s.movable.Own(ctx)
		return err
	})
	return o, err
}

func (s striking) End(ctx context.Context) (h journal.Head, err error) {
	err = s.call(func() error {
		h, err = s.movable.End(ctx)
		return err
	})
	return h, err
}

func (s striking) Kept(ctx context.Context) (img *journal.KeptImage, err error) {
	err = s.call(func() error {
		img, err = s.movable.Kept(ctx)
		return err
	})
	return img, err
}

func (s striking) Append(b journal.Batch) (p journal.Pending, err error) {
	err = s.call(func() error {
		if p, err = s.movable.Append(b); err != nil {
			return err
		}
		return p.Wait()
	})
	return p, err
}

func (s striking) ChangeAttempts(ctx context.Context, c *receipt.AttemptChanges) (is receipt.AttemptsChanged, err error) {
	err = s.call(func() error {
		is, err = s.movable.ChangeAttempts(ctx, c)
		return err
	})
	return is, err
}

// movingShop makes a world in a directory that has notes, contents, a redaction, and an attempt in
// flight that nobody knows the end of.
func movingShop(t *testing.T, p *till) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		local.ManifestFile: worldtest.Caller("shop", "outside.pay: {adapter: till, on_in_doubt: ask}"), "caller.star": payer,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "shop"}, local.InDirectory(p.options())))
	for n := range 22 {
		w := openPaying(t, dir, p.options())
		pay(t, w, "ada", fmt.Sprint("tea ", n, strings.Repeat("!", 6000*(n%2))))
		require.NoError(t, w.Run(t.Context()))
		_, err := w.Checkpoint()
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	opts := p.options()
	record := journal.Seq(0)
	w := openPaying(t, dir, opts)
	for s, err := range w.Scan(0) {
		require.NoError(t, err)
		if record == 0 && s.Record.BlobSize > 5000 {
			record = s.ID
		}
	}
	require.NoError(t, w.Close())
	_, err := local.Redact(t.Context(), dir, opts, local.Payload{Record: record}, "asked for", "ada")
	require.NoError(t, err)
	begun := make(chan struct{}, 1)
	opts.Adapters = map[string]host.Factory{"till": func(host.Setup) (host.Adapter, error) { return cutShort{begun}, nil }}
	opts.Grace = time.Millisecond
	w = openPaying(t, dir, opts)
	pay(t, w, "bob", "coffee")
	for w.Status().Intents[receipt.StateInFlight] == 0 {
		_, err := w.Next(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, w.Sync())
	<-begun
	require.NoError(t, w.Close())
	require.Len(t, w.Left(), 1)
	return dir
}

// cutShort is an adapter that has begun when its process ends.
type cutShort struct{ begun chan<- struct{} }

func (c cutShort) Perform(ctx context.Context, _ host.Call) (host.Result, error) {
	c.begun <- struct{}{}
	<-ctx.Done()
	return host.Result{}, ctx.Err()
}

// placeOf is a place in a log.
func placeOf(open func() journal.Log, wrap func(movable) journal.Movable) local.OtherStore {
	return local.OtherStore{Where: "postgres://db/worlds", Log: func(string, []byte) (journal.Movable, error) {
		return wrap(open().(movable)), nil
	}}
}

func plainly(l movable) journal.Movable { return l }

func standing(t *testing.T, l journal.Log) journal.Standing {
	t.Helper()
	is, err := l.(journal.Movable).Stands(t.Context())
	require.NoError(t, err)
	return is
}

// livesIn reports whether a directory holds a world that opens.
func livesIn(dir string) bool {
	_, store := os.Stat(filepath.Join(dir, ".world", "store"))
	moved, err := os.ReadFile(filepath.Join(dir, ".world", "moved"))
	return store == nil && (errors.Is(err, os.ErrNotExist) || bytes.HasPrefix(moved, []byte("here ")))
}

// exportedFrom is the journal of a world, byte by byte.
func exportedFrom(t *testing.T, dir string, opts local.Options) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := local.OpenReadOnly(dir, opts)
	require.NoError(t, err)
	require.NoError(t, w.Export(&out, local.JSONLines, nil))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// besides returns a directory with what a world in a log has beside it: files and keyring.
func besides(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(to, ".world"), 0o700))
	for _, name := range []string{local.ManifestFile, "caller.star", ".world/keyring"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, name), data, 0o600))
	}
	return to
}

func TestWorldMovesIntoALogAndBack(t *testing.T) {
	s := new(logtest.Server)
	moveThereAndBack(t, s.Log)
}

func TestWorldMovesIntoPostgresAndBack(t *testing.T) {
	url := pgtest.URL(t)
	require.NoError(t, pglog.Init(t.Context(), url))
	s, err := pglog.Open(t.Context(), url, pglog.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	moveThereAndBack(t, func() journal.Log {
		return s.World("shop", pglog.Claim{Key: postgresKey, Take: true, Made: true})
	})
}

// moveThereAndBack moves a world twice. A log that keeps keyrings gets a sealed one.
func moveThereAndBack(t *testing.T, log func() journal.Log) {
	t.Helper()
	p := new(till)
	dir := movingShop(t, p)
	place := placeOf(log, plainly)
	opts := p.options()
	opts.Passphrase = func() ([]byte, error) { return []byte("open sesame"), nil }
	if _, keeps := log().(local.KeyringLog); keeps {
		_, err := local.MoveInto(t.Context(), dir, opts, place)
		require.ErrorIs(t, err, local.ErrNotSealed)
		require.Equal(t, journal.Absent, standing(t, log()).State)
		require.NoError(t, local.Seal(dir, opts))
	}
	inLog := opts
	inLog.Log = func([]byte) (journal.Log, error) { return log(), nil }
	want := exportedFrom(t, dir, opts)
	for range 2 {
		paid := len(p.paid)
		rest := besides(t, dir)
		moved, err := local.MoveInto(t.Context(), dir, opts, place)
		require.NoError(t, err)
		require.Equal(t, place.Where, moved.To)
		var away *local.MovedError
		_, err = local.Open(dir, opts)
		require.ErrorAs(t, err, &away)
		require.ErrorContains(t, err, "the world has moved to world shop of postgres://db/worlds: open it there")
		again, err := local.MoveInto(t.Context(), dir, opts, place)
		require.NoError(t, err)
		require.Equal(t, moved, again)

		require.Equal(t, want, exportedFrom(t, rest, inLog))
		r, err := local.Verify(t.Context(), rest, inLog, local.Verification{})
		require.NoError(t, err)
		require.Empty(t, r.Faults)
		w := openPaying(t, rest, inLog)
		require.NoError(t, w.Run(t.Context()))
		require.Len(t, p.paid, paid, "what is in flight may have been made")
		_, err = w.Submit(t.Context(), "go", map[string]any{"to": "eve", "what": "milk"})
		require.NoError(t, err)
		require.NoError(t, w.Run(t.Context()))
		require.Len(t, p.paid, paid+1)
		require.NoError(t, w.Close())
		want = exportedFrom(t, rest, inLog)

		dir = filepath.Join(t.TempDir(), "back")
		back, err := local.MoveOut(t.Context(), "shop", rest, dir, inLog, place)
		require.NoError(t, err)
		require.Equal(t, dir, back.To)
		again, err = local.MoveOut(t.Context(), "shop", rest, dir, inLog, place)
		require.NoError(t, err)
		require.Equal(t, back, again)
		require.Equal(t, want, exportedFrom(t, dir, opts))
		_, err = local.Open(rest, inLog)
		require.Error(t, err)
	}
	r, err := local.Verify(t.Context(), dir, opts, local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
}

// TestForkOfRecordingsStaysInItsDirectory, for in a log it would perform what they answer.
func TestForkOfRecordingsStaysInItsDirectory(t *testing.T) {
	p := new(till)
	w := paying(t, p)
	fork := forkLive(t, w, 0)
	s := new(logtest.Server)
	_, err := local.MoveInto(t.Context(), fork, p.options(), placeOf(s.Log, plainly))
	require.ErrorContains(t, err, "another world recorded")
	require.Equal(t, journal.Absent, standing(t, s.Log()).State)
	require.NoError(t, openPaying(t, fork, p.options()).Close(), "it lives on")
}

// TestMoveThatIsCutOff at any call is ended by the same again, and at no moment there are two
// worlds that live.
func TestMoveThatIsCutOff(t *testing.T) {
	p := new(till)
	model := movingShop(t, p)
	want := exportedFrom(t, model, p.options())
	cuts := 0
	for n, done := 1, 0; done < 2; n++ {
		done = 0
		for _, after := range []bool{false, true} {
			if !cutOffInto(t, p, model, want, n, after) {
				done++
			}
			cuts++
		}
	}
	require.Greater(t, cuts, 60)
	moved, rest := new(logtest.Server), besides(t, model)
	dir := duplicateOf(t, model)
	_, err := local.MoveInto(t.Context(), dir, p.options(), placeOf(moved.Log, plainly))
	require.NoError(t, err)
	for n, done := 1, 0; done < 2; n++ {
		done = 0
		for _, after := range []bool{false, true} {
			if !cutOffOut(t, p, moved.Backup(), duplicateOf(t, rest), want, n, after) {
				done++
			}
		}
	}
}

// duplicateOf returns a copy of a directory.
func duplicateOf(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	require.NoError(t, os.Chmod(filepath.Join(to, ".world", "keyring"), 0o600))
	return to
}

// atMostOne fails a test where two worlds live.
func atMostOne(t *testing.T, dir string, s *logtest.Server) func() {
	return func() {
		require.False(t, standing(t, s.Log()).State == journal.Live && livesIn(dir), "two live worlds")
	}
}

// cutOffInto reports whether the call was reached at which it cuts off.
func cutOffInto(t *testing.T, p *till, model string, want []byte, n int, after bool) (reached bool) {
	t.Helper()
	dir, s, calls := duplicateOf(t, model), new(logtest.Server), new(atomic.Int64)
	rest := besides(t, dir)
	_, err := local.MoveInto(t.Context(), dir, p.options(), placeOf(s.Log, func(l movable) journal.Movable {
		return striking{l, calls, n, after, atMostOne(t, dir, s), func() error { return errStruck }}
	}))
	if calls.Load() < int64(n) {
		require.NoError(t, err)
		return false
	}
	require.ErrorIs(t, err, errStruck)
	atMostOne(t, dir, s)()
	_, err = local.MoveInto(t.Context(), dir, p.options(), placeOf(s.Log, plainly))
	require.NoError(t, err, "call %d", n)
	require.False(t, livesIn(dir))
	opts := p.options()
	opts.Log = func([]byte) (journal.Log, error) { return s.Log(), nil }
	require.Equal(t, want, exportedFrom(t, rest, opts))
	return true
}

func cutOffOut(t *testing.T, p *till, s *logtest.Server, rest string, want []byte, n int, after bool) (reached bool) {
	t.Helper()
	dir, calls := filepath.Join(t.TempDir(), "out"), new(atomic.Int64)
	_, err := local.MoveOut(t.Context(), "shop", rest, dir, p.options(), placeOf(s.Log, func(l movable) journal.Movable {
		return striking{l, calls, n, after, atMostOne(t, dir, s), func() error { return errStruck }}
	}))
	if calls.Load() < int64(n) {
		require.NoError(t, err)
		return false
	}
	atMostOne(t, dir, s)()
	_, again := local.MoveOut(t.Context(), "shop", rest, dir, p.options(), placeOf(s.Log, plainly))
	require.NoError(t, again, "call %d, after %v", n, err)
	require.True(t, livesIn(dir))
	require.Equal(t, want, exportedFrom(t, dir, p.options()))
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
	return true
}

// cancelling is a log that ends a context when it is asked for attempts.
type cancelling struct {
	movable
	cancel context.CancelFunc
}

func (c cancelling) KeptAttempts(ctx context.Context) ([]receipt.KeptAttempt, error) {
	c.cancel()
	return c.movable.KeptAttempts(context.WithoutCancel(ctx))
}

// TestAWorldLeavesWhenNobodyGoesOnWithWhatIsBegun: in a directory nobody would know that a worker, or an owner
// that the world was taken from, still may perform it.
func TestAWorldLeavesWhenNobodyGoesOnWithWhatIsBegun(t *testing.T) {
	p, s := new(till), new(logtest.Server)
	dir := movingShop(t, p)
	rest := besides(t, dir)
	_, err := local.MoveInto(t.Context(), dir, p.options(), placeOf(s.Log, plainly))
	require.NoError(t, err)
	log := s.Log()
	_, err = log.Own(t.Context())
	require.NoError(t, err)
	held := receipt.KeptAttempt{Key: receipt.Key{Hash: receipt.Hash{9}}, Attempt: 1, Worker: "w-1", Lease: time.Hour}
	_, err = log.(host.Attempts).ChangeAttempts(t.Context(), &receipt.AttemptChanges{Begin: []receipt.KeptAttempt{held}})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	to := filepath.Join(t.TempDir(), "out")
	_, err = local.MoveOut(ctx, "shop", rest, to, p.options(), placeOf(s.Log, func(l movable) journal.Movable { return cancelling{l, cancel} }))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, journal.Live, standing(t, s.Log()).State)
	require.NoDirExists(t, to)
}
