package node

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/world/local"
)

// said is what a store says of a world.
type said struct {
	member *member
	node   *Node // nil: the store could not be used so far
	stands
	err error // an *api.NotNowError; nil: the store has answered
}

// askStores asks all stores about a world, or all but one of them.
func (s *Nodes) askStores(ctx context.Context, id string, but *Node) []said {
	all := make([]said, 0, len(s.all))
	for _, m := range s.all {
		if n := s.nodeOf(m); n == nil || n != but {
			all = append(all, said{member: m, node: n})
		}
	}
	if s.several() { // who does not answer keeps nobody from what others say
		bounded, cancel := context.WithTimeout(ctx, askPatience)
		defer cancel()
		ctx = bounded
	}
	var work sync.WaitGroup
	for i := range all {
		a := &all[i]
		if a.node == nil || s.several() && a.node.Health() != nil {
			a.err = &api.NotNowError{Why: "a store does not answer"}
			continue
		}
		work.Go(func() { a.stands, a.err = a.node.find(ctx, id) })
	}
	work.Wait()
	return all
}

// Owner implements api.Stores: a world that nobody owns who lives is opened here, unless another
// node is to have it.
func (s *Nodes) Owner(ctx context.Context, id string) (url string, err error) {
	var lives []said
	var made, moved, underway bool
	for _, a := range s.askStores(ctx, id, nil) {
		switch {
		case a.err != nil:
			err = a.err
		case a.gone != "":
			made, moved = made || a.gone == pglog.WorldMade, moved || a.gone == pglog.WorldMoved
			underway = underway || local.OnItsWay(a.To)
		default:
			lives = append(lives, a)
		}
	}
	switch {
	case len(lives) > 1 && s.isTwice(ctx, id):
		return "", &api.NotNowError{Why: "two stores have a world of this id: the log says what to do"}
	case len(lives) == 1:
		return lives[0].node.answers(ctx, id, lives[0].Owner)
	case len(lives) > 1, underway, made && moved:
		return "", errMoving("the world is on its way from one store to another")
	case err != nil:
		return "", err
	}
	return "", api.ErrNoWorld
}

// isTwice reports whether several stores have a world which they were all seen with. One that moves was seen where it
// went after it had left, and is not seen again where it was. None of the stores has it opened then.
func (s *Nodes) isTwice(ctx context.Context, id string) bool {
	var where []string
	var has []*Node
	for _, a := range s.askStores(ctx, id, nil) {
		if a.err == nil && a.gone == "" {
			where, has = append(where, a.member.name), append(has, a.node)
		}
	}
	if len(has) < 2 {
		return false
	}
	s.mu.Lock()
	known := s.twice[id]
	s.twice[id] = true
	s.mu.Unlock()
	if !known {
		s.Events.Error("two stores have a world of one id, and neither is opened", "world", id, "stores", where,
			"next", "have one of them no more in its store: worldctl -w "+id+" move out DIR, with --store of that one")
	}
	for _, n := range has {
		n.leaveTwice(id)
	}
	return true
}

// leaveTwice gives a world up that another store has, too.
func (n *Node) leaveTwice(id string) {
	if w := n.holds(id); w != nil {
		n.fail(id, errTwice)
		n.leave(w, givenFailed, "")
	}
}

// forgive has a world opened again that could not be.
func (n *Node) forgive(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.fails.of, id)
}

// lookTwice looks again whether worlds that were in two stores still are.
func (s *Nodes) lookTwice(ctx context.Context) {
	for wait(ctx) {
		s.mu.Lock()
		ids := slices.Sorted(maps.Keys(s.twice))
		s.mu.Unlock()
		for _, id := range ids {
			if s.isOnce(ctx, id) {
				s.mu.Lock()
				delete(s.twice, id)
				s.mu.Unlock()
				for _, n := range s.nodes() {
					n.forgive(id)
				}
				s.Events.Info("a world is in one store only again", "world", id)
			}
		}
	}
}

// isOnce reports whether at most one store has a world, as all stores say.
func (s *Nodes) isOnce(ctx context.Context, id string) bool {
	has := 0
	for _, a := range s.askStores(ctx, id, nil) {
		if a.err != nil {
			return false
		}
		if a.gone == "" {
			has++
		}
	}
	return has < 2
}

// alone returns when no other store has a world that one has and this process is about to open: from which it has moved,
// that lets go of it. Whether a store that does not answer has it nobody can tell.
func (s *Nodes) alone(ctx context.Context, n *Node, id string) error {
	for _, a := range s.askStores(ctx, id, n) {
		switch {
		case a.err != nil:
		case a.gone == "" && s.isTwice(ctx, id):
			return errTwice
		case a.gone == "":
			return errMoving("the world is on its way from one store to another")
		default:
			a.node.release(ctx, id)
		}
	}
	return nil
}

// release lets go of a world that the store has no more, and returns when that is done.
func (n *Node) release(ctx context.Context, id string) {
	if w := n.holds(id); w != nil {
		n.leave(w, givenFenced, "")
	}
	if done := n.allUnder()[id]; done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// Worlds implements api.Stores.
func (s *Nodes) Worlds(ctx context.Context, after string, only []string, most int) (page []api.Stored, away int, err error) {
	lists, errs := make([][]api.Stored, len(s.all)), make([]error, len(s.all))
	if s.several() {
		bounded, cancel := context.WithTimeout(ctx, askPatience)
		defer cancel()
		ctx = bounded
	}
	var work sync.WaitGroup
	for i, m := range s.all {
		n := s.nodeOf(m)
		if n == nil || s.several() && n.Health() != nil {
			errs[i] = &api.NotNowError{Why: "a store does not answer"}
			continue
		}
		work.Go(func() { lists[i], errs[i] = n.list(ctx, after, only, most) })
	}
	work.Wait()
	for i, list := range lists {
		page = append(page, list...)
		if errs[i] != nil {
			away, err = away+1, errs[i]
		}
	}
	if away == len(s.all) {
		return nil, 0, err
	}
	slices.SortStableFunc(page, func(a, b api.Stored) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(page); i++ {
		if page[i].ID == page[i-1].ID {
			s.isTwice(ctx, page[i].ID)
		}
	}
	return page[:min(len(page), most)], away, nil
}
