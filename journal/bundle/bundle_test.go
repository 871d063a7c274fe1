package bundle_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// cut says what of a journal a bundle is made of.
type cut struct {
	world    string      // "": test
	first    journal.Seq // 0: 1
	signed   []journal.Seq
	withheld []journal.Hash
}

// headerOf returns the header of a bundle of the records from the first of a cut on.
func headerOf(j *worldtest.Journal, c cut) bundle.Header {
	records := j.Records()
	h := bundle.Header{World: cmp.Or(c.world, "test"), First: max(c.first, 1), Last: journal.Seq(len(records)), Withheld: c.withheld, Keys: []ed25519.PublicKey{worldtest.Public(1)}}
	if h.First > 1 {
		h.Root, h.Nodes = records[h.First-2].Root, worldtest.TreeOf(records[:h.First-1]).Nodes()
	}
	return h
}

// sign returns a signed checkpoint of a journal up to a record.
func sign(t testing.TB, j *worldtest.Journal, at journal.Seq, keys ...ed25519.PrivateKey) []byte {
	t.Helper()
	return signAs(t, "test", j, at, keys...)
}

func signAs(t testing.TB, id string, j *worldtest.Journal, at journal.Seq, keys ...ed25519.PrivateKey) []byte {
	t.Helper()
	note, err := checkpoint.Checkpoint{World: id, Size: uint64(at), Root: worldtest.TreeOf(j.Records()[:at]).Root()}.Sign(keys...)
	require.NoError(t, err)
	return note
}

// blobsOf returns what a record needs, as an export finds it.
func blobsOf(t testing.TB, j journal.Blobs, rec journal.Record) (blobs [][]byte) {
	t.Helper()
	require.NoError(t, rec.Load(j))
	if !rec.Blob.IsZero() {
		blobs = append(blobs, rec.Payload)
	}
	body, err := rec.Body()
	require.NoError(t, err)
	if name, brings := journal.ManifestOf(body); brings {
		encoded, err := j.Blob(name)
		require.NoError(t, err)
		m, err := manifest.Decode(encoded)
		require.NoError(t, err)
		blobs = append(blobs, encoded)
		for _, name := range m.Contents() {
			content, err := j.Blob(name)
			require.NoError(t, err)
			blobs = append(blobs, content)
		}
	}
	return blobs
}

// write writes a bundle of a journal, signed at the end, too.
func write(t testing.TB, j *worldtest.Journal, c cut) []byte {
	t.Helper()
	h := headerOf(j, c)
	var out bytes.Buffer
	w, err := bundle.NewWriter(&out, h)
	require.NoError(t, err)
	for s, err := range j.Scan(h.First - 1) {
		require.NoError(t, err)
		for _, b := range blobsOf(t, j, s.Record) {
			require.NoError(t, w.Blob(b))
		}
		require.NoError(t, w.Record(s))
		if s.ID == h.Last || slices.Contains(c.signed, s.ID) {
			require.NoError(t, w.Checkpoint(signAs(t, h.World, j, s.ID, worldtest.Key(1))))
		}
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func open(t testing.TB, data []byte) *bundle.Reader {
	t.Helper()
	r, err := bundle.Open(bytes.NewReader(data), bundle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// judge verifies a bundle like `worldctl verify` does.
func judge(t testing.TB, r *bundle.Reader) *verify.Report {
	t.Helper()
	h := r.Header()
	report, err := verify.Verify(t.Context(), r, verify.Config{
		Damage: r.Damage(), Checkpoints: r.Checkpoints(), Signers: h.Keys, Sealed: true, Withheld: h.Withheld,
		Begin: verify.Begin{First: h.First, Root: h.Root, Nodes: h.Nodes, World: h.World},
	})
	require.NoError(t, err)
	return report
}

// unpack and pack do what docs/bundle-format.md says of the file.
func unpack(t testing.TB, data []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	items, err := io.ReadAll(zip)
	require.NoError(t, err)
	return items
}

func pack(t testing.TB, items []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err := zip.Write(items)
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	return sumUp(out.Bytes())
}

// sumUp appends the second member to the first one.
func sumUp(first []byte) []byte {
	sum := sha256.Sum256(first)
	return slices.Concat(first, []byte("\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff\x24\x00wk\x20\x00"), sum[:], []byte("\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
}

// split returns the items of an unpacked bundle.
func split(t testing.TB, data []byte) (items [][]byte) {
	t.Helper()
	r := canon.NewReader(data)
	for r.Offset() < len(data) {
		items = append(items, r.Raw())
		require.NoError(t, r.Err())
	}
	return items
}

// shop is a small world with effects and, where it is wanted, a payload that is a blob.
func shop(t testing.TB, customers ...string) *worldtest.World {
	t.Helper()
	w := worldtest.Load(t, "../../world/worldtest/testdata/shop", worldtest.Options{})
	for i, c := range customers {
		w.Submit("order.placed", map[string]any{"customer": c, "cents": 100 + i, "note": strings.Repeat(c, 4096)})
	}
	w.Run()
	return w
}

// payloads returns the hashes of the payloads that are blobs.
func payloads(t testing.TB, j *worldtest.Journal) (names []journal.Hash) {
	t.Helper()
	for s, err := range j.Scan(0) {
		require.NoError(t, err)
		if !s.Record.Blob.IsZero() {
			names = append(names, s.Record.Blob)
		}
	}
	return names
}

func TestBundleIsTheHistoryOfItsJournal(t *testing.T) {
	w := shop(t, "a", "b")
	r := open(t, write(t, w.Journal, cut{signed: []journal.Seq{1, 4}}))
	require.Equal(t, headerOf(w.Journal, cut{}), r.Header())
	require.Empty(t, slices.Collect(r.Damage()))
	for _, after := range []journal.Seq{0, 1, 5, journal.Seq(len(w.Journal.Records())), journal.Last} {
		next := after
		for s, err := range r.Scan(after) {
			require.NoError(t, err)
			next++
			stored := w.Journal.Records()[next-1]
			require.Equal(t, journal.NewScanned(next, stored.Bytes, stored.Root[:]), s)
			for _, b := range blobsOf(t, w.Journal, s.Record) {
				have, err := r.Blob(canon.Sum(b))
				require.NoError(t, err)
				require.Equal(t, b, have)
			}
		}
		require.Equal(t, max(after, journal.Seq(len(w.Journal.Records()))), next)
	}
	var notes []string
	for note, err := range r.Checkpoints() {
		require.NoError(t, err)
		notes = append(notes, string(note))
	}
	for i, at := range []journal.Seq{1, 4, r.Header().Last} {
		require.Equal(t, string(sign(t, w.Journal, at, worldtest.Key(1))), notes[i])
	}
	require.Len(t, notes, 3)
	_, err := r.Blob(canon.Sum([]byte("another")))
	require.ErrorIs(t, err, journal.ErrNotFound)
	image, err := r.Image(journal.Last)
	require.NoError(t, err)
	require.Nil(t, image)
	_, err = r.Part(1, nil)
	require.ErrorIs(t, err, journal.ErrNotFound)
}

func TestBundleVerifiesLikeItsJournal(t *testing.T) {
	w := shop(t, "a", "b")
	have := judge(t, open(t, write(t, w.Journal, cut{signed: []journal.Seq{3}})))
	require.Empty(t, have.Faults)
	require.EqualValues(t, 2, have.Checkpoints.Checked)
	want, err := verify.Verify(t.Context(), w.Journal, verify.Config{})
	require.NoError(t, err)
	want.Checkpoints = have.Checkpoints
	require.Equal(t, want, have)
}

// adopt puts a manifest in force whose shop counts otherwise.
func adopt(t *testing.T, w *worldtest.World) {
	t.Helper()
	loaded, err := source.Load("../../world/worldtest/testdata/shop/world.yaml")
	require.NoError(t, err)
	m := loaded.Manifest.WithDefaults()
	customer := m.Reducers["customer"]
	code := bytes.Replace(loaded.Contents[customer.Source], []byte("1\n"), []byte("2\n"), 1)
	customer.Source = canon.Sum(code)
	m.Reducers["customer"] = customer
	m.Version++
	require.NoError(t, worldtest.Adopt(t.Context(), w.World, &m, map[manifest.Hash][]byte{customer.Source: code}))
}

func TestBundleHoldsWhatProposalsAndForksNeed(t *testing.T) {
	w := shop(t, "a")
	adopt(t, w)
	w.Submit("order.placed", map[string]any{"customer": "b", "cents": 1})
	w.Run()
	f := w.Fork(journal.ForkHold, worldtest.Options{ID: "fork"})
	f.Submit("order.placed", map[string]any{"customer": "c", "cents": 1})
	f.Run()
	for _, c := range []struct {
		*worldtest.World
		id     string
		signed journal.Seq
	}{{w, "test", 7}, {f, "fork", w.Journal.Head().ID + 1}} {
		report := judge(t, open(t, write(t, c.Journal, cut{world: c.id, signed: []journal.Seq{c.signed}})))
		require.Empty(t, report.Faults)
		require.Equal(t, c.id, report.WorldID)
		require.Equal(t, c.StateRoot(), report.StateRoot)
		for first := journal.Seq(2); first <= c.Journal.Head().ID; first++ {
			require.Empty(t, judge(t, open(t, write(t, c.Journal, cut{world: c.id, first: first}))).Faults, "from #%d", first)
		}
	}
}

func TestRecordsAreFoundByTheirNumbers(t *testing.T) {
	w := shop(t)
	for range 700 {
		w.Submit("order.placed", map[string]any{"customer": "a", "cents": 1})
	}
	w.Run()
	for _, first := range []journal.Seq{1, 2, 511, 600} {
		r := open(t, write(t, w.Journal, cut{first: first}))
		require.Empty(t, slices.Collect(r.Damage()))
		for _, s := range w.Journal.Records() {
			if s.ID%97 > 0 && s.ID%512 > 2 && s.ID-first > 1 {
				continue
			}
			data, err := r.Record(s.ID)
			if s.ID < first {
				require.ErrorIs(t, err, journal.ErrNotFound)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, s.Bytes, data)
		}
		for _, id := range []journal.Seq{0, r.Header().Last + 1, journal.Last} {
			_, err := r.Record(id)
			require.ErrorIs(t, err, journal.ErrNotFound)
		}
	}
}

func TestRangeHoldsAllThatItsRecordsNeed(t *testing.T) {
	w := shop(t, "a", "b", "c")
	for first := journal.Seq(2); first <= w.Journal.Head().ID; first++ {
		r := open(t, write(t, w.Journal, cut{first: first}))
		require.Empty(t, judge(t, r).Faults)
		next := first
		for s, err := range r.Scan(0) {
			require.NoError(t, err)
			require.Equal(t, next, s.ID)
			require.NoError(t, s.Record.Load(r))
			next++
		}
		require.Equal(t, w.Journal.Head().ID+1, next)
	}
}

func TestWithheldPayloadIsNowhereInTheBundle(t *testing.T) {
	w := shop(t, "a", "secret", "c")
	name := payloads(t, w.Journal)[1]
	data := write(t, w.Journal, cut{withheld: []journal.Hash{name}})
	require.NotContains(t, string(unpack(t, data)), "secretsecret")
	require.Contains(t, string(unpack(t, data)), "cccccccc")
	r := open(t, data)
	_, err := r.Blob(name)
	require.ErrorIs(t, err, journal.ErrNotFound)
	report := judge(t, r)
	require.Empty(t, report.Faults)
	require.EqualValues(t, 1, report.Withheld)
	whole, err := verify.Verify(t.Context(), w.Journal, verify.Config{})
	require.NoError(t, err)
	require.Equal(t, whole.EventChainRootHash, report.EventChainRootHash)
}

func TestNoTemporaryFileIsLeft(t *testing.T) {
	data := write(t, shop(t).Journal, cut{})
	dir := t.TempDir()
	r, err := bundle.Open(bytes.NewReader(data), bundle.Options{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = bundle.Open(strings.NewReader("no bundle"), bundle.Options{Dir: dir})
	require.ErrorIs(t, err, bundle.ErrNotBundle)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
