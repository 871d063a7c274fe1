package worldctl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// records reads the records of a world one by one.
type records struct{ view.Journal }

func recordsOf(lw *local.World) records { return records{view.Journal{Local: lw}} }

// timeOf returns the time of a record.
func (j records) timeOf(id journal.Seq) (manifest.Tick, error) {
	raw, err := j.Stored(id)
	if err != nil {
		return 0, err
	}
	rec, err := journal.DecodeRecord(raw)
	return rec.Time, err
}

// find reads the record that a person named, as #123 or 123.
func (j records) find(name string) (*view.Entry, error) {
	id, err := parseRecord(name)
	if err != nil {
		return nil, err
	}
	e, err := j.Entry(id)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, hinted(fmt.Errorf("there is no record #%d", id), "worldctl tail --limit 10 shows the last ones, up to #%d", j.Local.Head().ID)
	}
	return e, err
}

func parseRecord(name string) (journal.Seq, error) {
	id, err := strconv.ParseUint(strings.TrimPrefix(name, "#"), 10, 64)
	if err != nil {
		return 0, usagef("write the id of a record, as worldctl tail prints it", "%q is not a record: want #123 or 123", name)
	}
	return journal.Seq(id), nil
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
