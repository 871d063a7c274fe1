package world

import (
	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
)

// gate decides about intents, by the rules in force, the budgets, the rates, what rests and
// what a fork holds. It writes no more than that a capability rests.
type gate struct {
	*roster

	budgets budgets
	paces   map[string]pace        // by kind of effect
	rests   map[string]journal.Seq // capabilities, since records
	onHold  bool                   // a fork whose effects wait for persons, but for those of kinds in live
	live    []string               // by name
	request governance.Request
}
