package experiment

import (
	"bufio"
	"bytes"
	"encoding/json"
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
	Hold   *Budget    `json:"hold,omitempty"` // of the budget, with Begun; nil in lines of before: a call
	Doubt  string     `json:"doubt,omitempty"`
	Result *answer    `json:"result,omitempty"`
}

// answer is a host.Result as it is kept.
type answer struct {
	Status      receipt.Status       `json:"status"`
	Class       receipt.Outcome      `json:"class,omitempty"`
	Unsent      bool                 `json:"unsent,omitempty"`
	Payload     []byte               `json:"payload"` // canonical
	Cost        receipt.Cost         `json:"cost"`
	Exact       bool                 `json:"exact,omitempty"`
	ExternalRef string               `json:"external_ref,omitempty"`
	StateChange *receipt.StateChange `json:"state_change,omitempty"`
}

func answerOf(r *host.Result) *answer {
	return &answer{
		Status: r.Status, Class: r.Class, Unsent: r.Unsent, Payload: r.Payload, Cost: r.Cost, Exact: r.Exact,
		ExternalRef: r.ExternalRef, StateChange: r.StateChange,
	}
}

func (x *answer) result() host.Result {
	return host.Result{
		Status: x.Status, Class: x.Class, Unsent: x.Unsent, Payload: x.Payload, Cost: x.Cost, Exact: x.Exact,
		ExternalRef: x.ExternalRef, StateChange: x.StateChange,
	}
}

// ofAnswers is what the sums of lines are of besides what they say.
func ofAnswers() []byte { return []byte("worldkernel/experiment/answer/v1") }

// encode returns the line, with its end.
func (x *answered) encode() ([]byte, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return withSum(ofAnswers(), text[:len(text)-1]), nil
}

// decodeAnswered parses a line. Those of before have no sum.
func decodeAnswered(text []byte) (x *answered, summed bool, err error) {
	object := text
	if at := len(text) - sumSize; at >= 0 && bytes.HasPrefix(text[at:], []byte(sumKey)) {
		summed = true
		if object, err = withoutSum(ofAnswers(), text); err != nil {
			return nil, true, err
		}
	}
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	x = new(answered)
	if err := d.Decode(x); err != nil {
		return nil, summed, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, summed, errors.New("it says more than one thing")
	}
	says := 0
	for _, is := range []bool{x.Begun, x.Doubt != "", x.Result != nil} {
		if is {
			says++
		}
	}
	if says != 1 {
		return nil, summed, errors.New("it says neither that an attempt was begun nor what came of it, or both")
	}
	return x, summed, nil
}

// open opens the file of answers in a directory and reads it: to write it where effects are
// live, which one at a time can. No name and no link leads out of the directory.
func (a *answers) open(dir, name string) (err error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) && a.mode != EffectsLive {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if info, err := root.Stat(name); err == nil { // a pipe would be waited for
		check := file.CheckRegular
		if a.mode == EffectsLive {
			check = file.CheckWritable
		}
		if err := check(filepath.Join(dir, name), info); err != nil {
			return err
		}
	}
	if a.mode != EffectsLive {
		if a.file, err = root.Open(name); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return a.look()
	}
	if a.file, err = root.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode); err != nil {
		return err
	}
	if err := file.SyncDir(dir); err != nil { // before an attempt is begun, so is the name
		return err
	}
	if a.beside, err = lockAnswers(a.file); err != nil {
		return fmt.Errorf("%s: %w", a.file.Name(), err)
	}
	if err := a.read(); err != nil {
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

// look reads the file for who only reads it. Attempts without an end are in doubt, but where
// somebody writes it, who may make them now: those are under way.
func (a *answers) look() error {
	for {
		before, err := a.file.Stat()
		if err != nil {
			return err
		}
		if err := a.read(); err != nil {
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

// read reads what was asked and answered: whole lines, for a kill may have cut the last one
// off, or somebody else writes it now.
func (a *answers) read() error {
	if _, err := a.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	a.size, a.used = 0, Budget{}
	clear(a.known)
	lines := bufio.NewReader(a.file)
	begun := make(map[canon.Hash][]Budget) // and without an end: what they hold
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		cut := errors.Is(err, io.EOF)
		if err != nil && !cut {
			return err
		}
		if cut && !endless(text) {
			for _, all := range begun { // order cannot show: a sum
				for _, hold := range all {
					a.used.add(hold)
				}
			}
			return nil
		}
		err = errEndless
		if !cut {
			err = a.note(text, begun)
		}
		if rest, _ := lines.Peek(1); err != nil && len(rest) == 0 && bytes.IndexByte(text, 0) >= 0 {
			continue // a part of the last that a power failure has left unwritten: there is no more
		}
		if err != nil {
			return &DamageError{File: a.file.Name(), Line: n, Answers: true, Err: err}
		}
		a.size += int64(len(text))
	}
}

// errEndless says that the end of the last line is another byte.
var errEndless = errors.New("its end is not that of a line")

// endless reports whether a text that has no end of a line is a whole one but for that: a kill
// cannot leave it.
func endless(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	_, summed, err := decodeAnswered(append(bytes.Clone(text[:len(text)-1]), '\n'))
	return summed && err == nil
}

// note remembers a line. Two experiments at once, and two runs of one, have made attempts
// twice before lines had sums.
func (a *answers) note(text []byte, begun map[canon.Hash][]Budget) error {
	x, summed, err := decodeAnswered(text)
	if err != nil {
		return err
	}
	open := begun[x.Key]
	switch {
	case x.Begun && summed && a.known[x.Key] != nil:
		return errors.New("its attempt was begun before")
	case x.Begun:
		hold := Budget{Calls: 1}
		if x.Hold != nil {
			hold = *x.Hold
		}
		begun[x.Key] = append(open, hold)
		x.Doubt = "the process ended while the attempt was under way"
		if a.known[x.Key] != nil {
			return nil
		}
	case len(open) == 0:
		return errors.New("no line before it says that its attempt was begun")
	default:
		begun[x.Key] = open[:len(open)-1]
		a.used.add(x.used(open[len(open)-1]))
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

// write appends a line, which sync makes durable. What is left of one that cannot be written is taken
// away, so that others can. It is called with mu held.
func (a *answers) write(x *answered) error {
	text, err := x.encode()
	if err != nil {
		return err
	}
	if _, err := a.file.WriteAt(text, a.size); err != nil {
		return errors.Join(err, a.file.Truncate(a.size))
	}
	a.size += int64(len(text))
	return nil
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
