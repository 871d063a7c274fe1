package worldtest

import (
	"context"
	"sync"
	"time"
)

// Clock is a wall clock that a test sets, and that stands still otherwise. It is safe
// for concurrent use.
type Clock struct {
	mu    sync.Mutex
	now   time.Time
	moved chan struct{} // closed when it is set
}

// NewClock returns a clock that shows a time.
func NewClock(now time.Time) *Clock { return &Clock{now: now, moved: make(chan struct{})} }

// Now returns the time on the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// UnixNano returns the time on the clock, for world.Config.
func (c *Clock) UnixNano() int64 { return c.Now().UnixNano() }

// Move sets the clock forward, or back.
func (c *Clock) Move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
	close(c.moved)
	c.moved = make(chan struct{})
}

// Wait returns when the clock shows a time, or one after it, or when ctx ends.
func (c *Clock) Wait(ctx context.Context, until time.Time) error {
	for {
		c.mu.Lock()
		now, moved := c.now, c.moved
		c.mu.Unlock()
		if !now.Before(until) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
