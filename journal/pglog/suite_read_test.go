package pglog

import (
	"bytes"
	"context"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// readingBack are the laws of what is read back.
var readingBack = []law{
	{"who owns nothing reads all", func(s *story) {
		o := s.own()
		first := o.append(3, "a")
		img := image(o.next, "tree", "part")
		require.NoError(s, o.PutImage(s.Context(), img))
		require.NoError(s, o.PutNote(s.Context(), journal.Note{Size: 3, Text: []byte("note")}))
		reader := s.open()
		s.holds(reader, first)
		s.has(reader, "a")
		s.keeps(reader, img)
		require.Len(s, s.notes(reader, 3, 3), 1)
		s.holds(o, first, o.append(1)) // and has not become the owner by it
	}},
	{"who only reads changes nothing", func(s *story) {
		o, reader := s.own(), s.open()
		b := o.batch(2, 20, "secret")
		p, err := reader.Append(b)
		if err == nil {
			err = p.Wait()
		}
		require.Error(s, err)
		require.NoError(s, o.beginAppend(b).Wait())
		require.Error(s, reader.Redact(s.Context(), hashOf("secret")))
		require.Error(s, reader.PutNote(s.Context(), newNote(2, "n")))
		require.Error(s, reader.PutImage(s.Context(), image(o.next, "tree", "part")))
		require.Error(s, reader.Release(s.Context(), journal.WakeNever))
		s.holds(o, b.Records, o.append(1))
		s.has(o, "secret")
		require.Empty(s, s.notes(o, 0, journal.Last))
		img, err := o.Kept(s.Context())
		require.NoError(s, err)
		require.Nil(s, img)
	}},
	{"a world that nobody owns is read", func(s *story) {
		o := s.own()
		first := o.append(3, "a")
		require.NoError(s, o.Release(s.Context(), journal.WakeNever))
		reader := s.open()
		s.holds(reader, first)
		s.has(reader, "a")
	}},
	{"who reads beside an owner sees beginnings of what that makes", func(s *story) {
		o := s.own()
		var all []journal.Stored
		heads := map[journal.Head]bool{{}: true}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 40 {
				b := o.batch(3, 20)
				all, heads[b.Head] = append(all, b.Records...), true
				p, err := o.Append(b)
				if err == nil {
					err = p.Wait()
				}
				if err != nil {
					s.Error(err)
				}
			}
		}()
		var seen []journal.Head
		var read [][]journal.Linked
		reader := s.open()
		for over := false; !over; {
			select {
			case <-done:
				over = true
			default:
			}
			end, err := reader.End(s.Context())
			require.NoError(s, err)
			seen, read = append(seen, end), append(read, s.readAfter(reader, 0))
		}
		for i, end := range seen {
			require.Contains(s, heads, end)
			require.GreaterOrEqual(s, len(read[i]), int(end.ID))
			for at, r := range read[i] {
				require.Equal(s, all[at].Bytes, r.Bytes)
			}
		}
		require.Equal(s, o.next, seen[len(seen)-1])
	}},
	{"an image is read whole, or not at all, while others are put", func(s *story) {
		o := s.own()
		o.append(1)
		of := func(at journal.Head) *journal.KeptImage {
			part := strings.Repeat(string(rune('a'+at.ID%26)), 1000)
			return image(at, "tree", part, part, part)
		}
		require.NoError(s, o.PutImage(s.Context(), of(o.next)))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 20 {
				b := o.batch(1, 20)
				p, err := o.Append(b)
				if err == nil {
					err = p.Wait()
				}
				if err == nil {
					err = o.PutImage(s.Context(), of(b.Head))
				}
				if err != nil {
					s.Error(err)
				}
			}
		}()
		reader := s.open()
		for over := false; !over; {
			select {
			case <-done:
				over = true
			default:
			}
			img, err := reader.Kept(s.Context())
			require.NoError(s, err)
			end, err := reader.End(s.Context())
			require.NoError(s, err)
			require.LessOrEqual(s, img.Head.ID, end.ID)
			var parts []string
			var failed error
			for p, err := range img.Parts {
				parts, failed = append(parts, string(p)), err
			}
			if failed == nil {
				require.Equal(s, s.parts(of(img.Head)), parts)
			} else {
				require.False(s, over, "nobody puts another: %v", failed)
			}
		}
	}},
	{"an empty world has nothing to read", func(s *story) {
		reader := s.open()
		s.holds(reader)
		require.Empty(s, s.notes(reader, 0, journal.Last))
		img, err := reader.Kept(s.Context())
		require.NoError(s, err)
		require.Nil(s, img)
	}},
	{"records are read from any on", func(s *story) {
		o := s.own()
		var all []journal.Stored
		for n := range 5 {
			all = append(all, o.append(n+1)...)
		}
		for after := range len(all) + 1 {
			got := s.readAfter(o, journal.Seq(after))
			require.Len(s, got, len(all)-after)
			for i, r := range got {
				require.Equal(s, all[after+i].ID, r.ID)
				require.Equal(s, all[after+i].Bytes, r.Bytes)
			}
		}
	}},
	{"records are read from any of thousands on", func(s *story) {
		o := s.own()
		b := o.batch(4500, 30)
		require.NoError(s, o.beginAppend(b).Wait())
		for _, after := range []int{0, 1, 2046, 2047, 2048, 2049, 4095, 4096, 4097, 4499} {
			got := s.readAfter(o, journal.Seq(after))
			require.Len(s, got, 4500-after)
			require.Equal(s, b.Records[after].Bytes, got[0].Bytes)
		}
	}},
	{"after the end there is nothing", func(s *story) {
		o := s.own()
		o.append(2)
		for _, after := range []journal.Seq{2, 3, 1000, journal.Last} {
			require.Empty(s, s.readAfter(o, after))
		}
	}},
	{"who has read enough stops", func(s *story) {
		o := s.own()
		b := o.batch(3000, 30)
		require.NoError(s, o.beginAppend(b).Wait())
		for _, enough := range []journal.Seq{1, 2048, 2500} {
			for r, err := range o.Records(s.Context(), 0) {
				require.NoError(s, err)
				if r.ID == enough {
					break
				}
				require.Less(s, r.ID, enough)
			}
		}
		s.holds(o, b.Records)
	}},
	{"bytes that were read may be kept", func(s *story) {
		o := s.own()
		all := o.append(50)
		var kept [][]byte
		for _, r := range s.readAfter(o, 0) {
			kept = append(kept, r.Bytes)
		}
		for _, r := range s.readAfter(o, 0) {
			clear(r.Bytes)
		}
		for i, b := range kept {
			require.Equal(s, all[i].Bytes, b)
		}
	}},
	{"a content that was read is the reader's", func(s *story) {
		o := s.own()
		o.append(1, "content")
		b, err := o.Blob(hashOf("content"))
		require.NoError(s, err)
		clear(b)
		s.has(o, "content")
	}},
	{"reading ends with its context", func(s *story) {
		o := s.own()
		o.append(3)
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		var failed error
		for _, err := range o.Records(ctx, 0) {
			failed = err
		}
		require.ErrorIs(s, failed, context.Canceled)
	}},
	{"what is read while it grows is a beginning of it", func(s *story) {
		o := s.own()
		b := o.batch(3000, 30)
		require.NoError(s, o.beginAppend(b).Wait())
		n := 0
		for r, err := range s.open().Records(s.Context(), 0) {
			require.NoError(s, err)
			if n < 3000 {
				require.True(s, bytes.Equal(b.Records[n].Bytes, r.Bytes))
			}
			if n++; n%500 == 0 {
				o.append(700)
			}
		}
		require.GreaterOrEqual(s, n, 3000)
	}},
	{"the end is that of what is durable", func(s *story) {
		o := s.own()
		for range 5 {
			o.append(2)
			end, err := o.End(s.Context())
			require.NoError(s, err)
			require.Equal(s, o.next, end)
		}
	}},
	{"a content that never was is not found", func(s *story) {
		_, err := content(s.own(), "never")
		require.ErrorIs(s, err, journal.ErrNotFound)
		require.NotErrorIs(s, err, journal.ErrRedacted)
	}},
}
