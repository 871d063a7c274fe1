package pglog

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// holdTo holds a journal.Log to what the interface promises. World makes a world without records,
// and returns what opens it: each call is another who would own it, and is given it.
func holdTo(t *testing.T, world func(t *testing.T) func() journal.Log) {
	for _, group := range [][]law{owning, appending, readingBack, keeping} {
		for _, l := range group {
			t.Run(l.name, func(t *testing.T) {
				l.hold(&story{T: t, open: world(t)})
			})
		}
	}
}

// law is one thing that a log promises.
type law struct {
	name string
	hold func(s *story)
}

// story is a test of one world.
type story struct {
	*testing.T
	open func() journal.Log
}

// owner is who owns the world, or did.
type owner struct {
	journal.Log
	story *story
	owned journal.Owned
	next  journal.Head // after what was made of it
	chain *canon.Chain
}

// own makes another the owner.
func (s *story) own() *owner {
	s.Helper()
	return s.ownBy(s.open())
}

func (s *story) ownBy(l journal.Log) *owner {
	s.Helper()
	o := &owner{Log: l, story: s}
	var err error
	o.owned, err = o.Own(s.Context())
	require.NoError(s, err)
	o.next, o.chain = o.owned.Head, canon.ResumeChain(o.owned.Head.Root)
	return o
}

// batch makes records that go on from those made before, with payloads of some bytes.
func (o *owner) batch(records, bytesEach int, contents ...string) journal.Batch {
	b := journal.Batch{After: o.next}
	for range records {
		id := o.next.ID + 1
		payload := bytes.Repeat([]byte{byte(id), byte(id >> 8), byte(o.owned.Epoch)}, bytesEach/3+1)[:bytesEach]
		data := canon.AppendEnvelope(nil, canon.Envelope{ID: uint64(id), Time: uint64(id) * 10, Kind: string(journal.KindSubmitted), Payload: payload})
		o.next = journal.Head{ID: id, Root: o.chain.Add(uint64(id), string(journal.KindSubmitted), data)}
		b.Records = append(b.Records, journal.Stored{ID: id, Bytes: data, Root: o.next.Root})
	}
	for _, c := range contents {
		b.Blobs = append(b.Blobs, journal.Blob{Hash: canon.Sum([]byte(c)), Bytes: []byte(c)})
	}
	b.Head = o.next
	return b
}

// beginAppend begins to append.
func (o *owner) beginAppend(b journal.Batch) journal.Pending {
	o.story.Helper()
	p, err := o.Append(b)
	require.NoError(o.story, err)
	return p
}

// append appends records, and returns them when they are durable.
func (o *owner) append(records int, contents ...string) []journal.Stored {
	o.story.Helper()
	b := o.batch(records, 20, contents...)
	require.NoError(o.story, o.beginAppend(b).Wait())
	return b.Records
}

// fenced sees to it that an owner is none any more.
func (o *owner) fenced() {
	o.story.Helper()
	require.ErrorIs(o.story, o.beginAppend(o.batch(1, 20)).Wait(), journal.ErrFenced)
}

// readAfter reads the records after one.
func (s *story) readAfter(l journal.Past, after journal.Seq) []journal.Linked {
	s.Helper()
	var out []journal.Linked
	for r, err := range l.Records(s.Context(), after) {
		require.NoError(s, err)
		out = append(out, r)
	}
	return out
}

// holds sees to it that a world has these records, and ends with them.
func (s *story) holds(l journal.Past, want ...[]journal.Stored) {
	s.Helper()
	var all []journal.Linked
	var head journal.Head
	for _, records := range want {
		for _, r := range records {
			all = append(all, journal.Linked{ID: r.ID, Bytes: r.Bytes, Link: [journal.LinkBytes]byte(r.Root[:])})
			head = journal.Head{ID: r.ID, Root: r.Root}
		}
	}
	got := s.readAfter(l, 0)
	require.Len(s, got, len(all))
	for i := range all { // one by one: a difference is to be read
		require.Equal(s, all[i], got[i])
	}
	end, err := l.End(s.Context())
	require.NoError(s, err)
	require.Equal(s, head, end)
}

// content is what a log has for a content's hash.
func content(l journal.Blobs, text string) (string, error) {
	b, err := l.Blob(canon.Sum([]byte(text)))
	return string(b), err
}

// has sees to it that contents are there.
func (s *story) has(l journal.Blobs, contents ...string) {
	s.Helper()
	for _, c := range contents {
		got, err := content(l, c)
		require.NoError(s, err)
		require.Equal(s, c, got)
	}
}

// image makes an image at a head.
func image(at journal.Head, tree string, parts ...string) *journal.KeptImage {
	return &journal.KeptImage{Head: at, Tree: []byte(tree), Parts: func(yield func([]byte, error) bool) {
		for _, p := range parts {
			if !yield([]byte(p), nil) {
				return
			}
		}
	}}
}

// keeps sees to it that an image is what the log has.
func (s *story) keeps(l journal.Past, want *journal.KeptImage) {
	s.Helper()
	got, err := l.Kept(s.Context())
	require.NoError(s, err)
	require.NotNil(s, got)
	require.Equal(s, want.Head, got.Head)
	require.Equal(s, string(want.Tree), string(got.Tree))
	require.Equal(s, s.parts(want), s.parts(got))
}

func (s *story) parts(img *journal.KeptImage) []string {
	s.Helper()
	var out []string
	for p, err := range img.Parts {
		require.NoError(s, err)
		out = append(out, string(p))
	}
	return out
}

// notes reads the notes of sizes from one to another.
func (s *story) notes(l journal.Past, from, to journal.Seq) []journal.Note {
	s.Helper()
	var out []journal.Note
	for n, err := range l.Notes(context.WithoutCancel(s.Context()), from, to) {
		require.NoError(s, err)
		out = append(out, n)
	}
	return out
}
