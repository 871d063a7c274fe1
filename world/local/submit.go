package local

import (
	"context"
	"iter"
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
	return lw.SubmitEvent(ctx, world.Submission{Name: name, Data: b})
}

// SubmitEvent is Submit with everything that can be said about an event. Those that
// several callers submit at the same time share a sync.
func (lw *World) SubmitEvent(ctx context.Context, s world.Submission) (journal.Seq, error) {
	if err := lw.canRun(); err != nil {
		return 0, err
	}
	x := &submission{Submission: s, ctx: ctx}
	lw.submitted.add(x)
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.submitWaiting() // unless somebody has it done for this one
	return x.id, x.err
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

	id  journal.Seq // guarded by World.mu, like err
	err error
}

// submissions are those that wait for who gets hold of the world next, in the order
// in which they came.
type submissions struct {
	mu      sync.Mutex
	waiting []*submission
}

func (q *submissions) add(x *submission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, x)
}

func (q *submissions) take() []*submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}

// submitWaiting submits what waits, and makes it durable at once.
func (lw *World) submitWaiting() {
	all := lw.submitted.take()
	accepted := false
	for _, x := range all {
		if x.err = x.ctx.Err(); x.err == nil {
			x.id, x.err = lw.w.Accept(x.ctx, x.Submission)
		}
		accepted = accepted || x.err == nil
	}
	if !accepted {
		return
	}
	if err := lw.w.Sync(); err != nil {
		for _, x := range all {
			if x.err == nil {
				x.id, x.err = 0, err
			}
		}
	}
}
