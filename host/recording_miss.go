package host

import (
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// MissError says that a cassette or an answers file does not hold what an
// effect asks for. No receipt can be made, and the effect stays in flight.
type MissError struct {
	File        string // as the manifest's config has it, or the name of a Recording
	Recorded    bool   // by a Recording, not by an adapter
	Cell        string
	Step        receipt.StepID
	Unanswered  bool // the Recording's world has asked for the same, and nothing is known of what came of it
	OtherConfig bool // the Recording's world has asked for the same while the effect was declared otherwise
	Kind        string
	Params      receipt.Data
	Occurrence  uint64
	Nearest     string // the entry that is most like it, with its line, in words

	// Differs is the first place at which the params of that entry, B, are others than
	// those that are asked for, A; nil where there is none.
	Differs *canon.Change
}

func (e *MissError) Error() string {
	text := fmt.Sprintf("%s has no answer for cell %s, step %s, kind %s, params %s, occurrence %d; %s",
		e.File, e.Cell, e.Step, e.Kind, brief(e.Params), e.Occurrence, e.Nearest)
	if where := e.Where(); where != "" {
		text += ". They differ first " + where
	}
	return text
}

// Where says in words where the params of the nearest entry begin to differ: "at
// /messages/3/content: it has "a", asked for is "b""; empty where there is no such place.
func (e *MissError) Where() string {
	if e.Differs == nil {
		return ""
	}
	at := "as a whole"
	if e.Differs.Path != "" {
		at = "at " + e.Differs.Path
	}
	return fmt.Sprintf("%s: it has %s, asked for is %s", at, side(e.Differs.B), side(e.Differs.A))
}

// side is one side of a change.
func side(data receipt.Data) string {
	if data == nil {
		return "nothing there"
	}
	return brief(data)
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
