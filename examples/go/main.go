// Command desk is the command line with the reducers and adapters of this world.
package main

import (
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/worldctl"
)

func main() { worldctl.Main(options()) }

func options() worldctl.Options {
	return worldctl.Options{
		Reducers: reducer.Registry{"ticket@1": reducer.Typed(1, handle)},
		Adapters: map[string]host.Factory{"outbox": newOutbox},
	}
}
