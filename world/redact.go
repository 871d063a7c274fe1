package world

import (
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// ErrStillNeeded says that a payload cannot be redacted, because the kernel may
// have to read it again.
var ErrStillNeeded = errors.New("the world may need this payload again")

// Redact notes that the bytes of a payload are about to be destroyed. It is
// durable on return. Whoever destroys them asks StillNeeds first. It returns its record.
func (w *World) Redact(ctx context.Context, b journal.Redacted) (journal.Seq, error) {
	return w.change(ctx, func() error { return w.k.redacted(b) })
}

// StillNeeds returns why the payload of a record must stay, an ErrStillNeeded, or
// nil. What a cell is told again after a rollback is read from the record that
// ended its intent; a payload that is gone would stop the world there.
func (m *Moment) StillNeeds(record journal.Seq) error {
	concerned := m.k.ledger.Select(func(e *receipt.Entry) bool { return e.Reused || journal.Seq(e.Finished) == record })
	for _, e := range concerned {
		end := e
		if e.Reused {
			end = m.k.ledger.Entry(*e.Repeats)
		}
		if end == nil || journal.Seq(end.Finished) != record {
			continue
		}
		if err := m.k.tellsAgain(e, record); err != nil {
			return fmt.Errorf("%w: intent %s: %w", ErrStillNeeded, e.Intent.Key, err)
		}
	}
	return nil
}

// Why a cell may be told again what its intent came to.
var (
	errUntold    = errors.New("its cell has not handled the result yet")
	errAbandoned = errors.New("a rollback left it behind, and the same step may ask for it again")
)

// tellsAgain returns why the end of an intent may be read again.
func (f *effects) tellsAgain(e *receipt.Entry, record journal.Seq) error {
	if f.pendingRecall(e.Intent.Key) >= 0 {
		return errUntold
	}
	if e.Abandoned {
		return errAbandoned
	}
	for _, c := range f.cells.here { // order cannot show: one error for all; a cell with mail is here
		for _, x := range c.mail.pending() {
			if x.record == record {
				return errUntold
			}
		}
	}
	for _, s := range f.catalog.All() {
		if len(e.Asked) > 0 && s.Record < e.Asked[len(e.Asked)-1] {
			return fmt.Errorf("a rollback to snapshot %s would lead to it again", s.Name)
		}
	}
	return nil
}

// redacted notes that a blob's bytes are destroyed.
func (k *kernel) redacted(b journal.Redacted) error {
	if b.Reason == "" || b.Actor == "" {
		return refuse(ErrNoReason, "reason", "say who redacts it, and why")
	}
	b.V, b.Reason, b.Actor = journal.BodyVersion, journal.Text(b.Reason), journal.Text(b.Actor)
	k.noteInput(journal.KindRedacted, &b)
	return nil
}
