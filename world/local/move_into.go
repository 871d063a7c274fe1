package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
)

// MoveInto moves the world of a directory into a log. It is copied there as one that is being made,
// which nobody has to do with, and compared; then the directory is marked, so that nothing opens
// it any more, and then the world lives in the log: at no moment in both. Whatever interrupts it,
// the same again brings it to its end. Attempts in flight go with it, as begun where they have no
// result: so nobody makes them again. Into a log that keeps keyrings one goes that is sealed: ErrNotSealed.
//
// A log that the world was moved out of takes back the copy that it gave away, which goes on from there,
// also by way of other logs. Beside anything else the world lives: *StaleError, unless that copy is lost.
func MoveInto(ctx context.Context, dir string, opts Options, to OtherStore) (*Moved, error) {
	opts = opts.inDirectory()
	opts.moving, opts.Sealing = to.Where, to.Sealing
	lw, err := own(dir, opts)
	if err != nil {
		return nil, err
	}
	key, err := lw.keys.AnchorKey()
	if err != nil {
		return nil, errors.Join(err, lw.abandon())
	}
	if err := lw.justLook(); err != nil {
		return nil, err
	}
	defer lw.abandon() //nolint:errcheck // nothing was changed
	if err := lw.Lacks(); err != nil {
		return nil, err
	}
	id := lw.keys.World()
	where := to.world(id)
	log, err := to.Log(id, key)
	if err != nil {
		return nil, err
	}
	m, err := readMark(dir)
	if err != nil {
		return nil, err
	}
	left, there, err := lw.movesOver(ctx, log, where, to.Lost, m)
	if err == nil && !there {
		err = lw.moveInto(ctx, log, journal.Making{Over: left, Copies: m.copies}, mark{markTo, where, m.copies})
	}
	return &Moved{ID: id, Head: lw.store.Head(), From: dir, To: to.Where}, err
}

// movesOver reports whether the world is in a log already, moved there from this directory. Else it
// returns what the log remembers of it, after it has seen that it goes on from there.
func (lw *World) movesOver(ctx context.Context, log journal.Movable, where, lost string, m mark) (left journal.Left, there bool, err error) {
	is, err := log.Stands(ctx)
	if err != nil {
		return left, false, err
	}
	marked := m.way == markTo // and this is where to, or it would not be open
	switch {
	case is.State == journal.Live && !marked:
		return left, false, fmt.Errorf("%s: %w", where, ErrExists)
	case is.State == journal.Live:
		head := lw.store.Head()
		for r, err := range log.Records(ctx, head.ID-1) {
			if err != nil || r.Link == [journal.LinkBytes]byte(head.Root[:]) {
				return left, err == nil, err
			}
			break
		}
		return left, false, fmt.Errorf("%s, which is another: %w", where, ErrExists)
	case is.Left == journal.Left{}:
		return left, false, nil
	case lost != "" && lost != copyOf(is.Left):
		return left, false, &StaleError{lw.dir, "the log gave away copy " + copyOf(is.Left) + ", and not " + lost, is.Left}
	case lost != "":
		return is.Left, false, nil
	}
	return is.Left, false, lw.goesOnFrom(is.Left, m)
}

// goesOnFrom refuses what is no continuation of a world that was moved away, or another copy.
func (lw *World) goesOnFrom(left journal.Left, m mark) error {
	stale := func(format string, args ...any) error { return &StaleError{lw.dir, fmt.Sprintf(format, args...), left} }
	if m.way == markTo && !m.has(left) {
		return stale("it had moved there before, and is in %s now", left.To)
	}
	if end := lw.store.Head().ID; end < left.Head.ID {
		return stale("that went up to #%d and is in %s, this ends at #%d", left.Head.ID, left.To, end)
	}
	for s, err := range lw.store.Scan(left.Head.ID - 1) {
		switch {
		case err != nil:
			return err
		case s.Link != [journal.LinkBytes]byte(left.Head.Root[:]):
			return stale("that is in %s, and its record #%d is another", left.To, left.Head.ID)
		}
		break
	}
	if !m.has(left) {
		return stale("that is in %s, and this is another copy", left.To)
	}
	return nil
}

func (lw *World) moveInto(ctx context.Context, log journal.Movable, making journal.Making, leaves mark) (err error) {
	keyring, err := file.ReadSecret(filepath.Join(lw.hidden, keyringFile), maxKeyringBytes)
	if err != nil {
		return err
	}
	if parent, _, _, err := readRecorded(lw.hidden); err != nil {
		return err
	} else if parent != "" { // without it the outside would be asked
		return fmt.Errorf("%w: %s", ErrRecorded, parent)
	}
	if _, keeps := log.(KeyringLog); keeps && !receipt.Sealed(keyring) { // which would stay behind, where nothing opens
		return fmt.Errorf("the keyring goes with the world, and %w", ErrNotSealed)
	}
	if lw.opts.Sealing != nil && lw.passphrase != nil {
		if keyring, err = (ring{keys: lw.keys, passphrase: lw.passphrase, sealing: lw.opts.Sealing}).encode(); err != nil {
			return err
		}
	}
	if err := log.Make(ctx, making); err != nil {
		return err
	}
	if _, err := log.Own(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Release(context.WithoutCancel(ctx), lw.wake())) }()
	if err := lw.pour(ctx, log); err != nil {
		return err
	}
	if to, ok := log.(host.Attempts); ok {
		if err := host.MoveAttempts(ctx, to, filepath.Join(lw.hidden, effectsFile), lw.keys.World(), lw.w.InFlight()); err != nil {
			return err
		}
	}
	if err := keepKeyring(log, keyring); err != nil {
		return err
	}
	if err := lw.compareWith(log); err != nil {
		return err
	}
	if err := leaves.put(lw.dir); err != nil {
		return err
	}
	return log.Publish(ctx)
}

// pour puts into a log all that belongs to the journal.
func (lw *World) pour(ctx context.Context, log journal.Log) error {
	var redacted []journal.Hash // when all is there: an image that is to come goes without them
	p := pouring{from: lw.store, to: log, redact: func(blob journal.Hash) error {
		redacted = append(redacted, blob)
		return nil
	}}
	if err := p.pourAll(ctx); err != nil {
		return err
	}
	for _, blob := range redacted {
		if err := log.Redact(ctx, blob); err != nil {
			return err
		}
	}
	for c, err := range lw.store.Checkpoints(0, journal.Last) {
		if err == nil {
			err = log.PutNote(ctx, journal.Note{Size: journal.Seq(c.Size), Text: c.Note})
		}
		if err != nil {
			return err
		}
	}
	return lw.store.Kept(func(img *journal.KeptImage) error {
		if img == nil {
			return nil
		}
		return log.PutImage(ctx, img)
	})
}

// compareWith compares the world with what a log has, as whoever opens it there reads it.
func (lw *World) compareWith(log journal.Log) error {
	aside, remove, err := lw.opts.MakeTemporary("world-look-")
	if err != nil {
		return err
	}
	opts := Options{Log: func([]byte) (journal.Log, error) { return log, nil }}
	s, err := openStore(lw.hidden, lw.keys, opts, func(_ string, opts store.Options) (*store.Store, error) {
		return store.OpenReadOnly(aside, filepath.Join(aside, "copy"), opts)
	})
	if err == nil {
		err = errors.Join(sameJournal(lw.store, s), s.Close())
	}
	return errors.Join(err, remove())
}

// sameJournal compares all records of two stores, their heads, and the trees over them.
func sameJournal(a, b *store.Store) error {
	if a.Head() != b.Head() {
		return fmt.Errorf("%w: it ends at #%d and at #%d", errUnequal, a.Head().ID, b.Head().ID)
	}
	if err := sameRecords(a, b, 1, a.Head().ID); err != nil {
		return err
	}
	one, err := a.TreeAt(a.Head().ID)
	if err != nil {
		return err
	}
	other, err := b.TreeAt(b.Head().ID)
	if err == nil && one.Root() != other.Root() {
		err = fmt.Errorf("%w: the tree over the records", errUnequal)
	}
	return err
}
