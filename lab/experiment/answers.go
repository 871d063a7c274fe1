package experiment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/receipt"
)

// answersFile is the name of the file in a directory of results.
const answersFile = "effects"

// answered is a line of the file of answers: Begun before the attempt, and after it Result,
// or Doubt where nobody knows what came of it.
type answered struct {
	Key    canon.Hash `json:"key"`
	Run    RunID      `json:"run"`
	Cell   string     `json:"cell,omitempty"`
	Kind   string     `json:"kind,omitempty"`
	Begun  bool       `json:"begun,omitempty"`
	Hold   *Budget    `json:"hold,omitempty"` // of the budget, with Begun
	Doubt  string     `json:"doubt,omitempty"`
	Result *answer    `json:"result,omitempty"`
}

// answer is a host.Result as it is kept: its payload byte for byte.
type answer struct {
	host.Result
	Payload []byte `json:"payload"` // canonical
}

func (x *answer) result() host.Result {
	r := x.Result
	r.Payload = x.Payload
	return r
}

// ofAnswers is what the sums of lines are of besides what they say.
func ofAnswers() []byte { return []byte("worldkernel/experiment/answer/v1") }

// decodeAnswered parses a line.
func decodeAnswered(text []byte) (*answered, error) {
	x := new(answered)
	if err := decodeLine(ofAnswers(), text, x); err != nil {
		return nil, err
	}
	says := 0
	for _, is := range []bool{x.Begun && x.Hold != nil, x.Doubt != "", x.Result != nil} {
		if is {
			says++
		}
	}
	if says != 1 || x.Begun != (x.Hold != nil) {
		return nil, errors.New("it says neither that an attempt was begun nor what came of it, or both")
	}
	return x, nil
}

// open opens the file of answers in a directory and reads it: to write it where effects are
// live, which one at a time can. No name and no link leads out of the directory.
func (a *answers) open(dir, name string) (err error) {
	live, flag, check := a.mode == EffectsLive, os.O_RDONLY, file.CheckRegular
	if live {
		flag, check = os.O_RDWR|os.O_CREATE, file.CheckWritable
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer func() { err = errors.Join(err, root.Close()) }()
		if info, there := root.Stat(name); there == nil { // a pipe would be waited for
			if err := check(filepath.Join(dir, name), info); err != nil {
				return err
			}
		}
		a.file, err = root.OpenFile(name, flag, fileMode)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !live:
		return nil
	case err != nil:
		return err
	case !live:
		return a.readWritten()
	}
	if err := file.SyncDir(dir); err != nil { // before an attempt is begun, so is the name
		return err
	}
	if a.beside, err = lockAnswers(a.file); err != nil {
		return fmt.Errorf("%s: %w", a.file.Name(), err)
	}
	if err := a.readAnswers(); err != nil {
		return err
	}
	return a.file.Truncate(a.size) // what a kill has cut off
}

// lockAnswers has nobody else write a file of answers until it is closed: no other process, nor
// another experiment of this one, whatever name they have for the file. Who only reads it needs
// no lock. On systems without flock(2) a file beside it is locked, until that is closed.
func lockAnswers(f *os.File) (beside io.Closer, err error) {
	err = file.Lock(f.Fd())
	if errors.Is(err, errors.ErrUnsupported) {
		if beside, err = vfs.Default.Lock(f.Name() + ".lock"); err != nil {
			err = file.ErrLocked
		}
	}
	if errors.Is(err, file.ErrLocked) {
		err = ErrAnswersUsed
	}
	return beside, err
}

// answersWritten reports whether somebody has a file of answers locked, and so may write it.
func answersWritten(f *os.File) (bool, error) {
	written, err := file.Locked(f.Fd())
	if errors.Is(err, errors.ErrUnsupported) {
		held, err := vfs.Default.Lock(f.Name() + ".lock")
		if err != nil {
			return true, nil //nolint:nilerr // it is
		}
		return false, held.Close()
	}
	return written, err
}

// readWritten reads the file for who only reads it. Attempts without an end are in doubt, but where
// somebody writes it, who may make them now: those are under way.
func (a *answers) readWritten() error {
	for {
		before, err := a.file.Stat()
		if err != nil {
			return err
		}
		if err := a.readAnswers(); err != nil {
			return err
		}
		open := a.unended()
		if len(open) == 0 {
			return nil
		}
		written, err := answersWritten(a.file)
		if err != nil {
			return err
		}
		after, err := a.file.Stat()
		switch {
		case err != nil:
			return err
		case written:
			a.underWay = open
			return nil
		case before.Size() == after.Size(): // nobody has written it meanwhile, and ended
			return nil
		}
	}
}

// unended returns the attempts that were begun and have no end.
func (a *answers) unended() map[canon.Hash]bool {
	out := make(map[canon.Hash]bool)
	for key, x := range a.known {
		if x.Begun {
			out[key] = true
		}
	}
	return out
}

// readAnswers reads what was asked and answered.
func (a *answers) readAnswers() error {
	a.used = Budget{}
	clear(a.known)
	err := a.readLines(a.noteLine)
	if damage := (*DamageError)(nil); errors.As(err, &damage) {
		damage.Answers = true
	}
	for _, x := range a.known { // order cannot show: a sum
		if x.Begun {
			a.used.add(*x.Hold)
		}
	}
	return err
}

// noteLine remembers a line.
func (a *answers) noteLine(text []byte, _ int64) error {
	x, err := decodeAnswered(text)
	if err != nil {
		return err
	}
	before := a.known[x.Key]
	switch {
	case x.Begun && before != nil:
		return errors.New("its attempt was begun before")
	case x.Begun:
		x.Doubt = "the process ended while the attempt was under way"
	case before == nil || !before.Begun:
		return errors.New("no line before it says that its attempt was begun")
	default:
		a.used.add(x.used(*before.Hold))
	}
	a.known[x.Key] = x
	return nil
}

// used is what an attempt that has ended has used of what it held, as in a world: all of a
// unit of which its receipt says nothing, and no more than it held, whatever that says.
func (x *answered) used(hold Budget) Budget {
	r := x.Result
	if r == nil {
		return hold
	}
	by := governance.UsedBy(&receipt.Receipt{Status: r.Status, Class: r.Class, Unsent: r.Unsent, Cost: r.Cost, Exact: r.Exact})
	used := Budget{by.Calls, by.Tokens, by.Micros}
	unknown := !r.Exact && !r.Unsent
	if hold.Tokens > 0 && (used.Tokens > hold.Tokens || used.Tokens == 0 && unknown) {
		used.Tokens = hold.Tokens
	}
	if hold.Micros > 0 && (used.Micros > hold.Micros || used.Micros == 0 && unknown) {
		used.Micros = hold.Micros
	}
	return used
}

// add adds to a budget, up to the greatest number there is.
func (b *Budget) add(x Budget) {
	sum := governance.Sum(receipt.Cost{Calls: b.Calls, Tokens: b.Tokens, Micros: b.Micros}, receipt.Cost{Calls: x.Calls, Tokens: x.Tokens, Micros: x.Micros})
	*b = Budget{sum.Calls, sum.Tokens, sum.Micros}
}

// write appends a line, which sync makes durable. It is called with mu held.
func (a *answers) write(x *answered) error {
	text, err := encodeLine(ofAnswers(), x)
	if err != nil {
		return err
	}
	return a.add(text)
}

// sync makes what is written up to a place durable: one sync is for all who wait. After one that failed
// nobody can tell what of the file the disk has, and no attempt is begun any more.
func (a *answers) sync(upTo int64) error {
	a.syncing.Lock()
	defer a.syncing.Unlock()
	if a.synced >= upTo {
		return nil
	}
	a.mu.Lock()
	size := a.size
	a.mu.Unlock()
	if err := a.file.Sync(); err != nil {
		a.stop(err)
		return err
	}
	a.synced = size
	return nil
}
