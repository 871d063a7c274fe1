package measure_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// BenchmarkPass is what measures cost a cell, in time of the processor: others may use the machine.
func BenchmarkPass(b *testing.B) {
	const n = 10_000
	var cells given
	for i := range n {
		data, err := canon.Marshal(map[string]any{"coins": i % 97, "rate": float64(i) / 7, "status": string("SIR"[i%3]), "x": i})
		require.NoError(b, err)
		cells.names, cells.states = append(cells.names, fmt.Sprint("agent/", i)), append(cells.states, data)
	}
	for _, c := range []struct{ name, text string }{
		{"count", `m: {cells: agent}`},
		{"where", `m: {cells: agent, where: 'state.status == "I"'}`},
		{"mean", `m: {cells: agent, value: state.coins, take: mean}`},
		{"all", `m: {cells: agent, value: state.coins, take: [sum, mean, min, max, median, p90, variance, sd, gini]}`},
		{"three", `{a: {cells: agent, where: 'state.status == "I"'}, b: {cells: agent, value: state.coins, take: [mean, gini]}, c: {cells: agent, value: state.rate, take: mean}}`},
		{"none", `m: {cells: market}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			set := compile(b, c.text)
			before := used()
			for b.Loop() {
				_, err := set.Eval(&cells, 1)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(used()-before)/float64(b.N)/n, "cpu-ns/cell")
		})
	}
}

func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
