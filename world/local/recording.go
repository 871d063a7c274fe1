package local

import (
	"cmp"
	"fmt"
	"iter"
	"math"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// recording reads the receipts of the world in a directory, so that they can
// answer the effects of another.
func recording(dir string, opts Options) (*host.Recording, error) {
	asked := opts.orLive
	opts.Effects, opts.orLive, opts.Log = "", 0, nil
	lw, err := own(dir, opts)
	if err != nil {
		return nil, fmt.Errorf("recorded effects: %w", err)
	}
	r, err := host.NewRecording(dir, lw.recorded(asked))
	if closed := lw.store.Close(); err == nil {
		err = closed
	}
	return r, err
}

// recorded yields the answers that the world's intents got, each attempt's in its
// turn. What a person said of an intent in doubt is one, too. With asked, those of what
// was asked for up to that record, and then what of it has no answer: but for what never
// happened and never will.
func (lw *World) recorded(asked journal.Seq) iter.Seq2[host.Recorded, error] {
	return func(yield func(host.Recorded, error) bool) {
		answers := answering{history: lw.store, asked: cmp.Or(asked, math.MaxUint64), open: make(map[receipt.Key]*host.Recorded), doubt: make(map[receipt.Key]bool)}
		var answer *host.Recorded // in the record before: the next one says whether that is what came of it
		for s, err := range lw.store.Scan(0) {
			if err == nil {
				err = s.Err
			}
			before := answer
			if answer = nil; err == nil {
				answer, err = answers.in(s.Record)
			}
			if err != nil {
				yield(host.Recorded{}, err)
				return
			}
			if before != nil && !before.Unanswered && !yield(*before, nil) {
				return
			}
		}
		if answer != nil && !yield(*answer, nil) {
			return
		}
		for _, r := range answers.order {
			if asked != 0 && r.Unanswered && !yield(*r, nil) {
				return
			}
		}
	}
}

// answering reads the answers out of a journal.
type answering struct {
	history journal.History
	asked   journal.Seq                    // what is asked for later is left out
	open    map[receipt.Key]*host.Recorded // asked for
	order   []*host.Recorded               // in which they were
	doubt   map[receipt.Key]bool           // an attempt was given up, and nobody has said since that it did not happen
}

// in returns the answer that a record holds, or nil. It remembers the intents that ask.
func (a *answering) in(rec journal.Record) (*host.Recorded, error) {
	switch rec.Kind {
	case journal.KindIntent, journal.KindFinished, journal.KindWaiting, journal.KindEnded, journal.KindDenied, journal.KindExpired, journal.KindResolved:
	default:
		return nil, nil
	}
	body, err := rec.LoadBody(a.history)
	if err != nil {
		return nil, err
	}
	switch b := body.(type) {
	case *journal.IntentEmitted:
		if rec.ID <= a.asked && a.open[b.Key] == nil {
			r := &host.Recorded{Cell: b.Cell, Kind: b.Kind, Params: b.Params, Occurrence: b.Occurrence, Unanswered: true}
			a.open[b.Key] = r
			a.order = append(a.order, r)
		}
	case *journal.IntentWaiting:
		if r := a.open[b.Key]; r != nil && b.Outcome == receipt.OutcomeRetryableFailure {
			r.Unanswered = true // that failure is not what came of it
		}
	case *journal.IntentDenied:
		a.never(b.Key)
	case *journal.Expired:
		a.doubt[b.Key] = true
	case *journal.Resolved:
		if b.How == journal.NotExecuted {
			delete(a.doubt, b.Key)
		}
	case *journal.IntentEnded:
		return a.ended(b), nil
	case *journal.Finished:
		r, err := receipt.Decode(b.Receipt)
		if err != nil || r.Outcome() == receipt.OutcomeAccepted { // its end is still to come
			return nil, err
		}
		cost := r.Cost
		cost.Calls = 0 // the host counts them
		result := host.Result{
			Status: r.Status, Class: r.Class, Unsent: r.Unsent, Payload: r.Payload, Cost: cost, Exact: r.Exact,
			ExternalRef: r.ExternalRef, StateChange: r.StateChange,
		}
		if r.GivenBack() { // nothing was done, which answers what its cell takes back: see ended
			a.givenBack(r.Key, result)
			return nil, nil
		}
		return a.answer(r.Key, result), nil
	}
	return nil, nil
}

// ended returns the answer of an intent that no receipt ends, if that is one: what its
// cell was told, where nobody knows what became of it outside.
func (a *answering) ended(b *journal.IntentEnded) *host.Recorded {
	r := a.open[b.Key]
	switch {
	case b.Status == receipt.StatusOK:
		return a.answer(b.Key, host.Result{Status: b.Status, Payload: b.Payload})
	case r == nil || !r.Unanswered:
	case r.Result.Status != "": // it failed, and there was no other attempt
		return a.answer(b.Key, r.Result)
	case a.doubt[b.Key]: // an adapter says that it failed, whatever the kernel calls it
		return a.answer(b.Key, host.Result{Status: receipt.StatusError, Payload: b.Payload})
	default:
		a.never(b.Key)
	}
	return nil
}

func (a *answering) answer(key receipt.Key, result host.Result) *host.Recorded {
	r := a.open[key]
	if r == nil {
		return nil
	}
	r.Unanswered, r.Result = false, result
	return r
}

// givenBack notes that an attempt was not begun. Where what is not recorded is performed,
// it is as if it had not been made.
func (a *answering) givenBack(key receipt.Key, result host.Result) {
	if r := a.open[key]; r != nil && r.Unanswered && a.asked == never {
		r.Result = result
	}
}

// never notes that an intent was not performed and will not be.
func (a *answering) never(key receipt.Key) {
	if r := a.open[key]; r != nil && r.Unanswered {
		r.Unanswered = false
		delete(a.open, key)
	}
}
