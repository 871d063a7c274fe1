package governance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
)

// TestAnotherThresholdIsToldInItsDirection, and what nobody can tell is not guessed.
func TestAnotherThresholdIsToldInItsDirection(t *testing.T) {
	for _, c := range []struct {
		was, is string
		want    int
	}{
		{`p.cents > 50000`, `p.cents > 1000`, 1},
		{`p.cents >= 50000`, `p.cents >= 50000.5`, -1},
		{`50000 < p.cents`, `1000 < p.cents`, 1},
		{`p.cents < 10`, `p.cents < 20`, 1},
		{`10 >= p.cents`, `20 >= p.cents`, 1},
		{`!(p.cents > 50000)`, `!(p.cents > 1000)`, -1},
		{`k == "a" && (p.cents > 5 || p.urgent)`, `k == "a" && (p.cents > 6 || p.urgent)`, -1},
		{`a && b && p.n > 5`, `a && b && p.n > 4`, 1},
		{`size(p.to) > 3 && p.to.all(x, x < 9)`, `size(p.to) > 4 && p.to.all(x, x < 9)`, -1},
		{`k in ["a", "b"]`, `k in ["b", "c", "a"]`, 1},
		{`!(k in ["a", "b"])`, `!(k in ["b"])`, 1},
		{`a`, `a && b`, -1},
		{`a`, `a || b`, 1},
		{`a && b`, `a`, 0},
		{`a || b`, `a`, 0},
		{`p.n == 5`, `p.n == 4`, 0},
		{`p.n > 5`, `p.n >= 5`, 0},
		{`p.n > 5`, `p.m > 4`, 0},
		{`p.n > 5 && p.m > 5`, `p.n > 4 && p.m > 6`, 0},
		{`(p.n > 5) == b`, `(p.n > 4) == b`, 0},
		{`b ? p.n > 5 : b`, `b ? p.n > 4 : b`, 0},
		{`p.n > "5"`, `p.n > 4`, 0},
		{`a && a`, `a`, 0},
		{`a`, `b`, 0},
		{`a &&`, `a`, 0},
		{`p.s > "a"`, `p.s > "b"`, -1},
	} {
		require.Equal(t, c.want, governance.Widens(c.was, c.is), "%s, then %s", c.was, c.is)
	}
}
