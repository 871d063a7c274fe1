package api

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/worldkernel/worldkernel/journal"
)

// streamBuffer is how many bytes of a stream are gathered before they are sent.
const streamBuffer = 32 << 10

// stream is one follower of a journal, who is sent server-sent events: id is the number
// of the last record that the event is about. What is sent is durable.
type stream struct {
	*call
	at      journal.Seq // the last record that was looked at
	out     *bufio.Writer
	catchUp catchUp
}

// catchUp sends a follower what there is, up to where at is then, and reports whether
// nothing more is wanted. It has a turn, which it may yield.
type catchUp func(context.Context, *stream) (over bool, err error)

// stream lets the caller follow the journal from a record on until they go, are too slow,
// or the server ends.
func (c *call) stream(after journal.Seq, send catchUp) error {
	if text := c.Header.Get("Last-Event-ID"); text != "" {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return badRequest("Last-Event-ID", "it has to be the number of a record")
		}
		after = journal.Seq(min(id, mostOfNumber))
	}
	c.yield()
	if err := c.takeSlotOf(c.server.followers); err != nil {
		return err
	}
	c.listen(time.Time{})
	ctx, cancel := context.WithCancel(c.follow)
	defer cancel()
	defer context.AfterFunc(c.world.life, cancel)()
	h := c.out.Header()
	h.Set("Content-Type", streamType)
	h.Set("Cache-Control", "no-store")
	c.out.WriteHeader(http.StatusOK)
	s := &stream{call: c, at: after, catchUp: send}
	s.out = bufio.NewWriterSize(patient{c}, streamBuffer)
	if err := s.flush(); err != nil {
		return err
	}
	return s.follow(ctx)
}

// follow sends what there is, and waits for more.
func (s *stream) follow(ctx context.Context) error {
	for {
		if over, err := s.inTurn(ctx); over || err != nil {
			return s.ended(ctx, err)
		}
		if err := s.wait(ctx); err != nil {
			return s.ended(ctx, err)
		}
	}
}

// keptEvery is how often a follower's token is looked at while nothing happens.
const keptEvery = time.Second

// wait returns once there is more. Meanwhile it says now and then that the stream lives,
// and ends where the follower's token is not taken any more.
func (s *stream) wait(ctx context.Context) error {
	every := s.server.cfg.Limits.Heartbeat
	for quiet := time.Duration(0); ; {
		waits := min(keptEvery, every-quiet)
		waiting, stop := context.WithTimeout(ctx, waits)
		err := s.world.Local.Await(waiting, s.at)
		stop()
		switch {
		case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
			return err
		case !s.server.keeps(s.call):
			return errRevoked
		}
		if quiet += waits; quiet < every {
			continue
		}
		quiet = 0
		if _, err := s.out.WriteString(":\n\n"); err != nil {
			return err
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
}

// inTurn catches up when it is the follower's turn.
func (s *stream) inTurn(ctx context.Context) (over bool, err error) {
	if err := s.awaitTurn(ctx); err != nil {
		return false, err
	}
	defer s.yield()
	over, err = s.catchUp(ctx, s)
	if err != nil {
		return false, err
	}
	return over, s.flush()
}

// ended tells an end that was to come from one that was not.
func (s *stream) ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case s.world.leaving.Load():
		return errMoving() // who follows has what was sent, and asks for what comes after it
	}
	return nil
}

// flush sends what there is, without the turn: the follower may be slow.
func (s *stream) flush() error {
	s.yield()
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
