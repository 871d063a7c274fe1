// Package callers brings permits together with the callers that wait for them, where who asked for
// an effect is a program beside the world. It is a part of worldctl, and not an API.
//
// A caller is handed in under the ID of the intent that it has asked for. A permit whose
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

// ID names an intent before there is one. Cells may give equal tags.
type ID struct{ Cell, Tag string }

// Callers are of type *C, by the IDs of their intents. It is safe for concurrent use. The zero value holds
// no caller; a nil pointer never will.
type Callers[C any] struct {
	mu      sync.Mutex
	waiting map[ID]*C
	wanted  map[ID]chan struct{} // permits that wait for their callers; closed when these have come
}

// Put has a caller wait for the permit of an intent.
func (d *Callers[C]) Put(id ID, c *C) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = make(map[ID]*C)
	}
	d.waiting[id] = c
	if wanted := d.wanted[id]; wanted != nil {
		delete(d.wanted, id)
		close(wanted)
	}
}

// Wants reports whether a permit waits for the caller of an intent.
func (d *Callers[C]) Wants(id ID) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted[id] != nil
}

// Take returns the caller of an intent, which waits no more; nil: there is none.
func (d *Callers[C]) Take(id ID) *C {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.waiting[id]
	delete(d.waiting, id)
	return c
}

// Await is Take that waits for a while.
func (d *Callers[C]) Await(ctx context.Context, id ID) *C {
	if c := d.Take(id); c != nil || d == nil {
		return c
	}
	came := make(chan struct{})
	d.mu.Lock()
	if d.wanted == nil {
		d.wanted = make(map[ID]chan struct{})
	}
	if d.waiting[id] == nil {
		d.wanted[id] = came
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
	delete(d.wanted, id)
	d.mu.Unlock()
	return d.Take(id)
}
