package world

import (
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Fork makes another world of the one whose journal cfg holds: b names it, and
// cfg.Keys are its own. It is durable on return. The journal must end between
// two ticks. Open opens the new world.
func Fork(cfg Config, b Forked) error {
	w, err := open(cfg)
	if err != nil {
		return err
	}
	if err := w.k.fork(b); err != nil {
		return err
	}
	return w.Checkpoint()
}

// fork writes a world.forked. What is under way in the parent is the parent's.
func (k *kernel) fork(b Forked) error {
	if k.tickOpen() {
		return errTickOpen
	}
	switch b.Effects {
	case ForkHold, ForkLive, ForkRecorded:
	default:
		return refuse(ErrForkEffects, "effects", "%q", b.Effects)
	}
	if b.World == k.id {
		return refuse(ErrSameWorld, "world", "%s", b.World)
	}
	b.V, b.Parent, b.At, b.ChainRoot, b.Actor = bodyVersion, k.id, k.last, k.chain.Root(), journaled(b.Actor)
	k.body = b.append(k.body[:0])
	id, _ := k.write(KindForked, 0)
	k.id, k.inTick = b.World, false
	k.onHold = b.Effects == ForkHold
	k.disown(b.Effects == ForkRecorded, id)
	return nil
}

// disown parts a fork from what is under way in its parent. Where recordings
// answer, all of it can be asked for; else nobody here knows what came of the
// attempts in flight, and what has not started waits for a person.
func (k *kernel) disown(recorded bool, cause Seq) {
	for len(k.ledger.InFlight()) > 0 {
		e := k.ledger.InFlight()[0]
		d := InDoubt{
			V: bodyVersion, Key: e.Intent.Key, Cell: e.Intent.Cell, Attempt: e.Attempt,
			Action: manifest.InDoubtPark, Reason: "it is in flight in the parent world",
		}
		if recorded {
			d.Action = manifest.InDoubtRetry
		}
		k.body = d.append(k.body[:0])
		k.write(KindInDoubt, cause)
		if recorded {
			k.ledger.Reopen(e, false)
		} else {
			k.ledger.Doubt(e, false)
		}
	}
	if recorded {
		return
	}
	for _, e := range k.ledger.In(receipt.StateOpen) {
		k.writeParked(&e.Intent, []string{ruleOnHold}, receipt.NoDeadline, cause)
		k.ledger.Stop(e)
	}
}
