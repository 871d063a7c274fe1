package local

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
)

// StoreOf returns the store of a world, for tests that put something into it.
func StoreOf(lw *World) *store.Store { return lw.store }

// InDirectory are the options of a world whose directory has the journal, whatever tests say.
func InDirectory(o Options) Options { return o.inDirectory() }

// LogOf returns the log of the world in a hidden directory; nil: that has the journal.
func LogOf(hidden string) (journal.Log, error) {
	log := (Options{}).tested(hidden, false).Log
	if log == nil {
		return nil, nil //nolint:nilnil // as store.Options has it
	}
	return log(nil)
}
