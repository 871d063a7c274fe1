package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// run lets so much time go by. Ticks in which nothing happens are jumped over.
func (p *play) run(ctx context.Context, ticks manifest.Tick) error {
	now, next, ok, err := p.settle(ctx)
	for end := now + ticks; err == nil && now < end; now, next, ok, err = p.settle(ctx) {
		if !ok || next > end {
			next = end
		}
		// Time goes by, so that it comes to what NextTick does not jump to, too.
		p.lw.View(func(m *world.Moment) {
			if at, waits := m.NextWake(); waits {
				next = min(next, max(at, now+1))
			}
		})
		if err := p.tick(ctx, next); err != nil {
			return err
		}
	}
	return err
}

// most is how many ticks are run at most.
func (p *play) most() uint64 { return cmp.Or(p.s.Ticks, DefaultTicks) }

// tick runs one. The error is errTicks where there were too many.
func (p *play) tick(ctx context.Context, at manifest.Tick) error {
	if err := ctx.Err(); err != nil { // of a tick in which nothing happens nobody else asks
		return err
	}
	if p.ticks == p.most() {
		return errTicks
	}
	p.ticks++
	return p.lw.Update(func(w *world.World) error { return w.RunTick(ctx, at, false) })
}

// settle has all that can happen in the tick happen. It returns it, and the next one in which
// something does; false: none is.
func (p *play) settle(ctx context.Context) (now, next manifest.Tick, ok bool, err error) {
	for {
		if err := p.lw.Update(func(w *world.World) error { return errors.Join(w.Settle(ctx), w.Sync()) }); err != nil {
			return 0, 0, false, err
		}
		retries := false
		p.lw.View(func(m *world.Moment) {
			now, retries = m.Time(), len(m.Waiting()) > 0
			next, ok = m.NextTick()
		})
		if !retries {
			break
		}
		if err := p.lw.Wait(ctx); err != nil {
			return 0, 0, false, err
		}
	}
	if at, comes := p.out.comes(); comes && (!ok || at < next) {
		next, ok = at, true
	}
	return now, next, ok, nil
}

// rest runs the world until it is idle, or waits for what never comes.
func (p *play) rest(ctx context.Context) error {
	for {
		_, next, ok, err := p.settle(ctx)
		if err != nil || !ok {
			return err
		}
		if err := p.tick(ctx, next); err != nil {
			return err
		}
	}
}

// lastRecords is how many of the last records say what keeps a world going.
const lastRecords = 1000

// endless says that a world does not come to rest within a limit, and which cell goes on.
func (p *play) endless(limit string) string {
	counts, last := make(map[string]int), make(map[string]string)
	head := p.lw.Status().Head.ID
	for s, err := range p.lw.Scan(head - min(head, lastRecords)) {
		if errors.Join(err, s.Err) != nil {
			break
		}
		body, err := s.Record.LoadBody(p.lw)
		if err != nil {
			break
		}
		switch b := body.(type) {
		case *journal.Stepped:
			counts[b.Cell]++
		case *journal.TimerFired:
			last[b.Cell] = "timer " + b.Name
		case *journal.Emitted:
			for _, to := range b.To {
				last[to] = "event " + b.Name
			}
		}
	}
	busiest := ""
	for _, cell := range slices.Sorted(maps.Keys(counts)) {
		if counts[cell] > counts[busiest] {
			busiest = cell
		}
	}
	text := fmt.Sprintf("the world does not come to rest within %s allows more", limit)
	if busiest != "" {
		text += fmt.Sprintf(". %s goes on, at last by %s: %d of the last %d records are its steps",
			busiest, cmp.Or(last[busiest], "an event"), counts[busiest], min(head, lastRecords))
	}
	return text
}
