package worldctl

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

// chatRecording is what a file of recorded runs holds.
type chatRecording struct {
	file  string
	runs  []chatRun
	tools map[string]string // effect kind to the tool's name as recorded
}

// chatRun is one run: what becomes one cell.
type chatRun struct {
	place    chatPlace
	key      string // of the cell
	messages []chatMessage
	calls    []chatCall // in the order in which they were made
}

// chatMessage is a message that is not a tool result.
type chatMessage struct {
	index int // among all messages of the run, from 0
	data  journal.Data
	calls int
}

// chatPlace is where in a recording something stands.
type chatPlace struct {
	file    string
	line    int // where the run begins, from 1
	run     int // from 0; -1: in no run
	message int // from 0; -1: in no message
}

// chatError says where a recording is not one.
type chatError struct {
	chatPlace
	err error
}

func (e *chatError) Error() string {
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

func (e *chatError) Unwrap() error { return e.err }

func (p chatPlace) at(message int) chatPlace { p.message = message; return p }

func (p chatPlace) fault(format string, args ...any) error {
	return &chatError{p, fmt.Errorf(format, args...)}
}

// Why a recording cannot become a world, besides having the wrong shape.
var (
	errNoRuns     = errors.New("there are no runs in it")
	errRunTwice   = errors.New("two runs have the same name")
	errUnanswered = errors.New("a call has no answer")
	errUnasked    = errors.New("an answer has no call")
	errToolName   = errors.New("a tool cannot be an effect")
)

// readChat parses a recording: a JSON array of runs, or one after the other as
// JSON lines are. The error is a *chatError.
func readChat(file string, data []byte) (*chatRecording, error) {
	rec := &chatRecording{file: file, tools: make(map[string]string)}
	named := make(map[string]int)
	for text, err := range chatRuns(file, data) {
		if err != nil {
			return nil, err
		}
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
		return nil, chatPlace{file, 1, -1, -1}.fault("%w", errNoRuns)
	}
	return rec, nil
}

// chatText is the JSON of one run.
type chatText struct {
	chatPlace
	json []byte
}

// chatRuns takes the runs of a recording apart.
func chatRuns(file string, data []byte) iter.Seq2[chatText, error] {
	return func(yield func(chatText, error) bool) {
		dec := json.NewDecoder(bytes.NewReader(data))
		array := bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("["))
		if array {
			_, _ = dec.Token() // the bracket that has been seen
		}
		place := chatPlace{file, 1, 0, -1}
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
				yield(chatText{}, place.fault("%w", notJSON(err)))
				return
			}
			if !yield(chatText{place, text}, nil) {
				return
			}
		}
		if err := chatArrayEnds(dec); err != nil {
			place.line, place.run = 1+bytes.Count(data, []byte("\n")), -1
			yield(chatText{}, place.fault("%w", err))
		}
	}
}

func chatArrayEnds(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the array of runs")
	}
	return nil
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("is not JSON: it ends in the middle: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("is not JSON: %w", err)
}

// run parses one run.
func (rec *chatRecording) run(text chatText) (*chatRun, error) {
	raw, err := canon.FromJSON(text.json)
	if err != nil {
		return nil, text.fault("%w", err)
	}
	value, err := canon.Decode(raw)
	if err != nil {
		return nil, text.fault("%w", err)
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, text.fault("want an object with the run's messages, not %s", shapeOf(value))
	}
	run := &chatRun{place: text.chatPlace}
	if run.key, err = chatKey(fields, text.run); err != nil {
		return nil, text.fault("%w", err)
	}
	messages, err := chatMessages(fields)
	if err != nil {
		return nil, text.fault("%w", err)
	}
	for i, m := range messages {
		if err := rec.message(run, i, m); err != nil {
			return nil, &chatError{text.at(i), err}
		}
	}
	for _, call := range run.calls {
		if !call.answered {
			return nil, text.at(call.message).fault("%w: %q, of the tool %s", errUnanswered, call.id, rec.tools[call.kind])
		}
	}
	return run, nil
}

// chatKey names a run: TASK.TRIAL, or its id, or its index.
func chatKey(fields map[string]any, index int) (string, error) {
	key := strconv.Itoa(index)
	task, err := chatLabel(fields, "task_id")
	if err != nil {
		return "", err
	}
	trial, err := chatLabel(fields, "trial")
	if err != nil {
		return "", err
	}
	id, err := chatLabel(fields, "id")
	if err != nil {
		return "", err
	}
	switch {
	case task != "" && trial != "":
		key = task + "." + trial
	case id != "":
		key = id
	}
	return key, manifest.CheckKey(key)
}

// chatLabel returns a text or an integer as text; "" is none.
func chatLabel(fields map[string]any, name string) (string, error) {
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

func chatMessages(fields map[string]any) ([]any, error) {
	for _, name := range []string{"messages", "traj", "trajectory"} {
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
	return nil, errors.New("there is none of messages, traj and trajectory")
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
