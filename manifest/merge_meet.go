package manifest

import "slices"

// meet returns the conflicts of two patches, whose claims are sorted by place.
// Claims of the second that repeat what the first asks for are marked.
func meet(first, second []claim) []Conflict {
	var out []Conflict
	for len(first) > 0 && len(second) > 0 {
		root := first[0].place
		if slices.Compare(second[0].place, root) < 0 {
			root = second[0].place
		}
		n, m := countBelow(first, root), countBelow(second, root)
		if n > 0 && m > 0 {
			out = append(out, meetBelow(first[:n], second[:m])...)
		}
		first, second = first[n:], second[m:]
	}
	return out
}

// countBelow returns how many claims, from the first one on, are at root or below.
func countBelow(claims []claim, root []string) int {
	for i := range claims {
		if !isAt(root, claims[i].place) {
			return i
		}
	}
	return len(claims)
}

// meetBelow is meet for claims that are all at or below that of one of them.
func meetBelow(first, second []claim) []Conflict {
	if slices.EqualFunc(standing(first), standing(second), sameOp) {
		for i := range second {
			second[i].repeated = true
		}
		return nil
	}
	var out []Conflict
	var above []spot
	for len(first) > 0 || len(second) > 0 {
		s := takeSpot(&first, &second)
		for len(above) > 0 && !isAt(above[len(above)-1].place, s.place) {
			above = above[:len(above)-1]
		}
		for _, a := range above {
			out = append(out, a.overlaps(s)...)
		}
		if s.differs {
			out = append(out, conflict(ConflictSamePath, s.of[0], s.of[1]))
		}
		above = append(above, s)
	}
	return out
}

// spot is one place with what two patches claim there: the last claim of each.
type spot struct {
	place   []string
	of      [2]*claim // nil: none
	differs bool      // both claim it, and not the same
}

// takeSpot takes the claims at the first place from the front of both lists.
func takeSpot(first, second *[]claim) spot {
	var s spot
	switch {
	case len(*first) == 0:
		s.place = (*second)[0].place
	case len(*second) == 0 || slices.Compare((*first)[0].place, (*second)[0].place) <= 0:
		s.place = (*first)[0].place
	default:
		s.place = (*second)[0].place
	}
	var alive [2][]claim
	for i, list := range []*[]claim{first, second} {
		n := 0
		for n < len(*list) && slices.Equal((*list)[n].place, s.place) {
			n++
		}
		if alive[i] = standing((*list)[:n]); len(alive[i]) > 0 {
			s.of[i] = &alive[i][len(alive[i])-1]
		}
		*list = (*list)[n:]
	}
	s.differs = s.of[0] != nil && s.of[1] != nil && !slices.EqualFunc(alive[0], alive[1], sameOp)
	return s
}

// overlaps returns the conflicts of what is claimed at s and at a place below.
func (s spot) overlaps(below spot) []Conflict {
	var out []Conflict
	for i := range s.of {
		if upper, lower := s.of[i], below.of[1-i]; upper != nil && lower != nil {
			out = append(out, conflict(ConflictPrefixOverlap, upper, lower))
		}
	}
	return out
}

// conflict returns the conflict of two claims, the upper one first.
func conflict(kind string, upper, lower *claim) Conflict {
	a, b := upper, lower
	if a.patch > b.patch {
		a, b = b, a
	}
	return Conflict{
		Path: Pointer(upper.place...), Kind: kind, Patches: []int{a.patch, b.patch}, Ops: []Op{a.op, b.op},
		Severity: severity(kind, upper, lower),
	}
}

func severity(kind string, upper, lower *claim) string {
	exclude := false
	switch {
	case upper.loose:
	case kind == ConflictSamePath:
		exclude = !lower.loose
	case upper.op.Op == OpSet:
		exclude = !lower.agrees(upper)
	}
	if exclude {
		return SeverityError
	}
	return SeverityWarning
}
