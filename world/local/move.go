package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
)

// Elsewhere is a log that a world is moved into, or out of.
type Elsewhere struct {
	Log   func(key []byte) (journal.Movable, error) // as in Options
	Where string                                    // as a person would be told, in one line and without a password
}

// Moved says what MoveInto or MoveOut has moved.
type Moved struct {
	ID   string       `json:"world_id"`
	Head journal.Head `json:"head"`
	From string       `json:"from"`
	To   string       `json:"to"`
}

// MovedError says that a directory does not hold the world any more, or not yet.
type MovedError struct {
	Dir   string
	Where string // it is, or comes from
	Here  bool   // it is being moved into the directory
}

func (e *MovedError) Error() string {
	if e.Here {
		return fmt.Sprintf("%s: the world is being moved here from %s, or was when that was interrupted: move it again", e.Dir, e.Where)
	}
	return fmt.Sprintf("%s: the world has moved to %s: open it there", e.Dir, e.Where)
}

// A directory is marked with these and the place.
const (
	markTo   = "to "
	markFrom = "from "
)

// readMark returns what a directory is marked with; empty: nothing.
func readMark(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, hiddenDir, movedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSuffix(string(data), "\n"), err
}

func refuseMoved(dir string, opts Options) error {
	mark, err := readMark(dir)
	if err != nil || mark == "" || mark == opts.moving {
		return err
	}
	where, here := strings.CutPrefix(mark, markFrom)
	return &MovedError{Dir: dir, Where: strings.TrimPrefix(where, markTo), Here: here}
}

// mark has a directory refused from now on, for good.
func mark(dir, text string) error {
	if was, err := readMark(dir); err != nil || was == text {
		return err
	}
	hidden := filepath.Join(dir, hiddenDir)
	return errors.Join(file.WriteNew(filepath.Join(hidden, movedFile), []byte(text+"\n"), 0o600), file.SyncDir(hidden))
}

func unmark(dir string) error {
	hidden := filepath.Join(dir, hiddenDir)
	return errors.Join(os.Remove(filepath.Join(hidden, movedFile)), file.SyncDir(hidden))
}

// MoveInto moves the world of a directory into a log. It is copied there as one that is being made,
// which nobody has to do with, and compared; then the directory is marked, so that nothing opens
// it any more, and then the world lives in the log: at no moment in both. Whatever interrupts it,
// the same again brings it to its end. Attempts in flight go with it, as begun where they have no
// result: so nobody makes them again. Into a log that keeps keyrings one goes that is sealed: ErrNotSealed.
func MoveInto(ctx context.Context, dir string, opts Options, to Elsewhere) (*Moved, error) {
	opts = opts.inDirectory()
	opts.moving = markTo + to.Where
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
	done := &Moved{ID: lw.keys.World(), Head: lw.store.Head(), From: dir, To: to.Where}
	log, err := to.Log(key)
	if err != nil {
		return nil, err
	}
	state, err := log.State(ctx)
	if err != nil {
		return nil, err
	}
	if state == journal.Live {
		was, err := readMark(dir)
		if err == nil && was != opts.moving {
			err = fmt.Errorf("%s: %w", to.Where, ErrExists)
		}
		return done, err
	}
	return done, lw.moveInto(ctx, log, to.Where)
}

func (lw *World) moveInto(ctx context.Context, log journal.Movable, where string) (err error) {
	keyring, err := os.ReadFile(filepath.Join(lw.hidden, keyringFile))
	if err != nil {
		return err
	}
	if parent, _, err := readRecorded(lw.hidden); err != nil {
		return err
	} else if parent != "" { // without it the outside would be asked
		return fmt.Errorf("%w: %s", errRecorded, parent)
	}
	if _, keeps := log.(KeyringLog); keeps && !receipt.Sealed(keyring) { // which would stay behind, where nothing opens
		return fmt.Errorf("the keyring goes with the world, and %w", ErrNotSealed)
	}
	if err := log.Make(ctx); err != nil {
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
	if err := mark(lw.dir, markTo+where); err != nil {
		return err
	}
	return log.Publish(ctx)
}

// pour puts into a log all that belongs to the journal.
func (lw *World) pour(ctx context.Context, log journal.Log) error {
	p := pouring{log: log, there: make(map[journal.Hash]bool)}
	for s, err := range lw.store.ScanChain(journal.Head{}) {
		if err = errors.Join(err, s.Err); err != nil {
			return err
		}
		rec := s.Record
		if err := rec.Load(lw.store); err != nil && !errors.Is(err, journal.ErrRedacted) {
			return err
		}
		blobs, err := lw.blobsOf(&rec)
		if err != nil {
			return err
		}
		if err := p.add(journal.Stored{ID: s.ID, Bytes: s.Bytes, Root: s.Root}, blobs); err != nil {
			return err
		}
		if rec.Kind != journal.KindRedacted {
			continue
		}
		body, err := rec.Body()
		if err != nil {
			return err
		}
		p.redacted = append(p.redacted, body.(*journal.Redacted).Blob)
	}
	if err := p.flush(); err != nil {
		return err
	}
	for _, h := range p.redacted {
		if _, err := lw.store.Blob(h); !errors.Is(err, journal.ErrRedacted) { // an image that is to come goes without it
			continue
		}
		if err := log.Redact(ctx, h); err != nil {
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

// pouring appends records to a log, many at a time.
type pouring struct {
	log      journal.Log
	batch    journal.Batch
	bytes    int
	there    map[journal.Hash]bool // contents that were brought
	redacted []journal.Hash
}

func (p *pouring) add(r journal.Stored, blobs []journal.Blob) error {
	p.batch.Records = append(p.batch.Records, r)
	p.batch.Head = journal.Head{ID: r.ID, Root: r.Root}
	p.bytes += len(r.Bytes)
	for _, b := range blobs {
		if !p.there[b.Hash] {
			p.there[b.Hash] = true
			p.batch.Blobs = append(p.batch.Blobs, b)
			p.bytes += len(b.Bytes)
		}
	}
	if len(p.batch.Records) < importBatch && p.bytes < importBytes {
		return nil
	}
	return p.flush()
}

// flush returns when all is durable.
func (p *pouring) flush() error {
	if len(p.batch.Records) == 0 {
		return nil
	}
	done, err := p.log.Append(p.batch)
	if err == nil {
		err = done.Wait()
	}
	p.batch, p.bytes = journal.Batch{After: p.batch.Head, Head: p.batch.Head}, 0
	return err
}

// compareWith compares the world with what a log has, as whoever opens it there reads it.
func (lw *World) compareWith(log journal.Log) error {
	aside, err := os.MkdirTemp("", "world-look-")
	if err != nil {
		return err
	}
	opts := Options{Log: func([]byte) (journal.Log, error) { return log, nil }}
	s, err := openStore(lw.hidden, lw.keys, opts, func(_ string, opts store.Options) (*store.Store, error) {
		return store.Look(aside, filepath.Join(aside, "copy"), opts)
	})
	if err == nil {
		err = errors.Join(sameJournal(lw.store, s), s.Close())
	}
	return errors.Join(err, os.RemoveAll(aside))
}

// Why a world does not move.
var (
	errRecorded = errors.New("its effects are answered by what another world recorded, which is in a directory")
	errUnequal  = errors.New("what was moved is not what was there: nothing has changed")
)

// sameJournal compares all records of two stores, their heads, and the trees over them.
func sameJournal(a, b *store.Store) error {
	if a.Head() != b.Head() {
		return fmt.Errorf("%w: it ends at #%d and at #%d", errUnequal, a.Head().ID, b.Head().ID)
	}
	next, stop := iter.Pull2(b.Scan(0))
	defer stop()
	for x, err := range a.Scan(0) {
		y, failed, _ := next()
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		if x.ID != y.ID || x.Link != y.Link || string(x.Bytes) != string(y.Bytes) {
			return fmt.Errorf("%w: record #%d", errUnequal, x.ID)
		}
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

// MoveOut moves a world out of a log, of which a directory has the rest, into another directory,
// which is empty or not there. It is made there as one that nothing opens, and compared; then it
// ends in the log, and then it lives in the directory: at no moment in both. Whatever interrupts
// it, the same again brings it to its end. What was permitted and not begun may have been made, as
// the directory knows.
func MoveOut(ctx context.Context, dir, to string, opts Options, from Elsewhere) (*Moved, error) {
	text := markFrom + from.Where
	was, err := readMark(to)
	if err != nil {
		return nil, err
	}
	log, err := from.Log(nil)
	if err != nil {
		return nil, err
	}
	state, err := log.State(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case was == text && state == journal.Moved:
		if err := unmark(to); err != nil {
			return nil, err
		}
		return movedOut(to, opts, from)
	case was == text:
		if err := discard(to); err != nil {
			return nil, err
		}
	case was == "" && state == journal.Moved && holdsWorld(to):
		return movedOut(to, opts, from)
	}
	opts.Log = func(key []byte) (journal.Log, error) { return from.Log(key) }
	lw, err := own(dir, opts)
	if err != nil {
		return nil, err
	}
	done, err := lw.copyTo(to, func(s *store.Store) error { return sameJournal(lw.store, s) }, func(making string) error { return mark(making, text) })
	if err == nil {
		err = lw.store.Log().(journal.Movable).MoveAway(ctx)
	}
	if err = errors.Join(err, lw.abandon()); err != nil {
		return nil, err
	}
	return &Moved{ID: done.ID, Head: done.Head, From: from.Where, To: to}, unmark(to)
}

// movedOut says what is there.
func movedOut(to string, opts Options, from Elsewhere) (*Moved, error) {
	lw, err := own(to, opts.inDirectory())
	if err != nil {
		return nil, err
	}
	return &Moved{ID: lw.keys.World(), Head: lw.store.Head(), From: from.Where, To: to}, lw.abandon()
}

// discard takes away a directory that was made and never lived: at once for who looks.
func discard(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	up := filepath.Dir(dir)
	away, err := os.MkdirTemp(up, "."+filepath.Base(dir)+makingDir)
	if err == nil {
		err = os.Remove(away) // os.Rename replaces none
	}
	if err == nil {
		err = os.Rename(dir, away)
	}
	if err == nil {
		err = file.SyncDir(up)
	}
	return errors.Join(err, os.RemoveAll(away))
}
