package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// Spill is a store of images alone: of what a replay has computed and does not use, where a
// world is larger than memory. It is one process's, of one replay, and gone when that ends:
// nothing waits for the disk. It is safe for concurrent use.
type Spill struct {
	journal.Versions        // of images
	images           *Store // without records, lock and anchor

	mu      sync.Mutex    // guards what follows, and orders Checkpoints
	heads   []journal.Seq // of images, ascending
	hasty   int           // bytes that were written, and waited for by nobody
	failure error

	broken chan error // what Pebble could not do in the background
}

// spillBytes is how much is written to a Spill before it waits for the disk to have it.
const spillBytes = 8 << 20

// NewSpill makes a spill in a new directory.
func NewSpill(dir string, opts Options) (*Spill, error) {
	opts.Scratch = true
	s := &Store{dir: dir, opts: opts.withDefaults(), recordless: true}
	x := &Spill{Versions: s, images: s, broken: make(chan error, 1)}
	err := s.opts.FS.MkdirAll(dir, 0o700)
	if err == nil {
		s.db, err = pebble.Open(dir, x.pebbleOptions())
	}
	if err != nil {
		return nil, x.wrapError(errors.Join(err, s.opts.FS.RemoveAll(dir)))
	}
	return x, nil
}

// pebbleOptions are those of a store that has no log, and in which no write waits for the
// disk but where Checkpoint does: Pebble would wait for ever for one that is full.
func (x *Spill) pebbleOptions() *pebble.Options {
	o := x.images.pebbleOptions()
	o.FS, o.DisableWAL, o.ErrorIfExists = x.images.opts.FS, true, true
	o.Logger = quiet{x}
	o.MemTableSize, o.MemTableStopWritesThreshold, o.L0StopWritesThreshold = 2*spillBytes, 1<<20, 1<<20
	o.EventListener = &pebble.EventListener{
		BackgroundError: x.fail,
		DataCorruption:  func(info pebble.DataCorruptionInfo) { x.fail(info.Details) },
	}
	return o
}

// fail notes that Pebble could not do something.
func (x *Spill) fail(err error) {
	select {
	case x.broken <- err:
	default: // the first says enough
	}
}

// quiet takes Pebble's messages.
type quiet struct{ x *Spill }

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}

// Fatalf implements pebble.Logger. It returns: Pebble goes on with what nobody reads any more.
func (q quiet) Fatalf(format string, args ...any) { q.x.fail(fmt.Errorf(format, args...)) }

// Close removes the directory.
func (x *Spill) Close() error {
	s := x.images
	none := s.reading.stop()
	s.newest.letGo()
	<-none
	closed := s.db.Close()
	return x.wrapError(errors.Join(closed, s.opts.FS.RemoveAll(s.dir)))
}

// Checkpoint takes an image as journal.Journal does. Images of one head add up.
func (x *Spill) Checkpoint(img *journal.Image) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.failure
	if err == nil {
		err = x.write(img)
	}
	x.images.newest.letGo()
	if err != nil {
		x.failure = err
	}
	return x.wrapError(err)
}

// wrapError names the spill that an error is of.
func (x *Spill) wrapError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: spill %s: %w", x.images.dir, err)
}

func (x *Spill) write(img *journal.Image) error {
	before, err := x.images.openView()
	if err != nil {
		return err
	}
	defer before.close()
	k, err := newKeeper(x.images.db.NewBatch(), before, img, x.heads, 0)
	if err != nil {
		return err
	}
	defer k.old.close()
	k.part = func(full *pebble.Batch) (*pebble.Batch, error) { return x.images.db.NewBatch(), x.commit(full) }
	if err = k.leave(); err == nil {
		err = k.putAll(img)
	}
	if err != nil {
		return errors.Join(err, k.batch.Close())
	}
	seal(k.batch, imageKey(img.Head.ID), imageBody(img))
	x.heads = append(k.kept, img.Head.ID)
	return x.commit(k.batch)
}

// commit applies a batch. It waits until the disk has what was written, where that is much:
// Pebble would gather it in memory.
func (x *Spill) commit(b *pebble.Batch) error {
	x.hasty += b.Len()
	if err := errors.Join(b.Commit(pebble.NoSync), b.Close()); err != nil {
		return err
	}
	if x.hasty < spillBytes {
		select {
		case err := <-x.broken:
			return err
		default:
			return nil
		}
	}
	x.hasty = 0
	flushed, err := x.images.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case err := <-x.broken:
		return err
	case <-flushed:
		return nil
	}
}

// Part is that of journal.History.
func (x *Spill) Part(at journal.Seq, cells []string) (*journal.Image, error) {
	img, err := x.images.Part(at, cells)
	return img, x.wrapError(err)
}

// Core implements journal.Versions.
func (x *Spill) Core(at journal.Seq) (*journal.Image, error) {
	img, err := x.images.Core(at)
	return img, x.wrapError(err)
}

// CellVersion implements journal.Versions.
func (x *Spill) CellVersion(cell string, at journal.Seq) (*journal.CellVersion, error) {
	v, err := x.images.CellVersion(cell, at)
	return v, x.wrapError(err)
}

// IntentVersion implements journal.Versions.
func (x *Spill) IntentVersion(key journal.Hash, at journal.Seq) (*journal.IntentVersion, error) {
	v, err := x.images.IntentVersion(key, at)
	return v, x.wrapError(err)
}

// CountVersion implements journal.Versions.
func (x *Spill) CountVersion(key journal.CountKey, at journal.Seq) (*journal.CountVersion, error) {
	v, err := x.images.CountVersion(key, at)
	return v, x.wrapError(err)
}
