package node_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog"
)

// How many worlds TestManyWorldsAreRows has where WORLDS and BUSY do not say.
const (
	fewIdle, fewBusy = 2000, 4
	// orphans are the worlds of a node that died.
	orphans = 1000
	// idleBytes is what a world that rests may take of a node's memory, and noiseBytes what the heap may
	// grow by for other reasons.
	idleBytes, noiseBytes = 1 << 10, 16 << 20
	// mostConnections is how many a node may have.
	mostConnections = 32
)

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	return otherwise
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestManyWorldsAreRows: of many worlds in one database a few are busy, on two nodes, whose memory does not
// grow with those that rest. It tells how long looking and claiming takes.
func TestManyWorldsAreRows(t *testing.T) {
	idle, busy := number(t, "WORLDS", fewIdle), number(t, "BUSY", fewBusy)
	url := create(t, busy)
	ctx := context.Background()
	db, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer db.Close(ctx) //nolint:errcheck // it was only asked
	// As many rows as there are to be, each like that of a world which has nothing to do.
	copied := func(n int, prefix, node string) {
		_, err := db.Exec(ctx, `INSERT INTO worldkernel.world (id, token, head, root, epoch, sealed, seal, node, run)
			SELECT $2 || n, gen_random_uuid(), head, root, epoch, sealed, seal, nullif($3, ''), CASE WHEN $3 <> '' THEN gen_random_uuid() END
			FROM worldkernel.world, generate_series(1, $1::int) n WHERE id = 'w0'`, n, prefix, node)
		require.NoError(t, err)
	}
	one, two := run(t, url, "one", time.Hour), run(t, url, "two", time.Hour)
	all := func() bool { // and none is about to move
		a, b := len(one.worlds()), len(two.worlds())
		return a+b == busy && max(a, b) < min(a, b)+2
	}
	require.Eventually(t, all, 10*time.Minute, 10*time.Millisecond)
	before := heap()
	copied(idle, "idle-", "")
	for range 3 { // looks, while those that are busy go on
		for _, r := range []*running{one, two} {
			for _, w := range r.service.Worlds() {
				_, err := w.Local.Submit(ctx, "counter.added", map[string]any{"name": "tea", "by": 1})
				require.NoError(t, err)
			}
		}
		began := time.Now()
		_, err := one.store.Mine(ctx)
		require.NoError(t, err)
		f, err := one.store.Figures(ctx)
		require.NoError(t, err)
		require.Equal(t, idle+busy, f.Worlds)
		t.Logf("%d worlds: asked for mine and for figures in %v", f.Worlds, time.Since(began))
	}
	after := heap()
	t.Logf("heap of both nodes: %d KiB with %d worlds, %d KiB with %d more", before>>10, busy, after>>10, idle)
	require.LessOrEqual(t, int64(after)-int64(before), int64(idle*idleBytes+noiseBytes))
	require.Eventually(t, all, time.Minute, 10*time.Millisecond, "one may be on its way")
	var connections int
	require.NoError(t, db.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'worldkernel'").Scan(&connections))
	require.LessOrEqual(t, connections, 2*mostConnections)
	t.Logf("%d connections of two nodes", connections)
	one.end()
	two.end()

	claimer, err := pglog.Open(ctx, url, pglog.Options{Node: "claimer"})
	require.NoError(t, err)
	defer claimer.Close()
	_, err = claimer.ClaimDue(ctx, orphans, nil) // what the nodes have left
	require.NoError(t, err)
	copied(orphans, "dead-", "dead")
	_, err = db.Exec(ctx, "ANALYZE worldkernel.world") // as autovacuum does
	require.NoError(t, err)
	began := time.Now()
	claimed := 0
	for {
		ids, err := claimer.ClaimDue(ctx, 64, nil)
		require.NoError(t, err)
		if claimed += len(ids); len(ids) == 0 {
			break
		}
	}
	require.Equal(t, orphans, claimed)
	t.Logf("%d worlds of a node that died claimed in %v", claimed, time.Since(began))
	began = time.Now()
	_, err = claimer.ClaimDue(ctx, 64, nil)
	require.NoError(t, err)
	t.Logf("looking for what is due, where nothing is: %v", time.Since(began))
	require.Equal(t, uint64(orphans), claimer.Stats().Takeovers)
}
