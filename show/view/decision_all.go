package view

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Why nothing can be decided about several intents at once.
var (
	ErrNoFilter     = errors.New("which intents? Select them by cell, kind, since or state")
	ErrStateDecides = errors.New("no such decision is about intents in that state")
	ErrOtherIntents = errors.New("the intents are others by now than those that were listed")
)

// Batch says what a person decides about several intents at once, and about which.
type Batch struct {
	How     journal.Resolution
	Payload journal.Data // what the cell of each is told
	Filter  IntentFilter
	Digest  *journal.Hash // of a DecidedAll: only if the filter selects the same still; nil: whichever they are
	Most    int           // decided about at once; 0: all
	Bytes   int           // of params, reasons and what is told, together, but for the first; 0: any number
}

// DecidedAll is what became of the intents that a person has decided about at once, or
// would.
type DecidedAll struct {
	Done    bool              `json:"done"`    // false: it is what would be decided
	Digest  journal.Hash      `json:"digest"`  // of the decision, the intents that are meant, and their attempts
	Intents []IntentLine      `json:"intents"` // that are decided, as they are now
	More    int               `json:"more"`    // that the filter selects, beyond what is decided at once
	Refused []RefusedDecision `json:"refused"`

	// Begun are those that a stop passes over, by where they stand: open are those that the
	// outside has accepted. What may have happened is not undone. Empty of other decisions.
	Begun map[receipt.State]int `json:"begun"`

	entries []receipt.Entry // that are meant
}

// RefusedDecision is an intent about which nothing was decided, and why.
type RefusedDecision struct {
	Key    receipt.Key `json:"key"`
	Reason string      `json:"reason"`
}

// undecided returns the intents about which a decision would be, of those that a filter
// selects: what failed for good only where the filter says so. The error is ErrNoFilter,
// ErrStateDecides, or that of Selected.
func (j Journal) undecided(how journal.Resolution, f IntentFilter) ([]receipt.Entry, error) {
	want, known, failed := receipt.StateInDoubt, "in_doubt", false
	switch how { //nolint:exhaustive // an answer, and an edit, is about one
	case journal.Stop:
		return j.stoppable(f)
	case journal.Approve, world.Reuse:
		want, known = receipt.StateAwaitingApproval, "awaiting_approval"
	case journal.Disapprove:
		want, known = StateAwaiting, "awaiting a person"
		if f.State.AwaitsPerson() {
			want = f.State
		}
	case journal.RetryAnyway, journal.NotExecuted:
		known, failed = "in_doubt or failed", f.State == receipt.StateFailed
	}
	switch {
	case f == IntentFilter{}:
		return nil, ErrNoFilter
	case f.State == "":
		f.State = want
	case f.State != want && !failed:
		return nil, &world.InputError{Err: ErrStateDecides, Field: "state", Rule: fmt.Sprintf("%s is about those that are %s", how, known)}
	}
	entries, err := j.Selected(f)
	if err != nil {
		return nil, err
	}
	places := j.places()
	return slices.DeleteFunc(entries, func(e receipt.Entry) bool {
		next := places[e.Intent.Step]
		askedAgain := next != nil && next.State != receipt.StateDenied
		return failed && (askedAgain || e.Abandoned || e.For != nil || e.Outcome == receipt.OutcomeCompensated)
	}), nil
}

// stoppable returns the intents of a filter that are not begun, in flight or not.
func (j Journal) stoppable(f IntentFilter) ([]receipt.Entry, error) {
	switch f.State {
	case "", receipt.StateOpen, receipt.StateAwaitingApproval, receipt.StateAwaitingAnswer:
	default:
		return nil, &world.InputError{Err: ErrStateDecides, Field: "state", Rule: "stop is about those that are open, awaiting_approval or awaiting_answer"}
	}
	if f == (IntentFilter{}) {
		return nil, ErrNoFilter
	}
	state := f.State
	f.State = ""
	entries, err := j.Selected(f)
	queued := j.queued()
	return slices.DeleteFunc(entries, func(e receipt.Entry) bool {
		if queued.Has(&e) {
			return state.AwaitsPerson()
		}
		return !e.NotBegun() || state != "" && e.State != state
	}), err
}

// queued returns what is in flight and not begun.
func (j Journal) queued() (q receipt.Queued) {
	j.Local.View(func(m *world.Moment) { q = m.Queued() })
	return q
}

// notBegun reports whether the attempt of an intent in flight is not begun.
func (r *IntentLines) notBegun(e *receipt.Entry) bool {
	if r.queued == nil {
		r.queued = r.Journal.queued()
	}
	return r.queued.Has(e)
}

// begun counts the intents of a filter that a stop passes over, by where they stand.
func (j Journal) begun(f IntentFilter) (map[receipt.State]int, error) {
	f.State = ""
	entries, err := j.Selected(f)
	n, queued := make(map[receipt.State]int), j.queued()
	for i := range entries {
		e := &entries[i]
		if !e.NotBegun() && !queued.Has(e) && (e.State == receipt.StateOpen || e.State == receipt.StateInFlight || e.State == receipt.StateInDoubt) {
			n[e.State]++
		}
	}
	return n, err
}

// Asking counts the intents of a filter that ask a person something, which approvals pass
// over: each is answered by itself.
func (j Journal) Asking(f IntentFilter) (n int, err error) {
	f.State = receipt.StateAwaitingAnswer
	entries, err := j.Selected(f)
	return len(entries), err
}

// Preview returns what DecideAll would decide about.
func (j Journal) Preview(b Batch) (*DecidedAll, error) {
	entries, err := j.undecided(b.How, b.Filter)
	if err != nil {
		return nil, err
	}
	a := &DecidedAll{Intents: []IntentLine{}, Refused: []RefusedDecision{}, Begun: map[receipt.State]int{}}
	if b.How == journal.Stop {
		if a.Begun, err = j.begun(b.Filter); err != nil {
			return nil, err
		}
	}
	listed := entries
	if b.Most > 0 {
		listed = entries[:min(len(entries), b.Most)]
	}
	lines, err := j.IntentLines(listed)
	if err != nil {
		return nil, err
	}
	bytes := 0
	for i := range listed {
		line, err := lines.Line(entries[i])
		if err != nil {
			return nil, err
		}
		bytes += len(line.Params) + len(line.Reason) + len(b.Payload)
		if b.Bytes > 0 && i > 0 && bytes > b.Bytes {
			break
		}
		a.Intents = append(a.Intents, line)
	}
	a.entries = listed[:len(a.Intents)]
	a.More = len(entries) - len(a.entries)
	a.Digest = digestOf(b.How, a.entries)
	return a, nil
}

// digestOf covers a decision and the intents that it is about, with the attempts that were
// made of them. Their keys cover all that they ask for.
func digestOf(how journal.Resolution, entries []receipt.Entry) journal.Hash {
	text := []byte(how)
	for i := range entries {
		text = append(text, 0)
		text = append(text, entries[i].Intent.Key.Hash[:]...)
		text = binary.BigEndian.AppendUint64(text, attempts(how, &entries[i]))
	}
	return canon.Sum(text)
}

// attempts returns how many attempts were made of an intent; to a stop those that are not begun,
// and those that were taken back, are none.
func attempts(how journal.Resolution, e *receipt.Entry) uint64 {
	switch {
	case how != journal.Stop:
		return e.Attempt
	case e.State == receipt.StateInFlight:
		return e.Attempt - e.Unused - 1
	default:
		return e.Attempt - e.Unused
	}
}

// DecideAll applies a decision to several intents in a single durable batch. d has the actor
// and the reason; the decision is bound to the params of each intent. A stop first takes back
// what the host has not begun. The error is that of Preview, or ErrOtherIntents.
func (j Journal) DecideAll(ctx context.Context, b Batch, d journal.Resolved) (*DecidedAll, error) {
	if b.How == journal.Stop {
		release, err := j.Local.Hold(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	a, err := j.Preview(b)
	switch {
	case err != nil:
		return nil, err
	case b.Digest != nil && *b.Digest != a.Digest:
		return nil, &world.InputError{Err: ErrOtherIntents, Field: "digest", Rule: fmt.Sprintf("%s, theirs is %s", b.Digest, a.Digest)}
	}
	all := make([]journal.Resolved, len(a.entries))
	for i := range a.entries {
		all[i] = d
		all[i].How, all[i].Payload = b.How, b.Payload
		all[i].Key, all[i].Params = a.entries[i].Intent.Key, a.entries[i].Params
	}
	refused, err := j.Local.DecideAll(ctx, all, a.entries)
	if err != nil {
		return nil, err
	}
	a.Done, a.Intents = true, a.Intents[:0]
	var taken []receipt.Entry
	for i, why := range refused {
		if why != nil {
			a.Refused = append(a.Refused, RefusedDecision{all[i].Key, why.Error()})
			continue
		}
		now, _ := j.LedgerEntry(all[i].Key)
		taken = append(taken, now)
	}
	lines, err := j.IntentLines(taken)
	for i := 0; err == nil && i < len(taken); i++ {
		var line IntentLine
		line, err = lines.Line(taken[i])
		a.Intents = append(a.Intents, line)
	}
	return a, err
}
