package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Slots bound how many calls of a kind are under way at once. Whoever has none under
// way gets one all the same, so that nobody is shut out by others, however many they
// are: there are as many more as tokens at most.
type Slots struct {
	All   int // of everybody
	Token int // of one token; 0: a quarter of All
	World int // about one world; 0: three quarters of All
}

// slots are those of a kind of calls. A call that finds none waits for a while: who
// asks for more than they get is slowed down, and not sent away to ask again at once.
// It is safe for concurrent use.
type slots struct {
	limit  string // the name of what bounds them
	most   Slots
	queued int           // of one token, that wait at most
	wait   time.Duration // for so long

	mu     sync.Mutex
	used   int
	tokens map[string]int // slots that are used, by the names of tokens
	worlds map[string]int // likewise, by the ids of worlds; "": about none
	queue  []*queued      // in the order in which they came
}

// takeTurn has the call wait until it may work on what takes the processor: a token that asks
// for much has the others wait otherwise, however few slots it has. The call gives it
// back with yield, while it waits for the net too.
func (c *call) takeTurn() error {
	c.yield()
	give, err := c.server.turns.takeSlot(c.Context(), c.holder(), c.about())
	if err == nil {
		c.gotTurn(give)
	}
	return err
}

// awaitTurn is takeTurn for a call that others do not have to wait for: it waits until
// ctx ends.
func (c *call) awaitTurn(ctx context.Context) error {
	c.yield()
	for ctx.Err() == nil {
		if give, err := c.server.turns.takeSlot(ctx, c.holder(), c.about()); err == nil {
			c.gotTurn(give)
			return nil
		}
	}
	return ctx.Err()
}

// yield gives the turn back, and reports whether there was one.
func (c *call) yield() bool { return c.giveBack(&c.give) }

// giveBack gives back what the call holds, and reports whether it did.
func (c *call) giveBack(held *func()) bool {
	c.holds.Lock()
	give := *held
	*held = nil
	if held == &c.give && c.look != nil {
		c.look.Stop()
	}
	c.holds.Unlock()
	if give != nil {
		give()
	}
	return give != nil
}

// left gives back all that a call holds whose caller has left: it may still wait for its world.
func (c *call) left() {
	c.yield()
	c.giveBack(&c.free)
}

// busyPatience is how long one waits for a world that somebody else changes, before others go on.
const busyPatience = 100 * time.Millisecond

// gotTurn takes note of a turn. The call has it until it gives it back, or waits for its world.
func (c *call) gotTurn(give func()) {
	c.holds.Lock()
	defer c.holds.Unlock()
	c.give = give
	switch {
	case c.world == nil:
	case c.look == nil:
		c.look = time.AfterFunc(busyPatience, c.lookAtWorld)
	default:
		c.look.Reset(busyPatience)
	}
}

// lookAtWorld has a call that waits for its world give its turn back: it does not take the processor.
func (c *call) lookAtWorld() {
	if c.world.Local.Changing() >= busyPatience {
		c.yield()
		return
	}
	c.holds.Lock()
	defer c.holds.Unlock()
	if c.give != nil {
		c.look.Reset(busyPatience)
	}
}

// holder is whose slots the call takes.
func (c *call) holder() string {
	if c.token == nil {
		return ""
	}
	return c.token.name
}

// about is the world whose slots the call takes; "": of none.
func (c *call) about() string {
	if c.world == nil {
		return ""
	}
	return c.world.id
}

// queued is a call that waits for a slot.
type queued struct {
	token, world string
	in           chan struct{} // closed when it has one
}

func newSlots(limit string, most Slots, l *Limits) *slots {
	return &slots{
		limit: limit, most: most, queued: l.Connections.Token, wait: l.Wait,
		tokens: make(map[string]int), worlds: make(map[string]int),
	}
}

// takeSlot takes a slot for a call with a token about a world, and returns what gives it
// back, which is called once.
func (s *slots) takeSlot(ctx context.Context, token, world string) (free func(), err error) {
	free = func() { s.free(token, world) }
	s.mu.Lock()
	full := s.full(token, world)
	if full == withinLimits {
		s.use(token, world, 1)
		s.mu.Unlock()
		return free, nil
	}
	waiting := 0
	for _, q := range s.queue {
		if q.token == token {
			waiting++
		}
	}
	if waiting >= s.queued {
		s.mu.Unlock()
		return nil, s.refusal(full)
	}
	q := &queued{token, world, make(chan struct{})}
	s.queue = append(s.queue, q)
	s.mu.Unlock()
	late := time.NewTimer(s.wait)
	defer late.Stop()
	select {
	case <-q.in:
		return free, nil
	case <-late.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.queue, q)
	if at < 0 {
		return free, nil // it came while the time was over
	}
	s.queue = slices.Delete(s.queue, at, at+1)
	return nil, s.refusal(full)
}

// free gives a slot back, to whoever waits for one and has the fewest.
func (s *slots) free(token, world string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use(token, world, -1)
	for {
		next := -1
		for i, q := range s.queue {
			if s.full(q.token, q.world) == withinLimits && (next < 0 || s.tokens[q.token] < s.tokens[s.queue[next].token]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		q := s.queue[next]
		s.queue = slices.Delete(s.queue, next, next+1)
		s.use(q.token, q.world, 1)
		close(q.in)
	}
}

func (s *slots) use(token, world string, n int) {
	s.used += n
	count(s.tokens, token, n)
	count(s.worlds, world, n)
}

func count(of map[string]int, name string, n int) {
	if of[name] += n; of[name] == 0 {
		delete(of, name)
	}
}

// reached is what keeps a call from a slot.
type reached int

const (
	withinLimits reached = iota // it gets one
	limitOfToken
	limitOfWorld
	limitOfAll
)

// full says what keeps a call from a slot now.
func (s *slots) full(token, world string) reached {
	switch {
	case s.tokens[token] == 0:
		return withinLimits
	case s.tokens[token] >= s.most.Token:
		return limitOfToken
	case world != "" && s.worlds[world] >= s.most.World:
		return limitOfWorld
	case s.used >= s.most.All:
		return limitOfAll
	}
	return withinLimits
}

// refusal is the failure of a call that gets no slot.
func (s *slots) refusal(why reached) *failure {
	switch why {
	case limitOfToken:
		return overLimit(http.StatusTooManyRequests, s.limit+".token", s.most.Token, "of this token")
	case limitOfWorld:
		return overLimit(http.StatusServiceUnavailable, s.limit+".world", s.most.World, "about this world")
	default:
		return overLimit(http.StatusServiceUnavailable, s.limit, s.most.All, "of all callers")
	}
}

// overLimit is the failure of who asks for more at once than a limit lets them.
func overLimit(status int, limit string, most int, whose string) *failure {
	f := busy("busy", fmt.Sprintf("too much is under way %s: limit %s is %d; whoever serves can raise it, with worldctl serve --limit %s=N",
		whose, limit, most, limit))
	f.Status, f.Title, f.Limit = status, http.StatusText(status), limit
	return f
}
