package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/view"
)

// streamBuffer is how many bytes of a stream are gathered before they are sent.
const streamBuffer = 32 << 10

// stream is one follower of a journal, who is sent server-sent events: id is the
// number of a record, event its kind, data its line. What is sent is durable.
type stream struct {
	*call
	want view.Selection
	sent journal.Seq // the last record that the follower's id stands for
	out  *bufio.Writer
}

// stream lets the caller follow the journal until they go, are too slow, or the
// server ends.
func (c *call) stream(want view.Selection) error {
	if text := c.Header.Get("Last-Event-ID"); text != "" {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return badRequest("Last-Event-ID", "it has to be the number of a record")
		}
		want.After = journal.Seq(id)
	}
	c.yield()
	if err := c.take(c.server.followers); err != nil {
		return err
	}
	c.listen(time.Time{})
	ctx, cancel := context.WithCancel(c.follow)
	defer cancel()
	defer context.AfterFunc(c.world.life, cancel)()
	h := c.out.Header()
	h.Set("Content-Type", streamType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	c.out.WriteHeader(http.StatusOK)
	s := &stream{call: c, want: want, sent: want.After}
	s.out = bufio.NewWriterSize(patient{c}, streamBuffer)
	if err := s.flush(); err != nil {
		return err
	}
	return s.follow(ctx)
}

// follow sends what there is, and waits for more.
func (s *stream) follow(ctx context.Context) error {
	for {
		if over, err := s.catchUp(ctx); over || err != nil {
			return s.ended(ctx, err)
		}
		waiting, stop := context.WithTimeout(ctx, s.server.cfg.Limits.Heartbeat)
		err := s.world.Local.Await(waiting, s.want.After)
		stop()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			_, err = s.out.WriteString(":\n\n")
			if err == nil {
				err = s.flush()
			}
		}
		if err != nil {
			return s.ended(ctx, err)
		}
	}
}

// ended tells an end that was to come from one that was not.
func (s *stream) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// catchUp sends what there is, and reports whether nothing more is wanted.
func (s *stream) catchUp(ctx context.Context) (over bool, err error) {
	if err := s.awaitTurn(ctx); err != nil {
		return false, err
	}
	defer s.yield()
	s.want.Until = s.world.End()
	from, to, err := s.want.Span(s.world.Journal)
	if err != nil {
		return false, err
	}
	for r, err := range s.world.Local.Scan(s.want.After) {
		if err == nil {
			err = r.Err
		}
		if err == nil && r.ID > min(to, s.want.Until) {
			break
		}
		if err == nil && !s.server.tokens.Load().keep(s.call) {
			err = errRevoked
		}
		if err == nil {
			err = s.world.Local.Await(ctx, r.ID-1)
		}
		if err == nil && r.ID >= from {
			err = s.sendRecord(&r)
		}
		if err != nil {
			return false, err
		}
		s.want.After = r.ID
	}
	if s.sent < s.want.After { // so that a follower who comes back need not pass them again
		if _, err := fmt.Fprintf(s.out, "id: %d\n\n", s.want.After); err != nil {
			return false, err
		}
		s.sent = s.want.After
	}
	return to < s.want.Until, s.flush()
}

// errRevoked says that the follower's token is not taken any more.
var errRevoked = failed(http.StatusUnauthorized, "unauthorized", "the token is not one that this server takes")

// sendRecord sends a record if it is wanted.
func (s *stream) sendRecord(r *journal.Scanned) error {
	if !view.Among(s.want.Kinds, r.Record.Kind) {
		return nil
	}
	e, err := s.world.Load(r.Record, r.Bytes)
	if err != nil {
		return err
	}
	if s.want.Cell != "" {
		if tells, err := s.world.TellsOf(e, s.want.Cell); !tells || err != nil {
			return err
		}
	}
	line, err := view.Marshal(e.View())
	if err != nil {
		return err
	}
	s.sent = e.ID
	_, err = fmt.Fprintf(s.out, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, line)
	return err
}

func (s *stream) flush() error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	s.deadline(s.server.cfg.Limits.Flush)
	control := http.NewResponseController(s.call.out)
	if err := control.Flush(); err != nil {
		return errGone
	}
	_ = control.SetWriteDeadline(time.Time{}) // one that passes while nothing is sent could not be moved any more
	return nil
}

// patient writes to a follower, who has a while to read each piece.
type patient struct{ c *call }

func (p patient) Write(b []byte) (int, error) {
	p.c.deadline(p.c.server.cfg.Limits.Flush)
	works := p.c.yield()
	n, err := p.c.out.Write(b)
	if err != nil {
		return n, errGone
	}
	if works {
		err = p.c.awaitTurn(p.c.follow)
	}
	return n, err
}
