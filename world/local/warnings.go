package local

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer/star"
	"github.com/worldkernel/worldkernel/world/source"
)

// Warning is something about a world file that is allowed and hardly meant.
type Warning struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // from 1; 0: of the file
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// Place returns "file:line:column", or the file.
func (w Warning) Place() string {
	if w.Line == 0 {
		return w.File
	}
	return fmt.Sprintf("%s:%d:%d", w.File, w.Line, w.Column)
}

// Warnings looks for what a valid world file hardly means: events that its code emits by
// name and no route takes, and programs that are not there. It finds no names that code
// puts together, and starts nothing.
func Warnings(file string, loaded *source.Loaded) []Warning {
	w := warner{file: file, dir: filepath.Dir(file), m: loaded.Manifest}
	code := make(map[string]manifest.Hash)
	for _, r := range w.m.Reducers { // order cannot show: sorted below
		if r.Engine == manifest.EngineStarlark {
			code[r.File] = r.Source
			maps.Copy(code, r.Modules)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(code)) {
		w.emits(name, loaded.Contents[code[name]])
	}
	for _, kind := range slices.Sorted(maps.Keys(w.m.Effects)) {
		w.program(kind, w.m.Effects[kind])
	}
	return w.found
}

// warner gathers warnings.
type warner struct {
	file, dir string
	m         *manifest.Manifest
	found     []Warning
}

// emits warns of events that a file of code emits to nobody.
func (w *warner) emits(name string, code []byte) {
	all, err := star.Emits(name, code)
	if err != nil {
		return // it compiled
	}
	for _, e := range all {
		says := ""
		if _, declared := w.m.Events[e.Event]; !declared {
			says = fmt.Sprintf("event %q is emitted, and the manifest does not declare it: the step will fail", e.Event)
		} else if !slices.ContainsFunc(w.m.Routing, func(r manifest.Route) bool { return manifest.Match(r.Event, e.Event) }) {
			says = fmt.Sprintf("event %q is emitted, and no route takes it", e.Event)
		}
		if says != "" {
			w.found = append(w.found, Warning{filepath.Join(w.dir, name), e.Line, e.Column, says})
		}
	}
}

// program warns of an effect whose program is not there.
func (w *warner) program(kind string, e manifest.Effect) {
	name := ""
	switch e.Adapter {
	case manifest.CapExec:
		if t, err := governance.ParseExec(e.Config, nil); err == nil {
			name = t.Program
		}
	case manifest.CapMCP:
		if t, err := governance.ParseMCPConfig(e.Config); err == nil && len(t.Command) > 0 {
			name = t.Command[0]
		}
	}
	if name == "" || strings.ContainsRune(name, 0) {
		return
	}
	dir, err := filepath.Abs(w.dir)
	if err != nil {
		return
	}
	path, err := host.FindProgram(dir, name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		w.found = append(w.found, Warning{File: w.file, Message: fmt.Sprintf("effect %s: there is no program %s", kind, name)})
	}
}
