package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// maxLineBytes bounds a line of a bulk.
const maxLineBytes = 64 << 20

// bulk reads events from JSON lines, one at a time.
type bulk struct {
	lines *bufio.Scanner
	to    *reducer.Cell // where a line names no cell
	at    manifest.Tick // where a line names no tick
	line  uint64        // the one that was read last, from 1
	event string        // in that line
	count func(lines uint64)
}

// lineError says that a line is no event.
type lineError struct{ err error }

func (e *lineError) Error() string { return e.err.Error() }
func (e *lineError) Unwrap() error { return e.err }

// sendLines submits the lines of stdin.
func (c *cli) sendLines(ctx context.Context, lw *local.World, to string, at manifest.Tick) error {
	report, stop := c.progress("events", 0)
	b := &bulk{lines: bufio.NewScanner(c.stdin), at: at, count: report}
	b.lines.Buffer(nil, maxLineBytes)
	if to != "" {
		cell, err := parseCell(to)
		if err != nil {
			return err
		}
		b.to = &cell
	}
	accepted, err := lw.SubmitAll(ctx, b.submissions())
	stop()
	if err != nil {
		return b.stopped(err, lw, accepted)
	}
	answer := struct {
		Accepted uint64     `json:"accepted"`
		Head     world.Head `json:"head"`
	}{accepted, lw.Store().Head()}
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
		err = hinted(err, `a line is {"event": NAME, "data": ..., "at": TICK, "to": CELL}, without at and to where not wanted`)
	case errors.Is(err, context.Canceled):
		return hinted(fmt.Errorf("after %d accepted events: %w", accepted, err), "go on with the lines after these")
	default:
		return err
	}
	return fmt.Errorf("line %d: %w; %d events before it were accepted", b.line, err, accepted)
}

func (b *bulk) submissions() iter.Seq2[world.Submission, error] {
	return func(yield func(world.Submission, error) bool) {
		for b.lines.Scan() {
			b.line++
			b.count(b.line)
			if len(b.lines.Bytes()) == 0 {
				continue
			}
			s, err := b.submission(b.lines.Bytes())
			if err != nil {
				err = &lineError{err}
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
		switch err := b.lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			b.line++
			yield(world.Submission{}, &lineError{fmt.Errorf("longer than %d bytes", maxLineBytes)})
		case err != nil && !errors.Is(err, io.EOF):
			yield(world.Submission{}, err)
		}
	}
}

// submission parses a line. Its JSON is read as exactly as an event's data.
func (b *bulk) submission(text []byte) (world.Submission, error) {
	s := world.Submission{To: b.to, At: b.at}
	item, err := canon.FromJSON(text)
	if err != nil {
		return s, err
	}
	r := canon.NewReader(item)
	named := false
	for n := r.Map(); n > 0 && r.Err() == nil; n-- {
		switch field := r.Text(); field {
		case "event":
			s.Name, named = r.Text(), true
		case "data":
			s.Data = r.Raw()
		case "at":
			s.At = manifest.Tick(r.Uint())
		case "to":
			cell, err := reducer.ParseCell(r.Text())
			if r.Err() == nil && err != nil {
				return s, err
			}
			s.To = &cell
		default:
			return s, fmt.Errorf("it has no use for %q: only event, data, at and to", field)
		}
		if r.Err() != nil {
			return s, fmt.Errorf("it is not an event: event and to are texts, at is a tick")
		}
	}
	if err := r.Close(); err != nil || !named {
		return s, fmt.Errorf("it is not an event: an object with the field event is")
	}
	b.event = s.Name
	return s, nil
}
