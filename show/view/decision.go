package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

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
	Reason   string         `json:"reason"`   // of a denial, or why it awaits approval beside the rules
	Params   journal.Data   `json:"params"`
}

// Decision reads a decision; ok is false where the record holds none, or its payload
// was redacted.
func (e *Entry) Decision() (d Decision, ok bool) {
	d = Decision{Record: e.ID, Time: e.Time, Rules: []string{}}
	switch b := e.Body.(type) {
	case *journal.IntentEmitted:
		d.Key, d.StepID, d.Cell, d.Kind, d.Tag, d.Cap, d.Params = b.Key, b.Step, b.Cell, b.Kind, b.Tag, b.Cap, b.Params
		d.Decision, d.Rules = b.Decision, append(d.Rules, b.Rules...)
	case *journal.IntentDenied:
		d.Key, d.StepID, d.Cell, d.Kind, d.Tag, d.Cap, d.Params = b.Key, b.Step, b.Cell, b.Kind, b.Tag, b.Cap, b.Params
		d.Decision, d.Rules, d.Code, d.Reason = governance.Deny.String(), append(d.Rules, b.Rules...), b.Code, b.Reason
	case *journal.IntentAwaitingApproval:
		d.Key, d.StepID, d.Cell, d.Kind, d.Tag, d.Cap, d.Params = b.Key, b.Step, b.Cell, b.Kind, b.Tag, b.Cap, b.Params
		d.Decision, d.Rules, d.Reason = governance.RequireApproval.String(), append(d.Rules, b.Rules...), b.Reason
	default:
		return d, false
	}
	return d, true
}

// Params returns the params of an intent; nil: they cannot be read.
func (j Journal) Params(key receipt.Key) journal.Data {
	known, _ := j.LedgerEntry(key)
	e, err := j.Entry(journal.Seq(known.Emitted))
	if err != nil {
		return nil
	}
	d, _ := e.Decision()
	return d.Params
}

// PolicyEval compares what was decided with what a world file would decide.
type PolicyEval struct {
	File    string            `json:"file"`
	From    uint64            `json:"from"`    // the record with which the history begins
	Decided int               `json:"decided"` // intents in it
	Changed uint64            `json:"changed"` // that would be decided otherwise
	Intents []Judged          `json:"intents"` // those, or the first governance.MaxListed
	Counts  governance.Counts `json:"counts"`  // of all that would be otherwise
}

// Judged is an intent with the recorded decision and the decision under other rules.
type Judged struct {
	Key    receipt.Key   `json:"key"`
	Cell   string        `json:"cell"`
	Kind   string        `json:"kind"`
	Params string        `json:"params"` // the beginning of them, as JSON; of an agent's session as people speak
	Record journal.Seq   `json:"record"`
	Time   manifest.Tick `json:"time"`
	Before Ruling        `json:"before"`
	After  Ruling        `json:"after"`
}

// Ruling is what a gate says.
type Ruling struct {
	Decision string   `json:"decision"` // allow, deny or require_approval
	Code     string   `json:"code"`     // of a denial
	Rules    []string `json:"rules"`
}

// String returns the decision and what decided.
func (v Ruling) String() string {
	switch by := decidedBy(v.Rules, v.Code); {
	case len(v.Rules) > 0:
		return v.Decision + " by " + by
	case by != "":
		return v.Decision + ": " + by
	}
	return v.Decision
}

// decidedBy names the rules that decided, or the code of a denial that was no rule's.
// Rules that deny because they cannot be evaluated have both: the rule may be one that
// allows.
func decidedBy(rules []string, code string) string {
	by := strings.Join(rules, ", ")
	switch {
	case by == "":
		return code
	case code == string(governance.CodePolicyError):
		return by + ": " + code
	}
	return by
}

// PolicyEval returns what a report says of the decisions in the history, beside what
// was decided then. file is what made the candidate.
func (j Journal) PolicyEval(file string, r *governance.Report) (*PolicyEval, error) {
	a := &PolicyEval{File: file, From: r.From, Changed: r.Counts.Decisions, Intents: []Judged{}, Counts: r.Counts}
	for _, e := range j.Ledger() {
		if !e.Abandoned && slices.ContainsFunc(e.Asked, func(at uint64) bool { return at >= r.From }) {
			a.Decided++
		}
	}
	for i := range r.Decisions {
		d := &r.Decisions[i]
		e, err := j.Entry(journal.Seq(d.Record))
		if err != nil {
			return nil, err
		}
		was, _ := e.Decision()
		a.Intents = append(a.Intents, Judged{
			Key: was.Key, Cell: d.Cell, Kind: d.Kind, Params: d.Params, Record: e.ID, Time: e.Time,
			Before: Ruling{d.Was, was.Code, was.Rules}, After: Ruling{d.Is, d.Code, append([]string{}, d.Rules...)},
		})
	}
	return a, nil
}

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
	Why        string             `json:"why"`     // of the state
	Instead    *Instead           `json:"instead"` // what is asked for in its place; null: nothing is
}

// Decide has the world take a person's decision about an intent as it was seen, and returns
// what it has come to. Where somebody else has decided, the error says who, and how.
func (j Journal) Decide(ctx context.Context, b *journal.Resolved, seen *receipt.Entry) (*Decided, error) {
	if err := j.Local.Decide(ctx, b, seen); err != nil {
		return nil, j.withLastDecision(b, err)
	}
	return j.decided(b)
}

// withLastDecision adds to the refusal of a decision what was decided about the intent last,
// and what to do in its place.
func (j Journal) withLastDecision(b *journal.Resolved, err error) error {
	var refused *world.InputError
	if !errors.Is(err, world.ErrNotWaiting) || !errors.As(err, &refused) {
		return err
	}
	more, key := *refused, b.Key
	e, _ := j.LedgerEntry(key)
	if e.State == receipt.StateDenied {
		line, err := j.IntentLine(&e)
		if err != nil {
			return err
		}
		more.Rule = fmt.Sprintf("%s is %s", key, line.State)
		if b.How == journal.RetryAnyway || b.How == journal.NotExecuted {
			more.Rule = afresh(&line)
		}
	}
	var last *Entry
	for rec, err := range j.Concerning(e.Intent.Cell, journal.Seq(e.Asked[0])-1) {
		if err != nil {
			return err
		}
		if of, _ := rec.Intent(); of == key && (rec.Kind == journal.KindResolved || rec.Kind == journal.KindConfirmed) {
			last = rec
		}
	}
	if last == nil {
		return &more
	}
	words, failed := Describer{Journal: j}.Describe(last)
	if failed != nil {
		return failed
	}
	more.Rule += fmt.Sprintf("; #%d: %s", last.ID, words)
	return &more
}

// decided returns what a decision has come to.
func (j Journal) decided(b *journal.Resolved) (*Decided, error) {
	e, _ := j.LedgerEntry(b.Key)
	line, err := j.IntentLine(&e)
	if err != nil {
		return nil, err
	}
	instead, err := j.instead(&e)
	if err != nil {
		return nil, err
	}
	return &Decided{
		Instead: instead, Key: b.Key, Cell: line.Cell, Kind: line.Kind, How: b.How, Actor: b.Actor, Reason: b.Reason,
		ParamsHash: e.Params, State: line.State, Why: line.Reason,
	}, nil
}

// Denied reports whether the gate denies now what was approved.
func (d *Decided) Denied() bool { return d.How == journal.Approve && d.State == receipt.StateDenied }
