package view

import (
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// StateOf returns the state of an intent as it is shown.
func (j Journal) StateOf(e *receipt.Entry) (receipt.State, error) {
	if e.State != receipt.StateDenied {
		return e.State, nil
	}
	end, err := j.Entry(journal.Seq(e.Finished))
	if err == nil && end.Kind == journal.KindEnded {
		return receipt.StateCancelled, nil
	}
	return e.State, err
}

// cancelled reports whether the cell of an intent had cancelled it by a record; 0: by now.
func (j Journal) cancelled(e *receipt.Entry, by journal.Seq) (is bool) {
	if len(e.Apart) > 0 {
		j.Local.View(func(w *world.Moment) { is = w.Cancelled(e, by) })
	}
	return is
}

// Standing puts into words where an intent stands.
func (l *IntentLine) Standing() string {
	if l.Cancelled && l.State != receipt.StateCancelled {
		return string(l.State) + ", cancelled"
	}
	return string(l.State)
}

// notWanted adds to why an intent stands where it does that its cell has cancelled it.
func notWanted(line *IntentLine, e *receipt.Entry) string {
	const said = "its cell cancelled it" // as the kernel says it where that has ended the intent
	if !line.Cancelled || strings.Contains(line.Reason, said) {
		return line.Reason
	}
	why := said
	if _, instead := world.InPlaceOf(e.Intent.Step); instead {
		why = "its cell cancelled that in the place of which it is asked for"
	} else {
		switch e.State {
		case receipt.StateCommitted:
			why += " while it was under way, and it happened all the same"
		case receipt.StateFailed:
			why += " while it was under way"
		case receipt.StateInFlight:
			why += ": it goes on to its end, and is not attempted again"
		default: // the reason says what it waits for
		}
	}
	if line.Reason == "" {
		return why
	}
	return line.Reason + "; " + why
}

// afresh says why nobody tries an intent again of which nothing was attempted, and who asks
// for it again.
func afresh(line *IntentLine) string {
	why := strings.TrimPrefix(line.Reason, string(receipt.StateCancelled)+": ")
	text := fmt.Sprintf("%s is %s: %s; nothing of it was attempted, so there is nothing to try again: ", line.Key, line.State, why)
	if strings.HasPrefix(line.Reason, string(governance.CodeBudgetExceeded)) {
		text += "make room in the budget, then "
	}
	if strings.HasPrefix(line.Cell, reducer.Operator+"/") {
		return text + "ask for the effect once more"
	}
	return text + "send its cell an event on which it asks once more"
}
