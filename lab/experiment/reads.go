package experiment

import (
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer/engines"
)

// reads reports whether a reducer may read a param: its source, or a module of it, takes
// it from ctx.params by its name, or hands ctx.params on to where that cannot be told. Of
// code that nothing reads, as of reducers in Go, nothing can be told.
func reads(r *manifest.Reducer, contents map[manifest.Hash][]byte, name string) bool {
	reader, ok := engines.ReaderOf(r.Engine)
	if !ok {
		return true
	}
	for file, hash := range r.Code() {
		source, ok := contents[hash]
		if !ok || reader.ReadsParam(file, source, name) {
			return true
		}
	}
	return false
}
