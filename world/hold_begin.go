package world

import (
	"context"

	"github.com/worldkernel/worldkernel/receipt"
)

// Hold has the world permit nothing until release is called, also in the ticks that come meanwhile. The host
// gives back what it has not begun: on return that is open again. A caller that is about to put other rules in
// force, or to stop what is open, holds the world first; otherwise attempts would begin meanwhile under the
// old rules. In the journal it is a tick that permits nothing. release is called as other methods of w are.
// Several callers may hold the world.
func (w *World) Hold(ctx context.Context) (release func(), err error) {
	if w.k.tickOpen() { // a crash or an error interrupted it
		if err := w.finishTick(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.deliverRecalled(); err != nil {
		return nil, err
	}
	w.k.stills++
	release = func() {
		w.k.stills--
		if w.host != nil {
			w.host.Wake() // whoever drives the world looks again
		}
	}
	if err := w.takeBack(ctx); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// takeBack begins a tick that permits nothing and takes what the host has not begun.
func (w *World) takeBack(ctx context.Context) error {
	if w.host == nil || len(w.k.ledger.Unfinished()) == 0 { // without keys nothing is ever permitted
		return nil
	}
	if !w.k.still {
		if err := w.k.advance(w.k.now, true); err != nil {
			return err
		}
	}
	// What was held back since the world was opened goes to the host now, to be given back: see startTasks.
	if err := w.finishTick(ctx); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	var tasks []receipt.Task
	for _, e := range w.k.ledger.InFlight() {
		if w.host.Live(&e.Intent) {
			tasks = append(tasks, w.giveBack(w.k.permit(e)))
		}
	}
	w.host.Start(tasks)
	if err := w.Settle(ctx); err != nil {
		return err
	}
	return w.sync()
}

// Queued returns the attempts in flight that a Hold would take back.
func (m *Moment) Queued() receipt.Queued {
	if m.queued == nil {
		return nil
	}
	return m.queued()
}

// notBegun returns what waits at the host, what waits for the world to be driven, and what a
// process before has given back.
func (w *World) notBegun() receipt.Queued {
	if w.host == nil {
		return nil
	}
	all := w.host.Queued()
	if all == nil {
		all = make(receipt.Queued)
	}
	for _, t := range w.held {
		if t.Work == receipt.Perform && w.host.Live(&t.Intent) {
			all[t.Key] = t.Attempt
		}
	}
	for e := range w.givenBack() {
		all[e.Intent.Key] = e.Attempt
	}
	return all
}

// giveBack asks for an attempt unless it was begun. One that asks what came of something does nothing,
// and is not broken off for that.
func (w *World) giveBack(p receipt.Permit) receipt.Task {
	p.Accepted = ""
	return receipt.Task{Work: receipt.GiveBack, Permit: p}
}

// Landed takes what the outside has answered, and reports whether no effect is in flight.
func (w *World) Landed(ctx context.Context) (bool, error) {
	if err := w.Settle(ctx); err != nil {
		return false, err
	}
	return len(w.k.ledger.InFlight()) == 0, w.sync()
}
