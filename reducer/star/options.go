package star

import (
	"math/big"

	"go.starlark.net/syntax"

	"github.com/worldkernel/worldkernel/reducer"
)

// Options implements reducer.Reader.
func (Engine) Options(file string, source []byte, function string) ([]reducer.Parameter, error) {
	tree, err := parse(file, source)
	if err != nil {
		return nil, err
	}
	def := defined(tree, function)
	if def == nil {
		return nil, nil
	}
	var f mentioner
	var out []reducer.Parameter
	for _, p := range def.Params {
		switch p := p.(type) {
		case *syntax.BinaryExpr:
			out = append(out, reducer.Parameter{Name: p.X.(*syntax.Ident).Name, Default: f.value(p.Y)})
		case *syntax.UnaryExpr:
			if p.Op == syntax.STARSTAR {
				return nil, nil
			}
		}
	}
	return out, nil
}

// value returns the value that e is, whatever code runs.
func (f *mentioner) value(e syntax.Expr) any {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return f.value(e.X)
	case *syntax.Literal:
		if e.Token != syntax.BYTES {
			return e.Value
		}
	case *syntax.Ident:
		return f.named(e.Name)
	case *syntax.UnaryExpr:
		if e.Op == syntax.MINUS {
			return negative(f.value(e.X))
		}
	case *syntax.ListExpr:
		items := make([]any, len(e.List))
		for i, item := range e.List {
			items[i] = f.value(item)
		}
		return items
	case *syntax.DictExpr:
		return map[string]any{}
	}
	return reducer.Computed{}
}

func (f *mentioner) named(name string) any {
	switch name {
	case "None":
		return nil
	case "True", "False":
		return name == "True"
	}
	if text, ok := f.texts[name]; ok {
		return text
	}
	return reducer.Computed{}
}

func negative(v any) any {
	switch v := v.(type) {
	case int64:
		return -v
	case *big.Int:
		return new(big.Int).Neg(v)
	case float64:
		return -v
	}
	return reducer.Computed{}
}
