package host

import (
	"fmt"

	"github.com/worldkernel/worldkernel/receipt"
)

// MissError says that a cassette or an answers file does not hold what an
// effect asks for. No receipt can be made, and the effect stays in flight.
type MissError struct {
	File       string // as the manifest's config has it, or the name of a Recording
	Recorded   bool   // by a Recording, not by an adapter
	Cell       string
	Step       receipt.StepID
	Kind       string
	Params     receipt.Data
	Occurrence uint64
	Nearest    string // the entry that is most like it, with its line, in words
}

func (e *MissError) Error() string {
	return fmt.Sprintf("%s has no answer for cell %s, step %s, kind %s, params %s, occurrence %d; %s",
		e.File, e.Cell, e.Step, e.Kind, brief(e.Params), e.Occurrence, e.Nearest)
}

func miss(file string, p receipt.Permit, nearest string) *MissError {
	return &MissError{
		File: file, Cell: p.Cell, Step: p.Step, Kind: p.Kind, Params: p.Params, Occurrence: p.Occurrence, Nearest: nearest,
	}
}

// briefRunes is how much of params an error shows.
const briefRunes = 200

func brief(params receipt.Data) string {
	text, err := params.MarshalJSON()
	if err != nil {
		return fmt.Sprintf("%x", []byte(params))
	}
	if runes := []rune(string(text)); len(runes) > briefRunes {
		return string(runes[:briefRunes]) + "…"
	}
	return string(text)
}
