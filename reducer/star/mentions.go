package star

import (
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// Mentions implements reducer.Reader.
func (Engine) Mentions(file string, source []byte) (*reducer.Mentions, error) {
	tree, err := parse(file, source)
	if err != nil {
		return nil, err
	}
	f := mentioner{texts: make(map[string]string), loaded: make(map[string][2]string)}
	for _, s := range tree.Stmts {
		f.top(s)
	}
	syntax.Walk(tree, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			f.call(n)
		case *syntax.DotExpr:
			f.slip(n)
		}
		return true
	})
	return &f.found, nil
}

func mention(text string, at syntax.Position) reducer.Mention {
	return reducer.Mention{Text: text, Line: int(at.Line), Column: int(at.Col)}
}

// mentioner gathers mentions.
type mentioner struct {
	texts  map[string]string    // global variables that are texts
	loaded map[string][2]string // module and function, by the name that a file gives it
	found  reducer.Mentions
}

// top looks at a statement outside of functions.
func (f *mentioner) top(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.LoadStmt:
		for i, to := range s.To {
			from := s.From[i]
			f.loaded[to.Name] = [2]string{s.ModuleName(), from.Name}
			f.found.Loaded = append(f.found.Loaded, reducer.Loaded{Mention: mention(from.Name, from.NamePos), Module: s.ModuleName()})
		}
	case *syntax.AssignStmt:
		name, ok := s.LHS.(*syntax.Ident)
		if text, is := f.text(s.RHS); ok && is && s.Op == syntax.EQ {
			f.texts[name.Name] = text.Text
		}
	}
}

// text returns the text that e is.
func (f *mentioner) text(e syntax.Expr) (reducer.Mention, bool) {
	at, _ := e.Span()
	text, ok := "", false
	switch e := e.(type) {
	case *syntax.Literal:
		text, ok = e.Value.(string)
		ok = ok && e.Token == syntax.STRING
	case *syntax.Ident:
		text, ok = f.texts[e.Name]
	case *syntax.ParenExpr:
		return f.text(e.X)
	}
	return mention(text, at), ok
}

// slip looks at what is asked of ctx. A name like none of its own may be that of something else which is called ctx.
func (f *mentioner) slip(dot *syntax.DotExpr) {
	of, ok := dot.X.(*syntax.Ident)
	if names := (*stepContext)(nil).AttrNames(); ok && of.Name == "ctx" && !slices.Contains(names, dot.Name.Name) {
		if meant := manifest.Nearest(dot.Name.Name, names); meant != "" {
			at := mention(dot.Name.Name, dot.Name.NamePos)
			f.found.Slips = append(f.found.Slips, reducer.Slip{Mention: at, Meant: meant})
		}
	}
}

// call looks at one call.
func (f *mentioner) call(c *syntax.CallExpr) {
	switch fn := c.Fn.(type) {
	case *syntax.DotExpr:
		switch fn.Name.Name {
		case "emit":
			f.found.Events = append(f.found.Events, f.argument(c, "name")...)
		case "effect":
			f.found.Effects = append(f.found.Effects, f.argument(c, "kind")...)
		}
	case *syntax.Ident:
		if of, ok := f.loaded[fn.Name]; ok {
			f.found.Calls = append(f.found.Calls, f.options(c, of))
		}
	}
}

// argument returns the text that the first argument is, or the one with a name.
func (f *mentioner) argument(c *syntax.CallExpr, name string) []reducer.Mention {
	for i, arg := range c.Args {
		if named, ok := named(arg); ok && named.X.(*syntax.Ident).Name == name {
			arg = named.Y
		} else if i > 0 {
			continue
		}
		if text, ok := f.text(arg); ok {
			return []reducer.Mention{text}
		}
	}
	return nil
}

// named returns an argument that has a name.
func named(arg syntax.Expr) (*syntax.BinaryExpr, bool) {
	x, ok := arg.(*syntax.BinaryExpr)
	if !ok || x.Op != syntax.EQ {
		return nil, false
	}
	_, ok = x.X.(*syntax.Ident)
	return x, ok
}

func (f *mentioner) options(c *syntax.CallExpr, of [2]string) reducer.Call {
	call := reducer.Call{Module: of[0], Function: of[1]}
	for _, arg := range c.Args {
		if x, ok := arg.(*syntax.UnaryExpr); ok && x.Op == syntax.STARSTAR {
			dot, ok := x.X.(*syntax.DotExpr)
			call.Params = call.Params || ok && dot.Name.Name == "params"
		}
		x, ok := named(arg)
		if !ok {
			continue
		}
		at := x.X.(*syntax.Ident)
		begin, _ := x.Y.Span()
		option := reducer.Option{
			Mention: mention(at.Name, at.NamePos),
			Value:   f.value(x.Y), At: mention("", begin),
		}
		values := []syntax.Expr{x.Y}
		if list, ok := x.Y.(*syntax.ListExpr); ok {
			values = list.List
		}
		for _, v := range values {
			if text, ok := f.text(v); ok {
				option.Texts = append(option.Texts, text)
			}
		}
		call.Options = append(call.Options, option)
	}
	return call
}

// Defined implements reducer.Reader.
func (Engine) Defined(file string, source []byte) ([]string, error) {
	tree, err := parse(file, source)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range tree.Stmts {
		switch s := s.(type) {
		case *syntax.DefStmt:
			out = append(out, s.Name.Name)
		case *syntax.AssignStmt:
			syntax.Walk(s.LHS, func(n syntax.Node) bool {
				if name, ok := n.(*syntax.Ident); ok {
					out = append(out, name.Name)
				}
				return true
			})
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(out, func(name string) bool { return strings.HasPrefix(name, "_") }), nil
}
