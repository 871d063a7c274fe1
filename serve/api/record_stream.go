package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
)

// recordStream sends a follower records: the kind of each is the event, its line the data.
type recordStream struct {
	want view.Selection
	form form
	sent journal.Seq // the last record that the follower's id stands for
}

func (r *recordStream) catchUp(ctx context.Context, s *stream) (over bool, err error) {
	r.sent, r.want.After, r.want.Until = s.at, s.at, s.world.End()
	from, to, err := r.want.Span(s.world.Journal)
	if err != nil {
		return false, err
	}
	for x, err := range s.world.Local.Scan(s.at) {
		if err == nil {
			err = x.Err
		}
		if err == nil && x.ID > min(to, r.want.Until) {
			break
		}
		if err == nil && !s.server.keeps(s.call) {
			err = errRevoked
		}
		if err == nil {
			err = s.world.Local.Await(ctx, x.ID-1)
		}
		if err == nil && x.ID >= from {
			err = r.send(s, &x)
		}
		if err != nil {
			return false, err
		}
		s.at = x.ID
	}
	if r.sent < s.at { // so that a follower who comes back need not pass them again
		if _, err := fmt.Fprintf(s.out, "id: %d\n\n", s.at); err != nil {
			return false, err
		}
		r.sent = s.at
	}
	return to < r.want.Until, nil
}

// errRevoked says that the follower's token is not taken any more.
var errRevoked = failed(http.StatusUnauthorized, "unauthorized", "the token is not one that this server takes")

// send sends a record if it is wanted.
func (r *recordStream) send(s *stream, x *journal.Scanned) error {
	if !view.Among(r.want.Kinds, x.Record.Kind) {
		return nil
	}
	e, err := s.world.Load(x.Record, x.Bytes)
	if err != nil {
		return err
	}
	if r.want.Cell != "" {
		if tells, err := s.world.TellsOf(e, r.want.Cell); !tells || err != nil {
			return err
		}
	}
	shown, err := r.form(e)
	if err != nil {
		return err
	}
	line, err := view.Marshal(shown)
	if err != nil {
		return err
	}
	r.sent = e.ID
	_, err = fmt.Fprintf(s.out, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, line)
	return err
}
