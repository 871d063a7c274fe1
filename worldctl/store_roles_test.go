package worldctl

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// sqlOf returns what a section of docs/postgres.md has typed into psql: the lines of its n-th block
// that ends statements.
func sqlOf(t *testing.T, section string, n int) string {
	t.Helper()
	doc, err := os.ReadFile("../docs/postgres.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(doc), "\n## "+section+"\n")
	require.True(t, found, section)
	text, _, _ = strings.Cut(text, "\n## ")
	blocks := strings.Split(text, "```sql\n")
	require.Greater(t, len(blocks), n, "the section %s has %d blocks of SQL", section, len(blocks)-1)
	sql, _, found := strings.Cut(blocks[n], "```")
	require.True(t, found)
	return sql
}

// asRole is the URL of a database for another role, by a server that asks nobody for a password.
func asRole(t *testing.T, database, role string) string {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	q := u.Query()
	q.Set("user", role)
	u.RawQuery = q.Encode()
	return u.String()
}

// typeSQL has statements run that a person would type.
func typeSQL(t *testing.T, database, statements string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	_, err = conn.PgConn().Exec(t.Context(), statements).ReadAll()
	require.NoError(t, conn.Close(t.Context()))
	return err
}

// TestRolesOfAStore has the roles that docs/postgres.md makes: one makes the store, one runs worlds
// in it and cannot change what it is, and one reads them and can write nothing.
func TestRolesOfAStore(t *testing.T) {
	s := pgtest.Start(t) // roles are a server's, and not a database's
	database := s.URL(t)
	name := strings.TrimPrefix(strings.Split(database, "?")[0], "postgres:///")
	const section = "Roles"
	require.NoError(t, typeSQL(t, database, strings.ReplaceAll(sqlOf(t, section, 1), "DATABASE worlds", "DATABASE "+name)))
	t.Setenv("WORLDCTL_PASSPHRASE", "open")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	code := 0
	as := func(role string, args ...string) string {
		var out, said bytes.Buffer
		t.Setenv("WORLDCTL_STORE", asRole(t, database, role))
		code = run(t.Context(), released(), args, strings.NewReader(""), &out, &said)
		return out.String() + said.String()
	}
	done := func(said string) {
		t.Helper()
		require.Equal(t, exitOK, code, said)
	}
	refused := func(said string) {
		t.Helper()
		require.Equal(t, exitFailed, code, said)
		require.Contains(t, said, "lacks a privilege")
		require.Contains(t, said, "docs/postgres.md")
	}
	refused(as("kernel_node", "store", "init"))
	done(as("kernel_admin", "store", "init"))
	refused(as("kernel_node", "store", "check"))
	require.NoError(t, typeSQL(t, asRole(t, database, "kernel_admin"), sqlOf(t, section, 2)))

	done(as("kernel_node", "init", "town", "--template", "counter"))
	for _, verb := range []string{
		`send counter.added {"name":"a","by":1}`, "run", "snapshot create s1", "checkpoint", "keys rotate", "gc", "rollback s1 --reason so --ack", "verify",
	} {
		done(as("kernel_node", append([]string{"-w", "town"}, strings.Fields(verb)...)...))
	}
	done(as("kernel_node", "store", "check"))

	to := filepath.Join(t.TempDir(), "town.bundle")
	for _, verb := range []string{"status", "tail", "cell list", "why 3", "verify", "replay", "export " + to} {
		done(as("kernel_reader", append([]string{"-w", "town"}, strings.Fields(verb)...)...))
	}
	for _, verb := range []string{"status", "check"} {
		done(as("kernel_reader", "store", verb))
	}
	for _, verb := range []string{`send counter.added {"name":"a","by":1}`, "run", "checkpoint", "keys rotate"} {
		refused(as("kernel_reader", append([]string{"-w", "town"}, strings.Fields(verb)...)...))
	}
	refused(as("kernel_reader", "init", "city", "--template", "counter"))

	require.NoError(t, typeSQL(t, asRole(t, database, "kernel_admin"), "UPDATE worldkernel.meta SET version = 2; ALTER TABLE worldkernel.meta ADD later int"))
	for _, role := range []string{"kernel_node", "kernel_reader"} {
		for _, write := range []string{
			"UPDATE worldkernel.meta SET version = 3", "DELETE FROM worldkernel.meta", "DROP TABLE worldkernel.note",
			"ALTER TABLE worldkernel.world ADD also int", "CREATE TABLE worldkernel.another (n int)",
		} {
			require.ErrorContains(t, typeSQL(t, asRole(t, database, role), write), "SQLSTATE 42501", "%s: %s", role, write)
		}
	}
	for _, table := range []string{"world", "node", "frame", "blob", "note", "image", "image_part", "attempt", "keyring"} {
		require.ErrorContains(t, typeSQL(t, asRole(t, database, "kernel_reader"), "DELETE FROM worldkernel."+table), "SQLSTATE 42501")
	}
}
