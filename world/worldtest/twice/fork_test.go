package twice

import (
	"context"
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// fork ends the world's process, and goes on in a fork. The parent never runs
// again; what it has sent arrives all the same.
func (l *life) fork(context.Context) error {
	if l.forks == 2 || !l.Idle() && l.rng.IntN(2) == 0 {
		return nil
	}
	under, end := l.underWay(), l.home.stop
	if l.rng.IntN(2) == 0 {
		end = l.home.kill
	}
	if err := end(l.process); err != nil {
		return err
	}
	past, at := l.home.journal.Clone(), "head"
	before := l.said.executions(l.bank)
	if all := l.Snapshots(); len(all) > 0 && l.rng.IntN(2) == 0 {
		s := all[l.rng.IntN(len(all))]
		past, at = past.Truncate(journal.Seq(s.Record)), s.Name
		before = l.sound.before[s.Name]
	}
	effects := pick(l.rng, journal.ForkHold, journal.ForkLive, journal.ForkLive)
	child := newHome(fmt.Sprintf("fork%d", l.forks+1), l.home.dir, past)
	err := world.Fork(context.Background(), world.Config{Journal: past, History: past, Keys: child.keys, Registry: registry()},
		&journal.Forked{World: child.id, Effects: effects, Actor: "ada"}, nil)
	if err != nil { // a tick is open there
		return l.open()
	}
	l.forks++
	l.count("fork " + string(effects))
	switch {
	case effects == journal.ForkHold:
		l.struck.Count("fork on hold")
	case under:
		l.struck.Count("fork live amid effects")
	}
	l.tell("fork %s at %s", effects, at)
	if err := l.sound.look(l); err != nil {
		return err
	}
	l.home, l.history = child, newHistory()
	for l.history.read < len(past.Records()) {
		if _, err := l.history.follow(past); err != nil {
			return err
		}
	}
	l.said.disown(l.bank, l.history, before, effects)
	l.sound.forbidden = make(map[receipt.Key]bool) // what the parent left is the parent's
	l.sound.cancelled = make(map[receipt.Key]bool)
	return l.open()
}

// executions returns how often each intent was executed, or is about to be.
func (s *said) executions(b *bank) map[receipt.Key]int {
	all := make(map[receipt.Key]int)
	for key := range s.known {
		times, coming := b.happened(key)
		if coming {
			times++
		}
		all[key] = times
	}
	return all
}

// disown notes what a fork cannot know of its parents: what they have done after the
// point at which they parted, before which was done what before says. A fork that is
// live is meant to do that, too; one on hold asks a person each time.
func (s *said) disown(b *bank, child *history, before map[receipt.Key]int, effects journal.ForkEffects) {
	for key := range child.deals {
		s.elsewhere[key] = true
	}
	s.onHold = effects == journal.ForkHold
	if effects != journal.ForkLive {
		return
	}
	for key, times := range s.executions(b) {
		if _, known := child.deals[key]; known {
			times -= before[key]
		}
		for range times - s.parted[key] {
			s.once(s.known[key], "fork --effects live: a parent did it after they had parted")
		}
		s.parted[key] = max(times, s.parted[key])
	}
}
