package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/worldkernel/worldkernel/journal"
)

// settle finds out what became of a flight that the server has not answered for, and sees to it
// that it becomes durable where it may. Nothing of the world is sent meanwhile.
func (s *Store) settle(f *flight, why error) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Patience)
	defer cancel()
	pauses := newPauses()
	for {
		at, err := s.confirm(ctx, f)
		switch {
		case errors.Is(err, journal.ErrFenced), errors.Is(err, journal.ErrRewound):
			return err
		case errors.As(err, new(*DamageError)):
			return inWorld(f.world.id, err)
		case err != nil:
			why = err
		case at != f.head && at != f.after:
			return fmt.Errorf("pglog: world %s: %w: it ends at #%d, and not at #%d or #%d",
				f.world.id, journal.ErrRewound, at.ID, f.after.ID, f.head.ID)
		case at != f.after: // nothing at all moves no head: it is sent until a row answers
			return nil
		default:
			landed, err := s.transmit(ctx, []*flight{f})
			if landed[f.wid] == 1 {
				return nil
			}
			if isDuplicate(err) {
				return fmt.Errorf("pglog: world %s: %w: there are records after its head #%d: %w", f.world.id, journal.ErrRewound, at.ID, err)
			}
			if err != nil {
				why = err
			}
			if err != nil && lasting(err) { // of what was sent first nobody knows
				return fmt.Errorf("pglog: world %s: %w: %w", f.world.id, journal.ErrUnknown, refusedBy(err))
			}
		}
		if !pause(ctx, pauses) {
			return fmt.Errorf("pglog: world %s: %w: %w", f.world.id, journal.ErrUnknown, why)
		}
	}
}

// confirm returns where the world stands as its owner has it, by a write: what it has seen waits
// for the same standbys as an append. Journal.ErrFenced says that it has another owner by now, and
// journal.ErrRewound that the database is one from before.
func (s *Store) confirm(ctx context.Context, f *flight) (journal.Head, error) {
	var epoch uint64
	var ours, confirmed bool
	var at journal.Head
	err := s.row(ctx, sqlConfirm, []any{f.wid, f.token}, &epoch, &ours, &confirmed, &at.ID, &fixed{at.Root[:]})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return at, fmt.Errorf("pglog: world %s: %w: it is not in the store any more", f.world.id, journal.ErrRewound)
	case err != nil:
		return at, err
	case confirmed:
		return at, nil
	case ours:
		return at, errors.New("pglog: somebody takes the world over")
	case epoch <= f.epoch: // epochs only grow
		return at, fmt.Errorf("pglog: world %s: %w: epoch %d is not this owner's", f.world.id, journal.ErrRewound, epoch)
	}
	return at, journal.ErrFenced
}

func isDuplicate(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && said.Code == "23505"
}
