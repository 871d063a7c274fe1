package pglog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/worldkernel/worldkernel/journal"
)

// Create makes a world without records and without an owner.
func (s *Store) Create(ctx context.Context, id string, key []byte) error {
	return s.create(ctx, id, key, journal.Live, "")
}

// makings are how often Make looks what is in its way: what is being made may be made over what was moved.
const makings = 3

// Make begins to make a world: nobody but who claims it as Made has to do with it until World.Publish.
// What was left of one that was begun, and whose maker is gone, goes, and it is made over one that was moved
// away; see journal.Movable.
func (s *Store) Make(ctx context.Context, id string, key []byte, m journal.Making) error {
	for n := 1; ; n++ {
		err := s.create(ctx, id, key, journal.Made, m.Copies)
		if !isRefused(err, WorldExists) {
			return err
		}
		v, failed := s.World(id, Claim{Made: true}).readStand(ctx)
		switch {
		case isRefused(failed, WorldMoved):
			if v.left != m.Over {
				return failed
			}
			return s.makeOver(ctx, s.World(id, Claim{Key: key}), v, m)
		case isRefused(failed, NoWorld): // it went meanwhile
		case failed != nil:
			return failed
		case v.state != journal.Made || n == makings:
			return err
		case v.alive:
			return refuse(WorldMade, "%s, by node %s", id, v.node)
		default:
			if err := s.unmake(ctx, v); err != nil {
				return err
			}
		}
	}
}

// makeOver is Make of a world that was looked at, and was moved away.
func (s *Store) makeOver(ctx context.Context, w *World, v stand, m journal.Making) error {
	if err := w.checkSeal(v); err != nil {
		return err
	}
	args := []any{v.wid, newUUID(), make([]byte, sha256.Size), w.seal(0, journal.Head{}), bigint(m.Over.Head.ID), m.Over.Head.Root[:], m.Over.To, m.Copies}
	err := s.insist(ctx, func(ctx context.Context) error { return s.row(ctx, sqlMakeOver, args, new(int64)) })
	if errors.Is(err, pgx.ErrNoRows) {
		return refuse(WorldExists, "%s: another has made it meanwhile, or moved it", w.id)
	}
	return err
}

// unmake takes away a world that was looked at, and has not become whole. Where that is so no
// more it does nothing.
func (s *Store) unmake(ctx context.Context, v stand) error {
	err := s.insist(ctx, func(ctx context.Context) error {
		return s.row(ctx, sqlUnmake, []any{v.wid, v.token}, new(int64))
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

func (s *Store) create(ctx context.Context, id string, key []byte, state journal.State, copies string) error {
	if !validID(id) {
		return refuse(BadWorldID, "%q", id)
	}
	w := s.World(id, Claim{Key: key})
	if len(key) < minKey {
		return refuse(NoKey, "world %s", id)
	}
	args := []any{id, newUUID(), make([]byte, sha256.Size), w.seal(0, journal.Head{}), state, copies}
	return s.insist(ctx, func(ctx context.Context) error {
		err := s.row(ctx, sqlCreate, args, &w.wid)
		if errors.Is(err, pgx.ErrNoRows) {
			return refuse(WorldExists, "%s", id)
		}
		return err
	})
}

// Publish makes a world whole that was being made: others may have to do with it from then on.
func (w *World) Publish(ctx context.Context) error {
	w.keeping.Lock()
	defer w.keeping.Unlock()
	return w.keep(ctx, sqlPublish, nil, new(int64))
}

// Make implements journal.Movable: see Store.Make. The claim is one of what is Made.
func (w *World) Make(ctx context.Context, m journal.Making) error {
	return w.store.Make(ctx, w.id, w.claim.Key, m)
}

// Stands implements journal.Movable.
func (w *World) Stands(ctx context.Context) (journal.Standing, error) {
	v, err := w.readStand(ctx)
	if isRefused(err, NoWorld) || isRefused(err, WorldMade) || isRefused(err, WorldMoved) {
		err = nil
	}
	return journal.Standing{State: v.state, Head: v.head, Left: v.left, Copies: v.copies}, err
}

// MoveAway implements journal.Movable. What the world had goes, as far as the server lets it: what is
// left goes when it is moved away again, or made anew.
func (w *World) MoveAway(ctx context.Context, to string) error {
	if err := w.checkPlace(to); err != nil {
		return err
	}
	w.keeping.Lock()
	defer w.keeping.Unlock()
	if err := w.keep(ctx, sqlMoveAway, []any{to}, new(int64)); err != nil {
		return err
	}
	wid, _, err := w.owner()
	if err != nil {
		return err
	}
	for _, sql := range sqlEmpty() {
		for gone := int64(1); gone > 0; {
			if err := w.store.insist(ctx, func(ctx context.Context) error { return w.store.row(ctx, sql, []any{wid, emptied}, &gone) }); err != nil {
				return nil //nolint:nilerr // it is moved
			}
		}
	}
	return nil
}

// checkPlace refuses what sqlFault would call damage.
func (w *World) checkPlace(to string) error {
	if len(to) > maxText {
		return fmt.Errorf("pglog: the place that world %s moves to has %d bytes: %d are the most", w.id, len(to), maxText)
	}
	return nil
}

// Forward replaces the recorded destination of a moved world by another, after the world has moved
// on from there.
func (w *World) Forward(ctx context.Context, from, to string) error {
	if err := w.checkPlace(to); err != nil {
		return err
	}
	err := w.insist(ctx, func(ctx context.Context) error {
		return w.store.row(ctx, sqlForward, []any{w.id, from, to}, new(int64))
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// emptied is how many rows go at once of a world that was moved away.
const emptied = 1000
