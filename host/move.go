package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/receipt"
)

// CopyResults makes an effect store of a world, where there is none, of the results that a table
// has: for a copy of the world that has no table.
func CopyResults(ctx context.Context, from Attempts, path, world string) error {
	all, err := from.KeptAttempts(ctx)
	if err != nil {
		return fmt.Errorf("host: attempts: %w", err)
	}
	l, err := openEffectLog(vfs.Default, path, world)
	if err != nil {
		return err
	}
	for _, k := range all {
		l.rows[attempt{k.Key, k.Attempt}] = row{receipt: k.Receipt}
	}
	if err := l.rewrite(); err != nil {
		return fmt.Errorf("host: effect store: %w", err)
	}
	return l.file.Close()
}

// AwaitLeases returns when nobody goes on with an attempt that is begun in a table: what had the world
// before may have been alive when it was taken over, and so may workers. It is for a copy of the world
// that has no table, and so does not know of them. Whoever calls it owns the world.
func AwaitLeases(ctx context.Context, from Attempts) error {
	all, err := from.KeptAttempts(ctx)
	if err != nil {
		return fmt.Errorf("host: attempts: %w", err)
	}
	var longest time.Duration
	for _, k := range all {
		if k.Receipt == nil {
			longest = max(longest, k.Lease)
		}
	}
	return await(ctx, longest)
}

// MoveAttempts gives a table the attempts that a world in a directory has in flight: with the
// results that its effect store has, the others as begun, for nobody can tell.
func MoveAttempts(ctx context.Context, to Attempts, path, world string, inFlight []receipt.Permit) error {
	file, err := readAll(vfs.Default, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("host: effect store: %w", err)
	}
	kept := make(map[attempt][]byte)
	if err == nil {
		if kept, _, err = parseStore(file, world); err != nil {
			return fmt.Errorf("host: effect store: %w", err)
		}
	}
	var run [16]byte
	_, _ = rand.Read(run[:]) // which never fails
	for group := range slices.Chunk(inFlight, movedGroup) {
		var c, over receipt.AttemptChanges
		for _, p := range group {
			k := receipt.KeptAttempt{Key: p.Key, Attempt: p.Attempt, Run: run, Receipt: kept[attempt{p.Key, p.Attempt}]}
			if k.Receipt != nil {
				c.End = append(c.End, k)
			} else {
				c.Begin = append(c.Begin, k)
				over.Renew = append(over.Renew, k) // without a lease: who began it has ended
			}
		}
		_, err := to.ChangeAttempts(ctx, &c)
		if err == nil {
			_, err = to.ChangeAttempts(ctx, &over)
		}
		if err != nil {
			return fmt.Errorf("host: attempts: %w", err)
		}
	}
	return nil
}

// movedGroup is how many attempts are moved at once.
const movedGroup = 256
