package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/big"
	"strconv"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// Recording is what a file of recorded runs holds: see Read.
type Recording struct {
	name  string
	runs  []run
	tools map[string]string // effect kind to the tool's name as recorded
}

// run is one run: what becomes one cell.
type run struct {
	place    place
	key      string // of the cell
	messages []message
	calls    []call // in the order in which they were made
}

// message is a message that is not a tool result.
type message struct {
	index int // among all messages of the run, from 0
	data  journal.Data
	calls int
}

// place is where in a recording something stands.
type place struct {
	file    string
	line    int // where the run begins, from 1
	run     int // from 0; -1: in no run
	message int // from 0; -1: in no message
}

// Error says where a recording cannot be a world.
type Error struct {
	place
	err error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d: ", e.file, e.line)
	if e.run >= 0 {
		s += fmt.Sprintf("run %d", e.run)
		if e.message >= 0 {
			s += fmt.Sprintf(", message %d", e.message)
		}
		s += ": "
	}
	return s + e.err.Error()
}

func (e *Error) Unwrap() error { return e.err }

func (p place) atMessage(message int) place { p.message = message; return p }

func (p place) fault(format string, args ...any) error {
	return &Error{p, fmt.Errorf(format, args...)}
}

// Why a recording cannot become a world, besides having the wrong shape.
var (
	errNoRuns   = errors.New("there are no runs in it")
	errRunTwice = errors.New("two runs have the same name")
	errUnasked  = errors.New("an answer has no call")
	errToolName = errors.New("a tool cannot be an effect")
)

// Read parses a recording, in whichever form of the package's comment it is. The error is a *Error.
func Read(file string, data []byte) (*Recording, error) {
	if mark := (*canon.SyntaxError)(nil); errors.As(canon.CheckText(data), &mark) && mark.Offset == 0 {
		return nil, place{file, 1, -1, -1}.fault("%s", mark.Reason) // JSON begins with nothing of it
	}
	rec := &Recording{name: file, tools: make(map[string]string)}
	named := make(map[string]int)
	texts, err := runsIn(file, data)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		run, err := rec.run(text)
		if err != nil {
			return nil, err
		}
		if twin, ok := named[run.key]; ok {
			return nil, run.place.fault("%w: run %d is called %s, too", errRunTwice, twin, run.key)
		}
		named[run.key] = run.place.run
		rec.runs = append(rec.runs, *run)
	}
	if len(rec.runs) == 0 {
		return nil, place{file, 1, -1, -1}.fault("%w", errNoRuns)
	}
	return rec, nil
}

// runText is the JSON of one run.
type runText struct {
	place
	json   []byte
	fields map[string]any // what json holds, where that is known or the run is put together; nil: it is to be decoded
	lines  []int          // on which its messages begin; nil: they are not lines
}

// decode returns the object that the text of a run, or of a line of one, holds.
func (t runText) decode() (map[string]any, error) {
	if t.fields != nil {
		return t.fields, nil
	}
	raw, err := canon.FromJSON(t.json)
	if err != nil {
		return nil, t.fault("%w", err)
	}
	value, err := canon.Decode(raw)
	if err != nil {
		return nil, t.fault("%w", err)
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, t.fault("want an object with the run's messages, not %s", shapeOf(value))
	}
	return fields, nil
}

// runsIn takes the runs of a recording apart.
func runsIn(file string, data []byte) (all []runText, err error) {
	if runs, is, err := inspectRuns(file, data); is {
		return runs, err
	}
	for text, err := range runTexts(file, data) {
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	switch {
	case len(all) == 0:
		return nil, nil
	case isTranscript(all[0].json):
		return transcriptRuns(all)
	case isLog(all[0]):
		return logRuns(all)
	}
	return all, nil
}

// runTexts yields the values of a recording, each of which is a run but in a transcript.
func runTexts(file string, data []byte) iter.Seq2[runText, error] {
	return func(yield func(runText, error) bool) {
		dec := json.NewDecoder(bytes.NewReader(data))
		array := bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("["))
		if array {
			_, _ = dec.Token() // the bracket that has been seen
		}
		place := place{file, 1, 0, -1}
		for counted := 0; !array || dec.More(); place.run++ {
			rest := data[dec.InputOffset():]
			begin := len(data) - len(bytes.TrimLeft(rest, " \t\r\n,"))
			place.line += bytes.Count(data[counted:begin], []byte("\n"))
			counted = begin
			var text json.RawMessage
			err := dec.Decode(&text)
			if errors.Is(err, io.EOF) && !array {
				return
			}
			if err != nil {
				yield(runText{}, place.fault("%w", notJSON(err)))
				return
			}
			if !yield(runText{place: place, json: text}, nil) {
				return
			}
		}
		if err := arrayEnds(dec); err != nil {
			place.line, place.run = 1+bytes.Count(data, []byte("\n")), -1
			yield(runText{}, place.fault("%w", err))
		}
	}
}

func arrayEnds(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the array of runs")
	}
	return nil
}

func notJSON(err error) error { return fmt.Errorf("is %w", canon.PlainJSON(err)) }

// run parses one run.
func (rec *Recording) run(text runText) (*run, error) {
	fields, err := text.decode()
	if err != nil {
		return nil, err
	}
	run := &run{place: text.place}
	if run.key, err = keyOf(fields, text.run); err != nil {
		return nil, text.fault("%w", err)
	}
	messages, err := messagesOf(fields)
	if err != nil {
		return nil, text.fault("%w", err)
	}
	for i, m := range messages {
		if err := rec.message(run, i, m); err != nil {
			at := text.atMessage(i)
			if text.lines != nil {
				at.line = text.lines[i]
			}
			return nil, &Error{at, err}
		}
	}
	return run, nil
}

// keyOf names a run: TASK.TRIAL, or its id, or its index.
func keyOf(fields map[string]any, index int) (string, error) {
	key := strconv.Itoa(index)
	labels := make(map[string]string)
	for _, name := range []string{"task_id", "trial", "id"} {
		var err error
		if labels[name], err = label(fields, name); err != nil {
			return "", err
		}
	}
	switch task, trial, id := labels["task_id"], labels["trial"], labels["id"]; {
	case task != "" && trial != "":
		key = task + "." + trial
	case id != "":
		key = id
	}
	return key, manifest.CheckKey(key)
}

// label returns a text or an integer as text; "" is none.
func label(fields map[string]any, name string) (string, error) {
	switch v := fields[name].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case int64, *big.Int:
		return fmt.Sprint(v), nil
	default:
		return "", fmt.Errorf("%s: want text or an integer, not %s", name, shapeOf(v))
	}
}

func messagesOf(fields map[string]any) ([]any, error) {
	for _, name := range []string{"messages", "traj", "trajectory", "items"} {
		value, ok := fields[name]
		if !ok {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("%s: want a list, not %s", name, shapeOf(value))
		}
		return list, nil
	}
	return nil, errors.New("there is none of messages, traj, trajectory and items")
}

// shapeOf names the type of a value, for messages.
func shapeOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "a boolean"
	case string:
		return "text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
