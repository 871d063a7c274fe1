package measure_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/show/measure"
	"github.com/worldkernel/worldkernel/world/source"
)

// FuzzRead: no document ends the process, what is wrong has a place, and what is read compiles or says why.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"measures: {a: {cells: x, where: state.y == 1}, b: a / 2, c: {cell: x/1, value: state, type: string}}\nat: [every 3, 5, end]\nlimits: {values: 3, gas: 4}",
		"measures:\n  w: {cells: [x, y], value: state.v, take: [mean, p90, gini], count: [1, a, true], hist: {from: 0, to: 1.5, bins: 3}}\n",
		"measures: {s: {star: f.star, gives: {a: int, b: float}}}\nat: 7", "experiment: 1\nmeasures: {a: {cells: x}}\nseeds: 3", "a: *b", "- 1", "measures: {a: {cells: {b: c}}}",
		"measures: {? [a] : b, 1: 2, a: [1]}\nat: {}", "at: every 0\nmeasures: {a: &x {cells: y}, b: *x}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := measure.Parse("m.yaml", data)
		if err != nil {
			var wrong *source.Error
			require.ErrorAs(t, err, &wrong)
			for _, fault := range wrong.Faults {
				require.Positive(t, fault.Line)
				require.Positive(t, fault.Column)
			}
			return
		}
		set, err := measure.Compile(doc.Specs, measure.Env{})
		if err != nil {
			var wrong *measure.DocumentError
			require.ErrorAs(t, err, &wrong)
			return
		}
		row, err := set.Eval(cellsOf(t, "x/1", `{"v": 1, "y": 2}`, "y/2", `3`), 5)
		if err == nil {
			require.Len(t, row, len(set.Columns()))
		}
	})
}
