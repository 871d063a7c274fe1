package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
)

// OtherStore is where a world is moved into, or out of: some logs, a log a world.
type OtherStore struct {
	Log   func(id string, key []byte) (journal.Movable, error) // key as in Options
	Where string                                               // as a person would be told, in one line and without a password
	// Sealing is what keyrings share that lie there; nil: nothing.
	Sealing *Sealing
	// Onward is where the directory is on its way to that a world is moved out to; empty: it stays there.
	Onward string
	// Lost is the copy that a log gave away, and that is lost: a directory with another takes its place.
	Lost string
}

// world says where one of its worlds is.
func (e OtherStore) world(id string) string { return "world " + id + " of " + e.Where }

// Moved says what MoveInto or MoveOut has moved.
type Moved struct {
	ID   string       `json:"world_id"`
	Head journal.Head `json:"head"`
	From string       `json:"from"`
	To   string       `json:"to"`
}

// Why a world does not move.
var (
	ErrStale    = errors.New("this is not what the world was when it was moved out of there")
	ErrRecorded = errors.New("its effects are answered by what another world recorded, which is in a directory")
	errUnequal  = errors.New("the copy does not have the records of the world")
)

// StaleError says why a directory does not hold what a log gave away: ErrStale.
type StaleError struct {
	Dir, Why string
	Left     journal.Left // what the log remembers
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Dir, ErrStale, e.Why)
}

func (e *StaleError) Unwrap() error { return ErrStale }

// Copy is the copy that the log gave away, as in journal.Left.
func (e *StaleError) Copy() string { return copyOf(e.Left) }

// MovedError says that a directory or a log does not hold the world any more, or not yet.
type MovedError struct {
	Place string // the directory or log
	Where string // it is, or comes from
	Here  bool   // it is being moved into the directory
}

func (e *MovedError) Error() string {
	if e.Here {
		return fmt.Sprintf("%s: the world is being moved here from %s, or was when that was interrupted: move it again", e.Place, e.Where)
	}
	return fmt.Sprintf("%s: the world has moved to %s: open it there", e.Place, e.Where)
}

// mark is what a directory is marked with that holds no world any more, or not yet, or one that was moved here.
// Its file has a word and the other place in a line, and the copies in another.
type mark struct {
	way    string // one of those below; empty: there is none
	where  string
	copies string // by which logs know that this is the world that they gave away, a word each, the last one last
}

const (
	markTo   = "to "
	markFrom = "from "
	markHere = "here " // it lives in the directory
)

func readMark(dir string) (mark, error) {
	data, err := file.ReadRegular(filepath.Join(dir, hiddenDir, movedFile), maxNoteBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, nil
	}
	line, copies, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n")
	for _, way := range []string{markFrom, markHere} {
		if where, ok := strings.CutPrefix(line, way); ok {
			return mark{way, where, copies}, err
		}
	}
	return mark{markTo, strings.TrimPrefix(line, markTo), copies}, err
}

// refuseMoved refuses a directory whose world is elsewhere, but to who moves it to where it is moved to.
func refuseMoved(dir string, opts Options) error {
	m, err := readMark(dir)
	if err != nil || m.way == "" || m.way == markHere || m.way == markTo && opts.moving != "" && strings.HasSuffix(m.where, " of "+opts.moving) {
		return err
	}
	return &MovedError{Place: dir, Where: m.where, Here: m.way == markFrom}
}

// put marks a directory in the place of what it was marked with.
func (m mark) put(dir string) error {
	if was, err := readMark(dir); err != nil || was == m {
		return err
	}
	return file.Replace(filepath.Join(dir, hiddenDir, movedFile), 0o600, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s%s\n%s\n", m.way, m.where, m.copies)
		return err
	})
}

// The other place may know a world by a copy: between a place and the last word of what it remembers.
const (
	copyMark   = ", copy "
	noCopy     = "unknown"
	maxCopies  = 64
	copyRandom = 4 // bytes
)

// copyOf is the copy that a log gave away.
func copyOf(left journal.Left) string {
	if at := strings.LastIndex(left.To, copyMark); at >= 0 {
		return left.To[at+len(copyMark):]
	}
	return noCopy
}

// onward begins what a log remembers of a world that is on its way.
const onward = "on its way to "

// OnItsWay reports whether a log remembers of a world that it is on its way to another place.
func OnItsWay(to string) bool { return strings.HasPrefix(to, onward) }

// has reports whether the directory holds the copy that a log gave away.
func (m mark) has(left journal.Left) bool {
	return slices.Contains(strings.Fields(m.copies), copyOf(left))
}

// arrived has a directory hold the world that was moved into it.
func (m mark) arrived(dir string) error {
	m.way = markHere
	return m.put(dir)
}

// Leaves reports whether the world of a directory, which it was moved to from where it stands so, is on its way
// from there into a log, or is there: MoveInto goes on. What is left of a way that it has come back from, or that
// Forget had been at, goes.
func Leaves(dir string, home journal.Standing) (bool, error) {
	m, err := readMark(dir)
	if err != nil || m.way != markTo {
		return false, err
	}
	words := strings.Fields(m.copies)
	back := home.State == journal.Live && len(words) > 0 && slices.Contains(strings.Fields(home.Copies), words[len(words)-1])
	if _, gone := os.Lstat(filepath.Join(dir, hiddenDir, keyringFile)); back || errors.Is(gone, fs.ErrNotExist) {
		return false, Forget(dir)
	}
	return true, nil
}

// Forget takes away what is left of a world in a directory that it has left.
func Forget(dir string) error { return discard(dir) }

// Renamed is what a log remembers of a world that was moved away, when that has gone on to another place.
func Renamed(left journal.Left, where OtherStore, id string) string {
	return where.world(id) + copyMark + copyOf(left)
}
