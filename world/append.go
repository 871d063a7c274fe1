package world

import (
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
)

// deliverRecalled delivers the recalled results, if they are due. It is called after every unit, as in a
// replay.
func (w *World) deliverRecalled() error {
	k := w.k
	if len(k.recalls) == 0 || k.scheduler.left > 0 {
		return nil
	}
	for _, r := range k.recalls {
		if !r.Confirm && journal.Seq(k.ledger.Entry(r.Key).Finished) > w.durable {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	if err := k.deliverRecalled(w.cfg.History); err != nil {
		return w.fail(err)
	}
	return nil
}

// appendFull appends the kernel's records, if they are enough for a batch.
func (w *World) appendFull() error {
	if err := w.endedTrial(); err != nil {
		return err
	}
	if err := w.deliverRecalled(); err != nil {
		return err
	}
	if w.k.pending() < w.cfg.BatchRecords {
		return nil
	}
	return w.append()
}

// flight is a batch on its way to the disk.
type flight struct {
	pending journal.Pending
	ready   ready
}

// maxFlight is how many batches may be under way while the next is computed.
const maxFlight = 16

// append hands a batch to the journal, so that the kernel computes while the
// journal syncs.
func (w *World) append() error {
	if err := w.endedTrial(); err != nil {
		return err
	}
	if err := w.readable(); err != nil {
		return err
	}
	var memory ready
	if last := len(w.spare) - 1; last >= 0 {
		memory, w.spare = w.spare[last], w.spare[:last]
	}
	r := w.k.takeReady(memory)
	p, err := w.cfg.Journal.Append(r.Batch)
	if err != nil {
		return w.fail(err)
	}
	w.flight = append(w.flight, flight{pending: p, ready: r})
	if len(w.flight) > maxFlight {
		if err := w.finishBatch(); err != nil {
			return err
		}
	}
	if r.Head.ID-w.saved >= w.cfg.CheckpointRecords {
		return w.Checkpoint()
	}
	return nil
}

// appendAll hands all records to the journal, and has the host begin the tasks that are durable already.
func (w *World) appendAll() error {
	if w.k.pending() > 0 {
		if err := w.append(); err != nil {
			return err
		}
	}
	return w.finishDone()
}

// finishDone finishes the batches that are durable.
func (w *World) finishDone() error {
	for len(w.flight) > 0 && w.flight[0].pending.Done() {
		if err := w.finishBatch(); err != nil {
			return err
		}
	}
	return nil
}

// finishBatch waits until the oldest batch under way is durable and releases its
// permits.
func (w *World) finishBatch() error {
	f := w.flight[0]
	w.flight = slices.Delete(w.flight, 0, 1)
	if err := f.pending.Wait(); err != nil {
		return w.fail(err)
	}
	w.startTasks(f.ready.Tasks)
	w.durable = f.ready.Head.ID
	w.spare = append(w.spare, f.ready)
	return nil
}

// endedTrial returns why a world that Try opened has ended. The unit in which it ended is incomplete, and
// not appended.
func (w *World) endedTrial() error {
	err := w.k.rules.guard.ended()
	if err != nil {
		w.broken = err
	}
	return err
}

// sync makes everything durable that has happened.
func (w *World) sync() error {
	if w.lacks != nil {
		return nil // nothing has
	}
	if w.broken != nil {
		return w.broken
	}
	if err := w.deliverRecalled(); err != nil {
		return err
	}
	return w.flush()
}

// flush has the journal make durable what the kernel has written.
func (w *World) flush() error {
	if w.k.pending() > 0 {
		if err := w.append(); err != nil {
			return err
		}
	}
	for len(w.flight) > 0 {
		if err := w.finishBatch(); err != nil {
			return err
		}
	}
	return nil
}

// syncAfter makes durable what happened before an error, and returns that.
func (w *World) syncAfter(err error) error {
	if failed := w.sync(); failed != nil && !errors.Is(err, failed) {
		return errors.Join(err, failed)
	}
	return err
}

// Checkpoint stores an image of the world, so that opening it is fast. The
// world does so by itself every Config.CheckpointRecords records.
func (w *World) Checkpoint() error {
	if w.k.pending() > 0 {
		if err := w.sync(); err != nil {
			return err
		}
	}
	if err := w.readable(); err != nil || w.k.last == w.saved || w.k.execution != nil {
		return err
	}
	img, err := w.k.image()
	if err != nil {
		return err
	}
	if err := w.cfg.Journal.Checkpoint(img); err != nil {
		return w.fail(err)
	}
	w.saved = img.Head.ID
	if w.cfg.Memory > 0 && w.cfg.Images != nil {
		w.k.leaveToImage(w.cfg.Memory)
	}
	return nil
}

// judged returns the error of an input, unless the kernel could not read what it needed to judge the input.
func (w *World) judged(err error) error {
	if broken := w.readable(); broken != nil {
		return broken
	}
	return err
}

// readable returns an error if the kernel's records must not become durable: it could not read what it needed
// of the last image.
func (w *World) readable() error {
	if err := w.k.store.err; err != nil && w.broken == nil {
		return w.fail(err)
	}
	return w.broken
}

func (w *World) fail(err error) error {
	w.broken = fmt.Errorf("world: stopped, open it again: %w", err)
	return w.broken
}
