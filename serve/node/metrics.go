package node

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/worldkernel/worldkernel/journal"
)

// askPatience is how long the store may take to say how it stands, to who asks for metrics.
const askPatience = 2 * time.Second

// storeLabel says which store a metric is about.
const storeLabel = "store"

// Metrics returns the metrics of this process: of each of its stores, and of its worlds.
func (s *Nodes) Metrics() prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	for _, m := range s.all {
		prometheus.WrapRegistererWith(prometheus.Labels{storeLabel: m.name}, registry).MustRegister(metrics(func() *Node { return s.nodeOf(m) }))
	}
	return registry
}

// metrics implements prometheus.Collector: what a node of a store and that store are about. It returns nil where the store
// could not be used so far.
type metrics func() *Node

// Describe implements prometheus.Collector.
func (metrics) Describe(chan<- *prometheus.Desc) {} // each is described as it is told

// figures are told: counts that only grow, and numbers that are as they are now. Each has a name, a help and, where
// there are several of a name, a label with its value.
type figures struct{ count, gauge figure }

type figure func(name, help string, v float64, label ...string)

func figuresTo(to chan<- prometheus.Metric) figures {
	of := func(kind prometheus.ValueType) figure {
		return func(name, help string, v float64, label ...string) {
			half := len(label) / 2
			to <- prometheus.MustNewConstMetric(prometheus.NewDesc("worldkernel_"+name, help, label[:half], nil), kind, v, label[half:]...)
		}
	}
	return figures{of(prometheus.CounterValue), of(prometheus.GaugeValue)}
}

// Collect implements prometheus.Collector. Where the store does not answer it tells what the process knows.
func (m metrics) Collect(to chan<- prometheus.Metric) {
	const upHelp, attemptsHelp = "Whether the store has answered this request for metrics.", "Attempts of effects of this process' worlds that the store has, by state: begun, expired (whoever makes it is late or gone), ended (the journal does not have its result yet)."
	tell := figuresTo(to)
	n := m()
	if n == nil {
		tell.gauge("store_up", upHelp, 0)
		return
	}
	n.tellWorlds(tell)
	s := n.Store.Stats()
	tell.count("node_takeovers_total", "Worlds that were claimed from owners that had died.", float64(s.Takeovers))
	tell.count("store_records_total", "Records that have become durable in the store.", float64(s.Records))
	tell.count("store_confirms_total", "Appends that the server did not answer for, so that what became of them was looked for.", float64(s.Confirms))
	tell.count("store_fenced_total", "Appends that were refused because the world has another owner.", float64(s.Fenced))
	tell.count("store_rewound_total", "Appends that were refused because the store is not what it was.", float64(s.Rewound))
	tell.count("store_unknown_total", "Appends of which it was not found out in time whether they are durable.", float64(s.Unknown))
	tell.gauge("store_connections", "Connections to the database that are in use.", float64(s.PoolUsed))
	tell.gauge("store_connections_max", "Connections to the database that there may be at most, beside that of the lease.", float64(s.PoolMax))
	tell.count("store_connection_wait_seconds_total", "How long was waited for a connection that was free.", s.PoolWaited.Seconds())
	appends := prometheus.NewDesc("worldkernel_store_append_seconds", "How long records waited until the store had them durable.", nil, nil)
	to <- prometheus.MustNewConstHistogram(appends, s.Appends.Count, s.Appends.Sum.Seconds(), s.Appends.UpTo())

	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	f, err := n.Store.Figures(ctx)
	if err != nil {
		tell.gauge("store_up", upHelp, 0)
		return
	}
	tell.gauge("store_up", upHelp, 1)
	tell.gauge("store_nodes", "Nodes that are alive, as the store knows.", float64(f.Nodes))
	tell.gauge("store_worlds", "Worlds that live in the store.", float64(f.Worlds))
	tell.gauge("store_worlds_orphaned", "Worlds of the store whose owner has died and that nobody has taken over.", float64(f.Orphaned))
	tell.gauge("store_worlds_overdue", "Worlds of the store that nobody owns and that should have gone on a minute ago.", float64(f.Overdue))
	tell.gauge("store_attempts", attemptsHelp, float64(f.Begun-f.Expired), "state", "begun")
	tell.gauge("store_attempts", attemptsHelp, float64(f.Expired), "state", "expired")
	tell.gauge("store_attempts", attemptsHelp, float64(f.Ended), "state", "ended")
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
func (n *Node) tellWorlds(tell figures) {
	n.mu.Lock()
	defer n.mu.Unlock()
	tell.gauge("node_worlds", "Worlds that are open in this process.", float64(len(n.has)))
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
	tell.gauge("node_worlds_failing", "Worlds that could not be opened here or could not go on, and are tried again.", float64(failing))
	tell.gauge("node_worlds_halted", "Worlds that are halted: the store has lost what they had acknowledged.", float64(halted))
	tell.count("node_worlds_owned_total", "Worlds that were opened by this process.", float64(n.opened))
	for _, why := range []string{givenRest, givenWanted, givenFenced, givenFailed, givenEnd} {
		tell.count("node_worlds_given_up_total", "Worlds that this process has given up, by why: it rests, is wanted by another node, has another owner, cannot go on, or the process ends.", float64(n.given[why]), "why", why)
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
