package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/source"
)

// decoder makes specs of nodes.
type decoder struct {
	*source.Document
	measure string // whose key is read; empty: none
}

// Decode returns the measures of a mapping from names, in its order. What is wrong with it
// is told the document.
func Decode(doc *source.Document, n *yaml.Node) []Spec {
	d := decoder{Document: doc}
	var out []Spec
	d.Entries(n, func(key, value *yaml.Node) {
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
	if d.measure = ""; len(out) == 0 && d.sound(n) {
		d.fault(n, "holds no measure: NAME: {cells: REDUCER}")
	}
	return out
}

// sound reports whether nothing at a node, or below it, was refused.
func (d *decoder) sound(n *yaml.Node) bool {
	return !d.Refused(n) && !slices.ContainsFunc(n.Content, func(below *yaml.Node) bool { return !d.sound(below) })
}

func (d *decoder) spec(n *yaml.Node) (s Spec) {
	if n.Kind == yaml.ScalarNode {
		d.expression(&s.Expr)(n)
		return s
	}
	d.Mapping(n, map[string]func(*yaml.Node){
		"cells": func(n *yaml.Node) { s.Cells = d.texts(n) },
		"cell":  d.text(&s.Cell),
		"where": d.expression(&s.Where),
		"value": d.expression(&s.Value),
		"take":  func(n *yaml.Node) { s.Take, s.One = d.takeWords(n) },
		"count": func(n *yaml.Node) { s.Count = d.count(n) },
		"hist":  func(n *yaml.Node) { s.Hist = d.hist(n) },
		"expr":  d.expression(&s.Expr),
		"star": func(n *yaml.Node) {
			s.StarAt = Place{n.Line, n.Column}
			d.text(&s.Star)(n)
		},
		"gives": func(n *yaml.Node) { s.Gives = d.gives(n) },
		"type":  func(n *yaml.Node) { s.Type = d.columnType(n) },
	})
	if d.sound(n) {
		if fault := s.check(); fault != "" {
			d.fault(n, "%s", fault)
		}
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

// DecodeWhen returns when is measured: every N, end, a tick, or a list of these. What is wrong
// with it is told the document.
func DecodeWhen(doc *source.Document, n *yaml.Node) (w When) {
	d := decoder{Document: doc}
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
	return w
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

// fault says what is wrong at a node, and with which measure.
func (d *decoder) fault(n *yaml.Node, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if d.measure != "" {
		text = "measure " + d.measure + ": " + text
	}
	d.Fault(n, "%s", text)
}

// text and expression return what reads one that is not empty.
func (d *decoder) text(to *string) func(*yaml.Node)       { return d.filled(to, d.Text(to)) }
func (d *decoder) expression(to *string) func(*yaml.Node) { return d.filled(to, d.Expression(to)) }

func (d *decoder) filled(text *string, read func(*yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if read(n); *text == "" {
			d.fault(n, "want text")
		}
	}
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
	d.list(n, func(n *yaml.Node) {
		var text string
		d.text(&text)(n)
		out = append(out, text)
	})
	return out
}

func (d *decoder) takeWords(n *yaml.Node) (words []string, one bool) {
	d.list(n, func(n *yaml.Node) {
		var word string
		switch d.text(&word)(n); {
		case d.Refused(n):
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
	d.Entries(n, func(key, value *yaml.Node) {
		switch {
		case !label.MatchString(key.Value) || len(key.Value) > MaxNameBytes:
			d.fault(key, "want a name of letters, digits, _ and -, at most %d", MaxNameBytes)
		case len(out) == MaxCounts:
			d.fault(key, "gives more than %d fields", MaxCounts)
		}
		out = append(out, Field{key.Value, d.columnType(value)})
	})
	if len(out) == 0 && d.sound(n) {
		d.fault(n, "want at least one field: NAME: float")
	}
	return out
}

func (d *decoder) hist(n *yaml.Node) *Hist {
	var h Hist
	var bins uint64
	d.Mapping(n, map[string]func(*yaml.Node){
		"from": func(n *yaml.Node) { h.From = d.float(n) },
		"to":   func(n *yaml.Node) { h.To = d.float(n) },
		"bins": d.Number(&bins),
	})
	switch {
	case !d.sound(n):
	case bins < 1 || bins > MaxBins:
		d.fault(n, "want 1 to %d bins", MaxBins)
	case !(h.From < h.To):
		d.fault(n, "want from below to")
	}
	h.Bins = int(min(bins, MaxBins))
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

func (d *decoder) columnType(n *yaml.Node) Type {
	t := Type(n.Value)
	if !slices.Contains([]Type{Int, Float, Bool, String}, t) {
		d.fault(n, "want int, float, bool or string")
	}
	return cmp.Or(t, Float)
}
