package api

import (
	"bytes"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// metrics count what has happened in the worlds since the server was made. They are
// derived from the journals.
type metrics struct {
	registry  *prometheus.Registry
	snapshots *prometheus.HistogramVec
	replays   *prometheus.HistogramVec
	worlds    []*watched
}

// counters are what is counted of one world.
type counters struct {
	events    prometheus.Counter
	steps     *prometheus.CounterVec // by outcome
	decisions *prometheus.CounterVec // by decision
	outcomes  *prometheus.CounterVec // of intents, by outcome
	receipts  *prometheus.CounterVec // by status
	costs     *prometheus.CounterVec // by kind of effect and unit
	late      prometheus.Counter
	warnings  prometheus.Counter
	inDoubt   prometheus.Gauge
}

// worldLabel is the id of a world.
const worldLabel = "world"

func newMetrics(worlds []*hosted) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{worldLabel}, labels...))
		m.registry.MustRegister(v)
		return v
	}
	seconds := func(name, help string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}, []string{worldLabel})
		m.registry.MustRegister(v)
		return v
	}
	events := vec("worldkernel_events_submitted_total", "Events taken from outside.")
	steps := vec("worldkernel_cell_steps_total", "Steps of cells, by outcome: pure, success or failed.", "outcome")
	decisions := vec("worldkernel_intent_decisions_total", "Decisions about intents: allow, deny, require_approval and so on.", "decision")
	outcomes := vec("worldkernel_intent_outcomes_total", "Outcomes of attempts and of intents that ended without one.", "outcome")
	receipts := vec("worldkernel_receipts_total", "Receipts of the outside, by status; late ones are apart.", "status")
	costs := vec("worldkernel_effect_cost_total", "What effects used as their receipts say, by kind and unit: calls, tokens, bytes, and micros, millionths of a unit of money.", "kind", "unit")
	late := vec("worldkernel_receipts_late_total", "Receipts for attempts that had been given up.")
	warnings := vec("worldkernel_confirmation_warnings_total", "Recorded results that were used though the outside shows something else.")
	doubt := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "worldkernel_intents_in_doubt", Help: "Intents of which nobody can tell whether they happened.",
	}, []string{worldLabel})
	m.registry.MustRegister(doubt)
	m.snapshots = seconds("worldkernel_snapshot_seconds", "How long snapshots took that were asked for here.")
	m.replays = seconds("worldkernel_replay_seconds", "How long verifications took that were asked for here, which replay the world.")
	for _, h := range worlds {
		by := prometheus.Labels{worldLabel: h.id}
		m.worlds = append(m.worlds, newWatched(h, counters{
			events: events.With(by), steps: steps.MustCurryWith(by), decisions: decisions.MustCurryWith(by),
			outcomes: outcomes.MustCurryWith(by), receipts: receipts.MustCurryWith(by), costs: costs.MustCurryWith(by), late: late.With(by),
			warnings: warnings.With(by), inDoubt: doubt.With(by),
		}))
		m.registry.MustRegister(&syncs{h.Local, prometheus.NewDesc("worldkernel_journal_sync_seconds",
			"How long appends waited for the journal to be synced.", nil, by)}, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "worldkernel_effects_unrecorded_total", ConstLabels: by,
			Help: "Attempts that were made because nothing recorded answers them, where effects are recorded or live.",
		}, func() float64 { return float64(h.Local.Missed()) }))
	}
	return m
}

// uses counts what an effect of a kind used.
func (c *counters) uses(kind string, cost *receipt.Cost) {
	for unit, n := range map[string]uint64{"calls": cost.Calls, "tokens": cost.Tokens, "bytes": cost.Bytes, "micros": cost.Micros} {
		if n > 0 { // order cannot show: each has a counter of its own
			c.costs.WithLabelValues(kind, unit).Add(float64(n))
		}
	}
}

// time begins to time something; what it returns ends that.
func (m *metrics) time(what *prometheus.HistogramVec, world string) (stop func()) {
	began := now()
	return func() { what.WithLabelValues(world).Observe(now().Sub(began).Seconds()) }
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
	buckets, sum := make(map[float64]uint64), uint64(0)
	for i, n := range took.Buckets {
		sum += n
		buckets[store.LatencyBound(i).Seconds()] = sum
	}
	to <- prometheus.MustNewConstHistogram(s.desc, took.Count, took.Sum.Seconds(), buckets)
}

// showMetrics answers with all metrics, up to what was durable when it was asked.
func showMetrics(c *call) error {
	m := c.server.metrics
	for _, w := range m.worlds {
		_, _ = w.countUp(c.Context()) // where the world has ended, that is all there will be
		if err := c.Context().Err(); err != nil {
			return err
		}
	}
	families, err := m.registry.Gather()
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
