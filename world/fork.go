package world

import (
	"context"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Amendment derives a new manifest from base and leaves base unchanged. contents are
// those that the new one names and a world with the old one may not have.
type Amendment func(base *manifest.Manifest) (next *manifest.Manifest, contents map[manifest.Hash][]byte, err error)

// Fork makes a new world of the world whose journal cfg holds. b names the new world, cfg.Keys are its keys,
// and amend makes its rules of the parent's; nil: they are the same. b.Live, a manifest.Live, becomes the list
// of the kinds that it names. The journal must end between two ticks. The new world is durable on return, and
// Open opens it. cfg.Bounds and ctx bound the compiling of other rules and the migration of the cells: the
// error is then a *BoundError, or the cause that ctx ended for.
func Fork(ctx context.Context, cfg Config, b *journal.Forked, amend Amendment) error {
	cfg.Life = ctx
	w, err := open(cfg)
	if err != nil {
		return err
	}
	if w.lacks != nil {
		return w.lacks
	}
	next := w.k.rules
	var blobs []journal.Blob
	if amend != nil {
		m, contents, err := amend(next.manifest)
		if err != nil {
			return err
		}
		if err := checkSeed(next.manifest, m); err != nil {
			return err
		}
		if blobs, err = w.contentsOf(m, contents); err != nil {
			return err
		}
		if next, err = compileCandidate(m, blobs[0].Hash, journal.BlobList(blobs), cfg.Registry, newGuard(ctx, w.cfg.Bounds)); err != nil {
			return err
		}
	}
	if err := nameLive(b, next.manifest); err != nil {
		return err
	}
	if err := w.k.fork(*b, next); err != nil {
		return err
	}
	w.k.blobs = append(w.k.blobs, blobs...)
	return w.Checkpoint()
}

// fork writes a world.forked. What is under way in the parent is the parent's.
func (k *kernel) fork(b journal.Forked, next *rules) error {
	if k.tickOpen() {
		return errTickOpen
	}
	if !b.Effects.Known() {
		return refuse(ErrForkEffects, "effects", "%q", b.Effects)
	}
	if b.World == k.id {
		return refuse(ErrSameWorld, "world", "%s", b.World)
	}
	if err := k.fits(next); err != nil {
		return err
	}
	all, err := k.migrate(next, k.otherCode(next))
	if err != nil {
		return err
	}
	b.V, b.Parent, b.At, b.ChainRoot, b.Actor = journal.BodyVersion, k.id, k.last, k.root(), journal.Text(b.Actor)
	b.Manifest = next.hash
	if b.Seed != nil {
		k.seed = *b.Seed
	}
	id := k.writeRecord(journal.KindForked, 0, &b)
	k.id = b.World
	k.govern(next, all, id)
	k.proposals.Disown()
	k.onHold, k.live = b.Effects == journal.ForkHold || b.Effects == journal.ForkLive && len(b.Live) > 0, b.Live
	k.disown(&b, id)
	k.since = k.last
	return nil
}

// nameLive sets the kinds that a fork performs to those that its rules declare.
func nameLive(b *journal.Forked, m *manifest.Manifest) (err error) {
	if b.Effects == journal.ForkHold && len(b.Live) > 0 {
		return refuse(ErrForkEffects, "effects", "%q performs nothing, and %q is to be live", b.Effects, b.Live[0])
	}
	b.Live, err = manifest.Live(b.Live).In(m)
	if err != nil {
		return &InputError{Err: ErrForkLive, Field: "live", Rule: err.Error()}
	}
	return nil
}

// disown parts a fork from what is under way in its parent. If recordings answer, all of it can be asked for
// again: the recordings know it, so it is never performed. Otherwise nobody here knows the results of the
// attempts in flight, and intents that have not started wait for a person.
func (f *effects) disown(b *journal.Forked, cause journal.Seq) {
	recorded := b.Effects == journal.ForkRecorded
	for len(f.ledger.InFlight()) > 0 {
		e := f.ledger.InFlight()[0]
		d := journal.InDoubt{
			Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: e.Intent.Cell, Attempt: e.Attempt,
			Action: manifest.InDoubtAsk, Reason: "it is in flight in the parent world",
		}
		if recorded {
			d.Action = manifest.InDoubtRetry
		}
		f.writeRecord(journal.KindInDoubt, cause, &d)
		if recorded {
			f.keep(e)
			f.ledger.Reopen(e, false)
		} else {
			f.ledger.Doubt(e, false)
		}
	}
	if recorded && len(b.Live) == 0 {
		return
	}
	for _, e := range f.ledger.In(receipt.StateInDoubt) {
		if e.Waiting { // the verifier would ask about this world's external key, and the attempt was made under the parent's
			e.Waiting = false
			f.ledger.Change(e)
		}
	}
	if recorded {
		return
	}
	for _, e := range f.ledger.In(receipt.StateOpen) {
		b := journal.IntentAwaitingApproval{Rules: []string{ruleOnHold}, Deadline: receipt.NoDeadline, Cap: e.Intent.Cap}
		_, seen := f.writeAwaitingApproval(&e.Intent, b, cause)
		f.ledger.Stop(e)
		e.Seen = seen
	}
}
