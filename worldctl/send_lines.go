package worldctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// The limits of what is read of a bulk.
const (
	maxLineBytes = 64 << 20
	aheadBytes   = 1 << 20 // so much is submitted at once, or a line
)

// bulk reads events from JSON lines.
type bulk struct {
	lines *bufio.Reader
	next  []byte        // the line that is submitted next
	ended error         // of reading: io.EOF, or what is wrong
	to    *reducer.Cell // where a line names no cell
	at    manifest.Tick // where a line names no tick
	line  uint64        // the one that was submitted last, from 1
	event string        // in that line
	count func(lines uint64)
}

func newBulk(from io.Reader) *bulk {
	return &bulk{lines: bufio.NewReaderSize(from, aheadBytes), count: func(uint64) {}}
}

// lineError says that a line is no event.
type lineError struct{ err error }

func (e *lineError) Error() string { return e.err.Error() }
func (e *lineError) Unwrap() error { return e.err }

// sendLines submits the lines of stdin.
func (c *cli) sendLines(ctx context.Context, lw *local.World, to string, at manifest.Tick) error {
	report, stop := c.progress("events", 0)
	b := newBulk(c.stdin)
	b.at, b.count = at, report
	if to != "" {
		cell, err := parseCell(to)
		if err != nil {
			return err
		}
		b.to = &cell
	}
	accepted, err := b.submit(ctx, lw)
	stop()
	if err != nil {
		return b.stopped(err, lw, accepted)
	}
	answer := struct {
		Accepted uint64       `json:"accepted"`
		Head     journal.Head `json:"head"`
	}{accepted, lw.Head()}
	return c.object("send-bulk", answer, func() {
		fmt.Fprintf(c.stdout, "%d events accepted, the journal ends at #%d\n", accepted, answer.Head.ID)
		c.note("next: worldctl run")
	})
}

// stopped says where a bulk ended and what was accepted before.
func (b *bulk) stopped(err error, lw *local.World, accepted uint64) error {
	var input *world.InputError
	var line *lineError
	switch {
	case errors.As(err, &input):
		err = refused(err, lw, b.event)
	case errors.As(err, &line):
		err = hinted(err, "%s", hintLine)
	case errors.Is(err, context.Canceled):
		return hinted(fmt.Errorf("after %d accepted events: %w", accepted, err), "go on with the lines after these")
	default:
		return err
	}
	return fmt.Errorf("line %d: %w; %d events before it were accepted", b.line, err, accepted)
}

// submit submits the lines, as they come, and returns how many events were
// accepted. The world is not held up while there are none: it takes at once what
// has been read.
func (b *bulk) submit(ctx context.Context, lw *local.World) (accepted uint64, err error) {
	for err == nil && b.read() {
		var n uint64
		_, n, err = lw.SubmitAll(ctx, b.submissions())
		accepted += n
	}
	if err == nil && !errors.Is(b.ended, io.EOF) {
		b.line++
		err = b.ended
	}
	return accepted, err
}

// read reads a line, if there is another one.
func (b *bulk) read() bool {
	b.next = b.next[:0]
	for b.ended == nil {
		part, err := b.lines.ReadSlice('\n')
		b.next = append(b.next, part...)
		switch {
		case len(b.next) > maxLineBytes:
			b.ended = &lineError{fmt.Errorf("longer than %d bytes", maxLineBytes)}
			return false
		case err == nil:
			return true
		case !errors.Is(err, bufio.ErrBufferFull):
			b.ended = err
		}
	}
	return errors.Is(b.ended, io.EOF) && len(b.next) > 0
}

// ahead reports whether the next line is in memory already.
func (b *bulk) ahead() bool {
	buffered, _ := b.lines.Peek(b.lines.Buffered()) // which never fails
	return bytes.IndexByte(buffered, '\n') >= 0
}

// submissions yields the line that was read, and those that can be had without
// waiting.
func (b *bulk) submissions() iter.Seq2[world.Submission, error] {
	return func(yield func(world.Submission, error) bool) {
		for more := true; more; more = b.ahead() && b.read() {
			b.line++
			b.count(b.line)
			text := bytes.TrimRight(b.next, "\r\n")
			if len(text) == 0 {
				continue
			}
			s, err := b.submission(text)
			if err != nil {
				err = &lineError{err}
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// submission parses a line. Its JSON is read as exactly as an event's data.
func (b *bulk) submission(text []byte) (world.Submission, error) {
	s := world.Submission{To: b.to, At: b.at}
	item, err := canon.FromJSON(text)
	if err == nil {
		err = s.Decode(item)
	}
	b.event = s.Name
	return s, err
}
