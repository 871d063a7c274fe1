package pglog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/receipt"
)

// changes of a column, by its type, as who may write all tables can make them: V is the column, and
// OTHER that of the world beside.
var changes = map[string][]string{
	"bigint":                   {"NULL", "-1", "0", "V + 1", "9223372036854775807", "OTHER"},
	"integer":                  {"NULL", "-1", "V + 1", "2147483647"},
	"boolean":                  {"NULL", "NOT V"},
	"uuid":                     {"NULL", "gen_random_uuid()", "OTHER"},
	"text":                     {"NULL", "''", "V || 'x'", "'made'", "'moved'", "repeat('x', 1 << 20)"},
	"timestamp with time zone": {"NULL", "'infinity'", "'-infinity'", "now() - interval '1 year'"},
	"bytea": {
		"NULL", "''", "substr(V, 2)", "substr(V, 1, length(V) - 1)", "V || '\\x00'",
		"set_byte(V, length(V) / 2, get_byte(V, length(V) / 2) # 64)", "decode(repeat('00', 2 << 20), 'hex')", "BOMB", "OTHER",
	},
}

// believed are what may say something else where a column is changed, and no error, each for a
// reason. What is read besides is what was put, or an error.
var believed = map[string]string{
	"meta.one": "", "meta.store": "", // who knows which store it is says so: Options.Store
	"node.node": "", "node.run": "", "node.lease_until": "", "node.gives": "", // leases, and whom one asks, give liveness only
	"node.url_until": "", "node.seal": "", // who has the key of addresses finds them: TestOnlyAnAddressThatANodeHasSealedIsBelieved
	"node.url": "", "node.version": "", "node.resting": "", "world.node": "", "world.run": "", "world.due": "", "world.wanted": "", "world.moved_to": "",
	"world.left_head": "", "world.left_root": "", "world.left_sealed": "", "world.left_seal": "", // no world that lives has them
	"world.copies": "",                        // it is for what was moved away
	"world.token":  "",                        // its owner is fenced, or finds the world put back
	"world.epoch":  "",                        // it counts owners; the token fences
	"frame.epoch":  "",                        // nobody reads it
	"image.wid":    "image", "image": "image", // without one a world is opened from its first record
	"note.wid": "notes", "note.size": "notes", "note.note": "notes", "note": "notes", // signed
	"keyring.sealed": "keyring", "keyring": "keyring", // sealed
	"world.wid": "image notes attempts", "world": "notes keyring attempts", // its records are not there, or do not fit
	// Results are signed. What is lost of the others makes an attempt one in doubt or, where a row
	// is gone, one that was not begun: guarantees.md says so.
	"attempt.wid": "attempts", "attempt.key": "attempts", "attempt.number": "attempts", "attempt.nonce": "attempts",
	"attempt.holder": "attempts", "attempt.lease_until": "attempts", "attempt.result": "attempts", "attempt": "attempts",
}

// aWorldOfAll makes a world that has a row in each table.
func aWorldOfAll(t *testing.T, s *Store, id string, key []byte, batches int) []journal.Hash {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, s.Create(ctx, id, key))
	w := s.World(id, Claim{Key: key})
	_, err := w.Own(ctx)
	require.NoError(t, err)
	var c chain
	var hashes []journal.Hash
	for range batches {
		b := c.batch(10, 40, id)
		require.NoError(t, appended(w, b))
		hashes = append(hashes, b.Blobs[0].Hash)
	}
	require.NoError(t, w.PutImage(ctx, &journal.KeptImage{Head: c.at, Tree: []byte("tips of " + id), Parts: func(yield func([]byte, error) bool) {
		for range batches {
			if !yield([]byte(strings.Repeat("a part of "+id, 20)), nil) {
				return
			}
		}
	}}))
	require.NoError(t, w.PutNote(ctx, journal.Note{Size: 10, Text: []byte("signed by " + id)}))
	require.NoError(t, w.PutKeyring(ctx, sealedRing(t, id[0])))
	run, at := [16]byte{1}, receipt.KeptAttempt{Key: receipt.Key{Hash: canon.Sum([]byte(id))}, Attempt: 1, Worker: "ada"}
	at.Run = run
	_, err = w.ChangeAttempts(ctx, &receipt.AttemptChanges{Begin: []receipt.KeptAttempt{at}})
	require.NoError(t, err)
	at.Receipt = []byte("result of " + id)
	_, err = w.ChangeAttempts(ctx, &receipt.AttemptChanges{End: []receipt.KeptAttempt{at}})
	require.NoError(t, err)
	require.NoError(t, w.Release(ctx, journal.WakeNow))
	w = s.World(id, Claim{Key: key})
	for range batches { // an epoch later
		_, err = w.Own(ctx)
		require.NoError(t, err)
		require.NoError(t, appended(w, c.batch(1, 40, id)))
		require.NoError(t, w.Release(ctx, journal.WakeNow))
		w = s.World(id, Claim{Key: key})
	}
	return hashes
}

// told is what a store tells of a world, each with the error that it was told of instead.
type told map[string]string

func (o told) put(what string, err error, value any) {
	if err != nil {
		o[what] = "error: " + err.Error()
		return
	}
	o[what] = fmt.Sprint(value)
}

func (o told) errors() (out []string) {
	for what, text := range o {
		if strings.HasPrefix(text, "error: ") {
			out = append(out, what+" "+text)
		}
	}
	slices.Sort(out)
	return out
}

// tell asks all that there is to ask of a world.
func tell(t *testing.T, url, id string, key []byte, hashes []journal.Hash) told {
	t.Helper()
	o := told{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	s, err := Open(ctx, url, Options{Node: "teller", Patience: 20 * time.Second})
	o.put("open", err, "")
	if err != nil {
		o.known(t, err)
		return o
	}
	defer s.Close()
	for err := range s.Check(ctx) {
		o.known(t, err)
		o.put("check", err, "")
	}
	for row, err := range s.List(ctx) {
		require.NoError(t, err, "another world's row is in nobody's way")
		o.known(t, row.Fault)
		if row.ID == id {
			o.put("list", row.Fault, "")
		}
	}
	for _, err := range []error{errorOf(s.Nodes(ctx)), errorOf(s.Mine(ctx)), errorOf(s.Owner(ctx, id))} {
		o.known(t, err)
	}
	reader, owner := s.World(id, Claim{Key: key}), s.World(id, Claim{Key: key, Take: true})
	owned, err := owner.Own(ctx)
	o.known(t, err)
	o.put("own", err, owned.Head)
	for name, w := range map[string]*World{"reader": reader, "owner": owner} {
		end, err := w.End(ctx)
		o.known(t, err)
		o.put(name+" end", err, end)
		sum := sha256.New()
		var failed error
		for r, err := range w.Records(ctx, 0) {
			failed = err
			sum.Write(r.Bytes)
		}
		o.known(t, failed)
		o.put(name+" records", failed, hex.EncodeToString(sum.Sum(nil)))
		for i, h := range hashes {
			content, err := w.Blob(h)
			o.known(t, err)
			o.put(fmt.Sprint(name, " blob ", i), err, string(content))
		}
		ring, err := w.Keyring(ctx)
		o.known(t, err)
		o.put(name+" keyring", err, ring)
		notes, failed := []journal.Note(nil), error(nil)
		for n, err := range w.Notes(ctx, 0, journal.Last) {
			notes, failed = append(notes, n), err
		}
		o.known(t, failed)
		o.put(name+" notes", failed, notes)
	}
	image, err := readKept(ctx, owner)
	o.known(t, err)
	o.put("image", err, image)
	if o.put("owned", err, ""); strings.HasPrefix(o["own"], "error: ") {
		return o
	}
	attempts, err := owner.KeptAttempts(ctx)
	o.known(t, err)
	for i := range attempts {
		attempts[i].Lease = 0 // it runs
	}
	o.put("attempts", err, attempts)
	c := chain{at: owned.Head, chain: *canon.ResumeChain(owned.Head.Root)}
	err = appended(owner, c.batch(1, 10, "the next"))
	o.known(t, err)
	o.put("append", err, c.at)
	err = owner.Release(ctx, journal.WakeNever)
	o.known(t, err)
	return o
}

func readKept(ctx context.Context, w *World) (string, error) {
	img, err := w.Kept(ctx)
	if err != nil || img == nil {
		return "", err
	}
	text := fmt.Sprintf("%v %x ", img.Head, img.Tree)
	for part, err := range img.Parts {
		if err != nil {
			return "", err
		}
		text += string(part)
	}
	return text, nil
}

func errorOf[T any](_ T, err error) error { return err }

// known sees to it that an error is one with words.
func (o told) known(t *testing.T, err error) {
	t.Helper()
	var damaged *DamageError
	var refused *RefusedError
	if err == nil || errors.As(err, &damaged) || errors.As(err, &refused) {
		return
	}
	for _, is := range []error{journal.ErrFenced, journal.ErrRewound, journal.ErrNotFound, journal.ErrRedacted} {
		if errors.Is(err, is) {
			return
		}
	}
	t.Errorf("it is not said what is wrong: %v", err)
}

func bomb(t *testing.T) string {
	t.Helper()
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	return "'\\x" + hex.EncodeToString(e.EncodeAll(make([]byte, 1<<30-1), []byte{packedZstd})) + "'::bytea"
}

// tamper is a store that is put back after each change.
type tamper struct {
	url     string
	conn    *pgx.Conn
	tables  []string
	columns map[string]string // with their types
	hashes  []journal.Hash
	want    told
}

// newTamper makes a store with two worlds, and without what would refuse changes.
func newTamper(t *testing.T) *tamper {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	x := &tamper{url: newURL(t), columns: map[string]string{}}
	s := open(t, x.url, Options{})
	x.hashes = aWorldOfAll(t, s, "a", testKey, 3)
	aWorldOfAll(t, s, "b", []byte("another key of thirty-two bytes "), 4)
	conn, err := pgx.Connect(ctx, x.url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(ctx) })
	x.conn = conn
	x.exec(t, `ALTER TABLE worldkernel.world DROP CONSTRAINT world_state_check, ALTER wid DROP IDENTITY;
		ALTER TABLE worldkernel.frame DROP CONSTRAINT frame_check; ALTER TABLE worldkernel.meta DROP CONSTRAINT meta_one_check; CREATE SCHEMA kept`)
	rows, err := conn.Query(ctx, `SELECT c.table_name, c.column_name, c.data_type, k.column_name IS NOT NULL
		FROM information_schema.columns c LEFT JOIN information_schema.key_column_usage k USING (table_schema, table_name, column_name)
		WHERE c.table_schema = 'worldkernel' AND c.table_name !~ '^(frame_|migration)'`)
	require.NoError(t, err)
	var table, name, kind, drop string
	var key bool
	_, err = pgx.ForEachRow(rows, []any{&table, &name, &kind, &key}, func() error {
		x.columns[table+"."+name] = kind
		if !key {
			drop += fmt.Sprintf("ALTER TABLE worldkernel.%s ALTER %s DROP NOT NULL;", table, name)
		}
		if !slices.Contains(x.tables, table) {
			x.tables = append(x.tables, table)
		}
		return nil
	})
	require.NoError(t, err)
	for _, table := range x.tables {
		drop += fmt.Sprintf("CREATE TABLE kept.%s AS SELECT * FROM worldkernel.%s;", table, table)
	}
	x.exec(t, drop)
	for _, table := range x.tables {
		var n int
		require.NoError(t, conn.QueryRow(ctx, "SELECT count(*) FROM kept."+table).Scan(&n))
		require.Positive(t, n, "%s has no row to be changed", table)
	}
	x.want = x.tell(t)
	require.Empty(t, x.want.errors())
	return x
}

func (x *tamper) exec(t *testing.T, statement string) {
	t.Helper()
	_, err := x.conn.Exec(t.Context(), statement)
	require.NoError(t, err, statement)
}

// tell returns what the store tells, and puts it back.
func (x *tamper) tell(t *testing.T) told {
	t.Helper()
	got, back := tell(t, x.url, "a", testKey, x.hashes), ""
	for _, table := range x.tables {
		back += fmt.Sprintf("DELETE FROM worldkernel.%[1]s; INSERT INTO worldkernel.%[1]s SELECT * FROM kept.%[1]s;", table)
	}
	x.exec(t, back)
	return got
}

// noticed changes the store, if it lets itself be changed so, and sees to it that what it tells
// then is what it was, or an error; some is, unless what was changed is believed.
func (x *tamper) noticed(t *testing.T, what, statement string) {
	t.Helper()
	if _, err := x.conn.Exec(t.Context(), statement); err != nil {
		t.Skip(err) // a key, or what an index does not take
	}
	got := x.tell(t)
	may, unseen := believed[what]
	for line, text := range x.want {
		said := got[line]
		fine := said == text || said == "" || strings.HasPrefix(said, "error: ")
		if !fine && !slices.ContainsFunc(strings.Fields(may), func(m string) bool { return strings.Contains(line, m) }) {
			t.Errorf("%s is believed: %.200s", line, said)
		}
	}
	_, all := map[string]bool{"world.wid": true, "world": true}[what]
	if len(got.errors()) == 0 && (!unseen || all) && what != "" {
		t.Error("nobody notices")
	}
}

// TestWhateverIsChangedBySQLIsNoticed changes each column of each table of a world.
func TestWhateverIsChangedBySQLIsNoticed(t *testing.T) {
	x, zeros := newTamper(t), bomb(t)
	for column := range believed {
		table, name, _ := strings.Cut(column, ".")
		require.True(t, x.columns[column] != "" || name == "" && slices.Contains(x.tables, table), "%s is no column", column)
	}
	for _, column := range slices.Sorted(maps.Keys(x.columns)) {
		table, name, _ := strings.Cut(column, ".")
		where, other := "wid = 1", fmt.Sprintf("(SELECT %s FROM kept.%s WHERE wid = 2 LIMIT 1)", name, table)
		if table == "meta" || table == "node" {
			where, other = "true", name
		}
		require.NotEmpty(t, changes[x.columns[column]], x.columns[column])
		for _, change := range changes[x.columns[column]] {
			t.Run(column+" "+change, func(t *testing.T) {
				value := change
				if change != "NULL" {
					value = strings.NewReplacer("V", name, "OTHER", other, "BOMB", zeros).Replace(change)
				}
				x.noticed(t, column, fmt.Sprintf("UPDATE worldkernel.%s SET %s = %s WHERE %s", table, name, value, where))
			})
		}
	}
}

// TestRowsThatAreGoneOrSwappedAreNoticed takes the rows of a world away, has two worlds have each
// other's, and has some twice.
func TestRowsThatAreGoneOrSwappedAreNoticed(t *testing.T) {
	x := newTamper(t)
	for _, table := range x.tables {
		if table == "node" {
			continue
		}
		where := "wid = 1"
		if table == "meta" {
			where = "true"
		}
		t.Run(table+" gone", func(t *testing.T) {
			x.noticed(t, table, fmt.Sprintf("DELETE FROM worldkernel.%s WHERE %s", table, where))
		})
		if table == "meta" {
			continue
		}
		t.Run(table+" swapped", func(t *testing.T) {
			x.noticed(t, table, fmt.Sprintf(`CREATE TEMP TABLE s ON COMMIT DROP AS SELECT * FROM worldkernel.%[1]s;
				UPDATE s SET wid = 3 - wid; DELETE FROM worldkernel.%[1]s; INSERT INTO worldkernel.%[1]s SELECT * FROM s`, table))
		})
	}
	for name, statement := range map[string]string{
		"a frame within a frame": "INSERT INTO worldkernel.frame SELECT wid, first + 5, last, epoch, was, body FROM worldkernel.frame WHERE first = 11",
		"a frame before all":     "INSERT INTO worldkernel.frame SELECT wid, 0, 0, epoch, was, body FROM worldkernel.frame WHERE first = 1",
		"a frame after all":      "INSERT INTO worldkernel.frame SELECT wid, 31, 40, epoch, was, body FROM worldkernel.frame WHERE first = 21",
		"a part more":            "INSERT INTO worldkernel.image_part SELECT wid, id, 9, body FROM worldkernel.image_part WHERE n = 1",
		"parts in another order": "UPDATE worldkernel.image_part SET n = n + 5 WHERE n = 1",
	} {
		t.Run(name, func(t *testing.T) { x.noticed(t, "", statement) })
	}
}

// TestABombIsNotUnpacked: what reads it takes no more memory than what was put could have.
func TestABombIsNotUnpacked(t *testing.T) {
	p, err := newPacker()
	require.NoError(t, err)
	packed, err := hex.DecodeString(strings.TrimSuffix(strings.TrimPrefix(bomb(t), `'\x`), "'::bytea"))
	require.NoError(t, err)
	many := bytes.Repeat(p.pack(make([]byte, 1<<20))[1:], 4000) // frames of zstd, each of which is short
	for _, most := range []int{maxFrame, maxPart, maxContent} {
		for _, b := range [][]byte{packed, append([]byte{packedZstd}, many...)} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := p.unpack(b, most)
			require.Error(t, err)
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most)+1<<20)
		}
		_, err := p.unpack(make([]byte, most+2), most)
		require.Error(t, err)
		_, err = p.unpack(make([]byte, most+1), most)
		require.NoError(t, err)
	}
}

// TestAnImageThatDoesNotComeIsWaitedForNoLongerThanAllElse in the middle of its parts, too.
func TestAnImageThatDoesNotComeIsWaitedForNoLongerThanAllElse(t *testing.T) {
	server, url := pgtest.Shared(t), newURL(t)
	aWorldOfAll(t, open(t, url, Options{}), "w", testKey, 3)
	goOn := make(chan struct{})
	proxy := server.Proxy(t, func(request []byte) pgtest.Fault {
		if bytes.Contains(request, []byte("FROM worldkernel.image_part")) {
			<-goOn // the network is cut, and nobody says so
		}
		return pgtest.None
	})
	defer close(goOn)
	s := open(t, proxy.URL(url), Options{Patience: 10 * time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, err := readKept(ctx, s.World("w", Claim{Key: testKey}))
	require.ErrorContains(t, err, "no answer in 10s")
	require.NoError(t, ctx.Err())
}

// TestADamagedRowIsInNobodysWay: who claims what is due gets all the others, and who lists them, too.
func TestADamagedRowIsInNobodysWay(t *testing.T) {
	url := newURL(t)
	s := open(t, url, Options{})
	for _, id := range []string{"a", "b", "c"} {
		aWorldOfAll(t, s, id, testKey, 1)
	}
	long := "convert_to(repeat('x', 10000000), 'UTF8')"
	run(t, url, "CREATE TABLE public.kept AS SELECT * FROM worldkernel.world")
	for _, damage := range []string{
		"root = 'x'", "epoch = 9223372036854775807", "epoch = -1", "epoch = 0", "head = -1", "sealed = -1",
		"root = " + long, "seal = " + long, "state = 'moved', moved_to = repeat('x', 10000000)", "state = 'moved'", "node = repeat('x', 100000)",
	} {
		run(t, url, "UPDATE worldkernel.world SET due = '-infinity' WHERE id = 'b'; UPDATE worldkernel.world SET "+damage+" WHERE id = 'b'")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		states := map[string]string{}
		for w, err := range s.List(t.Context()) {
			require.NoError(t, err, damage)
			states[w.ID] = w.State
		}
		require.Equal(t, map[string]string{"a": "live", "b": "damaged", "c": "live"}, states, damage)
		ids, err := s.ClaimDue(t.Context(), 2, nil)
		require.NoError(t, err, damage)
		require.ElementsMatch(t, []string{"a", "c"}, ids, damage)
		_, err = s.World("b", Claim{Key: testKey}).Own(t.Context())
		require.ErrorAs(t, err, new(*DamageError), damage)
		require.NotContains(t, err.Error(), "no answer")
		_, err = s.Owner(t.Context(), "b")
		require.ErrorAs(t, err, new(*DamageError), damage)
		found := []string{}
		for err := range s.Check(t.Context()) {
			found = append(found, err.Error())
		}
		require.Len(t, found, 1, damage)
		require.Contains(t, found[0], "world b: ")
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), damage)
		require.NoError(t, s.LetGo(t.Context(), ids...))
		run(t, url, "DELETE FROM worldkernel.world WHERE id = 'b'; INSERT INTO worldkernel.world OVERRIDING SYSTEM VALUE SELECT * FROM public.kept WHERE id = 'b'")
	}
}

// TestWhatIsTooLongIsNotRead: no more comes from the server than may have been put.
func TestWhatIsTooLongIsNotRead(t *testing.T) {
	url := newURL(t)
	s := open(t, url, Options{})
	hashes := aWorldOfAll(t, s, "w", testKey, 1)
	w := s.World("w", Claim{Key: testKey})
	_, err := w.Own(t.Context())
	require.NoError(t, err)
	run(t, url, "ALTER TABLE worldkernel.blob ALTER body SET STORAGE EXTENDED") // which costs the server less
	for change, read := range map[string]func() error{
		"blob SET body = convert_to(repeat('x', 140000000)":      func() error { return errorOf(w.Blob(hashes[0])) },
		"attempt SET result = convert_to(repeat('x', 140000000)": func() error { return errorOf(w.KeptAttempts(t.Context())) },
		"frame SET was = convert_to(repeat('x', 10000000)":       func() error { return errorOf(w.frames(t.Context(), 1, 1)) },
		"image SET sum = convert_to(repeat('x', 10000000)":       func() error { return errorOf(readKept(t.Context(), w)) },
	} {
		run(t, url, "UPDATE worldkernel."+change+", 'UTF8')")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.ErrorAs(t, read(), new(*DamageError), change)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), change)
	}
}

// TestWhatMovedAwayIsNotDue, however many there are, and keeps nothing else from being claimed.
func TestWhatMovedAwayIsNotDue(t *testing.T) {
	s := testStore(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		aWorldOfAll(t, s, id, testKey, 1)
		if id == "d" {
			break
		}
		w := s.World(id, Claim{Key: testKey})
		_, err := w.Own(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.MoveAway(t.Context(), "a place"))
		require.NoError(t, w.Release(t.Context(), journal.WakeNow))
	}
	rows, err := s.ListAfter(t.Context(), "", []string{"a"}, 1)
	require.NoError(t, err)
	require.Nil(t, rows[0].Due)
	ids, err := s.ClaimDue(t.Context(), 1, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"d"}, ids)
}
