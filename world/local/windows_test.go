package local_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/receipt/host"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/store"
)

// moment is where a process dies on an effect's way.
type moment string

const (
	beforePermit   moment = "before the batch with the permit is appended"
	beforeSecond   moment = "before the batch with the second permit is appended"
	afterPermit    moment = "when the permit is durable and nobody knows that"
	beforePerform  moment = "when the adapter is called"
	afterPerform   moment = "when the outside has changed and the adapter has not said so"
	afterStored    moment = "when the stored result is about to be handed to the world"
	afterFinished  moment = "when the receipt is journaled and its cell has not seen it"
	afterDelivered moment = "when the cell has handled the receipt"
)

// These tell a process that it is to die: in which world, and when.
const (
	dyingWorld  = "WORLDKERNEL_TEST_DYING_WORLD"
	dyingMoment = "WORLDKERNEL_TEST_DYING_MOMENT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(dyingWorld); dir != "" {
		fmt.Fprintln(os.Stderr, "it lived:", runAndDie(dir, moment(os.Getenv(dyingMoment))))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// die ends this process as a power cut would, for all that it can do about it.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// runAndDie runs a world as local.Open would have it run, but that every unit
// is a batch of its own, and that it dies at a moment.
func runAndDie(dir string, at moment) error {
	hidden := filepath.Join(dir, ".world")
	ring, err := os.ReadFile(filepath.Join(hidden, "keyring"))
	if err != nil {
		return err
	}
	keys, err := receipt.DecodeKeyring(ring)
	if err != nil {
		return err
	}
	s, err := openStore(hidden, keys)
	if err != nil {
		return err
	}
	w, err := world.Open(world.Config{
		Journal: &dyingJournal{Store: s, at: at}, History: s, Keys: keys, BatchRecords: 1,
		NewHost: func(id string, m *manifest.Manifest) (world.Host, error) {
			h, err := host.New(host.Config{
				World: id, Manifest: m, Content: s.Blob, Keys: keys, Dir: dir,
				Adapters: outside(dir, at), EffectLog: filepath.Join(hidden, "effects"),
			})
			return dyingHost{h, at}, err
		},
	})
	if err != nil {
		return err
	}
	return w.Run(context.Background())
}

func openStore(hidden string, keys *receipt.Keyring) (*store.Store, error) {
	anchorKey, err := keys.AnchorKey()
	if err != nil {
		return nil, err
	}
	return store.Open(hidden, store.Options{AnchorKey: anchorKey})
}

// dyingJournal makes every batch durable before the next is computed.
type dyingJournal struct {
	*store.Store
	at   moment
	seen map[world.Kind]int
}

func (j *dyingJournal) Append(b world.Batch) (world.Pending, error) {
	if j.seen == nil {
		j.seen = make(map[world.Kind]int)
	}
	here := make(map[world.Kind]bool)
	for _, s := range b.Records {
		rec, err := world.DecodeRecord(s.Bytes)
		if err != nil {
			return nil, err
		}
		here[rec.Kind] = true
		j.seen[rec.Kind]++
	}
	permits := j.seen[world.KindStarted]
	if here[world.KindStarted] && (j.at == beforePermit || j.at == beforeSecond && permits == 2) {
		time.Sleep(20 * time.Millisecond) // in which a host that was told too early would be seen
		die()
	}
	p, err := j.Store.Append(b)
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		return nil, err
	}
	switch {
	case j.at == afterPermit && here[world.KindStarted]:
		time.Sleep(20 * time.Millisecond)
		die()
	case j.at == afterFinished && here[world.KindFinished],
		j.at == afterDelivered && j.seen[world.KindStepped] == 2:
		die()
	}
	return p, nil
}

// dyingHost hands over answers whose results the effect store holds.
type dyingHost struct {
	*host.Host
	at moment
}

func (h dyingHost) Answers() ([]world.Answer, error) {
	answers, err := h.Host.Answers()
	for _, a := range answers {
		if a.Receipt != nil && h.at == afterStored {
			die()
		}
	}
	return answers, err
}

// callsFile is the outside: a line for each time that it was changed.
const callsFile = "calls"

// outside returns an adapter that changes the outside, durably.
func outside(dir string, at moment) map[string]host.Factory {
	return map[string]host.Factory{"outside": func(host.Setup) (host.Adapter, error) {
		return outsideAdapter{filepath.Join(dir, callsFile), at}, nil
	}}
}

type outsideAdapter struct {
	file string
	at   moment
}

func (a outsideAdapter) Perform(_ context.Context, call host.Call) (host.Result, error) {
	if a.at == beforePerform {
		die()
	}
	f, err := os.OpenFile(a.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return host.Result{}, err
	}
	if _, err = fmt.Fprintln(f, call.External); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return host.Result{}, err
	}
	if a.at == afterPerform {
		die()
	}
	return host.Result{Status: receipt.StatusOK, Payload: receipt.Data(canon.AppendText(nil, "done"))}, f.Close()
}

const windowsManifest = `world: windows
version: 1
reducers:
  caller: {engine: starlark, source: caller.star, grants: [outside]}
events:
  go:
effects:
  outside.call: {adapter: outside, %s}
caps:
  outside: {type: any, params: {kinds: ["outside.*"]}}
policies:
  - {name: all, when: "true", decide: allow}
routing:
  - {event: go, reducer: caller, key: event.data.to}
limits: {in_flight: 1}
`

const windowsReducer = `def reduce(ctx, state, event):
    if event.name == "receipt":
        state.append(event.data["status"])
        return state
    ctx.effect("outside.call", ctx.key)
    return []
`

// windowsVerifier looks the external key up in what the outside did.
const windowsVerifier = `#!/bin/sh
if grep -qx "$WORLDKERNEL_IDEMPOTENCY_KEY" calls 2>/dev/null; then
	echo '{"happened": true, "payload": "done"}'
else
	echo '{"happened": false}'
fi
`

// aWindow is one row of docs/crash-windows.md, or a part of one.
type aWindow struct {
	name    string
	at      moment
	declare string   // of the effect
	cells   []string // that ask for one effect each; nil: one cell

	last    world.Kind    // what the journal of the dead process ends with
	had     int           // how often the outside was changed before it died
	became  receipt.State // of all intents, once the world has run again
	told    string        // every cell, by then: its receipts
	has     int           // how often the outside was changed by then
	nothing bool          // no record was added

	decide   world.Resolution // of whom it is in doubt
	hasAfter int
}

const (
	parks    = "on_in_doubt: park"
	retries  = "on_in_doubt: retry, idempotent: true, retry: {attempts: 2, backoff: 1ms}"
	fails    = "on_in_doubt: fail"
	verifies = "on_in_doubt: verify, verify: {adapter: exec, config: {program: ./look}}, retry: {attempts: 2, backoff: 1ms}"
)

func windows() []aWindow {
	return []aWindow{
		{
			name: "1_no_permit", at: beforePermit, declare: parks, last: world.KindSubmitted,
			became: receipt.StateCommitted, told: "[ok]", has: 1,
		},
		{
			name: "1_intent_without_permit", at: beforeSecond, declare: parks, cells: []string{"a", "b"}, last: world.KindStarted,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 2,
		},
		{
			name: "2_permit_durable", at: afterPermit, declare: parks, last: world.KindStarted,
			became: receipt.StateInDoubt, told: "[]", decide: world.NotExecuted, hasAfter: 1,
		},
		{
			name: "2_adapter_called", at: beforePerform, declare: parks, last: world.KindStarted,
			became: receipt.StateInDoubt, told: "[]", decide: world.NotExecuted, hasAfter: 1,
		},
		{
			name: "2_performed", at: afterPerform, declare: parks, last: world.KindStarted,
			had: 1, became: receipt.StateInDoubt, told: "[]", has: 1, decide: world.Executed, hasAfter: 1,
		},
		{
			name: "2_performed_retried", at: afterPerform, declare: retries, last: world.KindStarted,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 2,
		},
		{
			name: "2_performed_failed", at: afterPerform, declare: fails, last: world.KindStarted,
			had: 1, became: receipt.StateFailed, told: "[rejected]", has: 1,
		},
		{
			name: "2_performed_verified", at: afterPerform, declare: verifies, last: world.KindStarted,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 1,
		},
		{
			name: "2_permit_durable_verified", at: afterPermit, declare: verifies, last: world.KindStarted,
			became: receipt.StateCommitted, told: "[ok]", has: 1,
		},
		{
			name: "3_stored", at: afterStored, declare: parks, last: world.KindStarted,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 1,
		},
		{
			name: "4_journaled", at: afterFinished, declare: parks, last: world.KindFinished,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 1,
		},
		{
			name: "5_delivered", at: afterDelivered, declare: parks, last: world.KindStepped,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 1, nothing: true,
		},
	}
}

// TestKilledInEveryWindow kills a process with SIGKILL at each boundary of an
// effect's way, and holds the world that is opened then to the table of
// docs/crash-windows.md.
func TestKilledInEveryWindow(t *testing.T) {
	for _, c := range windows() {
		t.Run(c.name, func(t *testing.T) {
			if c.declare == verifies {
				if _, err := os.Stat("/bin/sh"); err != nil {
					t.Skip("the verifier is a shell script, and there is no /bin/sh")
				}
			}
			dir := c.killed(t)
			require.Equal(t, c.had, len(calls(t, dir)), "what the outside has when the process is dead")

			opts := local.Options{Adapters: outside(dir, ""), Paranoid: true}
			w, err := local.Open(dir, opts)
			require.NoError(t, err)
			head := w.Status().Head
			require.NoError(t, w.Run(t.Context()))
			if c.nothing {
				require.Equal(t, head, w.Status().Head)
			}
			c.stands(t, w, c.became, c.told, c.has)
			if c.decide != "" {
				c.decided(t, w)
				require.NoError(t, w.Run(t.Context()))
				c.stands(t, w, receipt.StateCommitted, "[ok]", c.hasAfter)
			}
			head = w.Status().Head
			require.NoError(t, w.Close())

			w, err = local.Open(dir, opts)
			require.NoError(t, err)
			require.NoError(t, w.Run(t.Context()))
			require.Equal(t, head, w.Status().Head, "and then nothing is left to do")
			r, err := w.Verify(nil)
			require.NoError(t, err)
			require.Empty(t, r.Faults)
			done, err := w.Replay(0, nil)
			require.NoError(t, err)
			require.Equal(t, r.StateRoot, done.StateRoot)
			require.NoError(t, w.Close())
		})
	}
}

func (c *aWindow) askers() []string {
	if c.cells == nil {
		return []string{"a"}
	}
	return c.cells
}

// killed returns the world of a process that has died.
func (c *aWindow) killed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"world.yaml": fmt.Sprintf(windowsManifest, c.declare), "caller.star": windowsReducer, "look": windowsVerifier,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	opts := local.Options{Adapters: outside(dir, "")}
	require.NoError(t, local.Create(dir, local.Birth{ID: "windows", Keyring: ring(t, "windows", 1)}, opts))
	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	for _, key := range c.askers() {
		_, err = w.Submit(t.Context(), "go", map[string]any{"to": key})
		require.NoError(t, err)
	}
	keys := w.Keys()
	require.NoError(t, w.Close())

	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), dyingWorld+"="+dir, dyingMoment+"="+string(c.at))
	said, err := child.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.ExitCode(), "a signal ended it, and not: %s", said)

	s, err := openStore(filepath.Join(dir, ".world"), keys)
	require.NoError(t, err)
	var last world.Kind
	for rec, err := range s.Scan(0) {
		require.NoError(t, err)
		last = rec.Record.Kind
	}
	require.NoError(t, s.Close())
	require.Equal(t, c.last, last, "what the journal ends with: %s", said)
	return dir
}

// calls returns the external keys under which the outside was changed.
func calls(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, callsFile))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return strings.Fields(string(data))
}

// stands holds the world to where all its intents and cells have to be.
func (c *aWindow) stands(t *testing.T, w *local.World, state receipt.State, told string, has int) {
	t.Helper()
	require.NoError(t, w.View(func(w *world.World) error {
		intents := w.Intents()
		require.Len(t, intents, len(c.askers()))
		for _, e := range intents {
			require.Equal(t, state, e.State)
		}
		for _, key := range c.askers() {
			cell, ok := w.Cell(reducer.Cell{Reducer: "caller", Key: key})
			require.True(t, ok)
			v, err := canon.Decode(cell.State)
			require.NoError(t, err)
			require.Equal(t, told, fmt.Sprint(v))
		}
		return nil
	}))
	all := calls(t, w.Dir())
	require.Len(t, all, has)
	if c.declare == retries {
		require.Equal(t, all[0], all[1], "the outside can tell that it is the same one")
		return
	}
	once := make(map[string]bool)
	for _, key := range all {
		require.False(t, once[key], "the outside was changed twice under one key")
		once[key] = true
	}
}

// decided takes a person's word for what has happened.
func (c *aWindow) decided(t *testing.T, w *local.World) {
	t.Helper()
	var b world.Resolved
	require.NoError(t, w.View(func(w *world.World) error {
		e := w.Intents()[0]
		b = world.Resolved{Key: e.Intent.Key, Params: e.Params, How: c.decide, Actor: "ann", Reason: "she looked"}
		return nil
	}))
	require.NoError(t, w.Resolve(t.Context(), b))
}
