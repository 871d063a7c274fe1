package world

import (
	"context"
	"fmt"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// AnswerOrder says which effect in flight is told what came of it next, in a tick and after so
// many turns of cells in it; nil: none yet. A live one is waited for. flight is in
// the order of the permits, and must not be changed.
type AnswerOrder func(now manifest.Tick, turns uint64, flight []*receipt.Entry) *receipt.Entry

// TellBy has cells told what came of their effects as next says, so that a world can live
// through what another one did: there they were told later. nil: of deterministic ones in the
// order of their permits, at once, and of others when it comes. What stands in the way of an answer counts when it is its turn.
func (w *World) TellBy(next AnswerOrder) {
	for _, e := range w.k.ledger.InFlight() {
		key := e.Intent.Key
		if a, failed := w.failures[key]; failed && w.host.Live(&e.Intent) {
			w.came = append(w.came, a)
		} else if failed {
			w.again(e)
		}
		if data, ok := w.answers[key]; ok && w.host.Live(&e.Intent) {
			delete(w.answers, key)
			w.came = append(w.came, receipt.Answer{Key: key, Attempt: e.Attempt, Receipt: data})
		}
	}
	w.answerOrder, w.failures = next, make(map[receipt.Key]receipt.Answer)
}

// again has the host make a deterministic attempt once more.
func (w *World) again(e *receipt.Entry) {
	w.held = append(w.held, receipt.Task{Work: receipt.Perform, Permit: w.k.permit(e)})
}

// RunTick runs a tick as another world did, whether or not there is anything to do in it;
// one that has passed is none, nor one that was run, unless the clock is real: there it
// goes on. still has it permit nothing, as where nobody drove that world. What has come
// before is left for it: Settle handles that. A world whose ticks come by a clock refuses
// it: ErrRealClock.
func (w *World) RunTick(ctx context.Context, at manifest.Tick, still bool) error {
	if _, byClock := w.wall(); byClock {
		return fmt.Errorf("world: %w", ErrRealClock)
	}
	if w.broken != nil {
		return w.broken
	}
	if at < w.k.now || at == w.k.now && !w.k.tickGoesOn() && !still {
		return nil
	}
	if err := comes(w.k.rules.manifest.Clock, at, "to"); err != nil {
		return err
	}
	return w.tickOf(ctx, at, at, still)
}

// Settle handles what has come from outside, and runs no tick.
func (w *World) Settle(ctx context.Context) error {
	if err := w.finishTick(ctx); err != nil {
		return err
	}
	_, err := w.takeAnswers(ctx)
	return err
}

// takeAnswers handles the answers that have come, if there are any.
func (w *World) takeAnswers(ctx context.Context) (handled bool, err error) {
	before := w.k.last
	if err := w.admit(); err != nil {
		return false, err
	}
	if w.k.last == before && len(w.found) == 0 {
		return false, nil
	}
	return true, w.finishRounds(ctx, false)
}
