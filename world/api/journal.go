package api

import (
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/view"
)

// journal reads the records of a world one by one.
type journal struct{ view.Journal }

// head returns the last record that can be read.
func (j journal) head() world.Seq { return j.Local.Store().Head().ID }
