package view

import (
	"context"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// Graph is how records follow from each other. Causes come before effects.
type Graph struct {
	Nodes []GraphNode `json:"nodes"`
	Edges []GraphEdge `json:"edges"`
	Whole bool        `json:"whole"` // false: there are more records than were asked for
}

// GraphNode is a record of a graph.
type GraphNode struct {
	ID   journal.Seq   `json:"id"`
	Kind journal.Kind  `json:"kind"`
	Cell string        `json:"cell"` // that it concerns, several joined by a comma; empty: none
	Time manifest.Tick `json:"time"`
}

// GraphEdge leads from a record to its consequence.
type GraphEdge struct {
	From journal.Seq `json:"from"` // the cause
	To   journal.Seq `json:"to"`
}

// Graph returns what a record followed from, and what follows from it, up to so
// many links away and so many records; 0 is no bound.
func (j Journal) Graph(ctx context.Context, of *Entry, links, most uint64) (*Graph, error) {
	g := &Graph{Nodes: []GraphNode{}, Edges: []GraphEdge{}}
	full := func() bool { return most != 0 && uint64(len(g.Nodes)) == most }
	var effect journal.Seq
	for e, err := range j.Causes(of) {
		if err != nil {
			return nil, err
		}
		if links != 0 && uint64(len(g.Nodes)) > links {
			break // the record itself is the first
		}
		if full() {
			return g.inOrder(), nil
		}
		if g.add(j, e); effect != 0 {
			g.Edges = append(g.Edges, GraphEdge{e.ID, effect})
		}
		effect = e.ID
	}
	g.inOrder()
	for x, err := range j.Consequences(ctx, of, links) {
		if err != nil {
			return nil, err
		}
		if full() {
			return g, nil
		}
		g.add(j, x.Entry)
		g.Edges = append(g.Edges, GraphEdge{x.Cause, x.ID})
	}
	g.Whole = true
	return g, nil
}

func (g *Graph) add(j Journal, e *Entry) {
	g.Nodes = append(g.Nodes, GraphNode{e.ID, e.Kind, strings.Join(j.Cells(e), ", "), e.Time})
}

// inOrder turns round what was gathered from the effect to its causes.
func (g *Graph) inOrder() *Graph {
	slices.Reverse(g.Nodes)
	slices.Reverse(g.Edges)
	return g
}

const lookBack = 10_000 // records in which the last event is looked for

// LastBeginning reads the last record that something began with: the last event that
// was submitted or, where the last records hold none, the last input.
func (j Journal) LastBeginning() (*Entry, error) {
	end := j.End()
	var input *Entry
	for id := end; id > 0 && (input == nil || end-id < lookBack); id-- {
		e, err := j.Entry(id)
		switch {
		case err != nil:
			return nil, err
		case e.Kind == journal.KindSubmitted:
			return e, nil
		case e.Kind.Input() && input == nil:
			input = e
		}
	}
	return input, nil
}
