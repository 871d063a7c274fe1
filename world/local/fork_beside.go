package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
)

// SiblingLog is a log in a store that has others: a fork of its world may lie beside it.
type SiblingLog interface {
	journal.Log

	// Sibling returns the log of another world of the store, to make one there; key as in Options.
	Sibling(id string, key []byte) journal.Movable
}

// Why a fork is not made beside its parent.
var (
	ErrAlone          = errors.New("the world lies in no store that a fork could lie in beside it")
	ErrRecordedBeside = errors.New("a fork whose effects are answered by what its parent recorded has that with it, in a directory")
)

// ForkBeside is Fork of a world in a store, into the same store. What both have does not leave it.
// A crash leaves the fork, or what whoever makes a world of its id finds to be gone.
func (lw *World) ForkBeside(ctx context.Context, f ForkOptions) (*Forked, error) {
	log, ok := lw.store.Log().(SiblingLog)
	if !ok {
		return nil, ErrAlone
	}
	if f.effects() == journal.ForkRecorded {
		return nil, ErrRecordedBeside
	}
	return lw.forkBy(f, func(keys ring, at journal.Seq, f ForkOptions) (*Forked, error) {
		key, err := keys.keys.AnchorKey()
		if err != nil {
			return nil, err
		}
		beside := log.Sibling(keys.keys.World(), key)
		if err := beside.Make(ctx, journal.Making{}); err != nil {
			return nil, err
		}
		return lw.forkInto(ctx, beside, keys, at, f)
	})
}

// forkInto makes all of a fork in a log in which its world is being made. Its copy goes: whoever
// opens the fork makes one.
func (lw *World) forkInto(ctx context.Context, log journal.Movable, keys ring, at journal.Seq, f ForkOptions) (done *Forked, err error) {
	aside, err := os.MkdirTemp(lw.hidden, spillPrefix) // where the tables of both can be one
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(aside)) }()
	hidden := filepath.Join(aside, hiddenDir)
	if err := os.Mkdir(hidden, 0o700); err != nil {
		return nil, err
	}
	sealed, err := keys.encode()
	if err != nil {
		return nil, err
	}
	opts := lw.opts
	opts.Copy, opts.Log = "", func([]byte) (journal.Log, error) { return log, nil }
	var copied store.Copied
	s, err := openStore(hidden, keys.keys, opts, func(dir string, opts store.Options) (s *store.Store, err error) {
		s, copied, err = lw.store.CopyTo(dir, at, opts)
		return s, err
	})
	if err != nil {
		return nil, err
	}
	if f.Live, err = lw.forkIn(ctx, s, hidden, keys, f); err == nil {
		err = publish(log, sealed)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	copied.Linked = false // nothing of it is in a directory
	return lw.forked(keys, copied, f), nil
}
