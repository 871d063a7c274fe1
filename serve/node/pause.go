package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// What cannot be opened here, or not go on, is tried again after a while that doubles.
	firstPause, longPause = 2 * time.Second, 5 * time.Minute
	// restingBytes is how much of it others are told.
	restingBytes = 4 << 10
)

// pauses are the worlds that rest because they cannot go on here, by their ids.
type pauses struct {
	now func() time.Time
	of  map[string]*pause
}

// pause is how long a world is left to others.
type pause struct {
	until time.Time
	next  time.Duration
	why   error
}

// beginPause has a world rest, and returns for how long.
func (p *pauses) beginPause(id string, why error) time.Duration {
	x := p.of[id]
	if x == nil {
		x = &pause{next: firstPause}
		p.of[id] = x
	}
	wait := x.next
	x.why, x.until, x.next = why, p.now().Add(wait), min(2*wait, longPause)
	return wait
}

// why returns why a world rests; empty: it does not.
func (p *pauses) why(id string) string {
	if x := p.of[id]; x != nil && p.now().Before(x.until) {
		return fmt.Sprintf("%v; it is tried again %s", x.why, x.until.UTC().Format(time.RFC3339))
	}
	return ""
}

// resting returns the worlds that rest, by their ids.
func (p *pauses) resting() (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(p.of)) {
		if p.why(id) != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// describeResting is what others are describeResting of the worlds that rest, a line each.
func (p *pauses) describeResting() string {
	var b strings.Builder
	for _, id := range p.resting() {
		line := strings.Join(strings.Fields(id+": "+p.why(id)), " ")
		if b.Len()+len(line) > restingBytes {
			b.WriteString("and more\n")
			break
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// goesOn notes that a world was opened: it is forgotten that it rested once it has gone on for as
// long as it would rest next.
func (p *pauses) goesOn(id string) {
	if x := p.of[id]; x != nil {
		x.until = p.now()
	}
}

// forget forgets what has gone on, here or elsewhere, but for what is being opened.
func (p *pauses) forget(opens func(id string) bool) {
	for id, x := range p.of { // order cannot show: it is a set
		if p.now().Sub(x.until) > x.next && !opens(id) {
			delete(p.of, id)
		}
	}
}
