package api

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

func TestCostsAreCountedByKindAndUnit(t *testing.T) {
	c := &counters{costs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "costs"}, []string{"kind", "unit"})}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.costs)
	for range 2 {
		c.uses("model.chat", &receipt.Cost{Calls: 1, Tokens: 5, Micros: 3})
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
	}
	require.Equal(t, map[string]float64{"model.chat calls": 2, "model.chat tokens": 10, "model.chat micros": 6}, got)
}
