package worldctl

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// filesWith are the files of a server's tables that have some bytes, as they are on the disk.
func filesWith(t *testing.T, s *pgtest.Server, mark string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Join(s.Dir, "data", "base"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(mark)) {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// TestWhatWasRedactedLeavesTheFiles of the server's tables by the statement that docs/postgres.md has
// for it; and the others there can be typed.
func TestWhatWasRedactedLeavesTheFiles(t *testing.T) {
	s := pgtest.Start(t)
	database := s.URL(t)
	t.Setenv("WORLDCTL_STORE", database)
	t.Setenv("WORLDCTL_PASSPHRASE", "open")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const mark = "fQ7zKp2LxV9mRt4WbN8sYc3"
	files, sent := t.TempDir(), filepath.Join(t.TempDir(), "sent")
	for name, text := range map[string]string{
		filepath.Join(files, "world.yaml"): "world: notes\nversion: 1\nseed: 1\nclock: {epoch: 2026-01-01T00:00:00Z, tick: 1m}\n" +
			"reducers:\n  note: {engine: starlark, source: note.star}\nevents:\n  note.taken: {}\nrouting:\n  - {event: note.taken, reducer: note, key: event.data.who}\n",
		filepath.Join(files, "note.star"): "def reduce(ctx, state, event):\n    return 1\n",
		sent:                              `{"who": "ada", "text": "` + mark + strings.Repeat(" and so on", 500) + `"}`,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	for _, line := range [][]string{
		{"store", "init"}, {"init", "notes", "--from", files}, {"-w", "notes", "send", "note.taken", "@" + sent}, {"-w", "notes", "run"},
	} {
		code, _, said := inProcess(t.Context(), line...)
		require.Equal(t, exitOK, code, said)
	}
	s.Exec(t, "CHECKPOINT")
	require.NotEmpty(t, filesWith(t, s, mark))
	code, _, said := inProcess(t.Context(), "-w", "notes", "redact", "#2", "--reason", "asked")
	require.Equal(t, exitOK, code, said)
	require.NoError(t, typeSQL(t, database, sqlOf(t, "Retention", 2)))
	s.Exec(t, "CHECKPOINT")
	require.Empty(t, filesWith(t, s, mark))
	code, _, said = inProcess(t.Context(), "-w", "notes", "verify")
	require.Equal(t, exitOK, code, said)
	require.NoError(t, typeSQL(t, database, sqlOf(t, "Retention", 1)))
	require.NoError(t, typeSQL(t, database, sqlOf(t, "What to run, and its size", 1)))
	require.NoError(t, typeSQL(t, database, strings.ReplaceAll(sqlOf(t, "Backups", 1), "town", "notes")))
	for _, table := range []string{"world", "frame", "blob", "note", "image", "image_part", "attempt", "keyring"} {
		require.NoError(t, typeSQL(t, database, "SELECT 1 / (count(*) = 0)::int FROM worldkernel."+table), table)
	}
}
