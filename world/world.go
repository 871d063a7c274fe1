// Package world is the kernel of a world of agents: it folds a journal into cells.
//
// A [World] is the single-threaded stepper around a pure kernel. It takes an input, lets the kernel
// compute the consequences, has the journal make them durable, and only then acknowledges the input and
// hands permits to the host. It starts no goroutine, reads no clock and does no I/O: the journal and the
// [Host] do. Package world/local wires them to a directory, package world/worldtest to memory.
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

	cfg         Config
	host        Host
	flight      []flight                       // batches under way, oldest first
	spare       []ready                        // memory of earlier batches, for reuse
	held        []receipt.Task                 // tasks of an earlier process, until the world is driven
	came        []receipt.Answer               // answers of the host, not yet handled
	answers     map[receipt.Key][]byte         // receipts of deterministic effects, not yet admitted
	found       []receipt.Answer               // findings of verifiers, until the tick is over
	asked       int                            // number of verifiers under way
	passing     bool                           // the wall clock is past the tick under way: see tickOf
	confirming  map[receipt.Key]bool           // recorded results under confirmation; false: the verifier could not tell
	answerOrder AnswerOrder                    // order of answers; nil: the order of permits
	failures    map[receipt.Key]receipt.Answer // deterministic effects without a receipt, until their turn: in doubt or, with telling, failed
	saved       journal.Seq                    // head of the last image
	durable     journal.Seq                    // last record known to be durable
	broken      error
	lacks       error // a *reducer.MissingError
}

// Lacks returns nil, or a *reducer.MissingError if this program has no code for a reducer. Such a world
// is read-only, and shows the state before the first record of that reducer.
func (w *World) Lacks() error { return w.lacks }

// Submit takes an event and returns its record, durable. An *InputError is a refusal: nothing has
// changed.
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

// Accept is Submit without the wait: the event is durable when Sync returns. So several events share a
// sync. An event with the key of an earlier event is not submitted again: Accept returns the earlier result.
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

// SubmitAll takes events up to the first refusal or the first error of the sequence. It returns the
// number of events taken, all durable, and the record of the first of them (0 if there is none); the
// records of the others follow without a gap.
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

// bulkBytes is the size of a batch of SubmitAll.
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

// Receive takes the receipt of an effect in flight and returns its record, durable. The errors are
// those of package receipt.
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

// Resume lets a halted cell go on, with the failed event or without it, and returns the record. actor
// decides ("": unnamed); reason may be empty.
func (w *World) Resume(ctx context.Context, cell reducer.Cell, how Resumption, actor, reason string) (journal.Seq, error) {
	b := journal.Resumed{Skip: how == SkipEvent, Actor: actor, Reason: reason}
	return w.synced(w.input(ctx, func() error { return w.k.resume(cell, b) }))
}

// synced makes the consequences of an input durable, unless err refuses the input.
func (w *World) synced(id journal.Seq, err error) (journal.Seq, error) {
	if err != nil {
		return 0, err
	}
	return id, w.sync()
}

// Resumption says how a halted cell goes on.
type Resumption int

// The ways of Resume.
const (
	RetryEvent Resumption = iota // handle the event that failed once more
	SkipEvent                    // drop it
)

// Resolve takes a person's decision about an intent that awaits a person or is in doubt, and returns its record,
// durable. An *InputError is a refusal.
func (w *World) Resolve(ctx context.Context, b journal.Resolved) (journal.Seq, error) {
	return w.synced(w.input(ctx, func() error {
		if err := w.addParams(&b); err != nil {
			return err
		}
		return w.resolveOne(b)
	}))
}

// ResolveAll takes a person's decisions about several intents as a single input: after a crash all are
// there or none is; on return all are durable. stood are the same intents as the person saw them. A decision
// is refused if its intent has changed since, or was attempted again; the others are taken all the same.
// refused has an error for each refused decision, in their order, and nil for the others.
func (w *World) ResolveAll(ctx context.Context, all []journal.Resolved, stood []receipt.Entry) (refused []error, err error) {
	refused = make([]error, len(all))
	_, err = w.synced(w.input(ctx, func() error {
		bodies := slices.Clone(all)
		for i := range bodies { // first of all: an unreadable record must not leave half of the decisions
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

// addParams completes the decision to try a failed intent again with the intent's params. An ended intent
// keeps none in memory, so they are read from the record of the intent.
func (w *World) addParams(b *journal.Resolved) error {
	e := w.k.ledger.Entry(b.Key)
	if e == nil || !endedInFailure(e, b) || len(b.Payload) > 0 {
		return nil
	}
	var err error
	b.Payload, err = paramsOf(w.cfg.History, e)
	return err
}

// ConfirmByHand takes a person's word for a recorded result that its verifier could not confirm, and
// returns the record.
func (w *World) ConfirmByHand(ctx context.Context, key receipt.Key, actor, reason string) (journal.Seq, error) {
	b := journal.Confirmed{Key: key, Mode: modePerson, Verdict: receipt.Happened, Actor: actor, Reason: reason}
	return w.synced(w.input(ctx, func() error { return w.k.confirm(b) }))
}

// Emit takes an effect from a person and returns its record. The effect goes through the same gate and
// ledger as effects of cells, and begins with the next tick.
func (w *World) Emit(ctx context.Context, b journal.OperatorEffect) (id journal.Seq, key receipt.Key, err error) {
	id, err = w.synced(w.input(ctx, func() error {
		key, err = w.k.submitEffect(b)
		return err
	}))
	return id, key, err
}

// NoteRotation records a new signing key for receipts, and returns the record.
func (w *World) NoteRotation(ctx context.Context, b journal.KeysRotated) (journal.Seq, error) {
	return w.synced(w.input(ctx, func() error { return w.k.rotated(b) }))
}

// Step runs the next tick, even if it is empty, and waits for every receipt at the barrier of its
// round. The results are durable on return. With a real clock the error is ErrRealClock.
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

// Progress is the outcome of Next.
type Progress int

// The outcomes of Next.
const (
	Idle    Progress = iota // nothing can happen without another input
	Waiting                 // the next thing comes from the outside or the wall clock: see Wait and NextDue
	Handled                 // answers of the outside were handled
	Ticked                  // a tick ran
)

// Next does one thing that needs no wait for the outside: it handles answers that have come, or runs the
// next tick that has something to do, skipping empty ticks. With a real clock no tick runs early. Results are
// durable when Next returns Idle; until then they are on their way to the disk.
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
		return Waiting, w.appendAll() // events of others may be among it
	}
	if err := w.sync(); err != nil {
		return Idle, err
	}
	// Verifiers are under way now that their records are durable; the wall clock may bring timers.
	_, wakes := k.wake(true)
	if w.asked > 0 || byClock && (len(k.scheduled)+len(k.timers) > 0 || wakes) {
		return Waiting, nil
	}
	return Idle, nil
}

// Asking reports whether verifiers are under way.
func (w *World) Asking() bool { return w.asked > 0 || w.awaitsConfirmation() }

// Sync makes the results of Next durable.
func (w *World) Sync() error { return w.sync() }

// Wait blocks until an answer of the outside comes, or ctx ends. Other calls may be made meanwhile.
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

// tick runs a tick from its beginning to its end.
func (w *World) tick(ctx context.Context, to manifest.Tick, patient bool) error {
	if err := w.k.advance(to, false); err != nil {
		return err
	}
	return w.finishRounds(ctx, patient)
}

// finishTick ends a tick that was interrupted by a crash or an error: inputs come between ticks, never
// within one.
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

// rounds runs the rounds of a tick. In a round each cell with mail has a turn; at the barrier after it
// receipts are admitted. The tick ends when no mail and no receipt is left.
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
