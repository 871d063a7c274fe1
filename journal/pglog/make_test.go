package pglog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// sealedRing is a keyring as a database may have it.
func sealedRing(t *testing.T, secret byte) []byte {
	t.Helper()
	key := make([]byte, receipt.SecretBytes)
	key[0] = secret
	keys, err := receipt.NewKeyring("w", []receipt.Epoch{{Number: 1, Secret: key}})
	require.NoError(t, err)
	sealed, err := receipt.Seal(keys, []byte("open"), make([]byte, receipt.SealRandomBytes))
	require.NoError(t, err)
	return sealed
}

func TestAKeyringIsKeptByItsOwner(t *testing.T) {
	url := newURL(t)
	one, two := open(t, url, Options{}), open(t, url, Options{})
	require.NoError(t, one.Create(t.Context(), "w", testKey))
	was, is := one.World("w", Claim{Key: testKey}), two.World("w", Claim{Key: testKey, Take: true})
	_, err := is.Keyring(t.Context())
	require.ErrorIs(t, err, journal.ErrNotFound)
	_, err = was.Own(t.Context())
	require.NoError(t, err)
	first, second := sealedRing(t, 1), sealedRing(t, 2)
	require.NoError(t, was.PutKeyring(t.Context(), first))
	got, err := is.Keyring(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, got)
	_, err = is.Own(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, was.PutKeyring(t.Context(), second), journal.ErrFenced)
	require.NoError(t, is.PutKeyring(t.Context(), second))
	got, err = two.World("w", Claim{}).Keyring(t.Context())
	require.NoError(t, err)
	require.Equal(t, second, got)
}

// has counts the rows of tables.
func has(t *testing.T, s *Store, want map[string]int) {
	t.Helper()
	for table, want := range want {
		var n int
		require.NoError(t, s.row(t.Context(), "SELECT count(*) FROM worldkernel."+table, nil, &n))
		require.Equal(t, want, n, table)
	}
}

// TestAWorldThatWasMovedAwayLeavesItsHead, and nothing else; the worlds beside it stay.
func TestAWorldThatWasMovedAwayLeavesItsHead(t *testing.T) {
	s := testStore(t)
	var last *World
	for _, id := range []string{"stays", "goes"} {
		require.NoError(t, s.Create(t.Context(), id, testKey))
		last = s.World(id, Claim{Key: testKey})
		_, err := last.Own(t.Context())
		require.NoError(t, err)
		var c chain
		var b journal.Batch
		for range 3 {
			b = c.batch(10, 5000, "me")
			require.NoError(t, appended(last, b))
		}
		require.NoError(t, last.PutKeyring(t.Context(), sealedRing(t, 1)))
		require.NoError(t, last.PutNote(t.Context(), journal.Note{Size: 1, Text: []byte("n")}))
		require.NoError(t, last.PutImage(t.Context(), &journal.KeptImage{Head: b.Head, Parts: func(yield func([]byte, error) bool) {
			_ = yield([]byte("one"), nil) && yield([]byte("two"), nil)
		}}))
	}
	all := map[string]int{"world": 2, "frame": 6, "blob": 6, "note": 2, "image": 2, "image_part": 4, "keyring": 2}
	has(t, s, all)
	require.NoError(t, last.MoveAway(t.Context(), "a place"))
	for table := range all {
		all[table] /= 2
	}
	all["world"] = 2
	has(t, s, all)
	require.NoError(t, last.Release(t.Context(), journal.WakeNever))
	for err := range s.Check(t.Context()) {
		require.NoError(t, err)
	}
}

// TestAWorldIsMadeAnewWhereItsMakerIsGone, with nothing of what was there, and is nobody's business
// before it is whole.
func TestAWorldIsMadeAnewWhereItsMakerIsGone(t *testing.T) {
	url := newURL(t)
	one, two := open(t, url, Options{}), open(t, url, Options{})
	other := []byte("another key of thirty-two bytes ")
	require.NoError(t, one.Make(t.Context(), "w", other, journal.Making{}))
	w := one.World("w", Claim{Key: other, Made: true})
	_, err := w.Own(t.Context())
	require.NoError(t, err)
	var c chain
	require.NoError(t, appended(w, c.batch(10, 5000, "me")))
	require.NoError(t, w.PutKeyring(t.Context(), sealedRing(t, 1)))
	_, err = two.World("w", Claim{Key: other, Take: true}).Own(t.Context())
	require.True(t, isRefused(err, WorldMade), err)
	one.Close()
	require.NoError(t, two.Make(t.Context(), "w", testKey, journal.Making{}))
	w = two.World("w", Claim{Key: testKey, Made: true})
	owned, err := w.Own(t.Context())
	require.NoError(t, err)
	require.Zero(t, owned.Head)
	_, err = w.Keyring(t.Context())
	require.ErrorIs(t, err, journal.ErrNotFound)
	require.NoError(t, w.Publish(t.Context()))
	require.NoError(t, w.Publish(t.Context()), "an answer may be lost")
	require.NoError(t, w.Release(t.Context(), journal.WakeNever))
	require.True(t, isRefused(two.Make(t.Context(), "w", testKey, journal.Making{}), WorldExists))
	_, err = two.World("w", Claim{Key: testKey}).Own(t.Context())
	require.NoError(t, err)
	has(t, two, map[string]int{"world": 1, "frame": 0, "blob": 0, "keyring": 0})
}
