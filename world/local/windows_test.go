package local_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// windowsManifest is the world of the windows, whose effect is declared so.
func windowsManifest(declare string) string {
	return worldtest.Caller("windows", "outside.call: {adapter: outside, "+declare+"}") + "limits: {in_flight: 1}\n"
}

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

// aWindow is one row of docs/guarantees.md, or a part of one.
type aWindow struct {
	name    string
	at      moment
	declare string   // of the effect
	cells   []string // that ask for one effect each; nil: one cell

	last    journal.Kind  // what the journal of the dead process ends with
	had     int           // how often the outside was changed before it died
	became  receipt.State // of all intents, once the world has run again
	told    string        // every cell, by then: its receipts
	has     int           // how often the outside was changed by then
	nothing bool          // no record was added

	decide   journal.Resolution // of whom it is in doubt
	hasAfter int
}

const (
	askPerson = "on_in_doubt: ask"
	retries   = "on_in_doubt: retry, idempotent: true, retry: {attempts: 2, backoff: 1ms}"
	fails     = "on_in_doubt: fail"
	verifies  = "on_in_doubt: verify, verify: {adapter: exec, config: {program: ./look}}, retry: {attempts: 2, backoff: 1ms}"
)

func windows() []aWindow {
	return []aWindow{
		{
			name: "1_no_permit", at: beforePermit, declare: askPerson, last: journal.KindSubmitted,
			became: receipt.StateCommitted, told: "[ok]", has: 1,
		},
		{
			name: "1_intent_without_permit", at: beforeSecond, declare: askPerson, cells: []string{"a", "b"}, last: journal.KindStarted,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 2,
		},
		{
			name: "2_permit_durable", at: afterPermit, declare: askPerson, last: journal.KindStarted,
			became: receipt.StateInDoubt, told: "[]", decide: journal.NotExecuted, hasAfter: 1,
		},
		{
			name: "2_adapter_called", at: beforePerform, declare: askPerson, last: journal.KindStarted,
			became: receipt.StateInDoubt, told: "[]", decide: journal.NotExecuted, hasAfter: 1,
		},
		{
			name: "2_performed", at: afterPerform, declare: askPerson, last: journal.KindStarted,
			had: 1, became: receipt.StateInDoubt, told: "[]", has: 1, decide: journal.Executed, hasAfter: 1,
		},
		{
			name: "2_performed_retried", at: afterPerform, declare: retries, last: journal.KindStarted,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 2,
		},
		{
			name: "2_performed_failed", at: afterPerform, declare: fails, last: journal.KindStarted,
			had: 1, became: receipt.StateFailed, told: "[rejected]", has: 1,
		},
		{
			name: "2_performed_verified", at: afterPerform, declare: verifies, last: journal.KindStarted,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 1,
		},
		{
			name: "2_permit_durable_verified", at: afterPermit, declare: verifies, last: journal.KindStarted,
			became: receipt.StateCommitted, told: "[ok]", has: 1,
		},
		{
			name: "3_stored", at: afterStored, declare: askPerson, last: journal.KindStarted,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 1,
		},
		{
			name: "4_journaled", at: afterFinished, declare: askPerson, last: journal.KindFinished,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 1,
		},
		{
			name: "5_delivered", at: afterDelivered, declare: askPerson, last: journal.KindStepped,
			had: 1, became: receipt.StateCommitted, told: "[ok]", has: 1, nothing: true,
		},
	}
}

// TestKilledInEveryWindow kills a process with SIGKILL at each boundary of an
// effect's way, and holds the world that is opened then to the table of
// docs/guarantees.md.
func TestKilledInEveryWindow(t *testing.T) {
	for _, c := range windows() {
		t.Run(c.name, func(t *testing.T) {
			if testlog.On() && c.at == afterPermit { // the table of attempts tells that it was not begun
				c.became, c.told, c.has, c.decide = receipt.StateCommitted, "[ok]", 1, ""
			}
			if c.declare == verifies {
				if _, err := os.Stat("/bin/sh"); err != nil {
					t.Skip("the verifier is a shell script, and there is no /bin/sh")
				}
			}
			dir := c.killed(t)
			require.Len(t, calls(t, dir), c.had, "what the outside has when the process is dead")

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
			requireProven(t, w)
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
		"world.yaml": windowsManifest(c.declare), "caller.star": windowsReducer, "look": windowsVerifier,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	opts := local.Options{Adapters: outside(dir, "")}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "windows", Keyring: ring(t, "windows", 1)}, opts))
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
	var last journal.Kind
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
	w.View(func(w *world.Moment) {
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
	})
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
	var b journal.Resolved
	w.View(func(w *world.Moment) {
		e := w.Intents()[0]
		b = journal.Resolved{Key: e.Intent.Key, Params: e.Params, How: c.decide, Actor: "ann", Reason: "she looked"}
	})
	require.NoError(t, w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Resolve(t.Context(), b)) }))
}
