package view

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// Decided is what became of an intent that a person has decided about.
type Decided struct {
	Key        receipt.Key        `json:"key"`
	Cell       string             `json:"cell"`
	Kind       string             `json:"kind"`
	How        journal.Resolution `json:"how"`
	Actor      string             `json:"actor"`
	Reason     string             `json:"reason"` // of the decision
	ParamsHash journal.Hash       `json:"params_hash"`
	State      receipt.State      `json:"state"`
	Why        string             `json:"why"` // of the state
}

// Decided returns what a decision has come to.
func (j Journal) Decided(b *journal.Resolved) (*Decided, error) {
	e, _ := j.LedgerEntry(b.Key)
	line, err := j.IntentLine(&e)
	if err != nil {
		return nil, err
	}
	return &Decided{
		Key: b.Key, Cell: line.Cell, Kind: line.Kind, How: b.How, Actor: b.Actor, Reason: b.Reason,
		ParamsHash: e.Params, State: e.State, Why: line.Reason,
	}, nil
}

// Denied reports whether the gate denies now what was approved.
func (d *Decided) Denied() bool { return d.How == journal.Approve && d.State == receipt.StateDenied }
