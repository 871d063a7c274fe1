package worldctl

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/chunk"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// sortOf is what an item of a bundle behind its header is.
type sortOf byte

const (
	aRecord sortOf = iota
	aBlob
	aNote
)

// item is an item of a bundle: the stored bytes of a record and its link, a blob,
// or a signed checkpoint.
type item struct {
	sort  sortOf
	bytes []byte
	link  []byte
}

// counterfeit is a bundle whose items can be changed one by one.
type counterfeit struct {
	t      testing.TB
	rng    *rand.Rand
	keys   []ed25519.PrivateKey // of its owner
	header bundle.Header
	items  []item

	unreadable bool // its manifest is none to the kernel
}

// unpacked returns the items of a bundle, the header among them.
func unpacked(t testing.TB, data []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	items, err := io.ReadAll(zip)
	require.NoError(t, err)
	return items
}

// packed packs items as docs/bundle-format.md says.
func packed(t testing.TB, items []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	require.NoError(t, err)
	_, err = zip.Write(items)
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	first := out.Bytes()
	copy(first, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
	sum := sha256.Sum256(first)
	return slices.Concat(first, []byte("\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff\x24\x00wk\x20\x00"), sum[:], []byte("\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
}

// cutOpen takes a bundle apart.
func cutOpen(t testing.TB, data []byte, keys []ed25519.PrivateKey) *counterfeit {
	t.Helper()
	r, err := bundle.Open(bytes.NewReader(data), bundle.Options{})
	require.NoError(t, err)
	f := &counterfeit{t: t, keys: keys, header: r.Header()}
	require.NoError(t, r.Close())
	items := canon.NewReader(unpacked(t, data))
	items.Raw() // the header
	var pieces inPieces
	for items.Kind() != canon.KindNone {
		x := canon.NewReader(items.Raw())
		switch x.Kind() {
		case canon.KindArray:
			if x.Array() == 1 {
				pieces.all = append(pieces.all, x.Bytes())
			} else if x.Kind() == canon.KindInt {
				size, list := x.Uint(), x.Bytes()
				f.items = append(f.items, item{sort: aBlob, bytes: pieces.joined(t, list, size)})
			} else {
				record := x.Raw()
				f.items = append(f.items, item{sort: aRecord, bytes: record, link: x.Bytes()})
			}
		case canon.KindBytes:
			f.items = append(f.items, item{sort: aBlob, bytes: x.Bytes()})
		default:
			f.items = append(f.items, item{sort: aNote, bytes: x.TextBytes()})
		}
		require.NoError(t, x.Err())
	}
	return f
}

// inPieces are the pieces of a bundle so far, the nth under the number n.
type inPieces struct {
	all    [][]byte
	number map[chunk.Sum]uint64
}

// joined returns the blob that a list stands for.
func (p *inPieces) joined(t testing.TB, list []byte, size uint64) (blob []byte) {
	t.Helper()
	l, err := chunk.Parse(list, size)
	require.NoError(t, err)
	require.NoError(t, l.Read(func(n uint64) ([]byte, error) { return p.all[n-1], nil }, func(_ uint64, piece []byte) error {
		blob = append(blob, piece...)
		return nil
	}))
	return blob
}

// append appends a blob in pieces: those that are not there yet, and its list.
func (p *inPieces) append(t testing.TB, b, blob []byte) []byte {
	t.Helper()
	l, err := chunk.Build(blob, nil, func(piece []byte, _ bool) (uint64, chunk.Sum, error) {
		sum := sha256.Sum256(piece)
		if p.number[sum] == 0 {
			p.number[sum] = uint64(len(p.number)) + 1
			b = canon.AppendBytes(canon.AppendArray(b, 1), piece)
		}
		return p.number[sum], sum, nil
	})
	require.NoError(t, err)
	b = canon.AppendUint(canon.AppendArray(b, 2), uint64(len(blob)))
	return canon.AppendBytes(b, l.Append(nil))
}

// clone returns a copy to be changed. Bytes of items are replaced, never written to.
func (f *counterfeit) clone(rng *rand.Rand) *counterfeit {
	x := *f
	x.rng = rng
	x.items = slices.Clone(f.items)
	x.header.Withheld = slices.Clone(f.header.Withheld)
	return &x
}

// unpacked returns the bytes of all items, long blobs in pieces.
func (f *counterfeit) unpacked() []byte {
	const piecesFrom = 4<<10 + 1 // bytes of a blob
	b := appendHeader(nil, &f.header)
	pieces := inPieces{number: make(map[chunk.Sum]uint64)}
	for _, x := range f.items {
		switch x.sort {
		case aRecord:
			b = append(canon.AppendArray(b, 2), x.bytes...)
			b = canon.AppendBytes(b, x.link)
		case aBlob:
			if len(x.bytes) < piecesFrom {
				b = canon.AppendBytes(b, x.bytes)
			} else {
				b = pieces.append(f.t, b, x.bytes)
			}
		default:
			b = canon.AppendText(b, string(x.bytes))
		}
	}
	return b
}

func appendHeader(b []byte, h *bundle.Header) []byte {
	b = canon.AppendText(canon.AppendArray(b, 9), "worldkernel/bundle")
	b = canon.AppendText(canon.AppendUint(b, 1), h.World)
	b = canon.AppendUint(canon.AppendUint(b, uint64(h.First)), uint64(h.Last))
	if h.Root.IsZero() {
		b = canon.AppendBytes(b, nil)
	} else {
		b = canon.AppendBytes(b, h.Root[:])
	}
	for _, list := range [][]journal.Hash{h.Nodes, h.Withheld} {
		b = canon.AppendArray(b, len(list))
		for _, x := range list {
			b = canon.AppendBytes(b, x[:])
		}
	}
	b = canon.AppendArray(b, len(h.Keys))
	for _, key := range h.Keys {
		b = canon.AppendBytes(b, key)
	}
	return b
}

// records returns where records are among the items.
func (f *counterfeit) records() (at []int) { return f.of(aRecord) }

func (f *counterfeit) of(s sortOf) (at []int) {
	for i := range f.items {
		if f.items[i].sort == s {
			at = append(at, i)
		}
	}
	return at
}

func (f *counterfeit) envelope(at int) (canon.Envelope, bool) {
	e, err := canon.DecodeEnvelope(f.items[at].bytes)
	return e, err == nil
}

// Blob implements journal.Blobs.
func (f *counterfeit) Blob(name journal.Hash) ([]byte, error) {
	for i := range f.items {
		if x := &f.items[i]; x.sort == aBlob && canon.Sum(x.bytes) == name {
			return x.bytes, nil
		}
	}
	return nil, journal.ErrNotFound
}

// body returns what a record says, nil where its payload is not there.
func (f *counterfeit) body(at int) journal.Body {
	rec, err := journal.DecodeRecord(f.items[at].bytes)
	if err != nil || rec.Load(f) != nil {
		return nil
	}
	body, err := rec.Body()
	if err != nil {
		return nil
	}
	return body
}

// say has a record say something else. A payload that is a blob stays one.
func (f *counterfeit) say(at int, body journal.Body) {
	payload, err := canon.Marshal(body)
	require.NoError(f.t, err)
	e, ok := f.envelope(at)
	require.True(f.t, ok)
	was := e.Blob
	e.Payload, e.Blob, e.BlobSize = payload, journal.Hash{}, 0
	if len(payload) > journal.MaxInlineBytes {
		e.Payload, e.Blob, e.BlobSize = nil, canon.Sum(payload), uint64(len(payload))
	}
	f.items[at].bytes = canon.AppendEnvelope(nil, e)
	if was == e.Blob {
		return
	}
	if i := slices.IndexFunc(f.items, func(x item) bool { return x.sort == aBlob && canon.Sum(x.bytes) == was }); i >= 0 && i < at && !f.needed(was) {
		f.items = slices.Delete(f.items, i, i+1)
		at--
	}
	if !e.Blob.IsZero() {
		f.bring(at, payload)
	}
}

// needed reports whether a record has a payload.
func (f *counterfeit) needed(blob journal.Hash) bool {
	return slices.ContainsFunc(f.records(), func(at int) bool {
		e, ok := f.envelope(at)
		return ok && e.Blob == blob
	})
}

// bring puts a blob before an item, unless it is there.
func (f *counterfeit) bring(at int, content []byte) {
	if _, err := f.Blob(canon.Sum(content)); err != nil {
		f.items = slices.Insert(f.items, at, item{sort: aBlob, bytes: content})
	}
}

// pick returns a record of some kinds, -1 where there is none.
func (f *counterfeit) pick(kinds ...journal.Kind) int {
	var at []int
	for _, i := range f.records() {
		if e, ok := f.envelope(i); ok && slices.Contains(kinds, journal.Kind(e.Kind)) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return -1
	}
	return at[f.rng.IntN(len(at))]
}

// renumber gives records the numbers that they have by their places, and leads
// causes to the records that they were.
func (f *counterfeit) renumber() {
	now := map[uint64]uint64{0: 0}
	next := uint64(f.header.First)
	for _, at := range f.records() {
		e, ok := f.envelope(at)
		if !ok {
			next++
			continue
		}
		if _, again := now[e.ID]; !again {
			now[e.ID] = next
		}
		e.ID = next
		next++
		if cause, there := now[e.CausedBy]; there {
			e.CausedBy = cause
		} else {
			e.CausedBy = min(e.CausedBy, e.ID-1)
		}
		f.items[at].bytes = canon.AppendEnvelope(nil, e)
	}
	f.header.Last = journal.Seq(next - 1)
}

// chain computes the links anew, and the chain roots that records name: anybody can.
func (f *counterfeit) chain() {
	chain := canon.ResumeChain(f.header.Root)
	for _, at := range f.records() {
		e, ok := f.envelope(at)
		if !ok {
			continue
		}
		if e.Blob.IsZero() {
			f.name(at, journal.Seq(e.ID-1), chain.Root())
		}
		root := chain.Add(e.ID, e.Kind, f.items[at].bytes)
		f.items[at].link = bytes.Clone(root[:journal.LinkBytes])
	}
}

// name has a record that names a chain root name this one.
func (f *counterfeit) name(at int, id journal.Seq, root journal.Hash) {
	switch b := f.body(at).(type) {
	case *journal.SnapshotCreated:
		b.At, b.ChainRoot = id, root
		f.say(at, b)
	case *journal.Forked:
		b.At, b.ChainRoot = id, root
		f.say(at, b)
	}
}

// sign signs checkpoints anew, where they stand: the owner can. Those before which
// a fork has become its own world are the fork's.
func (f *counterfeit) sign() {
	tree, err := checkpoint.Resume(uint64(f.header.First-1), f.header.Nodes)
	require.NoError(f.t, err)
	for i := range f.items {
		switch x := &f.items[i]; x.sort {
		case aRecord:
			tree.Add(x.bytes)
		case aNote:
			x.bytes = f.note(tree.Size(), tree.Root())
		case aBlob:
		}
	}
}

func (f *counterfeit) note(size uint64, root checkpoint.Hash) []byte {
	note, err := checkpoint.Checkpoint{World: f.header.World, Size: size, Root: root}.Sign(f.keys...)
	require.NoError(f.t, err)
	return note
}

// bundleOf writes a bundle of the records of a life from one on, with checkpoints
// here and there, which the keys sign.
func (l *life) bundleOf(first journal.Seq, withheld []journal.Hash, keys ...ed25519.PrivateKey) []byte {
	l.t.Helper()
	records := l.w.Journal.Records()
	h := bundle.Header{World: l.id, First: first, Last: journal.Seq(len(records)), Withheld: withheld}
	for _, key := range keys {
		h.Keys = append(h.Keys, key.Public().(ed25519.PublicKey))
	}
	tree := new(checkpoint.Tree)
	for _, s := range records[:first-1] {
		tree.Add(s.Bytes)
		h.Root = s.Root
	}
	h.Nodes = tree.Nodes()
	var out bytes.Buffer
	w, err := bundle.NewWriter(&out, h)
	require.NoError(l.t, err)
	born := l.born()
	for s, err := range l.w.Journal.Scan(first - 1) {
		require.NoError(l.t, err)
		for _, b := range l.blobsOf(s.Record) {
			require.NoError(l.t, w.Blob(b))
		}
		require.NoError(l.t, w.Record(s))
		tree.Add(s.Bytes)
		if s.ID == h.Last || s.ID >= born && l.rng.IntN(40) == 0 {
			note, err := checkpoint.Checkpoint{World: l.id, Size: tree.Size(), Root: tree.Root()}.Sign(keys...)
			require.NoError(l.t, err)
			require.NoError(l.t, w.Checkpoint(note))
		}
	}
	require.NoError(l.t, w.Close())
	return out.Bytes()
}

// born returns the record from which on the world is its own.
func (l *life) born() (at journal.Seq) {
	for s, err := range l.w.Journal.Scan(0) {
		require.NoError(l.t, err)
		if s.Record.Kind == journal.KindForked || s.Record.Kind == journal.KindCreated {
			at = s.ID
		}
	}
	return at
}

// blobsOf returns what a record needs, but for what was redacted.
func (l *life) blobsOf(rec journal.Record) (blobs [][]byte) {
	require.NoError(l.t, rec.Load(l.w.Journal))
	if !rec.Blob.IsZero() && !l.redacted[rec.Blob] {
		blobs = append(blobs, rec.Payload)
	}
	body, err := rec.Body()
	require.NoError(l.t, err)
	if name, brings := journal.ManifestOf(body); brings {
		blobs = append(blobs, contentsOf(l.t, l.w.Journal, name)...)
	}
	return blobs
}

// owner returns the key that signs a world's checkpoints.
func (l *life) owner() ed25519.PrivateKey {
	keys, err := worldtest.Keyring(l.t, l.id).CheckpointKeys()
	require.NoError(l.t, err)
	return keys[len(keys)-1]
}

func sortedHashes(all iter.Seq[journal.Hash]) []journal.Hash {
	return slices.SortedFunc(all, func(a, b journal.Hash) int { return bytes.Compare(a[:], b[:]) })
}
