// Package callers brings permits together with the callers that wait for them, where who asked for
// an effect is a program beside the world. It is a part of worldctl, and not an API.
//
// A caller is handed in under the tag of the intent that it has asked for. A permit whose
// caller is not there waits a while, and performs nothing where nobody comes.
package callers

import (
	"context"
	"sync"
	"time"
)

// patience is how long a permit waits for its caller: an agent that was started again asks soon for what a person
// has approved meanwhile.
const patience = 30 * time.Second

// Callers are of type *C, by the tags of their intents. It is safe for concurrent use. The zero value holds
// no caller; a nil pointer never will.
type Callers[C any] struct {
	mu      sync.Mutex
	waiting map[string]*C
	wanted  map[string]chan struct{} // by tag: permits that wait for their callers; closed when these have come
}

// Put has a caller wait for the permit of the intent with a tag.
func (d *Callers[C]) Put(tag string, c *C) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = make(map[string]*C)
	}
	d.waiting[tag] = c
	if wanted := d.wanted[tag]; wanted != nil {
		delete(d.wanted, tag)
		close(wanted)
	}
}

// Wants reports whether a permit waits for the caller with a tag.
func (d *Callers[C]) Wants(tag string) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted[tag] != nil
}

// Take returns the caller with a tag, which waits no more; nil: there is none.
func (d *Callers[C]) Take(tag string) *C {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.waiting[tag]
	delete(d.waiting, tag)
	return c
}

// Await is Take that waits for a while.
func (d *Callers[C]) Await(ctx context.Context, tag string) *C {
	if c := d.Take(tag); c != nil || d == nil {
		return c
	}
	came := make(chan struct{})
	d.mu.Lock()
	if d.wanted == nil {
		d.wanted = make(map[string]chan struct{})
	}
	if d.waiting[tag] == nil {
		d.wanted[tag] = came
	} else {
		close(came)
	}
	d.mu.Unlock()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-came:
	case <-late.C:
	case <-ctx.Done():
	}
	d.mu.Lock()
	delete(d.wanted, tag)
	d.mu.Unlock()
	return d.Take(tag)
}
