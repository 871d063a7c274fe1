package node_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// refused requires of a node that it refuses what is asked, and in the end says why: on a busy machine
// the time of a request can be over before its store has answered.
func refused(t *testing.T, n *running, path, why string) {
	t.Helper()
	require.Eventually(t, func() bool {
		status, answer := n.ask("GET", path, "")
		require.Equal(t, http.StatusServiceUnavailable, status, answer)
		return strings.Contains(fmt.Sprint(answer), why)
	}, time.Minute, 10*time.Millisecond)
}

// TestNoTokenIsSentWhereTheTableOfNodesAloneSays: who writes to the database, and has no passphrase, has no
// request of a caller sent to an address of theirs. It is told why, and so are the log and /healthz; and all is
// well when the table is.
func TestNoTokenIsSentWhereTheTableOfNodesAloneSays(t *testing.T) {
	url := create(t, 1)
	var got atomic.Int64
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	t.Cleanup(evil.Close)
	two := run(t, url, "two", time.Hour, func(v *api.Service) { v.Limits.Moving = time.Second })
	two.owns(1)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // it is over
	do := func(statement string, args ...any) {
		t.Helper()
		_, err := conn.Exec(t.Context(), statement, args...)
		require.NoError(t, err)
	}
	do("INSERT INTO worldkernel.node (node, run, lease_until, url, url_until, seal) SELECT 'evil', gen_random_uuid(), now() + interval '1 day', $1, url_until, seal FROM worldkernel.node", evil.URL)
	do("UPDATE worldkernel.world SET node = n.node, run = n.run, token = gen_random_uuid() FROM worldkernel.node n WHERE n.node = 'evil'")
	two.owns(0)
	for _, path := range []string{"/api/worlds/w0", "/api/worlds/w0/cells"} {
		refused(t, two, path, "no node with the same passphrase has sealed it")
	}
	status, answer := two.ask("POST", "/api/worlds/w0/events", counting)
	require.Equal(t, http.StatusServiceUnavailable, status, answer)
	require.Zero(t, got.Load())
	status, answer = two.ask("GET", "/healthz", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, fmt.Sprint(answer["waiting"]), "addresses in the store are not proven")

	do("DELETE FROM worldkernel.node WHERE node = 'evil'")
	two.owns(1)
	require.Eventually(t, func() bool { _, answer := two.ask("GET", "/healthz", ""); return answer["waiting"] == nil }, time.Minute, 10*time.Millisecond)
}

// TestNodesOfDifferentPassphrasesSendEachOtherNothing.
func TestNodesOfDifferentPassphrasesSendEachOtherNothing(t *testing.T) {
	url := create(t, 1)
	one := run(t, url, "one", time.Hour)
	one.owns(1)
	other := run(t, url, "other", time.Hour, func(v *api.Service) {
		v.Limits.Moving = time.Second
		v.Options = local.Options{Passphrase: func() ([]byte, error) { return []byte("closed"), nil }}
	})
	refused(t, other, "/api/worlds/w0", "passphrase")
	require.Eventually(t, func() bool {
		_, answer := one.ask("GET", "/healthz", "")
		return answer["waiting"] != nil
	}, time.Minute, 10*time.Millisecond)
}
