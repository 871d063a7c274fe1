package pglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// left makes worlds that an owner has left so.
func left(t *testing.T, s *Store, wake journal.Wake, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, s.Create(t.Context(), id, testKey))
		w := s.World(id, Claim{Key: testKey})
		_, err := w.Own(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.Release(t.Context(), wake))
	}
}

// claims claims what is due.
func claims(t *testing.T, s *Store, but ...string) []string {
	t.Helper()
	ids, err := s.ClaimDue(t.Context(), 10, but)
	require.NoError(t, err)
	slices.Sort(ids)
	return ids
}

func TestNodesClaimWhatIsDue(t *testing.T) {
	url := newURL(t)
	one, two := open(t, url, sealed("one", "", 1)), open(t, url, sealed("two", "http://two", 1))
	soon := journal.Wake(100 * 365 * 24 * time.Hour)
	left(t, one, journal.WakeNow, "now", "never-mind")
	left(t, one, journal.WakeNever, "asleep")
	left(t, one, soon, "later")
	left(t, one, journal.Wake(time.Second), "past")
	require.Equal(t, []string{"now", "past"}, claims(t, two, "never-mind"))
	require.Equal(t, []string{"never-mind"}, claims(t, one))
	o, err := one.Owner(t.Context(), "now")
	require.NoError(t, err)
	require.Equal(t, Owner{Node: "two", Live: true, URL: "http://two"}, o)
	o, err = two.Owner(t.Context(), "now")
	require.NoError(t, err)
	require.Equal(t, Owner{Node: "two", Here: true, Live: true}, o)
	_, err = two.Owner(t.Context(), "nowhere")
	require.True(t, isRefused(err, NoWorld))

	w := two.World("now", Claim{Key: testKey}) // who opens it asks for nothing more
	_, err = w.Own(t.Context())
	require.NoError(t, err)
	_, err = two.World("past", Claim{Key: []byte("a key that is not this world's ..")}).Own(t.Context())
	require.True(t, isRefused(err, WrongSeal), err)
	mine, err := two.Mine(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Mine{{ID: "now"}}, mine, "what could not be opened was given up")

	var rows []Row
	for r, err := range one.List(t.Context()) {
		require.NoError(t, err)
		rows = append(rows, r)
	}
	require.Nil(t, rows[0].Due, rows[0].ID)
	require.WithinDuration(t, time.Unix(0, int64(soon)), *rows[1].Due, time.Millisecond)
}

// TestWhoHasWaitedForLongestIsClaimedFirst, where nodes cannot take all: whoever is given up, and has
// to go on at once, comes after those that wait.
func TestWhoHasWaitedForLongestIsClaimedFirst(t *testing.T) {
	s := open(t, newURL(t), Options{Node: "one"})
	left(t, s, journal.WakeNow, "a", "b")
	left(t, s, journal.Wake(2*time.Second), "c")
	left(t, s, journal.Wake(time.Second), "d")
	var order []string
	for range 6 {
		ids, err := s.ClaimDue(t.Context(), 1, nil)
		require.NoError(t, err)
		require.Len(t, ids, 1)
		order = append(order, ids...)
		require.NoError(t, s.LetGo(t.Context(), ids...))
	}
	require.Equal(t, []string{"d", "c", "a", "b", "d", "c"}, order)
}

// TestAWorldIsGivenToANodeThatIsAlive, whether it has an owner or not, and to no other.
func TestAWorldIsGivenToANodeThatIsAlive(t *testing.T) {
	url := newURL(t)
	one, two := open(t, url, Options{Node: "one"}), open(t, url, Options{Node: "two"})
	left(t, one, journal.WakeNever, "asleep", "owned")
	_, err := one.World("owned", Claim{Key: testKey}).Own(t.Context())
	require.NoError(t, err)
	require.True(t, isRefused(one.Give(t.Context(), "owned", "two"), NoNode), "it has not been heard of")
	require.NoError(t, two.Enter(t.Context()))
	require.True(t, isRefused(one.Give(t.Context(), "nowhere", "two"), NoWorld))
	require.NoError(t, one.Give(t.Context(), "asleep", "two"))
	require.NoError(t, one.Give(t.Context(), "owned", "two"))
	require.Equal(t, []string{"asleep"}, claims(t, two))
	mine, err := one.Mine(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Mine{{ID: "owned", Wanted: "two"}}, mine)
	require.NoError(t, one.Give(t.Context(), "owned", "one"))
	mine, err = one.Mine(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Mine{{ID: "owned"}}, mine, "it is there")
	nodes, worlds, err := two.Crowd(t.Context())
	require.NoError(t, err)
	require.Equal(t, [2]int{2, 2}, [2]int{nodes, worlds})
}

// TestNobodyIsTakenToBeDeadAfterTheDatabaseWasAway for longer than leases last, before each node has had the time
// to be heard again; and no process claims what it has.
func TestNobodyIsTakenToBeDeadAfterTheDatabaseWasAway(t *testing.T) {
	url := newURL(t)
	one, two := open(t, url, Options{Node: "one"}), open(t, url, Options{Node: "two"})
	left(t, one, journal.WakeNow, "a", "b")
	require.Equal(t, []string{"a", "b"}, claims(t, one))
	require.NoError(t, two.Enter(t.Context()))
	away := func() {
		require.NoError(t, one.rows(t.Context(), "UPDATE worldkernel.node SET lease_until = now() - interval '1 minute'", nil, nil))
	}
	away()
	require.Empty(t, claims(t, one), "they are its own")
	two.lease.Store(1)
	require.True(t, two.Lapsed())
	require.Empty(t, claims(t, two))
	require.NoError(t, two.enter(t.Context(), false))
	away()
	require.False(t, two.Lapsed())
	require.Empty(t, claims(t, two), "one may still say that it is there")
	two.grace.Store(0)
	require.Equal(t, []string{"a", "b"}, claims(t, two))
}

func TestAWorldThatIsWantedIsGiven(t *testing.T) {
	url := newURL(t)
	one, two := open(t, url, Options{Node: "one"}), open(t, url, Options{Node: "two"})
	require.NoError(t, one.Create(t.Context(), "w", testKey))
	w := one.World("w", Claim{Key: testKey})
	_, err := w.Own(t.Context())
	require.NoError(t, err)
	require.NoError(t, two.Enter(t.Context()))
	id, err := two.Want(t.Context(), "one")
	require.NoError(t, err)
	require.Equal(t, "w", id)
	id, err = two.Want(t.Context(), "one")
	require.NoError(t, err)
	require.Empty(t, id, "it has no other")
	mine, err := one.Mine(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Mine{{"w", "two"}}, mine)
	require.Empty(t, claims(t, two), "before it was given")
	require.NoError(t, w.Release(t.Context(), journal.WakeNever))
	require.Empty(t, claims(t, one))
	require.Equal(t, []string{"w"}, claims(t, two))
	require.NoError(t, two.LetGo(t.Context(), "w"))
	require.Equal(t, []string{"w"}, claims(t, one), "at once: nobody knows what it has to do")

	all, err := one.Nodes(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "one", all[0].Name)
	require.Equal(t, 1, all[0].Worlds)
	require.True(t, all[1].Alive())
}

// TestADueWorldIsLeftToWhoWantsIt while that lives, and has not had the time to claim it.
func TestADueWorldIsLeftToWhoWantsIt(t *testing.T) {
	url := newURL(t)
	one, two := open(t, url, Options{Node: "one"}), open(t, url, Options{Node: "two"})
	require.NoError(t, two.Enter(t.Context()))
	left(t, one, journal.WakeNow, "late", "wanted")
	for _, id := range []string{"late", "wanted"} {
		require.NoError(t, one.Give(t.Context(), id, "two"))
	}
	require.Empty(t, claims(t, one))
	require.NoError(t, one.rows(t.Context(), "UPDATE worldkernel.world SET due = now() - interval '11 s' WHERE id = 'late'", nil, nil))
	require.Equal(t, []string{"late"}, claims(t, one))
	require.Equal(t, []string{"wanted"}, claims(t, two))
	left(t, one, journal.WakeNow, "orphan")
	require.NoError(t, one.Give(t.Context(), "orphan", "two"))
	require.NoError(t, one.rows(t.Context(), "UPDATE worldkernel.node SET lease_until = now() - interval '1 minute' WHERE node = 'two'", nil, nil))
	one.grace.Store(0)
	require.Contains(t, claims(t, one), "orphan")
}

// claimSome claims some worlds, and lets those go of which it was not told that it had.
func claimSome(ctx context.Context, s *Store, known *[]string) (int, error) {
	ids, err := s.ClaimDue(ctx, 8, nil)
	if *known = append(*known, ids...); err != nil || len(ids) > 0 {
		return len(ids), err
	}
	mine, err := s.Mine(ctx)
	for _, m := range mine {
		if !slices.Contains(*known, m.ID) {
			err = errors.Join(err, s.LetGo(ctx, m.ID))
		}
	}
	return 0, err
}

// TestEachWorldOfADeadNodeIsClaimedOnce, by one of those that are left, however they race, and
// though answers are lost; what the dead one still writes is refused.
func TestEachWorldOfADeadNodeIsClaimedOnce(t *testing.T) {
	server := pgtest.Start(t)
	direct := server.URL(t)
	require.NoError(t, Init(t.Context(), direct))
	var asked atomic.Int64
	proxy := server.Proxy(t, func(request []byte) pgtest.Fault {
		if !bytes.Contains(request, []byte("SKIP LOCKED")) || asked.Add(1)%3 > 0 {
			return pgtest.None
		}
		return pgtest.Unanswered
	})
	dead := open(t, direct, Options{Node: "dead"})
	var worlds []*World
	for i := range many(t, "CLAIMS", 100) {
		id := fmt.Sprintf("w%d", i)
		require.NoError(t, dead.Create(t.Context(), id, testKey))
		worlds = append(worlds, dead.World(id, Claim{Key: testKey}))
		_, err := worlds[i].Own(t.Context())
		require.NoError(t, err)
	}
	bad := proxy.URL(direct)
	heirs := []*Store{open(t, bad, Options{Node: "a"}), open(t, bad, Options{Node: "b"}), open(t, direct, Options{Node: "c"})}
	for _, s := range heirs {
		require.Empty(t, claims(t, s), "it lives")
	}
	run(t, direct, "UPDATE worldkernel.node SET lease_until = now() - interval '1 s' WHERE node = 'dead'")
	claimed := make([][]string, len(heirs))
	var found atomic.Int64
	var all sync.WaitGroup
	for i, s := range heirs {
		all.Go(func() {
			for int(found.Load()) < len(worlds) && !t.Failed() {
				n, err := claimSome(t.Context(), s, &claimed[i])
				if err != nil {
					t.Error(err)
				}
				found.Add(int64(n))
			}
		})
	}
	all.Wait()
	ids := slices.Sorted(slices.Values(slices.Concat(claimed...)))
	require.Len(t, ids, len(worlds))
	require.Len(t, slices.Compact(ids), len(worlds), "none by two")
	require.Positive(t, proxy.Struck(pgtest.Unanswered))
	for _, w := range worlds {
		var c chain
		require.ErrorIs(t, appended(w, c.batch(1, 10, "dead")), journal.ErrFenced)
	}
	for i, s := range heirs {
		for _, id := range claimed[i] {
			w := s.World(id, Claim{Key: testKey})
			owned, err := w.Own(t.Context())
			require.NoError(t, err)
			require.Greater(t, owned.Epoch, uint64(1))
			var c chain
			require.NoError(t, appended(w, c.batch(1, 10, "heir")))
		}
	}
}
