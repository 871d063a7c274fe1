package pglog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// chain makes batches that follow from each other.
type chain struct {
	at    journal.Head
	chain canon.Chain
}

// batch makes records with payloads of some bytes, and a content that names the first of them.
func (c *chain) batch(records, bytes int, by string) journal.Batch {
	b := journal.Batch{After: c.at}
	for range records {
		id := uint64(c.at.ID) + 1
		payload := make([]byte, bytes)
		copy(payload, fmt.Sprintf("record %d of %s", id, by))
		data := canon.AppendEnvelope(nil, canon.Envelope{ID: id, Time: id, Kind: string(journal.KindSubmitted), Payload: payload})
		c.at = journal.Head{ID: journal.Seq(id), Root: c.chain.Add(id, string(journal.KindSubmitted), data)}
		b.Records = append(b.Records, journal.Stored{ID: c.at.ID, Bytes: data, Root: c.at.Root})
	}
	b.Head = c.at
	text := fmt.Appendf(nil, "content before #%d of %s", c.at.ID, by)
	b.Blobs = []journal.Blob{{Hash: canon.Sum(text), Bytes: text}}
	return b
}

// appended appends a batch, and waits.
func appended(l journal.Log, b journal.Batch) error {
	p, err := l.Append(b)
	if err != nil {
		return err
	}
	return p.Wait()
}

// readAll reads the records to the end, or to the first error.
func readAll(t testing.TB, l journal.Past) ([]journal.Linked, error) {
	t.Helper()
	var out []journal.Linked
	for r, err := range l.Records(t.Context(), 0) {
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

// damages are what may happen to a store whose server was not asked, by what names it then.
var damages = []struct{ name, damage, what string }{
	{"a frame is gone", "DELETE FROM worldkernel.frame WHERE first = 11", "frame #21 to #30"},
	{"the last frame is gone", "DELETE FROM worldkernel.frame WHERE first = 21", "records from #21 to #30"},
	{"all frames are gone", "DELETE FROM worldkernel.frame", "records from #1 to #30"},
	{"a byte flips", "UPDATE worldkernel.frame SET body = set_byte(body, 30, get_byte(body, 30) # 1) WHERE first = 11", "frame #11 to #20"},
	{"a frame is cut", "UPDATE worldkernel.frame SET body = substr(body, 1, length(body) - 9) WHERE first = 11", "frame #11 to #20"},
	{"a frame is empty", "UPDATE worldkernel.frame SET body = '' WHERE first = 11", "frame #11 to #20"},
	{"a frame is packed in another way", "UPDATE worldkernel.frame SET body = set_byte(body, 0, 9) WHERE first = 11", "frame #11 to #20"},
	{"a frame is in the place of another", "UPDATE worldkernel.frame SET body = (SELECT body FROM worldkernel.frame WHERE first = 1) WHERE first = 11", "frame #11 to #20"},
	{"a frame claims more records", "UPDATE worldkernel.frame SET last = 22 WHERE first = 11", "frame #11 to #22"},
	{"a frame claims fewer records", "UPDATE worldkernel.frame SET last = 19 WHERE first = 11", "frame #11 to #19"},
	{"a frame has another root", "UPDATE worldkernel.frame SET was = sha256('x') WHERE first = 11", "frame #11 to #20"},
	{"the first frame has a root", "UPDATE worldkernel.frame SET was = sha256('x') WHERE first = 1", "frame #1 to #10"},
	{"a root is short", "UPDATE worldkernel.frame SET was = 'x' WHERE first = 11", "frame #11 to #20"},
	{"the head is another", "UPDATE worldkernel.world SET root = sha256('x')", "the frame that ends with #30"},
}

func TestADamagedFrameIsNamed(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			url := newURL(t)
			s := open(t, url, Options{})
			require.NoError(t, s.Create(t.Context(), "w", testKey))
			w := s.World("w", Claim{Key: testKey})
			_, err := w.Own(t.Context())
			require.NoError(t, err)
			var c chain
			for range 3 {
				require.NoError(t, appended(w, c.batch(10, 40, "me")))
			}
			run(t, url, d.damage)
			_, err = readAll(t, s.World("w", Claim{})) // no key finds the seal wrong before
			var damage *DamageError
			require.ErrorAs(t, err, &damage)
			require.Equal(t, d.what, damage.What)
			require.Equal(t, "w", damage.World)
		})
	}
}

func TestACheckFindsWhatIsNotThere(t *testing.T) {
	url := newURL(t)
	s := open(t, url, Options{})
	for _, id := range []string{"a", "b", "c", "d"} {
		require.NoError(t, s.Create(t.Context(), id, testKey))
		if id == "d" {
			continue
		}
		w := s.World(id, Claim{Key: testKey})
		_, err := w.Own(t.Context())
		require.NoError(t, err)
		var c chain
		require.NoError(t, appended(w, c.batch(5000, 10, id)))
		require.NoError(t, w.PutKeyring(t.Context(), sealedRing(t, id[0])))
		require.NoError(t, w.PutImage(t.Context(), &journal.KeptImage{Head: c.at, Parts: func(yield func([]byte, error) bool) {
			_ = yield([]byte("one"), nil) && yield([]byte("two"), nil)
		}}))
	}
	found := func() []string {
		var worlds []string
		for err := range s.Check(t.Context()) {
			var damage *DamageError
			require.ErrorAs(t, err, &damage)
			worlds = append(worlds, damage.World+" "+damage.What)
		}
		return worlds
	}
	require.Empty(t, found())
	run(t, url, "DELETE FROM worldkernel.frame USING worldkernel.world w WHERE w.wid = frame.wid AND w.id = 'a' AND first = 2049")
	run(t, url, "DELETE FROM worldkernel.image_part p USING worldkernel.world w WHERE w.wid = p.wid AND w.id = 'b' AND n = 1")
	run(t, url, "DELETE FROM worldkernel.keyring k USING worldkernel.world w WHERE w.wid = k.wid AND w.id = 'c'")
	require.Equal(t, []string{"a the journal", "b the image", "c the keyring"}, found())
}

func TestADamagedContentOrImageIsNamed(t *testing.T) {
	url := newURL(t)
	s := open(t, url, Options{})
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	w := s.World("w", Claim{Key: testKey})
	_, err := w.Own(t.Context())
	require.NoError(t, err)
	var c chain
	b := c.batch(1, 10, "me")
	require.NoError(t, appended(w, b))
	require.NoError(t, w.PutImage(t.Context(), &journal.KeptImage{Head: c.at, Parts: func(yield func([]byte, error) bool) {
		_ = yield([]byte("one"), nil) && yield([]byte("two"), nil)
	}}))
	for _, damage := range []string{"set_byte(body, 3, get_byte(body, 3) # 1)", "set_byte(body, 0, 7)", "''"} {
		run(t, url, "UPDATE worldkernel.blob SET body = "+damage)
		run(t, url, "UPDATE worldkernel.image_part SET body = "+damage+" WHERE n = 2")
		var damaged *DamageError
		_, err = w.Blob(b.Blobs[0].Hash)
		require.ErrorAs(t, err, &damaged)
		require.NotErrorIs(t, err, journal.ErrNotFound)
		img, err := w.Kept(t.Context())
		require.NoError(t, err)
		var failed error
		for _, err := range img.Parts {
			failed = err
		}
		require.ErrorAs(t, failed, &damaged)
		require.Equal(t, "image", damaged.What)
	}
}
