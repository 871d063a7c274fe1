package star

import "go.starlark.net/syntax"

// Emit is a place of a file where an event is emitted whose name stands there.
type Emit struct {
	Event        string
	Line, Column int // from 1
}

// Emits returns where a file calls .emit with a literal name, in its order. The error is
// a *SyntaxError.
func Emits(file string, source []byte) ([]Emit, error) {
	tree, err := parse(file, source)
	if err != nil {
		return nil, err
	}
	var out []Emit
	syntax.Walk(tree, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		dot, ok := call.Fn.(*syntax.DotExpr)
		name, literal := call.Args[0].(*syntax.Literal)
		if !ok || !literal || dot.Name.Name != "emit" {
			return true
		}
		if text, ok := name.Value.(string); ok && name.Token == syntax.STRING {
			out = append(out, Emit{text, int(name.TokenPos.Line), int(name.TokenPos.Col)})
		}
		return true
	})
	return out, nil
}
