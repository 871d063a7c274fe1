package pglog

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/receipt"
)

// run runs a statement in a database, as who administers it would.
func run(t testing.TB, url, statement string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer conn.Close(ctx) //nolint:errcheck // a test's
	_, err = conn.Exec(ctx, statement)
	require.NoError(t, err, statement)
}

func nameOf(url string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(url, "postgres:///"), "?")
	return name
}

// opened is what Open says.
func opened(t *testing.T, url string) error {
	s, err := Open(t.Context(), url, Options{})
	if err == nil {
		s.Close()
	}
	return err
}

// owned is what Own says of a world that was made, and then something done to its row.
func owned(t *testing.T, change string, c Claim) error {
	url := newURL(t)
	s := open(t, url, Options{})
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	run(t, url, change)
	_, err := s.World("w", c).Own(t.Context())
	return err
}

// refusals are ways into each state that is refused.
var refusals = []struct {
	state State
	name  string
	reach func(t *testing.T) error
}{
	{BadURL, "no URL", func(t *testing.T) error { return opened(t, "postgres://%zz") }},
	{Plaintext, "disabled", func(t *testing.T) error { return opened(t, "postgres://u@db.example.com/d?sslmode=disable") }},
	{Plaintext, "preferred", func(t *testing.T) error { return opened(t, "postgres://u@10.1.2.3/d?sslmode=prefer") }},
	{Unreachable, "no server at any of its addresses", func(t *testing.T) error { return opened(t, "postgres://u@localhost:1,127.0.0.1:1/d") }},
	{Unreachable, "no server", func(t *testing.T) error { return opened(t, "postgres:///d?host="+t.TempDir()) }},
	{Starting, "a server that starts", func(t *testing.T) error { return opened(t, answering(t, "57P03")) }},
	{Unauthorized, "a user that is not", func(t *testing.T) error {
		return opened(t, strings.Replace(pgtest.URL(t), "user=postgres", "user=nobody_known", 1))
	}},
	{Full, "no connection left", func(t *testing.T) error { return opened(t, answering(t, "53300")) }},
	{NoDatabase, "a database that is not", func(t *testing.T) error {
		url := pgtest.URL(t)
		return opened(t, strings.Replace(url, nameOf(url), "never_made", 1))
	}},
	{NoStore, "an empty database", func(t *testing.T) error { return opened(t, pgtest.URL(t)) }},
	{OtherSchema, "a schema of somebody else", func(t *testing.T) error {
		url := pgtest.URL(t)
		run(t, url, "CREATE SCHEMA worldkernel; CREATE TABLE worldkernel.theirs (n int)")
		require.Error(t, Init(t.Context(), url))
		return opened(t, url)
	}},
	{OtherVersion, "an old schema", func(t *testing.T) error {
		url := newURL(t)
		run(t, url, "UPDATE worldkernel.meta SET version = 0")
		return opened(t, url)
	}},
	{OtherVersion, "a new schema", func(t *testing.T) error {
		url := newURL(t)
		run(t, url, "UPDATE worldkernel.meta SET version = 99")
		require.Error(t, Init(t.Context(), url))
		return opened(t, url)
	}},
	{OtherStore, "another store", func(t *testing.T) error {
		_, err := Open(t.Context(), newURL(t), Options{Store: "00000000-0000-4000-8000-000000000000"})
		return err
	}},
	{Forbidden, "a user without USAGE", func(t *testing.T) error {
		url := newURL(t)
		run(t, url, "CREATE ROLE stranger LOGIN")
		return opened(t, strings.Replace(url, "user=postgres", "user=stranger", 1))
	}},
	{Forbidden, "a reader that would own", func(t *testing.T) error {
		url := newURL(t)
		require.NoError(t, open(t, url, Options{}).Create(t.Context(), "w", testKey))
		run(t, url, "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA worldkernel TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA worldkernel TO reader")
		s := open(t, strings.Replace(url, "user=postgres", "user=reader", 1), Options{})
		_, err := s.World("w", Claim{}).End(t.Context())
		require.NoError(t, err, "it may read")
		_, err = s.World("w", Claim{Key: testKey}).Own(t.Context())
		return err
	}},
	{Unacknowledged, "commits that wait for nothing", func(t *testing.T) error {
		url := newURL(t)
		run(t, url, "ALTER DATABASE "+nameOf(url)+" SET synchronous_commit = off")
		return opened(t, url)
	}},
	{Unacknowledged, "commits that wait for no standby", func(t *testing.T) error {
		url := newURL(t)
		run(t, url, "ALTER DATABASE "+nameOf(url)+" SET synchronous_commit = local")
		return opened(t, url)
	}},
	{ReadOnly, "a database that is only read", func(t *testing.T) error {
		url := newURL(t)
		run(t, url, "ALTER DATABASE "+nameOf(url)+" SET default_transaction_read_only = on")
		return opened(t, url)
	}},
	{OtherEncoding, "bytes for text", func(t *testing.T) error {
		url := pgtest.URL(t)
		run(t, url, "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
		return opened(t, strings.Replace(url, nameOf(url), "ascii", 1))
	}},
	{OldServer, "an old server", func(*testing.T) error {
		return (&serverSettings{version: 140011}).refuseServer()
	}},
	{Unsynced, "no fsync", func(t *testing.T) error {
		s := pgtest.Start(t, "fsync=off")
		return opened(t, s.URL(t))
	}},
	{TornPages, "no full pages", func(t *testing.T) error {
		s := pgtest.Start(t, "full_page_writes=off")
		return opened(t, s.URL(t))
	}},
	{Standby, "a standby", func(t *testing.T) error {
		s := pgtest.Start(t)
		url := s.URL(t)
		require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "data", "standby.signal"), nil, 0o644))
		s.Crash(t)
		return opened(t, url)
	}},
	{BadWorldID, "an id with a space", func(t *testing.T) error { return testStore(t).Create(t.Context(), "a b", testKey) }},
	{BadWorldID, "no id", func(t *testing.T) error { return testStore(t).Create(t.Context(), "", testKey) }},
	{NoKey, "no key", func(t *testing.T) error { return testStore(t).Create(t.Context(), "w", nil) }},
	{NoKey, "an owner without", func(t *testing.T) error { return owned(t, "SELECT 1", Claim{Key: []byte("short")}) }},
	{NoWorld, "no world", func(t *testing.T) error {
		_, err := testStore(t).World("w", Claim{}).End(t.Context())
		return err
	}},
	{WorldExists, "a world of this id", func(t *testing.T) error {
		s := testStore(t)
		require.NoError(t, s.Create(t.Context(), "w", testKey))
		return s.Create(t.Context(), "w", testKey)
	}},
	{Unsealed, "a keyring without a passphrase", func(t *testing.T) error {
		s := testStore(t)
		require.NoError(t, s.Create(t.Context(), "w", testKey))
		w := s.World("w", Claim{Key: testKey})
		_, err := w.Own(t.Context())
		require.NoError(t, err)
		keys, err := receipt.NewKeyring("w", nil)
		require.NoError(t, err)
		open, err := keys.Encode()
		require.NoError(t, err)
		return w.PutKeyring(t.Context(), open)
	}},
	{WorldMade, "a world that another makes", func(t *testing.T) error {
		url := newURL(t)
		one, two := open(t, url, Options{}), open(t, url, Options{})
		require.NoError(t, one.Make(t.Context(), "w", testKey, journal.Making{}))
		_, err := one.World("w", Claim{Key: testKey, Made: true}).Own(t.Context())
		require.NoError(t, err)
		return two.Make(t.Context(), "w", testKey, journal.Making{})
	}},
	{WorldMade, "a world under way", func(t *testing.T) error {
		return owned(t, "UPDATE worldkernel.world SET state = 'made'", Claim{Key: testKey})
	}},
	{WorldMoved, "a world that is elsewhere", func(t *testing.T) error {
		return owned(t, "UPDATE worldkernel.world SET state = 'moved', moved_to = 'a place'", Claim{Key: testKey, Take: true})
	}},
	{WrongSeal, "another key", func(t *testing.T) error {
		return owned(t, "SELECT 1", Claim{Key: []byte("the key of another world")})
	}},
	{WrongSeal, "a head that was put there", func(t *testing.T) error {
		return owned(t, "UPDATE worldkernel.world SET head = 7", Claim{Key: testKey, Take: true})
	}},
	{WrongSeal, "a head that was put there, and is only read", func(t *testing.T) error {
		url := newURL(t)
		s := open(t, url, Options{})
		require.NoError(t, s.Create(t.Context(), "w", testKey))
		run(t, url, "UPDATE worldkernel.world SET head = 7")
		_, err := s.World("w", Claim{Key: testKey}).End(t.Context())
		return err
	}},
	{WrongSeal, "an epoch that was put there", func(t *testing.T) error {
		return owned(t, "UPDATE worldkernel.world SET sealed = 7, epoch = 9", Claim{Key: testKey, Take: true})
	}},
	{NoNode, "a world for a node that nobody has heard of", func(t *testing.T) error {
		s := testStore(t)
		require.NoError(t, s.Create(t.Context(), "w", testKey))
		return s.Give(t.Context(), "w", "nobody")
	}},
	{Owned, "an owner in this process", func(t *testing.T) error {
		s := testStore(t)
		require.NoError(t, s.Create(t.Context(), "w", testKey))
		_, err := s.World("w", Claim{Key: testKey}).Own(t.Context())
		require.NoError(t, err)
		_, err = s.World("w", Claim{Key: testKey}).Own(t.Context())
		return err
	}},
	{Owned, "an owner that lives", func(t *testing.T) error {
		url := newURL(t)
		one, two := open(t, url, Options{}), open(t, url, Options{})
		require.NoError(t, one.Create(t.Context(), "w", testKey))
		_, err := one.World("w", Claim{Key: testKey}).Own(t.Context())
		require.NoError(t, err)
		_, err = two.World("w", Claim{Key: testKey}).Own(t.Context())
		return err
	}},
}

func TestEachRefusedStateHasItsWords(t *testing.T) {
	reached := map[State]bool{}
	for _, c := range refusals {
		t.Run(string(c.state)+" "+c.name, func(t *testing.T) {
			var refused *RefusedError
			require.ErrorAs(t, c.reach(t), &refused)
			require.Equal(t, c.state, refused.State, refused.Error())
			require.NotEmpty(t, wordsOf()[c.state].why)
			require.NotEmpty(t, refused.Next())
			require.NotContains(t, refused.Error(), "\n", "a line is an error of its own to who reads it")
			reached[c.state] = true
		})
	}
	for state := range wordsOf() {
		require.True(t, reached[state], "no test reaches %s", state)
	}
}

// answering is a server that answers whoever connects with an error.
func answering(t *testing.T, code string) string {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b := pgproto3.NewBackend(conn, conn)
			if _, err := b.ReceiveStartupMessage(); err == nil {
				b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: "not now"})
				_ = b.Flush()
			}
			_ = conn.Close()
		}
	}()
	return "postgres:///d?user=u&host=" + dir
}

func TestAnOwnerWhoseLeaseEndedIsTakenOverFrom(t *testing.T) {
	url := newURL(t)
	one, two := open(t, url, Options{}), open(t, url, Options{})
	require.NoError(t, one.Create(t.Context(), "w", testKey))
	zombie := one.World("w", Claim{Key: testKey})
	_, err := zombie.Own(t.Context())
	require.NoError(t, err)
	run(t, url, "UPDATE worldkernel.node SET lease_until = now() - interval '1 second'")
	_, err = two.World("w", Claim{Key: testKey}).Own(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, zombie.PutNote(t.Context(), journal.Note{Size: 1}), journal.ErrFenced)
}

func TestANodeThatStartsAgainHasItsWorlds(t *testing.T) {
	url := newURL(t)
	one := open(t, url, Options{Node: "n"})
	require.NoError(t, one.Create(t.Context(), "w", testKey))
	zombie := one.World("w", Claim{Key: testKey})
	_, err := zombie.Own(t.Context())
	require.NoError(t, err)
	two := open(t, url, Options{Node: "n"})
	_, err = two.World("w", Claim{Key: testKey}).Own(t.Context())
	require.NoError(t, err)
}
