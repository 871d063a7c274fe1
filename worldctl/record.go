package worldctl

import (
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// records reads the records of a world one by one.
type records struct{ view.Journal }

func recordsOf(lw *local.World) records { return records{view.Journal{Local: lw}} }

// find reads the record of a moment that a person named.
func (j records) find(name string) (*view.Entry, error) {
	id, err := j.At(name)
	if err != nil {
		return nil, err
	}
	return j.Entry(id)
}

// entryOf returns what the ledger knows of an intent that it has.
func entryOf(lw *local.World, key receipt.Key) *receipt.Entry {
	e, _ := recordsOf(lw).LedgerEntry(key)
	return &e
}

// operator returns what stands in the place of a cell for a person.
func operator(name string) string {
	return reducer.Cell{Reducer: reducer.Operator, Key: name}.String()
}
