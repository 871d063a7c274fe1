package worldctl

import (
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// whatIfAnswer says what came of a what-if.
type whatIfAnswer struct {
	Forked     forkedAnswer     `json:"forked"`
	Patched    bool             `json:"patched"`
	Sent       uint64           `json:"sent"` // events that were asked about
	Again      againAnswer      `json:"again"`
	Answered   uint64           `json:"answered"`   // effects, by what was recorded
	Unanswered uint64           `json:"unanswered"` // effects that nothing recorded answers
	Unknown    *unknownAnswer   `json:"unknown"`    // null: all was answered
	Same       bool             `json:"same"`
	Difference *view.Comparison `json:"diff"` // a: the world; b: the fork
}

type forkedAnswer struct {
	At      journal.Seq   `json:"at"` // the last record that both have
	Time    manifest.Tick `json:"time"`
	WorldID string        `json:"world_id"`
	Dir     string        `json:"dir"` // empty: it is gone
}

// againAnswer says what became of the world's inputs after the moment.
type againAnswer struct {
	Events       uint64         `json:"events"`        // that were sent again
	Refused      uint64         `json:"refused"`       // that the fork's manifest does not take
	FirstRefused *refusedAnswer `json:"first_refused"` // null: none
	LeftOut      []leftOut      `json:"left_out"`      // what persons decided
}

type refusedAnswer struct {
	Record journal.Seq `json:"record"` // of the world
	Event  string      `json:"event"`
	Reason string      `json:"reason"`
}

type leftOut struct {
	Kind    journal.Kind `json:"kind"`
	Records uint64       `json:"records"`
}

// unknownAnswer is the first effect that nothing recorded answers.
type unknownAnswer struct {
	Tick       manifest.Tick `json:"tick"` // in which it was asked for
	Cell       string        `json:"cell"`
	Kind       string        `json:"kind"`
	Params     journal.Data  `json:"params"`
	Occurrence uint64        `json:"occurrence"`
}

func whatIfOf(q *question, x *local.Supposed) *whatIfAnswer {
	a := &whatIfAnswer{
		Forked:  forkedAnswer{At: x.Forked.At, Time: x.Began, WorldID: x.Forked.ID, Dir: q.keep},
		Patched: x.Amend != nil, Sent: x.Sent, Answered: x.Answered, Unanswered: uint64(len(x.Unanswered)),
	}
	if !q.only {
		a.Again = againOf(&x.Followed)
	}
	if len(x.Unanswered) > 0 {
		first := &x.Unanswered[0]
		a.Unknown = &unknownAnswer{
			Tick: x.Fork.Status().Time, Cell: first.Cell, Kind: first.Kind, Params: first.Params, Occurrence: first.Occurrence,
		}
	}
	return a
}

func againOf(f *local.Followed) againAnswer {
	a := againAnswer{Events: f.Events, Refused: f.Refused, LeftOut: []leftOut{}}
	if f.First != nil {
		a.FirstRefused = &refusedAnswer{Record: f.First.Record, Event: f.First.Event, Reason: f.First.Err.Error()}
	}
	for _, x := range f.LeftOut {
		a.LeftOut = append(a.LeftOut, leftOut(x))
	}
	return a
}

func (c *cli) showWhatIf(a *whatIfAnswer, was, is *view.Side) {
	if u := a.Unknown; u != nil {
		fmt.Fprintf(c.stdout, "unknown beyond tick %d: in tick %d %s asks for %s %s (occurrence %d), and nothing recorded answers it\n",
			u.Tick-1, u.Tick, u.Cell, u.Kind, view.Describer{Full: c.verbose}.Data(u.Params), u.Occurrence)
	}
	c.showComparison(a.Difference, was, is)
	fmt.Fprintf(c.stdout, "events sent: %d, sent again: %d; effects answered by what was recorded: %d, without an answer: %d\n",
		a.Sent, a.Again.Events, a.Answered, a.Unanswered)
	if f := a.Again.FirstRefused; f != nil {
		c.note("events that the fork did not take: %d, the first is #%d %s: %s", a.Again.Refused, f.Record, f.Event, f.Reason)
	}
	if len(a.Again.LeftOut) > 0 {
		var kinds []string
		for _, x := range a.Again.LeftOut {
			kinds = append(kinds, fmt.Sprintf("%d %s", x.Records, x.Kind))
		}
		c.note("what persons decided is not repeated: %s", strings.Join(kinds, ", "))
	}
	if a.Forked.Dir != "" {
		c.note("the fork is in %s", a.Forked.Dir)
	}
}
