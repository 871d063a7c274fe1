package main

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// intentAnswer is an intent with all attempts and where the journal tells of it.
type intentAnswer struct {
	intentLine
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
	Attempts   []attemptLine   `json:"attempts"`
}

// attemptLine is one attempt of an intent.
type attemptLine struct {
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

func newIntentShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "Show an intent: what was asked, what the gate decided, and where it stands",
		Long: `Show an intent: what was asked, what the gate decided, where it stands and every
attempt. KEY may be cut short, to no less than 8 digits.`,
		Example: "  worldctl intent show 9f86d081884c",
		Args:    args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.with(func(lw *local.World) error {
				e, err := findIntent(lw, args[0])
				if err != nil {
					return err
				}
				a, err := journal{lw}.intent(e)
				if err != nil {
					return err
				}
				return c.object("intent", a, func() { c.showIntent(a) })
			})
		},
	}
}

// intent returns all that is known of an intent.
func (j journal) intent(e *receipt.Entry) (*intentAnswer, error) {
	reader, err := j.intentReader([]receipt.Entry{*e})
	if err != nil {
		return nil, err
	}
	line, err := reader.line(*e)
	if err != nil {
		return nil, err
	}
	a := &intentAnswer{
		intentLine: line, Tag: e.Intent.Tag, Occurrence: e.Intent.Occurrence, ParamsHash: e.Params, Outcome: e.Outcome,
		Reserved: e.Reserved, Deadline: manifest.Tick(e.Deadline), For: e.For, Repeats: e.Repeats, Reused: e.Reused,
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
func (j journal) attempts(e *receipt.Entry) ([]attemptLine, error) {
	out := []attemptLine{}
	if e.Started == 0 {
		return out, nil
	}
	kinds := []world.Kind{world.KindStarted, world.KindExpired, world.KindFinished, world.KindLate}
	for rec, err := range j.scan(world.Seq(e.Emitted), kinds...) {
		if err != nil {
			return nil, err
		}
		key, n := intentOf(rec.body)
		if key != e.Intent.Key {
			continue
		}
		if rec.Kind == world.KindStarted {
			out = append(out, attemptLine{Attempt: n, Started: rec.ID})
			continue
		}
		if n == 0 || n > uint64(len(out)) {
			return nil, fmt.Errorf("record #%d is about attempt %d of %s, which was not started", rec.ID, n, key)
		}
		if err := out[n-1].add(rec); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// add takes what a record says of an attempt.
func (x *attemptLine) add(rec *entry) error {
	if b, ok := rec.body.(*world.Expired); ok {
		x.Expired, x.Reason = rec.ID, b.Reason
		return nil
	}
	a := answer{late: rec.Kind == world.KindLate}
	var err error
	switch b := rec.body.(type) {
	case *world.Finished:
		err = a.read(b.Receipt)
	case *world.Late:
		err = a.read(b.Receipt)
	}
	x.Receipt, x.Late, x.Status, x.Outcome, x.Cost, x.Unsent = rec.ID, a.late, a.Status, a.outcome, a.Cost, a.Unsent
	return err
}

func (c *cli) showIntent(a *intentAnswer) {
	params, err := indented(a.Params)
	if err != nil {
		params = err.Error()
	}
	facts := [][2]any{
		{"key", a.Key}, {"cell", a.Cell}, {"kind", a.Kind}, {"state", a.State},
	}
	if a.Reason != "" {
		facts = append(facts, [2]any{"why", a.Reason})
	}
	facts = append(facts, [2]any{"decision", a.Decision}, [2]any{"rules", strings.Join(a.Rules, ", ")}, [2]any{"capability", a.Cap},
		[2]any{"attempt", a.Attempt}, [2]any{"step", a.StepID}, [2]any{"external key", a.ExternalKey},
		[2]any{"emitted", numbered(a.Emitted)}, [2]any{"started", numbered(a.Started)}, [2]any{"finished", numbered(a.Finished)},
		[2]any{"cost", cost(a.Cost)}, [2]any{"reserved", cost(a.Reserved)})
	if a.Deadline != 0 {
		facts = append(facts, [2]any{"deadline", fmt.Sprintf("tick %d", a.Deadline)})
	}
	if a.For != nil {
		facts = append(facts, [2]any{"makes up for", *a.For})
	}
	if a.Repeats != nil {
		facts = append(facts, [2]any{"repeats", *a.Repeats}, [2]any{"reused", a.Reused})
	}
	c.facts(append(facts, [2]any{"params hash", a.ParamsHash}, [2]any{"params", params})...)
	if len(a.Attempts) == 0 {
		return
	}
	t := c.newTable()
	t.AppendHeader(table.Row{"attempt", "started", "receipt", "status", "outcome", "cost", "given up"})
	for _, x := range a.Attempts {
		given := x.Reason
		if x.Late {
			given += " (and its receipt came late)"
		}
		t.AppendRow(table.Row{x.Attempt, numbered(x.Started), numbered(x.Receipt), x.Status, x.Outcome, cost(x.Cost), given})
	}
	t.Render()
}

func numbered(id world.Seq) string {
	if id == 0 {
		return "not yet"
	}
	return fmt.Sprintf("#%d", id)
}
