package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/worldkernel/worldkernel/receipt"
)

// attemptTable is the medium of an effectStore that is Attempts.
type attemptTable struct {
	*effectStore

	table  Attempts
	run    [16]byte
	ctx    context.Context
	cancel context.CancelFunc
}

// openTable reads what earlier owners have left. A worker is told that an attempt is its own
// for a lease; here it is for two from when the host has looked at it last, which it does each
// third of one: so it never ends here before it does there.
func openTable(a Attempts, lease time.Duration) (*effectStore, error) {
	t := &attemptTable{effectStore: newEffectStore("attempts", 2*lease), table: a}
	t.medium = t
	_, _ = rand.Read(t.run[:]) // which never fails
	t.ctx, t.cancel = context.WithCancel(context.Background())
	before := time.Now()
	kept, err := a.KeptAttempts(t.ctx)
	if err != nil {
		t.cancel()
		return nil, fmt.Errorf("host: attempts: %w", err)
	}
	now := time.Now()
	for _, k := range kept {
		t.rows[attempt{k.Key, k.Attempt}] = row{
			receipt: k.Receipt, worker: k.Worker, until: now.Add(k.Lease), heard: before, lent: k.Lease, stale: true,
		}
	}
	return t.effectStore, nil
}

// write makes a group durable, and tells of what began.
func (t *attemptTable) write(group []change) error {
	changes, bytes := t.changes(group)
	asked := time.Now()
	is, err := t.table.ChangeAttempts(t.ctx, changes)
	if err == nil && len(is.Begun) != len(changes.Begin) {
		err = fmt.Errorf("%d answers to %d attempts", len(is.Begun), len(changes.Begin))
	}
	if err != nil {
		return err
	}
	t.syncs.Add(1)
	t.written.Add(uint64(bytes))
	t.keep(group, asked)
	for _, c := range group {
		switch {
		case c.begin != nil:
			c.begin.asked, c.begin.lease = asked, is.Lease
			c.begin.endBeginning(is.Begun[0], nil)
			is.Begun = is.Begun[1:]
		case c.renewal != nil:
			c.renewal.endBeginning(true, nil)
		}
	}
	return nil
}

func (*attemptTable) tidy() error { return nil }

func (t *attemptTable) closeMedium(err error) error {
	t.cancel()
	return err
}

// changes are a group as the table takes it, and the bytes of the results in it.
func (t *attemptTable) changes(group []change) (all *receipt.AttemptChanges, bytes int) {
	all = new(receipt.AttemptChanges)
	for _, c := range group {
		k := receipt.KeptAttempt{Key: c.key, Attempt: c.number, Run: t.run}
		switch {
		case c.begin != nil:
			if k.Worker = c.begin.worker; k.Worker != "" {
				k.Lease = t.lease
			}
			all.Begin = append(all.Begin, k)
		case c.renewal != nil:
			k.Lease = t.lease
			all.Renew = append(all.Renew, k)
		case c.receipt != nil:
			k.Receipt = c.receipt
			all.End = append(all.End, k)
			bytes += c.size()
		default:
			all.Forget = append(all.Forget, k)
		}
	}
	return all, bytes
}
