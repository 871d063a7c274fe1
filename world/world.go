// Package world is the kernel of a world of agents: it folds a journal into
// cells, one event in one direction.
//
// A [World] is the single-threaded stepper around a pure kernel. It takes
// inputs, lets the kernel compute what follows, has the journal make that
// durable, and only then acknowledges inputs and releases permits to the host.
// It starts no goroutine, reads no clock and does no I/O of its own: the
// [Journal] and the [Host] do. Package world/local wires them to a directory,
// package world/worldtest to memory.
package world

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// World is a world in memory. It is not safe for concurrent use. After an
// error of its journal it refuses everything: open it again.
type World struct {
	Moment // now

	cfg        Config
	host       Host
	flight     []flight                       // batches under way, oldest first
	spare      []ready                        // memory for the next
	held       []receipt.Task                 // of a process before, until the world is driven
	came       []receipt.Answer               // from the host, not yet looked at
	answers    map[receipt.Key][]byte         // of deterministic effects, not yet admitted
	found      []receipt.Answer               // of verifiers, until the tick is over
	asked      int                            // verifiers that have not answered
	passing    bool                           // the tick under way has passed by the wall clock: see tickOf
	confirming map[receipt.Key]bool           // recorded results that verifiers were asked about; false: they could not tell
	telling    AnswerOrder                    // nil: in the order of permits
	failures   map[receipt.Key]receipt.Answer // of deterministic effects without a receipt, until it is their turn: in doubt or, with telling, of an error
	saved      journal.Seq                    // head of the last checkpoint
	durable    journal.Seq                    // head of what is known to be durable
	broken     error
	lacks      error // a *reducer.MissingError
}

// Lacks returns nil, or a *reducer.MissingError: then nothing can change the world,
// and it is as it was before the first record that such a reducer has to compute.
func (w *World) Lacks() error { return w.lacks }

// Submit takes an event. It is durable on return; an *InputError says why it
// was refused, and then nothing has changed.
func (w *World) Submit(ctx context.Context, s Submission) (journal.Seq, error) {
	sent, err := w.Accept(ctx, s)
	return w.synced(sent.ID, err)
}

// Sent says where an event from outside went.
type Sent struct {
	ID  journal.Seq   // its record
	Due manifest.Tick // 0: at once
	To  []string      // cells
}

// Accept is Submit, but for several events that are made durable together: this one
// is not before Sync returns.
//
// One that was submitted under its key before is not submitted again: what came of it then is returned.
func (w *World) Accept(ctx context.Context, s Submission) (Sent, error) {
	if s.Key != nil {
		if sent, was, err := w.sentBefore(s.Key); was || err != nil {
			return sent, err
		}
	}
	if err := w.atNow(ctx); err != nil {
		return Sent{}, err
	}
	id, due, err := w.submit(&s)
	if err != nil {
		return Sent{}, err
	}
	sent := Sent{ID: id, Due: due, To: slices.Clone(w.k.named)}
	return sent, w.appendFull()
}

func (w *World) submit(s *Submission) (id journal.Seq, due manifest.Tick, err error) {
	if due, err = s.tick(w.k.rules.manifest.Clock, w.k.now); err != nil {
		return 0, 0, err
	}
	if err = w.within(s.Horizon, due); err != nil {
		return 0, 0, err
	}
	if s.Key != nil {
		if err := errors.Join(s.Key.Check(), w.k.submits.next(s.Key)); err != nil {
			return 0, 0, err
		}
	}
	id, err = w.k.submit(s.Name, s.Data, s.To, due, s.Key)
	return id, due, w.judged(err)
}

// SubmitAll takes events until the first that is refused, or that the sequence has an
// error for. It returns how many were taken, which are durable, and the record of the
// first, 0 where none was; those of the others follow it without a gap.
func (w *World) SubmitAll(ctx context.Context, all iter.Seq2[Submission, error]) (first journal.Seq, taken uint64, err error) {
	first, err = w.input(ctx, func() error {
		taken, err = w.submitAll(ctx, all)
		return err
	})
	if taken == 0 {
		first = 0
	}
	return first, taken, err
}

// bulkBytes is how much data of events that come in bulk is in one batch.
const bulkBytes = 1 << 20

func (w *World) submitAll(ctx context.Context, all iter.Seq2[Submission, error]) (uint64, error) {
	var taken uint64
	bytes := 0 // of data, since the last batch
	start := w.durable
	for s, err := range all {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			_, _, err = w.submit(&s)
		}
		if err != nil {
			err = w.syncAfter(err)
			return min(taken, uint64(w.durable-start)), err
		}
		taken++
		err = w.appendFull()
		if bytes += len(s.Data); err == nil && bytes >= bulkBytes && w.k.pending() > 0 {
			bytes = 0
			err = w.append()
		}
		if err != nil {
			return uint64(w.durable - start), err // an event is one record
		}
	}
	err := w.sync()
	return min(taken, uint64(w.durable-start)), err
}

// Receive takes a receipt that was made for an effect in flight. It is durable
// on return. The errors are those of package receipt, and of a foreign format.
func (w *World) Receive(data []byte) (journal.Seq, error) {
	if w.broken != nil {
		return 0, w.broken
	}
	id, err := w.k.receive(data)
	if err = w.judged(err); err != nil {
		return 0, err
	}
	for key := range w.answers { // order cannot show: each is judged by itself
		if w.k.ledger.Entry(key).State != receipt.StateInFlight {
			delete(w.answers, key)
		}
	}
	for key, a := range w.failures { // order cannot show: likewise
		if !w.inFlight(key, a.Attempt) {
			delete(w.failures, key)
		}
	}
	return id, w.sync()
}

// Resume lets a parked cell go on: with the event that failed, or past it. actor is who
// decides, "" where that is nobody's to say; reason says why, and may be empty. It returns
// its record.
func (w *World) Resume(ctx context.Context, cell reducer.Cell, how Resumption, actor, reason string) (journal.Seq, error) {
	b := journal.Resumed{Skip: how == SkipEvent, Actor: actor, Reason: reason}
	return w.synced(w.input(ctx, func() error { return w.k.resume(cell, b) }))
}

// synced makes durable what an input brought about, unless that was refused.
func (w *World) synced(id journal.Seq, err error) (journal.Seq, error) {
	if err != nil {
		return 0, err
	}
	return id, w.sync()
}

// Resumption says how a parked cell goes on.
type Resumption int

// The ways of Resume.
const (
	RetryEvent Resumption = iota // handle the event that failed once more
	SkipEvent                    // drop it
)

// Resolve takes a person's decision about a parked intent or one in doubt, and
// returns its record. It is durable on return; an *InputError says why it was refused.
func (w *World) Resolve(ctx context.Context, b journal.Resolved) (journal.Seq, error) {
	return w.synced(w.input(ctx, func() error {
		if err := w.addParams(&b); err != nil {
			return err
		}
		return w.resolveOne(b)
	}))
}

// ResolveAll takes a person's decisions about several intents as one input: whatever ends
// the process, all of them are durable or none is, and they are on return. One that is
// refused changes nothing and keeps no other back: refused says why, nil of one that was
// taken, in their order. stood are the intents as they were seen by whoever decides, in the
// same order: one that stands elsewhere since, or was attempted again, is refused.
func (w *World) ResolveAll(ctx context.Context, all []journal.Resolved, stood []receipt.Entry) (refused []error, err error) {
	refused = make([]error, len(all))
	_, err = w.synced(w.input(ctx, func() error {
		bodies := slices.Clone(all)
		for i := range bodies { // before anything is decided: what cannot be read would leave a part
			if err := reasoned(&bodies[i]); err != nil {
				return err
			}
			err := w.addParams(&bodies[i])
			if archived := (*journal.ArchivedError)(nil); err != nil && !errors.Is(err, journal.ErrRedacted) && !errors.As(err, &archived) {
				return err
			}
			refused[i] = err
		}
		for i := range bodies {
			if refused[i] != nil {
				continue
			}
			err := w.Unchanged(&stood[i])
			if err == nil {
				err = w.resolveOne(bodies[i])
			}
			if input := (*InputError)(nil); err != nil && !errors.As(err, &input) {
				return err
			}
			refused[i] = err
		}
		return nil
	}))
	return refused, err
}

func (w *World) resolveOne(b journal.Resolved) error {
	if ByVerifier(b.Actor) {
		return refuse(ErrNoReason, "actor", "%q is the name of a verifier: say who decides", b.Actor)
	}
	return w.k.resolve(b)
}

// addParams gives a decision that has what failed asked for again the params of that. What
// has ended keeps none in memory: they are in the record that made it, which is durable, as
// an input came since.
func (w *World) addParams(b *journal.Resolved) error {
	e := w.k.ledger.Entry(b.Key)
	if e == nil || !endedInFailure(e, b) || len(b.Payload) > 0 {
		return nil
	}
	var err error
	b.Payload, err = paramsOf(w.cfg.History, e)
	return err
}

// ConfirmByHand takes a person's word that a recorded result holds which its
// verifier could not confirm. It returns its record.
func (w *World) ConfirmByHand(ctx context.Context, key receipt.Key, actor, reason string) (journal.Seq, error) {
	b := journal.Confirmed{Key: key, Mode: modePerson, Verdict: receipt.Happened, Actor: actor, Reason: reason}
	return w.synced(w.input(ctx, func() error { return w.k.confirm(b) }))
}

// Emit takes an effect that a person asks for and returns its record: it goes through
// the same gate and ledger as any other, and begins with the next tick.
func (w *World) Emit(ctx context.Context, b journal.OperatorEffect) (id journal.Seq, key receipt.Key, err error) {
	id, err = w.synced(w.input(ctx, func() error {
		key, err = w.k.submitEffect(b)
		return err
	}))
	return id, key, err
}

// NoteRotation records that receipts are signed with another key from now on. It
// returns its record.
func (w *World) NoteRotation(ctx context.Context, b journal.KeysRotated) (journal.Seq, error) {
	return w.synced(w.input(ctx, func() error { return w.k.rotated(b) }))
}

// Step runs the next tick, whether or not there is anything to do in it, and
// awaits every receipt at the barrier of its round. All it brings about is
// durable on return. With a real clock it is refused: ErrRealClock.
func (w *World) Step(ctx context.Context) error {
	if _, byClock := w.wall(); byClock {
		return fmt.Errorf("world: %w", ErrRealClock)
	}
	if err := w.finishTick(ctx); err != nil {
		return err
	}
	if err := w.tick(ctx, w.k.tickAfter(), true); err != nil {
		return err
	}
	return w.sync()
}

// Progress is what a call of Next came to.
type Progress int

// The outcomes of Next.
const (
	Idle    Progress = iota // nothing can happen without another input
	Waiting                 // only the outside can bring something, or the wall clock: see Wait and NextDue
	Handled                 // answers of the outside were handled
	Ticked                  // a tick was run
)

// Next does what can be done without waiting for the outside: it handles the
// answers that have come, or runs the next tick in which something can happen,
// jumping over those in which nothing can. With a real clock it runs none that has not
// come yet. All it has brought about is durable when it returns Idle; before, it is on
// its way.
func (w *World) Next(ctx context.Context) (Progress, error) {
	if err := w.finishTick(ctx); err != nil {
		return Idle, err
	}
	now, byClock := w.wall()
	if byClock {
		if p, err := w.nextReal(ctx, now); p != Waiting {
			return p, err
		}
	}
	if handled, err := w.takeAnswers(ctx); handled || err != nil {
		return Handled, err
	}
	if at, ok := w.NextTick(); ok && !byClock {
		return Ticked, w.tick(ctx, at, false)
	}
	k := w.k
	if err := w.askConfirmations(); err != nil {
		return Idle, err
	}
	if len(k.ledger.InFlight())+len(k.ledger.Waiting())+w.asked > 0 || w.awaitsConfirmation() || k.stills > 0 {
		return Waiting, nil
	}
	if err := w.sync(); err != nil {
		return Idle, err
	}
	// Verifiers, since the records that ask them are durable; and what the wall clock brings.
	_, wakes := k.wake(true)
	if w.asked > 0 || byClock && (len(k.scheduled)+len(k.timers) > 0 || wakes) {
		return Waiting, nil
	}
	return Idle, nil
}

// Asking reports whether verifiers have been asked what they have not answered.
func (w *World) Asking() bool { return w.asked > 0 || w.awaitsConfirmation() }

// Sync makes durable what Next has brought about so far.
func (w *World) Sync() error { return w.sync() }

// Wait blocks until the outside has brought an answer, or ctx ends. It does not
// touch the world: other calls may be made meanwhile.
func (w *World) Wait(ctx context.Context) error { return w.host.Wait(ctx) }

// Run runs ticks until the world is idle or ctx ends.
func (w *World) Run(ctx context.Context) error {
	for {
		p, err := w.Next(ctx)
		if err == nil && p == Waiting {
			err = w.Wait(ctx)
		}
		if err != nil || p == Idle {
			return err
		}
	}
}

// tick runs one tick, from its beginning to where nothing is left to do.
func (w *World) tick(ctx context.Context, to manifest.Tick, patient bool) error {
	if err := w.k.advance(to, false); err != nil {
		return err
	}
	return w.finishRounds(ctx, patient)
}

// finishTick ends a tick that a crash or an error interrupted, so that no
// other input can come between its parts.
func (w *World) finishTick(ctx context.Context) error {
	if err := w.readable(); err != nil {
		return err
	}
	if err := w.startHeld(); err != nil {
		return err
	}
	if err := w.deliverRecalled(); err != nil {
		return err
	}
	if !w.k.tickOpen() && w.firstDue() == nil {
		return w.autoSnapshot()
	}
	return w.finishRounds(ctx, false)
}

func (w *World) finishRounds(ctx context.Context, patient bool) error {
	if err := w.rounds(ctx, patient); err != nil {
		return err
	}
	if err := w.decideFound(); err != nil {
		return err
	}
	if err := w.autoSnapshot(); err != nil {
		return err
	}
	return w.appendAll()
}

// rounds gives cells their turns, and admits receipts at the barrier after
// each round, until neither is left in this tick.
func (w *World) rounds(ctx context.Context, patient bool) error {
	for {
		for w.k.scheduler.left > 0 {
			if err := w.turn(ctx); err != nil {
				return err
			}
		}
		if err := w.barrier(ctx, patient); err != nil {
			return err
		}
		if !w.k.tickOpen() {
			return nil
		}
		if err := w.turn(ctx); err != nil {
			return err
		}
	}
}
