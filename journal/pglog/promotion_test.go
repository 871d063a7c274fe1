package pglog

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// pair starts a primary with a standby, and a store on both.
func pair(t *testing.T) (primary, standby *pgtest.Server, s *Store) {
	t.Helper()
	primary = pgtest.Start(t)
	url := primary.URL(t)
	require.NoError(t, Init(t.Context(), url))
	standby = primary.Standby(t)
	return primary, standby, open(t, pgtest.URLOf(url, primary, standby), Options{})
}

func ownedWorld(t *testing.T, s *Store, id string) *World {
	t.Helper()
	require.NoError(t, s.Create(t.Context(), id, testKey))
	w := s.World(id, Claim{Key: testKey})
	_, err := w.Own(t.Context())
	require.NoError(t, err)
	return w
}

// TestNothingIsLostWithAPrimary has a synchronous standby take the place of its primary, which is
// stopped at once amid appends: the owner goes on there by itself, and all that it was told is there.
func TestNothingIsLostWithAPrimary(t *testing.T) {
	for n := range many(t, "PROMOTIONS", 2) {
		primary, standby, s := pair(t)
		primary.Synchronous(t)
		w := ownedWorld(t, s, "w")
		var told atomic.Uint64
		ended := make(chan error, 1)
		promoted := make(chan struct{})
		go func() {
			var c chain
			for last := false; ; {
				b := c.batch(2, 10, "me")
				if err := appended(w, b); err != nil {
					ended <- err
					return
				}
				told.Store(uint64(b.Head.ID))
				if last {
					ended <- nil
					return
				}
				select {
				case <-promoted:
					last = true
				default:
				}
			}
		}()
		require.Eventually(t, func() bool { return told.Load() >= uint64(20+10*n) }, time.Minute, time.Millisecond)
		if n%2 == 0 { // what nobody but the primary has is told to nobody
			standby.Lag(t)
			<-time.After(20 * time.Millisecond)
		}
		primary.Stop()
		standby.Promote(t)
		close(promoted)
		require.NoError(t, <-ended)
		got, err := readAll(t, w)
		require.NoError(t, err)
		require.Len(t, got, int(told.Load()))
		s.Close()
		standby.Stop()
	}
}

// TestWorldsOfALaggingStandbyAreHalted has a standby take the place of its primary that has not
// got all: each world that has lost something halts, and those that have not go on.
func TestWorldsOfALaggingStandbyAreHalted(t *testing.T) {
	for range many(t, "PROMOTIONS", 2) {
		primary, standby, s := pair(t)
		lost, kept := ownedWorld(t, s, "lost"), ownedWorld(t, s, "kept")
		var c, k chain
		require.NoError(t, appended(lost, c.batch(2, 10, "me")))
		require.NoError(t, appended(kept, k.batch(2, 10, "me")))
		primary.CaughtUp(t)
		standby.Lag(t)
		require.NoError(t, appended(lost, c.batch(2, 10, "me")), "the control: it was told")
		primary.Stop()
		standby.Promote(t)
		require.ErrorIs(t, appended(lost, c.batch(2, 10, "me")), journal.ErrRewound)
		require.NoError(t, appended(kept, k.batch(2, 10, "me")))
		s.Close()
		standby.Stop()
	}
}

// TestAnOlderBackupHaltsALiveOwner restores a base backup under an owner, also where another has
// reached the epoch of then again.
func TestAnOlderBackupHaltsALiveOwner(t *testing.T) {
	server := pgtest.Start(t)
	url := server.URL(t)
	require.NoError(t, Init(t.Context(), url))
	s := open(t, url, Options{})
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	backup := server.Backup(t)
	for _, claimed := range []bool{false, true} {
		server.Restore(t, backup)
		w := s.World("w", Claim{Key: testKey, Take: true})
		owned, err := w.Own(t.Context())
		require.NoError(t, err)
		var c chain
		require.NoError(t, appended(w, c.batch(2, 10, "me")))
		server.Restore(t, backup)
		if claimed {
			other := open(t, url, Options{}).World("w", Claim{Key: testKey})
			again, err := other.Own(t.Context())
			require.NoError(t, err)
			require.Equal(t, owned.Epoch, again.Epoch)
			var d chain
			require.NoError(t, appended(other, d.batch(3, 10, "other")))
		}
		require.ErrorIs(t, appended(w, c.batch(2, 10, "me")), journal.ErrRewound, "another owner: %t", claimed)
	}
}
