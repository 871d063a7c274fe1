package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

const (
	lookEvery  = time.Second
	maxLines   = 10     // of a look; one more sums the rest up
	maxScanned = 20_000 // records of a look that are read for what was denied; all of it is counted
)

// Follow tells a terminal or a log what happens to a world that a person has to know: at once
// a line with what waits already, then a line for each thing that newly waits for a person,
// each cell that halts and each intent that is denied, at most eleven lines a second. The rest
// of it is what on returns: that ends once ctx or the world has ended and all is told.
func Follow(w *local.World, begin string, tell func(line string)) (on func(context.Context)) {
	s := w.Status()
	f := follower{Journal: view.Journal{Local: w}, at: s.Head.ID, refused: s.Intents[receipt.StateDenied]}
	if _, counts := f.waits(0); len(counts) > 0 {
		begin += "; " + summed(counts)
	}
	tell(begin)
	return func(ctx context.Context) {
		for going := true; going; {
			if going = w.Await(ctx, f.at) == nil; going {
				sleep(ctx, lookEvery)
			}
			f.tellNews(tell)
		}
	}
}

// follower knows what was told of a world.
type follower struct {
	view.Journal

	at      journal.Seq     // the head of the last look
	ids     map[string]bool // of what waited then
	refused int             // intents that were denied until then
}

// tellNews tells what is new.
func (f *follower) tellNews(tell func(string)) {
	s := f.Local.Status()
	lines, rest := f.waits(maxLines)
	denied, more := f.denied(maxLines-len(lines), s.Head.ID, s.Intents[receipt.StateDenied])
	if more > 0 {
		rest[wantsNothing] = more
	}
	for _, line := range append(lines, denied...) {
		tell(line)
	}
	if len(rest) > 0 {
		tell("and besides: " + summed(rest))
	}
	f.at, f.refused = s.Head.ID, s.Intents[receipt.StateDenied]
}

// waits returns lines about what newly waits, and counts of what is in none.
func (f *follower) waits(most int) (lines []string, rest map[view.Wanted]int) {
	ids, rest := make(map[string]bool), make(map[view.Wanted]int)
	for _, x := range waiting(f.Journal) {
		switch ids[x.ID] = true; {
		case f.ids[x.ID]:
		case len(lines) < most:
			lines = append(lines, f.line(x))
		default:
			rest[x.Wants]++
		}
	}
	f.ids = ids
	return lines, rest
}

// denied returns lines about what was denied since the last look, and how much is in none.
// end is the head, and refused how much was denied until then.
func (f *follower) denied(most int, end journal.Seq, refused int) (lines []string, more int) {
	if more = refused - f.refused; more <= 0 || most == 0 {
		return nil, max(more, 0)
	}
	f.End() // then all of it can be read
	for e, err := range f.Between(max(f.at, end-min(end, maxScanned))+1, end, []journal.Kind{journal.KindDenied}) {
		if err != nil || len(lines) == most {
			break // who reads the journal finds out what is wrong with it
		}
		if b, ok := e.Body.(*journal.IntentDenied); ok {
			lines = append(lines, fmt.Sprintf("%s: %s of %s, intent %s: %s", only(wantsNothing), short(b.Kind), short(b.Cell), view.Short(b.Key), short(view.WhyDenied(b))))
		}
	}
	return lines, max(more-len(lines), 0)
}

// line says what waits.
func (f *follower) line(x Item) string {
	switch {
	case x.Proposal != "":
		return only(x.Wants) + ": " + x.Proposal
	case x.Kind == "":
		return only(x.Wants) + ": " + x.Cell
	}
	params := view.Describer{Journal: f.Journal}.ParamsOf(x.intent)
	return fmt.Sprintf("%s: %s of %s, intent %s  %s", only(x.Wants), x.Kind, x.Cell, view.Short(x.intent), short(params))
}
