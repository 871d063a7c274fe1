package node_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/node"
)

// TestPausesGrow: each failure has a world rest for twice as long, up to five minutes, however long it takes
// to fail again; one that goes on for as long as it would rest next begins anew.
func TestPausesGrow(t *testing.T) {
	now := time.Unix(1000, 0)
	p := node.NewPauses(func() time.Time { return now })
	why, nothing := errors.New("its disk is full"), func(string) bool { return false }
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		require.Equal(t, want*time.Second, p.Begin("w", why))
		require.Equal(t, []string{"w"}, p.Resting())
		require.Contains(t, p.Why("w"), "its disk is full; it is tried again ")
		now = now.Add(want * time.Second)
		require.Empty(t, p.Resting())
		now = now.Add(time.Hour) // it takes long to be opened
		p.Forget(func(id string) bool { return id == "w" })
		p.GoesOn("w")
		p.Forget(nothing)
	}
	now = now.Add(299 * time.Second)
	p.Forget(nothing)
	require.Equal(t, 300*time.Second, p.Begin("w", why))
	now = now.Add(601 * time.Second)
	p.Forget(nothing)
	require.Equal(t, 2*time.Second, p.Begin("w", why))
	for i := range 100 {
		p.Begin(fmt.Sprint("x", i), errors.New(strings.Repeat("long\n", 100)))
	}
	require.LessOrEqual(t, len(p.Told()), 4<<10+16)
	require.Regexp(t, `^w: its disk is full; it is tried again [^\n]+\nx0: long long `, p.Told())
	require.True(t, strings.HasSuffix(p.Told(), "\nand more\n"))
}

// TestAWorldThatCannotGoOnRests: whoever asks for it, lists the nodes or looks at their health is told, and
// all others are answered.
func TestAWorldThatCannotGoOnRests(t *testing.T) {
	url := create(t, 2)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // the database ends with the test
	_, err = conn.Exec(t.Context(), "UPDATE worldkernel.frame SET body = '\\x00' WHERE wid = (SELECT wid FROM worldkernel.world WHERE id = 'w0')")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "DELETE FROM worldkernel.image")
	require.NoError(t, err)
	r := run(t, url, "one", time.Hour)
	var why string
	require.Eventually(t, func() bool {
		status, answer := r.ask(http.MethodGet, "/api/worlds/w0", "")
		why, _ = answer["detail"].(string)
		return status == http.StatusServiceUnavailable && strings.HasSuffix(answer["type"].(string), ":ended")
	}, time.Minute, 10*time.Millisecond)
	require.Contains(t, why, "rests in this process: ")
	require.Eventually(t, func() bool {
		_, answer := r.ask(http.MethodGet, "/healthz", "")
		waiting, _ := answer["waiting"].([]any)
		return answer["ok"] == true && len(waiting) == 1 && waiting[0] == "1 of the worlds cannot go on, and rest: worldctl node list says why"
	}, time.Minute, 10*time.Millisecond)
	status, answer := r.ask(http.MethodGet, "/api/worlds/w1", "")
	require.Equal(t, http.StatusOK, status, answer)
	require.Eventually(t, func() bool {
		nodes, err := r.store.Nodes(t.Context())
		require.NoError(t, err)
		return len(nodes) == 1 && len(nodes[0].Resting) == 1 && strings.HasPrefix(nodes[0].Resting[0], "w0: ")
	}, time.Minute, 10*time.Millisecond)
}
