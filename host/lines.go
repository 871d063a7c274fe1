package host

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// line is one line of a cassette or of an answers file, or an answer of a world.
type line struct {
	Recorded
	number int  // from 1; 0: it is of a world
	placed bool // the occurrence is given
}

// statusLost is the status of a line of a cassette that says that an attempt was made, and
// that nobody knows what came of it: the effect is in doubt.
const statusLost receipt.Status = "lost"

// schema says which keys a line has.
type schema struct {
	required []string
	optional []string
	stub     bool // it answers whoever asks, and with params just who asks for these
}

func cassetteLines() schema {
	return schema{required: []string{"cell", "kind", "params", "payload"}, optional: []string{"occurrence", "status", "outcome"}}
}

func stubLines() schema {
	return schema{required: []string{"kind", "payload"}, optional: []string{"params", "status", "outcome"}, stub: true}
}

// readLines parses JSON lines. The error begins with file:line.
func readLines(file string, data []byte, s schema) ([]line, error) {
	var out []line
	for number := 1; len(data) > 0; number++ {
		text, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		l, err := parseLine(text, s)
		if err != nil {
			return nil, lineError(file, number, err)
		}
		l.number = number
		out = append(out, l)
	}
	return out, nil
}

func lineError(file string, number int, err error) error {
	return fmt.Errorf("%s:%d: %w", file, number, err)
}

func parseLine(text []byte, s schema) (line, error) {
	raw, err := canon.FromJSON(text)
	if err != nil {
		return line{}, err
	}
	l := line{Recorded: Recorded{Result: Result{Status: receipt.StatusOK}}}
	r := canon.NewReader(raw)
	pairs := r.Map()
	if r.Err() != nil {
		return line{}, errors.New("want a JSON object")
	}
	missing := slices.Clone(s.required)
	for ; pairs > 0; pairs-- {
		key := r.Text()
		if !slices.Contains(s.required, key) && !slices.Contains(s.optional, key) {
			return line{}, fmt.Errorf("unknown key %q; a line has %q and may have %q", key, s.required, s.optional)
		}
		if err := l.set(key, r, !s.stub); err != nil {
			return line{}, fmt.Errorf("%s: %w", key, err)
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == key })
	}
	if len(missing) > 0 {
		return line{}, fmt.Errorf("there is no %s", missing[0])
	}
	if l.Result.Class != "" && l.Result.Status != receipt.StatusError {
		return line{}, errors.New(`an outcome goes with the status "error"`)
	}
	return l, nil
}

func (l *line) set(key string, r *canon.Reader, mayBeLost bool) error {
	switch key {
	case "cell":
		l.Cell = r.Text()
	case "kind":
		l.Kind = r.Text()
	case "params":
		l.Params = r.Raw()
	case "occurrence":
		l.Occurrence, l.placed = r.Uint(), true
	case "status":
		l.Result.Status = receipt.Status(r.Text())
		if mayBeLost && l.Result.Status == statusLost {
			return nil
		}
		if r.Err() == nil && l.Result.Status != receipt.StatusOK && l.Result.Status != receipt.StatusError {
			return fmt.Errorf(`%q is neither "ok" nor "error"`, l.Result.Status)
		}
	case "outcome":
		l.Result.Class = receipt.Outcome(r.Text())
		if r.Err() == nil {
			return checkOutcome(l.Result.Class)
		}
	case "payload":
		l.Result.Payload = r.Raw()
	}
	if fault := (*canon.SyntaxError)(nil); errors.As(r.Err(), &fault) {
		return errors.New(fault.Reason) // its offset is not one in the JSON
	}
	return nil
}

// checkOutcome refuses what cassettes, answers and scripts cannot say of an
// error. Without an outcome it is a permanent failure.
func checkOutcome(o receipt.Outcome) error {
	switch o {
	case receipt.OutcomeRetryableFailure, receipt.OutcomeCompensatable, receipt.OutcomeInputRequired:
		return nil
	default:
		return fmt.Errorf("outcome %q is none of %q, %q and %q; a failure without one is permanent", o, receipt.OutcomeRetryableFailure, receipt.OutcomeCompensatable, receipt.OutcomeInputRequired)
	}
}

// shared keeps one value per content, however many effects name it.
type shared[T any] map[canon.Hash]T

// get returns what parse makes of the file that an effect's config names under a key.
func (s shared[T]) get(effect Setup, key string, parse func(data []byte) (T, error)) (v T, err error) {
	data, err := effect.File(key)
	if err != nil {
		return v, err
	}
	name := canon.Sum(data)
	if v, ok := s[name]; ok {
		return v, nil
	}
	if v, err = parse(data); err == nil {
		s[name] = v
	}
	return v, err
}
