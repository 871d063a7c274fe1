package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// shared is where the journal of the world lies that a test makes; nil: in its directory.
// forgotten: its copy is deleted before it is opened.
var (
	shared    logServer
	forgotten bool
)

// logServer has the log of a world, as one more process has it.
type logServer interface{ Log() journal.Log }

// inLog has a world in the log, where there is one.
func inLog(opts local.Options) local.Options {
	if s := shared; s != nil {
		opts.Log = func([]byte) (journal.Log, error) { return s.Log(), nil }
	}
	return opts
}

func forget(t testing.TB, dir string) {
	t.Helper()
	if shared != nil && forgotten {
		for _, name := range []string{"store", "anchor", "copy"} {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, ".world", name)))
		}
	}
}

// TestWorldsOnALog runs what worlds in a directory do on those whose journal lies in a log, with
// the copies that they leave and without them.
func TestWorldsOnALog(t *testing.T) {
	runOnALog(t, func(*testing.T) logServer { return &logtest.Server{} })
}

// inPostgres is the log of a world in a store on PostgreSQL.
type inPostgres struct {
	store *pglog.Store
	id    string
}

var postgresKey = []byte("a key of thirty-two bytes for it")

func (p inPostgres) Log() journal.Log {
	return p.store.World(p.id, pglog.Claim{Key: postgresKey, Take: true})
}

func TestWorldsOnPostgres(t *testing.T) {
	url := pgtest.URL(t)
	require.NoError(t, pglog.Init(t.Context(), url))
	s, err := pglog.Open(t.Context(), url, pglog.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	worlds := 0
	runOnALog(t, func(t *testing.T) logServer {
		worlds++
		p := inPostgres{s, fmt.Sprint("w", worlds)}
		require.NoError(t, s.Create(t.Context(), p.id, postgresKey))
		return p
	})
}

func runOnALog(t *testing.T, fresh func(*testing.T) logServer) {
	t.Helper()
	defer func() { shared, forgotten = nil, false }()
	for name, test := range map[string]func(*testing.T){
		"lives on":   TestWorldLivesOnAfterClose,
		"turns":      TestManyCallersTakeTurns,
		"refuses":    TestRefusedSubmissionSaysWhy,
		"closed":     TestClosedWorldRefuses,
		"looks back": TestWorldIsReadAndRolledBack,
		"copied":     TestWorldInALogIsCopiedIntoADirectory,
		"looked at":  TestWorldInALogIsLookedAtWhileItsOwnerRuns,
	} {
		for _, forgotten = range []bool{false, true} {
			shared = fresh(t)
			t.Run(name, test)
		}
	}
}

// TestWorldIsReadAndRolledBack tells a story once, and once more with the world opened anew
// between all that is done: it is one world.
func TestWorldIsReadAndRolledBack(t *testing.T) {
	was := shared
	shared = nil
	want := factsOfStory(t, func(_ string, w *local.World) *local.World { return w })
	shared = was
	require.Equal(t, want, factsOfStory(t, func(dir string, w *local.World) *local.World {
		require.NoError(t, w.Close())
		return open(t, dir)
	}))
}

// facts are what must not depend on where a journal lies, and on how often it is opened.
type facts struct {
	head            journal.Head
	execution, root string
	timeline        []journal.Seq
	then            world.CellView
}

func factsOfStory(t *testing.T, again func(string, *local.World) *local.World) (f facts) {
	t.Helper()
	dir := create(t)
	w := again(dir, open(t, dir))
	live(t, w)
	middle := w.Status().Head.ID
	require.NoError(t, w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(t.Context(), "before", "", "ada")) }))
	w = again(dir, w)
	live(t, w)
	w = again(dir, w)
	require.NoError(t, w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Rollback(t.Context(), journal.RolledBack{Snapshot: "before", Reason: "so", Actor: "ada", Ack: true}))
	}))
	w = again(dir, w)
	live(t, w)
	_, err := w.Checkpoint()
	require.NoError(t, err)
	w = again(dir, w)
	requireProven(t, w)
	w = again(dir, w)
	for id, err := range w.CellRecords("bot/a", 0) {
		require.NoError(t, err)
		f.timeline = append(f.timeline, id)
	}
	require.NotEmpty(t, f.timeline)
	found := false
	f.then, found, err = w.CellAt(reducer.Cell{Reducer: "bot", Key: "a"}, middle)
	require.NoError(t, err)
	require.True(t, found)
	proof, err := w.ProveRecord(f.timeline[0])
	require.NoError(t, err)
	require.NotNil(t, proof)
	r, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	f.head, f.execution, f.root = w.Status().Head, r.ExecutionHash.String(), r.StateRoot.String()
	if shared != nil {
		_, err = w.Archive("before", filepath.Join(t.TempDir(), "archived"))
		require.ErrorIs(t, err, store.ErrInTheLog)
	}
	require.NoError(t, w.Close())
	return f
}

func TestRedactionInALogIsForGood(t *testing.T) {
	s := &logtest.Server{}
	shared = s
	defer func() { shared, forgotten = nil, false }()
	dir, _ := lived(t)
	opts := inLog(local.Options{})
	w := open(t, dir)
	record := journal.Seq(0)
	for s, err := range w.Scan(0) {
		require.NoError(t, err)
		if record == 0 && s.Record.BlobSize > 5000 {
			record = s.ID
		}
	}
	require.NoError(t, w.Close())
	r, err := local.Redact(t.Context(), dir, opts, local.Payload{Record: record}, "asked for", "ada")
	require.NoError(t, err)
	_, err = s.Log().Blob(r.Blob)
	require.ErrorIs(t, err, journal.ErrRedacted)
	for _, forgotten = range []bool{false, true} {
		w = open(t, dir)
		_, err = w.Blob(r.Blob)
		require.ErrorIs(t, err, journal.ErrRedacted)
		_, err = w.Submit(t.Context(), "ping", map[string]any{"to": "a"})
		require.NoError(t, err)
		require.NoError(t, w.Run(t.Context()))
		require.NoError(t, w.Close())
	}
}

func TestCopyOfAWorldMayLieElsewhere(t *testing.T) {
	var s logtest.Server
	dir, opts := files(t), local.Options{Copy: filepath.Join(t.TempDir(), "copy")}
	opts.Log = func([]byte) (journal.Log, error) { return s.Log(), nil }
	require.NoError(t, local.Create(dir, local.CreateOptions{}, opts))
	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	live(t, w)
	head := w.Status().Head
	require.NoError(t, w.Close())
	require.NoDirExists(t, filepath.Join(dir, ".world", "store"))
	require.NoError(t, os.RemoveAll(opts.Copy))
	w, err = local.Open(dir, opts)
	require.NoError(t, err)
	require.Equal(t, head, w.Status().Head)
	requireProven(t, w)
	require.NoError(t, w.Close())
}

// noting is a log that notes what is begun in it.
type noting struct {
	journal.Log
	host.Attempts

	begun *[]receipt.KeptAttempt
}

func (n noting) ChangeAttempts(ctx context.Context, c *receipt.AttemptChanges) (receipt.AttemptsChanged, error) {
	*n.begun = append(*n.begun, c.Begin...)
	return n.Attempts.ChangeAttempts(ctx, c)
}

// TestWorldInALogBeginsItsEffectsThere: whoever takes it over, from any directory, knows by that
// what may have happened.
func TestWorldInALogBeginsItsEffectsThere(t *testing.T) {
	server, p := new(logtest.Server), new(till)
	var begun []receipt.KeptAttempt
	opts := p.options()
	opts.Log = func([]byte) (journal.Log, error) {
		log := server.Log()
		return noting{log, log.(host.Attempts), &begun}, nil
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		local.ManifestFile: worldtest.Caller("shop", "outside.pay: {adapter: till, on_in_doubt: ask}"), "caller.star": payer,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "shop"}, opts))
	w := openPaying(t, dir, opts)
	pay(t, w, "ada", "tea")
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, `["paid tea"]`, toldOf(t, w, "ada"))
	require.NoError(t, w.Close())
	require.Len(t, begun, 1)
	require.NoFileExists(t, filepath.Join(dir, ".world", "effects"))
	next := server.Log()
	_, err := next.Own(t.Context())
	require.NoError(t, err)
	left, err := next.(host.Attempts).KeptAttempts(t.Context())
	require.NoError(t, err)
	require.Empty(t, left, "the journal has it")
}
