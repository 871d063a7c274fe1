// Package node is one of the processes that own the worlds of a store between them: a world has an
// owner while it has something to do or is asked for, and another one soon after its owner is gone. It
// is a part of worldctl, and not an API.
package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/shared"
)

const (
	// DefaultIdle is how long a world stays open that has nothing to do and that nobody asks for.
	DefaultIdle = time.Minute
	// every is how often a node looks what there is to do for it.
	every = time.Second
	// lookPatience is how long the store may take to answer all that a look asks: who is asked by then
	// is told that it does not.
	lookPatience = 5 * time.Second
	// shareEvery is after how many looks it asks another node for a world.
	shareEvery = 3
	// together is how many worlds are claimed at once, and most how many are opened or closed.
	together, most = 64, 8
	// placePatience is how long a world that is opened or closed counts among these.
	placePatience = 5 * time.Second
	// filesAWorld is how many files a world has open that is: its tables are in a cache that all share.
	// Worlds may have half of those that the process may have.
	filesAWorld = 10
	// fullIdle is how long a world that rests stays open where there is no room for others.
	fullIdle = 5 * time.Second
)

// Node runs worlds of one store in a service with its Options. Its fields are set before Keep.
type Node struct {
	Service *api.Service
	Store   *shared.Store
	Idle    time.Duration // 0: DefaultIdle
	Events  *slog.Logger

	alone  func(ctx context.Context, id string) error // no other store of this process has a world; nil: there is none
	room   int                                        // for how many worlds that are open
	work   sync.WaitGroup
	places chan struct{} // held by who opens or closes a world

	mu     sync.Mutex
	ctx    context.Context          // of Keep; nil: before it
	closed bool                     // Keep ends: nothing more is begun
	has    map[string]*api.Running  // worlds of the store that are open here
	under  map[string]chan struct{} // worlds that are being opened or closed; closed when that is done
	fails  pauses                   // worlds that could not be opened, or not go on
	doubts map[string]string        // nodes to whose addresses nothing is sent, and why
	lost   bool                     // the store cannot be asked
	full   bool                     // there is no room for one more world
	kept   int                      // places for worlds that are being claimed
	opened uint64                   // worlds
	given  map[string]uint64        // worlds that were given up, by why
}

// Keep has the service own the worlds that are its to own, until ctx ends.
func (n *Node) Keep(ctx context.Context) {
	n.mu.Lock()
	n.places, n.under, n.fails = make(chan struct{}, most), map[string]chan struct{}{}, pauses{now: time.Now, of: map[string]*pause{}}
	n.has, n.given, n.ctx = map[string]*api.Running{}, map[string]uint64{}, ctx
	n.mu.Unlock()
	defer n.drain()
	tick := time.NewTicker(every)
	defer tick.Stop()
	lost := false // the store cannot be asked
	for looks := 0; ; looks++ {
		err := n.tendWorlds(ctx, looks%shareEvery == 0)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !lost:
			n.Events.Error("the store does not answer: no world comes or goes until it does", "error", err)
		case err == nil && lost:
			n.Events.Info("the store answers again")
		}
		lost = err != nil
		n.mu.Lock()
		n.lost = lost
		n.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tendWorlds does once what there is to do for the worlds of the store. What it begins goes on after it.
func (n *Node) tendWorlds(ctx context.Context, share bool) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	if err := n.Store.Enter(ctx); err != nil {
		return err
	}
	had := n.worlds()
	mine, err := n.Store.Mine(ctx)
	if err != nil {
		return err
	}
	under := n.allUnder() // before here: what is opened in between is in one of them
	here := n.worlds()
	for _, w := range here {
		select {
		case <-w.Ended():
			n.leaveFailed(w)
		default:
		}
	}
	if err := n.settle(ctx, here, under, mine); err != nil {
		return err
	}
	for _, m := range mine {
		delete(had, m.ID)
	}
	for id, w := range had { // another owner has it, or it is no more in this store
		if here[id] == w && under[id] == nil {
			n.leave(w, givenFenced, "")
		}
	}
	for _, w := range here {
		if n.rests(w) {
			n.leave(w, givenRest, "")
		}
	}
	full := n.tellFull()
	if err := n.claim(ctx, len(mine)); err != nil || !share {
		return err
	}
	nodes, err := n.Store.Nodes(ctx)
	if err != nil {
		return err
	}
	n.tellDoubts(nodes)
	if full {
		return nil
	}
	return n.share(ctx, nodes, len(mine))
}

// tellFull notes whether there is no room for one more world, and tells of it when that changes.
func (n *Node) tellFull() bool {
	n.mu.Lock()
	was := n.full
	n.full = n.free() <= 0
	full := n.full
	n.mu.Unlock()
	switch {
	case full && !was:
		n.Events.Warn("no room for more worlds: those that rest are given up sooner, others wait for another node, or for ulimit -n to be raised",
			"worlds", n.room)
	case was && !full:
		n.Events.Info("there is room for worlds again")
	}
	return full
}

// settle gives worlds away that others are to have, and lets go of those that this process has by
// what the store knows alone: an answer was lost that said so.
func (n *Node) settle(ctx context.Context, here map[string]*api.Running, under map[string]chan struct{}, mine []pglog.Mine) error {
	var unknown []string
	for _, m := range mine {
		switch w := here[m.ID]; {
		case w != nil && m.Wanted != "":
			n.leave(w, givenWanted, m.Wanted)
		case w == nil && under[m.ID] == nil:
			unknown = append(unknown, m.ID)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return n.Store.LetGo(ctx, unknown...)
}

// rests reports whether nobody needs a world to be open.
func (n *Node) rests(w *api.Running) bool {
	idle := n.Idle
	if idle == 0 {
		idle = DefaultIdle
	}
	n.mu.Lock()
	if n.full {
		idle = min(idle, fullIdle)
	}
	n.mu.Unlock()
	if n.Service.Quiet(w) < idle {
		return false
	}
	wakes := w.Local.Wakes()
	return wakes == journal.WakeNever || time.Until(time.Unix(0, int64(wakes))) > idle
}

// claim claims what has to have an owner, and opens it: one group, and, where there is more, as many
// as make this node have what falls to it of all, and it has room for. The rest is for others, or for
// the next look.
func (n *Node) claim(ctx context.Context, mine int) error {
	for left, claimed := together, 0; left > 0; {
		ids, err := n.claimGroup(ctx, min(left, together))
		if err != nil || len(ids) == 0 {
			return err
		}
		if claimed == 0 && len(ids) == together {
			nodes, worlds, err := n.Store.Crowd(ctx)
			if err != nil {
				return err
			}
			left += (worlds+max(nodes, 1)-1)/max(nodes, 1) - mine - together
		}
		claimed += len(ids)
		left -= len(ids)
	}
	return nil
}

// claimGroup claims worlds at most so many, and opens them: those that it is to have from others where
// there is no room for more.
func (n *Node) claimGroup(ctx context.Context, most int) (ids []string, err error) {
	n.mu.Lock()
	kept := max(0, min(most, n.free()))
	n.kept += kept
	n.mu.Unlock()
	if kept > 0 {
		ids, err = n.Store.ClaimDue(ctx, kept, n.failing())
	} else {
		ids, err = n.Store.ClaimWanted(ctx, most, n.failing())
	}
	n.mu.Lock()
	n.kept -= kept
	if err == nil && !n.closed {
		for _, id := range ids {
			n.doLocked(n.ctx, id, func() { n.open(n.ctx, id) })
		}
	}
	n.mu.Unlock()
	return ids, err
}

// free returns for how many worlds more there is room; the lock is held.
func (n *Node) free() int {
	free := n.room - n.kept - len(n.has)
	for id := range n.under { // order cannot show: they are counted
		if n.has[id] == nil {
			free--
		}
	}
	return free
}

func (n *Node) open(ctx context.Context, id string) {
	w, err := n.join(ctx, id)
	if err == nil {
		n.mu.Lock()
		n.has[id] = w
		n.fails.goesOn(id)
		n.opened++
		n.mu.Unlock()
		n.Events.Info("owns a world", "world", id, "epoch", w.Local.Epoch())
		return
	}
	if refused := (*pglog.RefusedError)(nil); errors.As(err, &refused) && refused.State == pglog.Owned {
		return // another node was faster
	}
	wait := n.fail(id, err)
	err = errors.Join(err, n.Store.LetGo(context.WithoutCancel(ctx), id))
	n.Events.Error("a world cannot be opened here, and is left to others", "world", id, "for", wait, "error", err)
}

func (n *Node) join(ctx context.Context, id string) (*api.Running, error) {
	if n.alone != nil {
		if err := n.alone(ctx, id); err != nil {
			return nil, err
		}
	}
	at, err := n.Store.World(id)
	if err != nil {
		return nil, err
	}
	return n.Service.Join(ctx, id, at.Dir, at.In(n.Service.Options))
}

// fail notes why a world could not be opened, or not go on, and returns for how long it is left to others.
func (n *Node) fail(id string, why error) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fails.beginPause(id, why)
}

// failing are the worlds that are left to others for now.
func (n *Node) failing() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fails.forget(func(id string) bool { return n.under[id] != nil })
	n.Store.Tell(n.fails.describeResting())
	return n.fails.resting()
}

func (n *Node) leave(w *api.Running, why, to string) {
	n.do(context.Background(), w.ID, func() { n.giveUp(w, why, to) })
}

// leaveFailed is leave for a world that cannot go on: what is wrong with it may be so for a while.
func (n *Node) leaveFailed(w *api.Running) {
	n.do(context.Background(), w.ID, func() {
		if !errors.Is(w.Failed(), journal.ErrFenced) {
			n.fail(w.ID, w.Failed())
		}
		n.giveUp(w, givenFailed, "")
	})
}

func (n *Node) giveUp(w *api.Running, why, to string) {
	n.mu.Lock()
	is := n.has[w.ID] == w
	if is {
		delete(n.has, w.ID)
	}
	n.mu.Unlock()
	if !is { // that was done already
		return
	}
	err := n.Service.Leave(w)
	if errors.Is(err, journal.ErrFenced) {
		why, err = givenFenced, nil
	}
	n.mu.Lock()
	n.given[why]++
	n.mu.Unlock()
	n.Events.Info("owns a world no more", "world", w.ID, "epoch", w.Local.Epoch(), "why", why, "to", to, "error", err)
}

// do opens or closes a world, unless that is under way.
func (n *Node) do(ctx context.Context, id string, work func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.doLocked(ctx, id, work)
	}
}

// doLocked is do with the lock held. What it returns is closed when nothing is under way any more.
func (n *Node) doLocked(ctx context.Context, id string, work func()) <-chan struct{} {
	if n.under[id] != nil {
		return n.under[id]
	}
	done := make(chan struct{})
	n.under[id] = done
	n.work.Go(func() {
		defer func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.under, id)
			close(done)
		}()
		select {
		case n.places <- struct{}{}:
			free := sync.OnceFunc(func() { <-n.places })
			defer free()
			defer time.AfterFunc(placePatience, free).Stop() // one that takes long holds up no other
			work()
		case <-ctx.Done():
		}
	})
	return done
}

// worlds are those of the store that are open here.
func (n *Node) worlds() map[string]*api.Running {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.has)
}

// allUnder are the worlds that are being opened or closed.
func (n *Node) allUnder() map[string]chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.under)
}

// share asks the node that has most worlds for one of them, where that makes the two more alike.
func (n *Node) share(ctx context.Context, nodes []pglog.Node, mine int) error {
	var rich pglog.Node
	for _, x := range nodes {
		if x.Alive() && x.Name != n.Store.Name() && x.Worlds > rich.Worlds {
			rich = x
		}
	}
	if rich.Worlds < mine+2 {
		return nil
	}
	id, err := n.Store.Want(ctx, rich.Name)
	if err == nil && id != "" {
		n.Events.Info("asks for a world", "world", id, "of", rich.Name)
	}
	return err
}
