package api

import (
	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/view"
)

// Decisions is a page of what the gate decided, in the order of the journal.
type Decisions struct {
	Schema    string     `json:"schema"`
	Decisions []Decision `json:"decisions"`
	Next      *string    `json:"next"` // the path of what comes after it; null: nothing does yet
}

// Decision is what the gate decided about an intent. One that a person approved is
// decided twice.
type Decision struct {
	Record   journal.Seq    `json:"record"`
	Time     manifest.Tick  `json:"time"`
	Key      receipt.Key    `json:"key"`
	StepID   receipt.StepID `json:"step_id"`
	Cell     string         `json:"cell"`
	Kind     string         `json:"kind"`
	Tag      string         `json:"tag"`
	Cap      string         `json:"cap"`      // the capability that it is under; empty: none fits
	Decision string         `json:"decision"` // allow, deny, require_approval, approved or recorded
	Rules    []string       `json:"rules"`    // of the policy, that decided
	Code     string         `json:"code"`     // of a denial
	Reason   string         `json:"reason"`   // likewise
	Params   journal.Data   `json:"params"`
}

func listDecisions(c *call) error {
	after, err := c.number("after")
	if err != nil {
		return err
	}
	out := Decisions{Schema: schemaOf("decisions"), Decisions: []Decision{}}
	kinds := []journal.Kind{journal.KindIntent, journal.KindDenied, journal.KindParked}
	out.Next, err = page(c, view.Selection{After: journal.Seq(after), Kinds: kinds}, func(e *view.Entry) error {
		if d, ok := decisionOf(e); ok {
			out.Decisions = append(out.Decisions, d)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.ok(out)
}

// decisionOf reads a decision; ok is false where its payload was redacted.
func decisionOf(e *view.Entry) (d Decision, ok bool) {
	d = Decision{Record: e.ID, Time: e.Time}
	switch b := e.Body.(type) {
	case *journal.IntentEmitted:
		d.Key, d.StepID, d.Cell, d.Kind, d.Tag, d.Cap, d.Params = b.Key, b.Step, b.Cell, b.Kind, b.Tag, b.Cap, b.Params
		d.Decision, d.Rules = b.Decision, b.Rules
	case *journal.IntentDenied:
		d.Key, d.StepID, d.Cell, d.Kind, d.Tag, d.Cap, d.Params = b.Key, b.Step, b.Cell, b.Kind, b.Tag, b.Cap, b.Params
		d.Decision, d.Rules, d.Code, d.Reason = governance.Deny.String(), b.Rules, b.Code, b.Reason
	case *journal.IntentParked:
		d.Key, d.StepID, d.Cell, d.Kind, d.Tag, d.Cap, d.Params = b.Key, b.Step, b.Cell, b.Kind, b.Tag, b.Cap, b.Params
		d.Decision, d.Rules = governance.RequireApproval.String(), b.Rules
	default:
		return d, false
	}
	if d.Rules == nil {
		d.Rules = []string{}
	}
	return d, true
}
