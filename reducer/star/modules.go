package star

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// mathModule offers the functions of floats whose results are the same everywhere,
// because IEEE 754 prescribes every bit of them.
func mathModule() *starlarkstruct.Module {
	return &starlarkstruct.Module{Name: "math", Members: starlark.StringDict{
		"ceil":  starlark.NewBuiltin("ceil", one(rounded(math.Ceil))),
		"floor": starlark.NewBuiltin("floor", one(rounded(math.Floor))),
		"round": starlark.NewBuiltin("round", one(rounded(math.Round))),
		"sqrt":  starlark.NewBuiltin("sqrt", one(root)),
	}}
}

// rounded makes a function from numbers to integers.
func rounded(round func(float64) float64) func(starlark.Value) (starlark.Value, error) {
	return func(v starlark.Value) (starlark.Value, error) {
		f, ok := v.(starlark.Float)
		if !ok {
			return starlark.NumberToInt(v)
		}
		return starlark.NumberToInt(starlark.Float(round(float64(f))))
	}
}

func root(v starlark.Value) (starlark.Value, error) {
	f, ok := starlark.AsFloat(v)
	if !ok {
		return nil, fmt.Errorf("got %s, want int or float", v.Type())
	}
	if !(f >= 0) || math.IsInf(f, 1) {
		return nil, fmt.Errorf("there is no square root of %v", v)
	}
	return starlark.Float(math.Sqrt(f)), nil
}

// jsonModule turns data into JSON text and back, by way of canonical bytes.
func (m *meter) jsonModule() *starlarkstruct.Module {
	return &starlarkstruct.Module{Name: "json", Members: starlark.StringDict{
		"encode": starlark.NewBuiltin("encode", one(m.encodeJSON)),
		"decode": starlark.NewBuiltin("decode", m.decodeJSON),
	}}
}

func (m *meter) encodeJSON(v starlark.Value) (starlark.Value, error) {
	m.payText(v)
	e := encoder{m: m}
	data, err := e.encode(nil, "value", v, m.value, "limits.value")
	if err != nil {
		return nil, err
	}
	text, err := canon.ToJSON(data)
	if err != nil {
		return nil, err
	}
	m.walk(len(text))
	m.room("string", uint64(len(text)))
	return starlark.String(text), nil
}

func (m *meter) decodeJSON(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	var s string
	var fallback starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &s, "default?", &fallback); err != nil {
		return nil, err
	}
	// The text is copied at each level that it nests, and digits cost their square.
	run := uint64(longestRun(s))
	cost := pieceSteps + uint64(len(s))/2 + run/16*(run/16)
	m.spend(cost)
	data, err := canon.FromPrintedJSON([]byte(s))
	if err != nil {
		if fallback != nil {
			return fallback, nil
		}
		return nil, err
	}
	d := decoder{m: m}
	return d.decode("text", data)
}

// longestRun returns the length of the longest run of digits in s.
func longestRun(s string) int {
	longest, run := 0, 0
	for _, c := range []byte(s) {
		if run++; c < '0' || c > '9' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}
