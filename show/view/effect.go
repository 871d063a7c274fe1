package view

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// Effect is what became of an operator's effect.
type Effect struct {
	Key        receipt.Key     `json:"key"`
	Cell       string          `json:"cell"`
	Kind       string          `json:"kind"`
	State      receipt.State   `json:"state"`
	Outcome    receipt.Outcome `json:"outcome"` // empty while there is none
	Reason     string          `json:"reason"`
	ParamsHash journal.Hash    `json:"params_hash"`
	Receipt    *Receipt        `json:"receipt"` // null while there is none

	Intent *Intent `json:"-"` // all that is known of it
}

// Effect returns what became of an intent of the ledger.
func (j Journal) Effect(key receipt.Key) (*Effect, error) {
	e, _ := j.LedgerEntry(key)
	now, err := j.Intent(&e)
	if err != nil {
		return nil, err
	}
	a := &Effect{
		Key: key, Cell: now.Cell, Kind: now.Kind, State: now.State, Outcome: e.Outcome, Reason: now.Reason, ParamsHash: e.Params, Intent: now,
	}
	last, err := j.AnswerTo(&e, 0)
	if last != nil {
		a.Receipt = last.Full()
	}
	return a, err
}
