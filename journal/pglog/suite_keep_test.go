package pglog

import (
	"errors"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// keeping are the laws of images, notes and redactions.
var keeping = []law{
	{"an image is there as it was put", func(s *story) {
		o := s.own()
		o.append(3)
		img := image(o.next, "tree", "one", "", strings.Repeat("three", 999))
		require.NoError(s, o.PutImage(s.Context(), img))
		s.keeps(o, img)
		s.keeps(s.own(), img)
	}},
	{"an image may have no parts", func(s *story) {
		o := s.own()
		o.append(1)
		require.NoError(s, o.PutImage(s.Context(), image(o.next, "")))
		s.keeps(o, image(o.next, ""))
	}},
	{"an image has parts of the greatest length", func(s *story) {
		o := s.own()
		o.append(1)
		img := image(o.next, "tree", random(journal.MaxKeptPart), strings.Repeat("p", journal.MaxKeptPart), random(7))
		require.NoError(s, o.PutImage(s.Context(), img))
		s.keeps(o, img)
	}},
	{"an image has many parts, in their order", func(s *story) {
		o := s.own()
		o.append(1)
		var parts []string
		for i := range 120 {
			parts = append(parts, strings.Repeat("x", i))
		}
		require.NoError(s, o.PutImage(s.Context(), image(o.next, "tree", parts...)))
		s.keeps(o, image(o.next, "tree", parts...))
	}},
	{"an image takes the place of the one before", func(s *story) {
		o := s.own()
		for i := range 3 {
			o.append(1)
			img := image(o.next, "tree", strings.Repeat("a", 3-i), "b")
			require.NoError(s, o.PutImage(s.Context(), img))
			s.keeps(o, img)
		}
	}},
	{"an image may be put again", func(s *story) {
		o := s.own()
		o.append(1)
		require.NoError(s, o.PutImage(s.Context(), image(o.next, "tree", "a", "b")))
		require.NoError(s, o.PutImage(s.Context(), image(o.next, "other", "c")))
		s.keeps(o, image(o.next, "other", "c"))
	}},
	{"an image that is read twice is the same", func(s *story) {
		o := s.own()
		o.append(1)
		require.NoError(s, o.PutImage(s.Context(), image(o.next, "tree", "a", "b", "c")))
		img, err := o.Kept(s.Context())
		require.NoError(s, err)
		for _, err := range img.Parts {
			require.NoError(s, err)
			break // who reads the first only leaves nothing open
		}
		for range 2 {
			require.Equal(s, []string{"a", "b", "c"}, s.parts(img))
		}
	}},
	{"an image that cannot be made leaves the one before", func(s *story) {
		o := s.own()
		o.append(1)
		img := image(o.next, "tree", "a")
		require.NoError(s, o.PutImage(s.Context(), img))
		broken := errors.New("broken")
		err := o.PutImage(s.Context(), &journal.KeptImage{Head: o.next, Parts: func(yield func([]byte, error) bool) {
			_ = yield([]byte("b"), nil) && yield(nil, broken)
		}})
		require.ErrorIs(s, err, broken)
		s.keeps(o, img)
	}},
	{"a part that is too long is refused", func(s *story) {
		o := s.own()
		o.append(1)
		img := image(o.next, "tree", "a")
		require.NoError(s, o.PutImage(s.Context(), img))
		require.Error(s, o.PutImage(s.Context(), image(o.next, "tree", "b", strings.Repeat("c", journal.MaxKeptPart+1))))
		s.keeps(o, img)
	}},
	{"an image of what is not durable is refused", func(s *story) {
		o := s.own()
		o.append(1)
		require.Error(s, o.PutImage(s.Context(), image(journal.Head{ID: 9, Root: hashOf("x")}, "tree", "a")))
		img, err := o.Kept(s.Context())
		require.NoError(s, err)
		require.Nil(s, img)
	}},
	{"the next owner puts the next image", func(s *story) {
		one := s.own()
		one.append(1)
		require.NoError(s, one.PutImage(s.Context(), image(one.next, "one", "a", "b", "c")))
		two := s.own()
		two.append(1)
		img := image(two.next, "two", "d")
		require.NoError(s, two.PutImage(s.Context(), img))
		s.keeps(one, img)
	}},
	{"notes are there by their sizes", func(s *story) {
		o := s.own()
		for _, size := range []journal.Seq{5, 1, 9, 7} {
			require.NoError(s, o.PutNote(s.Context(), newNote(size, "n")))
		}
		require.Equal(s, []journal.Note{newNote(1, "n"), newNote(5, "n"), newNote(7, "n"), newNote(9, "n")}, s.notes(o, 0, journal.Last))
		require.Equal(s, []journal.Note{newNote(5, "n"), newNote(7, "n")}, s.notes(o, 5, 7))
		require.Equal(s, []journal.Note{newNote(5, "n"), newNote(7, "n")}, s.notes(o, 2, 8))
		require.Empty(s, s.notes(o, 2, 4))
		require.Empty(s, s.notes(o, 7, 5))
	}},
	{"a note takes the place of one of its size", func(s *story) {
		o := s.own()
		for _, text := range []string{"one", "two", strings.Repeat("three", 3000)} {
			require.NoError(s, o.PutNote(s.Context(), newNote(4, text)))
			require.Equal(s, []journal.Note{newNote(4, text)}, s.notes(o, 4, 4))
		}
	}},
	{"thousands of notes are read", func(s *story) {
		o := s.own()
		for size := range journal.Seq(1100) {
			require.NoError(s, o.PutNote(s.Context(), newNote(size+1, "n")))
		}
		got := s.notes(o, 0, journal.Last)
		require.Len(s, got, 1100)
		for i, n := range got {
			require.Equal(s, journal.Seq(i+1), n.Size)
		}
	}},
	{"what is redacted is gone, and says so", func(s *story) {
		o := s.own()
		records := o.append(2, "secret", "other")
		require.NoError(s, o.Redact(s.Context(), hashOf("secret")))
		for _, l := range []journal.Past{o, s.open()} {
			_, err := content(l, "secret")
			require.ErrorIs(s, err, journal.ErrRedacted)
			s.has(l, "other")
			s.holds(l, records)
		}
	}},
	{"what is redacted is there again when it comes again", func(s *story) {
		o := s.own()
		o.append(1, "secret")
		require.NoError(s, o.Redact(s.Context(), hashOf("secret")))
		o.append(1, "secret", "secret")
		s.has(o, "secret")
		require.NoError(s, o.Redact(s.Context(), hashOf("secret")))
		_, err := content(o, "secret")
		require.ErrorIs(s, err, journal.ErrRedacted)
	}},
	{"what never came may be redacted, twice", func(s *story) {
		o := s.own()
		for range 2 {
			require.NoError(s, o.Redact(s.Context(), hashOf("secret")))
			_, err := content(o, "secret")
			require.ErrorIs(s, err, journal.ErrRedacted)
		}
	}},
	{"a redaction leaves notes and the image", func(s *story) {
		o := s.own()
		o.append(1, "secret")
		img := image(o.next, "tree", "part")
		require.NoError(s, o.PutImage(s.Context(), img))
		require.NoError(s, o.PutNote(s.Context(), newNote(1, "n")))
		require.NoError(s, o.Redact(s.Context(), hashOf("secret")))
		s.keeps(o, img)
		require.Len(s, s.notes(o, 1, 1), 1)
	}},
}

func newNote(size journal.Seq, text string) journal.Note {
	return journal.Note{Size: size, Text: []byte(text)}
}
