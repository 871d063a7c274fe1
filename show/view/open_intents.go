package view

import (
	"cmp"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/world"
)

// listed returns what becomes of what is open with lists that are none of null.
func listed(o world.Opened) world.Opened {
	o.Groups, o.First = append([]world.Judged{}, o.Groups...), append([]world.Judged{}, o.First...)
	return o
}

// OpenIntents says in a sentence what an apply makes of the intents that are not begun; empty:
// there are none. before says that it is still to come.
func OpenIntents(o *world.Opened, before bool) string {
	one, several := " is open", " are open"
	denied, asked := "would be denied", "would wait for a person"
	if !before {
		one, several, denied, asked = " was open", " were open", "denied", "waiting for a person now"
	}
	waits := ""
	if o.UnderWay > 0 {
		waits = "it waits for " + Count(o.UnderWay, "effect", "") + " under way"
	}
	text := Count(o.Open, "intent", "")
	switch o.Open {
	case 0:
		return waits
	case 1:
		text += one
	default:
		text += several
	}
	if o.Queued > 0 {
		text += ", " + Thousands(o.Queued) + " of them in flight and not begun"
	}
	if waits != "" {
		waits = "; " + waits
	}
	var parts []string
	for i := range o.Groups {
		g := &o.Groups[i]
		part := Thousands(g.Intents) + " " + asked
		if g.Decision == governance.Deny.String() {
			part = Thousands(g.Intents) + " " + denied
		}
		parts = append(parts, part+byRules(g))
	}
	if more := o.Denied + o.Asked - countIntents(o.Groups); more > 0 {
		parts = append(parts, "and "+Thousands(more)+" more by others")
	}
	return text + ": " + cmp.Or(strings.Join(parts, ", "), "all go on") + waits
}

// byRules names what decides about intents.
func byRules(g *world.Judged) string {
	switch {
	case len(g.Rules) > 0:
		return " by policy " + decidedBy(g.Rules, string(g.Code))
	case g.Code != "":
		return " (" + string(g.Code) + ")"
	}
	return ""
}

func countIntents(groups []world.Judged) (n uint64) {
	for i := range groups {
		n += groups[i].Intents
	}
	return n
}

// Stops returns the intents that an apply stops now, listed singly.
func (m *Migration) Stops(most int) Section {
	if m == nil {
		return Section{}
	}
	return StoppedSection(&m.Open, "intents that apply stops now", most)
}

// StoppedSection is a table of the intents that an apply stops; most 0: of all that are listed.
func StoppedSection(o *world.Opened, title string, most int) Section {
	s := Section{Title: title, Total: o.Denied + o.Asked, Header: []string{"key", "cell", "kind", "decision", "why"}}
	for i := range o.First {
		if most != 0 && i == most {
			break
		}
		x := &o.First[i]
		s.Rows = append(s.Rows, []string{Short(*x.Key), x.Cell, x.Kind, x.Decision, x.Reason})
		s.told++
	}
	return s
}
