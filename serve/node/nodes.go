package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/shared"
)

const (
	// MaxStores is how many stores one process may have.
	MaxStores = 8
	// MaxConnections is how many connections a process has at most: those of its stores, and one of each
	// for its lease there.
	MaxConnections = 32
	// againEvery is how often it is looked again what did not go.
	againEvery = 2 * time.Second
)

// What is wrong with the stores of a process.
var (
	ErrSameStore = errors.New("node: two URLs lead to one store")
	ErrTooMany   = fmt.Errorf("node: a process has at most %d stores", MaxStores)
	errTwice     = errors.New("node: two stores have a world of this id: it is opened when one of them has it no more")
)

// Nodes is a process as a node of one store, or of each of several, whose worlds it serves as if they lay
// in one. Its Keep is that of the service, and itself the service's Stores. Its fields are set before Open.
type Nodes struct {
	Service *api.Service
	Idle    time.Duration // 0: DefaultIdle
	Events  *slog.Logger

	all  []*member // in the order of their URLs
	room int       // for how many worlds, of all; 0: as many as may have their files open

	mu    sync.Mutex
	twice map[string]bool // worlds that two stores have
}

// member is one of the stores of a process.
type member struct {
	name string // where it is
	open func(context.Context) (*shared.Store, error)
	node *Node // nil: the store could not be used so far; under the lock of Nodes
}

// Open opens stores; see shared.Open. Those that cannot be used are looked for while Keep runs, if one can, or may
// soon.
func (s *Nodes) Open(ctx context.Context, urls []string, o shared.Options) error {
	if len(urls) > MaxStores {
		return ErrTooMany
	}
	s.twice = map[string]bool{}
	o.Connections = min(pglog.DefaultConnections, MaxConnections/int32(max(len(urls), 1))-1) //nolint:gosec // at most MaxStores
	for _, url := range urls {
		name, err := pglog.Where(url)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(s.all, func(m *member) bool { return m.name == name }) {
			return fmt.Errorf("%w: %s", ErrSameStore, name)
		}
		s.all = append(s.all, &member{name: name, open: func(ctx context.Context) (*shared.Store, error) { return shared.Open(ctx, url, o) }})
	}
	errs := make([]error, len(s.all))
	var work sync.WaitGroup
	for i, m := range s.all {
		work.Go(func() { errs[i] = s.reach(ctx, m) })
	}
	work.Wait()
	none := len(s.nodes()) == 0 && !slices.ContainsFunc(errs, forNow)
	if err := errors.Join(errs...); err != nil && (none || slices.ContainsFunc(errs, forGood)) {
		s.Close()
		return err
	}
	for i, err := range errs {
		if err != nil {
			s.tellAway(s.all[i], err)
		}
	}
	return nil
}

// forGood reports whether a store can never be used as it was named.
func forGood(err error) bool {
	var refused *pglog.RefusedError
	return errors.Is(err, ErrSameStore) || errors.As(err, &refused) && refused.State == pglog.Plaintext
}

// forNow reports whether a store is away, as one is that starts with the process.
func forNow(err error) bool {
	var refused *pglog.RefusedError
	return errors.As(err, &refused) && (refused.State == pglog.Unreachable || refused.State == pglog.Starting || refused.State == pglog.Full)
}

// Close closes the stores, after Keep.
func (s *Nodes) Close() {
	for _, n := range s.nodes() {
		n.Store.Close()
	}
}

// several reports whether there is more than one store.
func (s *Nodes) several() bool { return len(s.all) > 1 }

// reach opens a store, so that this process can be a node of it.
func (s *Nodes) reach(ctx context.Context, m *member) error {
	store, err := m.open(ctx)
	if err != nil {
		if s.several() {
			err = fmt.Errorf("store %s: %w", m.name, err)
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.all {
		if other.node != nil && other.node.Store.ID() == store.ID() {
			store.Close()
			return fmt.Errorf("%w: %s and %s", ErrSameStore, other.name, m.name)
		}
	}
	n := &Node{Service: s.Service, Store: store, Idle: s.Idle, Events: s.Events}
	n.room = max(1, cmp.Or(s.room, file.Descriptors()/2/filesAWorld)/len(s.all))
	if s.several() {
		n.Events = s.Events.With("store", m.name)
		n.alone = func(ctx context.Context, id string) error { return s.alone(ctx, n, id) }
	}
	m.node = n
	return nil
}

func (s *Nodes) tellAway(m *member, err error) {
	next := ""
	if refused := (*pglog.RefusedError)(nil); errors.As(err, &refused) {
		next = refused.Next()
	}
	s.Events.Error("a store cannot be used, and is looked for: its worlds wait", "store", m.name, "error", err, "next", next)
}

// nodes are those of the stores that could be used.
func (s *Nodes) nodes() (all []*Node) {
	for _, m := range s.all {
		if n := s.nodeOf(m); n != nil {
			all = append(all, n)
		}
	}
	return all
}

func (s *Nodes) nodeOf(m *member) *Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m.node
}

// Keep has the service own the worlds of the stores that are its to own, until ctx ends.
func (s *Nodes) Keep(ctx context.Context) {
	var work sync.WaitGroup
	for _, m := range s.all {
		work.Go(func() {
			if s.await(ctx, m) {
				s.nodeOf(m).Keep(ctx)
			}
		})
	}
	if s.several() {
		work.Go(func() { s.lookTwice(ctx) })
	}
	work.Wait()
}

// await waits until a store can be used; false: ctx has ended before.
func (s *Nodes) await(ctx context.Context, m *member) bool {
	said := ""
	for s.nodeOf(m) == nil {
		if !wait(ctx) {
			return false
		}
		switch err := s.reach(ctx, m); {
		case ctx.Err() != nil:
			return false
		case err == nil:
			s.Events.Info("a store can be used", "store", m.name)
		case said != "" && said != err.Error():
			s.tellAway(m, err)
			fallthrough
		default:
			said = err.Error()
		}
	}
	return true
}

// wait waits until it is time to look again; false: ctx has ended before.
func wait(ctx context.Context) bool {
	t := time.NewTimer(againEvery)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Health returns why this process as a whole is not well, or which of its stores do not answer while others
// do; see api.Config. Where a store is, is nothing for everybody: it is named by its place among their URLs.
func (s *Nodes) Health() (waits []string, err error) {
	away, doubtful, resting := 0, 0, 0
	for i, m := range s.all {
		n := s.nodeOf(m)
		if n == nil || n.Health() != nil {
			away++
			waits = append(waits, fmt.Sprintf("store %d of %d does not answer: its worlds wait for it", i+1, len(s.all)))
		}
		if n != nil {
			doubtful += n.doubtful()
			resting += len(n.failing())
		}
	}
	if away == len(s.all) {
		return nil, errLost
	}
	if resting > 0 {
		waits = append(waits, fmt.Sprintf("%d of the worlds cannot go on, and rest: worldctl node list says why", resting))
	}
	if doubtful > 0 {
		waits = append(waits, fmt.Sprintf("nothing is sent to %d of the nodes, whose addresses in the store are not proven: the log says why", doubtful))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.twice); n > 0 {
		waits = append(waits, fmt.Sprintf("%d of the worlds are in two stores, and are not opened: the log names them", n))
	}
	return waits, nil
}
