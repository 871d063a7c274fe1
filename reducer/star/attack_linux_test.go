package star_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// coder draws programs.
type coder struct {
	*attack.Attempt
	functions int // f0, f1, ... are there
}

// module is what reducers have found to keep something in, from one step to the next.
const module = `
L = []
D = {}
S = set()
N = [0]
def keep(v, x=[], y={}):
    x.append(v)
    y[str(v)] = v
    return len(x) + len(y)
def counter():
    n = [0]
    def next():
        n[0] += 1
        return n[0]
    return next
NEXT = counter()
F = lambda x=[]: x
`

// program draws a program that works for ever, or that ends and says what it has.
func (c *coder) program() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(operands)), func(name string) bool { return strings.Contains(operands[name], "<< 4000") || name == "half" })
	var s strings.Builder
	s.WriteString(searchPrelude + module + "def reduce(ctx, state, event):\n    i = 3\n")
	for _, v := range []string{"a", "b", "c", "d"} {
		fmt.Fprintf(&s, "    %s = %s\n", v, attack.Pick(c.Attempt, operands[attack.Pick(c.Attempt, names...)], operands[attack.Pick(c.Attempt, names...)], operands[attack.Pick(c.Attempt, names...)], "[]", "{}", "set()"))
	}
	for range c.IntN(3) {
		fmt.Fprintf(&s, "    def f%d(a, b=None):\n        c, d = b, a\n", c.functions)
		c.block(&s, "        ", 2)
		fmt.Fprintf(&s, "        return %s\n", c.expr(2))
		c.functions++
	}
	if c.Chance(3) {
		fmt.Fprintf(&s, "    for i in range(%d):\n", 1+c.IntN(20))
		c.block(&s, "        ", 2)
		s.WriteString("    return [type(a), str(b)[:99], len(str(c)), d == a, L, N, NEXT(), F(), keep(1), D, str(S)]\n")
		return s.String()
	}
	s.WriteString("    while True:\n        i += 1\n")
	c.block(&s, "        ", 2)
	return s.String()
}

// block draws some statements.
func (c *coder) block(s *strings.Builder, indent string, depth int) {
	for range 1 + c.IntN(3) {
		v, e := c.variable(), c.expr(2)
		switch c.IntN(12) {
		case 0, 1, 2:
			fmt.Fprintf(s, "%s%s = %s\n", indent, v, e)
		case 3:
			fmt.Fprintf(s, "%s%s %s= %s\n", indent, v, attack.Pick(c.Attempt, "+", "-", "*", "|", "&", "^", "//", "%", "<<", ">>"), e)
		case 4:
			fmt.Fprintf(s, "%s%s[%s] = %s\n", indent, v, c.expr(1), e)
		case 5:
			if depth > 0 {
				fmt.Fprintf(s, "%sfor %s in %s:\n", indent, c.variable(), e)
				c.block(s, indent+"    ", depth-1)
			}
		case 6:
			if depth > 0 {
				fmt.Fprintf(s, "%sif %s:\n", indent, e)
				c.block(s, indent+"    ", depth-1)
			}
		case 7:
			fmt.Fprintf(s, "%s%s.%s\n", indent, v, attack.Pick(c.Attempt, "append(i)", "extend(a)", "insert(0, i)", "pop()", "pop(0)", "clear()", "update(a)", "add(i)", "setdefault(i << 16, i)", "popitem()", "discard(i)"))
		case 8:
			fmt.Fprintf(s, "%s%s\n", indent, attack.Pick(c.Attempt, "L.append(i)", "D[i] = i", "S.add(i)", "N[0] += 1", "NEXT()", "F().append(i)", "keep(i)", "a, b = b, a", "ctx.emit(\"x\", i)", "ctx.random(9)"))
		case 9:
			fmt.Fprintf(s, "%s%s, %s = %s, %s\n", indent, c.variable(), c.variable(), e, c.expr(1))
		default:
			fmt.Fprintf(s, "%s%s\n", indent, e)
		}
	}
}

func (c *coder) variable() string { return attack.Pick(c.Attempt, "a", "b", "c", "d") }

// expr draws an expression.
func (c *coder) expr(depth int) string {
	if depth == 0 {
		return attack.Pick(c.Attempt, "a", "b", "c", "d", "a", "b", "c", "d", "(7)", "(1.5)", "\"abc\"", "(i << 16)", "(i << 32)", "(1.0 / (i + 1))", "[]", "{}", "None", "str(i)", "(1, i << 16)", "L", "event.data", "(-1)", "great(8)", "great(i % 9)")
	}
	x, y := c.expr(depth-1), c.expr(depth-1)
	switch c.IntN(16) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s %s %s)", x, attack.Pick(c.Attempt, "+", "-", "*", "/", "//", "%", "<<", ">>", "&", "|", "^", "==", "!=", "<", "<=", "in", "not in", "and", "or"), y)
	case 3, 4, 5:
		return fmt.Sprintf("%s(%s)", attack.Pick(c.Attempt, "len", "str", "repr", "list", "tuple", "set", "sorted", "reversed", "enumerate", "min", "max", "any", "all", "int", "float", "bool", "hash", "dict", "bytes",
			"type", "dir", "abs", "ord", "json.encode", "json.decode", "math.floor", "math.sqrt", "range", "-", "not ", "~"), x)
	case 6, 7, 8:
		return fmt.Sprintf("%s.%s", x, strings.ReplaceAll(strings.ReplaceAll(attack.Pick(c.Attempt, "count(Y)", "find(Y)", "join(Y)", "replace(Y, X)", "split(Y)", "strip(Y)", "format(Y, X)", "format(*Y)", "format(**Y)", "partition(Y)", "startswith(Y)",
			"upper()", "elems()", "codepoints()", "items()", "keys()", "values()", "get(Y)", "pop(Y, 1)", "index(Y)", "remove(Y)", "insert(0, Y)", "extend(Y)", "append(Y)", "union(Y)", "difference(Y)", "issubset(Y)",
			"intersection(Y)", "symmetric_difference(Y)", "update(Y)", "setdefault(Y, X)", "rsplit(Y)", "splitlines()", "removeprefix(Y)", "add(Y)"), "Y", y), "X", x))
	case 9:
		return fmt.Sprintf("[%s for x in %s]", attack.Pick(c.Attempt, "x", x, "[x, x]", "(x, i)", "{x: 1}"), y)
	case 10:
		return fmt.Sprintf("{%s: 1 for x in %s}", attack.Pick(c.Attempt, "x", "x << 16", "(x, 0)", "str(x)", "1.0 / x", x), y)
	case 11:
		return fmt.Sprintf("%s[%s]", x, attack.Pick(c.Attempt, y, "::-1", "1:", "::2", "-1", y+":"+x))
	case 12:
		return attack.Pick(c.Attempt, fmt.Sprintf("\"%%s %%r\" %% (%s, %s)", x, y), fmt.Sprintf("(%s, %s)", x, y), fmt.Sprintf("[%s, %s]", x, y), fmt.Sprintf("{%s: %s}", x, y), fmt.Sprintf("zip(%s, %s)", x, y))
	case 13:
		return fmt.Sprintf("sorted(%s, key = lambda x: %s)", x, attack.Pick(c.Attempt, "x", "-x", "str(x)", "[x]", y))
	case 14:
		if c.functions > 0 {
			return fmt.Sprintf("f%d(%s, %s)", c.IntN(c.functions), x, y)
		}
	}
	return attack.Pick(c.Attempt, fmt.Sprintf("(%s if %s else %s)", x, y, x), fmt.Sprintf("(lambda *x: x)(*%s)", x), fmt.Sprintf("(lambda **x: x)(**%s)", x), fmt.Sprintf("getattr(%s, %s, 1)", x, y), x)
}

// outcome is what a step comes to.
func outcome(r reducer.Reducer, in *reducer.Input) string {
	var out reducer.Output
	err := r.Reduce(in, &out)
	if err != nil {
		return fmt.Sprint(out.Gas, err)
	}
	return fmt.Sprintf("%d %x %+v", out.Gas, out.State, out.Events)
}

// TestAttackReducers looks for programs that take more of the processor or of memory
// than their gas and limits say, that come to something else the second time, or that
// keep something from one step to the next.
func TestAttackReducers(t *testing.T) {
	attack.Run(t, "reducers", func(a *attack.Attempt) {
		source := (&coder{Attempt: a}).program()
		p, err := star.Compile(star.Version, "test.star", []byte(source))
		for err != nil { // the grammar makes some that are none
			source = (&coder{Attempt: a}).program()
			p, err = star.Compile(star.Version, "test.star", []byte(source))
		}
		r, err := p.Reducer()
		require.NoError(t, err, source)
		in := input(t, "", `{"n": [1, 2]}`)
		in.Limits.Gas = defaultGas / 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := cpu()
		first := outcome(r, in)
		took := cpu() - began
		runtime.ReadMemStats(&after)
		if again := outcome(r, in); again != first {
			a.Through("the second step is %.300s, the first was %.300s, of\n%s", again, first, source)
		}
		other, err := p.Reducer()
		require.NoError(t, err)
		if again := outcome(other, in); again != first {
			a.Through("another instance makes %.300s, the first made %.300s, of\n%s", again, first, source)
		}
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > maxHostileBytes {
			a.Through("%d bytes for\n%s", bytes, source)
		}
		if took > maxCPU/10 {
			if took := atDefault(t, r); took > maxCPU {
				a.Through("%s of the processor at the default limit of gas for\n%s", took, source)
			}
		}
	})
}

// atDefault returns the least of some times that a step takes with all of the gas.
func atDefault(t *testing.T, r reducer.Reducer) time.Duration {
	in := input(t, "", `{"n": [1, 2]}`)
	in.Limits = manifest.ReducerLimits{}.WithDefaults()
	best := time.Hour
	for range 5 {
		runtime.GC()
		began := cpu()
		outcome(r, in)
		best = min(best, cpu()-began)
	}
	return best
}
