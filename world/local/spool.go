package local

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/journal"
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

// Submit submits the events in their order. It returns which were taken; they are durable.
// Where it ends with an error, line is that of the first event that was not taken, and 0
// where all were.
func (s *Spool) Submit(ctx context.Context) (a Accepted, line uint64, err error) {
	a, refused, err := s.lw.submitBulk(ctx, s.all())
	return a, refused.line, err
}

// all yields the events. Their data is theirs.
func (s *Spool) all() iter.Seq2[lined, error] {
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
