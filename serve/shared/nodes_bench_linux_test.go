package shared_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/world/local"
)

// spent is CPU of this process, and of a server with all that it has started.
type spent struct{ here, server time.Duration }

func spentBy(t testing.TB, s *pgtest.Server) (c spent) {
	t.Helper()
	var r syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	c.here = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	text, err := os.ReadFile(filepath.Join(s.Dir, "data", "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	const tick = 10 * time.Millisecond // USER_HZ is 100
	for _, name := range all {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		pid, rest, _ := strings.Cut(string(stat), " ")
		_, rest, _ = strings.Cut(rest, ") ")
		fields := strings.Fields(rest) // from the state on
		if pid != first && fields[1] != first {
			continue
		}
		last := 13 // utime and stime
		if pid == first {
			last = 15 // and those of children that have ended
		}
		for _, n := range fields[11:last] {
			ticks, err := strconv.Atoi(n)
			require.NoError(t, err)
			c.server += time.Duration(ticks) * tick
		}
	}
	return c
}

// BenchmarkNodes has 64 worlds, of one store, take events one by one, each world on its own: on one node, and
// on several, with connections of their own, in this process. It tells of an event how much CPU it takes here
// and at the server.
func BenchmarkNodes(b *testing.B) {
	const worlds = 64
	server := pgtest.Start(b)
	url := server.URL(b)
	require.NoError(b, pglog.Init(b.Context(), url))
	opts := local.Options{Passphrase: func() ([]byte, error) { return []byte("open"), nil }}
	maker, err := shared.Open(b.Context(), url, shared.Options{Copies: b.TempDir()})
	require.NoError(b, err)
	loaded, err := local.Load(filepath.Join("..", "..", "examples", "counter", local.ManifestFile), opts)
	require.NoError(b, err)
	for i := range worlds {
		require.NoError(b, maker.Create(b.Context(), fmt.Sprint("w", i), loaded, local.CreateOptions{}, opts))
	}
	maker.Close()
	for _, nodes := range []int{1, 2, 1, 2} {
		b.Run(fmt.Sprint(nodes, "-nodes"), func(b *testing.B) {
			var open []*local.World
			for n := range nodes {
				s, err := shared.Open(b.Context(), url, shared.Options{Copies: b.TempDir(), Node: fmt.Sprint("node", n)})
				require.NoError(b, err)
				defer s.Close()
				for i := n; i < worlds; i += nodes {
					w, err := s.World(fmt.Sprint("w", i))
					require.NoError(b, err)
					lw, err := local.Open(w.Dir, w.In(opts))
					require.NoError(b, err)
					defer lw.Close() //nolint:errcheck // it was only measured
					open = append(open, lw)
				}
			}
			before, began := spentBy(b, server), time.Now()
			b.ResetTimer()
			var all sync.WaitGroup
			for i, lw := range open {
				all.Go(func() {
					for range (b.N + i) / worlds {
						if _, err := lw.Submit(context.Background(), "counter.added", map[string]any{"name": "tea", "by": 1}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			after := spentBy(b, server)
			events := float64(b.N)
			b.ReportMetric(events/time.Since(began).Seconds(), "events/s")
			b.ReportMetric(float64((after.here-before.here).Microseconds())/events, "µs-here/event")
			b.ReportMetric(float64((after.server-before.server).Microseconds())/events, "µs-server/event")
		})
	}
}
