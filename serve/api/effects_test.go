package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

const remoteReducer = `def reduce(ctx, state, event):
    if event.name == "receipt":
        return event.data["payload"]
    ctx.effect("tool.a", {"n": event.data["n"]})
`

type never struct{}

func (never) Perform(context.Context, host.Call) (host.Result, error) { panic("not here") }

// remote is a server of a world whose effects are performed elsewhere, and that has
// asked for one.
func remote(t *testing.T) (*served, *local.World) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{local.ManifestFile: worldtest.Caller("remote", `tool.a: {adapter: never, timeout: 30s, config: {token: "secret://TOKEN"}}`), "caller.star": remoteReducer} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	opts := local.Options{Remote: true, Grace: 1, Adapters: map[string]host.Factory{
		"never": func(host.Setup) (host.Adapter, error) { return never{}, nil },
	}}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w"}, opts))
	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	s := serve(t, api.Config{Worlds: []*local.World{w}})
	ok[api.Submitted](s.post("/api/worlds/w/events", map[string]any{"event": "go", "data": map[string]any{"to": "a", "n": 1}}))
	s.run(w)
	return s, w
}

// run runs a world until only a worker can help.
func (s *served) run(w *local.World) {
	s.t.Helper()
	for {
		p, err := w.Next(s.t.Context())
		require.NoError(s.t, err)
		if p != world.Ticked {
			break
		}
	}
	require.NoError(s.t, w.Sync())
}

func (s *served) acquire() api.Offers {
	s.t.Helper()
	return ok[api.Offers](s.post("/api/worlds/w/effects/acquire", api.AcquireRequest{Worker: "hand", Most: 9}))
}

// result is a receipt for an offer, by keys that the world does not know.
func result(t *testing.T, o api.Offer, change func(*receipt.Receipt)) []byte {
	t.Helper()
	p, err := o.Permit()
	require.NoError(t, err)
	r := receipt.New("w", p, receipt.StatusOK, receipt.Data(canon.AppendText(nil, "done")))
	if change != nil {
		change(&r)
	}
	keys, err := receipt.NewKeyring("w", []receipt.Epoch{{Number: 1, Secret: make([]byte, receipt.SecretBytes)}})
	require.NoError(t, err)
	data, err := keys.Sign(&r)
	require.NoError(t, err)
	return data
}

func TestAnAttemptIsAcquiredRenewedAndCommitted(t *testing.T) {
	s, w := remote(t)
	got := s.acquire()
	require.Equal(t, w.Status().Manifest, got.Manifest)
	require.Len(t, got.Offers, 1)
	o := got.Offers[0]
	require.JSONEq(t, `{"n": 1}`, string(o.Params))
	require.Empty(t, s.acquire().Offers, "once, ever")

	renewal := api.RenewRequest{Worker: "hand", Key: o.Key, Attempt: o.Attempt, Nonce: o.Nonce}
	ok[struct{}](s.post("/api/worlds/w/effects/renew", renewal))
	renewal.Worker = "other"
	s.post("/api/worlds/w/effects/renew", renewal).problem(http.StatusConflict, "not-held")
	renewal.Nonce = "x"
	s.post("/api/worlds/w/effects/renew", renewal).problem(http.StatusBadRequest, "malformed")

	commit := func(worker string, data []byte) *answer {
		return s.post("/api/worlds/w/effects/commit", api.CommitRequest{Worker: worker, Receipt: data})
	}
	commit("hand", []byte("nothing")).problem(http.StatusUnprocessableEntity, "bad-receipt")
	commit("other", result(t, o, nil)).problem(http.StatusConflict, "not-held")
	commit("hand", result(t, o, func(r *receipt.Receipt) { r.Nonce[0] ^= 1 })).problem(http.StatusUnprocessableEntity, "bad-receipt")
	ok[struct{}](commit("hand", result(t, o, nil)))
	ok[struct{}](commit("hand", result(t, o, nil)))
	commit("hand", result(t, o, func(r *receipt.Receipt) { r.Cost.Tokens++ })).problem(http.StatusConflict, "other-result")
	s.run(w)
	commit("hand", result(t, o, nil)).problem(http.StatusConflict, "answered")
	commit("hand", result(t, o, func(r *receipt.Receipt) { r.Key.Hash[0] ^= 1 })).problem(http.StatusUnprocessableEntity, "unknown-intent")
	require.Equal(t, 1, w.Status().Intents[receipt.StateCommitted])
}

func TestAnAttemptOfWhichNobodyCanTellIsInDoubtAtOnce(t *testing.T) {
	s, w := remote(t)
	o := s.acquire().Offers[0]
	lose := func(worker, nonce string) *answer {
		return s.post("/api/worlds/w/effects/lose", api.LoseRequest{
			RenewRequest: api.RenewRequest{Worker: worker, Key: o.Key, Attempt: o.Attempt, Nonce: nonce}, Reason: "no such task",
		})
	}
	lose("other", o.Nonce).problem(http.StatusConflict, "not-held")
	lose("hand", "x").problem(http.StatusBadRequest, "malformed")
	ok[struct{}](lose("hand", o.Nonce))
	lose("hand", o.Nonce).problem(http.StatusConflict, "not-held")
	s.run(w)
	require.Equal(t, 1, w.Status().Intents[receipt.StateInDoubt])
	require.Contains(t, ok[intents](s.get("/api/worlds/w/intents")).Intents[0].Reason, "worker hand: no such task")
	ok[struct{}](s.post("/api/worlds/w/effects/commit", api.CommitRequest{Worker: "hand", Receipt: result(t, o, nil)}))
	s.run(w)
	require.Equal(t, 1, w.Status().Intents[receipt.StateCommitted], "it is taken all the same")
}

func TestWhatCannotBeAskedForIsRefused(t *testing.T) {
	s, _ := remote(t)
	for _, req := range []api.AcquireRequest{
		{},
		{Worker: "a\nb"},
		{Worker: "hand", Most: host.MaxOffers + 1},
		{Worker: "hand", Most: -1},
		{Worker: "hand", WaitSeconds: api.MaxWaitSeconds + 1},
	} {
		s.post("/api/worlds/w/effects/acquire", req).problem(http.StatusBadRequest, "malformed")
	}
	require.Empty(t, ok[api.Offers](s.post("/api/worlds/w/effects/acquire", api.AcquireRequest{Worker: "hand", Kinds: []string{"tool.b"}})).Offers)
	here := serve(t, api.Config{Worlds: worlds(t, "w")})
	here.post("/api/worlds/w/effects/acquire", api.AcquireRequest{Worker: "hand"}).problem(http.StatusConflict, "not-remote")
	reader := s.as("reader", s.request("POST", "/api/worlds/w/effects/acquire", api.AcquireRequest{Worker: "hand"}))
	s.do(reader).problem(http.StatusForbidden, "scope")
}

func TestAReceiptOfTheWorldsOwnIsReceived(t *testing.T) {
	s, w := remote(t)
	o := s.acquire().Offers[0]
	post := func(data []byte) *answer { return s.post("/api/worlds/w/receipts", api.ReceiveRequest{Receipt: data}) }
	foreign := result(t, o, nil)
	post(foreign).problem(http.StatusUnprocessableEntity, "bad-receipt")
	r, err := receipt.Decode(foreign)
	require.NoError(t, err)
	own, err := w.Keys().Sign(r)
	require.NoError(t, err)
	a := post(own)
	require.Equal(t, http.StatusCreated, a.Status)
	require.Equal(t, "invocation.finished", ok[map[string]any](s.get(a.Header.Get("Location")))["kind"])
	require.Equal(t, w.Status().Head.ID, ok[struct{ Record journal.Seq }](a).Record)
	post(own).problem(http.StatusConflict, "answered")
}

// TestAWorkerSeesTheManifestAndWhatItNames, and nothing else of the world: no payload
// of its journal, and no secret.
func TestAWorkerSeesTheManifestAndWhatItNames(t *testing.T) {
	s, w := remote(t)
	as := func(path string) *answer { return s.do(s.as("hand", s.request("GET", path, nil))) }
	a := as("/api/worlds/w/manifest")
	var got struct {
		Hash string `json:"hash"`
		Raw  string `json:"raw"`
	}
	require.Less(t, a.Status, 300, "%s", a.Body)
	require.NoError(t, json.Unmarshal(a.Body, &got))
	raw, err := base64.StdEncoding.DecodeString(got.Raw)
	require.NoError(t, err)
	require.Equal(t, w.Status().Manifest, canon.Sum(raw))
	require.Equal(t, w.Status().Manifest.String(), got.Hash)
	m, err := manifest.Decode(raw)
	require.NoError(t, err)
	require.NotEmpty(t, m.Contents())
	for _, h := range m.Contents() {
		require.Equal(t, h, canon.Sum(as("/api/worlds/w/contents/"+h.String()).Body))
	}
	as("/api/worlds/w/contents/"+canon.Sum(raw).String()).problem(http.StatusNotFound, "not-found")
	as("/api/worlds/w/contents/x").problem(http.StatusNotFound, "not-found")
	ok[api.Worlds](as("/api/worlds"))
	as("/api/worlds/w/records").problem(http.StatusForbidden, "scope")
}
