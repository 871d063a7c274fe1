package host

import (
	"context"
	"sync"
	"time"
)

// attemptContext is the context of one attempt. The timer of its deadline is made when an
// adapter looks whether it has ended: one that answers at once never does.
type attemptContext struct {
	life     context.Context // whose end is the attempt's, too
	deadline time.Time

	mu     sync.Mutex
	timed  context.Context // nil: nobody has looked
	cancel context.CancelFunc
	over   bool
}

// Deadline is for adapters.
func (c *attemptContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done is for adapters.
func (c *attemptContext) Done() <-chan struct{} { return c.context().Done() }

// Err is for adapters.
func (c *attemptContext) Err() error { return c.context().Err() }

// Value is for adapters, and for contexts below it.
func (c *attemptContext) Value(key any) any { return c.context().Value(key) }

// context returns the context that it stands for.
func (c *attemptContext) context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadline(c.life, c.deadline)
		if c.over {
			c.cancel()
		}
	}
	return c.timed
}

// endAttempt ends it, and lets go of its timer.
func (c *attemptContext) endAttempt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.timed != nil {
		c.cancel()
	}
}
