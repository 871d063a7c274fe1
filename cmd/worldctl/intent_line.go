package main

import (
	"fmt"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

type intentLine struct {
	Key         receipt.Key    `json:"key"`
	Cell        string         `json:"cell"`
	Kind        string         `json:"kind"`
	State       receipt.State  `json:"state"`
	Attempt     uint64         `json:"attempt"`
	StepID      receipt.StepID `json:"step_id"`
	ExternalKey string         `json:"external_key"`
	Params      world.Data     `json:"params"`
	Cap         string         `json:"cap"`
	Decision    string         `json:"decision"` // allow, deny, require_approval or approved
	Rules       []string       `json:"rules"`
	Reason      string         `json:"reason"` // why it stands where it does, and what is owed
}

// intentReader joins what the ledger knows of intents with the records that
// tell of them.
type intentReader struct {
	journal
	doubts map[receipt.Key]string // why intents are in doubt
}

// intentReader returns a reader of some entries.
func (j journal) intentReader(entries []receipt.Entry) (*intentReader, error) {
	r := &intentReader{journal: j, doubts: make(map[receipt.Key]string)}
	var from uint64
	for i := range entries {
		if e := &entries[i]; e.State == receipt.StateInDoubt && (from == 0 || e.Emitted < from) {
			from = e.Emitted
		}
	}
	if from == 0 {
		return r, nil
	}
	for e, err := range j.scan(world.Seq(from), world.KindInDoubt) {
		if err != nil {
			return nil, err
		}
		if b, ok := e.body.(*world.InDoubt); ok {
			r.doubts[b.Key] = b.Reason
		}
	}
	return r, nil
}

// line returns what is known of an intent.
func (r *intentReader) line(e receipt.Entry) (intentLine, error) {
	made, err := r.entry(world.Seq(e.Emitted))
	if err != nil {
		return intentLine{}, err
	}
	line := intentLine{
		Key: e.Intent.Key, Cell: e.Intent.Cell, Kind: e.Intent.Kind, State: e.State, Attempt: e.Attempt,
		StepID: e.Intent.Step, ExternalKey: e.Intent.Key.External(r.lw.Keys().World()), Cap: e.Intent.Cap,
	}
	switch b := made.body.(type) {
	case *world.IntentEmitted:
		line.Params, line.Decision, line.Rules = b.Params, b.Decision, b.Rules
	case *world.IntentParked:
		line.Params, line.Decision, line.Rules = b.Params, governance.RequireApproval.String(), b.Rules
	case *world.IntentDenied:
		line.Params, line.Rules = b.Params, b.Rules
	default:
		return line, fmt.Errorf("record #%d is %s, and the ledger says that it made intent %s", made.ID, made.Kind, e.Intent.Key)
	}
	err = r.explain(&line, &e)
	if line.Rules == nil {
		line.Rules = []string{}
	}
	return line, err
}

// explain says why an intent stands where it does.
func (r *intentReader) explain(line *intentLine, e *receipt.Entry) error {
	switch {
	case e.State == receipt.StateInDoubt && e.Waiting:
		line.Reason = r.doubts[e.Intent.Key] + "; its verifier cannot tell yet: run asks it again, or intent resolve"
	case e.State == receipt.StateInDoubt:
		line.Reason = r.doubts[e.Intent.Key] + "; owed: intent resolve or intent retry"
	case e.State == receipt.StateParked && e.Deadline != 0 && e.Repeats != nil:
		line.Reason = fmt.Sprintf("a rollback left the same behind, %s; owed before tick %d: intent approve, intent approve --reuse or intent deny",
			short(*e.Repeats), e.Deadline)
	case e.State == receipt.StateParked && e.Deadline != 0:
		line.Reason = fmt.Sprintf("owed before tick %d: intent approve or intent deny", e.Deadline)
	case e.State == receipt.StateParked:
		line.Reason = "the outside is not what its receipt says; owed: intent confirm or intent deny"
	case e.State == receipt.StateOpen && e.Waiting:
		line.Reason = fmt.Sprintf("waits after attempt %d for the next", e.Attempt)
	case e.State == receipt.StateFailed, e.State == receipt.StateDenied:
		return r.explainEnd(line, e)
	}
	return nil
}

// explainEnd says why an intent came to nothing, where no receipt does.
func (r *intentReader) explainEnd(line *intentLine, e *receipt.Entry) error {
	end, err := r.entry(world.Seq(e.Finished))
	if err != nil {
		return err
	}
	switch b := end.body.(type) {
	case *world.IntentDenied:
		line.Decision, line.Reason = governance.Deny.String(), b.Code+": "+b.Reason
		if len(b.Rules) > 0 {
			line.Rules = b.Rules
		}
	case *world.IntentEnded:
		line.Reason = explained(b.Payload)
	}
	switch {
	case compensating(e):
		line.Reason = "its compensation is under way"
	case e.Outcome == receipt.OutcomeCompensated:
		line.Reason = "it was made up for"
	}
	return nil
}
