package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// variant is a function of a mutant, beside the one of the product.
type variant struct {
	mutant string
	text   string // of the whole declaration
	name   int    // where its name is in text
}

// versions are a function and its variants.
type versions struct {
	decl     *ast.FuncDecl
	variants []variant
}

// composed is a file in which every function that a mutant changes is there in all its
// versions: of the product, and of each mutant.
type composed struct {
	source    string
	file      *ast.File
	functions []*versions // in the order of their mutants
}

func newComposed(source string) (*composed, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	return &composed{source: source, file: file}, err
}

// add adds a mutant, or says why it is none.
func (c *composed) add(m *mutant) error {
	mutated, err := m.apply(c.source)
	if err != nil {
		return err
	}
	at := strings.Index(c.source, m.old)
	decl := enclosing(c.file, at, at+len(strings.TrimRight(m.old, "\n")))
	if decl == nil {
		return errors.New("it is in no function")
	}
	if decl.Type.TypeParams != nil {
		return errors.New("its function has type parameters")
	}
	other, err := parser.ParseFile(token.NewFileSet(), "", mutated, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("it does not compile: %w", err)
	}
	for _, d := range other.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && nameOf(c.source, decl) == nameOf(mutated, f) {
			v := variant{mutant: m.name, text: text(mutated, f), name: int(f.Name.Pos() - f.Type.Func)}
			c.versionsOf(decl).variants = append(c.versionsOf(decl).variants, v)
			return nil
		}
	}
	return errors.New("its function has gone")
}

func (c *composed) versionsOf(decl *ast.FuncDecl) *versions {
	for _, f := range c.functions {
		if f.decl == decl {
			return f
		}
	}
	c.functions = append(c.functions, &versions{decl: decl})
	return c.functions[len(c.functions)-1]
}

// enclosing returns the function that a part of a file is in.
func enclosing(file *ast.File, from, to int) *ast.FuncDecl {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Body != nil && int(f.Type.Func)-1 <= from && to <= int(f.End())-1 {
			return f
		}
	}
	return nil
}

// text returns a declaration without its comment. Positions of the only file of a set
// begin with 1.
func text(source string, f *ast.FuncDecl) string { return source[f.Type.Func-1 : f.End()-1] }

func slice(source string, n ast.Node) string { return source[n.Pos()-1 : n.End()-1] }

// nameOf returns the name of a function, after the type that it is a method of.
func nameOf(source string, f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return slice(source, f.Recv.List[0].Type) + "." + f.Name.Name
}

// active is the variable that has the name of the mutant that is tried.
const active = "mutant__"

// String returns the file: the function of the product has another name, and a new one
// in its place calls the version of the mutant that is tried.
func (c *composed) String() string {
	out, _ := c.write()
	return out
}

// at returns the mutant whose version of a function has a line of the file, if any.
func (c *composed) at(line int) (mutant string, ok bool) {
	_, ends := c.write()
	for _, end := range ends {
		if line <= end.line {
			return end.mutant, end.mutant != ""
		}
	}
	return "", false
}

// end is the last line of a part of a file that is of one mutant, or of none.
type end struct {
	line   int
	mutant string
}

func (c *composed) write() (string, []end) {
	var out, more strings.Builder
	var ends []end
	last := 0
	for _, d := range c.file.Decls { // in the order of the file
		at := slices.IndexFunc(c.functions, func(f *versions) bool { return f.decl == d })
		if at < 0 {
			continue
		}
		f := c.functions[at]
		name := int(f.decl.Name.End()) - 1
		out.WriteString(c.source[last:name] + "__0")
		last = name
	}
	out.WriteString(c.source[last:])
	lines := strings.Count(out.String(), "\n")
	add := func(text, mutant string) {
		more.WriteString(text)
		lines += strings.Count(text, "\n")
		ends = append(ends, end{lines, mutant})
	}
	add("", "")
	for _, f := range c.functions {
		add("\n"+c.dispatch(f), "")
		for i, v := range f.variants {
			name := v.name + len(f.decl.Name.Name)
			add(fmt.Sprintf("\n%s__%d%s\n", v.text[:name], i+1, v.text[name:]), v.mutant)
		}
	}
	return out.String() + more.String(), ends
}

// dispatch returns the function that calls one of the versions.
func (c *composed) dispatch(f *versions) string {
	var params, args []string
	for _, field := range f.decl.Type.Params.List {
		for range max(1, len(field.Names)) {
			name := fmt.Sprintf("p%d__", len(params))
			params = append(params, name+" "+slice(c.source, field.Type))
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				name += "..."
			}
			args = append(args, name)
		}
	}
	var b strings.Builder
	b.WriteString("func ")
	call := f.decl.Name.Name
	if f.decl.Recv != nil {
		fmt.Fprintf(&b, "(r__ %s) ", slice(c.source, f.decl.Recv.List[0].Type))
		call = "r__." + call
	}
	fmt.Fprintf(&b, "%s(%s)", f.decl.Name.Name, strings.Join(params, ", "))
	ends := "; return"
	before := ""
	if f.decl.Type.Results != nil {
		var results []string
		for _, field := range f.decl.Type.Results.List {
			for range max(1, len(field.Names)) {
				results = append(results, slice(c.source, field.Type))
			}
		}
		fmt.Fprintf(&b, " (%s)", strings.Join(results, ", "))
		before, ends = "return ", ""
	}
	fmt.Fprintf(&b, " {\n\tswitch %s {\n", active)
	for i, v := range f.variants {
		fmt.Fprintf(&b, "\tcase %q:\n\t\t%s%s__%d(%s)%s\n", v.mutant, before, call, i+1, strings.Join(args, ", "), ends)
	}
	fmt.Fprintf(&b, "\t}\n\t%s%s__0(%s)\n}\n", before, call, strings.Join(args, ", "))
	return b.String()
}
