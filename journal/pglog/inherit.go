package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// How many rows are inherited at once: what a statement takes is not for the whole of a world.
const (
	inheritedFrames = 128
	inheritedBlobs  = 1024
)

// Sibling returns another world of the same store, to be made: see Make.
func (w *World) Sibling(id string, key []byte) journal.Movable {
	return w.store.World(id, Claim{Key: key, Made: true})
}

// Inherit implements journal.Movable. Rows go from world to world on the server; of a frame that
// the head lies in, what is before comes here and goes back. Nobody has to do with a world that is
// being made, so none of it has to be one transaction.
func (w *World) Inherit(ctx context.Context, from journal.Log, to journal.Head) error {
	parent, ok := from.(*World)
	if !ok || parent.store.ID() != w.store.ID() || parent.store.pool.Config().ConnString() != w.store.pool.Config().ConnString() {
		return journal.ErrElsewhere
	}
	w.keeping.Lock()
	defer w.keeping.Unlock()
	wid, err := parent.number(ctx)
	if err != nil {
		return err
	}
	whole, err := w.inheritFrames(ctx, wid, to)
	if err == nil {
		err = w.inheritBlobs(ctx, wid)
	}
	if err == nil {
		err = w.inherited(ctx, whole)
	}
	if err == nil && whole != to {
		err = w.inheritRest(ctx, parent, whole, to)
	}
	if err != nil {
		return fmt.Errorf("pglog: world %s: what it has of world %s: %w", w.id, parent.id, err)
	}
	return nil
}

// inheritFrames takes the frames up to a head, and returns the head that whole ones lead to.
func (w *World) inheritFrames(ctx context.Context, parent int64, to journal.Head) (whole journal.Head, err error) {
	err = w.insist(ctx, func(ctx context.Context) error {
		return w.store.row(ctx, sqlNextFrame, []any{parent, bigint(to.ID)}, &whole.ID, &fixed{whole.Root[:]})
	})
	whole.ID--
	if errors.Is(err, pgx.ErrNoRows) || err == nil && whole.ID == to.ID && whole != to {
		err = fmt.Errorf("it has no record #%d as it was asked for", to.ID)
	}
	for last := journal.Seq(0); err == nil && last < whole.ID; {
		after := last
		err = w.keep(ctx, sqlInheritFrames, []any{parent, bigint(after), bigint(whole.ID), inheritedFrames}, &last)
		if err == nil && last == 0 {
			err = fmt.Errorf("there is no frame between #%d and #%d", after, whole.ID)
		}
	}
	return whole, err
}

func (w *World) inheritBlobs(ctx context.Context, parent int64) error {
	for last := []byte{}; last != nil; {
		if err := w.keep(ctx, sqlInheritBlobs, []any{parent, last, inheritedBlobs}, &last); err != nil {
			return err
		}
	}
	return nil
}

// inherited makes a head the world's.
func (w *World) inherited(ctx context.Context, head journal.Head) error {
	w.mu.Lock()
	seal := w.seal(w.epoch, head)
	w.mu.Unlock()
	var whole bool
	if err := w.keep(ctx, sqlInherited, []any{bigint(head.ID), head.Root[:], seal}, &whole); err != nil {
		return err
	}
	if !whole {
		return fmt.Errorf("not all is there up to #%d: it went meanwhile", head.ID)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tail = head
	return nil
}

// inheritRest appends the records of another world between two heads.
func (w *World) inheritRest(ctx context.Context, parent *World, after, to journal.Head) error {
	b, chain := journal.Batch{After: after, Head: to}, canon.ResumeChain(after.Root)
	for r, err := range parent.Records(ctx, after.ID) {
		if err != nil {
			return err
		}
		e, err := canon.DecodeEnvelopeAs(r.Bytes, journal.KindOf)
		if err != nil {
			return err
		}
		b.Records = append(b.Records, journal.Stored{ID: r.ID, Bytes: r.Bytes, Root: chain.Add(uint64(r.ID), e.Kind, r.Bytes)})
		if r.ID == to.ID {
			break
		}
	}
	if chain.Root() != to.Root {
		return fmt.Errorf("record #%d is another than the one that was asked for", to.ID)
	}
	p, err := w.Append(b)
	if err != nil {
		return err
	}
	return p.Wait()
}
