package local

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

// Submit takes an event whose data is any value with a canonical form: maps,
// lists, numbers, strings, or structs with cbor tags. It is durable on return.
func (lw *World) Submit(ctx context.Context, name string, data any) (journal.Seq, error) {
	b, err := canon.Marshal(data)
	if err != nil {
		return 0, &world.InputError{Err: world.ErrBadData, Field: "data", Rule: err.Error()}
	}
	sent, err := lw.SubmitEvent(ctx, world.Submission{Name: name, Data: b})
	return sent.ID, err
}

// SubmitEvent is Submit with everything that can be said about an event. Those that
// several callers submit at the same time share a sync.
func (lw *World) SubmitEvent(ctx context.Context, s world.Submission) (world.Sent, error) {
	sent, driver, err := lw.accept(ctx, s)
	if err == nil && driver != nil {
		err = lw.awaitDriver(driver, sent.ID)
	}
	return sent, err
}

// AcceptEvent is SubmitEvent that does not wait where somebody drives the world and stays, who makes the event
// durable soon, and before anything that comes of it.
func (lw *World) AcceptEvent(ctx context.Context, s world.Submission) (world.Sent, error) {
	sent, _, err := lw.accept(ctx, s)
	return sent, err
}

// accept has the world take an event, and returns the driver that makes it durable; nil: it is.
func (lw *World) accept(ctx context.Context, s world.Submission) (sent world.Sent, driver context.Context, err error) {
	if err := lw.canRun(); err != nil {
		return world.Sent{}, nil, err
	}
	x := &submission{Submission: s, ctx: ctx, done: make(chan struct{})}
	over := ctx.Done()
	lw.submitted.add(x)
	select {
	case <-over: // while another call has the world, for as long as a step takes
		if lw.submitted.drop(x) {
			return world.Sent{}, nil, ctx.Err()
		}
		<-x.done // somebody is about to tell
	case <-x.done: // by whoever got hold of the world
	case lw.mu <- struct{}{}:
		func() {
			defer lw.mu.Unlock()
			lw.submitWaiting()
		}()
	}
	return x.sent, x.driver, x.err
}

// awaitDriver waits until a driver has made a record durable, or makes it durable once the driver has ended.
func (lw *World) awaitDriver(driver context.Context, id journal.Seq) error {
	err := lw.store.Await(driver, id-1)
	if err != nil && driver.Err() != nil {
		err = lw.Sync()
	}
	return err
}

// SubmitAll takes events in bulk; see world.World.SubmitAll.
func (lw *World) SubmitAll(ctx context.Context, all iter.Seq2[world.Submission, error]) (first journal.Seq, taken uint64, err error) {
	err = lw.Update(func(w *world.World) error {
		first, taken, err = w.SubmitAll(ctx, all)
		return err
	})
	return first, taken, err
}

// submission is an event that a caller waits for.
type submission struct {
	world.Submission
	ctx context.Context // of the caller

	done   chan struct{} // closed when these are known:
	sent   world.Sent
	driver context.Context // of the driver that makes it durable; nil: it is
	err    error
}

// turn is a mutex that can be waited for beside something else. Whoever came first gets
// it next.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock waits for the turn.
func (t turn) Lock() { t <- struct{}{} }

// Unlock gives the turn back.
func (t turn) Unlock() { <-t }

// submissions are those that wait for who gets hold of the world next, in the order
// in which they came.
type submissions struct {
	mu      sync.Mutex
	waiting []*submission
	driver  context.Context // ends with who drives the world and stays; nil: nobody does. The world's turn guards it
}

func (q *submissions) add(x *submission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, x)
}

// drop takes one out again; false: somebody has taken it.
func (q *submissions) drop(x *submission) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, x)
	if at < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, at, at+1)
	return true
}

func (q *submissions) takeBatch() []*submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}

// submitWaiting submits what waits, and makes it durable at once. Whoever gets hold of the
// world does so first: one event does not wait behind all that ask for more. Where somebody drives
// the world, the driver makes durable, by one sync, the events and what the cells ask for in answer.
func (lw *World) submitWaiting() {
	all := lw.submitted.takeBatch()
	if len(all) == 0 {
		return
	}
	defer func() {
		for _, x := range all {
			close(x.done)
		}
	}()
	for _, x := range all {
		x.err = errInterrupted // until it is known to be durable
	}
	accepted := make([]*submission, 0, len(all))
	for _, x := range all {
		if err := x.ctx.Err(); err != nil {
			x.err = err
			continue
		}
		sent, err := lw.w.Accept(x.ctx, x.Submission)
		if err != nil {
			x.err = err
			continue
		}
		x.sent = sent
		accepted = append(accepted, x)
	}
	if len(accepted) == 0 {
		return
	}
	var err error
	if lw.submitted.driver == nil {
		err = lw.w.Sync()
	} else {
		lw.host.Wake()
	}
	for _, x := range accepted {
		x.driver = lw.submitted.driver
		if x.err = err; err != nil {
			x.sent = world.Sent{}
		}
	}
}

// errInterrupted says that a panic came before an event was durable.
var errInterrupted = errors.New("local: interrupted before the event was durable")
