package pglog

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// written has the server note each row that is written to a table of worlds, with the epoch that
// the world has then. Rows name the epoch of who writes them, in a column.
var written = map[string]string{
	"frame": "body", "blob": "body", "note": "note", "image": "tree", "image_part": "body", "attempt": "holder", "keyring": "sealed",
}

// noteWritten has the server note them from now on.
func noteWritten(t *testing.T, url string) {
	t.Helper()
	run(t, url, `
CREATE TABLE written (of text NOT NULL, epoch bigint NOT NULL, said bytea);
CREATE FUNCTION written() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE said bytea;
BEGIN
	EXECUTE format('SELECT convert_to(($1).%1$I::text, ''UTF8'')', TG_ARGV[0]) USING NEW INTO said;
	INSERT INTO written SELECT TG_ARGV[1], epoch, said FROM worldkernel.world WHERE wid = NEW.wid;
	RETURN NULL;
END $$;`)
	for table, column := range written {
		run(t, url, fmt.Sprintf("CREATE TRIGGER written AFTER INSERT OR UPDATE ON worldkernel.%s FOR EACH ROW EXECUTE FUNCTION written('%s', '%s')", table, column, table))
	}
}

// writeBeside writes rows to the tables that appends leave alone, one after the other from the nth
// on, in the name of an epoch.
func writeBeside(n int) func(context.Context, journal.Log, journal.Owned) error {
	return func(ctx context.Context, l journal.Log, is journal.Owned) error {
		w, name := l.(*World), fmt.Appendf(nil, "epoch %d ", is.Epoch)
		switch n++; n % 8 {
		case 0:
			return w.PutNote(ctx, journal.Note{Size: journal.Seq(n % 50), Text: name})
		case 1:
			return w.PutKeyring(ctx, append([]byte("\xa2\x63box"), name...))
		case 2:
			return w.PutImage(ctx, &journal.KeptImage{Head: is.Head, Tree: name, Parts: func(yield func([]byte, error) bool) { yield(name, nil) }})
		case 3:
			k := receipt.KeptAttempt{Key: receipt.Key{Hash: canon.Sum(name)}, Attempt: 1, Run: [16]byte{byte(is.Epoch)}, Worker: string(name), Lease: time.Minute}
			_, err := w.ChangeAttempts(ctx, &receipt.AttemptChanges{Begin: []receipt.KeptAttempt{k}})
			return err
		}
		return nil
	}
}

// noOldToken sees to it that each row of each table was written while the world had the epoch that
// the row names, that frames are of epochs that only grow, and that there are as many contents as
// batches: what a fenced owner sent left nothing.
func noOldToken(t *testing.T, s *Store, url string, batches map[uint64]int) {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // a test's
	rows, err := conn.Query(ctx, "SELECT of, epoch, said FROM written")
	require.NoError(t, err)
	seen := map[string]int{}
	var of string
	var epoch uint64
	var said []byte
	_, err = pgx.ForEachRow(rows, []any{&of, &epoch, &said}, func() error {
		seen[of]++
		require.Contains(t, string(s.plain(said)), fmt.Sprintf("epoch %d ", epoch), of)
		return nil
	})
	require.NoError(t, err)
	for table := range written {
		if len(batches) > 500 {
			require.Positive(t, seen[table], "nobody wrote to %s", table)
		}
	}
	t.Logf("rows written, of no old token: %v", seen)
	var all, there int
	for _, n := range batches {
		all += n
	}
	var grow bool
	require.NoError(t, conn.QueryRow(ctx, "SELECT count(*) FROM worldkernel.blob").Scan(&there))
	require.Equal(t, all, there)
	require.NoError(t, conn.QueryRow(ctx, "SELECT bool_and(epoch >= was) FROM (SELECT epoch, lag(epoch, 1, 0) OVER (ORDER BY first) AS was FROM worldkernel.frame) f").Scan(&grow))
	require.True(t, grow)
	for err := range s.Check(ctx) {
		require.NoError(t, err)
	}
}

// plain is what a column has, as text, unpacked where it is packed.
func (s *Store) plain(said []byte) []byte {
	digits, isBytes := bytes.CutPrefix(said, []byte(`\x`))
	if !isBytes {
		return said
	}
	raw, err := hex.AppendDecode(nil, digits)
	if err != nil {
		return said
	}
	if unpacked, err := s.pack.unpack(raw, maxFrame); err == nil {
		return unpacked
	}
	return raw
}
