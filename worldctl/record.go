package worldctl

import (
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// recordsOf reads the records of a world one by one.
func recordsOf(lw *local.World) view.Journal { return view.Journal{Local: lw} }
