// Package measure says in numbers what the cells of a world are at a tick: named measures, which are
// compiled once and look at each cell once. It is a part of worldctl, and not an API.
//
// A measure is one of these, in the YAML of a document, which [Decode] reads:
//
//	infected: {cells: agent, where: state.status == "I"}                 how many cells
//	wealth:   {cells: agent, value: state.coins, take: [mean, gini, p90]}  statistics
//	mean:     {cells: agent, value: state.coins, take: mean}             one of them
//	status:   {cells: agent, value: state.status, count: [S, I, R]}      how many of each
//	age:      {cells: agent, value: state.age, hist: {from: 0, to: 100, bins: 10}}
//	price:    {cell: market/main, value: state.price}                    of one cell
//	share:    infected / 1000                                            of measures before it
//	groups:   {star: groups.star, cells: agent, type: int}                 what measure(cells, tick) gives
//
// where and value are CEL over one cell (state, cell.key, cell.reducer, cell.id, tick), and
// expr, or a text alone, is CEL over the columns of the measures before it, and tick. They are
// [governance.Formula]: bounded, and integers and floats mix. A program is a [star.Function]:
// it goes through the cells by name, as often as it likes, and is bounded by [Limits].
// docs/measures.md is for who writes them.
//
// Cells that have no state are not seen. A value that is null counts for nothing, and one
// that is not there, or of a wrong type, is an [Error]; true is 1 and false 0. Statistics are
// computed exactly and rounded once: neither the order of the cells nor the machine shows in
// them. Of no values count and sum are 0, and all others null; an expression that names a null
// is null.
package measure
