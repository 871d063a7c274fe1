package twice

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing/synctest"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

func (l *life) snapshot(ctx context.Context) error {
	s, err := l.Snapshot(ctx, "", "", "ada")
	if err == nil {
		l.count("snapshot")
		l.tell("snapshot %s", s.Name)
	}
	return err
}

// rollback goes back to any snapshot that is kept.
func (l *life) rollback(ctx context.Context) error {
	all := l.Snapshots()
	if len(all) == 0 {
		return nil
	}
	b := journal.RolledBack{
		Snapshot: all[l.rng.IntN(len(all))].Name, Actor: "ada", Reason: "so",
		Ack: l.rng.IntN(3) > 0, Compensate: l.rng.IntN(4) == 0, Fresh: l.rng.IntN(12) == 0,
	}
	returns, under := !l.history.within(b.Snapshot), l.underWay()
	_, _, err := l.Rollback(ctx, b)
	refused := new(world.SideEffectsError)
	if errors.As(err, &refused) {
		l.count("rollback refused")
		if err := l.sound.listed(l, b.Snapshot, refused.Effects); err != nil {
			return err
		}
		b.Ack = true
		_, _, err = l.Rollback(ctx, b)
	}
	if err == nil {
		l.count("rollback")
		if under {
			l.struck.Count("rollback amid effects")
		}
		if returns {
			l.struck.Count("rollback to what was left")
			l.returned = true
		}
		l.tell("rollback to %s%s", b.Snapshot, how(&b))
		synctest.Wait()
		l.sound.leave(l)
	}
	return err
}

func how(b *journal.RolledBack) string {
	var all []string
	for name, is := range map[string]bool{"ack": b.Ack, "compensate": b.Compensate, "fresh": b.Fresh} {
		if is {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return " " + strings.Join(all, " ")
}
