package node

import (
	"context"
	"errors"
	"time"

	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/serve/api"
)

// stands is how a world stands in a store: who owns it, or why it is not there to be asked.
type stands struct {
	pglog.Owner
	gone pglog.State // pglog.NoWorld, WorldMade or WorldMoved; empty: it is there. To says where it has moved
}

// find asks the store about a world. The error is an *api.NotNowError.
func (n *Node) find(ctx context.Context, id string) (stands, error) {
	o, err := n.Store.Owner(ctx, id)
	var refused *pglog.RefusedError
	switch {
	case errors.As(err, &refused) && (refused.State == pglog.NoWorld || refused.State == pglog.WorldMade || refused.State == pglog.WorldMoved):
		return stands{o, refused.State}, nil
	case err != nil:
		return stands{}, &api.NotNowError{Why: "the store does not answer", Err: err}
	}
	return stands{Owner: o}, nil
}

// answers returns where the process is that serves a world of the store: "" here, where it is opened
// if nobody owns it who lives, unless another node is to have it.
func (n *Node) answers(ctx context.Context, id string, o pglog.Owner) (url string, err error) {
	switch {
	case o.Live && !o.Here && o.Unproven != "":
		n.doubt(o.Node, o.Unproven)
		return "", &api.NotNowError{Why: "node " + o.Node + " has the world, and nothing is sent to the address that the store has of it: " + o.Unproven}
	case o.Live && !o.Here && o.URL == "":
		return "", &api.NotNowError{Why: "node " + o.Node + " has the world, and no address at which others reach it: worldctl serve --advertise"}
	case o.Live && !o.Here:
		return o.URL, nil
	case n.serves(id):
		return "", nil
	case o.Wanted && !o.Here:
		return "", errMoving("another node is about to have the world")
	}
	return "", n.bring(ctx, id)
}

// serves reports whether a world of the store is open here, and answers whoever asks.
func (n *Node) serves(id string) bool { return n.holds(id) != nil && n.Service.Serves(id) }

// holds returns the world of the store that is open here; nil: it is not.
func (n *Node) holds(id string) *api.Running {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.has[id]
}

// list returns at most so many worlds of the store after an id; see api.Stores.
func (n *Node) list(ctx context.Context, after string, only []string, most int) ([]api.Stored, error) {
	var out []api.Stored
	for {
		rows, err := n.Store.ListAfter(ctx, after, only, most-len(out))
		if err != nil {
			return nil, &api.NotNowError{Why: "the store does not answer", Err: err}
		}
		for i := range rows {
			w := &rows[i]
			if after = w.ID; w.State == "live" { // and is neither still being made nor moved away
				out = append(out, api.Stored{ID: w.ID, Head: w.Head, Owner: w.Node, Due: due(w), Owed: w.Owed})
			}
		}
		if len(rows) == 0 || len(out) == most {
			return out, nil
		}
	}
}

// due says when a world goes on by itself that nobody owns; "": when it is asked for.
func due(w *pglog.Row) string {
	switch {
	case w.Due == nil:
		return ""
	case w.Due.IsZero():
		return "now"
	}
	return w.Due.UTC().Format(time.RFC3339)
}

func errMoving(why string) error { return &api.NotNowError{Why: why} }

// bring has the world opened here, and waits for that, or for what is under way with it.
func (n *Node) bring(ctx context.Context, id string) error {
	done, err := n.beginOpening(id)
	if err != nil {
		return err
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	if !n.serves(id) {
		return errMoving("the world is being opened")
	}
	return nil
}

// beginOpening has a world opened, and returns what is closed when that, or what is under way with it, is done.
func (n *Node) beginOpening(id string) (done <-chan struct{}, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.ctx == nil || n.closed:
		return nil, errMoving("this node is starting or ending")
	case n.fails.why(id) != "":
		return nil, &api.NotNowError{Why: "the world cannot go on, and rests in this process: " + n.fails.why(id), Rests: true}
	case n.under[id] == nil && n.has[id] != nil:
		return nil, errMoving("the world has stopped in this process")
	case n.under[id] == nil && n.free() <= 0:
		return nil, errMoving("this node has as many worlds open as it has room for")
	}
	return n.doLocked(n.ctx, id, func() { n.open(n.ctx, id) }), nil
}
