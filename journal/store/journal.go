package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// maxPending is how many appends may be under way; the next one waits.
const maxPending = 64

// errGap says that a batch is not what its heads say. It is the caller's fault.
var errGap = errors.New("the records do not lead from one head to the other without gap")

// pending is an append under way, or a checkpoint that waits for its turn.
type pending struct {
	journal.Batch

	image    *imageWriter // where it is a checkpoint; then there is nothing else
	batch    *pebble.Batch
	log      journal.Pending // of the log, where there is one
	gathered sync.WaitGroup  // of what apply does with the batch while it syncs
	err      error           // set before done is closed
	done     chan struct{}
}

// Wait implements journal.Pending. It may be called more than once.
func (p *pending) Wait() error {
	<-p.done
	return p.err
}

// Done implements journal.Pending.
func (p *pending) Done() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Notify implements journal.Journal.
func (s *Store) Notify(wake func()) { s.wake.Store(&wake) }

// Append implements journal.Journal. It returns at once; the batch's slices are in
// use until the Pending has been waited for. An append that failed, or whose
// Pending did, ends the store: every later one answers with the same error.
func (s *Store) Append(b journal.Batch) (journal.Pending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(); err != nil {
		return nil, err
	}
	if err := s.check(b); err != nil {
		return nil, fmt.Errorf("store: append after #%d: %w", b.After.ID, err)
	}
	s.head = b.Head
	p := &pending{Batch: b, done: make(chan struct{})}
	s.appended <- p
	return p, nil
}

func (s *Store) writable() error {
	if s.closed {
		return ErrClosed
	}
	return s.failed()
}

func (s *Store) check(b journal.Batch) error {
	if b.After != s.head {
		return fmt.Errorf("%w: the journal ends at #%d", journal.ErrFenced, s.head.ID)
	}
	last := b.After
	for _, r := range b.Records {
		if r.ID != last.ID+1 {
			return fmt.Errorf("%w: #%d follows #%d", errGap, r.ID, last.ID)
		}
		last = journal.Head{ID: r.ID, Root: r.Root}
	}
	if last != b.Head {
		return fmt.Errorf("%w: they end at #%d, the head is #%d", errGap, last.ID, b.Head.ID)
	}
	return nil
}

// batchBytes is what Pebble needs for b: a header, and for every operation a kind,
// two lengths, key and value. Of a content in chunks it may be less, or more.
func batchBytes(b journal.Batch) int {
	const header, operation = 12, 1 + 5 + 5
	n := header + tileBytes(b, operation)
	for _, r := range b.Records {
		n += operation + recordKeyLen + frameBytes + len(r.Bytes)
	}
	for _, blob := range b.Blobs {
		n += operation + 1 + len(blob.Hash) + min(len(blob.Bytes), chunkFrom)
	}
	return n
}

// apply puts appends into Pebble's memory and on their way to the disk, in
// order, while the world computes the next. A checkpoint goes on to writeImages
// when the records before it are there.
func (s *Store) apply() {
	g := s.newGathering(s.readable().ID)
	for p := range s.appended {
		if w := p.image; w != nil {
			if !w.past {
				w.gathered, g = g, g.next(s)
			}
			s.images <- w
			continue
		}
		if p.err = s.applyOne(p); p.err != nil {
			_ = s.fail(fmt.Errorf("store: %w", p.err)) // now: the next would leave a gap
			s.applied <- p
			continue
		}
		p.gathered.Add(1)
		s.applied <- p
		runtime.Gosched() // acknowledge has the disk begin first
		g.add(p.Batch)
		p.gathered.Done()
	}
	close(s.applied)
	close(s.images)
}

func (s *Store) applyOne(p *pending) error {
	if err := s.failed(); err != nil {
		return err
	}
	if err := s.appendToLog(p); err != nil {
		return err
	}
	batch := s.db.NewBatchWithSize(batchBytes(p.Batch))
	if len(p.Blobs) > 0 {
		s.chunks.mu.Lock()
		defer s.chunks.mu.Unlock()
		if err := s.setBlobs(batch, p.Blobs); err != nil {
			return err
		}
	}
	if err := setRecords(batch, p.Records, s.opts.segmentBytes); err != nil {
		return err
	}
	s.tips.mu.Lock()
	defer s.tips.mu.Unlock()
	if err := s.growTree(batch, p.Records); err != nil {
		return err
	}
	if err := s.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
		return fmt.Errorf("append after #%d: %w", p.After.ID, err)
	}
	p.batch = batch
	s.inDB.Store(&p.Head)
	return nil
}

// acknowledge releases appends when they are durable, in order, all that have gathered at
// once. Pebble syncs them meanwhile, with one call.
func (s *Store) acknowledge() {
	s.acked.reach(s.anchor.slot.Head.ID, nil) // what there was when the store was opened
	defer s.acked.endWaits()
	for p := range s.applied {
		group := []*pending{p}
		for len(s.applied) > 0 {
			group = append(group, <-s.applied)
		}
		s.acknowledgeAll(group)
	}
	if len(s.anchor.slot.Lead) > 0 && s.failed() == nil { // whoever opens the store need not ask
		s.moveAnchor(s.anchor.slot.Head, nil)
	}
}

// acknowledgeAll makes a group durable and anchored, and releases it: a small one in the
// time of one sync, since the anchor leads the store then and has what leads there.
func (s *Store) acknowledgeAll(group []*pending) {
	head, began := group[len(group)-1].Head, time.Now()
	lead := s.leadOf(group)
	if lead != nil && s.failed() == nil {
		s.moveAnchor(head, lead)
	}
	err := s.syncAll(group)
	s.tookMu.Lock()
	s.syncTook.Note(time.Since(began))
	s.tookMu.Unlock()
	if err == nil && lead == nil {
		s.moveAnchor(head, nil)
		err = s.failed()
	}
	recent := s.acked.copies(group)
	for _, p := range group {
		p.gathered.Wait() // the batch is the caller's again when it is done
		p.err = err
		close(p.done)
	}
	if err == nil {
		s.acked.reach(head.ID, recent)
	}
	if wake := s.wake.Load(); wake != nil {
		(*wake)()
	}
}

// leadOf returns what leads the store over a group of appends; nil: it is too long, or its
// contents are in pieces that were written before, or it is to settle the anchor.
func (s *Store) leadOf(group []*pending) []byte {
	size := 0
	if s.opts.Log != nil { // which leads
		return nil
	}
	for _, p := range group {
		if p.err != nil || len(p.Records) == 0 || p.inChunks() {
			return nil
		}
		if size += 4 + p.batch.Len(); size > leadBytes {
			return nil
		}
	}
	lead := s.lead[:0]
	for _, p := range group {
		lead = binary.BigEndian.AppendUint32(lead, uint32(p.batch.Len()))
		lead = append(lead, p.batch.Repr()...)
	}
	s.lead = lead
	return lead
}

// inChunks reports whether a content of the batch is in pieces.
func (p *pending) inChunks() bool {
	return slices.ContainsFunc(p.Blobs, func(b journal.Blob) bool { return len(b.Bytes) >= chunkFrom })
}

// syncAll waits until a group is durable in the store, or in its log.
func (s *Store) syncAll(group []*pending) error {
	for _, p := range group {
		if p.err == nil {
			p.err = errors.Join(p.batch.SyncWait(), p.batch.Close())
		}
		p.batch = nil
		if p.log != nil { // also where the copy cannot be written: it reads the batch
			p.err = errors.Join(p.log.Wait(), p.err)
		}
	}
	for _, p := range group {
		if p.err != nil {
			return s.fail(fmt.Errorf("store: %w", p.err))
		}
	}
	return s.failed() // Pebble is told that all went well where the disk fails
}

// moveAnchor moves the anchor to a head, with what leads there, if the store may not be
// there yet.
func (s *Store) moveAnchor(head journal.Head, lead []byte) {
	s.anchorSyncs.Add(1)
	var err error
	if len(lead) > 0 {
		err = s.anchor.lead(head, s.epoch, lead)
	} else {
		err = s.anchor.write(head, s.epoch)
	}
	s.led.Store(len(lead) > 0)
	if err != nil {
		_ = s.fail(s.unwritable(err))
	}
}

// settle has the anchor say that the store is where it says: what is put behind the
// records goes with them otherwise, should the log lose its end.
func (s *Store) settle() error {
	if !s.led.Load() {
		return nil
	}
	s.mu.Lock()
	if err := s.writable(); err != nil {
		s.mu.Unlock()
		return err
	}
	p := &pending{Batch: journal.Batch{After: s.head, Head: s.head}, done: make(chan struct{})}
	s.appended <- p
	s.mu.Unlock()
	return p.Wait()
}
