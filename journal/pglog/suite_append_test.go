package pglog

import (
	"bytes"
	"math/rand/v2"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

func hashOf(text string) journal.Hash { return canon.Sum([]byte(text)) }

// random is a content that gets no shorter when packed.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // which never fails
	return string(b)
}

// appending are the laws of what becomes durable.
var appending = []law{
	{"a record is there as it was appended", func(s *story) {
		o := s.own()
		s.holds(o, o.append(1))
	}},
	{"batches are there in their order", func(s *story) {
		o := s.own()
		var all [][]journal.Stored
		for n := range 12 {
			all = append(all, o.append(n+1))
		}
		s.holds(o, all...)
	}},
	{"a batch of thousands of records is there", func(s *story) {
		o := s.own()
		b := o.batch(5000, 30)
		require.NoError(s, o.beginAppend(b).Wait())
		s.holds(o, b.Records)
	}},
	{"a record that is long is there", func(s *story) {
		o := s.own()
		one, two, three := o.batch(1, 10), o.batch(3, 3<<20), o.batch(1, 0)
		for _, b := range []journal.Batch{one, two, three} {
			require.NoError(s, o.beginAppend(b).Wait())
		}
		s.holds(o, one.Records, two.Records, three.Records)
	}},
	{"batches wait together", func(s *story) {
		o := s.own()
		var made []journal.Stored
		var last journal.Pending
		for range 200 {
			b := o.batch(3, 20)
			made, last = append(made, b.Records...), o.beginAppend(b)
		}
		require.NoError(s, last.Wait())
		s.holds(o, made)
	}},
	{"what is before a durable batch is durable", func(s *story) {
		o := s.own()
		var under []journal.Pending
		for range 50 {
			under = append(under, o.beginAppend(o.batch(1, 20)))
		}
		require.NoError(s, under[len(under)-1].Wait())
		for _, p := range under {
			require.True(s, p.Done())
			require.NoError(s, p.Wait())
		}
	}},
	{"an answer stays the same", func(s *story) {
		o := s.own()
		p := o.beginAppend(o.batch(1, 20))
		for range 3 {
			require.NoError(s, p.Wait())
			require.True(s, p.Done())
		}
	}},
	{"a batch that does not go on is refused, and the next is not", func(s *story) {
		o := s.own()
		first := o.append(2)
		for _, after := range []journal.Head{{}, {ID: 1, Root: first[0].Root}, {ID: 2}, {ID: 9, Root: first[1].Root}} {
			b := journal.Batch{After: after, Head: journal.Head{ID: after.ID + 1, Root: hashOf("x")}}
			_, err := o.Append(b)
			require.Error(s, err)
		}
		s.holds(o, first, o.append(1))
	}},
	{"what a batch was made in may be used again", func(s *story) {
		o := s.own()
		b := o.batch(2, 20, "content")
		want := []journal.Stored{b.Records[0], b.Records[1]}
		for i := range want {
			want[i].Bytes = bytes.Clone(want[i].Bytes)
		}
		require.NoError(s, o.beginAppend(b).Wait())
		for i := range b.Records {
			clear(b.Records[i].Bytes)
		}
		clear(b.Blobs[0].Bytes)
		clear(b.Records)
		s.holds(o, want)
		s.has(o, "content")
	}},
	{"a content comes with its batch", func(s *story) {
		o := s.own()
		o.append(1, "one", "two")
		o.append(1, "three")
		s.has(o, "one", "two", "three")
	}},
	{"a content may come again", func(s *story) {
		o := s.own()
		o.append(1, "one")
		o.append(1, "one", "two")
		s.has(s.own(), "one", "two")
	}},
	{"a content may come twice in a batch", func(s *story) {
		o := s.own()
		o.append(1, "one", "one")
		s.has(o, "one")
	}},
	{"a batch of nothing is durable with those before", func(s *story) {
		o := s.own()
		first := o.batch(3, 20)
		o.beginAppend(first)
		o.append(0)
		s.holds(o, first.Records, o.append(1))
	}},
	{"a content may be empty", func(s *story) {
		o := s.own()
		o.append(1, "")
		s.has(o, "")
	}},
	{"a content may be long", func(s *story) {
		o := s.own()
		long, even := random(5<<20), strings.Repeat("even ", 2<<20)
		o.append(1, long, even)
		s.has(s.own(), long, even)
	}},
	{"many contents come at once", func(s *story) {
		o := s.own()
		var all []string
		for i := range 500 {
			all = append(all, strings.Repeat("c", i+1))
		}
		o.append(1, all...)
		s.has(o, all...)
	}},
	{"what was not acknowledged to a fenced owner leaves no content", func(s *story) {
		one := s.own()
		s.own()
		require.ErrorIs(s, one.beginAppend(one.batch(1, 20, "late")).Wait(), journal.ErrFenced)
		_, err := content(one, "late")
		require.ErrorIs(s, err, journal.ErrNotFound)
	}},
	{"owners in turn make one chain", func(s *story) {
		var all [][]journal.Stored
		for range 6 {
			o := s.own()
			all = append(all, o.append(2), o.append(1))
		}
		s.holds(s.open(), all...)
	}},
}
