package world

import (
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// An intent in the place of another one. What has ended stays ended (see
// docs/adr/0036-tried-again-is-another-intent.md): where a person has it tried again, or
// edits what waits for approval, an intent of its own asks, which the gate judges anew and
// whose receipt goes to the same cell under the same tag. What the cell had cancelled it is
// told apart there, too.

// What the step of an intent is given behind its own in the place of which it is asked for.
const (
	stepAgain  = "!again"
	stepEdited = "!edited"
)

// InPlaceOf returns the step of the intent in the place of which one of a step was asked for;
// false: it was asked for in no other's place.
func InPlaceOf(step receipt.StepID) (receipt.StepID, bool) {
	for _, behind := range []string{stepAgain, stepEdited} {
		if of, ok := strings.CutSuffix(string(step), behind); ok {
			return receipt.StepID(of), true
		}
	}
	return "", false
}

// endedInFailure reports whether a decision is about an intent that failed for good.
func endedInFailure(e *receipt.Entry, b *journal.Resolved) bool {
	again := b.How == journal.RetryAnyway || b.How == journal.NotExecuted && !ByVerifier(b.Actor)
	return again && e.State == receipt.StateFailed
}

// inPlaceOf returns the intent that a decision has asked for in the place of another one, or
// why there can be none.
func (d *decision) inPlaceOf() (*receipt.Intent, error) {
	e := d.e
	step := e.Intent.Step + stepAgain
	if d.How == journal.Edit {
		step = e.Intent.Step + stepEdited
	}
	switch {
	case len(d.Payload) == 0:
		return nil, refuse(ErrBadData, "params", "say what is to be asked for")
	case e.For != nil:
		return nil, refuse(ErrNotWaiting, "key", "%s makes up for %s", d.Key, *e.For)
	case e.Abandoned:
		return nil, refuse(ErrNotWaiting, "key", "a rollback left %s behind", d.Key)
	case d.How == journal.Edit && !e.Untouched():
		return nil, refuse(ErrNotWaiting, "key", "%s was attempted", d.Key)
	case d.How == journal.Edit && canon.Sum(d.Payload) == e.Params:
		return nil, refuse(ErrSameParams, "params", "those are the params that %s has", d.Key)
	case d.How != journal.Edit && canon.Sum(d.Payload) != e.Params:
		return nil, refuse(ErrOtherParams, "params", "they are not those of %s", d.Key)
	}
	if d.How != journal.Edit {
		if err := d.triable(); err != nil {
			return nil, err
		}
	}
	in := d.intent(step, e.Intent.Cell, e.Intent.Kind, d.Payload)
	for x := d.ledger.Entry(in.Key); x != nil && d.ledger.deniedInHistory(x); x = d.ledger.Entry(in.Key) {
		if last := d.ledger.lastEdit(x); !d.ledger.deniedInHistory(last) {
			return nil, refuse(ErrNotWaiting, "key", "%s was asked for in its place", last.Intent.Key)
		}
		step += stepAgain // each is decided about once: the next is in the place of the one that was denied
		in = d.intent(step, e.Intent.Cell, e.Intent.Kind, d.Payload)
	}
	in.Tag, in.Cap = e.Intent.Tag, e.Intent.Cap
	if d.How == journal.NotExecuted {
		defer d.asReleased(e)()
	}
	return &in, d.mayAsk(&in)
}

// triable returns why an intent that failed for good cannot be asked for again: what may have
// happened takes somebody who says that it did not.
func (d *decision) triable() error {
	e, key := d.e, d.Key
	switch {
	case e.Outcome == receipt.OutcomeCompensated || e.Undone != 0:
		return refuse(ErrNotWaiting, "key", "%s was made up for", key)
	case d.cancelledByCell(e):
		return refuse(ErrNotWaiting, "key", "its cell has cancelled %s", key)
	case e.Held != nil:
		return refuse(ErrNotWaiting, "key", "the compensation of %s is under way", key)
	case d.How == journal.RetryAnyway && e.MayHaveHappened():
		return refuse(ErrMayBeDone, "key", "%s", key)
	}
	return nil
}

// mayAsk returns why an intent cannot be asked for in the place of another one: that was done
// before, or the gate denies it.
func (d *decision) mayAsk(in *receipt.Intent) error {
	if x := d.ledger.Entry(in.Key); x != nil && x.State != receipt.StateDenied {
		if !x.Abandoned {
			return refuse(ErrNotWaiting, "key", "%s was asked for in its place", in.Key)
		}
		return nil // the ledger has the answer
	}
	if _, ok := d.rules.manifest.Effects[in.Kind]; !ok {
		return refuse(ErrNoEffect, "kind", "%q", in.Kind)
	}
	asker, err := reducer.ParseCell(in.Cell)
	if err != nil {
		return err
	}
	if is := d.decide(asker, in, false); is.Verdict == governance.Deny {
		return refuse(ErrGate, "key", "%s: %s", is.Code, is.Reason)
	}
	return nil
}

// askInstead asks for an intent in the place of another one. One that awaits approval ends with it, and
// its cell is told of the other's end only.
func (d *decision) askInstead(in receipt.Intent, cause journal.Seq) {
	e := d.e
	asker, _ := reducer.ParseCell(in.Cell) // mayAsk has parsed it
	c := d.cells.get(asker)
	switch d.How { //nolint:exhaustive // a retry leaves it as it is
	case journal.Edit:
		why := receipt.Explanation(codeEdited, in.Key.String()+" is asked for in its place: "+d.Actor+": "+d.Reason)
		id := d.writeEnded(e, cause, receipt.StatusCancelled, receipt.OutcomePermanentFailure, why)
		d.release(e)
		d.ledger.Cancel(e, uint64(id))
		if c != nil {
			c.awaited(e.Intent.Key, nil)
		}
	case journal.NotExecuted:
		d.release(e)
		e.Uncertain = false
		d.ledger.Change(e)
	}
	if c == nil || asker.Reducer == reducer.Operator {
		d.judge(asker, in, cause, nil)
		return
	}
	d.touch(c)
	in.Occurrence = d.counts.add(c, in.Kind, in.Params)
	asked := d.ledger.Entry(in.Key) // in a history that a rollback has left
	if asked != nil && d.isApart(e) {
		d.setApart(asked, cause)
	}
	d.put(c, in, cause)
	if asked == nil && d.isApart(e) {
		d.setApart(d.ledger.Entry(in.Key), cause)
	}
}
