package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// ForkOptions say what a fork gets. The zero value makes a fork of all there is,
// with a random id, whose effects wait for persons.
type ForkOptions struct {
	ID      string              // 1 to 64 letters, digits, '-', '_' or '.', and neither '-' nor '.' first; empty: a random one
	At      journal.Seq         // the last record that both have; 0: the last there is
	Effects journal.ForkEffects // empty: journal.ForkRecorded with Live, else journal.ForkHold
	Live    manifest.Live       // the kinds of effects that may be performed; with journal.ForkLive some are named
	Actor   string              // who forks, for the fork's journal
	Amend   world.Amendment     // the fork's rules; nil: those of its parent
	Seed    *uint64             // where its randomness comes from; nil: as its parent's
}

// Forked is the result of Fork.
type Forked struct {
	ID        string              `json:"world_id"`
	Parent    string              `json:"parent"` // the parent's id
	At        journal.Seq         `json:"at"`     // the last record that both have
	ChainRoot journal.Hash        `json:"chain_root"`
	Effects   journal.ForkEffects `json:"effects"`
	Live      []string            `json:"live,omitempty"` // the kinds that may be performed, by name
	Seed      *uint64             `json:"seed,omitempty"` // nil: its parent's
	Dir       string              `json:"dir,omitempty"`  // empty: it lies beside its parent, in a store
	Linked    bool                `json:"linked"`         // the records and images of both are one on the disk, by hard links
}

func (f *ForkOptions) effects() journal.ForkEffects {
	if f.Effects == "" && len(f.Live) > 0 {
		return journal.ForkRecorded
	}
	return cmp.Or(f.Effects, journal.ForkHold)
}

// Fork makes another world in a directory that is empty or not there: with the
// same past, but an id and receipt keys of its own. It begins where no tick is
// open, at the last such moment that is not after f.At. The parent does not
// change; other calls wait meanwhile.
//
// The fork gets the files in the world's directory too: the regular ones, but for
// .world and for directories that hold worlds. So it does not get the secrets;
// and if the world's keyring is sealed, its own is, with the same passphrase. A
// crash leaves the fork or no directory.
//
// Rules that f.Amend makes have to be ready within Options.Bounds and ctx: see world.Fork.
func (lw *World) Fork(ctx context.Context, dir string, f ForkOptions) (*Forked, error) {
	return lw.forkBy(f, func(keys ring, at journal.Seq, f ForkOptions) (done *Forked, err error) {
		err = whole(dir, lw.dir, func(making string) error {
			done, err = lw.forkTo(ctx, making, keys, at, f)
			return err
		})
		if err == nil {
			done.Dir = dir
		}
		return done, err
	})
}

// forkBy finds where a fork begins, and has it made there.
func (lw *World) forkBy(f ForkOptions, makeAt func(ring, journal.Seq, ForkOptions) (*Forked, error)) (*Forked, error) {
	if f.Effects = f.effects(); !f.Effects.Known() {
		return nil, &world.InputError{Err: world.ErrForkEffects, Field: "effects", Rule: fmt.Sprintf("%q", f.Effects)}
	}
	if f.Effects == journal.ForkLive && f.Live == nil {
		return nil, &world.InputError{Err: world.ErrForkLive, Field: "live", Rule: "name the kinds of effects that are to be live; others wait for a person"}
	}
	lw.still.Lock()
	defer lw.still.Unlock()
	lw.mu.Lock()
	defer lw.mu.Unlock()
	keys, err := CreateOptions{ID: f.ID}.keyring(lw.opts)
	if err != nil {
		return nil, err
	}
	keys.passphrase = lw.passphrase
	if id := lw.keys.World(); keys.keys.World() == id {
		return nil, &world.InputError{Err: world.ErrSameWorld, Field: "id", Rule: id}
	}
	place, err := lw.boundary(f.At)
	if err != nil {
		return nil, err
	}
	// A fork of all there is opens with this image. Without it, it would first have
	// to handle everything again that has come since the last one.
	if err := lw.w.Checkpoint(); err != nil {
		return nil, err
	}
	done, err := makeAt(keys, place.at, f)
	var refused *forkError
	if errors.As(err, &refused) && place.before > 0 {
		done, err = makeAt(keys, place.before, f)
	}
	if errors.As(err, &refused) {
		err = refused.err
	}
	if err != nil {
		return nil, err
	}
	return done, nil
}

// forkError says why the kernel does not fork there.
type forkError struct{ err error }

func (r *forkError) Error() string { return r.err.Error() }
func (r *forkError) Unwrap() error { return r.err }

// forkTo makes all of a fork in a directory that nobody else knows yet.
func (lw *World) forkTo(ctx context.Context, making string, keys ring, at journal.Seq, f ForkOptions) (done *Forked, err error) {
	hidden := filepath.Join(making, hiddenDir)
	if err := os.Mkdir(hidden, 0o700); err != nil {
		return nil, err
	}
	if err := writeKeyring(filepath.Join(hidden, keyringFile), keys); err != nil {
		return nil, err
	}
	copied, err := lw.copyStore(hidden, keys, at, func(s *store.Store) (err error) {
		f.Live, err = lw.forkIn(ctx, s, hidden, keys, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	if f.Effects == journal.ForkRecorded {
		if err := lw.writeRecorded(hidden, &f); err != nil {
			return nil, err
		}
	}
	if err := copyFiles(making, lw.dir); err != nil {
		return nil, err
	}
	return lw.forked(keys, copied, f), nil
}

// forkIn makes the fork of a copy of what this world has, and returns the kinds of effects
// that may be performed in it.
func (lw *World) forkIn(ctx context.Context, s *store.Store, hidden string, keys ring, f ForkOptions) ([]string, error) {
	fork := World{dir: filepath.Dir(hidden), hidden: hidden, store: s, keys: keys.keys, opts: lw.opts}
	b := journal.Forked{World: keys.keys.World(), Effects: f.Effects, Live: f.Live, Actor: f.Actor, Seed: f.Seed}
	if err := world.Fork(ctx, fork.config(), &b, f.Amend); err != nil {
		return nil, &forkError{err}
	}
	return b.Live, nil
}

func (lw *World) forked(keys ring, copied store.Copied, f ForkOptions) *Forked {
	return &Forked{
		ID: keys.keys.World(), Parent: lw.keys.World(), At: copied.Head.ID, ChainRoot: copied.Head.Root,
		Effects: f.Effects, Live: f.Live, Seed: f.Seed, Linked: copied.Linked,
	}
}

// gather reads all that belongs to the records up to one, where the journal lies in a log: then the
// copy has it.
func (lw *World) gather(at journal.Seq) error {
	if lw.store.Log() == nil {
		return nil
	}
	for s, err := range lw.store.Scan(0) {
		if err = errors.Join(err, s.Err); err != nil {
			return err
		}
		rec := s.Record
		if err := rec.Load(lw.store); err != nil && !errors.Is(err, journal.ErrRedacted) {
			return err
		}
		if _, err := blobsOf(lw.store, &rec); err != nil {
			return err
		}
		if s.ID == at {
			break
		}
	}
	return nil
}

// copyStore copies the store up to a record to another hidden directory, and lets
// use use the copy.
func (lw *World) copyStore(hidden string, keys ring, at journal.Seq, use func(*store.Store) error) (store.Copied, error) {
	var copied store.Copied
	if err := lw.gather(at); err != nil {
		return copied, err
	}
	s, err := openStore(hidden, keys.keys, lw.opts.inDirectory(), func(dir string, opts store.Options) (*store.Store, error) {
		s, done, err := lw.store.CopyTo(dir, at, opts)
		copied = done
		return s, err
	})
	if err != nil {
		return copied, err
	}
	return copied, errors.Join(use(s), s.Close())
}

// boundary is a moment to fork at.
type boundary struct {
	at     journal.Seq // no tick is open there, as far as the journal tells
	before journal.Seq // one of which that is certain; 0: at is, or there is none
}

// boundary finds the last moment that is not after a record (0: the head) at
// which no tick is open.
func (lw *World) boundary(at journal.Seq) (boundary, error) {
	if err := lw.w.Sync(); err != nil { // else the store may get a record meanwhile
		return boundary{}, err
	}
	end := lw.store.Head().ID
	at = cmp.Or(at, end)
	if at > end {
		return boundary{}, fmt.Errorf("record #%d of %d: %w", at, end, journal.ErrNotFound)
	}
	moment := &lw.w.Moment
	if at == end {
		if err := lw.w.Checkpoint(); err != nil { // so that the fork need not read what led here again
			return boundary{}, err
		}
	} else {
		next, err := lw.kindOf(at + 1)
		switch {
		case err != nil:
			return boundary{}, err
		case opens(next):
			return boundary{at: at}, nil
		case !next.Input():
			before, err := lw.opened(at)
			return boundary{at: before}, err
		}
		if moment, err = lw.At(at); err != nil {
			return boundary{}, err
		}
	}
	before, err := lw.opened(at)
	if err != nil {
		return boundary{}, err
	}
	// What is answered within the tick is not over before its answer.
	for _, p := range moment.InFlight() {
		if lw.host != nil && !lw.host.Live(&p.Intent) {
			return boundary{at: before}, nil
		}
	}
	return boundary{at: at, before: before}, nil
}

// opens reports whether the records of a kind come only where no tick is open: of
// the inputs all but what comes of effects.
func opens(kind journal.Kind) bool {
	switch kind {
	case journal.KindFinished, journal.KindExpired, journal.KindDue, journal.KindLate:
		return false
	default:
		return kind.Input()
	}
}

// opened returns the record before the last that opens, up to one; 0 where that is
// the first.
func (lw *World) opened(at journal.Seq) (journal.Seq, error) {
	for ; at > 0; at-- {
		kind, err := lw.kindOf(at)
		if err != nil {
			return 0, err
		}
		if opens(kind) {
			return at - 1, nil
		}
	}
	return 0, nil
}

func (lw *World) kindOf(id journal.Seq) (journal.Kind, error) {
	rec, err := journal.Read(lw.store, id)
	return rec.Kind, err
}

// ErrNoRecording says that the world is not there whose recordings are to answer
// effects, as those of a fork's parent do.
var ErrNoRecording = errors.New("the world whose recordings answer the effects is not there")

// pastDir is where a fork has the world whose recordings answer its effects if that lies in a
// log: whoever opens the fork need not have the log.
const pastDir = "past"

// IsPast reports whether a directory is that of a fork: the world there goes on elsewhere.
func IsPast(dir string) bool {
	return filepath.Base(dir) == pastDir && filepath.Base(filepath.Dir(dir)) == hiddenDir
}

// writeRecorded notes under hidden whose recordings answer the effects of a fork, and how
// far they go where what is not in them is performed, of which kinds.
func (lw *World) writeRecorded(hidden string, f *ForkOptions) error {
	parent, err := pastDir, error(nil)
	if lw.store.Log() == nil {
		parent, err = filepath.Abs(lw.dir)
	} else {
		_, err = lw.copyTo(filepath.Join(hidden, pastDir), func(*store.Store) error { return nil }, keepPrivate)
	}
	if err != nil {
		return err
	}
	err = file.WriteNew(filepath.Join(hidden, recordedFile), []byte(parent+"\n"), 0o600)
	if err == nil && len(f.Live) > 0 {
		lines := append([]string{strconv.FormatUint(uint64(lw.store.Head().ID), 10)}, f.Live...)
		err = file.WriteNew(filepath.Join(hidden, liveFile), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	}
	return cmp.Or(err, file.SyncDir(hidden))
}

// readRecorded returns the directory of the world whose recordings answer the effects of
// the one under hidden, empty where the outside does, and up to which of its records what
// it has asked for is not performed, 0: nothing is; and of which kinds the rest is.
func readRecorded(hidden string) (dir string, asked journal.Seq, live manifest.Live, err error) {
	data, err := file.ReadRegular(filepath.Join(hidden, recordedFile), maxNoteBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, nil, nil
	}
	if err != nil {
		return "", 0, nil, err
	}
	if dir = string(bytes.TrimSuffix(data, []byte("\n"))); dir == pastDir {
		if dir, err = filepath.Abs(filepath.Join(hidden, pastDir)); err != nil {
			return "", 0, nil, err
		}
	}
	path := filepath.Join(hidden, liveFile)
	if data, err = file.ReadRegular(path, maxNoteBytes); errors.Is(err, fs.ErrNotExist) {
		return dir, 0, nil, nil
	}
	var last uint64
	if err == nil {
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		live = lines[1:]
		last, err = strconv.ParseUint(lines[0], 10, 64)
	}
	if err == nil && last == 0 {
		err = errors.New("0 is no record")
	}
	if err != nil {
		return "", 0, nil, fmt.Errorf("%s: %w", path, err)
	}
	return dir, journal.Seq(last), live, nil
}
