package api

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/view"
)

// records reads the records of a world one by one.
type records struct{ view.Journal }

// head returns the last record that can be read.
func (j records) head() journal.Seq { return j.Local.Head().ID }
