package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"

	"github.com/worldkernel/worldkernel/receipt"
)

// Execution computes a world's execution hash: what happened, without ids,
// times and signatures. It is the SHA-256 over lines in journal order:
//
//	manifest HEX          at creation, at each apply and at a fork under other rules
//	CELL@N:OUTCOME        for each step of a cell
//	STEP_ID:OUTCOME       for each intent, at the record that sets its last outcome
//
// A receipt that another attempt or a compensation follows (intent.waiting) does
// not set the last outcome. An intent that is asked for again, because a rollback
// led to its step, has no line for that: its outcome has one. It has another
// line where its outcome changes after the first: a recorded result was not
// confirmed, a rollback had it made up for, or it was denied or cancelled and
// decided again.
type Execution struct {
	sum      hash.Hash
	text     []byte                         // the last lines, which sum has not seen yet
	manifest Hash                           // in force
	steps    map[receipt.Key]receipt.StepID // of intents without an outcome, or asked for again

	// A receipt's line is kept back until the next record: it may say that the
	// receipt was not the last word.
	last        string
	lastKey     receipt.Key
	lastOutcome receipt.Outcome
}

// NewExecution returns an Execution that has seen no record.
func NewExecution() *Execution {
	return &Execution{sum: sha256.New(), steps: make(map[receipt.Key]receipt.StepID)}
}

// Executes reports whether records of kind k are part of the execution hash.
func Executes(k Kind) bool {
	switch k {
	case KindCreated, KindForked, KindApplied, KindStepped, KindFailed, KindIntent, KindAwaitingApproval, KindDenied, KindFinished, KindWaiting, KindEnded:
		return true
	default:
		return false
	}
}

// Add takes what the next record of the journal says. The error is that of a receipt
// that is none.
func (x *Execution) Add(body Body) error {
	if w, ok := body.(*IntentWaiting); ok && w.Key == x.lastKey {
		x.last = ""
		return nil
	}
	x.flush()
	switch b := body.(type) {
	case *Created:
		x.govern(b.Manifest)
	case *Forked:
		if b.Manifest != x.manifest {
			x.govern(b.Manifest)
		}
	case *Applied:
		x.govern(b.Manifest)
	case *Stepped:
		x.stepped(b.Cell, b.N, b.Outcome)
	case *Failed:
		x.stepped(b.Cell, b.N, receipt.OutcomePermanentFailure)
	case *IntentEmitted:
		x.steps[b.Key] = b.Step
	case *IntentAwaitingApproval:
		x.steps[b.Key] = b.Step
	case *IntentEnded:
		x.ended(string(b.Step), b.Outcome)
		delete(x.steps, b.Key)
	case *IntentDenied:
		x.ended(string(b.Step), receipt.OutcomePermanentFailure)
		delete(x.steps, b.Key)
	case *Finished:
		r, err := receipt.Decode(b.Receipt)
		if err != nil {
			return fmt.Errorf("journal: execution hash: %w", err)
		}
		x.last, x.lastKey, x.lastOutcome = string(x.steps[r.Key]), r.Key, r.Outcome()
	}
	return nil
}

// Step is Add for what a step has come to.
func (x *Execution) Step(cell string, n uint64, outcome receipt.Outcome) {
	x.flush()
	x.stepped(cell, n, outcome)
}

// Skip takes a record that is of no kind that Executes names.
func (x *Execution) Skip() { x.flush() }

// Clone returns a copy with the same records.
func (x *Execution) Clone() *Execution {
	c := *x
	sum, _ := x.sum.(hash.Cloner).Clone() // that of package crypto/sha256 has no error
	c.sum, c.text, c.steps = sum, slices.Clone(x.text), maps.Clone(x.steps)
	return &c
}

// ExecutionOf returns the Execution of a history up to a record, and that. The error is
// that of reading it, or says that it ends before the record.
func ExecutionOf(h History, to Seq) (*Execution, error) {
	x, last := NewExecution(), Seq(0)
	for s, err := range h.Scan(0) {
		if err = errors.Join(err, s.Err); err != nil {
			return nil, err
		}
		if s.ID > to {
			break
		}
		last = s.ID
		if !Executes(s.Record.Kind) {
			x.Skip()
			continue
		}
		body, err := s.Record.LoadBody(h)
		if err == nil {
			err = x.Add(body)
		}
		if err != nil {
			return nil, err
		}
	}
	if last < to {
		return nil, fmt.Errorf("journal: the history ends at #%d, before #%d", last, to)
	}
	return x, nil
}

// flush writes the line that was kept back.
func (x *Execution) flush() {
	if x.last == "" {
		return
	}
	if x.lastOutcome == receipt.OutcomeRetryableFailure {
		x.lastOutcome = receipt.OutcomePermanentFailure // no attempt was left
	}
	x.ended(x.last, x.lastOutcome)
	x.last = ""
	delete(x.steps, x.lastKey)
}

// govern notes which manifest is in force from here on.
func (x *Execution) govern(m Hash) {
	x.manifest = m
	x.line("manifest ", m.String())
}

func (x *Execution) stepped(cell string, n uint64, outcome receipt.Outcome) {
	x.line(cell, "@", strconv.FormatUint(n, 10), ":", string(outcome))
}

func (x *Execution) ended(step string, outcome receipt.Outcome) { x.line(step, ":", string(outcome)) }

func (x *Execution) line(parts ...string) {
	for _, p := range parts {
		x.text = append(x.text, p...)
	}
	if x.text = append(x.text, '\n'); len(x.text) >= 4096 { // a line at a time costs more than its bytes
		x.drain()
	}
}

// drain has sum see all lines.
func (x *Execution) drain() {
	x.sum.Write(x.text)
	x.text = x.text[:0]
}

// Hash returns the execution hash of the records added, as if they were the last: clone one
// that goes on.
func (x *Execution) Hash() Hash {
	x.flush()
	x.drain()
	return Hash(x.sum.Sum(nil))
}
