// Package shared opens worlds whose journals lie in a store that several machines use. What lies of
// them in directories here is a copy, which may be deleted at any moment. It is a part of worldctl,
// and not an API.
package shared

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// copiesDir holds the copies of worlds in the user's cache.
const copiesDir = "worldkernel"

// Options are how the worlds of a store are used. The zero value is good.
type Options struct {
	Copies string // the directory that copies lie in; empty: one in the user's cache
	Take   bool   // take worlds over from owners that live
	// Asks is told which node is asked to give up a world that is to move, which may take a while; nil: nobody is.
	Asks func(node string)
	// Passphrase is that of the keyrings, of which the nodes of a store make the key that proves where they
	// answer; nil: this one proves nothing, and believes no other.
	Passphrase func() ([]byte, error)

	Node         string // see pglog.Options, as all that follows
	URL, Version string
	Lease        time.Duration
	Connections  int32
}

// Store is a store of worlds. It is safe for concurrent use.
type Store struct {
	*pglog.Store

	where   string // see pglog.Where
	copies  string
	take    bool
	asks    func(node string)
	sealing *local.Sealing
}

// Open opens the store on PostgreSQL that a URL leads to; see pglog.Open.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	if o.Copies == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		o.Copies = filepath.Join(cache, copiesDir)
	}
	copies, err := filepath.Abs(o.Copies) // others than this process may use them
	if err != nil {
		return nil, err
	}
	where, err := pglog.Where(url)
	if err != nil {
		return nil, err
	}
	s, err := pglog.Open(ctx, url, pglog.Options{
		Node: o.Node, URL: o.URL, Version: o.Version, Lease: o.Lease, Connections: o.Connections, Key: o.nodesKey(),
	})
	if err != nil {
		return nil, err
	}
	return &Store{s, where, copies, o.Take, o.Asks, local.NewSealing(s.ID())}, nil
}

// nodesKey makes the key of a store's nodes.
func (o *Options) nodesKey() func(store string) ([]byte, error) {
	if o.Passphrase == nil {
		return nil
	}
	return func(store string) ([]byte, error) {
		passphrase, err := o.Passphrase()
		if err != nil {
			return nil, err
		}
		return local.NewSealing(store).KeyFor("worldkernel nodes 1", passphrase), nil
	}
}

// World is where a world of a store lies, for package local: in a directory, which is its copy, and
// in a log; and what its keyring shares with others of the store.
type World struct {
	Dir     string
	Log     func(key []byte) (journal.Log, error)
	Sealing *local.Sealing
}

// In are the options with which the world is opened in its Dir.
func (w World) In(opts local.Options) local.Options {
	opts.Log, opts.Sealing = w.Log, w.Sealing
	return opts
}

// World says where a world lies, without asking whether it is there.
func (s *Store) World(id string) (World, error) {
	if err := local.CheckID(id); err != nil {
		return World{}, err
	}
	return World{
		Dir: filepath.Join(s.copies, s.ID(), id),
		Log: func(key []byte) (journal.Log, error) {
			return s.Store.World(id, pglog.Claim{Key: key, Take: s.take}), nil
		},
		Sealing: s.sealing,
	}, nil
}

// MoveIn moves the world of a directory into the store, also in the place of a copy that is lost, which may
// be empty; see local.MoveInto.
func (s *Store) MoveIn(ctx context.Context, dir string, opts local.Options, lost string) (*local.Moved, error) {
	to := s.asOtherStore(pglog.Claim{Take: s.take, Made: true})
	to.Lost = lost
	return local.MoveInto(ctx, dir, opts, to)
}

// MoveOut moves a world of the store into another directory; see local.MoveOut. A node that has it is asked to give it up.
func (s *Store) MoveOut(ctx context.Context, id, to string, opts local.Options) (*local.Moved, error) {
	return s.moveOut(ctx, id, to, "", opts)
}

// moveOut is MoveOut into a directory that is on its way to another place; empty: it is for good.
func (s *Store) moveOut(ctx context.Context, id, to, onward string, opts local.Options) (*local.Moved, error) {
	w, err := s.World(id)
	if err != nil {
		return nil, err
	}
	from := s.asOtherStore(pglog.Claim{Take: s.take})
	from.Onward = onward
	return s.withHandover(ctx, id, func() (*local.Moved, error) {
		return local.MoveOut(ctx, id, w.Dir, to, opts, from)
	})
}

// Restore makes a world in the store of a backup in a directory: the world with the id that it has
// there, where the store has none of that id, and none has moved away. Another id than that is
// refused, but an empty one. See local.Restore; a crash leaves the world, or none.
func (s *Store) Restore(ctx context.Context, backup, id string, opts local.Options) (_ *local.BackedUp, err error) {
	aside, remove, err := opts.MakeTemporary("world-restored-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	dir := filepath.Join(aside, "world")
	done, err := local.Restore(backup, dir, opts)
	if err != nil {
		return nil, err
	}
	if id != "" && done.ID != id {
		return nil, &OtherWorldError{Backup: backup, ID: done.ID}
	}
	_, err = s.MoveIn(ctx, dir, opts, "")
	if stale := (*local.StaleError)(nil); errors.As(err, &stale) { // a backup is never the copy that the store gave away
		return nil, &local.MovedError{Place: "world " + done.ID + " of store " + s.ID(), Where: stale.Left.To}
	}
	if err != nil {
		return nil, err
	}
	done.Dir, done.Linked = "", false
	return done, nil
}

// OtherWorldError says that a backup is of another world than the one that is to be restored.
type OtherWorldError struct {
	Backup string
	ID     string // of the world that it is of
}

func (e *OtherWorldError) Error() string {
	return e.Backup + ": the backup is of world " + e.ID + ", which keeps its id"
}

// MoveTo moves a world into another store, by way of a directory beside the copies of this one: out of here,
// and in there. At no moment is it in two places, or in none: whatever interrupts it, the same again, on this
// machine, brings it to its end.
func (s *Store) MoveTo(ctx context.Context, id string, to *Store, opts local.Options) (*local.Moved, error) {
	if _, err := s.World(id); err != nil {
		return nil, err
	}
	if s.ID() == to.ID() {
		return nil, fmt.Errorf("%w %s: it is there already", errSameStore, s.ID())
	}
	dir := filepath.Join(s.copies, movingDir, s.ID(), id)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	home := s.Store.World(id, pglog.Claim{})
	is, err := home.Stands(ctx)
	if err != nil {
		return nil, err
	}
	leaves, err := local.Leaves(dir, is)
	if err == nil && !leaves { // else it is here, or there
		_, err = s.moveOut(ctx, id, dir, to.told(), opts)
	}
	if err != nil {
		return nil, err
	}
	done, err := to.MoveIn(ctx, dir, opts, "")
	if err != nil {
		return nil, err
	}
	done.From = "store " + s.ID()
	if is, err = home.Stands(ctx); err == nil && is.State == journal.Moved {
		err = home.Forward(ctx, is.Left.To, local.Renamed(is.Left, to.asOtherStore(pglog.Claim{}), id))
	}
	return done, errors.Join(err, local.Forget(dir))
}

// told is the store as a person is told.
func (s *Store) told() string { return "store " + s.ID() + " at " + s.where }

// movingDir has worlds that are on their way to another store.
const movingDir = "moving"

var errSameStore = errors.New("the world is to move into the store that it lies in")

// asOtherStore is the store to a world that moves.
func (s *Store) asOtherStore(c pglog.Claim) local.OtherStore {
	return local.OtherStore{Where: "store " + s.ID(), Sealing: s.sealing, Log: func(id string, key []byte) (journal.Movable, error) {
		claim := c
		claim.Key = key
		return s.Store.World(id, claim), nil
	}}
}

// Create makes a world of a world.yaml that was read; opts has the passphrase that its keyring is
// sealed with. After a crash or an error it is not there, and may be made again: what is left of it
// is nobody's once this process has been gone for as long as its lease.
func (s *Store) Create(ctx context.Context, id string, loaded *source.Loaded, b local.CreateOptions, opts local.Options) (err error) {
	if err := local.CheckID(id); err != nil {
		return err
	}
	dir, remove, err := opts.MakeTemporary("world-made-") // a copy that nobody needs
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	b.ID, b.Sealed = id, true
	opts.Sealing = s.sealing
	opts.Log = func(key []byte) (journal.Log, error) {
		if err := s.Make(ctx, id, key, journal.Making{}); err != nil {
			return nil, err
		}
		return s.Store.World(id, pglog.Claim{Key: key, Made: true}), nil
	}
	return local.CreateOf(loaded, dir, b, opts)
}
