package governance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
)

func formulas(t testing.TB) *governance.Formulas {
	t.Helper()
	s, err := governance.NewFormulas(
		governance.Variable{Name: "state", Type: governance.TypeAny},
		governance.Variable{Name: "cell.key", Type: governance.TypeText},
		governance.Variable{Name: "share", Type: governance.TypeFloat},
		governance.Variable{Name: "tick", Type: governance.TypeInt},
	)
	require.NoError(t, err)
	return s
}

func TestFormulasOverData(t *testing.T) {
	s := formulas(t)
	data, err := canon.FromJSON([]byte(`{"coins": 3, "rate": 0.5, "status": "I", "of": [1, 2], "none": null, "much": 9223372036854775808}`))
	require.NoError(t, err)
	v := s.Values()
	v.SetData(0, data)
	v.SetText(1, "ada")
	v.Set(2, governance.Value{Type: governance.TypeFloat, Float: 0.25})
	v.Set(3, governance.Value{Type: governance.TypeInt, Int: 7})
	integer := func(n int64) governance.Value { return governance.Value{Type: governance.TypeInt, Int: n} }
	float := func(x float64) governance.Value { return governance.Value{Type: governance.TypeFloat, Float: x} }
	boolean := func(is bool) governance.Value { return governance.Value{Type: governance.TypeBool, Bool: is} }
	for expr, want := range map[string]governance.Value{
		`state.status == "I" && cell.key.startsWith("a")`: boolean(true),
		`state.coins`:               integer(3),
		`state.coins + 1`:           integer(4),
		`state.coins * state.rate`:  float(1.5),
		`state.coins / 2.0`:         float(1.5),
		`1 - share`:                 float(0.75),
		`share * tick`:              float(1.75),
		`share == 1 || tick != 0.5`: boolean(true),
		`tick / 2`:                  integer(3),
		`share > 0 ? 1.5 : share`:   float(1.5),
		`state.none`:                {},
		`has(state.lost)`:           boolean(false),
		`state.much * 0.5`:          float(1 << 62),
		`state.of.exists(x, x > 1)`: boolean(true),
		`state.status`:              {Type: governance.TypeText, Text: "I"},
	} {
		f, err := s.Compile(expr)
		require.NoError(t, err, expr)
		got, err := f.Eval(v)
		require.NoError(t, err, expr)
		require.Equal(t, want, got, expr)
		if f.Type() != governance.TypeAny {
			require.Equal(t, f.Type(), got.Type, expr)
		}
	}
}

func TestFormulasThatGiveNothingSayWhy(t *testing.T) {
	s := formulas(t)
	data, err := canon.FromJSON([]byte(`{"of": [1, 2], "status": "I", "much": 9223372036854775808}`))
	require.NoError(t, err)
	v := s.Values()
	v.SetData(0, data)
	for expr, want := range map[string]string{
		`state.lost`:       "no such key: lost",
		`state.of`:         "it gives a value of type list, not a number, a boolean or a text",
		`state.much`:       "it gives an integer that does not fit in 64 bits with a sign",
		`state.status * 2`: "no such overload",
	} {
		f, err := s.Compile(expr)
		require.NoError(t, err, expr)
		_, err = f.Eval(v)
		require.EqualError(t, err, want, expr)
	}
	for _, expr := range []string{`lost`, `cell`, `1 +`, `[1]`, `share && true`, `"a" * 2`} {
		_, err := s.Compile(expr)
		var fault *governance.PolicyError
		require.ErrorAs(t, err, &fault, expr)
	}
	f, err := s.Compile(`share * 2`)
	require.NoError(t, err)
	require.True(t, f.Uses(2))
	require.False(t, f.Uses(3))
}

func TestPoliciesDoNotMixNumbers(t *testing.T) {
	require.Error(t, governance.CheckPolicy(`intent.step * 0.5 > 1.0`))
}

func BenchmarkFormula(b *testing.B) {
	s := formulas(b)
	f, err := s.Compile(`state.status == "I"`)
	require.NoError(b, err)
	data, err := canon.FromJSON([]byte(`{"status": "I", "coins": 12, "x": 3, "y": 4}`))
	require.NoError(b, err)
	v := s.Values()
	b.ReportAllocs()
	for b.Loop() {
		v.SetData(0, data)
		if _, err := f.Eval(v); err != nil {
			b.Fatal(err)
		}
	}
}
