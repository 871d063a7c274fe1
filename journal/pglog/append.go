package pglog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/worldkernel/worldkernel/journal"
)

const (
	// lanes are how many statements that append are under way at a time.
	lanes = 2
	// maxStatementBytes is how much goes together in one; a batch that is longer goes alone.
	maxStatementBytes = 16 << 20
	// maxBatchBytes is less than what PostgreSQL takes in one message.
	maxBatchBytes = 768 << 20
	// maxWaitingBytes is how much of one world waits before Append does.
	maxWaitingBytes = 64 << 20
)

// pending is one batch under way. It implements journal.Pending.
type pending struct {
	batch journal.Batch
	bytes int
	done  chan struct{}
	err   error // once done
}

// Wait implements journal.Pending.
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

// lane is where the batches of one world wait; the world's mutex guards it.
type lane struct {
	waiting []*pending
	bytes   int
	under   bool // a statement with batches of the world is under way, or it waits for one
	room    chan struct{}
}

// queue is the worlds with batches that wait for a statement.
type queue struct {
	mu     sync.Mutex
	worlds []*World
	closed bool
	wake   chan struct{} // has one where there may be worlds
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

var errClosed = errors.New("pglog: the store was closed")

// Append implements journal.Log.
func (w *World) Append(b journal.Batch) (journal.Pending, error) {
	p := &pending{batch: b, done: make(chan struct{}), bytes: bytesOf(b)}
	if p.bytes > maxBatchBytes {
		return nil, fmt.Errorf("pglog: a batch of %d bytes: PostgreSQL takes %d in one statement", p.bytes, maxBatchBytes)
	}
	for _, r := range b.Records {
		if len(r.Bytes) > maxStatementBytes {
			return nil, fmt.Errorf("pglog: record #%d of %d bytes: %d are the most", r.ID, len(r.Bytes), maxStatementBytes)
		}
	}
	for _, c := range b.Blobs {
		if len(c.Bytes) > maxContent {
			return nil, fmt.Errorf("pglog: content %s of %d bytes: %d are the most", c.Hash, len(c.Bytes), maxContent)
		}
	}
	if len(b.Records) == 0 && len(b.Blobs) > 0 {
		return nil, errors.New("pglog: a batch of contents without records")
	}
	w.mu.Lock()
	for w.failed == nil && w.lane.bytes > maxWaitingBytes {
		room := make(chan struct{})
		w.lane.room = room
		w.mu.Unlock()
		<-room
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	switch {
	case w.failed != nil:
		p.endAppend(w.failed)
		return p, nil
	case !w.token.Valid:
		return nil, errNotOwned
	case b.After != w.tail:
		return nil, fmt.Errorf("pglog: append after #%d: the batch before ends at #%d", b.After.ID, w.tail.ID)
	}
	w.tail = b.Head
	w.lane.waiting = append(w.lane.waiting, p)
	w.lane.bytes += p.bytes
	if !w.lane.under {
		w.lane.under = true
		if !w.store.queue.add(w) {
			w.fail(errClosed)
		}
	}
	return p, nil
}

func (p *pending) endAppend(err error) {
	p.err = err
	close(p.done)
}

func bytesOf(b journal.Batch) int {
	n := 0
	for _, r := range b.Records {
		n += len(r.Bytes) + journal.LinkBytes + 2
	}
	for _, blob := range b.Blobs {
		n += len(blob.Bytes) + len(blob.Hash)
	}
	return n
}

// fail ends all that waits, and whatever comes after it. The world's mutex is held.
func (w *World) fail(err error) {
	if w.failed == nil {
		w.failed = err
	}
	for _, p := range w.lane.waiting {
		p.endAppend(w.failed)
	}
	w.lane.waiting, w.lane.bytes, w.lane.under = nil, 0, false
	w.lane.makeRoom()
}

func (l *lane) makeRoom() {
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
}

// add returns false where the store was closed.
func (q *queue) add(w *World) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.worlds = append(q.worlds, w)
	q.signal()
	return true
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) takeWorlds() []*World {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.worlds
	q.worlds = nil
	return out
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// flight is what of one world goes into a statement.
type flight struct {
	world   *World
	wid     int64
	token   pgtype.UUID
	after   journal.Head
	head    journal.Head
	epoch   uint64
	batches []*pending
	bytes   int
	frames  []frame
	blobs   []journal.Blob
	began   time.Time
}

// flush sends what waits, of all worlds together, until the store is closed.
func (s *Store) flush() {
	var under sync.WaitGroup
	for range lanes {
		under.Go(func() {
			for s.ctx.Err() == nil {
				select {
				case <-s.ctx.Done():
				case <-s.queue.wake:
					s.send(s.queue.takeWorlds())
				}
			}
		})
	}
	under.Wait()
	for _, w := range s.queue.takeWorlds() {
		w.mu.Lock()
		w.fail(errClosed)
		w.mu.Unlock()
	}
}

// send sends what waits of some worlds, in as many statements as their length asks for.
func (s *Store) send(worlds []*World) {
	for len(worlds) > 0 {
		var group []*flight
		for bytes := 0; len(worlds) > 0 && bytes < maxStatementBytes; worlds = worlds[1:] {
			f := worlds[0].board()
			if f == nil {
				continue
			}
			group = append(group, f)
			bytes += f.bytes
		}
		if len(group) == 0 {
			return
		}
		landed, err := s.transmit(s.ctx, group)
		for _, f := range group {
			if landed[f.wid] == 1 {
				f.land(nil)
				continue
			}
			s.stats.count(func(n *Stats) { n.Confirms++ })
			s.work.Go(func() { f.land(s.settle(f, err)) })
		}
	}
}

// board takes what waits of a world, as much as goes into one statement; nil: nothing.
func (w *World) board() *flight {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, bytes := 0, 0
	for n < len(w.lane.waiting) && (n == 0 || bytes+w.lane.waiting[n].bytes <= maxStatementBytes) {
		bytes += w.lane.waiting[n].bytes
		n++
	}
	if n == 0 {
		w.lane.under = false
		return nil
	}
	f := &flight{began: time.Now(), world: w, wid: w.wid, token: w.token, epoch: w.epoch, batches: w.lane.waiting[:n:n], bytes: bytes}
	f.after, f.head = f.batches[0].batch.After, f.batches[n-1].batch.Head
	w.lane.waiting = w.lane.waiting[n:]
	w.lane.bytes -= bytes
	w.lane.makeRoom()
	return f
}

// records are those of all its batches.
func (f *flight) records() iter.Seq[journal.Stored] {
	return func(yield func(journal.Stored) bool) {
		for _, p := range f.batches {
			for _, r := range p.batch.Records {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// contents are those of all its batches, each once.
func (f *flight) contents() []journal.Blob {
	var out []journal.Blob
	known := map[journal.Hash]bool{}
	for _, p := range f.batches {
		for _, b := range p.batch.Blobs {
			if !known[b.Hash] {
				known[b.Hash] = true
				out = append(out, b)
			}
		}
	}
	return out
}

// land tells what became of a flight, and has what came meanwhile sent.
func (f *flight) land(err error) {
	for _, p := range f.batches {
		p.endAppend(err)
	}
	w := f.world
	w.store.stats.count(func(n *Stats) { n.landed(f, err) })
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.fail(err)
	case len(w.lane.waiting) == 0:
		w.lane.under = false
	case !w.store.queue.add(w):
		w.fail(errClosed)
	}
}

// transmit sends flights of different worlds in one statement, and returns how often the server
// has answered with the number of each: once is durable, all else is unknown.
func (s *Store) transmit(ctx context.Context, group []*flight) (map[int64]int, error) {
	landed := map[int64]int{}
	sql, args := s.appendArgs(group)
	err := s.rows(ctx, sql, args, func(r pgx.Rows) error {
		var wid int64
		err := r.Scan(&wid)
		landed[wid]++
		return err
	})
	if err != nil {
		return nil, err
	}
	return landed, nil
}

// appendArgs returns the statement that appends flights, and what it is given: the columns of the
// tables that it reads.
func (s *Store) appendArgs(group []*flight) (string, []any) {
	for _, f := range group {
		if f.frames == nil {
			f.frames, f.blobs = s.pack.frames(f.after, f.records()), f.contents()
		}
	}
	if f := group[0]; len(group) == 1 && len(f.frames) == 1 && len(f.blobs) == 0 {
		fr := &f.frames[0]
		return sqlAppendOne, []any{
			f.wid, f.token, f.after.ID, f.after.Root[:], f.head.ID, f.head.Root[:], f.world.seal(f.epoch, f.head),
			fr.first, fr.last, fr.body,
		}
	}
	n := len(group)
	wids, tokens := make([]int64, n), make([]pgtype.UUID, n)
	after, head := make([]int64, n), make([]int64, n)
	was, root, seal := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	var frameOf, first, last []int64
	var frameWas, frameBody [][]byte
	blobOf, hash, body := []int64{}, [][]byte{}, [][]byte{} // not nil, which would be NULL
	for i, f := range group {
		wids[i], tokens[i] = f.wid, f.token
		after[i], was[i] = int64(f.after.ID), f.after.Root[:]
		head[i], root[i] = int64(f.head.ID), f.head.Root[:]
		seal[i] = f.world.seal(f.epoch, f.head)
		for j := range f.frames {
			fr := &f.frames[j]
			frameOf, first, last = append(frameOf, f.wid), append(first, int64(fr.first)), append(last, int64(fr.last))
			frameWas, frameBody = append(frameWas, fr.was[:]), append(frameBody, fr.body)
		}
		for _, b := range f.blobs {
			blobOf, hash, body = append(blobOf, f.wid), append(hash, b.Hash[:]), append(body, s.pack.pack(b.Bytes))
		}
	}
	return sqlAppend, []any{
		wids, tokens, after, was, head, root, seal,
		frameOf, first, last, frameWas, frameBody,
		blobOf, hash, body,
	}
}
