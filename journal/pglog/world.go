package pglog

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/worldkernel/worldkernel/journal"
)

const (
	maxWorldID = 128     // bytes
	minKey     = 16      // bytes
	listPage   = 500     // worlds
	maxText    = 8 << 10 // bytes of a place that a world moved to, and of names of nodes; as sqlFault has it
)

// Claim is how somebody asks for a world.
type Claim struct {
	Key  []byte // of the world's seal, 16 bytes or more; who only reads needs none, and is not told of a wrong seal then
	Take bool   // take it over from an owner that lives
	Made bool   // also one that is being made: by Make
}

// World is one world of a store. It implements journal.Log: Own is called once, Append by one
// goroutine, and everything else by any.
type World struct {
	store *Store
	id    string
	claim Claim

	keeping sync.Mutex // held by who changes what is kept beside records

	mu     sync.Mutex   // guards what follows
	wid    int64        // 0: not looked up yet
	token  pgtype.UUID  // not Valid: nothing is owned
	epoch  uint64       // of token
	tail   journal.Head // after what was given to Append
	failed error        // what every append fails with
	lane   lane
}

var _ journal.Movable = (*World)(nil)

// World returns a world of the store. Nothing is asked of the server before its first method.
func (s *Store) World(id string, c Claim) *World { return &World{store: s, id: id, claim: c} }

func validID(id string) bool {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./", r)
	}
	return id != "" && len(id) <= maxWorldID && !strings.ContainsFunc(id, strange) && strings.Trim(id, "-_./") == id
}

// Row is what List says of a world.
type Row struct {
	ID    string
	State string // "live", "made": not yet, "moved": not any more
	Epoch uint64
	Head  journal.Head
	Due   *time.Time // when it goes on by itself; nil: when somebody asks for it, or it is owned
	Node  string     // its owner; empty: it has none
	Alive bool       // that owner is
	Owed  int        // attempts of effects that have begun, and whose results are not there
	To    string     // it was moved; empty: it was not
	Fault error      // a *DamageError: the row cannot be so, State is "damaged", and nothing else of it is known
}

// ListAfter returns at most so many worlds after an id, by their ids. Only names those that it is
// about; nil: all.
func (s *Store) ListAfter(ctx context.Context, after string, only []string, most int) ([]Row, error) {
	return all(ctx, s, sqlList, []any{after, most, only}, func(r pgx.Rows, w *Row) error {
		var due pgtype.Timestamptz
		var root []byte
		var fault string
		err := r.Scan(&w.ID, &w.State, &w.Epoch, &w.Head.ID, &root, &due, &w.Node, &w.Alive, &w.Owed, &w.To, &fault)
		copy(w.Head.Root[:], root)
		if fault != "" {
			w.Fault = faultOf(w.ID, fault)
		}
		if due.Valid {
			w.Due = &due.Time // of one at once, the zero time
		}
		return inWorld(w.ID, unreadable(err))
	})
}

// List yields the worlds of the store by their ids. An error ends the sequence.
func (s *Store) List(ctx context.Context) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for after, more := "", true; more; {
			page, err := s.ListAfter(ctx, after, nil, listPage)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, w := range page {
				if !yield(w, nil) {
					return
				}
				after = w.ID
			}
			more = len(page) == listPage
		}
	}
}

// stand is what the row of a world says.
type stand struct {
	wid    int64
	state  journal.State
	token  pgtype.UUID
	head   journal.Head
	epoch  uint64 // of a claim
	sealed uint64 // epoch
	seal   []byte
	node   string
	alive  bool
	gone   bool // it was moved away, and what is remembered of that holds
	left   journal.Left
	copies string
}

// readStand reads how the world stands, and remembers its number. A world that is not there, or not
// to be read, is refused.
func (w *World) readStand(ctx context.Context) (stand, error) {
	var v stand
	err := w.insist(ctx, func(ctx context.Context) error {
		return w.store.row(ctx, sqlWorld, []any{w.id}, &v.wid, &v.state, &v.token, &v.head.ID, &fixed{v.head.Root[:]}, &v.sealed, &v.seal, &v.node, &v.alive,
			&v.gone, &v.left.Head.ID, &fixed{v.left.Head.Root[:]}, &v.left.To, &v.copies)
	})
	if !v.gone {
		v.left = journal.Left{}
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return v, w.faultOr(ctx, refuse(NoWorld, "%s", w.id))
	case err != nil:
		return v, err
	case v.state == journal.Made && !w.claim.Made && v.gone:
		return v, refuse(WorldMade, "%s, again: it had moved to %s", w.id, v.left.To)
	case v.state == journal.Made && !w.claim.Made:
		return v, refuse(WorldMade, "%s", w.id)
	case v.state == journal.Moved:
		return v, refuse(WorldMoved, "%s, to %s", w.id, v.left.To)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wid = v.wid
	return v, nil
}

// faultOr says why the row of a world is not to be had, or else why there is none.
func (w *World) faultOr(ctx context.Context, none error) error {
	var fault string
	err := w.insist(ctx, func(ctx context.Context) error { return w.store.row(ctx, sqlWorldFault, []any{w.id}, &fault) })
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return none
	case err == nil && fault != "":
		return faultOf(w.id, fault)
	case err == nil:
		return none // it has come meanwhile
	}
	return err
}

// number returns the world's number in the store's tables.
func (w *World) number(ctx context.Context) (int64, error) {
	w.mu.Lock()
	wid := w.wid
	w.mu.Unlock()
	if wid != 0 {
		return wid, nil
	}
	v, err := w.readStand(ctx)
	return v.wid, err
}

// Own implements journal.Log. A world that another process owns, which is alive, is refused as
// Owned unless the claim says to take it, as is whatever else the world may not be owned in. What
// it returns was read after the claim had been committed: nothing of the owner before can come
// after it.
func (w *World) Own(ctx context.Context) (journal.Owned, error) {
	s := w.store
	if len(w.claim.Key) < minKey {
		return journal.Owned{}, refuse(NoKey, "world %s", w.id)
	}
	if err := s.beat(ctx); err != nil {
		return journal.Owned{}, err
	}
	if v, ok := s.claimed(w.id); ok {
		return w.own(ctx, v)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Patience)
	defer cancel()
	for pauses := newPauses(); ; {
		v, err := w.readStand(ctx)
		if err == nil {
			err = w.checkSeal(v) // before anybody else loses the world
		}
		if err != nil {
			return journal.Owned{}, err
		}
		switch owned, err := w.takeOver(ctx, v); {
		case !errors.Is(err, pgx.ErrNoRows):
			return owned, err
		case v.alive && !w.claim.Take, !pause(ctx, pauses):
			return journal.Owned{}, refuse(Owned, "world %s, node %s", w.id, v.node)
		}
	}
}

// takeOver makes this process the owner of a world that stands as it was looked at; pgx.ErrNoRows
// says that it does not any more, or that its owner lives.
func (w *World) takeOver(ctx context.Context, v stand) (journal.Owned, error) {
	s := w.store
	token := newUUID()
	args := []any{v.wid, token, s.opts.Node, s.run, v.token, w.claim.Take, w.claim.Made}
	err := w.insist(ctx, func(ctx context.Context) error {
		return s.row(ctx, sqlClaim, args, &v.epoch, &v.head.ID, &fixed{v.head.Root[:]}, &v.sealed, &v.seal)
	})
	if err != nil {
		return journal.Owned{}, err
	}
	v.token = token
	if v.node != "" && !v.alive {
		s.stats.count(func(n *Stats) { n.Takeovers++ })
	}
	return w.own(ctx, v)
}

// own goes on from a claim that was committed.
func (w *World) own(ctx context.Context, v stand) (journal.Owned, error) {
	w.mu.Lock()
	w.wid, w.token, w.epoch, w.tail = v.wid, v.token, v.epoch, v.head
	w.mu.Unlock()
	if err := w.checkSeal(v); err != nil {
		return journal.Owned{}, errors.Join(err, w.Release(ctx, journal.WakeNow))
	}
	return journal.Owned{Head: v.head, Epoch: v.epoch}, nil
}

// Release implements journal.Log. Who has been fenced has nothing to give up: ErrFenced.
func (w *World) Release(ctx context.Context, wake journal.Wake) error {
	lost := false // an answer was
	wid, token, err := w.owner()
	if err != nil {
		return err
	}
	err = w.insist(ctx, func(ctx context.Context) error {
		err := w.store.row(ctx, sqlRelease, []any{wid, token, dueOf(wake)}, &wid)
		if errors.Is(err, pgx.ErrNoRows) && lost {
			return nil // that one had done it, or somebody else has the world: it is not ours either way
		}
		lost = true
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = journal.ErrFenced
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil && err == nil {
		w.failed = journal.ErrFenced
	}
	return err
}

// dueOf is a time in microseconds; nil: never.
func dueOf(wake journal.Wake) *int64 {
	if wake == journal.WakeNever {
		return nil
	}
	due := time.Duration(wake).Microseconds()
	return &due
}

// errNotOwned is a fault of the caller.
var errNotOwned = errors.New("pglog: the world is not owned: call Own first")

// owner returns what shows the server whose the world is.
func (w *World) owner() (int64, pgtype.UUID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.token.Valid {
		return 0, w.token, errNotOwned
	}
	return w.wid, w.token, nil
}

// seal is what only who has the key can write beside a head.
func (w *World) seal(epoch uint64, h journal.Head) []byte {
	mac := hmac.New(sha256.New, w.claim.Key)
	_, _ = fmt.Fprintf(mac, "worldkernel seal 1\x00%s\x00", w.id) // a hash takes all
	b := binary.BigEndian.AppendUint64(nil, epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(h.ID))
	mac.Write(append(b, h.Root[:]...))
	return mac.Sum(nil)
}

func (w *World) checkSeal(v stand) error {
	if !hmac.Equal(v.seal, w.seal(v.sealed, v.head)) {
		return refuse(WrongSeal, "world %s", w.id)
	}
	return nil
}
