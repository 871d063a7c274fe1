package world

import (
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/worldkernel/worldkernel/receipt"
)

// Execution computes a world's execution hash: what happened, without ids,
// times and signatures. It is the SHA-256 over lines in journal order:
//
//	manifest HEX          at creation
//	CELL@N:OUTCOME        for each step of a cell
//	STEP_ID:OUTCOME       for each intent, at the record that sets its last outcome
type Execution struct {
	sum   hash.Hash
	steps map[receipt.Key]receipt.StepID // of intents without an outcome
}

// NewExecution returns an Execution that has seen no record.
func NewExecution() *Execution {
	return &Execution{sum: sha256.New(), steps: make(map[receipt.Key]receipt.StepID)}
}

// Add takes the next record of the journal, whose payload has been loaded.
func (x *Execution) Add(rec *Record) error {
	switch rec.Kind {
	case KindCreated, KindStepped, KindFailed, KindIntent, KindDenied, KindFinished:
	default:
		return nil
	}
	body, err := rec.Body()
	if err != nil {
		return err
	}
	switch b := body.(type) {
	case *Created:
		x.line("manifest %s\n", b.Manifest)
	case *Stepped:
		x.line("%s@%d:%s\n", b.Cell, b.N, b.Outcome)
	case *Failed:
		x.line("%s@%d:%s\n", b.Cell, b.N, receipt.OutcomePermanentFailure)
	case *IntentEmitted:
		x.steps[b.Key] = b.Step
	case *IntentDenied:
		x.line("%s:%s\n", b.Step, receipt.OutcomePermanentFailure)
	case *Finished:
		r, err := receipt.Decode(b.Receipt)
		if err != nil {
			return fmt.Errorf("world: record #%d: %w", rec.ID, err)
		}
		x.line("%s:%s\n", x.steps[r.Key], r.Outcome())
		delete(x.steps, r.Key)
	}
	return nil
}

func (x *Execution) line(format string, args ...any) { fmt.Fprintf(x.sum, format, args...) }

// Hash returns the execution hash of the records added so far.
func (x *Execution) Hash() Hash { return Hash(x.sum.Sum(nil)) }
