package pglog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// KeptAttempts implements host.Attempts.
func (w *World) KeptAttempts(ctx context.Context) ([]receipt.KeptAttempt, error) {
	wid, _, err := w.owner()
	if err != nil {
		return nil, err
	}
	kept, err := all(ctx, w.store, sqlAttempts, []any{wid, maxContent}, func(r pgx.Rows, k *receipt.KeptAttempt) error {
		var lease int64
		var none bool
		err := r.Scan(&fixed{k.Key.Hash[:]}, &k.Attempt, &fixed{k.Run[:]}, &k.Worker, &lease, &none, &k.Receipt)
		if err == nil && !none && k.Receipt == nil {
			err = w.damaged(errTooLong, "the result of attempt %d of %s", k.Attempt, k.Key)
		}
		k.Lease = time.Duration(lease) * time.Microsecond
		return err
	})
	return kept, inWorld(w.id, err)
}

// attemptID is what an attempt is kept by.
type attemptID struct {
	key    receipt.Key
	number uint64
}

// ChangeAttempts implements host.Attempts. Where an answer is lost the same is asked for again:
// what is begun by then is this run's, and has been performed by nobody.
func (w *World) ChangeAttempts(ctx context.Context, changes *receipt.AttemptChanges) (is receipt.AttemptsChanged, err error) {
	wid, token, err := w.owner()
	if err != nil {
		return is, err
	}
	begun, ours, lease := make(map[attemptID]bool, len(changes.Begin)), false, int64(0) // in microseconds
	args := append([]any{wid, token}, attemptArgs(changes)...)
	err = w.insist(ctx, func(ctx context.Context) error {
		clear(begun)
		ours = false
		return w.store.rows(ctx, sqlChangeAttempts, args, func(r pgx.Rows) error {
			ours = true
			var key []byte
			var number *uint64 // NULL: none is begun
			err := r.Scan(&key, &number, &lease)
			if number != nil {
				at := attemptID{number: *number}
				copy(at.key.Hash[:], key)
				begun[at] = true
			}
			return err
		})
	})
	switch {
	case err != nil:
		return is, err
	case !ours:
		return is, journal.ErrFenced
	}
	is.Begun, is.Lease = make([]bool, len(changes.Begin)), time.Duration(lease)*time.Microsecond
	for i := range changes.Begin {
		is.Begun[i] = begun[attemptID{changes.Begin[i].Key, changes.Begin[i].Attempt}]
	}
	return is, nil
}

// attemptArgs are the run, and the columns of the tables that sqlChangeAttempts reads.
func attemptArgs(changes *receipt.AttemptChanges) []any {
	run, holders := []byte{}, make([]string, len(changes.Begin))
	for i := range changes.Begin {
		run, holders[i] = changes.Begin[i].Run[:], changes.Begin[i].Worker
	}
	results := make([][]byte, len(changes.End))
	for i := range changes.End {
		run, results[i] = changes.End[i].Run[:], changes.End[i].Receipt
	}
	begin, begins, beginLeases := attemptColumns(changes.Begin)
	end, ends, _ := attemptColumns(changes.End)
	renew, renews, renewLeases := attemptColumns(changes.Renew)
	forget, forgets, _ := attemptColumns(changes.Forget)
	return []any{
		run, begin, begins, holders, beginLeases,
		end, ends, results,
		renew, renews, renewLeases,
		forget, forgets,
	}
}

// attemptColumns returns no nil, which would be NULL.
func attemptColumns(all []receipt.KeptAttempt) (keys [][]byte, numbers, leases []int64) {
	keys, numbers, leases = make([][]byte, len(all)), make([]int64, len(all)), make([]int64, len(all))
	for i := range all {
		keys[i], numbers[i], leases[i] = all[i].Key.Hash[:], int64(all[i].Attempt), all[i].Lease.Microseconds()
	}
	return keys, numbers, leases
}
