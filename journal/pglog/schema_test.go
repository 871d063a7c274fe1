package pglog

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
)

// TestAnInterruptedInitIsBroughtToAnEnd whichever of its requests was the last, or was not answered.
func TestAnInterruptedInitIsBroughtToAnEnd(t *testing.T) {
	server := pgtest.Shared(t)
	step := int64(many(t, "INIT_STEP", 3))
	for n, whole := int64(1), false; !whole; n += step {
		direct := server.URL(t)
		var seen atomic.Int64
		proxy := server.Proxy(t, func([]byte) pgtest.Fault {
			if seen.Add(1) < n {
				return pgtest.None
			}
			return []pgtest.Fault{pgtest.Lost, pgtest.Unanswered}[n%2] // and nothing follows
		})
		err := Init(t.Context(), proxy.URL(direct))
		if whole = err == nil; whole {
			require.Greater(t, n, int64(1))
		}
		require.NoError(t, Init(t.Context(), direct), "request %d", n)
		open(t, direct, Options{}).Close()
	}
}

// TestManyInitAtOnce and each has a store then, the same.
func TestManyInitAtOnce(t *testing.T) {
	for range 4 {
		url := pgtest.URL(t)
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if err := Init(t.Context(), url); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		s := open(t, url, Options{})
		var rows, version int
		require.NoError(t, s.row(t.Context(), "SELECT count(*), max(version) FROM worldkernel.meta", nil, &rows, &version))
		require.Equal(t, 1, rows)
		require.Equal(t, schemaVersion, version)
		s.Close()
	}
}

// TestASchemaThatWasChangedByHandIsNamed wherever somebody comes to it, and at once.
func TestASchemaThatWasChangedByHandIsNamed(t *testing.T) {
	for _, change := range []string{
		"ALTER TABLE worldkernel.frame RENAME body TO content", "DROP TABLE worldkernel.frame", "ALTER TABLE worldkernel.world DROP seal",
		"DROP TABLE worldkernel.meta CASCADE", "DELETE FROM worldkernel.meta", "ALTER TABLE worldkernel.blob DROP CONSTRAINT blob_pkey",
	} {
		t.Run(change, func(t *testing.T) {
			url := newURL(t)
			s := open(t, url, Options{})
			require.NoError(t, s.Create(t.Context(), "w", testKey))
			w := s.World("w", Claim{Key: testKey})
			_, err := w.Own(t.Context())
			require.NoError(t, err)
			run(t, url, change)
			var c chain
			_, _ = readAll(t, w)
			if err := appended(w, c.batch(5000, 10, "me")); err != nil {
				require.ErrorIs(t, err, journal.ErrUnknown)
				require.NotContains(t, err.Error(), "no answer")
				require.True(t, isRefused(err, OtherSchema), err)
				return
			}
			_, err = Open(t.Context(), url, Options{})
			require.True(t, isRefused(err, OtherSchema), fmt.Sprint(err))
			require.True(t, isRefused(Init(t.Context(), url), OtherSchema))
		})
	}
}
