package shared_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// makingAs tells a process what it is to make.
const makingAs = "WORLDKERNEL_TEST_MAKING"

// child is what it goes by.
const child = "child"

// making is a world that is made in a store, of another one there, or of a backup.
type making struct {
	URL    string
	Parent string // empty: Backup is restored
	Backup string
	ID     string
}

func sealedOptions() local.Options {
	return local.Options{Passphrase: func() ([]byte, error) { return []byte("open"), nil }}
}

// in returns how a world of the store is opened, with a copy that nobody has.
func (m making) in(t *testing.T, s *shared.Store, id string) (dir string, opts local.Options) {
	t.Helper()
	w, err := s.World(id)
	require.NoError(t, err)
	return t.TempDir(), w.In(sealedOptions())
}

// make makes it, and says why not.
func (m making) make(t *testing.T, s *shared.Store) error {
	t.Helper()
	if m.Parent == "" {
		_, err := s.Restore(t.Context(), m.Backup, m.ID, sealedOptions())
		return err
	}
	lw, err := local.Open(m.in(t, s, m.Parent))
	require.NoError(t, err)
	_, err = lw.ForkBeside(t.Context(), local.ForkOptions{ID: m.ID})
	require.NoError(t, lw.Close())
	return err
}

// TestMakingProcess is no test but the process that is killed.
func TestMakingProcess(t *testing.T) {
	text := os.Getenv(makingAs)
	if text == "" {
		t.Skip("it is run by TestKilledForksAndRestoresLeaveOneWorldOrNone")
	}
	var m making
	require.NoError(t, json.Unmarshal([]byte(text), &m))
	s, err := shared.Open(t.Context(), m.URL, shared.Options{Copies: t.TempDir(), Take: true, Node: child})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, m.make(t, s))
}

// killed makes it in a process that is killed when it asks the server for something for the nth time: before
// the server has heard of it, or when it has done it. It returns how often the server was asked.
func (m making) killed(t *testing.T, n int64, after bool) (asked int64) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	process := exec.CommandContext(t.Context(), self, "-test.run", "^TestMakingProcess$")
	var count atomic.Int64
	started := make(chan struct{})
	proxy := pgtest.Shared(t).Proxy(t, func([]byte) pgtest.Fault {
		switch is := count.Add(1); {
		case is < n || n == 0:
			return pgtest.None
		case is == n:
			<-started
			_ = process.Process.Kill()
			if after {
				return pgtest.Unanswered
			}
		}
		return pgtest.Lost
	})
	direct := m.URL
	m.URL = proxy.URL(direct) + "&application_name=" + child
	text, err := json.Marshal(m)
	require.NoError(t, err)
	process.Env = append(os.Environ(), makingAs+"="+string(text), "TMPDIR="+t.TempDir()) // what it leaves goes with the test
	var said bytes.Buffer
	process.Stdout, process.Stderr = &said, &said
	require.NoError(t, process.Start())
	close(started)
	err = process.Wait()
	if n == 0 {
		require.NoError(t, err, "%s", &said)
	}
	conn, err := pgx.Connect(t.Context(), direct)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test's
	for others := 1; others > 0; {                       // what it had asked for is done
		require.NoError(t, conn.QueryRow(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", child).Scan(&others))
	}
	_, err = conn.Exec(t.Context(), "DELETE FROM worldkernel.node WHERE node = $1", child) // its lease has run out
	require.NoError(t, err)
	return count.Load()
}

// exported is the journal of a world of the store.
func (m making) exported(t *testing.T, s *shared.Store, id string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := local.OpenReadOnly(m.in(t, s, id))
	require.NoError(t, err)
	require.NoError(t, w.Export(&out, local.JSONLines, nil))
	require.NoError(t, w.Close())
	dir, opts := m.in(t, s, id)
	v, err := local.Verify(t.Context(), dir, opts, local.Verification{})
	require.NoError(t, err)
	require.Empty(t, v.Faults)
	return out.Bytes()
}

// lives reports whether the world that is made lives. One that is being made nobody opens.
func (m making) lives(t *testing.T, s *shared.Store) bool {
	t.Helper()
	is, err := s.Store.World(m.ID, pglog.Claim{Made: true}).Stands(t.Context())
	require.NoError(t, err)
	if is.State == journal.Live {
		return true
	}
	_, err = local.OpenReadOnly(m.in(t, s, m.ID))
	var refused *pglog.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, []pglog.State{pglog.NoWorld, pglog.WorldMade}, refused.State)
	return false
}

// forget takes the world away that was made, as docs/postgres.md says.
func (m making) forget(t *testing.T) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "postgres.md"))
	require.NoError(t, err)
	_, sql, _ := strings.Cut(string(doc), "WITH gone AS")
	sql, _, found := strings.Cut(sql, "```")
	require.True(t, found)
	conn, err := pgx.Connect(t.Context(), m.URL)
	require.NoError(t, err)
	gone, err := conn.Exec(t.Context(), "WITH gone AS"+strings.Replace(sql, "'town'", "'"+m.ID+"'", 1))
	require.NoError(t, err)
	require.EqualValues(t, 1, gone.RowsAffected())
	require.NoError(t, conn.Close(t.Context()))
}

// TestKilledForksAndRestoresLeaveOneWorldOrNone kills processes that fork a world beside it in a store, and
// that restore one there, when they ask the server for something: the world is there then, and whole, or
// it is not, and the same again makes it. STRIKES is at how many of what they ask; all: at each, before
// the server has heard of it and after.
func TestKilledForksAndRestoresLeaveOneWorldOrNone(t *testing.T) {
	url := pgtest.URL(t)
	require.NoError(t, pglog.Init(t.Context(), url))
	backup := filepath.Join(t.TempDir(), "backup")
	s := open(t, url, shared.Options{Take: true})
	loaded := noted(t)
	for _, id := range []string{"town", "lost"} {
		require.NoError(t, s.Create(t.Context(), id, loaded, local.CreateOptions{}, sealedOptions()))
		lw, err := local.Open(making{}.in(t, s, id))
		require.NoError(t, err)
		for n := range 20 {
			_, err = lw.Submit(t.Context(), "counter.added", map[string]any{"name": "tea", "by": n, "note": strings.Repeat("!", 6000*(n%2))})
			require.NoError(t, err)
		}
		require.NoError(t, lw.Run(t.Context()))
		if id == "lost" {
			_, err = lw.Backup(backup)
			require.NoError(t, err)
		}
		require.NoError(t, lw.Close())
	}
	lost := making{URL: url, Backup: backup, ID: "lost"}
	want := lost.exported(t, s, "lost")
	lost.forget(t)
	lost.struckAnywhere(t, s, want)

	fork := making{URL: url, Parent: "town", ID: "fork"}
	parent := fork.exported(t, s, "town")
	require.NoError(t, fork.make(t, s))
	want = fork.exported(t, s, "fork")
	fork.forget(t)
	fork.struckAnywhere(t, s, want)
	require.Equal(t, parent, fork.exported(t, s, "town"))
}

// noted is the world of examples/counter whose events may have notes, long enough to be contents.
func noted(t *testing.T) *source.Loaded {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "counter"))))
	file := filepath.Join(dir, local.ManifestFile)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte("{schema: schemas/added.json}"), []byte("{}"), 1), 0o600))
	loaded, err := local.Load(file, sealedOptions())
	require.NoError(t, err)
	return loaded
}

func (m making) struckAnywhere(t *testing.T, s *shared.Store, want []byte) {
	t.Helper()
	asks := m.killed(t, 0, false)
	require.True(t, m.lives(t, s))
	m.forget(t)
	strikes, both := int64(2), os.Getenv("STRIKES") == "all"
	if n, err := strconv.ParseInt(os.Getenv("STRIKES"), 10, 64); err == nil {
		strikes = n
	}
	if both {
		strikes = asks
	}
	made := 0
	for i := range strikes {
		for _, after := range []bool{false, true} {
			if after == (i%2 == 0) && !both {
				continue
			}
			n := (i + 1) * asks / strikes
			m.killed(t, n, after)
			lives, err := m.lives(t, s), m.make(t, s)
			if lives {
				made++
				require.Error(t, err, "request %d, %t: it is there", n, after)
			} else {
				require.NoError(t, err, "request %d, %t", n, after)
			}
			require.Equal(t, want, m.exported(t, s, m.ID), "request %d, %t", n, after)
			m.forget(t)
		}
	}
	t.Logf("%s asks the server %d times; killed at %d of them, and it was there %d times", m.ID, asks, strikes, made)
}
