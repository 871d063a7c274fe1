// Package scenario tries what a world does: it makes the world anew in a directory of its own, gives
// it what a scenario gives, answers its effects as the scenario says, and compares what comes of that
// with what is expected. Nothing outside is touched. It is a part of worldctl, and not an API.
//
// A file is one or more YAML documents, each a [Scenario]. docs/testing-worlds.md is for
// who writes them.
package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/source"
)

// MaxFileBytes bounds a file of scenarios.
const MaxFileBytes = 4 << 20

// Scenario is one of a file.
type Scenario struct {
	Name    string   `yaml:"scenario"`
	Given   []Given  `yaml:"given"`
	Answers []Answer `yaml:"answers"`
	Expect  Expect   `yaml:"expect"`
	Ticks   uint64   `yaml:"ticks"` // that are run at most; 0: DefaultTicks
	Steps   uint64   `yaml:"steps"` // of cells, likewise; 0: DefaultSteps
}

// Defaults of how long a world may go on.
const (
	DefaultTicks = 10_000
	DefaultSteps = 10_000
)

// Given is one thing that happens to the world: exactly one of Event, Run, Approve and
// Deny is set. Before a decision the world runs until it is idle.
type Given struct {
	Event string `yaml:"event"`
	Data  any    `yaml:"data"` // of the event
	To    string `yaml:"to"`   // a cell; empty: where the routes lead
	At    Moment `yaml:"at"`   // when it falls due; zero: at once
	In    Span   `yaml:"in"`   // likewise, so long after now

	Run     Span   `yaml:"run"`     // so long goes by
	Approve string `yaml:"approve"` // a kind: the oldest intent of it that waits for a person
	Deny    string `yaml:"deny"`    // likewise
}

// Answer is the outside's answer to one effect: the first of its kind that no earlier
// answer fits. One of Reply, Error, Says and Calls is its payload.
type Answer struct {
	Effect string `yaml:"effect"`
	Params any    `yaml:"params"` // what the params hold at least; nil: any
	Times  uint64 `yaml:"times"`  // that it fits; 0: once
	Always bool   `yaml:"always"` // it fits as often as it is asked for, and need not be
	After  Span   `yaml:"after"`  // it comes so long after it was asked for; zero: at once
	Never  bool   `yaml:"never"`  // there is none: the effect stays under way

	Reply   any    `yaml:"reply"`
	Error   any    `yaml:"error"`   // the payload of a failure
	Outcome string `yaml:"outcome"` // of a failure: retryable_failure, compensatable_failure or in_doubt, where nobody can tell; empty: permanent
	Says    string `yaml:"says"`    // a completion, as the adapter llm gives it
	Calls   []Call `yaml:"calls"`   // likewise
	Tokens  uint64 `yaml:"tokens"`  // of the completion
}

// Call is one tool call of a completion.
type Call struct {
	Tool      string `yaml:"tool"`
	Arguments any    `yaml:"arguments"`
}

// Expect is the expected outcome. Maps fit what holds at least what they say.
type Expect struct {
	Cells   map[string]any `yaml:"cells"`   // states; null: the cell has none
	Events  []Event        `yaml:"events"`  // emitted, in this order, others between them or not
	Intents []Intent       `yaml:"intents"` // asked for, likewise
	Denials []Intent       `yaml:"denials"` // likewise
	Fails   []string       `yaml:"fails"`   // texts of failed steps, likewise; without it none may fail
}

// Event is an event that cells emit.
type Event struct {
	Event string `yaml:"event"`
	Data  any    `yaml:"data"` // nil: any
	To    string `yaml:"to"`   // a cell that it reaches; empty: any
}

// Intent is an effect that a cell asks for.
type Intent struct {
	Effect string `yaml:"effect"`
	Params any    `yaml:"params"` // nil: any
	Cell   string `yaml:"cell"`   // that asks; empty: any
	State  string `yaml:"state"`  // in the end, as intent list has it; empty: any
	Code   string `yaml:"code"`   // of a denial; empty: any
}

// FileError says why a file holds no scenarios.
type FileError struct {
	File string
	Err  error
}

func (e *FileError) Error() string { return e.File + ": " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// Read reads the scenarios of a file; those without a name have the file's. The error is
// a *FileError.
func Read(file string, data []byte) ([]Scenario, error) {
	var out []Scenario
	if len(data) > MaxFileBytes {
		return nil, &FileError{file, fmt.Errorf("is larger than %d bytes", MaxFileBytes)}
	}
	if err := canon.CheckText(data); err != nil {
		return nil, &FileError{file, err}
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	for {
		var s Scenario
		err := d.Decode(&s)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = s.check()
		} else {
			err = unread(data, err)
		}
		if err != nil {
			return nil, &FileError{file, err}
		}
		if s.Name == "" {
			s.Name = file
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, &FileError{file, errors.New("holds no scenario")}
	}
	return out, nil
}

// misplaced is what the library says of a value that does not fit.
var misplaced = regexp.MustCompile("cannot construct !!(\\w+(?: `.*?`)?) into [^ ;]+")

// unread says why a document does not read.
func unread(data []byte, err error) error {
	if at, ok := errors.AsType[*yaml.LoadError](err); ok && at.Mark.Line > 0 {
		if msg := source.Syntax(data, at.Mark.Line, at.Message); msg != at.Message {
			return fmt.Errorf("line %d: %s", at.Mark.Line, msg)
		}
	}
	return errors.New(plainly(err.Error()))
}

// plainly says what the library says, in other words.
func plainly(text string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "construct errors:")
	text = regexp.MustCompile(` in type [^ ]+`).ReplaceAllString(text, "")
	return strings.Join(strings.Fields(misplaced.ReplaceAllString(text, "$1 does not fit here")), " ")
}

// check reports what is no scenario.
func (s *Scenario) check() error {
	outcomes := []string{"", string(receipt.OutcomePermanentFailure), string(receipt.OutcomeRetryableFailure), string(receipt.OutcomeCompensatable), inDoubt}
	for i, g := range s.Given {
		n := 0
		for _, set := range []bool{g.Event != "", g.Run != (Span{}), g.Approve != "", g.Deny != ""} {
			if set {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("given, item %d: want one of event, run, approve and deny", i+1)
		}
		if later := (g.At != Moment{}); later && g.In != (Span{}) || g.Event == "" && (later || g.In != (Span{})) {
			return fmt.Errorf("given, item %d: at or in is when an event falls due: want one of them", i+1)
		}
	}
	for i, a := range s.Answers {
		n := 0
		for _, set := range []bool{a.Reply != nil, a.Error != nil, a.Says != "" || a.Calls != nil} {
			if set {
				n++
			}
		}
		switch {
		case a.Effect == "":
			return fmt.Errorf("answers, item %d: want the kind of an effect", i+1)
		case n > 1:
			return fmt.Errorf("answers, item %d: want one of reply, error, and says or calls", i+1)
		case a.Outcome != "" && a.Error == nil:
			return fmt.Errorf("answers, item %d: outcome is that of an error", i+1)
		case !slices.Contains(outcomes, a.Outcome):
			return fmt.Errorf("answers, item %d: outcome %q is none of %s", i+1, a.Outcome, strings.Join(outcomes[1:], ", "))
		case a.Never && (n > 0 || a.After != (Span{})):
			return fmt.Errorf("answers, item %d: what never comes has no answer and no time", i+1)
		}
	}
	return s.Expect.check()
}

// check reports what is expected of nothing that has a name.
func (e *Expect) check() error {
	for i, x := range e.Events {
		if x.Event == "" {
			return fmt.Errorf("expect, events, item %d: want the name of an event", i+1)
		}
	}
	for i, x := range e.Intents {
		if x.Effect == "" {
			return fmt.Errorf("expect, intents, item %d: want the kind of an effect", i+1)
		}
	}
	for i, x := range e.Denials {
		if x.Effect == "" {
			return fmt.Errorf("expect, denials, item %d: want the kind of an effect", i+1)
		}
	}
	return nil
}
