package logtest

import (
	"bytes"
	"cmp"
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
func (l *memory) ChangeAttempts(_ context.Context, changes *receipt.AttemptChanges) (is receipt.AttemptsChanged, err error) {
	err = l.own(func(c *contents) error {
		is = receipt.AttemptsChanged{Begun: c.change(changes, l.server.Lease), Lease: cmp.Or(l.server.Lease, untilTheNext)}
		return nil
	})
	return is, err
}

// untilTheNext is longer than any test lasts.
const untilTheNext = 1000 * time.Hour

func (c *contents) change(changes *receipt.AttemptChanges, lease time.Duration) (begun []bool) {
	if c.attempts == nil {
		c.attempts = make(map[attemptID]attempt)
	}
	now := time.Now()
	for _, k := range changes.Begin {
		at := attemptID{k.Key, k.Attempt}
		was, there := c.attempts[at]
		ok := !there || was.Run == k.Run && was.Receipt == nil
		if ok {
			until := now.Add(k.Lease)
			if k.Worker == "" {
				until = now.Add(lease)
			}
			c.attempts[at] = attempt{k, until}
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
