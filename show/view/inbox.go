package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// Wanted is what a person is wanted for.
type Wanted string

// The reasons for asking a person.
const (
	WantsApprove Wanted = "approve" // an effect that the gate does not allow by itself
	WantsRepeat  Wanted = "repeat"  // likewise, and a rollback left the same behind
	WantsAnswer  Wanted = "answer"  // an effect asks something
	WantsConfirm Wanted = "confirm" // the outside is not what a receipt says
	WantsResolve Wanted = "resolve" // nobody can tell whether an effect happened
	WantsResume  Wanted = "resume"  // a cell is halted by a step that failed
)

// WantedOf returns what an intent wants of a person; empty: nothing.
func WantedOf(e *receipt.Entry) Wanted {
	switch e.State {
	case receipt.StateInDoubt:
		return WantsResolve
	case receipt.StateAwaitingAnswer:
		return WantsAnswer
	case receipt.StateAwaitingConfirmation:
		return WantsConfirm
	case receipt.StateAwaitingApproval:
		if e.Repeats != nil {
			return WantsRepeat
		}
		return WantsApprove
	default:
		return ""
	}
}

// Owed is something that waits for a person: an intent, or a halted cell.
type Owed struct {
	World   string       `json:"world"` // its id
	Wants   Wanted       `json:"wants"`
	Cell    string       `json:"cell"`
	Since   journal.Seq  `json:"since"`   // the record that asked for the effect, or of the event that halted the cell
	Intent  *OwedIntent  `json:"intent"`  // null: it is a cell
	Failure *CellFailure `json:"failure"` // of the cell; null: it is an intent, or nobody can tell
}

// OwedIntent is an intent that waits for a person, with what a decision takes.
type OwedIntent struct {
	IntentLine
	ParamsHash journal.Hash  `json:"params_hash"` // what a decision is bound to
	Deadline   manifest.Tick `json:"deadline"`    // the tick at which it is denied; 0: none
	Repeats    *receipt.Key  `json:"repeats"`     // what a rollback left behind and it equals; null: nothing
	Asks       []Request     `json:"asks"`        // what it asks now
}

// Debt is something that waits for a person, to be shown by Owed.
type Debt struct {
	ID       string // by which debts of a world are ordered: intents, the oldest first, then cells, by name
	Wants    Wanted
	Cell     string
	Kind     string      // of the effect; empty: it is a cell
	Intent   receipt.Key // zero: it is a cell
	Since    journal.Seq // as of Owed
	Occasion string      // tells it from what the same intent or cell owed before, or will

	of   *receipt.Entry // nil: it is a cell
	cell reducer.Cell
}

// Debts returns all that waits for a person, by ID, in time in proportion to that.
func (j Journal) Debts() (out []Debt) {
	j.Local.View(func(w *world.Moment) {
		for _, e := range w.Undecided() {
			wants := WantedOf(&e)
			out = append(out, Debt{
				ID: fmt.Sprintf("%020d %s", e.Emitted, e.Intent.Key), Wants: wants, Cell: e.Intent.Cell, Kind: e.Intent.Kind, Intent: e.Intent.Key, Since: journal.Seq(e.Emitted),
				Occasion: fmt.Sprintf("%s %s %d %d", e.Intent.Key, wants, e.Attempt, len(e.Inputs)), of: &e,
			})
		}
		for _, v := range w.HaltedCells() {
			d := Debt{ID: "cell " + v.Cell.String(), Wants: WantsResume, Cell: v.Cell.String(), cell: v.Cell}
			if len(v.Mail) > 0 {
				d.Since = v.Mail[0].Record
			}
			d.Occasion = fmt.Sprintf("%s %d", d.ID, d.Since)
			out = append(out, d)
		}
	})
	slices.SortFunc(out, func(a, b Debt) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Owed shows a debt. ok is false where nothing is owed any more.
func (j Journal) Owed(d *Debt) (o Owed, ok bool, err error) {
	o.World = j.Local.Keys().World()
	if d.of == nil {
		c, err := j.Cell(d.cell, "")
		if err != nil || !c.Halted {
			return o, false, err
		}
		o.Wants, o.Cell, o.Since, o.Failure = d.Wants, d.Cell, d.Since, c.Failure
		return o, true, nil
	}
	e := d.of
	o.Wants, o.Cell, o.Since = d.Wants, d.Cell, d.Since
	o.Intent = &OwedIntent{ParamsHash: e.Params, Deadline: deadlineOf(e), Repeats: e.Repeats, Asks: []Request{}}
	if o.Wants == WantsAnswer {
		all, err := asksOf(e)
		if err != nil {
			return o, false, err
		}
		o.Intent.Asks = all[len(all)-1].Requests
	}
	o.Intent.IntentLine, err = j.IntentLine(e)
	return o, err == nil, err
}
