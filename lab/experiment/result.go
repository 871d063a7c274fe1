package experiment

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Why a run has ended.
const (
	StoppedTicks  = "ticks"  // all of them were run
	StoppedIdle   = "idle"   // nothing could happen any more
	StoppedWhen   = "when"   // the condition of stop was true
	StoppedFailed = "failed" // an error says why
)

// Result is the kept result of a run.
type Result struct {
	Planned       `json:"-"`
	Tick          uint64       `json:"tick"` // in which it ended
	Stopped       string       `json:"stopped"`
	Sent          uint64       `json:"sent"`     // events of the inputs
	Halted        uint64       `json:"halted"`   // cells that have stopped because a step of theirs failed
	Skipped       uint64       `json:"skipped"`  // events that were dropped because the step failed
	InDoubt       uint64       `json:"in_doubt"` // effects of which nobody can tell what came of them
	FailedEffects uint64       `json:"failed_effects"`
	First         *StepFailure `json:"first_failure,omitempty"` // nil: no step has failed
	ExecutionHash canon.Hash   `json:"execution_hash"`
	StateRoot     canon.Hash   `json:"state_root"`
	Last          []any        `json:"last"` // measured at its end, by Measures.Columns; nil: it has failed
	Rows          []Row        `json:"rows"`
	Error         string       `json:"error,omitempty"`  // why it has failed; empty: it has not
	Reason        string       `json:"reason,omitempty"` // Error without run, cell and tick: the same for all that fail for that reason
	Again         bool         `json:"again,omitempty"`  // it has failed for what is no part of the experiment: the next time it is made again
}

// Row is the measurements of a tick.
type Row struct {
	Tick   uint64
	Values []any
}

// line is a Result in the log.
type line struct {
	Run RunID `json:"run"`
	*Result
	Last []json.RawMessage   `json:"last"`
	Rows [][]json.RawMessage `json:"rows"` // the tick, and the values
}

// ofResults is what the sums of lines of the log are of besides what they say: the experiment,
// so that no line of another one passes for its own.
func (p *Plan) ofResults() []byte {
	return append([]byte("worldkernel/experiment/result/v1"), p.Hash[:]...)
}

// encodeResult returns the line of a result, with its end.
func (p *Plan) encodeResult(r *Result) ([]byte, error) {
	x := line{Run: r.ID, Result: r, Rows: make([][]json.RawMessage, len(r.Rows))}
	var err error
	if x.Last, err = encodeValues(nil, r.Last); err != nil {
		return nil, err
	}
	for i, row := range r.Rows {
		tick := json.RawMessage(strconv.FormatUint(row.Tick, 10))
		if x.Rows[i], err = encodeValues([]json.RawMessage{tick}, row.Values); err != nil {
			return nil, err
		}
	}
	return encodeLine(p.ofResults(), &x)
}

func encodeValues(to []json.RawMessage, values []any) ([]json.RawMessage, error) {
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		to = append(to, b)
	}
	return to, nil
}

// decodeResult parses a line of the log.
func (p *Plan) decodeResult(text []byte) (*Result, error) {
	x := line{Result: new(Result)}
	err := decodeLine(p.ofResults(), text, &x)
	if err != nil {
		return nil, err
	}
	if x.Run == 0 || uint64(x.Run) > p.Runs() {
		return nil, fmt.Errorf("the experiment has no run %d", x.Run)
	}
	r := x.Result
	r.Planned = p.Planned(x.Run)
	if x.Error == "" {
		if r.Last, err = decodeValues(x.Last, p.Columns); err != nil {
			return nil, err
		}
	}
	for _, raw := range x.Rows {
		if len(raw) == 0 {
			return nil, fmt.Errorf("run %d: a row without a tick", x.Run)
		}
		var row Row
		if row.Tick, err = strconv.ParseUint(string(raw[0]), 10, 64); err != nil {
			return nil, err
		}
		if row.Values, err = decodeValues(raw[1:], p.Columns); err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

func decodeValues(raw []json.RawMessage, columns []Column) ([]any, error) {
	if len(raw) != len(columns) {
		return nil, fmt.Errorf("%d values, and %d measures", len(raw), len(columns))
	}
	out := make([]any, len(raw))
	for i, text := range raw {
		if string(text) == "null" {
			continue
		}
		var err error
		switch columns[i].Type {
		case Int:
			out[i], err = strconv.ParseInt(string(text), 10, 64)
		case Float:
			out[i], err = strconv.ParseFloat(string(text), 64)
		case Bool:
			out[i], err = strconv.ParseBool(string(text))
		default:
			var s string
			err = json.Unmarshal(text, &s)
			out[i] = s
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", columns[i].Name, err)
		}
	}
	return out, nil
}
