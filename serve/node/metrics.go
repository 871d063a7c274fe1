package node

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
)

// askPatience is how long the store may take to say how it stands, to who asks for metrics.
const askPatience = 2 * time.Second

// metric is one number that is told; all are in metricsOf.
type metric struct {
	name, help string
	labels     []string
	kind       prometheus.ValueType
}

// The metrics of a node. Those of the store are the same whichever node tells them.
const (
	metricWorlds      = "worldkernel_node_worlds"
	metricOwned       = "worldkernel_node_worlds_owned_total"
	metricGiven       = "worldkernel_node_worlds_given_up_total"
	metricFailing     = "worldkernel_node_worlds_failing"
	metricHalted      = "worldkernel_node_worlds_halted"
	metricTakeovers   = "worldkernel_node_takeovers_total"
	metricAppends     = "worldkernel_store_append_seconds"
	metricRecords     = "worldkernel_store_records_total"
	metricConfirms    = "worldkernel_store_confirms_total"
	metricFenced      = "worldkernel_store_fenced_total"
	metricRewound     = "worldkernel_store_rewound_total"
	metricUnknown     = "worldkernel_store_unknown_total"
	metricConnections = "worldkernel_store_connections"
	metricMost        = "worldkernel_store_connections_max"
	metricWaited      = "worldkernel_store_connection_wait_seconds_total"
	metricUp          = "worldkernel_store_up"
	metricNodes       = "worldkernel_store_nodes"
	metricLive        = "worldkernel_store_worlds"
	metricOrphaned    = "worldkernel_store_worlds_orphaned"
	metricOverdue     = "worldkernel_store_worlds_overdue"
	metricAttempts    = "worldkernel_store_attempts"
)

// metricsOf are all that a node tells but for the histogram of appends.
func metricsOf() []metric {
	counter, gauge := prometheus.CounterValue, prometheus.GaugeValue
	return []metric{
		{metricWorlds, "Worlds that are open in this process.", nil, gauge},
		{metricOwned, "Worlds that were opened by this process.", nil, counter},
		{metricGiven, "Worlds that this process has given up, by why: it rests, is wanted by another node, has another owner, cannot go on, or the process ends.", []string{"why"}, counter},
		{metricFailing, "Worlds that could not be opened here or could not go on, and are tried again.", nil, gauge},
		{metricHalted, "Worlds that are halted: the store has lost what they had acknowledged.", nil, gauge},
		{metricTakeovers, "Worlds that were claimed from owners that had died.", nil, counter},
		{metricRecords, "Records that have become durable in the store.", nil, counter},
		{metricConfirms, "Appends that the server did not answer for, so that what became of them was looked for.", nil, counter},
		{metricFenced, "Appends that were refused because the world has another owner.", nil, counter},
		{metricRewound, "Appends that were refused because the store is not what it was.", nil, counter},
		{metricUnknown, "Appends of which it was not found out in time whether they are durable.", nil, counter},
		{metricConnections, "Connections to the database that are in use.", nil, gauge},
		{metricMost, "Connections to the database that there may be at most, beside that of the lease.", nil, gauge},
		{metricWaited, "How long was waited for a connection that was free.", nil, counter},
		{metricUp, "Whether the store has answered this request for metrics.", nil, gauge},
		{metricNodes, "Nodes that are alive, as the store knows.", nil, gauge},
		{metricLive, "Worlds that live in the store.", nil, gauge},
		{metricOrphaned, "Worlds of the store whose owner has died and that nobody has taken over.", nil, gauge},
		{metricOverdue, "Worlds of the store that nobody owns and that should have gone on a minute ago.", nil, gauge},
		{metricAttempts, "Attempts of effects of this process' worlds that the store has, by state: begun, expired (whoever makes it is late or gone), ended (the journal does not have its result yet).", []string{"state"}, gauge},
	}
}

// storeLabel says which store a metric is about.
const storeLabel = "store"

// Metrics returns what this process tells of each of its stores, and of what it does with its worlds.
func (s *Nodes) Metrics() prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	for _, m := range s.all {
		of := newMetrics(func() *Node { return s.nodeOf(m) })
		prometheus.WrapRegistererWith(prometheus.Labels{storeLabel: m.name}, registry).MustRegister(of)
	}
	return registry
}

// metrics implements prometheus.Collector: what a node of a store and that store are about.
type metrics struct {
	node  func() *Node // nil: the store could not be used so far
	descs map[string]*prometheus.Desc
	kinds map[string]prometheus.ValueType
}

func newMetrics(of func() *Node) *metrics {
	m := &metrics{of, make(map[string]*prometheus.Desc), make(map[string]prometheus.ValueType)}
	for _, x := range metricsOf() {
		m.descs[x.name], m.kinds[x.name] = prometheus.NewDesc(x.name, x.help, x.labels, nil), x.kind
	}
	m.descs[metricAppends] = prometheus.NewDesc(metricAppends, "How long records waited until the store had them durable.", nil, nil)
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range m.descs { // order cannot show: they are sorted by name
		to <- d
	}
}

// Collect implements prometheus.Collector. Where the store does not answer it tells what the process knows.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	tell := func(name string, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(m.descs[name], m.kinds[name], v, labels...)
	}
	n := m.node()
	if n == nil {
		tell(metricUp, 0)
		return
	}
	n.tellWorlds(tell)
	s := n.Store.Stats()
	tell(metricTakeovers, float64(s.Takeovers))
	tell(metricRecords, float64(s.Records))
	tell(metricConfirms, float64(s.Confirms))
	tell(metricFenced, float64(s.Fenced))
	tell(metricRewound, float64(s.Rewound))
	tell(metricUnknown, float64(s.Unknown))
	tell(metricConnections, float64(s.PoolUsed))
	tell(metricMost, float64(s.PoolMax))
	tell(metricWaited, s.PoolWaited.Seconds())
	buckets, sum := make(map[float64]uint64), uint64(0)
	for i, times := range s.Appends.Buckets {
		sum += times
		buckets[pglog.LatencyBound(i).Seconds()] = sum
	}
	to <- prometheus.MustNewConstHistogram(m.descs[metricAppends], s.Appends.Count, s.Appends.Sum.Seconds(), buckets)

	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	f, err := n.Store.Figures(ctx)
	if err != nil {
		tell(metricUp, 0)
		return
	}
	tell(metricUp, 1)
	tell(metricNodes, float64(f.Nodes))
	tell(metricLive, float64(f.Worlds))
	tell(metricOrphaned, float64(f.Orphaned))
	tell(metricOverdue, float64(f.Overdue))
	tell(metricAttempts, float64(f.Begun-f.Expired), "begun")
	tell(metricAttempts, float64(f.Expired), "expired")
	tell(metricAttempts, float64(f.Ended), "ended")
}

// Why worlds are given up.
const (
	givenRest   = "rests"
	givenWanted = "wanted"
	givenFenced = "fenced"
	givenFailed = "failed"
	givenEnd    = "node ends"
)

// tellWorlds tells how many worlds there are here, and what became of them.
func (n *Node) tellWorlds(tell func(name string, v float64, labels ...string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	tell(metricWorlds, float64(len(n.has)))
	halted, failing := 0, 0
	for id, p := range n.fails.of { // order cannot show: they are counted
		if n.has[id] != nil {
			continue // it was opened again
		}
		failing++
		if errors.Is(p.why, journal.ErrRewound) {
			halted++
		}
	}
	tell(metricFailing, float64(failing))
	tell(metricHalted, float64(halted))
	tell(metricOwned, float64(n.opened))
	for _, why := range []string{givenRest, givenWanted, givenFenced, givenFailed, givenEnd} {
		tell(metricGiven, float64(n.given[why]), why)
	}
}

// errLost is what anybody may be told of a store that does not answer; the log says more.
var errLost = errors.New("the store does not answer, and what has something to write waits for it")

// Health returns why this node as a whole is not well; nil: it is. A world that cannot go on is tried by
// others, too, and makes none of them unwell.
func (n *Node) Health() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost || n.Store.Lapsed() {
		return errLost
	}
	return nil
}
