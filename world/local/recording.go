package local

import (
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// recording reads the receipts of the world in a directory, so that they can
// answer the effects of another.
func recording(dir string, opts Options) (*host.Recording, error) {
	opts.Effects = ""
	lw, err := own(dir, opts)
	if err != nil {
		return nil, fmt.Errorf("recorded effects: %w", err)
	}
	r, err := host.NewRecording(dir, lw.recorded())
	if closed := lw.store.Close(); err == nil {
		err = closed
	}
	return r, err
}

// recorded yields the answers that the world's intents got, each attempt's in
// its turn. What a person said of an intent in doubt is one, too.
func (lw *World) recorded() iter.Seq2[host.Recorded, error] {
	return func(yield func(host.Recorded, error) bool) {
		intents := make(map[receipt.Key]host.Recorded)
		for s, err := range lw.store.Scan(0) {
			if err == nil {
				err = s.Err
			}
			var answer *host.Recorded
			if err == nil {
				answer, err = lw.answerIn(s.Record, intents)
			}
			if err != nil {
				yield(host.Recorded{}, err)
				return
			}
			if answer != nil && !yield(*answer, nil) {
				return
			}
		}
	}
}

// answerIn returns the answer that a record holds, or nil. It remembers the
// intents that ask.
func (lw *World) answerIn(rec journal.Record, intents map[receipt.Key]host.Recorded) (*host.Recorded, error) {
	switch rec.Kind {
	case journal.KindIntent, journal.KindFinished, journal.KindEnded:
	default:
		return nil, nil
	}
	body, err := rec.LoadBody(lw.store)
	if err != nil {
		return nil, err
	}
	switch b := body.(type) {
	case *journal.IntentEmitted:
		intents[b.Key] = host.Recorded{Cell: b.Cell, Kind: b.Kind, Params: b.Params, Occurrence: b.Occurrence}
	case *journal.IntentEnded:
		answer := intents[b.Key]
		if b.Status == receipt.StatusOK {
			answer.Result = host.Result{Status: b.Status, Payload: b.Payload}
			return &answer, nil
		}
	case *journal.Finished:
		r, err := receipt.Decode(b.Receipt)
		if err != nil {
			return nil, err
		}
		answer := intents[r.Key]
		answer.Result = host.Result{
			Status: r.Status, Class: r.Class, Unsent: r.Unsent, Payload: r.Payload, Cost: r.Cost, Exact: r.Exact,
			ExternalRef: r.ExternalRef, StateChange: r.StateChange,
		}
		answer.Result.Cost.Calls = 0 // the host counts them
		return &answer, nil
	}
	return nil, nil
}
