package kill

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// padded stands for records of events that can be redacted.
const padded journal.Kind = "padded"

// seen is what a world and the bank were found to hold.
type seen struct {
	id        string
	head      journal.Seq
	link      [journal.LinkBytes]byte // of the last record
	kinds     map[journal.Kind]int
	orders    map[int]int
	padded    []journal.Seq // records
	manifest  journal.Hash
	intents   []receipt.Entry
	snapshots []string
	proposals []*governance.Proposal
	cells     []world.CellView

	book  int                // entries of it
	keys  map[string]bool    // of payments
	deals map[payment]string // their keys
}

// look opens the world that a killed process has left, and judges: whatever was seen
// or acknowledged is there, the bank has done nothing twice, and nothing without a
// permit.
func (k *life) look() {
	k.t.Helper()
	k.bank.settle()
	if k.seen.kinds == nil {
		k.seen.kinds, k.seen.orders = make(map[journal.Kind]int), make(map[int]int)
		k.seen.keys, k.seen.deals = make(map[string]bool), make(map[payment]string)
	}
	w, err := local.OpenReadOnly(k.dir, local.Options{})
	require.NoError(k.t, err)
	k.read(w)
	w.View(func(m *world.Moment) {
		s := m.Status()
		k.seen.id, k.seen.manifest = s.ID, s.Manifest
		k.seen.intents, k.seen.cells = m.Intents(), m.Cells()
		k.seen.proposals, _ = m.Proposals()
		k.seen.snapshots = nil
		for _, x := range m.Snapshots() {
			k.seen.snapshots = append(k.seen.snapshots, x.Name)
		}
	})
	require.NoError(k.t, w.Close())
	k.verified(k.dir)
	k.acknowledged()
	k.judge()
}

// read reads the records that are new, and requires that those before are as they were.
func (k *life) read(w *local.World) {
	k.t.Helper()
	first := true
	for r, err := range w.Scan(max(k.seen.head, 1) - 1) {
		require.NoError(k.t, err)
		require.NoError(k.t, r.Err)
		if r.ID <= k.seen.head {
			require.Equal(k.t, k.seen.link, r.Link, "record #%d is another one than it was", r.ID)
			first = false
			continue
		}
		require.True(k.t, !first || r.ID == 1, "the journal had #%d and ends before", k.seen.head)
		k.seen.head, k.seen.link, first = r.ID, r.Link, false
		k.seen.kinds[r.Record.Kind]++
		if r.Record.Kind == journal.KindSubmitted {
			k.submitted(w, &r.Record)
		}
	}
	require.False(k.t, first, "the journal had #%d and is empty after that", k.seen.head)
}

func (k *life) submitted(w *local.World, r *journal.Record) {
	k.t.Helper()
	body, err := r.LoadBody(w)
	if errors.Is(err, journal.ErrNotFound) { // sent and redacted since the last look
		k.seen.kinds[padded]++
		return
	}
	require.NoError(k.t, err)
	e := body.(*journal.Submitted)
	if e.Name == string(padded) {
		k.seen.kinds[padded]++
		k.seen.padded = append(k.seen.padded, r.ID)
		return
	}
	text, err := canon.ToJSON(e.Data)
	require.NoError(k.t, err)
	var o order
	require.NoError(k.t, json.Unmarshal(text, &o))
	k.seen.orders[o.N]++
}

// acknowledged requires that all is there that somebody was told of, and nothing that
// nobody has asked for.
func (k *life) acknowledged() {
	k.t.Helper()
	for kind, s := range k.promise {
		if kind != "" {
			require.LessOrEqual(k.t, s.least, k.seen.kinds[kind], "%s: acknowledged, and lost", kind)
			require.GreaterOrEqual(k.t, s.most, k.seen.kinds[kind], "%s: more than were asked for", kind)
		}
	}
	for n, s := range k.orders {
		require.LessOrEqual(k.t, s.least, k.seen.orders[n], "order %d: acknowledged, and lost", n)
		require.GreaterOrEqual(k.t, s.most, k.seen.orders[n], "order %d: more often than it was sent", n)
	}
}

// ledger returns what the world knows of its payments, by their external keys.
func (k *life) ledger() map[string]receipt.Entry {
	all := make(map[string]receipt.Entry)
	for _, e := range k.seen.intents {
		all[e.Intent.Key.External(k.seen.id)] = e
	}
	return all
}

// judge holds what is new in the bank's book against the ledger.
func (k *life) judge() {
	k.t.Helper()
	ledger := k.ledger()
	for _, e := range k.bank.entries(k.seen.book) {
		k.seen.book++
		require.NotZero(k.t, ledger[e.key].Attempt, "%+v: the journal has no permit for it", e)
		require.False(k.t, k.seen.keys[e.key], "%+v: executed twice under one key", e)
		k.seen.keys[e.key] = true
		require.Empty(k.t, k.seen.deals[e.payment], "%+v: executed twice, under two keys", e)
		k.seen.deals[e.payment] = e.key
	}
}

// finish lets everything end that can, without a kill, and judges what is left.
func (k *life) finish() {
	k.t.Helper()
	for range 50 {
		code := k.exit("run")
		require.Contains(k.t, []int{0, undecided}, code)
		k.look()
		open := false
		for _, e := range k.seen.intents {
			if e.State == receipt.StateInDoubt && !e.Waiting {
				open = true
				v := k.truth(&e)
				require.Contains(k.t, append(v.codes, 0), k.exit(v.args...))
			}
		}
		if !open && code == 0 {
			k.ended()
			return
		}
	}
	require.Fail(k.t, "it never ends")
}

// ended requires that the ledger knows what the bank did: it is committed or, where the
// answer could not be read, has left something behind. Whoever was told of a payment has
// it.
func (k *life) ended() {
	k.t.Helper()
	ledger := k.ledger()
	for _, e := range k.bank.entries(0) {
		x := ledger[e.key]
		require.True(k.t, x.MayHaveHappened(), "%+v is done, and %s with %s", e, x.State, x.Outcome)
	}
	for _, e := range k.seen.intents {
		key := e.Intent.Key.External(k.seen.id)
		require.True(k.t, e.State != receipt.StateCommitted || e.Reused || k.bank.has(key), "%s is committed", e.Intent.Step)
	}
	for _, c := range k.seen.cells {
		var state map[string]string
		text, err := canon.ToJSON(c.State)
		require.NoError(k.t, err)
		require.NoError(k.t, json.Unmarshal(text, &state))
		for n, status := range state {
			_, done := k.seen.deals[payment{c.Cell.Key, number(n)}]
			require.True(k.t, status != string(receipt.StatusOK) || done, "%s was told that %s is paid", c.Cell, n)
		}
	}
	k.must("verify")
	if !k.redacted() {
		k.must("replay")
	}
	left, err := names(k.dir)
	require.NoError(k.t, err)
	require.True(k.t, slices.Equal([]string{".world", "client.star", "world.yaml"}, left), "%v", left)
}
