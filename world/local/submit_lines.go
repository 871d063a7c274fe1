package local

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// The limits of what is read of a bulk.
const (
	maxLineBytes = 64 << 20
	aheadBytes   = 1 << 20 // so much is read ahead, or a line
)

// bulk submits events from JSON lines.
type bulk struct {
	lines *bufio.Reader
	next  []byte        // the line that is submitted next
	ended error         // of reading: io.EOF, or what is wrong
	to    *reducer.Cell // where a line names no cell
	when  world.When    // where a line says nothing of it
	line  uint64        // the one that was read last, from 1
	count func(lines uint64)

	refused lined // the event that was not taken
}

// LineError says which line ended SubmitLines.
type LineError struct {
	Line  uint64 // from 1
	Event string // that was refused, with a *world.InputError; empty: the line is none
	Err   error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// SubmitLines takes events as JSON lines: objects with event, a name, and where wanted
// data, at, a tick or a time, or in, a duration, and to, a cell; the given ones are for
// lines without. Lines are taken
// as they come, and are durable on return, up to the first that is refused: a *LineError
// then. count, which may be nil, is told of each line.
func (lw *World) SubmitLines(ctx context.Context, from io.Reader, to *reducer.Cell, when world.When, count func(lines uint64)) (accepted uint64, err error) {
	b := &bulk{lines: bufio.NewReaderSize(from, aheadBytes), to: to, when: when, count: count}
	accepted, err = b.submit(ctx, lw)
	var line *lineError
	switch {
	case errors.As(err, new(*world.InputError)):
		err = &LineError{Line: b.refused.line, Event: b.refused.Name, Err: err}
	case errors.As(err, &line):
		err = &LineError{Line: b.line, Err: line.error}
	}
	return accepted, err
}

// SubmitLinesUnder is SubmitLines once all lines are there, under a key; see Spool.Under.
func (lw *World) SubmitLinesUnder(key string) func(context.Context, io.Reader, *reducer.Cell, world.When, func(uint64)) (uint64, error) {
	return func(ctx context.Context, from io.Reader, to *reducer.Cell, when world.When, count func(lines uint64)) (uint64, error) {
		all := lw.NewSpool()
		defer all.Close() //nolint:errcheck // it was only read
		if err := all.Under(key); err != nil {
			return 0, err
		}
		b := &bulk{lines: bufio.NewReaderSize(from, aheadBytes), to: to, when: when, count: count}
		for b.readLine() {
			for s, err := range b.submissions() {
				if err != nil {
					return 0, &LineError{Line: b.line, Err: err}
				}
				if err := errors.Join(ctx.Err(), all.AddEvent(s.line, &s.Submission)); err != nil {
					return 0, err
				}
			}
		}
		if !errors.Is(b.ended, io.EOF) {
			return 0, &LineError{Line: b.line + 1, Err: b.ended}
		}
		done, line, err := all.Submit(ctx)
		if errors.As(err, new(*world.InputError)) && line > 0 {
			err = &LineError{Line: line, Event: all.refused, Err: err}
		}
		return done.Count, err
	}
}

// lineError says that a line is no event.
type lineError struct{ error }

// submit submits the lines, as they come, and returns how many events were
// accepted. The world is not held up while there are none: it takes what has been read.
func (b *bulk) submit(ctx context.Context, lw *World) (accepted uint64, err error) {
	for err == nil && b.readLine() {
		var a Accepted
		a, b.refused, err = lw.submitBulk(ctx, b.submissions())
		accepted += a.Count
	}
	if err == nil && !errors.Is(b.ended, io.EOF) {
		b.line++
		err = b.ended
	}
	return accepted, err
}

// readLine reads a line, if there is another one.
func (b *bulk) readLine() bool {
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
func (b *bulk) submissions() iter.Seq2[lined, error] {
	return func(yield func(lined, error) bool) {
		for more := true; more; more = b.ahead() && b.readLine() {
			b.line++
			if b.count != nil {
				b.count(b.line)
			}
			text := bytes.TrimRight(b.next, "\r\n")
			if len(text) == 0 {
				continue
			}
			s, err := b.submission(text)
			if err != nil {
				err = &lineError{err}
			}
			if !yield(lined{s, b.line}, err) || err != nil {
				return
			}
		}
	}
}

// submission parses a line. Its JSON is read as exactly as an event's data.
func (b *bulk) submission(text []byte) (world.Submission, error) {
	s := world.Submission{To: b.to, When: b.when}
	item, err := canon.FromJSON(text)
	if err == nil {
		err = s.Decode(item)
	}
	return s, err
}
