package world

import (
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// line goes through the open intents, oldest first, and finds those whose next attempt waits for nothing but
// a slot. An intent that waits claims the need of its next attempt from every budget that it draws on;
// younger intents have the rest. So no intent is passed forever, even if it waits for a rate, or for several
// budgets with room at different times. Among intents that wait for the same rate, and among equal intents,
// only the oldest claims.
type line struct {
	*effects

	at     int // in the ledger's Open
	claims governance.Claims
	first  map[governance.Want]*receipt.Entry // the oldest that claims
	paced  map[string]bool                    // kinds of which an older intent waits for the rate, and nothing else
	waits  map[likeness]bool                  // those of which an older intent waits
}

// likeness is equal for intents whose next attempts may cost the same and draw on the same budgets. If one
// waits, the younger ones wait, too.
type likeness struct {
	kind, capability string
	cell             string // where cells have budgets
}

func (l *line) likenessOf(e *receipt.Entry) likeness {
	of := likeness{kind: e.Intent.Kind, capability: e.Intent.Cap}
	if l.rules.gate.OfCells() {
		of.cell = e.Intent.Cell
	}
	return of
}

// waitsAlike reports whether an older equal intent waits for room. Without it, thousands of equal intents
// would be judged one by one.
func (l *line) waitsAlike(e *receipt.Entry) bool {
	return len(l.waits) > 0 && e.Accepted() == "" && l.waits[l.likenessOf(e)]
}

// allWait reports whether every intent in the line waits behind an older equal one. It may return false
// although that is so.
func (l *line) allWait() bool {
	return len(l.waits) > 0 && len(l.waits) >= l.ledger.OpenSorts() && !l.rules.gate.OfCells()
}

// waiting is the reason why an open intent is not attempted.
type waiting struct {
	short  []governance.Shortage // that only comes of what is set aside for others
	behind []governance.Want     // what older intents claim leaves no room
	until  manifest.Tick         // for the rate of its kind; 0: that does not hold it back
}

func (w *waiting) is() bool { return w.forRoom() || w.until > 0 }

func (w *waiting) forRoom() bool { return len(w.short)+len(w.behind) > 0 }

// next returns the oldest intent, from the line's position on, that can be attempted, with the reservation
// for it; or an intent for which the budgets have no room any more, with the shortage. Nil: there is neither.
func (l *line) next() (e *receipt.Entry, need receipt.Cost, gone *governance.Shortage) {
	for open := l.ledger.Open(); l.at < len(open) && !l.allWait(); l.at++ {
		e := open[l.at]
		if l.waitsAlike(e) {
			continue
		}
		need, gone, waits := l.examine(e)
		if gone != nil || !waits.is() {
			return e, need, gone
		}
	}
	return nil, receipt.Cost{}, nil
}

// examine finds out whether an intent can be attempted. If it waits, it claims its need.
func (l *line) examine(e *receipt.Entry) (need receipt.Cost, gone *governance.Shortage, w waiting) {
	if e.Accepted() != "" { // it only asks
		return need, nil, w
	}
	if at := l.paceOf(e.Intent.Kind); at > l.now {
		w.until = at
	}
	if w.until > 0 && l.paced[e.Intent.Kind] {
		return need, nil, w
	}
	need, short, behind := l.rules.gate.Room(&e.Intent, l.drawn(e), e.Reserved, l.claims, l.now)
	if i := slices.IndexFunc(short, func(s governance.Shortage) bool { return s.Gone }); i >= 0 {
		if w.until > 0 {
			return need, nil, w // its budget may have renewed when its turn comes
		}
		return need, &short[i], w
	}
	w.short, w.behind = short, behind
	if w.is() && !l.waitsAlike(e) {
		l.claim(e, need, &w)
	}
	return need, nil, w
}

// claim keeps the need of a waiting intent from younger ones.
func (l *line) claim(e *receipt.Entry, need receipt.Cost, w *waiting) {
	if l.waits == nil {
		l.waits, l.paced = make(map[likeness]bool), make(map[string]bool)
		l.claims, l.first = make(governance.Claims), make(map[governance.Want]*receipt.Entry)
	}
	l.waits[l.likenessOf(e)] = true
	if w.until > 0 && !w.forRoom() {
		l.paced[e.Intent.Kind] = true
	}
	for _, x := range l.rules.gate.Wants(&e.Intent, need) {
		if l.claims.Add(x, need); l.first[x] == nil {
			l.first[x] = e
		}
	}
}

// grant permits attempts of open intents, in the order of the line, while slots are free, and denies intents
// for which the budgets have no room any more. It runs at the beginning of a tick, at the end of a round, and
// when a slot is freed at a barrier. In a still tick, and in a world without a host, nothing is permitted.
func (f *effects) grant() {
	if f.still {
		return
	}
	for l := (line{effects: f}); f.ledger.HasSlot(f.rules.manifest.Limits.InFlight) && f.rules.guard.ended() == nil; {
		e, need, gone := l.next()
		switch {
		case e == nil:
			return
		case gone != nil:
			l.tooLate(e, gone)
			continue
		case !l.mayStart(e):
			continue
		}
		f.setAside(e, need)
		attempt := e.Attempt + 1
		nonce := receipt.NewNonce(f.root(), e.Intent.Key, attempt)
		b := journal.Started{Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Attempt: attempt, Owner: f.ledger.NextSlot(), Nonce: nonce}
		id, _ := f.write(journal.KindStarted, journal.Seq(e.Emitted), b.Append(f.body[:0]))
		f.ledger.Start(l.at, nonce, uint64(id))
		if e.Accepted() == "" {
			f.step(e.Intent.Kind)
		}
		f.tasks = append(f.tasks, receipt.Task{Work: receipt.Perform, Permit: f.permit(e)})
	}
}

// tooLate ends an allowed intent whose budget was used up by others meanwhile.
func (l *line) tooLate(e *receipt.Entry, gone *governance.Shortage) {
	code, reason := gone.Denies(e.Intent.Kind)
	l.deny(e, journal.Seq(e.Emitted), &governance.Decision{Code: code, Reason: reason})
}

// wake returns the next tick in which a waiting intent may be attempted, if no reservation of others comes
// back before: its rate allows it, or (with renewals) its budget has renewed. False: there is no such tick.
func (f *effects) wake(renewals bool) (manifest.Tick, bool) {
	if f.stills > 0 || !f.ledger.HasSlot(f.rules.manifest.Limits.InFlight) {
		return 0, false
	}
	var at manifest.Tick
	sooner := func(tick manifest.Tick) {
		if tick > f.now && (at == 0 || tick < at) && f.reaches(tick) {
			at = tick
		}
	}
	l := line{effects: f}
	for _, e := range f.ledger.Open() {
		if l.allWait() {
			break
		}
		if l.waitsAlike(e) {
			continue
		}
		_, _, w := l.examine(e)
		if !w.forRoom() {
			sooner(w.until)
		}
		for i := range w.short {
			if renewals {
				sooner(w.short[i].Renews)
			}
		}
	}
	return at, at > 0
}

// canGrant reports whether a tick would permit or deny an attempt.
func (f *effects) canGrant() bool {
	if f.stills > 0 || !f.ledger.HasSlot(f.rules.manifest.Limits.InFlight) {
		return false
	}
	l := line{effects: f}
	e, _, _ := l.next()
	return e != nil
}
