package host_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// owned is a world whose effects tool.a are performed elsewhere.
type owned struct {
	*world.World
	t     *testing.T
	cfg   world.Config
	owner *host.Host
}

// newOwned returns a world whose bot has asked for one tool.a, and drives it
// until that is to be performed.
func newOwned(t *testing.T, onInDoubt string) *owned {
	t.Helper()
	loaded, err := source.Load("../world/worldtest/testdata/bots/world.yaml")
	require.NoError(t, err)
	m := loaded.Manifest.WithDefaults()
	e := m.Effects["tool.a"]
	e.Adapter, e.Config, e.Files = "live", nil, nil
	e.OnInDoubt, e.Idempotent, e.Retry.Attempts = onInDoubt, true, 3
	m.Effects["tool.a"] = e
	journal, ring, path := new(worldtest.Journal), worldtest.Keyring(t, town), storeAt(t)
	o := &owned{t: t}
	o.cfg = world.Config{Journal: journal, History: journal, Keys: ring, NewHost: func(id string, m *manifest.Manifest) (world.Host, error) {
		o.owner, err = host.New(host.Config{
			World: id, Manifest: m, Content: journal.Blob, Keys: ring, EffectLog: path, Remote: true,
			Adapters: map[string]host.Factory{"live": func(host.Setup) (host.Adapter, error) { return outside(ok), nil }},
		})
		return o.owner, err
	}}
	o.World, err = world.Create(o.cfg, world.Genesis{ID: town, Seed: m.Seed, Manifest: &m, Contents: loaded.Contents})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.owner.Close()) })
	_, err = o.Submit(t.Context(), world.Submission{Name: "go", Data: data(t, `{"to": "a", "do": [{"effect": "tool.a", "param": "x"}]}`)})
	require.NoError(t, err)
	o.drive()
	return o
}

// drive goes on until only the outside can help.
func (o *owned) drive() {
	o.t.Helper()
	for waited := false; ; {
		p, err := o.Next(o.t.Context())
		require.NoError(o.t, err)
		if p == world.Idle || p == world.Waiting && waited {
			return
		}
		if waited = p == world.Waiting; waited {
			require.NoError(o.t, o.Sync()) // the host gets what there is to do
		}
	}
}

// until drives until the one intent of the world is in a state.
func (o *owned) until(s receipt.State) receipt.Entry {
	o.t.Helper()
	for o.Intents()[0].State != s {
		require.NoError(o.t, o.Wait(o.t.Context()))
		o.drive()
	}
	return o.Intents()[0]
}

// restart lets the owner's process end, and another one begin.
func (o *owned) restart() {
	o.t.Helper()
	require.NoError(o.t, o.owner.Close())
	var err error
	o.World, err = world.Open(o.cfg)
	require.NoError(o.t, err)
	o.drive()
}

func (o *owned) acquire() receipt.Permit {
	o.t.Helper()
	offers, err := o.owner.Acquire(o.t.Context(), "w-1", nil, 1)
	require.NoError(o.t, err)
	return offers[0].Permit
}

// receive is what the owner's process does with a result that Commit does not
// know.
func (o *owned) receive(said []byte) error {
	o.t.Helper()
	require.ErrorIs(o.t, o.owner.Commit("w-1", said, 0), host.ErrUnknownAttempt)
	signed, err := o.owner.Sign(said)
	require.NoError(o.t, err)
	_, err = o.Receive(signed)
	return err
}

func TestAWorldTakesWhatAWorkerCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, manifest.InDoubtAsk)
		said := fromElsewhere(t, o.acquire())
		require.NoError(t, o.owner.Commit("w-1", said, 0))
		o.until(receipt.StateCommitted)
		o.drive()
		require.ErrorIs(t, o.receive(said), receipt.ErrDuplicate, "the worker has not heard of it, and asks again")
		require.Empty(t, o.owner.Stored())
	})
}

func TestAWorldTakesWhatItHadGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, manifest.InDoubtAsk)
		said := fromElsewhere(t, o.acquire())
		o.until(receipt.StateInDoubt)
		require.NoError(t, o.owner.Commit("w-1", said, 0))
		o.until(receipt.StateCommitted)
	})
}

func TestALateResultIsOnlyJournaledWhereAnotherAttemptIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, manifest.InDoubtRetry)
		first := fromElsewhere(t, o.acquire())
		o.until(receipt.StateOpen)     // the lease ran out
		o.until(receipt.StateInFlight) // and the backoff is over
		second := o.acquire()
		require.Equal(t, uint64(2), second.Attempt)
		require.NoError(t, o.owner.Commit("w-1", first, 0))
		require.Len(t, o.Intents()[0].Lost, 1)
		require.NoError(t, o.Wait(t.Context()))
		o.drive()
		require.Empty(t, o.Intents()[0].Lost, "it has come")
		require.ErrorIs(t, o.receive(first), receipt.ErrWrongAttempt, "the worker asks again")
		require.NoError(t, o.owner.Commit("w-1", fromElsewhere(t, second), 0))
		require.Equal(t, uint64(2), o.until(receipt.StateCommitted).Attempt)
	})
}

func TestAWorldThatWasRestartedJudgesWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t, manifest.InDoubtAsk)
		p := o.acquire()
		o.restart()
		require.Equal(t, receipt.StateInDoubt, o.Intents()[0].State)
		forged := func(change func(*receipt.Receipt)) error { return o.receive(fromElsewhere(t, p, change)) }
		require.ErrorIs(t, forged(func(r *receipt.Receipt) { r.Nonce[0] ^= 1 }), receipt.ErrWrongAttempt)
		require.ErrorIs(t, forged(func(r *receipt.Receipt) { r.Attempt++ }), receipt.ErrWrongAttempt)
		require.ErrorIs(t, forged(func(r *receipt.Receipt) { r.Key.Hash[0] ^= 1 }), receipt.ErrUnknownIntent)
		require.ErrorIs(t, forged(func(r *receipt.Receipt) { r.Cap = "root" }), receipt.ErrWrongIntent)
		o.drive()
		require.Equal(t, receipt.StateInDoubt, o.Intents()[0].State, "nothing has changed, nothing has stopped")
		require.NoError(t, o.receive(fromElsewhere(t, p)))
		require.Equal(t, receipt.StateCommitted, o.Intents()[0].State)
		require.ErrorIs(t, o.receive(fromElsewhere(t, p)), receipt.ErrDuplicate)
	})
}
