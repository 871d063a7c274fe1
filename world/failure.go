package world

import "github.com/worldkernel/worldkernel/manifest"

// Failure is a step that has failed.
type Failure struct {
	Cell   string
	Tick   manifest.Tick
	Parked bool // the cell waits for a person; else its event was dropped
	Error  string
}

// TellFailures has hear told of each step that fails from now on, of a world of which nothing
// is kept, too; nil: nobody is told.
func (w *World) TellFailures(hear func(Failure)) { w.k.onFailure = hear }
