package api

import (
	"cmp"
	"context"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
)

// watched is a world whose journal is followed, to be counted: by whoever asks, and
// otherwise now and then.
type watched struct {
	*hosted

	counting chan struct{} // holds whoever counts, and changes what follows
	counters
	counted journal.Seq // the last record that was
	ended   error       // why no more will be
}

func newWatched(h *hosted) *watched {
	return &watched{hosted: h, counting: make(chan struct{}, 1), counters: newCounters(h), counted: h.Local.Head().ID}
}

// countEvery is how many records are counted at once where nobody asks: to look at each
// batch when it comes would cost more than the counting.
const countEvery = 16 << 10

// watch counts until ctx or the journal ends.
func (w *watched) watch(ctx context.Context) {
	for last, err := w.countUp(ctx); err == nil; last, err = w.countUp(ctx) {
		if err = w.Local.Await(ctx, last+countEvery-1); err != nil {
			_, _ = w.countUp(ctx) // what came before the end
			return
		}
	}
}

// countUp counts all that is in the journal now, and returns the last record that is
// counted. The error is that of ctx, or why no more will be.
func (w *watched) countUp(ctx context.Context) (journal.Seq, error) {
	to := w.Local.Head().ID
	select {
	case w.counting <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-w.counting }()
	if w.counted >= to || w.ended != nil {
		return w.counted, w.ended
	}
	ended := w.Local.Await(ctx, to-1) // what is counted is durable
	for r, err := range w.Local.Scan(w.counted) {
		if err == nil && r.ID > to {
			break
		}
		if err == nil && ended != nil {
			err = w.Local.Await(ctx, r.ID-1)
		}
		if ended = cmp.Or(err, ended); err != nil {
			break
		}
		w.count(&r)
		w.counted = r.ID
	}
	if ctx.Err() != nil {
		return w.counted, ctx.Err()
	}
	w.ended = ended
	return w.counted, ended
}

// count takes what a record tells. One that cannot be read tells nothing.
func (w *watched) count(r *journal.Scanned) {
	switch r.Record.Kind {
	case journal.KindSubmitted:
		w.events.Inc()
		return
	case journal.KindFailed:
		w.steps.WithLabelValues("failed").Inc()
		return
	case journal.KindAwaitingApproval:
		w.decisions.WithLabelValues(governance.RequireApproval.String()).Inc()
		return
	case journal.KindDenied:
		w.decisions.WithLabelValues(governance.Deny.String()).Inc()
		w.outcomes.WithLabelValues(string(receipt.OutcomePermanentFailure)).Inc()
		return
	case journal.KindStepped, journal.KindIntent, journal.KindFinished, journal.KindLate, journal.KindEnded, journal.KindConfirmed:
	default:
		return
	}
	if e, err := w.Load(r.Record, r.Bytes); err == nil {
		w.countEntry(e)
	}
}

func (w *watched) countEntry(e *view.Entry) {
	switch b := e.Body.(type) {
	case *journal.Stepped:
		w.steps.WithLabelValues(string(b.Outcome)).Inc()
	case *journal.IntentEmitted:
		w.decisions.WithLabelValues(b.Decision).Inc()
	case *journal.IntentEnded:
		w.outcomes.WithLabelValues(string(b.Outcome)).Inc()
	case *journal.Confirmed:
		if b.Mode == manifest.VerifyWarn && b.Verdict != receipt.Happened {
			w.warnings.Inc()
		}
	case *journal.Late:
		w.late.Inc()
	case *journal.Finished:
		if r, err := receipt.Decode(b.Receipt); err == nil {
			w.receipts.WithLabelValues(string(r.Status)).Inc()
			w.outcomes.WithLabelValues(string(r.Outcome())).Inc()
			w.uses(r.Kind, &r.Cost)
		}
	}
}
