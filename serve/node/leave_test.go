package node_test

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/serve/api"
)

// TestAWorkerRenewsWhileItsWorldLeaves: what takes long when a world is given up, its image, keeps no
// worker from renewing what it holds, nor from handing it in afterwards.
func TestAWorkerRenewsWhileItsWorldLeaves(t *testing.T) {
	server := pgtest.Start(t)
	direct := server.URL(t)
	asking(t, direct, 1)
	var blocks atomic.Bool
	blocked, held := make(chan struct{}), make(chan struct{})
	let := sync.OnceFunc(func() { close(held) })
	defer let()
	proxy := server.Proxy(t, func(request []byte) pgtest.Fault {
		if bytes.Contains(request, []byte("worldkernel.image")) && blocks.CompareAndSwap(true, false) {
			close(blocked)
			<-held
		}
		return pgtest.None
	})
	slow := run(t, proxy.URL(direct), "slow", time.Hour, forWorkers)
	status, answer := slow.ask("POST", "/api/worlds/w0/events", `{"event":"go","data":{"to":"a","n":1}}`)
	require.Equal(t, http.StatusCreated, status, answer)
	other := run(t, direct, "other", time.Hour, forWorkers, func(v *api.Service) { v.Limits.Moving = time.Minute })
	renewal := other.acquire("w0")
	renew := func() int {
		status, _ := other.ask("POST", "/api/worlds/w0/effects/renew", renewal)
		return status
	}
	require.Equal(t, http.StatusOK, renew())
	blocks.Store(true)
	slow.gives(other, "w0")
	<-blocked
	require.Equal(t, http.StatusOK, renew(), "while the image is on its way")
	status, _ = slow.ask("POST", "/api/worlds/w0/effects/renew", renewal)
	require.Equal(t, http.StatusOK, status)
	let()
	other.owns(1)
	require.Equal(t, http.StatusOK, renew(), "it was adopted")
}

// gives has a node asked for a world, until it has begun to give it up.
func (r *running) gives(to *running, id string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		_, err := to.store.Want(r.t.Context(), r.store.Name())
		require.NoError(r.t, err)
		return !r.service.Serves(id)
	}, time.Minute, 10*time.Millisecond)
}

// acquire acquires an attempt as a worker would, and returns what renews it.
func (r *running) acquire(id string) (renewal string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		_, answer := r.ask("POST", "/api/worlds/"+id+"/effects/acquire", `{"worker":"hand","kinds":[],"most":1,"wait_seconds":1}`)
		offers, _ := answer["offers"].([]any)
		if len(offers) == 0 {
			return false
		}
		o := offers[0].(map[string]any)
		renewal = fmt.Sprintf(`{"worker":"hand","key":%q,"attempt":%v,"nonce":%q}`, o["key"], o["attempt"], o["nonce"])
		return true
	}, time.Minute, 10*time.Millisecond)
	return renewal
}
