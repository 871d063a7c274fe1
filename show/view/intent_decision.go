package view

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// IntentDecision is what a person, or a verifier, decided about an intent.
type IntentDecision struct {
	Record     journal.Seq   `json:"record"`
	Time       manifest.Tick `json:"time"`
	How        string        `json:"how"` // as in the record, or confirm
	Actor      string        `json:"actor"`
	Reason     string        `json:"reason"`
	Intent     receipt.Key   `json:"intent"`      // that it is about: this one, or that in the place of which this one is asked for
	ParamsHash journal.Hash  `json:"params_hash"` // of the params that it is about; zero for confirm
	Payload    journal.Data  `json:"payload"`     // the result, the answer, or the params of what is asked for in its place; null: none
}

// decided returns the decision that a record is; nil: it is none, or was redacted.
func decided(e *Entry) *IntentDecision {
	switch b := e.Body.(type) {
	case *journal.Resolved:
		return &IntentDecision{e.ID, e.Time, string(b.How), b.Actor, b.Reason, b.Key, b.Params, b.Payload}
	case *journal.Confirmed:
		if b.Mode == "person" {
			return &IntentDecision{Record: e.ID, Time: e.Time, How: "confirm", Actor: b.Actor, Reason: b.Reason, Intent: b.Key}
		}
	}
	return nil
}

// decisions returns what was decided about an intent, in the order of the records: first what
// had it asked for in the place of another one, if it is.
func (j Journal) decisions(of *receipt.Entry, insteadOf *receipt.Key) ([]IntentDecision, error) {
	out := []IntentDecision{}
	if insteadOf != nil {
		old, _ := j.LedgerEntry(*insteadOf)
		all, err := j.decisions(&old, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, all[max(0, len(all)-1):]...)
	}
	made, err := j.Entry(journal.Seq(of.Emitted))
	if err == nil && made.CausedBy > 0 {
		made, err = j.Entry(made.CausedBy) // its approval
	}
	if err != nil {
		return nil, err
	}
	if d := decided(made); d != nil && d.Intent == of.Intent.Key {
		out = append(out, *d)
	}
	for e, err := range j.OfIntent(of) {
		if err != nil {
			return nil, err
		}
		if d := decided(e); d != nil {
			out = append(out, *d)
		}
	}
	return out, nil
}
