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

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// World is a world in memory. It is not safe for concurrent use. After an
// error of its journal it refuses everything: open it again.
type World struct {
	cfg     Config
	k       *kernel
	host    Host
	flight  []flight // batches under way, oldest first
	spare   []Ready  // memory for the next
	again   []receipt.Permit
	answers map[receipt.Key][]byte // received, not yet admitted
	saved   Seq                    // head of the last checkpoint
	settled Seq                    // head of what is known to be durable
	broken  error
}

// Submission is an event from outside.
type Submission struct {
	Name string
	Data Data          // canonical; empty is null
	To   *reducer.Cell // nil: where the manifest's routes send it
	At   manifest.Tick // the tick at which it falls due; 0: at once
}

// Submit takes an event. It is durable on return; an *InputError says why it
// was refused, and then nothing has changed.
func (w *World) Submit(ctx context.Context, s Submission) (Seq, error) {
	if err := w.finishTick(ctx); err != nil {
		return 0, err
	}
	id, err := w.k.submit(s.Name, s.Data, s.To, s.At)
	if err != nil {
		return 0, err
	}
	return id, w.sync()
}

// SubmitAll takes events until the first that is refused, or that the sequence
// has an error for. It returns how many were taken; those are durable.
func (w *World) SubmitAll(ctx context.Context, all iter.Seq2[Submission, error]) (uint64, error) {
	if err := w.finishTick(ctx); err != nil {
		return 0, err
	}
	var taken uint64
	start := w.settled
	for s, err := range all {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			_, err = w.k.submit(s.Name, s.Data, s.To, s.At)
		}
		if err != nil {
			err = w.syncAfter(err)
			return min(taken, uint64(w.settled-start)), err
		}
		taken++
		if err := w.appendFull(); err != nil {
			return uint64(w.settled - start), err // an event is one record
		}
	}
	err := w.sync()
	return min(taken, uint64(w.settled-start)), err
}

// Receive takes a receipt that was made for an effect in flight. It is durable
// on return. The errors are those of package receipt, and of a foreign format.
func (w *World) Receive(data []byte) (Seq, error) {
	if w.broken != nil {
		return 0, w.broken
	}
	id, err := w.k.receive(data)
	if err != nil {
		return 0, err
	}
	for key := range w.answers { // order cannot show: each is judged by itself
		if !w.inFlight(key) {
			delete(w.answers, key)
		}
	}
	return id, w.sync()
}

// inFlight reports whether an intent still waits for its receipt.
func (w *World) inFlight(key receipt.Key) bool {
	e := w.k.ledger.Entry(key)
	return e != nil && e.State == receipt.StateInFlight
}

// Resume lets a parked cell go on: with the event that failed, or past it.
func (w *World) Resume(ctx context.Context, cell reducer.Cell, how Resumption) error {
	if err := w.finishTick(ctx); err != nil {
		return err
	}
	if err := w.k.resume(cell, how == SkipEvent); err != nil {
		return err
	}
	return w.sync()
}

// Resumption says how a parked cell goes on.
type Resumption int

// The ways of Resume.
const (
	RetryEvent Resumption = iota // handle the event that failed once more
	SkipEvent                    // drop it
)

// Step runs the next tick, whether or not there is anything to do in it. All
// it brings about is durable on return.
func (w *World) Step(ctx context.Context) error {
	if err := w.finishTick(ctx); err != nil {
		return err
	}
	return w.tick(ctx, w.k.now+1)
}

// Next runs the next tick in which something can happen, jumping over those in
// which nothing can. It reports false, and does nothing, when the world is idle.
func (w *World) Next(ctx context.Context) (bool, error) {
	if err := w.finishTick(ctx); err != nil {
		return false, err
	}
	if w.k.scheduler.ready() > 0 {
		return true, w.tick(ctx, w.k.now+1)
	}
	at, ok := w.k.nextAlarm()
	if !ok {
		return false, nil
	}
	return true, w.tick(ctx, max(at, w.k.now+1))
}

// Run runs ticks until the world is idle or ctx ends.
func (w *World) Run(ctx context.Context) error {
	for {
		if more, err := w.Next(ctx); err != nil || !more {
			return err
		}
	}
}

// tick runs one tick, from its beginning to where nothing is left to do.
func (w *World) tick(ctx context.Context, to manifest.Tick) error {
	if err := w.k.advance(to); err != nil {
		return err
	}
	if err := w.rounds(ctx); err != nil {
		return err
	}
	return w.sync()
}

// finishTick ends a tick that a crash or an error interrupted, so that no
// other input can come between its parts.
func (w *World) finishTick(ctx context.Context) error {
	if w.broken != nil {
		return w.broken
	}
	if !w.k.tickOpen() && len(w.k.ledger.InFlight()) == 0 {
		return nil
	}
	if err := w.rounds(ctx); err != nil {
		return err
	}
	return w.sync()
}

// rounds gives cells their turns, and admits receipts at the barrier after
// each round, until neither is left in this tick.
func (w *World) rounds(ctx context.Context) error {
	for {
		for w.k.scheduler.left > 0 {
			if err := w.turn(ctx); err != nil {
				return err
			}
		}
		if err := w.barrier(ctx); err != nil {
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

func (w *World) turn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return w.syncAfter(err)
	}
	w.k.next()
	return w.appendFull()
}

// barrier admits the receipts of all effects in flight, in the order of their
// permits, and of those that are permitted meanwhile.
func (w *World) barrier(ctx context.Context) error {
	for len(w.k.ledger.InFlight()) > 0 {
		e := w.k.ledger.InFlight()[0]
		data, err := w.await(ctx, e.Intent.Key)
		if err == nil {
			if _, err = w.k.receive(data); err != nil {
				w.again = append(w.again, w.k.permit(e))
			}
		}
		if err != nil {
			return w.syncAfter(err)
		}
		if err := w.appendFull(); err != nil {
			return err
		}
	}
	return nil
}

// await returns the receipt of one effect in flight.
func (w *World) await(ctx context.Context, key receipt.Key) ([]byte, error) {
	for {
		if data, ok := w.answers[key]; ok {
			delete(w.answers, key)
			return data, nil
		}
		if w.withheld() {
			if err := w.sync(); err != nil {
				return nil, err
			}
		}
		w.restart()
		answer, err := w.host.Await(ctx)
		if err != nil {
			return nil, err
		}
		if !w.inFlight(answer.Key) {
			continue // Receive took a receipt for it meanwhile
		}
		if answer.Err != nil {
			e := w.k.ledger.Entry(answer.Key)
			w.again = append(w.again, w.k.permit(e))
			return nil, fmt.Errorf("world: effect %s of %s: %w", e.Intent.Kind, e.Intent.Step, answer.Err)
		}
		w.answers[answer.Key] = answer.Receipt
	}
}

// restart has the host perform once more what it could not answer, or what was
// in flight when the world was opened, but for what Receive has ended since.
func (w *World) restart() {
	ended := func(p receipt.Permit) bool { return !w.inFlight(p.Key) }
	if again := slices.DeleteFunc(w.again, ended); len(again) > 0 {
		w.host.Start(again)
	}
	w.again = nil
}

// appendFull appends what the kernel brought about, if it is enough for a
// batch.
func (w *World) appendFull() error {
	if w.k.pending() < w.cfg.BatchRecords {
		return nil
	}
	return w.append()
}

// withheld reports whether a permit waits for its record to be durable.
func (w *World) withheld() bool {
	return len(w.k.permits) > 0 ||
		slices.ContainsFunc(w.flight, func(f flight) bool { return len(f.ready.Permits) > 0 })
}

// flight is a batch on its way to the disk.
type flight struct {
	pending Pending
	ready   Ready
}

// maxFlight is how many batches may be under way while the next is computed.
const maxFlight = 16

// append hands a batch to the journal, so that the kernel computes while the
// journal syncs.
func (w *World) append() error {
	var memory Ready
	if last := len(w.spare) - 1; last >= 0 {
		memory, w.spare = w.spare[last], w.spare[:last]
	}
	r := w.k.take(memory)
	p, err := w.cfg.Journal.Append(r.Batch)
	if err != nil {
		return w.fail(err)
	}
	w.flight = append(w.flight, flight{pending: p, ready: r})
	if len(w.flight) > maxFlight {
		if err := w.settle(); err != nil {
			return err
		}
	}
	if r.Head.ID-w.saved >= w.cfg.CheckpointRecords {
		return w.Checkpoint()
	}
	return nil
}

// settle waits until the oldest batch under way is durable and releases its
// permits.
func (w *World) settle() error {
	f := w.flight[0]
	w.flight = slices.Delete(w.flight, 0, 1)
	if err := f.pending.Wait(); err != nil {
		return w.fail(err)
	}
	if len(f.ready.Permits) > 0 {
		w.host.Start(f.ready.Permits)
	}
	w.settled = f.ready.Head.ID
	w.spare = append(w.spare, f.ready)
	return nil
}

// sync makes everything durable that has happened.
func (w *World) sync() error {
	if w.broken != nil {
		return w.broken
	}
	if w.k.pending() > 0 {
		if err := w.append(); err != nil {
			return err
		}
	}
	for len(w.flight) > 0 {
		if err := w.settle(); err != nil {
			return err
		}
	}
	return nil
}

// syncAfter makes durable what happened before an error, and returns that.
func (w *World) syncAfter(err error) error {
	if failed := w.sync(); failed != nil && !errors.Is(err, failed) {
		return errors.Join(err, failed)
	}
	return err
}

// Checkpoint stores an image of the world, so that opening it is fast. The
// world does so by itself every Config.CheckpointRecords records.
func (w *World) Checkpoint() error {
	if w.k.pending() > 0 {
		if err := w.sync(); err != nil {
			return err
		}
	}
	if w.broken != nil || w.k.last == w.saved {
		return w.broken
	}
	img, err := w.k.image()
	if err != nil {
		return err
	}
	if err := w.cfg.Journal.Checkpoint(img); err != nil {
		return w.fail(err)
	}
	w.saved = img.Head.ID
	return nil
}

func (w *World) fail(err error) error {
	w.broken = fmt.Errorf("world: stopped, open it again: %w", err)
	return w.broken
}
