package measure

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// decoder makes specs of nodes and gathers faults.
type decoder struct {
	measure string
	faults  []Fault
}

// Decode returns the measures of a mapping from names, in its order, and what is wrong
// with it.
func Decode(n *yaml.Node) ([]Spec, []Fault) {
	var d decoder
	var out []Spec
	d.entries(n, func(key, value *yaml.Node) {
		d.measure = key.Value
		switch {
		case len(out) == MaxMeasures:
			d.fault(key, "there are more than %d measures", MaxMeasures)
		case !identifier.MatchString(key.Value) || len(key.Value) > MaxNameBytes:
			d.fault(key, "a name is of letters, digits and _, at most %d, and begins with no digit", MaxNameBytes)
		case slices.Contains(reserved(), key.Value):
			d.fault(key, "%s is a word of expressions: want another name", key.Value)
		}
		s := d.spec(value)
		s.Name, s.At = key.Value, Place{key.Line, key.Column}
		out = append(out, s)
	})
	if d.measure = ""; len(out) == 0 && len(d.faults) == 0 {
		d.fault(n, "holds no measure: NAME: {cells: REDUCER}")
	}
	return out, d.faults
}

func (d *decoder) spec(n *yaml.Node) (s Spec) {
	if n.Kind == yaml.ScalarNode {
		s.Expr = d.text(n)
		return s
	}
	d.mapping(n, map[string]func(*yaml.Node){
		"cells": func(n *yaml.Node) { s.Cells = d.texts(n) },
		"cell":  func(n *yaml.Node) { s.Cell = d.text(n) },
		"where": func(n *yaml.Node) { s.Where = d.text(n) },
		"value": func(n *yaml.Node) { s.Value = d.text(n) },
		"take":  func(n *yaml.Node) { s.Take, s.One = d.take(n) },
		"count": func(n *yaml.Node) { s.Count = d.count(n) },
		"hist":  func(n *yaml.Node) { s.Hist = d.hist(n) },
		"expr":  func(n *yaml.Node) { s.Expr = d.text(n) },
		"star":  func(n *yaml.Node) { s.Star = d.text(n) },
		"gives": func(n *yaml.Node) { s.Gives = d.gives(n) },
		"type":  func(n *yaml.Node) { s.Type = d.columnType(n) },
	})
	if fault := s.check(); fault != "" {
		d.fault(n, "%s", fault)
	}
	return s
}

// check says what does not go together.
func (s *Spec) check() string {
	ofCells := len(s.Cells) > 0 || s.Cell != "" || s.Where != "" || s.Value != ""
	given := len(s.Take) > 0 || len(s.Count) > 0 || s.Hist != nil
	switch {
	case len(s.Gives) > 0 && s.Star == "":
		return "gives is what a program returns: star: FILE"
	case s.Star != "" && (s.Expr != "" || s.Cell != "" || s.Where != "" || s.Value != "" || given):
		return "star is a program that sees cells: it has no cell, where, value, take, count, hist or expr"
	case s.Star != "" && len(s.Gives) > 0 && s.Type != "":
		return "each field that a program gives has its type there: want no other"
	case s.Star != "":
		return ""
	case s.Expr != "" && (ofCells || given):
		return "expr is over other measures: it has no cells, where, value, take, count or hist"
	case s.Expr != "":
		return ""
	case s.Cell != "" && (len(s.Cells) > 0 || s.Where != "" || given):
		return "cell is one cell, whose value is the measure: it has no cells, where, take, count or hist"
	case s.Cell != "" && s.Value == "":
		return "cell is one cell: say its value, such as value: state.price"
	case s.Cell != "":
		if _, err := reducer.ParseCell(s.Cell); err != nil {
			return err.Error()
		}
		return ""
	case s.Type != "":
		return "type is that of expr, of the value of one cell, or of what a program gives"
	case given && s.Value == "":
		return "take, count and hist are of a value: value: state.FIELD"
	case s.Value != "" && !given:
		return "say what is taken of the value: take: mean, count: [VALUE], or hist: {from: 0, to: 100, bins: 10}"
	case !ofCells:
		return "want cells, cell, expr or star"
	}
	return ""
}

// DecodeWhen returns when is measured: every N, end, a tick, or a list of these.
func DecodeWhen(n *yaml.Node) (When, []Fault) {
	var d decoder
	var w When
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		d.when(item, &w)
	}
	slices.Sort(w.Ticks)
	w.Ticks = slices.Compact(w.Ticks)
	if len(items) == 0 {
		d.fault(n, "want every N, end, or ticks such as [0, 10, 100]")
	}
	return w, d.faults
}

func (d *decoder) when(n *yaml.Node, w *When) {
	text := strings.TrimSpace(n.Value)
	every, isEvery := strings.CutPrefix(text, "every ")
	tick, err := strconv.ParseUint(strings.TrimSpace(every), 10, 64)
	switch {
	case n.Kind != yaml.ScalarNode || !isEvery && text != "end" && err != nil || isEvery && (err != nil || tick == 0):
		d.fault(n, "want every N, end, or ticks such as [0, 10, 100]")
	case isEvery && w.Every > 0:
		d.fault(n, "every is there already")
	case isEvery:
		w.Every = manifest.Tick(tick)
	case text == "end":
		w.End = true
	case len(w.Ticks) == MaxTicks:
		d.fault(n, "there are more than %d ticks: write every N", MaxTicks)
	default:
		w.Ticks = append(w.Ticks, manifest.Tick(tick))
	}
}

func (d *decoder) fault(n *yaml.Node, format string, args ...any) {
	d.faults = append(d.faults, Fault{Place{max(n.Line, 1), max(n.Column, 1)}, d.measure, fmt.Sprintf(format, args...)})
}

// entries calls f for each key of a mapping, in its order.
func (d *decoder) entries(n *yaml.Node, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, "want a mapping")
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || seen[key.Value] {
			d.fault(key, "want a key that is text and there once")
			continue
		}
		seen[key.Value] = true
		f(key, n.Content[i+1])
	}
}

func (d *decoder) mapping(n *yaml.Node, known map[string]func(*yaml.Node)) {
	d.entries(n, func(key, value *yaml.Node) {
		if decode, ok := known[key.Value]; ok {
			decode(value)
			return
		}
		names := slices.Sorted(maps.Keys(known))
		if like := manifest.Nearest(key.Value, names); like != "" {
			d.fault(key, "unknown key %q: did you mean %q?", key.Value, like)
		} else {
			d.fault(key, "unknown key %q: want one of %s", key.Value, strings.Join(names, ", "))
		}
	})
}

func (d *decoder) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		d.fault(n, "want text")
	}
	return n.Value
}

// list calls f for the items of a list; what is none is one item.
func (d *decoder) list(n *yaml.Node, f func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		f(n)
		return
	}
	if len(n.Content) == 0 {
		d.fault(n, "want at least one")
	}
	for _, item := range n.Content {
		f(item)
	}
}

func (d *decoder) texts(n *yaml.Node) (out []string) {
	d.list(n, func(n *yaml.Node) { out = append(out, d.text(n)) })
	return out
}

func (d *decoder) take(n *yaml.Node) (words []string, one bool) {
	d.list(n, func(n *yaml.Node) {
		word := d.text(n)
		switch {
		case word == "hist":
			d.fault(n, "a histogram has a key of its own: hist: {from: 0, to: 100, bins: 10}")
		case !isStatistic(word):
			d.fault(n, "%q is no statistic: want one of %s, p0 to p100", word, strings.Join(statistics(), ", "))
		case slices.Contains(words, word):
			d.fault(n, "%s is there already", word)
		}
		words = append(words, word)
	})
	return words, n.Kind != yaml.SequenceNode
}

// count returns values to be counted; true counts the cells, which is what is done anyway.
func (d *decoder) count(n *yaml.Node) (out []any) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" && n.Value == "true" {
		return nil
	}
	names := make(map[string]bool)
	d.list(n, func(n *yaml.Node) {
		var v any
		switch {
		case n.Kind != yaml.ScalarNode:
		case n.Tag == "!!str" && label.MatchString(n.Value) && len(n.Value) <= MaxNameBytes:
			v = n.Value
		case n.Tag == "!!bool":
			v = n.Value == "true"
		case n.Tag == "!!int":
			if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
				v = i
			}
		}
		switch {
		case v == nil:
			d.fault(n, "want values that are integers, booleans, or texts of letters, digits, _ and -, at most %d", MaxNameBytes)
		case names[fmt.Sprint(v)]:
			d.fault(n, "%v is there already", v)
		case len(out) == MaxCounts:
			d.fault(n, "counts more than %d values: take a histogram", MaxCounts)
		}
		names[fmt.Sprint(v)] = true
		out = append(out, v)
	})
	return out
}

func (d *decoder) gives(n *yaml.Node) (out []Field) {
	d.entries(n, func(key, value *yaml.Node) {
		switch {
		case !label.MatchString(key.Value) || len(key.Value) > MaxNameBytes:
			d.fault(key, "want a name of letters, digits, _ and -, at most %d", MaxNameBytes)
		case len(out) == MaxCounts:
			d.fault(key, "gives more than %d fields", MaxCounts)
		}
		out = append(out, Field{key.Value, d.columnType(value)})
	})
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		d.fault(n, "want at least one field: NAME: float")
	}
	return out
}

func (d *decoder) hist(n *yaml.Node) *Hist {
	var h Hist
	d.mapping(n, map[string]func(*yaml.Node){
		"from": func(n *yaml.Node) { h.From = d.float(n) },
		"to":   func(n *yaml.Node) { h.To = d.float(n) },
		"bins": func(n *yaml.Node) { h.Bins = int(min(d.number(n), math.MaxInt32)) },
	})
	switch {
	case h.Bins < 1 || h.Bins > MaxBins:
		d.fault(n, "want 1 to %d bins", MaxBins)
	case !(h.From < h.To):
		d.fault(n, "want from below to")
	}
	h.Bins = min(h.Bins, MaxBins)
	return &h
}

func (d *decoder) float(n *yaml.Node) float64 {
	f, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		d.fault(n, "want a number")
		return 0
	}
	return f
}

func (d *decoder) number(n *yaml.Node) uint64 {
	i, err := strconv.ParseUint(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.fault(n, "want a number from 0")
	}
	return i
}

func (d *decoder) columnType(n *yaml.Node) Type {
	t := Type(n.Value)
	if !slices.Contains([]Type{Int, Float, Bool, String}, t) {
		d.fault(n, "want int, float, bool or string")
	}
	return cmp.Or(t, Float)
}
