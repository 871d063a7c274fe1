package worldctl

import (
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// recordsOf reads the records of a world one by one.
func recordsOf(lw *local.World) view.Journal { return view.Journal{Local: lw} }
