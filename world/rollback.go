package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
)

// ErrOtherState says that an image does not have the state root that its
// snapshot's record names. Nothing has changed.
var ErrOtherState = errors.New("world: the stored image is not the snapshot's")

// SideEffectsError says that a rollback leaves side effects behind that nobody
// has acknowledged. Nothing has changed.
type SideEffectsError struct {
	Snapshot string
	Effects  []SideEffect
}

func (e *SideEffectsError) Error() string {
	return fmt.Sprintf("world: a rollback to %s leaves %d side effects behind, and they have to be acknowledged", e.Snapshot, len(e.Effects))
}

// Rollback returns cells, mailboxes and timers to what they were at a snapshot.
// Snapshot, Reason and Actor of b are needed; Ack, Compensate and Fresh say how.
// It is durable on return. What it returns is what the journal holds of it. The
// errors are *SideEffectsError, ErrOtherState and *InputError.
func (w *World) Rollback(ctx context.Context, b RolledBack) (*RolledBack, error) {
	if err := w.finishTick(ctx); err != nil {
		return nil, err
	}
	if err := w.sync(); err != nil {
		return nil, err
	}
	p, err := w.k.readPast(w.cfg.History, &b, nil)
	if err != nil {
		return nil, err
	}
	done, err := w.k.rollback(b, p)
	if err != nil {
		return nil, err
	}
	if err := w.sync(); err != nil {
		return nil, err
	}
	if err := w.k.tellRecalled(w.cfg.History); err != nil {
		return nil, w.fail(err)
	}
	return done, w.Checkpoint()
}

// Leaves returns what a rollback to a snapshot would leave behind.
func (w *World) Leaves(b RolledBack) ([]SideEffect, error) {
	p, err := w.k.readPast(w.cfg.History, &b, nil)
	if err != nil {
		return nil, err
	}
	return w.k.sideEffects(&b, p), nil
}

// turning is where a rollback led: the history before Record goes on from To.
type turning struct {
	_      struct{} `cbor:",toarray"`
	Record Seq
	To     Seq
}

// inHistory reports whether a record belongs to the history that led to another.
func (k *kernel) inHistory(record, of Seq) bool {
	for _, t := range slices.Backward(k.rollbacks) {
		if t.Record > of {
			continue
		}
		if record >= t.Record {
			break
		}
		of = t.To
	}
	return record <= of
}

// common returns the last record that is in the history of now and in the one
// that led to another record.
func (k *kernel) common(of Seq) Seq {
	if k.inHistory(of, k.last) {
		return of
	}
	var last Seq
	for _, t := range k.rollbacks { // histories part where a rollback led
		if t.To > last && k.inHistory(t.To, of) && k.inHistory(t.To, k.last) {
			last = t.To
		}
	}
	return last
}

// past is what a rollback needs to know of what was.
type past struct {
	to      snapshot.Snapshot
	core    imageCore
	cells   map[reducer.Cell]*cell // those that changed since, as they were; others were not there
	changed []*cell                // as they are, by name
	left    []*receipt.Entry       // asked for in the history that is left, and not in the one that is returned to
	answers map[receipt.Key]*answered
}

// answered is what a compensation is computed of.
type answered struct {
	receipt *receipt.Receipt
	params  Data
}

// readPast reads what a rollback needs. images, if not nil, are asked before h:
// a replay's own.
func (k *kernel) readPast(h History, b *RolledBack, images *Images) (*past, error) {
	s, err := k.catalog.Find(b.Snapshot)
	if err != nil {
		return nil, refuse(err, "snapshot", "%q", b.Snapshot)
	}
	p := &past{to: s, cells: make(map[reducer.Cell]*cell), answers: make(map[receipt.Key]*answered)}
	for _, c := range k.cells { // order cannot show: sorted below
		if c.changed > Seq(s.Record) {
			p.changed = append(p.changed, c)
		}
	}
	slices.SortFunc(p.changed, func(a, b *cell) int { return cmp.Compare(a.name, b.name) })
	img, err := readPart(h, images, Seq(s.Record), cellNames(p.changed))
	if err != nil {
		return nil, fmt.Errorf("world: snapshot %s: %w", s.Name, err)
	}
	if err := canon.Unmarshal(img.Core, &p.core); err != nil {
		return nil, fmt.Errorf("world: snapshot %s: %w", s.Name, err)
	}
	for i := range img.Cells {
		c, err := decodeCell(&img.Cells[i])
		if err != nil {
			return nil, fmt.Errorf("world: snapshot %s: cell %s: %w", s.Name, img.Cells[i].Cell, err)
		}
		p.cells[c.id] = c
	}
	k.findLeft(p)
	if b.Compensate {
		err = k.readAnswers(h, p)
	}
	return p, err
}

func readPart(h History, images *Images, at Seq, cells []string) (*Image, error) {
	if images != nil {
		if img, err := images.Part(at, cells); err == nil {
			return img, nil
		}
	}
	return h.Part(at, cells)
}

// findLeft finds the intents of the history that a rollback leaves.
func (k *kernel) findLeft(p *past) {
	to := Seq(p.to.Record)
	for _, e := range k.ledger.AskedAfter(uint64(k.common(to))) {
		asked := func(record uint64) bool { return k.inHistory(Seq(record), to) }
		if e.For == nil && !slices.ContainsFunc(e.Asked, asked) {
			p.left = append(p.left, e)
		}
	}
}

// readAnswers reads what the compensations of a rollback are computed of.
func (k *kernel) readAnswers(h History, p *past) error {
	for _, e := range p.left {
		rule := k.rules.effects[e.Intent.Kind]
		if e.State != receipt.StateCommitted || rule == nil || rule.compensation == nil || e.Reused {
			continue
		}
		body, err := readBody(h, Seq(e.Finished))
		if err != nil {
			return err
		}
		finished, ok := body.(*Finished)
		if !ok {
			continue // a person said that it happened: there is no receipt
		}
		a := new(answered)
		if a.receipt, err = receipt.Decode(finished.Receipt); err != nil {
			return fmt.Errorf("world: record #%d: %w", e.Finished, err)
		}
		if body, err = readBody(h, Seq(e.Emitted)); err != nil {
			return err
		}
		if intent, ok := body.(*IntentEmitted); ok {
			a.params = intent.Params
		}
		p.answers[e.Intent.Key] = a
	}
	return nil
}

// sideEffects returns what a rollback leaves behind, and what becomes of each.
func (k *kernel) sideEffects(b *RolledBack, p *past) []SideEffect {
	out := []SideEffect{}
	for _, e := range p.left {
		if e.Abandoned || !e.Happens() {
			continue
		}
		x := SideEffect{
			Key: e.Intent.Key, Step: e.Intent.Step, Cell: e.Intent.Cell, Kind: e.Intent.Kind, State: e.State,
			Record: Seq(max(e.Emitted, e.Started, e.Finished)), Disposition: Kept,
		}
		switch {
		case isOperators(e):
		case b.Compensate && k.undoing(e, p) != nil:
			x.Disposition = Compensated
		case b.Ack:
			x.Disposition = Acknowledged
		}
		out = append(out, x)
	}
	return out
}

func isOperators(e *receipt.Entry) bool {
	asker, err := reducer.ParseCell(e.Intent.Cell)
	return err != nil || asker.Reducer == reducer.Operator
}

// undoing returns the intent that makes up for one that is left behind, or nil.
func (k *kernel) undoing(e *receipt.Entry, p *past) *receipt.Intent {
	a := p.answers[e.Intent.Key]
	if a == nil {
		return nil
	}
	original := *e
	original.Intent.Params = a.params
	in, err := k.compensation(&original, a.receipt)
	if err != nil || in == nil || k.ledger.Entry(in.Key) != nil {
		return nil // it cannot be computed, or was tried before
	}
	return in
}

// rollback writes a rollback.applied and does what it says.
func (k *kernel) rollback(b RolledBack, p *past) (*RolledBack, error) {
	if k.tickOpen() {
		return nil, errTickOpen
	}
	if b.Reason == "" || b.Actor == "" {
		return nil, refuse(ErrNoReason, "reason", "say who rolls back, and why")
	}
	b.V, b.Reason, b.Actor = bodyVersion, journaled(b.Reason), journaled(b.Actor)
	b.Snapshot, b.Hash, b.SnapshotLen, b.PriorLen = p.to.Name, p.to.Hash, Seq(p.to.At), k.last
	b.Abandoned = k.sideEffects(&b, p)
	unknown := func(x SideEffect) bool { return x.Disposition == Kept && !operatorsCell(x.Cell) }
	if slices.ContainsFunc(b.Abandoned, unknown) {
		return nil, &SideEffectsError{Snapshot: b.Snapshot, Effects: b.Abandoned}
	}
	scheduled, err := k.shifted(p, p.core.Scheduled)
	if err != nil {
		return nil, fmt.Errorf("world: snapshot %s: %w", b.Snapshot, err)
	}
	timers, err := k.shifted(p, p.core.Timers)
	if err != nil {
		return nil, fmt.Errorf("world: snapshot %s: %w", b.Snapshot, err)
	}
	if err := k.checkRoot(p, scheduled, timers); err != nil {
		return nil, err
	}
	k.body = b.append(k.body[:0])
	id, _ := k.write(KindRollback, 0)
	k.scheduled, k.timers = scheduled, timers
	k.returnTo(p, id)
	k.abandon(&b, p, id)
	k.tellAgain(p, id)
	if b.Fresh {
		k.refresh()
	}
	return &b, nil
}

func operatorsCell(name string) bool {
	cell, err := reducer.ParseCell(name)
	return err != nil || cell.Reducer == reducer.Operator
}

// shifted returns a snapshot's alarms with the ticks that they had left then.
func (k *kernel) shifted(p *past, saved []imageAlarm) (alarms, error) {
	saved = slices.Clone(saved)
	for i := range saved {
		saved[i].At = k.now + (saved[i].At - p.core.Now)
	}
	return k.restoreAlarms(saved)
}

// checkRoot makes sure that what a rollback would return has the state root of
// its snapshot.
func (k *kernel) checkRoot(p *past, scheduled, timers alarms) error {
	k.refreshTree()
	for _, c := range p.changed {
		was := p.cells[c.id]
		if was == nil {
			was = &cell{id: c.id, name: c.name}
		}
		k.setLeaves(was)
	}
	root := snapshot.StateRoot(k.tree.cells.Root(), k.tree.mailboxes.Root(), snapshot.Root(alarmLeaves(scheduled, timers, k.now)))
	if root != p.to.State {
		k.dropTree()
		return fmt.Errorf("%w: %s has state root %s, the image %s", ErrOtherState, p.to.Name, p.to.State, root)
	}
	return nil
}

// dropTree has the state root computed anew.
func (k *kernel) dropTree() {
	for _, c := range k.tree.stale {
		c.stale = false
	}
	k.tree = nil
}

// returnTo makes cells and scheduler what they were. The cells' accounts stay:
// what is spent is spent.
func (k *kernel) returnTo(p *past, id Seq) {
	k.lineage = p.core.Lineage
	for _, c := range k.scheduler.queue[k.scheduler.first:] {
		c.queued = false
	}
	k.scheduler = scheduler{}
	for _, c := range p.changed {
		was := p.cells[c.id]
		if was == nil {
			was = new(cell)
		}
		if c.parked {
			k.parked--
		}
		if was.parked {
			k.parked++
		}
		c.state, c.n, c.history, c.mail, c.parked = was.state, was.n, was.history, was.mail, was.parked
		c.born, c.asked, c.awaits = was.born, was.asked, was.awaits
		k.touch(c)
	}
	for _, name := range p.core.Ready {
		if cell, err := reducer.ParseCell(name); err == nil && k.cells[cell] != nil {
			k.scheduler.push(k.cells[cell])
		}
	}
	k.rollbacks = append(k.rollbacks, turning{Record: id, To: Seq(p.to.Record)})
	k.inTick, k.handled = false, 0
}

// abandon does what becomes of the intents that are left behind: those of which
// nothing was attempted are cancelled, the others go on to their end, which waits
// in the ledger for whoever asks again.
func (k *kernel) abandon(b *RolledBack, p *past, id Seq) {
	for _, x := range b.Abandoned {
		if x.Disposition != Compensated {
			continue
		}
		e := k.ledger.Entry(x.Key)
		in := k.undoing(e, p)
		k.ledger.Abandon(e)
		e.Held = receiptEvent(e.Intent.Tag, e.Intent.Kind, receipt.StatusRejected, madeUpFor())
		asker, _ := reducer.ParseCell(in.Cell) // it has been parsed before
		k.judge(asker, *in, id, e)
	}
	for _, e := range p.left {
		switch {
		case isOperators(e):
			continue
		case e.Untouched():
			k.cancel(e, id)
		}
		k.ledger.Abandon(e)
		if b.Fresh {
			k.ledger.Match(e)
		}
	}
}

// cancel ends an intent of which nothing was attempted. Nobody is told: nobody
// waits.
func (k *kernel) cancel(e *receipt.Entry, cause Seq) {
	k.release(e)
	b := IntentEnded{
		V: bodyVersion, Key: e.Intent.Key, Cell: e.Intent.Cell, Step: e.Intent.Step,
		Status: receipt.StatusCancelled, Outcome: receipt.OutcomePermanentFailure,
		Payload: explanation("rolled_back", "a rollback left it behind before anything was attempted"),
	}
	k.body = b.append(k.body[:0])
	id, _ := k.write(KindEnded, cause)
	k.ledger.Cancel(e, uint64(id))
}

// tellAgain has cells told what became, since the snapshot, of the intents that
// they waited for.
func (k *kernel) tellAgain(p *past, id Seq) {
	k.recalls = slices.DeleteFunc(k.recalls, func(r recall) bool {
		asker, _ := reducer.ParseCell(k.ledger.Entry(r.Key).Intent.Cell)
		return k.cells[asker].changed > id
	})
	var ended []*receipt.Entry
	for _, c := range p.changed {
		for _, key := range c.awaits {
			e := k.ledger.Entry(key)
			k.ledger.Return(e)
			if d := k.ledger.Decide(key); d != receipt.WaitOtherWorker {
				ended = append(ended, e)
			}
		}
	}
	slices.SortFunc(ended, func(a, b *receipt.Entry) int { return cmp.Compare(a.Finished, b.Finished) })
	for _, e := range ended {
		k.recall(e, id)
	}
}

// refresh gives every cell another history, so that all steps to come get other
// keys than before.
func (k *kernel) refresh() {
	root := k.chain.Root()
	mix := func(h receipt.History) receipt.History {
		return canon.Sum(append(slices.Clone(h[:]), root[:]...))
	}
	k.lineage = mix(k.lineage)
	for _, c := range k.cells { // order cannot show: each by itself
		if c.born { // the others begin with the lineage
			c.history = mix(c.history)
			k.touch(c)
		}
	}
}
