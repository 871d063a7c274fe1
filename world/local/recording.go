package local

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// pastAnswers is what came of what another world has asked for, and when it was told there.
type pastAnswers struct {
	*host.Recording

	told []*told // the last answer to each request, in the order of the records that tell it; then what has no answer
}

// told is what was asked for in a past, and what came of it. Each attempt's answer takes the place of the one
// before. What a person said of an intent in doubt is one, too.
type told struct {
	host.Recorded
	request receipt.Request
	record  journal.Seq   // that tells it; never: it has no answer
	after   journal.Seq   // the clock.advanced or event.submitted before it, which it follows; never: it has not come
	turns   uint64        // of cells, in its tick before it
	took    manifest.Tick // from its first permit to its answer

	begun bool          // it was permitted
	began manifest.Tick // for the first time
	doubt bool          // an attempt was given up, and nobody has said since that it did not happen
}

// never is after all records.
const never = journal.Seq(math.MaxUint64)

// recording reads the past of the world in a directory, so that it can answer the effects of another.
func recording(dir string, opts Options) (*pastAnswers, error) {
	asked := cmp.Or(opts.asked, never)
	opts.Effects, opts.asked, opts.live, opts.Log = "", 0, nil, nil
	lw, err := own(dir, opts)
	if err != nil {
		return nil, fmt.Errorf("recorded effects: %w", err)
	}
	p, err := readPast(dir, lw.store, asked)
	return p, errors.Join(err, lw.store.Close())
}

// readPast reads the answers to what was asked for up to a record, and what of that has none: but for what
// never happened and never will.
func readPast(name string, h journal.History, asked journal.Seq) (*pastAnswers, error) {
	r := pastReader{history: h, asked: asked, by: make(map[receipt.Key]*told)}
	for s, err := range h.Scan(0) {
		if err = errors.Join(err, s.Err); err == nil {
			err = r.read(s.Record)
		}
		if err != nil {
			return nil, err
		}
	}
	r.settle(never - 1) // at the end
	p := &pastAnswers{told: r.last()}
	var err error
	p.Recording, err = host.NewRecording(name, func(yield func(host.Recorded, error) bool) {
		for _, t := range p.told {
			if !yield(t.Recorded, nil) {
				return
			}
		}
	})
	return p, err
}

// pastReader reads a past, a record at a time.
type pastReader struct {
	history journal.History
	asked   journal.Seq // what is asked for later is left out
	by      map[receipt.Key]*told
	order   []*told            // in which they were asked for
	rules   *manifest.Manifest // in force; nil: those are gone

	after   journal.Seq // see told; never: the tick is over
	turns   uint64      // likewise
	between []*told     // told where the tick was over: see ends
}

// last returns the last answer to each request.
func (r *pastReader) last() []*told {
	last := make(map[receipt.Request]*told)
	for _, t := range r.order {
		if t.Unanswered {
			t.record, t.after = never, never
		} else if t.record == 0 {
			continue // it never happened
		}
		if was := last[t.request]; was == nil || was.Unanswered || !t.Unanswered && was.record < t.record {
			last[t.request] = t
		}
	}
	r.order = slices.DeleteFunc(r.order, func(t *told) bool { return last[t.request] != t })
	slices.SortStableFunc(r.order, func(x, y *told) int { return cmp.Compare(x.record, y.record) })
	return r.order
}

// settle says when those answers came that were told between two ticks.
func (r *pastReader) settle(after journal.Seq) {
	for _, t := range r.between {
		if t.after == never { // else another one came since
			t.after, t.turns = after, 0
		}
	}
	r.between = nil
}

// ends reports whether a kind of input ends the tick, and is not repeated: what is told
// after it waits there for the next one.
func ends(kind journal.Kind) bool {
	switch kind {
	case journal.KindFinished, journal.KindExpired, journal.KindDue, journal.KindConfirmed, journal.KindLate, journal.KindCreated:
		return false
	default:
		return kind.Input()
	}
}

// read takes a record.
func (r *pastReader) read(rec journal.Record) error {
	switch {
	case rec.Kind == journal.KindAdvanced:
		r.after, r.turns = rec.ID, 0
		r.settle(rec.ID)
	case rec.Kind == journal.KindSubmitted:
		r.after = rec.ID
	case rec.Kind == journal.KindStepped || rec.Kind == journal.KindFailed:
		r.turns++
	case ends(rec.Kind):
		r.after = never
	}
	switch rec.Kind {
	case journal.KindCreated, journal.KindForked, journal.KindApplied, journal.KindStarted, journal.KindIntent, journal.KindFinished, journal.KindWaiting, journal.KindEnded, journal.KindDenied, journal.KindExpired, journal.KindResolved:
	default:
		return nil
	}
	body, err := rec.LoadBody(r.history)
	if err != nil {
		return err
	}
	return r.take(&rec, body)
}

func (r *pastReader) take(rec *journal.Record, body journal.Body) error {
	switch b := body.(type) {
	case *journal.Created:
		return r.govern(b.Manifest)
	case *journal.Forked:
		return r.govern(b.Manifest)
	case *journal.Applied:
		return r.govern(b.Manifest)
	case *journal.IntentEmitted:
		if rec.ID <= r.asked && r.by[b.Key] == nil {
			t := &told{Recorded: host.Recorded{Cell: b.Cell, Kind: b.Kind, Params: b.Params, Occurrence: b.Occurrence, Unanswered: true}}
			t.request = t.Request()
			r.by[b.Key] = t
			r.order = append(r.order, t)
		}
	case *journal.Finished:
		return r.finished(rec, b)
	case *journal.Started:
		r.of(b.Key).begin(rec.Time, r.rules)
	case *journal.IntentWaiting:
		if b.Outcome == receipt.OutcomeRetryableFailure {
			t := r.of(b.Key) // that failure is not what came of it
			t.Unanswered, t.record = true, 0
		}
	case *journal.IntentDenied:
		r.never(b.Key)
	case *journal.Expired:
		r.of(b.Key).doubt = true
	case *journal.Resolved:
		if b.How == journal.NotExecuted {
			r.of(b.Key).doubt = false
		}
	case *journal.IntentEnded:
		r.ended(rec, b)
	}
	return nil
}

// of returns what an intent asks for; of one that does not count a told that nobody looks at.
func (r *pastReader) of(key receipt.Key) *told {
	if t := r.by[key]; t != nil {
		return t
	}
	return new(told)
}

// govern notes which rules are in force from here on.
func (r *pastReader) govern(hash manifest.Hash) error {
	data, err := r.history.Blob(hash)
	if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrRedacted) {
		r.rules = nil
		return nil
	}
	if err == nil {
		r.rules, err = manifest.Decode(data)
	}
	return err
}

// begin notes as what an effect is asked, whose attempt begins.
func (t *told) begin(now manifest.Tick, rules *manifest.Manifest) {
	if !t.begun {
		t.begun, t.began = true, now
	}
	t.Means = canon.Sum(nil) // which no effect is declared as
	if rules != nil {
		e := rules.Effects[t.Kind]
		t.Means = e.Means()
	}
}

// finished takes a receipt.
func (r *pastReader) finished(rec *journal.Record, b *journal.Finished) error {
	x, err := receipt.Decode(b.Receipt)
	if err != nil || x.Outcome() == receipt.OutcomeAccepted { // its end is still to come
		return err
	}
	cost := x.Cost
	cost.Calls = 0 // the host counts them
	result := host.Result{
		Status: x.Status, Class: x.Class, Unsent: x.Unsent, Payload: x.Payload, Cost: cost, Exact: x.Exact,
		ExternalRef: x.ExternalRef, StateChange: x.StateChange,
	}
	t := r.of(x.Key)
	switch {
	case !x.GivenBack():
		r.answer(rec, t, result)
	case t.Unanswered && r.asked == never: // nothing was done, which answers what its cell takes back: see ended
		t.Result = result // but where what is not recorded is performed, it is as if the attempt had not been made
	}
	return nil
}

// ended takes the answer of an intent that no receipt ends, if that is one: what its
// cell was told, where nobody knows what became of it outside.
func (r *pastReader) ended(rec *journal.Record, b *journal.IntentEnded) {
	t := r.of(b.Key)
	switch {
	case b.Status == receipt.StatusOK:
		r.answer(rec, t, host.Result{Status: b.Status, Payload: b.Payload})
	case !t.Unanswered:
	case t.Result.Status != "": // it failed, and there was no other attempt
		r.answer(rec, t, t.Result)
	case t.doubt: // an adapter says that it failed, whatever the kernel calls it
		r.answer(rec, t, host.Result{Status: receipt.StatusError, Payload: b.Payload})
	default:
		r.never(b.Key)
	}
}

func (r *pastReader) answer(rec *journal.Record, t *told, result host.Result) {
	t.Unanswered, t.Result = false, result
	t.record, t.after, t.turns, t.took = rec.ID, r.after, r.turns, rec.Time-t.began
	if t.after == never {
		r.between = append(r.between, t)
	}
}

// never notes that an intent was not performed and will not be.
func (r *pastReader) never(key receipt.Key) {
	if t := r.of(key); t.Unanswered {
		t.Unanswered = false
		delete(r.by, key)
	}
}
