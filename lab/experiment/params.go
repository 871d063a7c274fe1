package experiment

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
)

// axis is what one param takes: values, or an interval that a sample draws from.
type axis struct {
	name     string
	node     *yaml.Node
	values   []any
	from, to any  // of an interval: *big.Int both, or float64 both
	drawn    bool // it is an interval
}

// params reads the varied params and makes their points: the product of the lists and
// ranges, each with each draw of the sample.
func (l *loader) params() {
	var axes []axis
	if n := l.at["params"]; n != nil {
		l.Entries(n, func(key, value *yaml.Node) {
			a := axis{name: key.Value, node: value}
			if !l.declared(key, &l.base, key.Value) {
				return
			}
			l.axis(&a)
			for _, v := range append(a.values, a.from) {
				if v != nil {
					l.fits(value, &l.base, a.name, v)
				}
			}
			axes = append(axes, a)
		})
	}
	points := []Point{{}}
	drawn := 0
	for i := range axes {
		l.spec.Params = append(l.spec.Params, axes[i].column())
		if axes[i].drawn {
			drawn++
		}
	}
	draws := l.sample(axes, drawn)
	if l.Err() != nil {
		return
	}
	points = l.product(axes, points, draws)
	l.spec.Values = points
}

// product makes the points, the last axis fastest.
func (l *loader) product(axes []axis, points []Point, draws [][]any) []Point {
	most := l.spec.Limits.Runs
	grow := func(with func(Point) []Point) {
		var next []Point
		for _, p := range points {
			if next = append(next, with(p)...); uint64(len(next)) > most {
				l.Fault(l.at["params"], "the params have more points than the %d runs of an experiment: limits.runs raises that", most)
				return
			}
		}
		points = next
	}
	if draws != nil {
		grow(func(Point) (out []Point) {
			for _, d := range draws {
				out = append(out, Point{slices.Clone(d)})
			}
			return out
		})
	} else {
		points = []Point{{make([]any, len(axes))}}
	}
	for i := range axes {
		if axes[i].drawn {
			continue
		}
		grow(func(p Point) (out []Point) {
			for _, v := range axes[i].values {
				values := slices.Clone(p.Values)
				values[i] = v
				out = append(out, Point{values})
			}
			return out
		})
	}
	return points
}

// axis reads what a param takes.
func (l *loader) axis(a *axis) {
	n := a.node
	switch n.Kind {
	case yaml.SequenceNode:
		seen := make(map[string]bool)
		for _, item := range l.Items(n) {
			v := l.scalar(item)
			if text := fmt.Sprint(v); seen[text] && !l.Refused(item) {
				l.Fault(item, "the value %s is there twice: its runs would be the same", text)
			} else {
				seen[text] = true
			}
			a.values = append(a.values, v)
		}
		if len(a.values) == 0 && !l.Refused(n) {
			l.Fault(n, "%s: want at least one value", a.name)
		}
	case yaml.MappingNode:
		l.interval(a)
	default:
		l.Fault(n, "%s: want a list of values, {from: 1, to: 9, step: 2}, or {between: [0, 1]} for a sample; a value that is the same in all runs belongs into world.yaml or a variant", a.name)
	}
}

// scalar reads a value that a param can have in a point.
func (l *loader) scalar(n *yaml.Node) any {
	v := l.Value(n)
	switch v.(type) {
	case bool, *big.Int, float64, string:
		return v
	}
	if !l.Refused(n) {
		l.Fault(n, "want a number, a text, true or false: what is more than that belongs into a variant")
	}
	return nil
}

func (l *loader) interval(a *axis) {
	var from, to, step, between *yaml.Node
	node := func(to **yaml.Node) func(*yaml.Node) { return func(n *yaml.Node) { *to = n } }
	l.Mapping(a.node, map[string]func(*yaml.Node){"from": node(&from), "to": node(&to), "step": node(&step), "between": node(&between)})
	switch {
	case l.Refused(a.node):
	case between != nil && from == nil && to == nil && step == nil:
		ends := l.Items(between)
		if len(ends) != 2 {
			l.Fault(between, "between: want the two ends of an interval")
			return
		}
		a.drawn = true
		if v := l.numbers(a, ends...); v != nil {
			if a.from, a.to = v[0], v[1]; ratOf(a.from).Cmp(ratOf(a.to)) >= 0 {
				l.Fault(between, "between: the first end is not less than the second")
			} else if from, float := a.from.(float64); float && math.IsInf(a.to.(float64)-from, 0) {
				l.Fault(between, "between: the ends are further from each other than a float can tell")
			}
		}
	case between == nil && from != nil && to != nil && step != nil:
		l.steps(a, from, to, step)
	default:
		l.Fault(a.node, "%s: want from, to and step, or between", a.name)
	}
}

// numbers reads numbers, all *big.Int or all float64: as the param is in world.yaml, and where
// it is nothing there as they are written. nil: they are refused.
func (l *loader) numbers(a *axis, nodes ...*yaml.Node) []any {
	values := make([]any, len(nodes))
	integers := true
	for i, n := range nodes {
		values[i] = l.Value(n)
		if f, ok := asFloat(values[i]); !ok || math.IsNaN(f) {
			l.Fault(n, "want a number")
			return nil
		}
		_, integer := values[i].(*big.Int)
		integers = integers && integer
	}
	switch was := l.declaredAs(&l.base, a.name).(type) {
	case int64, *big.Int:
		if !integers {
			l.Fault(a.node, "%s is an integer in world.yaml: want integers, or write a float there, %v.0", a.name, was)
			return nil
		}
		return values
	case float64:
	default:
		if integers {
			return values
		}
	}
	for i, v := range values {
		f, _ := asFloat(v)
		if values[i] = f; math.IsInf(f, 0) {
			l.Fault(nodes[i], "the number is too large for a float")
			return nil
		}
	}
	return values
}

func asFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f, true
	case float64:
		return v, true
	}
	return 0, false
}

// ratOf returns a number as it is written: of a float the shortest decimal that is this float.
func ratOf(v any) *big.Rat {
	if i, ok := v.(*big.Int); ok {
		return new(big.Rat).SetInt(i)
	}
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(v.(float64), 'g', -1, 64))
	return r
}

// steps makes the values of a range, its end included: each is the decimal that people would
// write.
func (l *loader) steps(a *axis, from, to, step *yaml.Node) {
	v := l.numbers(a, from, to, step)
	if v == nil {
		return
	}
	first, last, by := ratOf(v[0]), ratOf(v[1]), ratOf(v[2])
	if by.Sign() <= 0 || last.Cmp(first) < 0 {
		l.Fault(a.node, "%s: want a step above 0 and an end that is not before the beginning", a.name)
		return
	}
	span := new(big.Rat).Sub(last, first)
	n := span.Quo(span, by)
	if n.Cmp(new(big.Rat).SetUint64(l.spec.Limits.Runs)) >= 0 {
		l.Fault(a.node, "%s: it has more values than the %d runs of an experiment: limits.runs raises that", a.name, l.spec.Limits.Runs)
		return
	}
	for at := first; at.Cmp(last) <= 0; at = new(big.Rat).Add(at, by) {
		var value any = at.Num()
		if _, integers := v[0].(*big.Int); !integers {
			value, _ = at.Float64()
		}
		if k := len(a.values); k > 0 && a.values[k-1] == value {
			l.Fault(a.node, "%s: the step is too small for floats of that size: the value %v would be there twice", a.name, value)
			return
		}
		a.values = append(a.values, value)
	}
}

// sample draws points from the intervals: Latin hypercube, so that of N points each Nth of
// an interval has one.
func (l *loader) sample(axes []axis, drawn int) [][]any {
	n := l.at["sample"]
	if n == nil {
		for i := range axes {
			if axes[i].drawn {
				l.Fault(axes[i].node, "%s: an interval needs sample: {latin: N, seed: 1}, which draws N points", axes[i].name)
			}
		}
		return nil
	}
	var points, seed uint64
	l.Mapping(n, map[string]func(*yaml.Node){"latin": l.Count(&points), "seed": l.Number(&seed)})
	switch {
	case l.Refused(n):
	case points == 0:
		l.Fault(n, "latin: want how many points are drawn")
	case drawn == 0:
		l.Fault(n, "there is nothing to draw from: no param has {between: [A, B]}")
	case points > l.spec.Limits.Runs:
		l.Fault(n, "%d points are more than the %d runs of an experiment: limits.runs raises that", points, l.spec.Limits.Runs)
	}
	if l.Err() != nil {
		return nil
	}
	out := make([][]any, points)
	for p := range out {
		out[p] = make([]any, len(axes))
	}
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a sample of params, the same for a seed on every machine
	for i := range axes {
		if !axes[i].drawn {
			continue
		}
		for p, stratum := range rng.Perm(int(points)) {
			out[p][i] = axes[i].draw((float64(stratum) + rng.Float64()) / float64(points))
		}
	}
	return out
}

// draw returns the value of an interval at a part of it in [0, 1).
func (a *axis) draw(part float64) any {
	if from, ok := a.from.(*big.Int); ok {
		span, _ := asFloat(new(big.Int).Sub(a.to.(*big.Int), from))
		offset, _ := big.NewFloat(part * (span + 1)).Int(nil) // both ends are as likely as what is between
		v := new(big.Int).Add(from, offset)
		if v.Cmp(a.to.(*big.Int)) > 0 {
			v = a.to.(*big.Int)
		}
		return v
	}
	from, to := a.from.(float64), a.to.(float64)
	return from + part*(to-from)
}

// splitParam parts REDUCER.NAME, where NAME may go deeper by further dots.
func splitParam(name string) (reducer string, path []string, ok bool) {
	reducer, rest, ok := strings.Cut(name, ".")
	return reducer, strings.Split(rest, "."), ok && rest != "" && reducer != ""
}

// declared reports whether the manifest declares a param and a reducer may read it; where
// not it is a fault at a node.
func (l *loader) declared(n *yaml.Node, r *rules, name string) bool {
	reducer, path, ok := splitParam(name)
	if !ok {
		l.Fault(n, "the param %q is not REDUCER.NAME: params belong to a reducer of world.yaml", name)
		return false
	}
	declared, ok := r.manifest.Reducers[reducer]
	if !ok {
		l.Fault(n, "no reducer reads the param %q: there is no reducer %q in world.yaml; want one of %s",
			name, reducer, strings.Join(slices.Sorted(maps.Keys(r.manifest.Reducers)), ", "))
		return false
	}
	tree, err := paramsOf(&declared)
	if err == nil {
		_, ok = lookUp(tree, path)
	}
	if err != nil || !ok {
		l.Fault(n, "no reducer reads the param %q: declare it in world.yaml, under reducers.%s.params%s", name, reducer, nearestParam(tree, path))
		return false
	}
	if !reads(&declared, r.contents, path[0]) {
		l.Fault(n, "no reducer reads the param %q: the source of %s takes no %q from ctx.params", name, reducer, path[0])
		return false
	}
	return true
}

func nearestParam(tree map[string]any, path []string) string {
	if len(path) == 1 && len(tree) > 0 {
		if like := manifest.Nearest(path[0], slices.Sorted(maps.Keys(tree))); like != "" {
			return fmt.Sprintf("; did you mean %q?", like)
		}
		return ", beside " + strings.Join(slices.Sorted(maps.Keys(tree)), ", ")
	}
	return ""
}

// fits reports a value of another kind than the one that the rules declare.
func (l *loader) fits(n *yaml.Node, r *rules, name string, value any) {
	otherKind(name, l.declaredAs(r, name), value, func(name, was, is string) {
		l.Fault(n, "%s is %s in world.yaml, and not %s", name, was, is)
	})
}

// declaredAs returns what the rules have a param be; nil: they do not declare it, or nothing.
func (*loader) declaredAs(r *rules, name string) any {
	reducer, path, ok := splitParam(name)
	if !ok {
		return nil
	}
	declared := r.manifest.Reducers[reducer]
	tree, _ := paramsOf(&declared)
	was, _ := lookUp(tree, path)
	return was
}

// otherKind tells of a param that is of another kind than it was, and of those in a mapping
// that are. One that was null may be anything.
func otherKind(name string, was, is any, tell func(name, was, is string)) {
	a, b := kindOf(was), kindOf(is)
	if a != "nothing" && a != b {
		tell(name, a, b)
		return
	}
	below, _ := was.(map[string]any)
	now, _ := is.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(below)) {
		if v, ok := now[key]; ok {
			otherKind(name+"."+key, below[key], v, tell)
		}
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	}
	return "a number"
}
