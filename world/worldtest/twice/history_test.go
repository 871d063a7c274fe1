package twice

import (
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// history is the dumbest model of what a journal says about histories: the
// intents that the present one has asked for, and those of each snapshot.
type history struct {
	read      int // records
	now       map[receipt.Key]bool
	snapshots map[string]map[receipt.Key]bool
	deals     map[receipt.Key]deal // of all that was ever asked for
	steps     map[receipt.Key]receipt.StepID
	asked     map[receipt.Key][]string // by which rules
	attempted map[receipt.Key]bool
	left      map[receipt.Key]bool // by the last rollback
	path      []string             // snapshots of the present history
	paths     map[string][]string  // of each snapshot: those of its own, itself included
}

func newHistory() *history {
	return &history{
		now: make(map[receipt.Key]bool), snapshots: make(map[string]map[receipt.Key]bool),
		deals: make(map[receipt.Key]deal), steps: make(map[receipt.Key]receipt.StepID),
		asked: make(map[receipt.Key][]string), attempted: make(map[receipt.Key]bool),
		paths: make(map[string][]string),
	}
}

// follow reads the next durable record, if there is one.
func (h *history) follow(j *worldtest.Journal) (journal.Body, error) {
	all := j.Records()
	if h.read >= len(all) {
		return nil, nil
	}
	rec, err := journal.DecodeRecord(all[h.read].Bytes)
	if err != nil {
		return nil, err
	}
	h.read++
	if err := rec.Load(j); err != nil {
		return nil, err
	}
	body, err := rec.Body()
	if err != nil {
		return nil, err
	}
	h.take(body)
	return body, nil
}

func (h *history) take(body journal.Body) {
	switch b := body.(type) {
	case *journal.IntentEmitted:
		h.ask(b.Key, b.Step, dealOf(b.Cell, b.Kind, b.Params))
	case *journal.IntentAwaitingApproval:
		h.ask(b.Key, b.Step, dealOf(b.Cell, b.Kind, b.Params))
		h.asked[b.Key] = b.Rules
	case *journal.IntentDenied:
		h.ask(b.Key, b.Step, dealOf(b.Cell, b.Kind, b.Params))
		h.deny(b.Key)
	case *journal.Started:
		h.attempted[b.Key] = true
	case *journal.Resolved:
		if b.How == journal.Disapprove {
			h.deny(b.Key)
		}
	case *journal.IntentEnded:
		if b.Status == receipt.StatusCancelled {
			delete(h.now, b.Key) // likewise
		}
	case *journal.SnapshotCreated:
		h.snapshots[b.Name] = maps.Clone(h.now)
		h.path = append(slices.Clip(h.path), b.Name)
		h.paths[b.Name] = h.path
	case *journal.RolledBack:
		h.left = h.leaves(b.Snapshot)
		h.now = maps.Clone(h.snapshots[b.Snapshot])
		h.path = h.paths[b.Snapshot]
	}
}

// ask notes that an intent was asked for. A refund is nobody's question: what it
// takes back is.
func (h *history) ask(key receipt.Key, step receipt.StepID, d deal) {
	h.deals[key], h.steps[key] = d, step
	if d.kind != refundKind {
		h.now[key] = true
	}
}

// deny notes that an intent was denied. The history in which it was has not asked for
// what another one has done, in which it was decided anew: see receipt.Entry.AskedNow.
func (h *history) deny(key receipt.Key) {
	if !h.attempted[key] {
		delete(h.now, key)
	}
}

// leaves returns what the present history asked for and that of a snapshot did
// not.
func (h *history) leaves(snapshot string) map[receipt.Key]bool {
	left := make(map[receipt.Key]bool)
	for key := range h.now {
		if !h.snapshots[snapshot][key] {
			left[key] = true
		}
	}
	return left
}

// within reports whether a snapshot is of the present history.
func (h *history) within(snapshot string) bool { return slices.Contains(h.path, snapshot) }
