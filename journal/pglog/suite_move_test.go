package pglog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// holdMovable holds a journal.Movable to what the interface promises. World returns what opens a
// world that is not there: as holdTo has it, and each may own one that is being made.
func holdMovable(t *testing.T, world func(t *testing.T) func() journal.Log) {
	for _, l := range moving {
		t.Run(l.name, func(t *testing.T) { l.hold(&story{T: t, open: world(t)}) })
	}
	for _, l := range inheriting {
		t.Run(l.name, func(t *testing.T) { l.hold(&story{T: t, open: world(t)}, &story{T: t, open: world(t)}) })
	}
}

// movable is another who would move the world.
func (s *story) movable() journal.Movable {
	s.Helper()
	l, ok := s.open().(journal.Movable)
	require.True(s, ok)
	return l
}

// stands sees to it how the world stands.
func (s *story) stands(want journal.Standing) {
	s.Helper()
	is, err := s.movable().Stands(s.Context())
	require.NoError(s, err)
	require.Equal(s, want, is)
}

// makes begins to make the world, in the place of what was moved away, and becomes its owner.
func (s *story) makes(over journal.Left) (*owner, journal.Movable) {
	s.Helper()
	l := s.movable()
	require.NoError(s, l.Make(s.Context(), journal.Making{Over: over, Copies: "one two"}))
	return s.ownBy(l), l
}

// live makes a world that lives.
func (s *story) live(contents ...string) (*owner, journal.Movable) {
	s.Helper()
	o, l := s.makes(journal.Left{})
	o.append(2, contents...)
	require.NoError(s, l.Publish(s.Context()))
	return o, l
}

// moving are the laws of worlds that are moved into a log and out of it.
var moving = []law{
	{"what nobody has made is absent", func(s *story) {
		s.stands(journal.Standing{})
		is, err := s.movable().Stands(s.Context())
		require.NoError(s, err)
		require.Equal(s, journal.Absent, is.State)
	}},
	{"what is made lives when it is published", func(s *story) {
		o, l := s.makes(journal.Left{})
		s.stands(journal.Standing{State: journal.Made, Copies: "one two"})
		first := o.append(3, "a")
		s.stands(journal.Standing{State: journal.Made, Head: o.next, Copies: "one two"})
		require.NoError(s, l.Publish(s.Context()))
		s.stands(journal.Standing{State: journal.Live, Head: o.next, Copies: "one two"})
		require.NoError(s, l.Publish(s.Context()), "an answer may be lost")
		s.holds(s.open(), first)
		s.holds(o, first, o.append(2))
	}},
	{"what is made begins without anything", func(s *story) {
		o, _ := s.makes(journal.Left{})
		require.Zero(s, o.owned.Head)
		o.append(3, "a")
		require.NoError(s, o.PutNote(s.Context(), journal.Note{Size: 2, Text: []byte("n")}))
		require.NoError(s, o.PutImage(s.Context(), image(o.next, "tree", "part")))
		require.NoError(s, o.Release(s.Context(), journal.WakeNow))
		again, _ := s.makes(journal.Left{})
		require.Zero(s, again.owned.Head)
		s.holds(again)
		_, err := content(again, "a")
		require.ErrorIs(s, err, journal.ErrNotFound)
		kept, err := again.Kept(s.Context())
		require.NoError(s, err)
		require.Nil(s, kept)
		require.Empty(s, s.notes(again, 0, journal.Last))
	}},
	{"who made what another makes anew is fenced", func(s *story) {
		one, before := s.makes(journal.Left{})
		require.NoError(s, one.Release(s.Context(), journal.WakeNow))
		two, l := s.makes(journal.Left{})
		one.fenced()
		require.ErrorIs(s, before.Publish(s.Context()), journal.ErrFenced)
		s.stands(journal.Standing{State: journal.Made, Copies: "one two"})
		second := two.append(1)
		require.NoError(s, l.Publish(s.Context()))
		s.holds(two, second)
	}},
	{"what lives is not made", func(s *story) {
		o, _ := s.live()
		require.Error(s, s.movable().Make(s.Context(), journal.Making{}))
		require.Error(s, s.movable().Make(s.Context(), journal.Making{Over: journal.Left{Head: o.next}}))
		s.stands(journal.Standing{State: journal.Live, Head: o.next, Copies: "one two"})
		o.append(1)
	}},
	{"what was moved away is remembered, and nobody's", func(s *story) {
		o, l := s.live()
		require.NoError(s, l.MoveAway(s.Context(), "a place"))
		require.NoError(s, l.MoveAway(s.Context(), "a place"), "an answer may be lost")
		require.NoError(s, o.Release(s.Context(), journal.WakeNever))
		s.stands(away(o))
		_, err := s.open().Own(s.Context())
		require.Error(s, err)
		_, err = s.open().End(s.Context())
		require.Error(s, err)
	}},
	{"who moved it away publishes it no more", func(s *story) {
		o, l := s.live()
		require.NoError(s, l.MoveAway(s.Context(), "a place"))
		require.Error(s, l.Publish(s.Context()))
		s.stands(away(o))
	}},
	{"who is fenced moves nothing away", func(s *story) {
		_, l := s.live()
		two := s.own()
		require.ErrorIs(s, l.MoveAway(s.Context(), "a place"), journal.ErrFenced)
		s.stands(journal.Standing{State: journal.Live, Head: two.next, Copies: "one two"})
		two.append(1)
	}},
	{"what was moved away is made again over what is remembered of it alone", func(s *story) {
		o, l := s.live("a")
		require.NoError(s, l.MoveAway(s.Context(), "a place"))
		require.NoError(s, o.Release(s.Context(), journal.WakeNever))
		left := journal.Left{Head: o.next, To: "a place"}
		s.refusesOver(left)
		s.stands(away(o))
		again, l := s.makes(left)
		require.Zero(s, again.owned.Head)
		s.stands(journal.Standing{State: journal.Made, Left: left, Copies: "one two"})
		_, err := content(again, "a")
		require.ErrorIs(s, err, journal.ErrNotFound)
		first := again.append(1)
		s.stands(journal.Standing{State: journal.Made, Head: again.next, Left: left, Copies: "one two"})
		require.NoError(s, l.Publish(s.Context()))
		s.stands(journal.Standing{State: journal.Live, Head: again.next, Copies: "one two"})
		s.holds(again, first)
	}},
	{"what was moved away is remembered until what is made over it is published", func(s *story) {
		o, l := s.live("a")
		require.NoError(s, l.MoveAway(s.Context(), "a place"))
		require.NoError(s, o.Release(s.Context(), journal.WakeNever))
		left := journal.Left{Head: o.next, To: "a place"}
		for range 2 {
			given, maker := s.makes(left)
			given.append(2, "b")
			require.NoError(s, given.Release(s.Context(), journal.WakeNow))
			s.refusesOver(left)
			is, err := s.movable().Stands(s.Context())
			require.NoError(s, err)
			require.Equal(s, left, is.Left)
			require.NotEqual(s, journal.Live, is.State)
			given.fenced()
			require.Error(s, maker.Publish(s.Context()))
		}
		again, l := s.makes(left)
		s.holds(again)
		_, err := content(again, "b")
		require.ErrorIs(s, err, journal.ErrNotFound)
		require.NoError(s, l.Publish(s.Context()))
		s.holds(again, again.append(1))
	}},
}

// away is how a world stands that its owner has moved to a place.
func away(o *owner) journal.Standing {
	return journal.Standing{State: journal.Moved, Head: o.next, Left: journal.Left{Head: o.next, To: "a place"}, Copies: "one two"}
}

// refusesOver sees to it that nothing is made but over what is remembered.
func (s *story) refusesOver(left journal.Left) {
	s.Helper()
	other, before, after, elsewhere := left, left, left, left
	other.Head.Root[0]++
	before.Head.ID--
	after.Head.ID++
	elsewhere.To = "another place"
	for _, over := range []journal.Left{{}, other, before, after, elsewhere} {
		require.Error(s, s.movable().Make(s.Context(), journal.Making{Over: over}))
	}
}
