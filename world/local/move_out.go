package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
)

// MoveOut moves the world of an id out of a log, of which a directory has the rest, into another
// directory, which is empty or not there. It is made there as one that nothing opens, and compared;
// then it ends in the log, and then it lives in the directory: at no moment in both. Whatever
// interrupts it, the same again brings it to its end. What was permitted and not begun may have been
// made, as the directory knows.
func MoveOut(ctx context.Context, id, dir, to string, opts Options, from OtherStore) (*Moved, error) {
	m, err := readMark(to)
	if err != nil {
		return nil, err
	}
	log, err := from.Log(id, nil)
	if err != nil {
		return nil, err
	}
	is, err := log.Stands(ctx)
	if err != nil {
		return nil, err
	}
	at, err := placeOf(to)
	if err != nil {
		return nil, err
	}
	if from.Onward != "" {
		at = onward + from.Onward + ", in " + at
	}
	where := from.world(id)
	ours := m.where == where && m.has(is.Left)
	done := &Moved{ID: id, Head: is.Head, From: from.Where, To: to}
	switch {
	case is.State == journal.Moved && ours && m.way == markFrom:
		return done, m.arrived(to)
	case is.State == journal.Moved && ours && m.way == markHere && holdsWorld(to):
		return done, nil
	case is.State == journal.Moved:
		return nil, &MovedError{Place: where, Where: is.Left.To}
	case is.State == journal.Live && m.way == markFrom && m.where == where: // else that may be all that there is
		if err := discard(to); err != nil {
			return nil, err
		}
	}
	copies := append(strings.Fields(is.Copies), fmt.Sprintf("%x", randomBytes(copyRandom)))
	copies = copies[max(0, len(copies)-maxCopies):]
	m = mark{markFrom, where, strings.Join(copies, " ")}
	opts.Log = func(key []byte) (journal.Log, error) { return from.Log(id, key) }
	lw, err := own(dir, opts)
	if err != nil {
		return nil, err
	}
	var made *BackedUp
	if attempts, ok := lw.store.Log().(host.Attempts); ok { // the directory does not know who goes on with what
		err = host.AwaitLeases(ctx, attempts)
	}
	if err == nil {
		made, err = lw.copyTo(to, func(s *store.Store) error { return sameJournal(lw.store, s) }, m.put)
	}
	if err == nil {
		err = lw.store.Log().(journal.Movable).MoveAway(ctx, at+copyMark+copies[len(copies)-1])
	}
	if err = errors.Join(err, lw.abandon()); err != nil {
		return nil, err
	}
	done.Head = made.Head
	return done, m.arrived(to)
}

// placeOf says where a directory is to who is on another machine.
func placeOf(dir string) (string, error) {
	machine, err := os.Hostname()
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	return machine + ":" + dir, err
}

// discard takes away a directory that was made and never lived: at once for who looks.
func discard(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	up := filepath.Dir(dir)
	away, err := os.MkdirTemp(up, "."+filepath.Base(dir)+makingDir)
	if err == nil {
		err = os.Remove(away) // os.Rename replaces none
	}
	if err == nil {
		err = os.Rename(dir, away)
	}
	if err == nil {
		err = file.SyncDir(up)
	}
	return errors.Join(err, os.RemoveAll(away))
}
