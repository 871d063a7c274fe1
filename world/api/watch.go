package api

import (
	"context"
	"sync"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/view"
)

// watched is a world whose journal is followed, to be counted.
type watched struct {
	*hosted
	counters
	doubted map[receipt.Key]bool // the intents in doubt; watch's alone

	mu      sync.Mutex
	counted journal.Seq   // the last record that was
	ended   error         // why no more will be
	news    chan struct{} // closed when one of these changes
}

func newWatched(h *hosted, n counters) *watched {
	w := &watched{hosted: h, counters: n, doubted: make(map[receipt.Key]bool), news: make(chan struct{})}
	h.Local.View(func(now *world.Moment) {
		w.counted = now.Head().ID
		if now.Status().Intents[receipt.StateInDoubt] == 0 {
			return // the common case, without a look at every intent
		}
		for _, e := range now.Intents() {
			if e.State == receipt.StateInDoubt {
				w.doubted[e.Intent.Key] = true
			}
		}
	})
	w.inDoubt.Set(float64(len(w.doubted)))
	return w
}

// watch counts until ctx or the journal ends.
func (w *watched) watch(ctx context.Context) {
	last := w.counted
	err := ctx.Err()
	for err == nil {
		if err = w.Local.Await(ctx, last); err != nil {
			break
		}
		for r, failed := range w.Local.Scan(last) {
			if failed == nil {
				failed = w.Local.Await(ctx, r.ID-1) // what is counted is durable
			}
			if err = failed; err != nil {
				break
			}
			w.count(&r)
			last = r.ID
		}
		w.reach(last, nil)
	}
	w.reach(last, err)
}

// reach takes note of what was counted.
func (w *watched) reach(last journal.Seq, ended error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counted, w.ended = last, ended
	close(w.news)
	w.news = make(chan struct{})
}

// await returns when all that is in the journal now is counted.
func (w *watched) await(ctx context.Context) error {
	for head := w.Local.Head().ID; ; {
		w.mu.Lock()
		there, news := w.counted >= head || w.ended != nil, w.news
		w.mu.Unlock()
		if there {
			return nil // where the world has ended, that is all that will be counted
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
	case journal.KindParked:
		w.decisions.WithLabelValues(governance.RequireApproval.String()).Inc()
		return
	case journal.KindDenied:
		w.decisions.WithLabelValues(governance.Deny.String()).Inc()
		w.outcomes.WithLabelValues(string(receipt.OutcomePermanentFailure)).Inc()
		return
	case journal.KindStepped, journal.KindIntent, journal.KindFinished, journal.KindLate, journal.KindEnded, journal.KindConfirmed,
		journal.KindInDoubt, journal.KindResolved, journal.KindStarted, journal.KindWaiting:
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
		return
	case *journal.IntentEmitted:
		w.decisions.WithLabelValues(b.Decision).Inc()
		return
	case *journal.InDoubt:
		if b.Action == manifest.InDoubtRetry {
			return // it is attempted again
		}
		w.doubted[b.Key] = true
		w.inDoubt.Set(float64(len(w.doubted)))
		return
	case *journal.IntentEnded:
		w.outcomes.WithLabelValues(string(b.Outcome)).Inc()
	case *journal.Confirmed:
		if b.Mode == manifest.VerifyWarn && b.Verdict != receipt.Happened {
			w.warnings.Inc()
		}
		return
	case *journal.Late:
		w.late.Inc()
		return
	case *journal.Finished:
		if r, err := receipt.Decode(b.Receipt); err == nil {
			w.receipts.WithLabelValues(string(r.Status)).Inc()
			w.outcomes.WithLabelValues(string(r.Outcome())).Inc()
			w.uses(r.Kind, &r.Cost)
		}
	}
	// Whatever else is said of an intent ends the doubt about it.
	if key, _ := e.Intent(); w.doubted[key] {
		delete(w.doubted, key)
		w.inDoubt.Set(float64(len(w.doubted)))
	}
}
