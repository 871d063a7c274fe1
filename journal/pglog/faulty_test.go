package pglog

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/worldkernel/worldkernel/journal"
)

// fault is what becomes of an append.
type fault int

// What may become of an append. After Lost, Torn and Unanswered the log says that it cannot tell.
const (
	None       fault = iota
	Lost             // it does not arrive
	Torn             // a part of it arrives, which has no effect
	Unanswered       // it becomes durable, and the answer does not arrive
	Delayed          // it arrives when something is asked for again
	Doubled          // it arrives twice
)

// faulty is a log over a bad connection, as one who owns a world has it that gives up at once
// where an answer is lost: what is built on a log has to bear it.
type faulty struct {
	journal.Log
	Strike func() fault // says what becomes of the next append; called from one goroutine

	mu     sync.Mutex
	failed error
	held   []*held
}

// strikeAt returns faults that come at random, as often as one in n.
func strikeAt(r *rand.Rand, n int) func() fault {
	return func() fault {
		if r.IntN(n) > 0 {
			return None
		}
		return fault(r.IntN(int(Doubled) + 1))
	}
}

// held is an append that has not arrived yet. It implements journal.Pending.
type held struct {
	of    *faulty
	batch journal.Batch
	p     journal.Pending // nil: not yet
}

// Wait implements journal.Pending.
func (h *held) Wait() error {
	h.of.mu.Lock()
	h.of.arrive()
	p := h.p
	h.of.mu.Unlock()
	return p.Wait()
}

// Done implements journal.Pending.
func (h *held) Done() bool {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.p != nil && h.p.Done()
}

// arrive gives the log what was delayed. The mutex is held.
func (f *faulty) arrive() {
	for _, h := range f.held {
		h.p = f.pass(h.batch)
	}
	f.held = nil
}

func (f *faulty) pass(b journal.Batch) journal.Pending {
	p, err := f.Log.Append(b)
	if err != nil {
		return ended{err}
	}
	return p
}

// Append implements journal.Log.
func (f *faulty) Append(b journal.Batch) (journal.Pending, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return ended{f.failed}, nil
	}
	switch s := f.Strike(); s {
	case Lost, Torn:
		f.failed = journal.ErrUnknown
	case Unanswered:
		f.arrive()
		_ = f.pass(b).Wait()
		f.failed = journal.ErrUnknown
	case Delayed:
		h := &held{of: f, batch: b}
		f.held = append(f.held, h)
		return h, nil
	case Doubled:
		f.arrive()
		p := f.pass(b)
		_, _ = f.Log.Append(b) // which does not go on from itself
		return p, nil
	default:
		f.arrive()
		return f.Log.Append(b)
	}
	return ended{f.failed}, nil
}

// Release implements journal.Log.
func (f *faulty) Release(ctx context.Context, wake journal.Wake) error {
	f.mu.Lock()
	f.arrive()
	f.mu.Unlock()
	return f.Log.Release(ctx, wake)
}

// ended is a Pending that is done.
type ended struct{ err error }

// Wait implements journal.Pending.
func (e ended) Wait() error { return e.err }

// Done implements journal.Pending.
func (e ended) Done() bool { return true }
