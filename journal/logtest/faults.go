package logtest

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/worldkernel/worldkernel/journal"
)

// Fault is what becomes of an append.
type Fault int

// What may become of an append. After Lost, Torn and Unanswered the log says that it cannot tell.
const (
	None       Fault = iota
	Lost             // it does not arrive
	Torn             // a part of it arrives, which has no effect
	Unanswered       // it becomes durable, and the answer does not arrive
	Delayed          // it arrives when something is asked for again
	Doubled          // it arrives twice
)

// Faulty is a log over a bad connection, as one who owns a world has it that gives up at once
// where an answer is lost: what is built on a log has to bear it.
type Faulty struct {
	journal.Log
	Strike func() Fault // says what becomes of the next append; called from one goroutine

	mu     sync.Mutex
	failed error
	held   []*held
}

// StrikeAt returns faults that come at random, as often as one in n.
func StrikeAt(r *rand.Rand, n int) func() Fault {
	return func() Fault {
		if r.IntN(n) > 0 {
			return None
		}
		return Fault(r.IntN(int(Doubled) + 1))
	}
}

// held is an append that has not arrived yet. It implements journal.Pending.
type held struct {
	of    *Faulty
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
func (f *Faulty) arrive() {
	for _, h := range f.held {
		h.p = f.pass(h.batch)
	}
	f.held = nil
}

func (f *Faulty) pass(b journal.Batch) journal.Pending {
	p, err := f.Log.Append(b)
	if err != nil {
		return ended{err}
	}
	return p
}

// Append implements journal.Log.
func (f *Faulty) Append(b journal.Batch) (journal.Pending, error) {
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
func (f *Faulty) Release(ctx context.Context, wake journal.Wake) error {
	f.mu.Lock()
	f.arrive()
	f.mu.Unlock()
	return f.Log.Release(ctx, wake)
}
