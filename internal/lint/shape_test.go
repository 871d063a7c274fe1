package lint

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// vague are names that say nothing of what a file holds.
var vague = []string{"util", "utils", "helper", "helpers", "common", "misc", "types", "part1", "part2"}

// undocumented are methods whose meaning their interface has fixed.
var undocumented = []string{"Error", "Unwrap", "Is", "As"}

var (
	nolint      = regexp.MustCompile(`^//\s*nolint`)
	nolintGiven = regexp.MustCompile(`^//nolint:[a-z0-9,]+ // ?\S`)
)

func (h *house) checkShape(r *room) {
	for _, file := range r.Syntax {
		if lines := r.Fset.File(file.Pos()).LineCount(); lines > h.fileLines {
			r.fault(file.Package, "a file of %d lines: %d are enough for one thing", lines, h.fileLines)
		}
		for _, decl := range file.Decls {
			h.checkLength(r, decl)
			if r.Name != "main" {
				checkDoc(r, decl)
			}
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				if nolint.MatchString(c.Text) && !nolintGiven.MatchString(c.Text) {
					r.fault(c.Pos(), "nolint without name or reason: write //nolint:name // reason")
				}
			}
		}
	}
	checkNames(r)
}

func (h *house) checkLength(r *room, decl ast.Decl) {
	f, ok := decl.(*ast.FuncDecl)
	if !ok || f.Body == nil {
		return
	}
	if n := r.Fset.Position(f.End()).Line - r.Fset.Position(f.Pos()).Line - 1; n > h.funcLines {
		r.fault(f.Pos(), "%s has %d lines, more than %d: branch here and compute in leaves", f.Name.Name, n, h.funcLines)
	}
}

// checkNames looks at all files of the room, tests included.
func checkNames(r *room) {
	if len(r.GoFiles) == 0 {
		return
	}
	files, err := os.ReadDir(filepath.Dir(r.GoFiles[0]))
	if err != nil {
		r.fault(token.NoPos, "%v", err)
		return
	}
	for _, f := range files {
		for word := range strings.SplitSeq(strings.TrimSuffix(f.Name(), ".go"), "_") {
			if strings.HasSuffix(f.Name(), ".go") && slices.Contains(vague, word) {
				r.fault(r.Syntax[0].Package, "%s: name the file after the noun it holds", f.Name())
			}
		}
	}
}

func checkDoc(r *room, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && ofExported(d) && !slices.Contains(undocumented, d.Name.Name) {
			r.fault(d.Pos(), "%s has no doc comment: say what it does to the world, units, ownership, errors", d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			for _, name := range bare(d, spec) {
				r.fault(name.Pos(), "%s has no doc comment: say what it is, units, zero value", name.Name)
			}
		}
	}
}

// ofExported reports whether f is a function, or a method of an exported type.
func ofExported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	t := f.Recv.List[0].Type
	for {
		switch e := t.(type) {
		case *ast.StarExpr:
			t = e.X
		case *ast.IndexExpr: // of one type parameter
			t = e.X
		case *ast.IndexListExpr:
			t = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return true
		}
	}
}

// bare returns the exported names of spec that neither it nor its group has a
// comment for. One comment does for a group of constants or variables.
func bare(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
			return []*ast.Ident{s.Name}
		}
	case *ast.ValueSpec:
		if s.Doc == nil && s.Comment == nil && d.Doc == nil {
			return slices.DeleteFunc(slices.Clone(s.Names), func(id *ast.Ident) bool { return !id.IsExported() })
		}
	}
	return nil
}
