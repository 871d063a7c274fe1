package kill

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// nodeRules are those of a world that pays: what is in doubt stays so, but for what somebody looks after at once.
const nodeRules = `world: paying
clock: {mode: real, tick: 1s}
reducers:
  payer: {engine: starlark, source: payer.star, grants: [sink]}
events:
  begin:
effects:
  sink.pay:
    adapter: http
    config: {url: "http://127.0.0.1:%[1]s/pay", method: POST}
  sink.look:
    adapter: http
    config: {url: "http://127.0.0.1:%[1]s/pay", method: POST}
    on_in_doubt: verify
    settles_after: 100ms
    verify: {adapter: http, config: {url: "http://127.0.0.1:%[1]s/seen"}}
    retry: {attempts: 9, backoff: 1ms}
  sink.done:
    adapter: http
    config: {url: "http://127.0.0.1:%[1]s/done", method: POST}
    idempotent: true
    on_in_doubt: retry
    retry: {attempts: 100, backoff: 1s}
caps:
  sink:
    type: http
    params: {schemes: [http], hosts: ["127.0.0.1"], ports: [%[1]s], methods: [POST], paths: [/pay, /done]}
policies:
  - {name: payments, when: 'true', decide: allow}
routing:
  - {event: begin, reducer: payer, key: event.data.to}
`

// payer pays again and again, whatever becomes of what it has asked for.
const payer = `TIMES, EVERY = %d, %d

def reduce(ctx, state, event):
    state = state or {"n": 0}
    if event.name == "begin":
        ctx.timer(1 + ctx.random(EVERY), "pay")
    elif event.name == "pay":
        if state["n"] == TIMES:
            ctx.effect("sink.done", {"json": {"cell": ctx.key, "n": 0}})
        else:
            state["n"] += 1
            kind = "sink.look" if state["n"] %% 2 else "sink.pay"
            ctx.effect(kind, {"json": {"cell": ctx.key, "n": state["n"]}}, tag=str(state["n"]))
            ctx.timer(EVERY, "pay")
    return state
`

// judgeOf proves a world, and counts its payments by how they ended.
func (k *cluster) judgeOf(id string, payments int) map[string]int {
	t := k.t
	t.Helper()
	place, err := k.store.World(id)
	require.NoError(t, err)
	report, err := local.Verify(t.Context(), place.Dir, place.In(nodeOptions()), local.Verification{})
	require.NoError(t, err)
	require.True(t, report.OK, "%s: %v", id, report)
	lw, err := local.OpenReadOnly(place.Dir, place.In(nodeOptions()))
	require.NoError(t, err)
	defer lw.Close() //nolint:errcheck // it was only read
	permits := map[receipt.Key]journal.Seq{}
	for r, err := range lw.Scan(0) {
		require.NoError(t, err)
		rec := r.Record
		switch rec.Kind {
		case journal.KindStarted:
			body, err := rec.Body()
			require.NoError(t, err)
			permits[body.(*journal.Started).Key] = r.ID
		case journal.KindInDoubt:
			body, err := rec.Body()
			require.NoError(t, err)
			from, to := k.epochOf(id, permits[body.(*journal.InDoubt).Key]), k.epochOf(id, r.ID)
			require.True(t, k.doubtful(id, from, to), "%s #%d is in doubt, and its owners of the epochs %d to %d gave it up in an orderly way", id, r.ID, from, to-1)
		default:
		}
	}
	ended, n := map[string]int{}, 0
	lw.View(func(m *world.Moment) {
		for _, e := range m.Intents() {
			if e.Intent.Kind == "sink.done" {
				continue
			}
			n++
			ended[string(e.State)]++
			if e.State == receipt.StateCommitted {
				continue
			}
			require.Equal(t, receipt.StateInDoubt, e.State, "%s: %v", id, e.Intent.Key)
		}
	})
	require.Equal(t, payments, n, "world %s", id)
	require.GreaterOrEqual(t, k.sink.times(id), ended["committed"], "world %s: what is committed was done", id)
	return ended
}

// epochOf returns the epoch in which a record was appended.
func (k *cluster) epochOf(id string, n journal.Seq) (epoch int) {
	k.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, k.url)
	require.NoError(k.t, err)
	err = conn.QueryRow(ctx, `SELECT f.epoch FROM worldkernel.frame f JOIN worldkernel.world w USING (wid)
		WHERE w.id = $1 AND f.first <= $2 AND f.last >= $2`, id, int64(n)).Scan(&epoch)
	require.NoError(k.t, errors.Join(err, conn.Close(ctx)))
	return epoch
}
