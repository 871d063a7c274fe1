package view

import (
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Instead is an intent that a person has asked for in the place of another one.
type Instead struct {
	Key   receipt.Key   `json:"key"`
	State receipt.State `json:"state"`
	Why   string        `json:"why"` // of the state
}

// places returns what is asked for in the place of others, as things are, by the steps of
// these.
func (j Journal) places() map[receipt.StepID]*receipt.Entry {
	places := make(map[receipt.StepID]*receipt.Entry)
	for _, e := range j.Ledger() {
		if step, ok := world.InPlaceOf(e.Intent.Step); ok && !e.Abandoned {
			places[step] = &e
		}
	}
	return places
}

// instead returns what is asked for in the place of an intent, as things are; nil: nothing is.
func (j Journal) instead(of *receipt.Entry) (*Instead, error) {
	e := j.places()[of.Intent.Step]
	if e == nil {
		return nil, nil
	}
	line, err := j.IntentLine(e)
	return &Instead{e.Intent.Key, line.State, line.Reason}, err
}

// insteadOf returns the intent in the place of which another one is asked for; nil: it is in
// no other's.
func (j Journal) insteadOf(e *receipt.Entry) *receipt.Key {
	step, ok := world.InPlaceOf(e.Intent.Step)
	if !ok {
		return nil
	}
	for _, of := range j.Ledger() {
		if of.Intent.Step == step {
			return &of.Intent.Key
		}
	}
	return nil
}
