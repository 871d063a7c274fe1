package api

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Intents is a page of intents, in the order of the records that made them, or that
// approved them.
type Intents struct {
	Schema  string       `json:"schema"`
	Intents []IntentLine `json:"intents"`
	Next    *string      `json:"next"` // the path of what comes after it; null: nothing does yet
}

// IntentLine is an intent in a list.
type IntentLine struct {
	Key         receipt.Key    `json:"key"`
	Cell        string         `json:"cell"`
	Kind        string         `json:"kind"`
	State       receipt.State  `json:"state"`
	Attempt     uint64         `json:"attempt"`
	StepID      receipt.StepID `json:"step_id"`
	ExternalKey string         `json:"external_key"`
	Params      world.Data     `json:"params"`
	Cap         string         `json:"cap"`
	Decision    string         `json:"decision"`
	Rules       []string       `json:"rules"`
	Reason      string         `json:"reason"` // why it stands where it does, and what is owed
}

// Intent is an intent with all attempts and where the journal tells of it.
type Intent struct {
	Schema string `json:"schema"`
	IntentLine
	Tag        string          `json:"tag"`
	Occurrence uint64          `json:"occurrence"`
	ParamsHash world.Hash      `json:"params_hash"` // what a decision is bound to
	Outcome    receipt.Outcome `json:"outcome"`     // the last; empty while there is none
	Cost       receipt.Cost    `json:"cost"`        // of all attempts
	Reserved   receipt.Cost    `json:"reserved"`    // of budgets
	Deadline   manifest.Tick   `json:"deadline"`    // the tick at which it is denied if it is parked; 0: none
	For        *receipt.Key    `json:"for"`         // the intent that it makes up for; null: none
	Repeats    *receipt.Key    `json:"repeats"`     // what a rollback left behind and it equals; null: nothing
	Reused     bool            `json:"reused"`      // it was not performed: what it repeats is its result
	Emitted    world.Seq       `json:"emitted"`
	Started    world.Seq       `json:"started"`  // 0: not yet
	Finished   world.Seq       `json:"finished"` // 0: not yet
	Attempts   []Attempt       `json:"attempts"`
}

// Attempt is one attempt of an intent.
type Attempt struct {
	Attempt uint64          `json:"attempt"`
	Started world.Seq       `json:"started"`
	Expired world.Seq       `json:"expired"` // when it was given up; 0: it was not
	Receipt world.Seq       `json:"receipt"` // 0: none
	Late    bool            `json:"late"`    // the receipt
	Status  receipt.Status  `json:"status"`
	Outcome receipt.Outcome `json:"outcome"`
	Cost    receipt.Cost    `json:"cost"`
	Unsent  bool            `json:"unsent"`
	Reason  string          `json:"reason"` // why it was given up
}

func listIntents(c *call) error {
	state := receipt.State(c.param("state"))
	if state != "" && !slices.Contains(receipt.States(), state) {
		return badRequest("state", fmt.Sprintf("states are %v", receipt.States()))
	}
	after, err := c.number("after")
	if err != nil {
		return err
	}
	limit, err := c.limit()
	if err != nil {
		return err
	}
	out := Intents{Schema: schemaOf("intent-list"), Intents: []IntentLine{}}
	last := uint64(0)
	for _, e := range c.world.ledger() {
		if e.Emitted <= after || state != "" && e.State != state {
			continue
		}
		if len(out.Intents) == limit {
			out.Next = c.next(strconv.FormatUint(last, 10))
			break
		}
		if err := c.Context().Err(); err != nil {
			return err
		}
		line, err := c.world.intentLine(&e)
		if err != nil {
			return err
		}
		out.Intents, last = append(out.Intents, line), e.Emitted
	}
	return c.ok(out)
}

// intent returns the intent that the path names.
func (c *call) intent() (*receipt.Entry, error) {
	key, err := receipt.ParseKey(c.PathValue("key"))
	if err != nil {
		return nil, notFound("there is no such intent: a key is 64 hex digits")
	}
	e, ok := c.world.ledgerEntry(key)
	if !ok {
		return nil, notFound("there is no such intent")
	}
	return &e, nil
}

func showIntent(c *call) error {
	e, err := c.intent()
	if err != nil {
		return err
	}
	out, err := c.world.intent(e)
	if err != nil {
		return err
	}
	return c.ok(out)
}

// intentLine returns what is known of an intent.
func (j journal) intentLine(e *receipt.Entry) (IntentLine, error) {
	made, err := j.entry(world.Seq(e.Emitted))
	if err != nil {
		return IntentLine{}, err
	}
	line := IntentLine{
		Key: e.Intent.Key, Cell: e.Intent.Cell, Kind: e.Intent.Kind, State: e.State, Attempt: e.Attempt,
		StepID: e.Intent.Step, ExternalKey: e.Intent.Key.External(j.lw.Keys().World()), Cap: e.Intent.Cap, Rules: []string{},
	}
	if d, ok := decisionOf(made); ok {
		line.Params, line.Rules = d.Params, d.Rules
		if e.State != receipt.StateDenied {
			line.Decision = d.Decision
		}
	}
	return line, j.explain(&line, e)
}

// explain says why an intent stands where it does.
func (j journal) explain(line *IntentLine, e *receipt.Entry) error {
	switch {
	case e.State == receipt.StateInDoubt:
		why, err := j.doubt(e)
		if line.Reason = why + "; owed: resolve or retry"; e.Waiting {
			line.Reason = why + "; its verifier cannot tell yet"
		}
		return err
	case e.State == receipt.StateParked && e.Deadline != 0 && e.Repeats != nil:
		line.Reason = fmt.Sprintf("a rollback left the same behind, %s; owed before tick %d: approve or deny", *e.Repeats, e.Deadline)
	case e.State == receipt.StateParked && e.Deadline != 0:
		line.Reason = fmt.Sprintf("owed before tick %d: approve or deny", e.Deadline)
	case e.State == receipt.StateParked:
		line.Reason = "the outside is not what its receipt says; owed: confirm or deny"
	case e.State == receipt.StateOpen && e.Waiting:
		line.Reason = fmt.Sprintf("waits after attempt %d for the next", e.Attempt)
	case e.State == receipt.StateFailed, e.State == receipt.StateDenied:
		return j.explainEnd(line, e)
	}
	return nil
}

// doubt returns why an intent is in doubt.
func (j journal) doubt(e *receipt.Entry) (why string, err error) {
	for rec, err := range j.ofIntent(e) {
		if err != nil {
			return why, err
		}
		if b, ok := rec.body.(*world.InDoubt); ok {
			why = b.Reason
		}
	}
	return why, nil
}

// explainEnd says why an intent came to nothing, where no receipt does.
func (j journal) explainEnd(line *IntentLine, e *receipt.Entry) error {
	end, err := j.entry(world.Seq(e.Finished))
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
		var x explanation
		if canon.Unmarshal(b.Payload, &x) == nil { // else it is a person's
			line.Reason = x.Code + ": " + x.Reason
		}
	}
	if e.Outcome == receipt.OutcomeCompensated {
		line.Reason = "it was made up for"
	}
	return nil
}

// intent returns all that is known of an intent.
func (j journal) intent(e *receipt.Entry) (*Intent, error) {
	line, err := j.intentLine(e)
	if err != nil {
		return nil, err
	}
	a := &Intent{
		Schema: schemaOf("intent"), IntentLine: line, Tag: e.Intent.Tag, Occurrence: e.Intent.Occurrence, ParamsHash: e.Params,
		Outcome: e.Outcome, Reserved: e.Reserved, For: e.For, Repeats: e.Repeats, Reused: e.Reused, Deadline: manifest.Tick(e.Deadline),
		Emitted: world.Seq(e.Emitted), Started: world.Seq(e.Started), Finished: world.Seq(e.Finished),
	}
	a.Attempts, err = j.attempts(e)
	for _, x := range a.Attempts {
		a.Cost.Tokens += x.Cost.Tokens
		a.Cost.Bytes += x.Cost.Bytes
		a.Cost.Micros += x.Cost.Micros
		if !x.Unsent {
			a.Cost.Calls++
		}
	}
	return a, err
}

// attempts returns every attempt of an intent.
func (j journal) attempts(e *receipt.Entry) ([]Attempt, error) {
	out := []Attempt{}
	if e.Started == 0 {
		return out, nil
	}
	for rec, err := range j.ofIntent(e) {
		if err != nil {
			return nil, err
		}
		_, n := intentOf(rec.body)
		if rec.Kind == world.KindStarted {
			out = append(out, Attempt{Attempt: n, Started: rec.ID})
			continue
		}
		if n == 0 || n > uint64(len(out)) {
			continue // it tells of no attempt
		}
		if err := out[n-1].add(rec); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// add takes what a record says of an attempt.
func (x *Attempt) add(rec *entry) error {
	a := reply{late: rec.Kind == world.KindLate}
	var err error
	switch b := rec.body.(type) {
	case *world.Expired:
		x.Expired, x.Reason = rec.ID, b.Reason
		return nil
	case *world.Finished:
		err = a.read(b.Receipt)
	case *world.Late:
		err = a.read(b.Receipt)
	default:
		return nil
	}
	x.Receipt, x.Late, x.Status, x.Outcome, x.Cost, x.Unsent = rec.ID, a.late, a.Status, a.outcome, a.Cost, a.Unsent
	return err
}
