package view

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// IntentFilter selects intents. What is empty selects all.
type IntentFilter struct {
	State receipt.State // or StateAwaiting
	Cell  string        // a name, or the beginning of one with * behind it
	Kind  string        // likewise
	Since string        // a moment: those that were made there or later
}

// StateAwaiting selects, in an IntentFilter, the intents that await a person: for approval, an
// answer or a confirmation.
const StateAwaiting receipt.State = "awaiting"

// inState reports whether an intent is in a state, as the ledger or a filter names it.
func inState(e *receipt.Entry, s receipt.State) bool {
	return e.State == s || s == StateAwaiting && e.State.AwaitsPerson()
}

// Selected is Ledger for the intents that a filter selects. The error is ErrState or a
// *MomentError.
func (j Journal) Selected(f IntentFilter) ([]receipt.Entry, error) {
	if f.State != "" && f.State != StateAwaiting && !slices.Contains(states(), f.State) {
		return nil, &world.InputError{Err: ErrState, Field: "state", Rule: fmt.Sprintf("%q", f.State)}
	}
	var since journal.Seq
	if f.Since != "" {
		m, err := j.Moment(f.Since)
		if err != nil {
			return nil, err
		}
		if since, err = j.firstOf(m, j.End()); err != nil {
			return nil, err
		}
	}
	selected := slices.DeleteFunc(j.Ledger(), func(e receipt.Entry) bool {
		ledgers := f.State == receipt.StateCancelled && e.State == receipt.StateDenied
		return f.State != "" && !inState(&e, f.State) && !ledgers || journal.Seq(e.Emitted) < since ||
			!fits(f.Cell, e.Intent.Cell) || !fits(f.Kind, e.Intent.Kind)
	})
	if f.State != receipt.StateCancelled && f.State != receipt.StateDenied {
		return selected, nil
	}
	var faults []error
	selected = slices.DeleteFunc(selected, func(e receipt.Entry) bool {
		state, err := j.StateOf(&e)
		faults = append(faults, err)
		return state != f.State
	})
	return selected, errors.Join(faults...)
}

// NoneSelected says that a filter selects no intent, and which of its names nothing bears.
func (j Journal) NoneSelected(f IntentFilter) string {
	text := "no such intents"
	asked := func(e receipt.Entry) bool { return manifest.Match(f.Kind, e.Intent.Kind) }
	if f.Kind != "" && !slices.ContainsFunc(j.Ledger(), asked) {
		kinds := j.effects()
		if !slices.ContainsFunc(kinds, func(kind string) bool { return manifest.Match(f.Kind, kind) }) {
			text += fmt.Sprintf("; no effect is of kind %q, but of %s", f.Kind, cmp.Or(strings.Join(kinds, ", "), "none"))
		}
	}
	if f.Cell == "" || strings.HasSuffix(f.Cell, "*") {
		return text
	}
	if cell, err := reducer.ParseCell(f.Cell); err != nil {
		text += "; " + err.Error()
	} else if j.Concerned(cell) != nil {
		text += "; there is no cell " + f.Cell
	}
	return text
}

// effects returns the kinds of the effects that the manifest in force declares, sorted.
func (j Journal) effects() (kinds []string) {
	j.Local.View(func(w *world.Moment) { kinds = slices.Sorted(maps.Keys(w.Manifest().Effects)) })
	return kinds
}

// EffectFilter selects records about effects. What is empty selects all.
type EffectFilter struct {
	Cell string // a name, or the beginning of one with * behind it
	Kind string // likewise
	Word string // of what came of it
}

// ExactCell returns the filter's cell if the name is complete; empty: no cell, or a prefix.
func (f *EffectFilter) ExactCell() string {
	if strings.HasSuffix(f.Cell, "*") {
		return ""
	}
	return f.Cell
}

// Fits reports whether the filter selects what a record says of an effect.
func (f *EffectFilter) Fits(cell, kind, word string) bool {
	return fits(f.Cell, cell) && fits(f.Kind, kind) && (f.Word == "" || f.Word == word)
}

func fits(pattern, name string) bool { return pattern == "" || manifest.Match(pattern, name) }
