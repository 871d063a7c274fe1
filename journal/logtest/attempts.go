package logtest

import (
	"bytes"
	"context"
	"time"

	"github.com/worldkernel/worldkernel/receipt"
)

// attemptID is what an attempt is kept by.
type attemptID struct {
	key    receipt.Key
	number uint64
}

// attempt is a row of the table of attempts. Its Lease is until then.
type attempt struct {
	receipt.KeptAttempt
	until time.Time
}

// KeptAttempts implements host.Attempts.
func (l *memory) KeptAttempts(context.Context) (all []receipt.KeptAttempt, err error) {
	err = l.own(func(c *contents) error {
		for _, a := range c.attempts {
			a.Lease = time.Until(a.until)
			all = append(all, a.KeptAttempt)
		}
		return nil
	})
	return all, err
}

// ChangeAttempts implements host.Attempts.
func (l *memory) ChangeAttempts(_ context.Context, changes *receipt.AttemptChanges) (begun []bool, err error) {
	err = l.own(func(c *contents) error {
		begun = c.change(changes)
		return nil
	})
	return begun, err
}

func (c *contents) change(changes *receipt.AttemptChanges) (begun []bool) {
	if c.attempts == nil {
		c.attempts = make(map[attemptID]attempt)
	}
	now := time.Now()
	for _, k := range changes.Begin {
		at := attemptID{k.Key, k.Attempt}
		was, there := c.attempts[at]
		ok := !there || was.Run == k.Run && was.Receipt == nil
		if ok {
			c.attempts[at] = attempt{k, now.Add(k.Lease)}
		}
		begun = append(begun, ok)
	}
	for _, k := range changes.End {
		k.Receipt = bytes.Clone(k.Receipt)
		c.attempts[attemptID{k.Key, k.Attempt}] = attempt{k, now}
	}
	for _, k := range changes.Renew {
		at := attemptID{k.Key, k.Attempt}
		if was, there := c.attempts[at]; there {
			was.until = now.Add(k.Lease)
			c.attempts[at] = was
		}
	}
	for _, k := range changes.Forget {
		delete(c.attempts, attemptID{k.Key, k.Attempt})
	}
	return begun
}
