package pglog

import (
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// owning are the laws of who owns a world.
var owning = []law{
	{"a new world is empty", func(s *story) {
		o := s.own()
		require.Zero(s, o.owned.Head)
		require.NotZero(s, o.owned.Epoch)
		s.holds(o)
	}},
	{"each owner has a greater epoch", func(s *story) {
		for last := uint64(0); last < 5; {
			o := s.own()
			require.Greater(s, o.owned.Epoch, last)
			last = o.owned.Epoch
		}
	}},
	{"an owner goes on where the one before was", func(s *story) {
		one := s.own()
		first := one.append(3)
		two := s.own()
		require.Equal(s, one.next, two.owned.Head)
		s.holds(two, first, two.append(2))
	}},
	{"who is taken over from appends nothing", func(s *story) {
		one := s.own()
		first := one.append(1)
		two := s.own()
		one.fenced()
		s.holds(two, first)
	}},
	{"who is fenced stays so", func(s *story) {
		one := s.own()
		s.own()
		for range 3 {
			one.fenced()
		}
	}},
	{"who was fenced, and owns again, is another", func(s *story) {
		one, two := s.own(), s.own()
		one.fenced()
		three := s.own()
		two.fenced()
		s.holds(three, three.append(1))
		one.fenced()
	}},
	{"what was acknowledged to an owner before is there", func(s *story) {
		one := s.own()
		var all [][]journal.Stored
		for range 20 {
			all = append(all, one.append(2, "a"))
		}
		s.holds(s.own(), all...)
	}},
	{"batches under way when another takes over are there from the first, or not at all", func(s *story) {
		one := s.own()
		var made []journal.Stored
		var under []journal.Pending
		for range 20 {
			b := one.batch(2, 20)
			made, under = append(made, b.Records...), append(under, one.beginAppend(b))
		}
		two := s.own()
		acknowledged, fenced := 0, false
		for _, p := range under {
			err := p.Wait()
			if err == nil {
				require.False(s, fenced, "durable after what is not")
				acknowledged++
				continue
			}
			require.ErrorIs(s, err, journal.ErrFenced)
			fenced = true
		}
		require.LessOrEqual(s, journal.Seq(2*acknowledged), two.owned.Head.ID)
		s.holds(two, made[:two.owned.Head.ID])
	}},
	{"who is fenced puts no note", func(s *story) {
		one := s.own()
		two := s.own()
		require.ErrorIs(s, one.PutNote(s.Context(), journal.Note{Size: 1, Text: []byte("n")}), journal.ErrFenced)
		require.Empty(s, s.notes(two, 0, journal.Last))
	}},
	{"who is fenced puts no image", func(s *story) {
		one := s.own()
		one.append(2)
		two := s.own()
		img := image(two.owned.Head, "tree", "a")
		require.NoError(s, two.PutImage(s.Context(), img))
		require.ErrorIs(s, one.PutImage(s.Context(), image(one.next, "other", "b", "c")), journal.ErrFenced)
		s.keeps(two, img)
	}},
	{"who is fenced redacts nothing", func(s *story) {
		one := s.own()
		one.append(1, "secret")
		two := s.own()
		require.ErrorIs(s, one.Redact(s.Context(), hashOf("secret")), journal.ErrFenced)
		s.has(two, "secret")
	}},
	{"who is fenced releases nothing", func(s *story) {
		one, two := s.own(), s.own()
		require.ErrorIs(s, one.Release(s.Context(), journal.WakeNever), journal.ErrFenced)
		s.holds(two, two.append(1))
	}},
	{"who is fenced reads what is there", func(s *story) {
		one := s.own()
		first := one.append(1, "a")
		two := s.own()
		one.fenced()
		second := two.append(2, "b")
		s.holds(one, first, second)
		s.has(one, "a", "b")
	}},
	{"what was released has another owner at once", func(s *story) {
		for _, wake := range []journal.Wake{journal.WakeNow, journal.WakeNever, 1_000_000_000} {
			one := s.own()
			one.append(1)
			require.NoError(s, one.Release(s.Context(), wake))
			two := s.own()
			require.Equal(s, one.next, two.owned.Head)
			require.Greater(s, two.owned.Epoch, one.owned.Epoch)
		}
	}},
	{"who has released the world is fenced", func(s *story) {
		one := s.own()
		first := one.append(1)
		require.NoError(s, one.Release(s.Context(), journal.WakeNow))
		one.fenced()
		require.ErrorIs(s, one.PutNote(s.Context(), journal.Note{Size: 1}), journal.ErrFenced)
		s.holds(one, first)
	}},
	{"of many who own at once one is the last", func(s *story) {
		logs, owned := make([]journal.Log, 8), make([]journal.Owned, 8)
		var all sync.WaitGroup
		for i := range logs {
			logs[i] = s.open()
			all.Go(func() {
				var err error
				owned[i], err = logs[i].Own(s.Context())
				if err != nil {
					s.Error(err)
				}
			})
		}
		all.Wait()
		epochs := map[uint64]int{}
		last := 0
		for i, o := range owned {
			epochs[o.Epoch] = i
			if o.Epoch > owned[last].Epoch {
				last = i
			}
		}
		require.Len(s, epochs, len(logs))
		for i, l := range logs {
			err := l.PutNote(s.Context(), journal.Note{Size: 1, Text: []byte{byte(i)}})
			if i != last {
				require.ErrorIs(s, err, journal.ErrFenced)
				continue
			}
			require.NoError(s, err)
		}
		require.Equal(s, []journal.Note{{Size: 1, Text: []byte{byte(last)}}}, s.notes(logs[0], 1, 1))
	}},
}
