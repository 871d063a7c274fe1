package local

import (
	"cmp"
	"errors"
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// recording reads the receipts of the world in a directory, so that they can
// answer the effects of another.
func recording(dir string, opts Options) (*host.Recording, error) {
	asked := opts.asked
	opts.Effects, opts.asked, opts.live, opts.Log = "", 0, nil, nil
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
		answers := newAnswering(lw.store, cmp.Or(asked, never))
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
	asked   journal.Seq                      // what is asked for later is left out
	open    map[receipt.Key]*host.Recorded   // asked for
	order   []*host.Recorded                 // in which they were
	rules   *manifest.Manifest               // in force; nil: those are gone
	began   map[*host.Recorded]manifest.Tick // the tick of the first permit
	doubt   map[receipt.Key]bool             // an attempt was given up, and nobody has said since that it did not happen
}

func newAnswering(h journal.History, asked journal.Seq) *answering {
	return &answering{history: h, asked: asked, open: make(map[receipt.Key]*host.Recorded), began: make(map[*host.Recorded]manifest.Tick), doubt: make(map[receipt.Key]bool)}
}

// in returns the answer that a record holds, or nil. It remembers the intents that ask.
func (a *answering) in(rec journal.Record) (*host.Recorded, error) {
	switch rec.Kind {
	case journal.KindCreated, journal.KindForked, journal.KindApplied, journal.KindStarted, journal.KindIntent, journal.KindFinished, journal.KindWaiting, journal.KindEnded, journal.KindDenied, journal.KindExpired, journal.KindResolved:
	default:
		return nil, nil
	}
	body, err := rec.LoadBody(a.history)
	if err != nil {
		return nil, err
	}
	switch b := body.(type) {
	case *journal.Created:
		return nil, a.govern(b.Manifest)
	case *journal.Forked:
		return nil, a.govern(b.Manifest)
	case *journal.Applied:
		return nil, a.govern(b.Manifest)
	case *journal.Started:
		a.begun(b.Key, rec.Time)
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

// govern notes which rules are in force from here on.
func (a *answering) govern(hash manifest.Hash) error {
	data, err := a.history.Blob(hash)
	if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrRedacted) {
		a.rules = nil
		return nil
	}
	if err == nil {
		a.rules, err = manifest.Decode(data)
	}
	return err
}

// begun notes as what an effect is asked, whose attempt begins.
func (a *answering) begun(key receipt.Key, now manifest.Tick) {
	r := a.open[key]
	if r == nil {
		return
	}
	if _, again := a.began[r]; !again {
		a.began[r] = now
	}
	r.Means = canon.Sum(nil) // which no effect is declared as
	if a.rules != nil {
		e := a.rules.Effects[r.Kind]
		r.Means = e.Means()
	}
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

// otherwise counts by kind what the world's effects were answered after a record, of those
// that are declared otherwise in other rules, and that use has to do with.
func (lw *World) otherwise(after journal.Seq, rules *manifest.Manifest, use func(*receipt.Intent) bool) (map[string]uint64, error) {
	now := make(map[string]canon.Hash, len(rules.Effects))
	for kind, e := range rules.Effects {
		now[kind] = e.Means()
	}
	counted := make(map[*host.Recorded]bool)
	n := make(map[string]uint64)
	answers := newAnswering(lw.store, never)
	for s, err := range lw.store.Scan(0) {
		if err = errors.Join(err, s.Err); err != nil {
			return nil, err
		}
		r, err := answers.in(s.Record)
		if err != nil {
			return nil, err
		}
		if r == nil || s.ID <= after || counted[r] || r.Means.IsZero() {
			continue
		}
		is, ok := now[r.Kind]
		if ok && is != r.Means && use(&receipt.Intent{Cell: r.Cell, Kind: r.Kind, Params: r.Params, Occurrence: r.Occurrence}) {
			counted[r] = true
			n[r.Kind]++
		}
	}
	return n, nil
}
