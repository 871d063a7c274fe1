package schema

import (
	"fmt"
	"math"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Growth says that checks multiply with each level of a value, as who reads a schema is
// warned of it; "": they do not in values of at most so many levels.
func (s *Schema) Growth(levels int) string {
	at := s.Grows(levels)
	if at == 0 {
		return ""
	}
	return fmt.Sprintf("it evaluates parts twice, and these others twice: the check of a value nested %d deep can take more than %d steps, and refuses it", at, BaseSteps)
}

// Grows returns how deeply nested a value is that takes more than BaseSteps, though each level has
// one member or item. It returns 0 where no value of at most so many levels does: then the
// work grows with the value and not with its depth. Types and constants are not looked at.
func (s *Schema) Grows(levels int) int {
	g := growth{Schema: s, at: make(map[*jsonschema.Schema]int, len(s.all))}
	for i, x := range s.all {
		g.at[x] = i
		g.parts = append(g.parts, parts(x))
	}
	g.weigh(levels)
	n := make([]uint64, len(s.all))
	n[g.at[s.root]] = 1
	var total uint64
	for level := range levels {
		g.spread(n)
		for _, times := range n {
			total = sum(total, times)
		}
		if total > BaseSteps {
			return level + 1
		}
		n = g.deeper(n, levels-level-1)
	}
	return 0
}

// growth counts how often each part of a schema is evaluated on one value of each level.
type growth struct {
	*Schema
	at    map[*jsonschema.Schema]int // of all
	parts [][]part
	worst [][]uint64 // by levels that are left and part: at most so many evaluations
}

// weigh finds what each part can lead to, at most.
func (g *growth) weigh(levels int) {
	none := make([]uint64, len(g.all))
	g.worst = append(g.worst, none)
	for range levels {
		below := g.worst[len(g.worst)-1]
		now := make([]uint64, len(g.all))
		for i := range g.all { // those on the same value come before
			now[i] = 1
			var most uint64
			for _, p := range g.parts[i] {
				if p.into == same {
					now[i] = sum(now[i], now[g.at[p.of]])
				} else {
					most = max(most, below[g.at[p.of]])
				}
			}
			now[i] = sum(now[i], most)
		}
		g.worst = append(g.worst, now)
	}
}

// spread adds the evaluations that follow on the same value.
func (g *growth) spread(n []uint64) {
	for i := len(n) - 1; i >= 0; i-- {
		for _, p := range g.parts[i] {
			if p.into == same && n[i] > 0 {
				j := g.at[p.of]
				n[j] = sum(n[j], n[i])
			}
		}
	}
}

// child is which member of an object, or item of an array, the next level is.
type child struct {
	into into // member, others or item
	name string
}

// deeper returns how often each part is evaluated on the worst child of a value.
func (g *growth) deeper(n []uint64, left int) []uint64 {
	below := g.worst[left]
	worth := map[child]uint64{{into: others}: 0, {into: item}: 0}
	each(g, n, func(c child, p part, times uint64) { worth[c] = sum(worth[c], product(times, below[g.at[p.of]])) })
	worst := child{into: others}
	for c, w := range worth { // order cannot show: the greatest, and the first of several
		if v := worth[worst]; w > v || w == v && (c.into < worst.into || c.into == worst.into && c.name < worst.name) {
			worst = c
		}
	}
	next := make([]uint64, len(n))
	each(g, n, func(c child, p part, times uint64) {
		if c == worst || p.into == match && worst.into != item {
			next[g.at[p.of]] = sum(next[g.at[p.of]], times)
		}
	})
	return next
}

// each calls what is evaluated of each child. Parts for matching names go to those that no
// name is known of.
func each(g *growth, n []uint64, do func(c child, p part, times uint64)) {
	for i, all := range g.parts {
		if n[i] == 0 {
			continue
		}
		seen := make(map[child][]*jsonschema.Schema)
		for _, p := range all {
			c := child{into: p.into, name: p.name}
			if p.into == same || p.into == name {
				continue
			}
			if p.into == match {
				c.into = others
			}
			if !slices.Contains(seen[c], p.of) || p.into == match {
				seen[c] = append(seen[c], p.of)
				do(c, p, n[i])
			}
		}
	}
}

func sum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func product(a, b uint64) uint64 {
	if a != 0 && b > math.MaxUint64/a {
		return math.MaxUint64
	}
	return a * b
}
