package api

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// hosts are the worlds that a server serves, by their ids. They come and go.
type hosts struct {
	mu  sync.RWMutex
	all map[string]*hosted
}

// hosted is a world that is served.
type hosted struct {
	view.Journal
	id        string
	verifying chan struct{} // holds whoever verifies, or changes report
	report    *wholeReport  // the last one that somebody looked at; nil: nobody has

	counted *watched

	life    context.Context // of those who follow its journal or wait for its effects; ends with the server
	end     context.CancelFunc
	working sync.WaitGroup          // what follows its journal for the metrics, and for its columns
	stopped atomic.Pointer[failure] // why it cannot go on; nil: it can

	inside  sync.RWMutex // held by whoever uses the world, to read
	leaving atomic.Bool
	looking chan struct{}             // holds whoever looks at it for a list
	seen    atomic.Pointer[WorldLine] // what it last was in a list

	asked atomic.Int64 // when somebody last used it, by Unix time in nanoseconds
}

// enter has the world stay until exit is called; false: it is leaving.
func (h *hosted) enter() bool {
	if h.leaving.Load() {
		return false
	}
	h.inside.RLock()
	if h.leaving.Load() {
		h.inside.RUnlock()
		return false
	}
	return true
}

func (h *hosted) exit() {
	h.asked.Store(now().UnixNano())
	h.inside.RUnlock()
}

// quiet returns for how long nobody has used the world.
func (h *hosted) quiet() time.Duration {
	if !h.inside.TryLock() {
		return 0
	}
	defer h.inside.Unlock()
	return now().Sub(time.Unix(0, h.asked.Load()))
}

// list is how long a list over all worlds waits for those of which a step takes long.
type list struct {
	ctx context.Context // of who asks for it
	by  time.Time       // until then each is waited for, from then on for listGrace
}

// For how long a list waits in all for worlds that are busy, and for each when that is over.
const listPatience, listGrace = 500 * time.Millisecond, 10 * time.Millisecond

func newList(ctx context.Context) list { return list{ctx, now().Add(listPatience)} }

// askWorld has a world answer; ok is false where it is busy, or leaves, or nobody waits any more.
func askWorld[T any](l list, h *hosted, answer func() T) (v T, ok bool) {
	late := time.NewTimer(max(l.by.Sub(now()), listGrace))
	defer late.Stop()
	select {
	case h.looking <- struct{}{}:
	case <-late.C:
		return v, false
	case <-l.ctx.Done():
		return v, false
	}
	came := make(chan T, 1)
	go func() {
		defer func() { <-h.looking }()
		defer close(came)
		if h.enter() {
			defer h.exit()
			came <- answer()
		}
	}()
	select {
	case v, ok = <-came:
		return v, ok
	case <-late.C:
	case <-l.ctx.Done():
	}
	return v, false
}

func (s *hosts) get(id string) *hosted {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all[id]
}

// each visits the worlds by their ids. Each stays while it is visited.
func (s *hosts) each() iter.Seq[*hosted] {
	return func(yield func(*hosted) bool) {
		for _, h := range s.sorted() {
			if !h.enter() {
				continue
			}
			more := yield(h)
			h.exit()
			if !more {
				return
			}
		}
	}
}

func (s *hosts) sorted() []*hosted {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*hosted, 0, len(s.all))
	for _, h := range s.all { // order cannot show: sorted below
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b *hosted) int { return cmp.Compare(a.id, b.id) })
	return out
}

// Add serves one more world, which the server does not close. Remove is called before it is closed,
// and Forget after that.
func (s *Server) Add(lw *local.World) error {
	status := lw.Status()
	id := status.ID
	j := view.Journal{Local: lw}
	j.Index = j.Columns()
	h := &hosted{Journal: j, id: id, verifying: make(chan struct{}, 1), looking: make(chan struct{}, 1)}
	h.life, h.end = context.WithCancel(s.life)
	h.counted = newWatched(h)
	h.asked.Store(now().UnixNano())
	h.seen.Store(lineOf(&status))
	s.worlds.mu.Lock()
	defer s.worlds.mu.Unlock()
	if s.worlds.all[id] != nil {
		return fmt.Errorf("api: two worlds have the id %s", id)
	}
	s.worlds.all[id] = h
	h.working.Go(func() { h.index(h.life) })
	h.working.Go(func() { h.counted.watch(h.life) })
	return nil
}

// Remove ends what follows a world, answers what newly is asked of it with a problem that says when
// to ask again, and returns when everything else that was asked has been answered: then the world
// can be closed. What workers hold they renew and hand in until it is.
func (s *Server) Remove(id string) {
	h := s.worlds.get(id)
	if h == nil {
		return
	}
	h.leaving.Store(true)
	h.end()
	h.inside.Lock()   // nobody is inside any more
	h.inside.Unlock() //nolint:staticcheck // and nobody comes in
	h.working.Wait()
}

// Forget takes away a world that was removed, and is closed.
func (s *Server) Forget(id string) {
	s.worlds.mu.Lock()
	defer s.worlds.mu.Unlock()
	delete(s.worlds.all, id)
}

// Stop answers all that is asked of a world with the reason why it cannot go on, from now on, and
// ends what follows it. The others go on.
func (s *Server) Stop(id string, why error) {
	if h := s.worlds.get(id); h != nil {
		h.stopped.Store(failed(http.StatusServiceUnavailable, "ended", fmt.Sprintf("the world has stopped in this process: %v", why)))
		h.end()
	}
}

// errMoving says that a world is being given to another process.
func errMoving() *failure {
	return busy("moving", "the world is on its way from one process to another")
}
