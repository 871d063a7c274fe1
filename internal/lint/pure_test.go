package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// Replacements, by what they replace.
const (
	useTick  = "time is a tick in the event: use Input.Time"
	useSeed  = "randomness is a fact of the journal: use reducer.Seed"
	useReady = "pure packages do no I/O: say in Ready what the floors above are to do"
	useStep  = "one step runs at a time: return the work in Ready instead of sharing it"
	useError = "pure packages do not log: return an error or a record"
	useInt   = "pure Go code computes no floats: use integers"
	useExact = "some machines would round a product and a sum at once: float64(x * y)"
	useOrder = "order can show: range over slices.Sorted(maps.Keys(m)), or say why not in a comment on the line: // order cannot show: reason"
)

// impure are the imports that pure packages do without; "x/..." is x and all
// below it.
var impure = map[string]string{
	"os/...":       useReady,
	"net/...":      useReady,
	"io/ioutil":    useReady,
	"syscall/...":  useReady,
	"log/...":      useError,
	"sync/...":     useStep,
	"runtime/...":  useStep,
	"math/rand":    useSeed,
	"crypto/rand":  useSeed,
	"hash/maphash": useSeed,
	"testing/...":  "test code belongs in _test.go files and world/worldtest",
}

// pure are imports below impure ones that only parse.
var pure = map[string]bool{"net/url": true, "net/netip": true}

// floatExemptions are floating-point functions that a package may call, by
// package, each with its reason.
var floatExemptions = map[string]map[string]string{
	"reducer/star": {
		"Floor": "Starlark's math module: exact by IEEE 754, the same on every machine",
		"Ceil":  "as Floor",
		"Trunc": "as Floor",
		"Round": "as Floor",
		"Sqrt":  "Starlark's math module: correctly rounded by IEEE 754, the same on every machine",
		"Abs":   "as Floor",
	},
	"reducer/kit": {"Sqrt": "correctly rounded by IEEE 754, the same on every machine"},
}

// exactRooms compute floats by what IEEE 754 rounds in one way, a product at a time.
var exactRooms = map[string]bool{"reducer/kit": true}

// exactFloats are functions of math that compute nothing.
var exactFloats = map[string]bool{
	"Float32bits": true, "Float32frombits": true, "Float64bits": true, "Float64frombits": true,
	"IsNaN": true, "IsInf": true, "Signbit": true, "NaN": true, "Inf": true,
}

func checkPurity(r *room) {
	excused := excusedLines(r)
	for _, file := range r.Syntax {
		for _, spec := range file.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil {
				checkImport(r, spec, path)
			}
		}
	}
	r.inspect(func(n ast.Node, parents []ast.Node) {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
			r.fault(n.Pos(), "goroutine or channel: %s", useStep)
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				r.fault(n.Pos(), "goroutine or channel: %s", useStep)
			}
		case *ast.BinaryExpr:
			checkArithmetic(r, n, n.Op, parents)
		case *ast.AssignStmt:
			checkArithmetic(r, n.Lhs[0], assignOps[n.Tok], parents)
		case *ast.IncDecStmt:
			checkArithmetic(r, n.X, token.ADD, parents)
		case *ast.RangeStmt:
			if isMap(r.TypesInfo.TypeOf(n.X)) && !excused[place(r, n.Pos())] {
				r.fault(n.Pos(), "range over a map: %s", useOrder)
			}
		case *ast.Ident:
			checkUse(r, n, parents, excused)
		}
	})
}

func checkImport(r *room, spec *ast.ImportSpec, path string) {
	if pure[path] {
		return
	}
	for pattern, instead := range impure {
		above, all := strings.CutSuffix(pattern, "/...")
		if path == above || all && strings.HasPrefix(path, above+"/") {
			r.fault(spec.Pos(), "import of %s: %s", path, instead)
		}
	}
}

var assignOps = map[token.Token]token.Token{
	token.ADD_ASSIGN: token.ADD, token.SUB_ASSIGN: token.SUB, token.MUL_ASSIGN: token.MUL, token.QUO_ASSIGN: token.QUO,
}

// checkArithmetic refuses op where e is a float that is not a constant, or in a room that
// computes exactly a product that is not converted at once.
func checkArithmetic(r *room, e ast.Expr, op token.Token, parents []ast.Node) {
	computes := op == token.ADD || op == token.SUB || op == token.MUL || op == token.QUO
	tv := r.TypesInfo.Types[e]
	if !computes || tv.Value != nil || !isFloat(r.TypesInfo.TypeOf(e)) {
		return
	}
	switch {
	case !exactRooms[r.path]:
		r.fault(e.Pos(), "float arithmetic: %s", useInt)
	case op == token.MUL && !converted(r, parents):
		r.fault(e.Pos(), "a product that may be fused: %s", useExact)
	}
}

// converted reports whether the node whose parents these are is all that a conversion to
// float64 gets.
func converted(r *room, parents []ast.Node) bool {
	if len(parents) == 0 {
		return false
	}
	call, ok := parents[len(parents)-1].(*ast.CallExpr)
	return ok && r.TypesInfo.Types[call.Fun].IsType() && r.TypesInfo.TypeOf(call.Fun) == types.Typ[types.Float64]
}

// checkUse looks at the name of something that another package declares.
func checkUse(r *room, id *ast.Ident, parents []ast.Node, excused map[string]bool) {
	obj := r.TypesInfo.Uses[id]
	if obj == nil || obj.Pkg() == nil {
		return
	}
	switch obj.Pkg().Path() {
	case "time":
		if !timeless(obj) {
			r.fault(id.Pos(), "time.%s: %s", obj.Name(), useTick)
		}
	case "math/rand/v2":
		if name := receiver(obj); name != "ChaCha8" && obj.Name() != "NewChaCha8" && obj.Name() != "ChaCha8" {
			r.fault(id.Pos(), "rand.%s: %s", obj.Name(), useSeed)
		}
	case "math":
		_, exempt := floatExemptions[r.path][obj.Name()]
		if fn, ok := obj.(*types.Func); ok && !exempt && !exactFloats[obj.Name()] && takesFloat(fn) {
			r.fault(id.Pos(), "math.%s: %s", obj.Name(), useInt)
		}
	case "maps", "golang.org/x/exp/maps":
		switch obj.Name() {
		case "Keys", "Values", "All":
			if !sorted(r, parents) && !excused[place(r, id.Pos())] {
				r.fault(id.Pos(), "maps.%s: %s", obj.Name(), useOrder)
			}
		}
	case "reflect":
		if obj.Name() == "MapRange" || obj.Name() == "MapKeys" {
			r.fault(id.Pos(), "reflect's %s: %s", obj.Name(), useOrder)
		}
	}
}

// timeless reports whether a name of package time has nothing to do with a
// clock: a constant, Duration and its methods, or what reads a text.
func timeless(obj types.Object) bool {
	if _, constant := obj.(*types.Const); constant || receiver(obj) == "Duration" {
		return true
	}
	switch obj.Name() {
	case "Duration", "ParseDuration", "Parse":
		return true
	case "Unix", "UnixNano":
		return receiver(obj) == "Time" // which is no time of a zone
	}
	return false
}

// receiver returns the name of the type that a method belongs to.
func receiver(obj types.Object) string {
	fn, ok := obj.(*types.Func)
	if !ok || fn.Signature().Recv() == nil {
		return ""
	}
	t := fn.Signature().Recv().Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := t.(*types.Named); ok {
		return named.Obj().Name()
	}
	return ""
}

// sorted reports whether the call of maps.Keys, whose selector ends parents, is
// what slices.Sorted, or a function like it, gets. Collecting into a map is as
// good.
func sorted(r *room, parents []ast.Node) bool {
	if len(parents) < 3 {
		return false
	}
	outer, ok := parents[len(parents)-3].(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := outer.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	obj := r.TypesInfo.Uses[sel.Sel]
	if obj == nil || obj.Pkg() == nil {
		return false
	}
	switch obj.Pkg().Path() + "." + obj.Name() {
	case "slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc", "maps.Collect", "maps.Insert":
		return true
	}
	return false
}

// excusedLines are the places with a comment that gives a reason.
func excusedLines(r *room) map[string]bool {
	out := map[string]bool{}
	for _, file := range r.Syntax {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if reason, ok := strings.CutPrefix(c.Text, "// order cannot show:"); ok && strings.TrimSpace(reason) != "" {
					out[place(r, c.Pos())] = true
				}
			}
		}
	}
	return out
}

func place(r *room, pos token.Pos) string {
	p := r.Fset.Position(pos)
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// isFloat is also true of complex numbers, and of type parameters that may be
// floats.
func isFloat(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return types.Satisfies(types.Typ[types.Float64], p.Constraint().Underlying().(*types.Interface))
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsFloat|types.IsComplex) != 0
}

func takesFloat(fn *types.Func) bool {
	sig := fn.Signature()
	for _, tuple := range []*types.Tuple{sig.Params(), sig.Results()} {
		for v := range tuple.Variables() {
			if isFloat(v.Type()) {
				return true
			}
		}
	}
	return false
}
