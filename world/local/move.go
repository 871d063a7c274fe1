package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
)

// Elsewhere is where a world is moved into, or out of: some logs, a log a world.
type Elsewhere struct {
	Log   func(id string, key []byte) (journal.Movable, error) // key as in Options
	Where string                                               // as a person would be told, in one line and without a password
	// Sealing is what keyrings share that lie there; nil: nothing.
	Sealing *Sealing
}

// world says where one of its worlds is.
func (e Elsewhere) world(id string) string { return "world " + id + " of " + e.Where }

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
	errUnequal  = errors.New("what was moved is not what was there: nothing has changed")
)

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

// mark is what a directory is marked with that holds no world any more, or not yet. Its file has a
// word and the other place in a line, and the copy in another.
type mark struct {
	way   string // markTo or markFrom; empty: there is none
	where string
	copy  string // of markFrom: what the log remembers once the world is here
}

const (
	markTo   = "to "
	markFrom = "from "
)

func readMark(dir string) (mark, error) {
	data, err := os.ReadFile(filepath.Join(dir, hiddenDir, movedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, nil
	}
	line, copied, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n")
	if where, ok := strings.CutPrefix(line, markFrom); ok {
		return mark{markFrom, where, copied}, err
	}
	return mark{way: markTo, where: strings.TrimPrefix(line, markTo)}, err
}

// refuseMoved refuses a directory that is marked, but to who moves its world to where it is moved to.
func refuseMoved(dir string, opts Options) error {
	m, err := readMark(dir)
	if err != nil || m.way == "" || m.way == markTo && opts.moving != "" && strings.HasSuffix(m.where, " of "+opts.moving) {
		return err
	}
	return &MovedError{Place: dir, Where: m.where, Here: m.way == markFrom}
}

// put has a directory refused from now on.
func (m mark) put(dir string) error {
	if was, err := readMark(dir); err != nil || was == m {
		return err
	}
	hidden, text := filepath.Join(dir, hiddenDir), m.way+m.where+"\n"
	if m.copy != "" {
		text += m.copy + "\n"
	}
	return errors.Join(file.WriteNew(filepath.Join(hidden, movedFile), []byte(text), 0o600), file.SyncDir(hidden))
}

// Leaves reports whether the world of a directory is on its way into a log, or is there: MoveInto goes on.
// Where Forget has left nothing else there, that is a *MovedError.
func Leaves(dir string) (bool, error) {
	m, err := readMark(dir)
	if err == nil && m.way == markTo {
		if _, gone := os.Lstat(filepath.Join(dir, hiddenDir, keyringFile)); errors.Is(gone, fs.ErrNotExist) {
			err = &MovedError{Place: dir, Where: m.where}
		}
	}
	return m.way == markTo, err
}

// Forget takes away what is left of a world in a directory that it has left, but for where it went.
func Forget(dir string) error {
	hidden := filepath.Join(dir, hiddenDir)
	if err := os.Remove(filepath.Join(hidden, keyringFile)); err != nil { // without which Leaves says that nothing is there
		return err
	}
	entries, err := os.ReadDir(hidden)
	for _, e := range entries {
		if e.Name() != movedFile {
			err = errors.Join(err, os.RemoveAll(filepath.Join(hidden, e.Name())))
		}
	}
	return err
}

func unmark(dir string) error {
	hidden := filepath.Join(dir, hiddenDir)
	return errors.Join(os.Remove(filepath.Join(hidden, movedFile)), file.SyncDir(hidden))
}
