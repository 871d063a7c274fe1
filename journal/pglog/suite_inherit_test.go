package pglog

import (
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// inherits has who makes a world begin it with what another has up to a head.
func (s *story) inherits(from journal.Log, to journal.Head) (*owner, journal.Movable) {
	s.Helper()
	o, l := s.makes(journal.Left{})
	require.NoError(s, l.Inherit(s.Context(), from, to))
	o.next, o.chain = to, canon.ResumeChain(to.Root)
	return o, l
}

func headOf(records []journal.Stored) journal.Head {
	last := records[len(records)-1]
	return journal.Head{ID: last.ID, Root: last.Root}
}

// inheriting are the laws of worlds that begin with what another of the same store has.
var inheriting = []struct {
	name string
	hold func(parent, child *story)
}{
	{"what is made begins with what another has", func(parent, child *story) {
		o, _ := parent.live("a", "b")
		first := o.append(3, "c")
		require.NoError(parent, o.Redact(parent.Context(), canon.Sum([]byte("b"))))
		heir, l := child.inherits(o.Log, o.next)
		child.stands(journal.Standing{State: journal.Made, Head: o.next, Copies: "one two"})
		child.has(heir, "a", "c")
		_, err := content(heir, "b")
		require.ErrorIs(child, err, journal.ErrRedacted)
		own := heir.append(2, "d")
		require.NoError(child, l.Publish(child.Context()))
		both := child.readAfter(heir, 0)
		require.Equal(child, parent.readAfter(o, 0), both[:o.next.ID])
		require.Len(child, both, int(own[1].ID))
		parent.stands(journal.Standing{State: journal.Live, Head: headOf(first), Copies: "one two"})
		_, err = content(o, "d")
		require.ErrorIs(parent, err, journal.ErrNotFound)
		o.append(1, "e")
		_, err = content(heir, "e")
		require.ErrorIs(child, err, journal.ErrNotFound)
		child.has(child.own(), "a", "c", "d")
	}},
	{"it begins with as much as is asked for", func(parent, child *story) {
		o, _ := parent.live()
		all := o.append(3)
		all = append(all, o.append(4)...)
		for _, last := range []int{2, 3, 4, 6, 7} {
			heir, _ := child.inherits(o.Log, headOf(all[:last]))
			own := heir.append(2)
			read := child.readAfter(heir, 0)
			require.Equal(child, parent.readAfter(o, 0)[:2+last], read[:2+last])
			require.Len(child, read, int(own[1].ID))
			require.NoError(child, heir.Release(child.Context(), journal.WakeNow))
		}
	}},
	{"checkpoints and images stay the other's", func(parent, child *story) {
		o, _ := parent.live()
		require.NoError(parent, o.PutNote(parent.Context(), journal.Note{Size: 2, Text: []byte("n")}))
		require.NoError(parent, o.PutImage(parent.Context(), image(o.next, "tree", "part")))
		heir, _ := child.inherits(o.Log, o.next)
		require.Empty(child, child.notes(heir, 0, journal.Last))
		kept, err := heir.Kept(child.Context())
		require.NoError(child, err)
		require.Nil(child, kept)
	}},
	{"who is fenced inherits nothing", func(parent, child *story) {
		o, _ := parent.live("a")
		one, l := child.makes(journal.Left{})
		require.NoError(child, one.Release(child.Context(), journal.WakeNow))
		two, _ := child.makes(journal.Left{})
		require.ErrorIs(child, l.Inherit(child.Context(), o.Log, o.next), journal.ErrFenced)
		child.holds(two)
		_, err := content(two, "a")
		require.ErrorIs(child, err, journal.ErrNotFound)
		one.fenced()
	}},
	{"what has begun inherits nothing", func(parent, child *story) {
		o, _ := parent.live("a")
		heir, l := child.makes(journal.Left{})
		own := heir.append(1)
		require.Error(child, l.Inherit(child.Context(), o.Log, o.next))
		child.holds(heir, own)
		require.NoError(child, l.Publish(child.Context()))
		require.Error(child, l.Inherit(child.Context(), o.Log, o.next))
		child.holds(heir, own)
	}},
	{"what another does not have is not inherited", func(parent, child *story) {
		o, _ := parent.live()
		other := o.next
		other.Root[0]++
		for _, to := range []journal.Head{{ID: o.next.ID + 1, Root: o.next.Root}, other} {
			heir, l := child.makes(journal.Left{})
			require.Error(child, l.Inherit(child.Context(), o.Log, to))
			require.NoError(child, heir.Release(child.Context(), journal.WakeNow))
		}
	}},
	{"it is inherited from one in the same store", func(parent, child *story) {
		o, _ := parent.live()
		_, l := child.makes(journal.Left{})
		require.ErrorIs(child, l.Inherit(child.Context(), &faulty{Log: o.Log}, o.next), journal.ErrElsewhere)
	}},
}
