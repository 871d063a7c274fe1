package api

import (
	"bytes"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// counters count what has happened in one world since it is served. They are derived from its
// journal.
type counters struct {
	registry  *prometheus.Registry
	events    prometheus.Counter
	steps     *prometheus.CounterVec // by outcome
	decisions *prometheus.CounterVec // by decision
	outcomes  *prometheus.CounterVec // of intents, by outcome
	receipts  *prometheus.CounterVec // by status
	costs     *prometheus.CounterVec // by kind of effect and unit
	late      prometheus.Counter
	warnings  prometheus.Counter
	inDoubt   prometheus.Gauge
	snapshots prometheus.Histogram
	replays   prometheus.Histogram
}

func newCounters(h *hosted) counters {
	registry := prometheus.NewRegistry()
	ofWorld := prometheus.WrapRegistererWith(prometheus.Labels{"world": h.id}, registry)
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		ofWorld.MustRegister(v)
		return v
	}
	one := func(name, help string) prometheus.Counter { return vec(name, help).WithLabelValues() }
	seconds := func(name, help string) prometheus.Histogram {
		v := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 4, 10)})
		ofWorld.MustRegister(v)
		return v
	}
	c := counters{
		registry:  registry,
		events:    one("worldkernel_events_submitted_total", "Events taken from outside."),
		steps:     vec("worldkernel_cell_steps_total", "Steps of cells, by outcome: pure, success or failed.", "outcome"),
		decisions: vec("worldkernel_intent_decisions_total", "Decisions about intents: allow, deny, require_approval and so on.", "decision"),
		outcomes:  vec("worldkernel_intent_outcomes_total", "Outcomes of attempts and of intents that ended without one.", "outcome"),
		receipts:  vec("worldkernel_receipts_total", "Receipts of the outside, by status; late ones are apart.", "status"),
		costs:     vec("worldkernel_effect_cost_total", "What effects used as their receipts say, by kind and unit: calls, tokens, bytes, and micros, millionths of a unit of money.", "kind", "unit"),
		late:      one("worldkernel_receipts_late_total", "Receipts for attempts that had been given up."),
		warnings:  one("worldkernel_confirmation_warnings_total", "Recorded results that were used though the outside shows something else."),
		inDoubt: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "worldkernel_intents_in_doubt", Help: "Intents of which nobody can tell whether they happened.",
		}),
		snapshots: seconds("worldkernel_snapshot_seconds", "How long snapshots took that were asked for here."),
		replays:   seconds("worldkernel_replay_seconds", "How long verifications took that were asked for here, which replay the world."),
	}
	ofWorld.MustRegister(c.inDoubt, &syncs{h.Local, prometheus.NewDesc("worldkernel_journal_sync_seconds",
		"How long appends waited for the journal to be synced.", nil, nil)}, prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "worldkernel_effects_unrecorded_total",
		Help: "Attempts that were made because nothing recorded answers them, where recordings answer.",
	}, func() float64 { return float64(h.Local.Missed()) }))
	return c
}

// uses counts what an effect of a kind used.
func (c *counters) uses(kind string, cost *receipt.Cost) {
	for unit, n := range map[string]uint64{"calls": cost.Calls, "tokens": cost.Tokens, "bytes": cost.Bytes, "micros": cost.Micros} {
		if n > 0 { // order cannot show: each has a counter of its own
			c.costs.WithLabelValues(kind, unit).Add(float64(n))
		}
	}
}

// timed begins to time something; what it returns ends that.
func timed(what prometheus.Histogram) (stop func()) {
	began := now()
	return func() { what.Observe(now().Sub(began).Seconds()) }
}

// syncs tells how long the syncs of a world's store took.
type syncs struct {
	world *local.World
	desc  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (s *syncs) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

// Collect implements prometheus.Collector.
func (s *syncs) Collect(to chan<- prometheus.Metric) {
	took := s.world.StoreStats().SyncTook
	to <- prometheus.MustNewConstHistogram(s.desc, took.Count, took.Sum.Seconds(), took.UpTo())
}

// showMetrics answers with all metrics, up to what was durable when it was asked. How many intents are in
// doubt in a world that is busy is as it was last seen.
func showMetrics(c *call) error {
	var all prometheus.Gatherers
	wait := newList(c.Context())
	for h := range c.server.worlds.each() {
		_, _ = h.counted.countUp(c.Context()) // where the world has ended, that is all there will be
		if err := c.Context().Err(); err != nil {
			return err
		}
		if status, ok := askWorld(wait, h, h.Local.Status); ok {
			h.counted.inDoubt.Set(float64(status.Intents[receipt.StateInDoubt]))
		}
		all = append(all, h.counted.registry)
	}
	if c.server.cfg.Metrics != nil {
		all = append(all, c.server.cfg.Metrics)
	}
	families, err := all.Gather()
	if err != nil {
		return err
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var out bytes.Buffer
	enc := expfmt.NewEncoder(&out, format)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	return c.send(http.StatusOK, string(format), out.Bytes())
}
