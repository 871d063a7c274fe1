package pglog

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// attemptsLog is a log that is host.Attempts, too.
type attemptsLog interface {
	journal.Log
	KeptAttempts(ctx context.Context) ([]receipt.KeptAttempt, error)
	ChangeAttempts(ctx context.Context, changes *receipt.AttemptChanges) (receipt.AttemptsChanged, error)
}

// holdAttempts holds a log to what host.Attempts promises. World is as in holdTo.
func holdAttempts(t *testing.T, world func(t *testing.T) func() journal.Log) {
	for _, l := range attempting {
		t.Run(l.name, func(t *testing.T) {
			l.hold(&story{T: t, open: world(t)})
		})
	}
}

const leaseInTests = time.Hour

// attemptOf is one of a run of a host.
func attemptOf(run, key byte, number uint64) receipt.KeptAttempt {
	return receipt.KeptAttempt{Key: receipt.Key{Hash: receipt.Hash{key}}, Attempt: number, Run: [16]byte{run}}
}

// lent is one that a worker has.
func lent(key byte, lease time.Duration) receipt.KeptAttempt {
	k := attemptOf(1, key, 1)
	k.Worker, k.Lease = "w-1", lease
	return k
}

// result is one with a text in the place of a receipt.
func result(run, key byte, text string) receipt.KeptAttempt {
	k := attemptOf(run, key, 1)
	k.Receipt = []byte(text)
	return k
}

func (o *owner) attempts() attemptsLog { return o.Log.(attemptsLog) }

// change makes changes, and returns which attempts are begun.
func (o *owner) change(c receipt.AttemptChanges) []bool {
	o.story.Helper()
	is, err := o.attempts().ChangeAttempts(o.story.Context(), &c)
	require.NoError(o.story, err)
	return is.Begun
}

func (o *owner) starts(all ...receipt.KeptAttempt) []bool {
	o.story.Helper()
	return o.change(receipt.AttemptChanges{Begin: all})
}

func (o *owner) ends(all ...receipt.KeptAttempt) {
	o.story.Helper()
	o.change(receipt.AttemptChanges{End: all})
}

// kept returns what is there, by keys and numbers.
func (o *owner) kept() []receipt.KeptAttempt {
	o.story.Helper()
	got, err := o.attempts().KeptAttempts(o.story.Context())
	require.NoError(o.story, err)
	slices.SortFunc(got, func(a, b receipt.KeptAttempt) int {
		return cmp.Or(slices.Compare(a.Key.Hash[:], b.Key.Hash[:]), cmp.Compare(a.Attempt, b.Attempt))
	})
	return got
}

// keepsAttempts requires what is there, but for leases.
func (o *owner) keepsAttempts(want ...receipt.KeptAttempt) {
	o.story.Helper()
	got := o.kept()
	for _, all := range [][]receipt.KeptAttempt{want, got} {
		for i := range all {
			all[i].Lease = 0
		}
	}
	require.Equal(o.story, want, got)
}

// lease returns what is left of the lease of the only attempt.
func (o *owner) lease() time.Duration {
	o.story.Helper()
	got := o.kept()
	require.Len(o.story, got, 1)
	return got[0].Lease
}

// attempting are the laws of attempts.
var attempting = []law{
	{"a world begins without attempts", func(s *story) { require.Empty(s, s.own().kept()) }},
	{"an attempt is begun once", func(s *story) {
		o := s.own()
		require.Equal(s, []bool{true, true, true}, o.starts(attemptOf(1, 1, 1), attemptOf(1, 2, 1), attemptOf(1, 1, 2)))
		require.Equal(s, []bool{false, true, false}, o.starts(attemptOf(2, 1, 1), attemptOf(2, 3, 1), attemptOf(2, 1, 2)))
		o.keepsAttempts(attemptOf(1, 1, 1), attemptOf(1, 1, 2), attemptOf(1, 2, 1), attemptOf(2, 3, 1))
		require.Equal(s, []bool{false}, s.own().starts(attemptOf(3, 1, 1)), "nor by the next owner")
	}},
	{"an answer that was lost is given again", func(s *story) {
		o := s.own()
		for range 3 {
			require.Equal(s, []bool{true}, o.starts(attemptOf(1, 1, 1)))
		}
		o.keepsAttempts(attemptOf(1, 1, 1))
	}},
	{"what has a result is not begun", func(s *story) {
		o := s.own()
		o.starts(attemptOf(1, 1, 1))
		o.ends(result(1, 1, "done"))
		require.Equal(s, []bool{false}, o.starts(attemptOf(1, 1, 1)))
		o.keepsAttempts(result(1, 1, "done"))
	}},
	{"a result is there for the next owner", func(s *story) {
		o, long := s.own(), strings.Repeat("long", 1<<18)
		o.starts(attemptOf(1, 1, 1), attemptOf(1, 2, 1))
		o.ends(result(1, 1, "done"), result(1, 2, long))
		s.own().keepsAttempts(result(1, 1, "done"), result(1, 2, long))
	}},
	{"an attempt is given back that nobody has begun", func(s *story) {
		o := s.own()
		o.ends(result(1, 1, "given back"))
		require.Equal(s, []bool{false}, o.starts(attemptOf(2, 1, 1)))
		o.keepsAttempts(result(1, 1, "given back"))
	}},
	{"an attempt is forgotten", func(s *story) {
		o := s.own()
		o.starts(attemptOf(1, 1, 1), attemptOf(1, 2, 1))
		for range 2 {
			o.change(receipt.AttemptChanges{Forget: []receipt.KeptAttempt{attemptOf(1, 1, 1), attemptOf(1, 9, 1)}})
			o.keepsAttempts(attemptOf(1, 2, 1))
		}
	}},
	{"a worker has an attempt for its lease", func(s *story) {
		s.own().starts(lent(1, leaseInTests))
		o := s.own()
		require.Equal(s, "w-1", o.kept()[0].Worker)
		require.LessOrEqual(s, o.lease(), leaseInTests)
		require.Greater(s, o.lease(), leaseInTests/2)
		o.change(receipt.AttemptChanges{Renew: []receipt.KeptAttempt{lent(1, 2*leaseInTests), lent(2, leaseInTests)}})
		require.Greater(s, o.lease(), leaseInTests)
		o.change(receipt.AttemptChanges{Renew: []receipt.KeptAttempt{lent(1, 0)}})
		require.LessOrEqual(s, o.lease(), time.Duration(0))
	}},
	{"an attempt is its owner's for as long as that is sure to live", func(s *story) {
		o := s.own()
		is, err := o.attempts().ChangeAttempts(s.Context(), &receipt.AttemptChanges{Begin: []receipt.KeptAttempt{attemptOf(1, 1, 1)}})
		require.NoError(s, err)
		require.Positive(s, is.Lease)
		o = s.own()
		require.LessOrEqual(s, o.lease(), is.Lease)
		require.Positive(s, o.lease(), "also where another one has the world")
		_, err = o.attempts().ChangeAttempts(s.Context(), &receipt.AttemptChanges{Renew: []receipt.KeptAttempt{attemptOf(1, 1, 1)}})
		require.NoError(s, err)
		require.LessOrEqual(s, o.lease(), time.Duration(0), "nobody performs it")
	}},
	{"what a worker had is ended by the next owner", func(s *story) {
		s.own().starts(lent(1, leaseInTests))
		o := s.own()
		o.ends(result(2, 1, "done"))
		require.Equal(s, "done", string(o.kept()[0].Receipt))
	}},
	{"changes are made together", func(s *story) {
		o := s.own()
		o.starts(attemptOf(1, 1, 1), attemptOf(1, 2, 1), lent(3, leaseInTests))
		begun := o.change(receipt.AttemptChanges{
			Begin: []receipt.KeptAttempt{attemptOf(1, 3, 1), attemptOf(1, 4, 1), attemptOf(1, 5, 1)}, End: []receipt.KeptAttempt{result(1, 1, "done")},
			Forget: []receipt.KeptAttempt{attemptOf(1, 2, 1)},
		})
		require.Len(s, begun, 3)
		require.Len(s, o.kept(), 4)
		require.Empty(s, o.change(receipt.AttemptChanges{}), "nor is nothing an error")
	}},
	{"who was taken over changes no attempt", func(s *story) {
		one := s.own()
		one.starts(attemptOf(1, 1, 1))
		two := s.own()
		for _, c := range []receipt.AttemptChanges{
			{},
			{Begin: []receipt.KeptAttempt{attemptOf(1, 1, 1)}},
			{Begin: []receipt.KeptAttempt{attemptOf(1, 2, 1)}},
			{End: []receipt.KeptAttempt{result(1, 1, "done")}},
			{Renew: []receipt.KeptAttempt{lent(1, leaseInTests)}},
			{Forget: []receipt.KeptAttempt{attemptOf(1, 1, 1)}},
		} {
			_, err := one.attempts().ChangeAttempts(s.Context(), &c)
			require.ErrorIs(s, err, journal.ErrFenced)
		}
		two.keepsAttempts(attemptOf(1, 1, 1))
		require.Equal(s, []bool{true}, two.starts(attemptOf(2, 2, 1)))
	}},
	{"an attempt begins while an append is under way", func(s *story) {
		o := s.own()
		for n := range 5 {
			p := o.beginAppend(o.batch(1, 20))
			require.Equal(s, []bool{true}, o.starts(attemptOf(1, byte(n), 1)))
			require.NoError(s, p.Wait())
		}
	}},
}
