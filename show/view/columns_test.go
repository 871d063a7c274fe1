package view_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/llm"
	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/columns"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// requireColumns holds the columns of a world to what is told of its records one by one,
// and returns how many there are of each kind.
func requireColumns(t *testing.T, x *columns.Index, j view.Journal) map[journal.Kind]int {
	t.Helper()
	require.NoError(t, x.Extend(t.Context(), j.End()))
	var rows []columns.Row
	for last := journal.Seq(0); last < j.End(); {
		page, end, err := x.Page(last, false)
		require.NoError(t, err)
		p, err := columns.Decode(page)
		require.NoError(t, err)
		rows, last = slices.AppendSeq(rows, p.Rows()), end
	}
	kinds := make(map[journal.Kind]int)
	for e, err := range j.Scan(0) {
		require.NoError(t, err)
		told, err := j.View(e)
		require.NoError(t, err)
		what := string(told.Kind)
		if told.How != "" {
			what += " " + told.How
		}
		require.Equal(t, columns.Row{Record: told.ID, Time: told.Time, What: what, Name: told.Name, Cells: append([]string(nil), told.Cells...), Cause: told.Cause},
			rows[told.ID-1])
		indexed, err := view.Journal{Local: j.Local, Index: x}.CauseOf(e)
		require.NoError(t, err)
		require.Equal(t, told.Cause, indexed, "#%d", e.ID)
		kinds[e.Kind]++
		if e.ID%5 == 0 {
			for _, links := range []uint64{0, 2} {
				searched := consequences(t, view.Journal{Local: j.Local}, e, links)
				require.Equal(t, searched, consequences(t, view.Journal{Local: j.Local, Index: x}, e, links), "of #%d", e.ID)
			}
		}
	}
	require.Len(t, rows, int(j.End()))
	return kinds
}

// consequences returns the records that follow from one, each behind its cause.
func consequences(t *testing.T, j view.Journal, of *view.Entry, links uint64) (all [][2]journal.Seq) {
	t.Helper()
	for c, err := range j.Consequences(t.Context(), of, links) {
		require.NoError(t, err)
		all = append(all, [2]journal.Seq{c.Cause, c.ID})
	}
	return all
}

// TestColumnsAreThoseOfTheRecordsOnEveryTemplate that worldctl can run by itself.
func TestColumnsAreThoseOfTheRecordsOnEveryTemplate(t *testing.T) {
	for _, name := range examples.Names() {
		if name == "go" || name == "gateway" { // its own program knows its reducer; an agent sends its events
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, examples.Copy(name, dir))
			options := local.Options{Adapters: map[string]host.Factory{"llm": llm.New, "mcp": mcp.New}}
			require.NoError(t, local.Create(dir, local.CreateOptions{ID: name}, options))
			lw, err := local.Open(dir, options)
			require.NoError(t, err)
			defer func() { require.NoError(t, lw.Close()) }()
			_, err = lw.SubmitLines(t.Context(), begun(t, name, dir), nil, world.When{}, nil)
			require.NoError(t, err)
			require.NoError(t, lw.RunUntil(t.Context(), 3)) // some go on for ever
			j := view.Journal{Local: lw}
			require.NotZero(t, requireColumns(t, j.Columns(), j)[journal.KindStepped])
		})
	}
}

// begun are the lines that an example begins with: of its file, or what its README sends.
func begun(t *testing.T, name, dir string) io.Reader {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		event, data, _ := strings.Cut(examples.Event(name), " ")
		return strings.NewReader(`{"event": "` + event + `", "data": ` + strings.Trim(data, "'") + `}`)
	}
	return bytes.NewReader(text)
}

// bots is a world whose cells do as they are told.
type bots struct {
	*testing.T
	dir string
	lw  *local.World
	x   *columns.Index // kept up since the world was opened
}

func (b *bots) open() {
	b.Helper()
	var err error
	b.lw, err = local.Open(b.dir, local.Options{})
	require.NoError(b, err)
	b.x = view.Journal{Local: b.lw}.Columns()
}

func (b *bots) update(change func(*world.World) error) {
	b.Helper()
	require.NoError(b, b.lw.Update(change))
}

func (b *bots) tell(to string, acts ...map[string]any) {
	b.Helper()
	_, err := b.lw.Submit(b.Context(), "go", map[string]any{"to": to, "do": append([]map[string]any{}, acts...)})
	require.NoError(b, err)
	require.NoError(b, b.lw.Run(b.Context()))
}

// hold holds the index that was kept up and a new one to the records.
func (b *bots) hold() map[journal.Kind]int {
	b.Helper()
	j := view.Journal{Local: b.lw}
	requireColumns(b.T, b.x, j)
	return requireColumns(b.T, j.Columns(), j)
}

// large returns the last record of a kind whose payload is a blob.
func (b *bots) large(kind journal.Kind) (found journal.Seq) {
	b.Helper()
	for s, err := range b.lw.Scan(0) {
		require.NoError(b, err)
		if s.Record.Kind == kind && !s.Record.Blob.IsZero() {
			found = s.ID
		}
	}
	require.NotZero(b, found, kind)
	return found
}

// lived is a world in which cells failed, and effects were denied, put before a person, approved,
// failed and repeated.
func lived(t *testing.T) *bots {
	t.Helper()
	b := &bots{T: t, dir: t.TempDir()}
	require.NoError(t, os.CopyFS(b.dir, os.DirFS("../../world/worldtest/testdata/bots")))
	file := filepath.Join(b.dir, local.ManifestFile)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := strings.Replace(string(text), "policies:\n", "policies:\n  - {name: ask, when: 'intent.kind == \"tool.b\"', decide: require_approval}\n", 1)
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	require.NoError(t, local.Create(b.dir, local.CreateOptions{ID: "w"}, local.Options{}))
	b.open()
	t.Cleanup(func() { _ = b.lw.Close() })
	b.tell("a", map[string]any{"effect": "tool.a", "param": "x"}, map[string]any{"effect": "tool.bad"}, map[string]any{"emit": "ping", "to": "b"}, map[string]any{"timer": 2})
	b.tell("a", map[string]any{"effect": "tool.a", "param": strings.Repeat("y", 9000)}, map[string]any{"effect": "tool.b", "param": strings.Repeat("z", 9000)})
	b.tell("c/d ?é", map[string]any{"fail": "as told"})
	return b
}

// resolve decides about every intent that waits for a person.
func (b *bots) resolve(how journal.Resolution) {
	b.Helper()
	for _, e := range (view.Journal{Local: b.lw}).Ledger() {
		if e.State != receipt.StateAwaitingApproval {
			continue
		}
		b.update(func(w *world.World) error {
			_, err := w.Resolve(b.Context(), journal.Resolved{Key: e.Intent.Key, How: how, Params: e.Params, Actor: "ada", Reason: "seen"})
			return err
		})
	}
	require.NoError(b, b.lw.Run(b.Context()))
}

// TestColumnsAreThoseOfTheRecordsWhateverIsDoneToAWorld: rollback, fork, redaction,
// archive and crash.
func TestColumnsAreThoseOfTheRecordsWhateverIsDoneToAWorld(t *testing.T) {
	b := lived(t)
	kinds := b.hold()
	for _, k := range []journal.Kind{journal.KindFailed, journal.KindDenied, journal.KindAwaitingApproval, journal.KindFinished, journal.KindFired, journal.KindEmitted} {
		require.NotZero(t, kinds[k], k)
	}
	b.update(func(w *world.World) error {
		_, err := w.Snapshot(t.Context(), "noon", "", "ada")
		return err
	})
	b.tell("a", map[string]any{"effect": "tool.a", "param": "later"})
	b.resolve(journal.Approve)
	b.hold()

	b.update(func(w *world.World) error {
		_, _, err := w.Rollback(t.Context(), journal.RolledBack{Snapshot: "noon", Reason: "a try", Actor: "ada", Ack: true})
		return err
	})
	b.tell("a", map[string]any{"effect": "tool.a", "param": "later"})
	require.NotZero(t, b.hold()[journal.KindRollback])

	fork := &bots{T: t, dir: filepath.Join(t.TempDir(), "fork")}
	_, err := b.lw.Fork(t.Context(), fork.dir, local.ForkOptions{ID: "fork"})
	require.NoError(t, err)
	fork.open()
	fork.tell("a", map[string]any{"effect": "tool.a", "param": "in the fork"})
	require.NotZero(t, fork.hold()[journal.KindForked])
	require.NoError(t, fork.lw.Close())

	crashed := &bots{T: t, dir: t.TempDir()}
	require.NoError(t, b.lw.Sync())
	require.NoError(t, os.CopyFS(crashed.dir, os.DirFS(b.dir))) // nobody has closed it
	require.NoError(t, os.Chmod(filepath.Join(crashed.dir, ".world", "keyring"), 0o600))
	crashed.open()
	crashed.hold()
	require.NoError(t, crashed.lw.Close())

	archived, err := b.lw.Archive("noon", filepath.Join(t.TempDir(), "old"))
	require.NoError(t, err)
	require.Greater(t, archived.Last.ID, journal.Seq(2))
	b.hold()

	for _, kind := range []journal.Kind{journal.KindSubmitted, journal.KindIntent, journal.KindAwaitingApproval} {
		before := b.hold()
		record := b.large(kind)
		require.NoError(t, b.lw.Close())
		_, err := local.Redact(t.Context(), b.dir, local.Options{}, local.Payload{Record: record}, "asked for", "ada")
		require.NoError(t, err)
		b.open()
		e, err := view.Journal{Local: b.lw}.Entry(record)
		require.NoError(t, err)
		require.Nil(t, e.Body, kind)
		require.Greater(t, b.hold()[journal.KindRedacted], before[journal.KindRedacted])
	}
}

// TestAnAnswerIsToldWithoutTheOtherRecordsOfItsCell, however many they are: by an index, and
// without one where it answers the last attempt. What is read is told by what it allocates.
func TestAnAnswerIsToldWithoutTheOtherRecordsOfItsCell(t *testing.T) {
	b := lived(t)
	for i := range 25 {
		var acts []map[string]any
		for n := range 8 {
			acts = append(acts, map[string]any{"effect": "tool.a", "param": strconv.Itoa(100*i + n)})
		}
		b.tell("a", acts...)
	}
	b.resolve(journal.Approve)
	plain := view.Journal{Local: b.lw}
	indexed := view.Journal{Local: b.lw, Index: b.x}
	require.NoError(t, b.x.Extend(t.Context(), plain.End()))
	concern := 0
	for _, err := range b.lw.CellRecords("bot/a", 0) {
		require.NoError(t, err)
		concern++
	}
	require.Greater(t, concern, 800)
	few := func(j view.Journal, e *view.Entry) {
		require.Less(t, testing.AllocsPerRun(1, func() {
			_, err := j.CauseOf(e)
			require.NoError(t, err)
		}), 100.0, "#%d %s", e.ID, e.Kind)
	}
	answers := 0
	for e, err := range plain.Scan(0) {
		require.NoError(t, err)
		if len(e.Kind.Answers()) == 0 {
			continue
		}
		answers++
		few(indexed, e)
		if e.Kind == journal.KindFinished {
			few(plain, e)
		}
	}
	require.Greater(t, answers, 200)
}
