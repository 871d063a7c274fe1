// Package engines is the table of the engines that run the code of reducers. It is a part of worldctl, and not
// an API.
//
// Another engine is a package beside reducer/star, a row here, and its name in the manifest's
// table (manifest/engines.go). Reducers in Go have no engine: a program has them in its registry.
package engines

import (
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// All returns the engines of this program, by the names that manifests have for them.
func All() map[string]reducer.Engine {
	return map[string]reducer.Engine{
		manifest.EngineStarlark: star.Engine{},
	}
}

// ReaderOf returns the engine of a name, if that reads code.
func ReaderOf(name string) (reducer.Reader, bool) {
	r, ok := All()[name].(reducer.Reader)
	return r, ok
}
