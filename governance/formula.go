package governance

import (
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Type is the type of a variable or a value.
type Type int

// The types. TypeAny is that of data, of which only evaluating shows what it is.
const (
	TypeNull Type = iota
	TypeAny
	TypeInt
	TypeFloat
	TypeBool
	TypeText
)

// typesOfCEL returns the types of the library in the order of ours.
func typesOfCEL() []*cel.Type {
	return []*cel.Type{cel.NullType, cel.DynType, cel.IntType, cel.DoubleType, cel.BoolType, cel.StringType}
}

// Variable is something that formulas may look at. A name may have dots.
type Variable struct {
	Name string
	Type Type
}

// Formulas are those over some variables. They are safe for concurrent use.
type Formulas struct {
	vars     []variable
	compiler *compiler
}

// Formula is a CEL expression that decides nothing: it is under the rules of
// CheckPolicy, looks at the variables of Formulas, and may compute with integers and
// floats together. It is safe for concurrent use.
type Formula struct {
	program *program
	of      Type
	uses    []bool // variables, by their places
}

// Values are those of the variables of Formulas. They are not safe for concurrent use.
type Values struct{ activation }

// Value is what a formula gives. The field of its type is set.
type Value struct {
	Type  Type // never TypeAny
	Int   int64
	Float float64
	Bool  bool
	Text  string
}

// NewFormulas returns the formulas over some variables.
func NewFormulas(of ...Variable) (*Formulas, error) {
	s := &Formulas{vars: make([]variable, len(of))}
	for i, v := range of {
		if v.Type <= TypeNull || v.Type > TypeText {
			return nil, fmt.Errorf("governance: variable %s is of no type", v.Name)
		}
		s.vars[i] = ofValue(v.Name, typesOfCEL()[v.Type], func(*activation) ref.Val { return types.NullValue })
	}
	var err error
	s.compiler, err = newMixing(s.vars)
	return s, err
}

// Compile compiles an expression. The error is a *PolicyError.
func (s *Formulas) Compile(expr string) (*Formula, error) {
	checked, err := s.compiler.check(expr)
	if err != nil {
		return nil, err
	}
	of := slices.IndexFunc(typesOfCEL(), checked.OutputType().IsExactType)
	if of < 0 {
		return nil, policyError(common.NoLocation, fmt.Sprintf("the expression gives %s, not a number, a boolean or a text", checked.OutputType()))
	}
	f := &Formula{of: Type(of), uses: make([]bool, len(s.vars))}
	for _, r := range checked.NativeRep().ReferenceMap() { // order cannot show: a set is made
		for i, v := range s.vars {
			f.uses[i] = f.uses[i] || r.Name == v.name
		}
	}
	f.program, err = s.compiler.program(checked)
	return f, err
}

// Type returns what the checker knows of the values of the formula.
func (f *Formula) Type() Type { return f.of }

// Uses reports whether the formula looks at a variable, by its place.
func (f *Formula) Uses(variable int) bool { return f.uses[variable] }

// Values returns values that are all null.
func (s *Formulas) Values() *Values { return &Values{newActivation(s.vars)} }

// SetData makes data the value of a variable; none is null. That it is canonical is not looked
// at: what is not gives values that mean nothing.
func (v *Values) SetData(variable int, data canon.Raw) {
	if len(data) == 0 {
		v.values[variable] = types.NullValue
		return
	}
	v.values[variable] = item(data)
}

// SetText makes a text the value of a variable.
func (v *Values) SetText(variable int, s string) { v.values[variable] = v.text(variable, s) }

// Set makes what a formula gave the value of a variable.
func (v *Values) Set(variable int, x Value) {
	var of ref.Val = types.NullValue
	switch x.Type {
	case TypeInt:
		of = types.Int(x.Int)
	case TypeFloat:
		of = types.Double(x.Float)
	case TypeBool:
		of = types.Bool(x.Bool)
	case TypeText:
		of = types.String(x.Text)
	default:
	}
	v.values[variable] = of
}

// Eval returns the value of the formula. The error says what cannot be evaluated, that it
// takes more than StepLimit, or that it is no number, boolean, text or null.
func (f *Formula) Eval(of *Values) (Value, error) {
	v, err := f.program.eval(&of.activation)
	if err != nil {
		return Value{}, err
	}
	switch v := v.(type) {
	case types.Null:
		return Value{}, nil
	case types.Int:
		return Value{Type: TypeInt, Int: int64(v)}, nil
	case types.Double:
		return Value{Type: TypeFloat, Float: float64(v)}, nil
	case types.Bool:
		return Value{Type: TypeBool, Bool: bool(v)}, nil
	case types.String:
		return Value{Type: TypeText, Text: string(v)}, nil
	case *great, types.Uint:
		return Value{}, errors.New("it gives an integer that does not fit in 64 bits with a sign")
	}
	return Value{}, fmt.Errorf("it gives a value of type %s, not a number, a boolean or a text", v.Type().TypeName())
}

// arithmetic are the operators that formulas have for integers and floats together.
func arithmetic() []string {
	return []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide}
}

// newMixing returns a compiler whose checker knows of them, and that numbers are equal
// whatever their types: the library's wants operands of one type.
func newMixing(vars []variable) (*compiler, error) {
	var with []cel.EnvOption
	for _, name := range arithmetic() {
		with = append(with, cel.Function(name,
			cel.Overload(name+"int_double", []*cel.Type{cel.IntType, cel.DoubleType}, cel.DoubleType),
			cel.Overload(name+"double_int", []*cel.Type{cel.DoubleType, cel.IntType}, cel.DoubleType)))
	}
	var without []*env.Function
	for _, name := range []string{operators.Equals, operators.NotEquals} {
		without = append(without, &env.Function{Name: name})
		with = append(with, cel.Function(name, cel.Overload(name+"any", []*cel.Type{cel.DynType, cel.DynType}, cel.BoolType)))
	}
	return newCompilerOf(vars, without, with)
}

// mix makes floats of two numbers where one of them is.
func mix(args []ref.Val) {
	if len(args) != 2 || isDouble(args[0]) == isDouble(args[1]) {
		return
	}
	for i, v := range args {
		switch v := v.(type) {
		case types.Int:
			args[i] = v.ConvertToType(types.DoubleType)
		case *great:
			args[i] = v.convert("double")
		}
	}
}
