package local

import (
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// decisions are those that persons made in a past about intents that awaited approval. A world that asks the
// same is told each where it was made there, or at once where it asks later.
type decisions struct {
	asked map[receipt.Key]question       // awaited approval in the past, by its keys
	taken map[question]*journal.Resolved // there, and not here yet
}

// question says what a person is asked about: a request, and what the rules say about it.
type question struct {
	receipt.Request
	seen receipt.ApprovalBasis
}

func questionOf(e *receipt.Entry) (q question, ok bool) {
	if e.State != receipt.StateAwaitingApproval || e.Seen == nil {
		return q, false
	}
	return question{e.Request(), *e.Seen}, true
}

// beginDecisions notes what awaits approval both in the world and in its past.
func (d *decisions) beginDecisions(m *world.Moment) {
	d.asked, d.taken = make(map[receipt.Key]question), make(map[question]*journal.Resolved)
	for _, e := range m.Undecided() {
		if q, ok := questionOf(&e); ok {
			d.asked[e.Intent.Key] = q
		}
	}
}

// takeDecision notes a decision of the past, and reports whether it can be repeated.
func (d *decisions) takeDecision(b *journal.Resolved) bool {
	q, ok := d.asked[b.Key]
	repeated := ok && d.taken[q] == nil && (b.How == journal.Approve || b.How == journal.Disapprove || b.How == journal.Edit)
	if repeated {
		d.taken[q] = b
	}
	return repeated
}

// next returns the decision about the first intent awaiting approval that has one, or nil.
func (d *decisions) next(m *world.Moment) (q question, decision *journal.Resolved) {
	if len(d.taken) == 0 {
		return q, nil
	}
	for _, e := range m.Undecided() {
		q, ok := questionOf(&e)
		if b := d.taken[q]; ok && b != nil {
			b.Key = e.Intent.Key
			return q, b
		}
	}
	return q, nil
}

// decide takes what the record says of a person's question or decision.
func (f *follower) decide(ctx context.Context) error {
	body, err := f.body()
	if err != nil {
		return err
	}
	switch b := body.(type) {
	case *journal.IntentAwaitingApproval:
		f.decisions.asked[b.Key] = question{receipt.Request{Cell: b.Cell, Kind: b.Kind, Params: canon.Sum(b.Params), Occurrence: b.Occurrence}, b.Seen}
	case *journal.Resolved:
		if !f.past.Undecided && f.decisions.takeDecision(b) {
			return f.reach(ctx)
		}
		f.leaveOutPersons(journal.KindResolved, b.Actor)
	case *journal.Confirmed:
		f.leaveOutPersons(journal.KindConfirmed, b.Actor)
	}
	return nil
}

// repeat decides about what awaits approval as the past did. What is refused here waits for a person.
func (f *follower) repeat(ctx context.Context) error {
	for {
		var q question
		var b *journal.Resolved
		f.lw.View(func(m *world.Moment) { q, b = f.decisions.next(m) })
		if b == nil {
			return nil
		}
		delete(f.decisions.taken, q)
		err := f.lw.Update(func(w *world.World) error {
			_, err := w.Resolve(ctx, *b)
			return err
		})
		switch {
		case err == nil:
			f.done.Decided++
		case errors.As(err, new(*world.InputError)):
			f.leaveOut(journal.KindResolved)
		default:
			return err
		}
	}
}
