// Package kit is what models in Go are made of: draws, grids, networks and schedules.
// Models in Starlark have the same in the modules @random/v1, @grid/v1, @network/v1 and
// @schedule/v1, with the same outcome to the bit. docs/models.md is for who writes them.
//
// # The same bits on every machine
//
// A float is computed by +, -, *, / and square roots alone, each rounded as IEEE 754
// says; logarithms and quantiles are made of these. Go may compute x*y + z with one
// rounding on some machines: so every product here is converted, float64(x*y), which
// forbids it. internal/lint holds both.
//
// # What a draw takes
//
// Each float takes one number below 2^52 of its [Source], by inversion: it is the
// quantile of the distribution at a place that this number says. So two runs with equal
// seeds that differ in a parameter of a distribution draw floats of which each is what
// the other is, under the other parameter. An integer takes one number below as many as
// there are.
package kit

// Source is where draws come from: *reducer.Context, whose numbers depend on the
// world's seed, the cell and the step, or a [Stream].
type Source interface {
	// Random returns a number in [0, n), each equally likely. Where n is 0, which is
	// how this package says that there is nothing to draw from, a Context fails the
	// step, and a Stream returns 0.
	Random(n uint64) uint64
}
