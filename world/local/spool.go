package local

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

// spoolBytes is how much of a spool is in memory.
const spoolBytes = 1 << 20

// Spool keeps events until all that are to be submitted together are there: some in
// memory, the others in a file beside the store, which has no name and is gone with
// the process. It is not safe for concurrent use; Close gives the file back.
type Spool struct {
	lw   *World
	tail []byte   // what is not in the file: for each event its line, its size and itself
	file *os.File // nil: there was no need

	Horizon *world.Horizon // bounds when they fall due; nil: nothing but the clock does

	key    string // given to Under; "": none
	digest world.Digest

	refused string // the name of the event that was not taken
}

// NewSpool returns an empty spool for events of lw.
func (lw *World) NewSpool() *Spool { return &Spool{lw: lw} }

// Close forgets the events.
func (s *Spool) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Add adds an event that [world.Submission.Decode] takes, with the number of the line
// that it came on.
func (s *Spool) Add(line uint64, item journal.Data) error {
	if s.key != "" {
		var e world.Submission
		if err := e.Decode(item); err != nil {
			return err
		}
		s.digest.Add(&e)
	}
	s.tail = binary.AppendUvarint(s.tail, line)
	s.tail = binary.AppendUvarint(s.tail, uint64(len(item)))
	s.tail = append(s.tail, item...)
	if len(s.tail) < spoolBytes {
		return nil
	}
	if s.file == nil {
		f, err := os.CreateTemp(filepath.Join(s.lw.dir, hiddenDir), "spool-*")
		if err != nil {
			return fmt.Errorf("local: spool: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return fmt.Errorf("local: spool: %w", err)
		}
	}
	if _, err := s.file.Write(s.tail); err != nil {
		return fmt.Errorf("local: spool: %w", err)
	}
	s.tail = s.tail[:0]
	return nil
}

// itemOf returns an item that [world.Submission.Decode] takes, with the name, data, cell and time of an event.
func itemOf(s *world.Submission) journal.Data {
	fields := map[string]any{"event": s.Name, "data": s.Data}
	if len(s.Data) == 0 {
		delete(fields, "data")
	}
	switch {
	case s.In > 0:
		fields["in"] = s.In.String()
	case s.Time != nil:
		fields["at"] = time.Unix(0, *s.Time).UTC().Format(time.RFC3339Nano)
	case s.At > 0:
		fields["at"] = uint64(s.At)
	}
	if s.To != nil {
		fields["to"] = s.To.String()
	}
	item, _ := canon.Marshal(fields) // texts, a number and an item: it never errs
	return item
}

// Under has the events be submitted once under a key, however often the same are: also where what
// submitted them broke off amid them, which goes on then. It is called before the first is added.
func (s *Spool) Under(key string) error {
	s.key = key
	return (&world.SubmitKey{Name: key}).Check()
}

// Submit submits the events in their order. It returns which were taken; they are durable.
// Where it ends with an error, line is that of the first event that was not taken, and 0
// where all were.
func (s *Spool) Submit(ctx context.Context) (a Accepted, line uint64, err error) {
	all := s.within(s.allEvents())
	if s.key != "" {
		key := world.SubmitKey{Name: s.key, Of: s.digest.Sum()}
		var before world.Before
		if err := s.lw.Update(func(w *world.World) error {
			before, err = w.Submitted(&key)
			return err
		}); err != nil {
			return a, 1, err
		}
		a = Accepted{Count: before.Count, First: before.First, Last: before.Last}
		all = under(key, before.Count, all)
	}
	more, refused, err := s.lw.submitBulk(ctx, all)
	if more.Count > 0 {
		a = Accepted{Count: a.Count + more.Count, First: cmp.Or(a.First, more.First), Last: more.Last}
	}
	s.refused = refused.Name
	return a, refused.line, err
}

// AddEvent is Add of an event as it is.
func (s *Spool) AddEvent(line uint64, e *world.Submission) error {
	return s.Add(line, itemOf(e))
}

// under yields the events with their keys, but for those that were submitted before.
func under(key world.SubmitKey, before uint64, all iter.Seq2[lined, error]) iter.Seq2[lined, error] {
	return func(yield func(lined, error) bool) {
		n := uint64(0)
		for e, err := range all {
			if n++; n <= before && err == nil {
				continue
			}
			key.Nth = n
			one := key
			e.Key = &one
			if !yield(e, err) {
				return
			}
		}
	}
}

// within yields the events with what bounds when they fall due.
func (s *Spool) within(all iter.Seq2[lined, error]) iter.Seq2[lined, error] {
	return func(yield func(lined, error) bool) {
		for e, err := range all {
			e.Horizon = s.Horizon
			if !yield(e, err) {
				return
			}
		}
	}
}

// allEvents yields the events. Their data is theirs.
func (s *Spool) allEvents() iter.Seq2[lined, error] {
	return func(yield func(lined, error) bool) {
		var from io.Reader = bytes.NewReader(s.tail)
		if s.file != nil {
			if _, err := s.file.Seek(0, io.SeekStart); err != nil {
				yield(lined{}, err)
				return
			}
			from = io.MultiReader(s.file, from)
		}
		r := bufio.NewReaderSize(from, 64<<10)
		for {
			e, err := readSpooled(r)
			if err == io.EOF { //nolint:errorlint // between two events, as bufio returns it
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func readSpooled(r *bufio.Reader) (e lined, err error) {
	if e.line, err = binary.ReadUvarint(r); err != nil {
		return e, err
	}
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return e, fmt.Errorf("local: spool: %w", err)
	}
	item := make([]byte, size)
	if _, err := io.ReadFull(r, item); err != nil {
		return e, fmt.Errorf("local: spool: %w", err)
	}
	return e, e.Decode(item)
}
