package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/file"
)

// Names in a directory of results.
const (
	experimentFile = "experiment.json"
	logFile        = "log"
	lockFile       = "lock"
	dictionaryFile = "dictionary.json"
)

// Why a directory of results cannot be used.
var (
	ErrNoResults   = errors.New("no results here")
	ErrOtherSpec   = errors.New("the results are those of another experiment")
	ErrPlanDamaged = errors.New("the file is not what was written")
	ErrPlanFormat  = errors.New("the results are of another version of this program")
	ErrResultsUsed = errors.New("another process works on these results")
	ErrAnswersUsed = errors.New("another process, or another experiment, records answers of the outside here")
	ErrForeign     = errors.New("the directory has something else in it, and no results")
)

// maxPlanBytes is the greatest plan that is read.
const maxPlanBytes = 256 << 20

// checkResults refuses a directory of results in which there is a link, a pipe or a device: it
// may come from somebody else, and what is read or written would be elsewhere. A link to the directory is followed.
func checkResults(dir string) error {
	at, err := filepath.EvalSymlinks(dir)
	if err == nil {
		err = file.CheckTree(at, "")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadPlan reads the plan in a directory of results. Without results the error is
// ErrNoResults.
func ReadPlan(dir string) (*Plan, error) {
	path := filepath.Join(dir, experimentFile)
	data, err := file.ReadRegular(path, maxPlanBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoResults)
	}
	if err != nil {
		return nil, err
	}
	p := new(Plan)
	err = json.Unmarshal(data, p)
	switch {
	case err == nil && p.Format != planFormat:
		return nil, fmt.Errorf("%s: format %.40q, not %s: %w", path, p.Format, planFormat, ErrPlanFormat)
	case err != nil || p.Sum != p.sum():
		return nil, fmt.Errorf("%s: %w", path, ErrPlanDamaged)
	}
	return p, nil
}

// results is a directory of results that this process works on.
type results struct {
	dir  string
	plan *Plan
	most uint64    // bytes of the log
	lock io.Closer // nil: they are only read
	log  lines
	of   map[RunID]entry
}

// entry is what is remembered of a line of the log.
type entry struct {
	from, to int64 // where it is
	sent     uint64
	failed   string // why; empty: it has not
	wrong    *Tally // what went wrong within the run
	again    bool   // the run is made again: see Result.Again
}

func newResults(dir string, p *Plan) *results {
	return &results{dir: dir, plan: p, log: lines{of: p.ofResults()}, of: make(map[RunID]entry)}
}

// openResults opens the results of an experiment, or begins them.
func openResults(dir string, s *Spec) (*results, error) {
	// What is paid for is recorded below it. A process before may have made it and been killed.
	if err := file.InDir(dir, func() error { return file.SyncDir(filepath.Dir(dir)) }); err != nil {
		return nil, err
	}
	if err := errors.Join(checkResults(dir), notForeign(dir)); err != nil {
		return nil, err
	}
	held, err := vfs.Default.Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, lockError(dir, err)
	}
	r := newResults(dir, &s.Plan)
	r.most, r.lock = s.Limits.Bytes, held
	if err := r.beginResults(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// notForeign refuses a directory without results in which somebody has something: tables would be
// written over what has their names. A kill may have left the lock, and files that were to be.
func notForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	other := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case name == experimentFile:
			return nil
		case name != lockFile && name != logFile && !strings.HasPrefix(name, "."):
			other = name
		}
	}
	if other != "" {
		return fmt.Errorf("%s: %w: %s", dir, ErrForeign, other)
	}
	return err
}

// lockError says why a directory of results cannot be locked. An error without a number is
// that this process itself has the lock.
func lockError(dir string, err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok && number != syscall.EWOULDBLOCK {
		return fmt.Errorf("%s cannot be locked: %w", filepath.Join(dir, lockFile), err)
	}
	return fmt.Errorf("%s: %w", dir, ErrResultsUsed)
}

// lookAt opens results to be read.
func lookAt(dir string) (*results, error) {
	if err := checkResults(dir); err != nil {
		return nil, err
	}
	plan, err := ReadPlan(dir)
	if err != nil {
		return nil, err
	}
	r := newResults(dir, plan)
	if r.log.file, err = os.Open(filepath.Join(dir, logFile)); err != nil {
		return nil, err
	}
	if err := r.readLog(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// beginResults says whose results these are, or finds that they are, and reads what there is.
func (r *results) beginResults() error {
	there, err := ReadPlan(r.dir)
	switch {
	case errors.Is(err, ErrNoResults):
		if l, err := os.Stat(filepath.Join(r.dir, logFile)); err == nil && l.Size() > 0 {
			return fmt.Errorf("%s: %w: it has a %s and no %s, which says of which", r.dir, ErrOtherSpec, logFile, experimentFile)
		}
		plan, err := r.plan.absolute()
		if err != nil {
			return err
		}
		data, err := json.MarshalIndent(plan, "", "  ")
		if err != nil {
			return err
		}
		if err := file.Put(filepath.Join(r.dir, experimentFile), append(data, '\n'), fileMode); err != nil {
			return err
		}
	case err != nil:
		return err
	case there.Hash != r.plan.Hash:
		return fmt.Errorf("%s: %w: of %s, hash %.12s, and this is hash %.12s", r.dir, ErrOtherSpec, there.Experiment, there.Hash.String(), r.plan.Hash.String())
	}
	root, err := os.OpenRoot(r.dir) // out of which no link leads
	if err != nil {
		return err
	}
	r.log.file, err = root.OpenFile(logFile, os.O_RDWR|os.O_CREATE, fileMode)
	if err = errors.Join(err, root.Close()); err != nil {
		return err
	}
	if err := r.readLog(); err != nil {
		return err
	}
	return r.log.file.Truncate(r.log.size) // what a kill has cut off
}

// readLog finds the lines of the log.
func (r *results) readLog() error {
	return r.log.readLines(func(text []byte, at int64) error {
		result, err := r.plan.decodeResult(text)
		if err != nil {
			return err
		}
		if r.has(result.ID) { // a run that is made again has a line of before
			return fmt.Errorf("run %d is there twice", result.ID)
		}
		r.noteResult(result, at, at+int64(len(text)))
		return nil
	})
}

// LimitError says that results would grow beyond a limit.
type LimitError struct {
	Name string // of the key
	Most uint64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the results are more than %d bytes: %s raises that, or measure at fewer ticks", e.Most, e.Name)
}

// add appends a result. Of a run that was made again and came to the same the line is there.
func (r *results) add(result *Result) error {
	text, err := r.plan.encodeResult(result)
	if err != nil {
		return err
	}
	if was, ok := r.of[result.ID]; ok {
		if before, err := r.text(was); err != nil || bytes.Equal(before, text) {
			return err
		}
	}
	at := r.log.size
	if uint64(at)+uint64(len(text)) > r.most {
		return &LimitError{"limits.bytes", r.most}
	}
	if err := r.log.add(text); err != nil {
		return err
	}
	r.noteResult(result, at, r.log.size)
	return nil
}

// noteResult remembers a result and where its line is, in the place of one before.
func (r *results) noteResult(result *Result, from, to int64) {
	r.of[result.ID] = entry{from, to, result.Sent, result.Error, result.tally(), result.Again}
}

// has reports whether a run has a result that stays.
func (r *results) has(id RunID) bool {
	e, ok := r.of[id]
	return ok && !e.again
}

// kept returns how many of the runs up to one have a result that stays.
func (r *results) kept(upTo uint64) (n uint64) {
	for id, e := range r.of { // order cannot show: a sum
		if uint64(id) <= upTo && !e.again {
			n++
		}
	}
	return n
}

// text reads a line.
func (r *results) text(e entry) ([]byte, error) {
	out := make([]byte, e.to-e.from)
	_, err := r.log.file.ReadAt(out, e.from)
	return out, err
}

// get reads the result of a run; nil: there is none.
func (r *results) get(id RunID) (*Result, error) {
	e, ok := r.of[id]
	if !ok {
		return nil, nil //nolint:nilnil // there is none
	}
	text, err := r.text(e)
	if err != nil {
		return nil, err
	}
	return r.plan.decodeResult(text)
}

// visitResults yields the results that there are, in the order of runs.
func (r *results) visitResults(visit func(*Result) error) error {
	for id := RunID(1); uint64(id) <= r.plan.Runs(); id++ {
		result, err := r.get(id)
		if err == nil && result != nil {
			err = visit(result)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *results) close() error {
	var err error
	if r.log.file != nil && r.lock != nil { // it was written
		err = r.log.file.Sync()
	}
	err = errors.Join(err, r.log.close())
	if r.lock != nil {
		err = errors.Join(err, r.lock.Close())
	}
	return err
}
