// Package logtest is what tests of a [journal.Log], and of what is built on one, share: a log in
// memory that is exactly what the interface promises, as the laws of logs in journal/pglog hold it
// to. It is a part of worldctl, and not an API.
package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/journal"
)

// Server holds the log of a world in memory, as a database does for several machines. The zero
// value is that of a world without records, which nobody owns. It is safe for concurrent use.
type Server struct {
	Beside func(id string) journal.Movable // another world of the same store; nil: there is none yet

	// Lease is how long an owner lives after anything that it says. 0: until the next one owns the
	// world, which is sure that it has died.
	Lease time.Duration

	mu sync.Mutex // guards what follows
	contents
}

// contents is what a backup has, too. What is in the slices is never written to.
type contents struct {
	owner    *memory       // the token; nil: nobody's
	state    journal.State // empty: Live
	left     *contents     // what was moved away, until what is made over it is published
	to       string        // it was moved
	copies   string        // as of journal.Standing
	epoch    uint64
	wake     journal.Wake
	head     journal.Head
	records  []journal.Linked
	blobs    map[journal.Hash][]byte // nil: redacted
	notes    []journal.Note
	image    *journal.KeptImage
	attempts map[attemptID]attempt // what host.Attempts keeps
}

// Log returns the log as seen by another process.
func (s *Server) Log() journal.Log { return &memory{server: s} }

// Backup returns a server with what is there now.
func (s *Server) Backup() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Server{Lease: s.Lease, contents: s.clone()}
}

// Restore puts a backup in the place of all that is there: what came after it is lost.
func (s *Server) Restore(backup *Server) {
	backup.mu.Lock()
	defer backup.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contents = backup.clone()
}

func (c *contents) clone() contents {
	d := *c
	d.records, d.notes, d.blobs, d.attempts = slices.Clone(c.records), slices.Clone(c.notes), maps.Clone(c.blobs), maps.Clone(c.attempts)
	return d
}

// Wake returns when the world needs an owner again; false: it has one.
func (s *Server) Wake() (journal.Wake, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wake, s.owner == nil
}

// memory is a journal.Log of a Server.
type memory struct {
	server *Server
	tail   journal.Head // after what it has begun to append; server.mu guards it, and failed
	failed error
	makes  bool
}

// Own implements journal.Log.
func (l *memory) Own(context.Context) (journal.Owned, error) {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses(l) {
		return journal.Owned{}, fmt.Errorf("the world is %s", s.state)
	}
	s.owner, s.epoch, l.tail = l, s.epoch+1, s.head
	return journal.Owned{Head: s.head, Epoch: s.epoch}, nil
}

// Append implements journal.Log. What it appends is durable at once.
func (l *memory) Append(b journal.Batch) (journal.Pending, error) {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.failed != nil:
	case s.owner != l:
		l.failed = journal.ErrFenced
	case b.After != l.tail:
		return nil, fmt.Errorf("append after #%d: the batch before ends at #%d", b.After.ID, l.tail.ID)
	case s.head != b.After:
		l.failed = journal.ErrRewound
	default:
		s.add(b)
		l.tail = b.Head
	}
	return ended{l.failed}, nil
}

func (c *contents) add(b journal.Batch) {
	for _, r := range b.Records {
		c.records = append(c.records, journal.Linked{
			ID: r.ID, Bytes: bytes.Clone(r.Bytes), Link: [journal.LinkBytes]byte(r.Root[:journal.LinkBytes]),
		})
	}
	for _, blob := range b.Blobs {
		if c.blobs[blob.Hash] == nil {
			c.putBlob(blob.Hash, append([]byte{}, blob.Bytes...))
		}
	}
	c.head = b.Head
}

func (c *contents) putBlob(h journal.Hash, content []byte) {
	if c.blobs == nil {
		c.blobs = map[journal.Hash][]byte{}
	}
	c.blobs[h] = content
}

// ended is a Pending that is done.
type ended struct{ err error }

// Wait implements journal.Pending.
func (e ended) Wait() error { return e.err }

// Done implements journal.Pending.
func (e ended) Done() bool { return true }

// Release implements journal.Log.
func (l *memory) Release(_ context.Context, wake journal.Wake) error {
	return l.own(func(c *contents) error {
		c.owner, c.wake = nil, wake
		return nil
	})
}

// own does what only the owner may.
func (l *memory) own(change func(*contents) error) error {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != l {
		return journal.ErrFenced
	}
	return change(&s.contents)
}

// Blob implements journal.Past.
func (l *memory) Blob(h journal.Hash) ([]byte, error) {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	content, there := s.blobs[h]
	switch {
	case !there:
		return nil, fmt.Errorf("blob %s: %w", h, journal.ErrNotFound)
	case content == nil:
		return nil, fmt.Errorf("blob %s: %w", h, journal.ErrRedacted)
	}
	return bytes.Clone(content), nil
}

// End implements journal.Past.
func (l *memory) End(context.Context) (journal.Head, error) {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if l.server.refuses(l) {
		return journal.Head{}, fmt.Errorf("the world is %s", l.server.state)
	}
	return l.server.head, nil
}

// Records implements journal.Past.
func (l *memory) Records(ctx context.Context, after journal.Seq) iter.Seq2[journal.Linked, error] {
	return func(yield func(journal.Linked, error) bool) {
		l.server.mu.Lock()
		rest := l.server.records
		l.server.mu.Unlock()
		for _, r := range rest[min(uint64(after), uint64(len(rest))):] {
			if err := ctx.Err(); err != nil {
				yield(journal.Linked{}, err)
				return
			}
			r.Bytes = bytes.Clone(r.Bytes)
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Kept implements journal.Past.
func (l *memory) Kept(context.Context) (*journal.KeptImage, error) {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	if l.server.image == nil {
		return nil, nil
	}
	img := *l.server.image
	return &img, nil
}

// Notes implements journal.Past.
func (l *memory) Notes(_ context.Context, from, to journal.Seq) iter.Seq2[journal.Note, error] {
	return func(yield func(journal.Note, error) bool) {
		l.server.mu.Lock()
		notes := slices.Clone(l.server.notes)
		l.server.mu.Unlock()
		for _, n := range notes {
			if n.Size >= from && n.Size <= to && !yield(n, nil) {
				return
			}
		}
	}
}

// PutImage implements journal.Keep.
func (l *memory) PutImage(_ context.Context, img *journal.KeptImage) error {
	var parts [][]byte
	for part, err := range img.Parts {
		if err != nil {
			return fmt.Errorf("image at #%d: %w", img.Head.ID, err)
		}
		if len(part) > journal.MaxKeptPart {
			return fmt.Errorf("image at #%d: a part of %d bytes", img.Head.ID, len(part))
		}
		parts = append(parts, bytes.Clone(part))
	}
	kept := &journal.KeptImage{Head: img.Head, Tree: bytes.Clone(img.Tree), Parts: func(yield func([]byte, error) bool) {
		for _, part := range parts {
			if !yield(bytes.Clone(part), nil) {
				return
			}
		}
	}}
	return l.own(func(c *contents) error {
		if img.Head.ID > c.head.ID {
			return errors.New("the head of the image is not durable")
		}
		c.image = kept
		return nil
	})
}

// PutNote implements journal.Keep.
func (l *memory) PutNote(_ context.Context, n journal.Note) error {
	n.Text = bytes.Clone(n.Text)
	return l.own(func(c *contents) error {
		at, there := slices.BinarySearchFunc(c.notes, n.Size, func(m journal.Note, size journal.Seq) int { return int(m.Size) - int(size) })
		c.notes = slices.Clone(c.notes)
		if there {
			c.notes[at] = n
		} else {
			c.notes = slices.Insert(c.notes, at, n)
		}
		return nil
	})
}

// Redact implements journal.Keep.
func (l *memory) Redact(_ context.Context, h journal.Hash) error {
	return l.own(func(c *contents) error {
		c.putBlob(h, nil)
		return nil
	})
}
