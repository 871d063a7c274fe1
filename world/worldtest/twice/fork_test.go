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
	end := l.home.stop
	if l.rng.IntN(2) == 0 {
		end = l.home.kill
	}
	if err := end(l.process); err != nil {
		return err
	}
	past, at := l.home.journal.Clone(), "head"
	if all := l.Snapshots(); len(all) > 0 && l.rng.IntN(2) == 0 {
		s := all[l.rng.IntN(len(all))]
		past, at = past.Truncate(journal.Seq(s.Record)), s.Name
	}
	effects := pick(l.rng, journal.ForkHold, journal.ForkLive, journal.ForkLive)
	child := newHome(fmt.Sprintf("fork%d", l.forks+1), l.home.dir, past)
	err := world.Fork(world.Config{Journal: past, History: past, Keys: child.keys, Registry: registry()},
		journal.Forked{World: child.id, Effects: effects, Actor: "ada"}, nil)
	if err != nil { // a tick is open there
		return l.open()
	}
	l.forks++
	l.count("fork " + string(effects))
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
	l.said.disown(l.bank, l.history, effects)
	l.sound.forbidden = make(map[receipt.Key]bool) // what the parent left is the parent's
	return l.open()
}

// disown notes what a fork cannot know of its parents: what they have asked for
// after the point at which they parted. A fork that is live is meant to do that,
// too; one on hold asks a person each time.
func (s *said) disown(b *bank, child *history, effects journal.ForkEffects) {
	for key := range child.deals {
		s.elsewhere[key] = true
	}
	for key, d := range s.known {
		times, coming := b.happened(key)
		if coming {
			times++
		}
		if _, known := child.deals[key]; known || effects != journal.ForkLive {
			continue
		}
		for range times - s.parted[key] {
			s.once(d, "fork --effects live: a parent did it after they had parted")
		}
		s.parted[key] = max(times, s.parted[key])
	}
}
