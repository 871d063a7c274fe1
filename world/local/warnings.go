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
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/engines"
	"github.com/worldkernel/worldkernel/world"
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
// name and no route takes, effects that it asks for and nobody declares, slips in names of ctx, options that no
// module has, effects that nobody is granted or a budget denies, secrets that are missing,
// and programs that cannot run. It finds no
// names that code puts together, and starts nothing. Programs and secrets are those of the
// world whose directory is home.
func Warnings(file, home string, loaded *source.Loaded) []Warning {
	w := warner{file: file, dir: filepath.Dir(file), home: home, m: loaded.Manifest, place: loaded.Place}
	code, readers := make(map[string]manifest.Hash), make(map[string]reducer.Reader)
	for _, r := range w.m.Reducers { // order cannot show: sorted below
		if reader, ok := engines.ReaderOf(r.Engine); ok {
			for name, hash := range r.Code() {
				code[name], readers[name] = hash, reader
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(code)) {
		w.emits(readers[name], name, loaded.Contents[code[name]])
	}
	unmeant, _ := world.Warnings(w.m, func(h manifest.Hash) ([]byte, error) { return loaded.Contents[h], nil }) // all contents are there
	for _, f := range unmeant {
		w.finding(&f)
	}
	for _, kind := range slices.Sorted(maps.Keys(w.m.Effects)) {
		w.program(kind, w.m.Effects[kind])
		w.secrets(kind, w.m.Effects[kind])
	}
	return w.found
}

// warner gathers warnings.
type warner struct {
	file, dir string // as it is told
	home      string // the directory of the world
	m         *manifest.Manifest
	place     func(path string) (line, column int)
	found     []Warning
	meant     int // names of which it was asked which were meant
}

// emits warns of events that a file of code emits to nobody.
func (w *warner) emits(reader reducer.Reader, name string, code []byte) {
	all, err := reader.Mentions(name, code)
	if err != nil {
		return // it compiled
	}
	for _, e := range all.Events {
		if _, declared := w.m.Events[e.Text]; !declared {
			w.code(name, e, fmt.Sprintf("event %q is emitted, and the manifest does not declare it: the step will fail%s", e.Text, like(w, e.Text, w.m.Events)))
		} else if !slices.ContainsFunc(w.m.Routing, func(r manifest.Route) bool { return manifest.Match(r.Event, e.Text) }) {
			w.code(name, e, fmt.Sprintf("event %q is emitted, and no route takes it", e.Text))
		}
	}
	for _, e := range all.Effects {
		if _, declared := w.m.Effects[e.Text]; !declared {
			w.code(name, e, fmt.Sprintf("effect %q is asked for, and the manifest does not declare it: the step will fail%s", e.Text, like(w, e.Text, w.m.Effects)))
		}
	}
	for _, s := range all.Slips {
		w.code(name, s.Mention, fmt.Sprintf("ctx has no .%s: the step will fail; did you mean %q?", s.Text, s.Meant))
	}
}

func (w *warner) code(name string, at reducer.Mention, says string) {
	w.found = append(w.found, Warning{filepath.Join(w.dir, name), at.Line, at.Column, says})
}

// mostMeant is for how many names it is told which were meant: each is compared with all that there are.
const mostMeant = 100

// like says which name of a section was probably meant.
func like[T any](w *warner, name string, section map[string]T) string {
	if w.meant++; w.meant > mostMeant {
		return ""
	}
	if meant := manifest.Nearest(name, slices.Sorted(maps.Keys(section))); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

// finding warns of what is found in the world file, or in code.
func (w *warner) finding(f *world.Finding) {
	if f.Path == "" {
		w.code(f.File, reducer.Mention{Line: f.Line, Column: f.Column}, f.Msg)
		return
	}
	line, column := w.place(f.Path)
	w.found = append(w.found, Warning{w.file, line, column, f.Msg})
}

// program warns of an effect whose program is not there.
func (w *warner) program(kind string, e manifest.Effect) {
	needs, err := governance.NeedsOf(&e)
	if err != nil || len(needs.Program) == 0 || needs.Program[0] == "" || strings.ContainsRune(needs.Program[0], 0) {
		return
	}
	dir, err := filepath.Abs(w.home)
	if err != nil {
		return
	}
	name := needs.Program[0]
	path, err := host.FindProgram(dir, name)
	var is os.FileInfo
	if err == nil {
		is, err = os.Stat(path)
	}
	switch {
	case err != nil:
		w.effect(kind, "there is no program "+name)
	case !is.Mode().IsRegular() || is.Mode().Perm()&0o111 == 0:
		w.effect(kind, name+" is no program that can be run: chmod +x")
	}
}

func (w *warner) effect(kind, says string) {
	w.finding(&world.Finding{Path: manifest.Pointer("effects", kind), Msg: "effect " + kind + ": " + says})
}

// secrets warns of secrets in the config of an effect that are neither in the environment nor
// in a file. It reads none.
func (w *warner) secrets(kind string, e manifest.Effect) {
	config, err := canon.Decode(e.Config)
	if err != nil {
		return // it has none
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key])
			}
		case string:
			name, is := strings.CutPrefix(v, "secret://")
			if _, set := os.LookupEnv("WORLDCTL_SECRET_" + name); !is || set || !filepath.IsLocal(name) {
				return
			}
			if _, err := os.Lstat(filepath.Join(w.home, hiddenDir, "secrets", name)); err != nil {
				w.effect(kind, fmt.Sprintf("there is no secret %s: it is the environment's WORLDCTL_SECRET_%s, or the file %s/secrets/%s", name, name, hiddenDir, name))
			}
		}
	}
	walk(config)
}
