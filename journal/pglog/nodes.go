package pglog

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/worldkernel/worldkernel/journal"
)

// Node is a process that owns worlds.
type Node struct {
	Name, URL, Version string
	Lease              time.Duration // how long it is taken to be alive, if it is heard of no more; negative: it is gone
	Worlds             int           // that it owns
	Resting            []string      // worlds that cannot go on there, each with the reason
	Unproven           string        // why nothing is to be sent to URL; empty: a node that has the key gave it
}

// Alive reports whether the node is taken to be alive.
func (n *Node) Alive() bool { return n.Lease > 0 }

// Enter adds this process to the table of nodes until Close: other nodes see it before it owns a
// world. A node gives up what Mine says that others want.
func (s *Store) Enter(ctx context.Context) error {
	s.gives.Store(true)
	return s.beat(ctx)
}

// Tell has others see which worlds cannot go on in this process, a line each, from the next beat on.
func (s *Store) Tell(resting string) { s.resting.Store(&resting) }

func (s *Store) restingText() string {
	text := s.resting.Load()
	if text == nil {
		return ""
	}
	return strings.ReplaceAll(strings.ToValidUTF8(*text, "\uFFFD"), "\x00", "\uFFFD")
}

// Name is the node that this process is.
func (s *Store) Name() string { return s.opts.Node }

// Nodes returns all nodes that were heard of, by their names.
func (s *Store) Nodes(ctx context.Context) ([]Node, error) {
	return all(ctx, s, sqlNodes, nil, func(r pgx.Rows, n *Node) error {
		var left int64
		var resting string
		var at address
		err := r.Scan(&n.Name, &at.run, &at.url, &at.until, &at.seal, &n.Version, &resting, &left, &n.Worlds)
		n.URL, n.Unproven = at.url, s.unproven(n.Name, &at)
		if resting != "" {
			n.Resting = strings.Split(strings.TrimSuffix(resting, "\n"), "\n")
		}
		n.Lease = time.Duration(left) * time.Microsecond
		return err
	})
}

// Owner says who is to be asked about a world.
type Owner struct {
	Node   string // empty: nobody owns it
	Here   bool   // this process does
	Live   bool
	Gives  bool   // it is a node, and gives the world up when another wants it
	URL    string // where a node that lives answers; may be empty, and is where Unproven is not
	Wanted bool   // another node, which lives, is to have it next
	To     string // where it was moved; empty: it was not

	Unproven string // why nothing is to be sent to the address that the store has of the node
}

// Owner looks who owns a world. One that is not there, or not to be used, is refused.
func (s *Store) Owner(ctx context.Context, id string) (Owner, error) {
	var o Owner
	var state journal.State
	var at address
	err := s.insist(ctx, func(ctx context.Context) error {
		return s.row(ctx, sqlOwner, []any{id, s.run, s.opts.Node}, &state, &o.Node, &o.Here, &o.Live, &o.Gives, &at.run, &at.url, &at.until, &at.seal, &o.To, &o.Wanted)
	})
	if o.Live && !o.Here && at.url != "" {
		if o.Unproven = s.unproven(o.Node, &at); o.Unproven == "" {
			o.URL = at.url
		}
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = s.World(id, Claim{}).faultOr(ctx, refuse(NoWorld, "%s", id))
	case err != nil:
	case state == journal.Made:
		err = refuse(WorldMade, "%s", id)
	case state == journal.Moved:
		err = refuse(WorldMoved, "%s", id)
	}
	return o, err
}

// Mine is a world that this process owns.
type Mine struct {
	ID     string
	Wanted string // the node that is to have it next; empty: none
}

// Mine returns the worlds that this process owns by what the store knows, by their ids.
func (s *Store) Mine(ctx context.Context) ([]Mine, error) {
	return all(ctx, s, sqlMine, []any{s.opts.Node, s.run}, func(r pgx.Rows, m *Mine) error { return r.Scan(&m.ID, &m.Wanted) })
}

// ClaimDue claims at most so many worlds without a live owner: worlds that are due, worlds whose owner
// died, and worlds that this node wants. Those of some ids stay out of it. World.Own of each goes
// on from there; who does not want one after all lets it go. Where an answer was lost there may be
// others that it has claimed: Mine has them, too.
func (s *Store) ClaimDue(ctx context.Context, most int, but []string) (ids []string, err error) {
	return s.claimDue(ctx, most, but, false)
}

// ClaimWanted is ClaimDue for worlds that this node wants, and no others.
func (s *Store) ClaimWanted(ctx context.Context, most int, but []string) (ids []string, err error) {
	return s.claimDue(ctx, most, but, true)
}

func (s *Store) claimDue(ctx context.Context, most int, but []string, wanted bool) (ids []string, err error) {
	if err := s.beat(ctx); err != nil {
		return nil, err
	}
	if but == nil {
		but = []string{} // not NULL
	}
	token, found := newUUID(), map[string]stand{}
	err = s.insist(ctx, func(ctx context.Context) error {
		ids = nil
		clear(found)
		return s.rows(ctx, sqlClaimDue, []any{s.opts.Node, s.run, token, most, but, s.believes(), wanted}, func(r pgx.Rows) error {
			v := stand{token: token}
			var id string
			var root []byte
			var taken bool
			err := r.Scan(&id, &v.wid, &v.epoch, &v.head.ID, &root, &v.sealed, &v.seal, &taken)
			if taken {
				s.stats.count(func(n *Stats) { n.Takeovers++ })
			}
			copy(v.head.Root[:], root)
			ids, found[id] = append(ids, id), v
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, v := range found {
		s.claims[id] = v
	}
	return ids, nil
}

// claimed returns how a world stands that ClaimDue has claimed, once.
func (s *Store) claimed(id string) (stand, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.claims[id]
	delete(s.claims, id)
	return v, ok
}

// Want asks another node for a world and returns its id; empty: the other node has no world to
// spare.
func (s *Store) Want(ctx context.Context, of string) (id string, err error) {
	err = s.insist(ctx, func(ctx context.Context) error { return s.row(ctx, sqlWant, []any{s.opts.Node, of}, &id) })
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return id, err
}

// Crowd returns how many nodes are alive, and how many worlds have an owner or should have one by now.
func (s *Store) Crowd(ctx context.Context) (nodes, worlds int, err error) {
	err = s.insist(ctx, func(ctx context.Context) error { return s.row(ctx, sqlCrowd, nil, &nodes, &worlds) })
	return nodes, worlds, err
}

// Give makes a live node the next owner of a world; the present owner hands over after its effects
// under way have ended.
func (s *Store) Give(ctx context.Context, id, node string) error {
	if _, err := s.World(id, Claim{}).readStand(ctx); err != nil {
		return err
	}
	err := s.insist(ctx, func(ctx context.Context) error { return s.row(ctx, sqlGive, []any{id, node}, new(int64)) })
	if errors.Is(err, pgx.ErrNoRows) {
		return refuse(NoNode, "%s", node)
	}
	return err
}

// Ask has this process be the next owner of a world, as Give does: Owner tells when nobody has it any more.
func (s *Store) Ask(ctx context.Context, id string) error {
	if err := s.beat(ctx); err != nil {
		return err
	}
	return s.Give(ctx, id, s.opts.Node)
}

// LetGo gives up worlds that are this process' by what the store knows, and that it has not opened:
// whoever wants to may have them at once.
func (s *Store) LetGo(ctx context.Context, ids ...string) error {
	s.mu.Lock()
	for _, id := range ids {
		delete(s.claims, id)
	}
	s.mu.Unlock()
	return s.insist(ctx, func(ctx context.Context) error { return s.rows(ctx, sqlLetGo, []any{s.opts.Node, s.run, ids}, nil) })
}
