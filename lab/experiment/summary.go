package experiment

import (
	"errors"
	"slices"
)

// Summary is what the results of an experiment come to.
type Summary struct {
	Experiment string      `json:"experiment"`
	Hash       string      `json:"hash"`
	Begin      string      `json:"begin"`
	Runs       uint64      `json:"runs"`   // of the experiment
	Done       uint64      `json:"done"`   // that have a result, failed ones too
	Failed     uint64      `json:"failed"` // of those, which no statistic counts
	Failures   []Reason    `json:"failures"`
	ByVariant  []Ended     `json:"by_variant"`
	Seeds      int         `json:"seeds"`
	Params     []string    `json:"params"`
	Statistics []Statistic `json:"statistics"`
	Pairs      []Pair      `json:"pairs"`
}

// Ended says how the runs of a variant have ended.
type Ended struct {
	Variant string `json:"variant"`
	Done    uint64 `json:"done"` // that have a result, failed ones too
	Failed  uint64 `json:"failed"`
	Tally
}

// Clean reports whether nothing went wrong in any run.
func (s *Summary) Clean() bool {
	return !slices.ContainsFunc(s.ByVariant, func(e Ended) bool { return e.Failed > 0 || !e.Clean() })
}

// First returns the first failed step of the first run with a failure; nil: no run failed.
func (s *Summary) First() (first *Example) {
	for _, e := range s.ByVariant {
		if x := e.First; x != nil && (first == nil || x.Run < first.Run) {
			first = x
		}
	}
	return first
}

// Group is the runs of one variant at one point of the params: they differ in their seeds.
type Group struct {
	Variant string `json:"variant"`
	Point   []any  `json:"point"` // by Summary.Params
}

// Statistic is what one measure has come to at the end of the runs of a group.
type Statistic struct {
	Group
	Measure string `json:"measure"`
	Moments
	Median *float64 `json:"median"`
}

// Pair is how much one measure differs at the end of runs of equal seeds and params, of a
// variant less the first.
type Pair struct {
	Group
	Less    string `json:"less"` // the first variant
	Measure string `json:"measure"`
	Moments
	None string `json:"none,omitempty"` // why there is no interval; empty: there is one
}

// numeric are the places of the measures that statistics are made of.
func (p *Plan) numeric() (out []int) {
	for i, c := range p.Columns {
		if c.Type != Text {
			out = append(out, i)
		}
	}
	return out
}

// ends are what was measured at the end of runs: by variant and point, then by seed.
type ends struct {
	plan    *Plan
	values  [][][][]any // [variant][point][measure][seed], by Plan.numeric; nil: there is none
	ended   []Ended     // by variant
	groups  [][]Ended   // [variant][point]: how many are done and have failed
	reasons reasons
}

func (r *results) ends() (*ends, error) {
	p := r.plan
	x := &ends{plan: p, values: make([][][][]any, len(p.Variants)), groups: make([][]Ended, len(p.Variants)), reasons: make(reasons)}
	columns := p.numeric()
	for v := range x.values {
		x.ended = append(x.ended, Ended{Variant: p.Variants[v]})
		x.groups[v] = make([]Ended, len(p.Points))
		x.values[v] = make([][][]any, len(p.Points))
		for point := range x.values[v] {
			x.values[v][point] = make([][]any, len(columns))
			for i := range columns {
				x.values[v][point][i] = make([]any, len(p.Seeds))
			}
		}
	}
	err := r.visitResults(func(result *Result) error {
		x.ended[result.Variant].add(result.tally())
		for _, e := range []*Ended{&x.ended[result.Variant], &x.groups[result.Variant][result.Point]} {
			e.Done++
			if result.Error != "" {
				e.Failed++
			}
		}
		if result.Error != "" {
			x.reasons.add(result)
			return nil
		}
		seed := int(uint64(result.ID-1) / uint64(len(p.Points)) / uint64(len(p.Variants)))
		for i, column := range columns {
			x.values[result.Variant][result.Point][i][seed] = result.Last[column]
		}
		return nil
	})
	return x, err
}

// Summarise returns what the results in a directory come to.
func Summarise(dir string) (s *Summary, err error) {
	r, err := lookAt(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	x, err := r.ends()
	if err != nil {
		return nil, err
	}
	return x.summary(), nil
}

func (x *ends) summary() *Summary {
	p := x.plan
	s := &Summary{
		Experiment: p.Experiment, Hash: p.Hash.String(), Begin: p.Begin, Runs: p.Runs(), Seeds: len(p.Seeds),
		Failures: x.reasons.sorted(), ByVariant: x.ended, Params: []string{}, Statistics: []Statistic{}, Pairs: []Pair{},
	}
	for _, e := range x.ended {
		s.Done += e.Done
		s.Failed += e.Failed
	}
	for _, c := range p.Params {
		s.Params = append(s.Params, c.Name)
	}
	for i, column := range p.numeric() {
		measure := p.Columns[column].Name
		for point := range p.Points {
			for v, variant := range p.Variants {
				values := sampleOf(x.values[v][point][i])
				group := Group{variant, p.Points[point]}
				s.Statistics = append(s.Statistics, Statistic{group, measure, values.moments(), values.median()})
				if v == 0 {
					continue
				}
				less := differences(x.values[v][point][i], x.values[0][point][i])
				pair := Pair{group, p.Variants[0], measure, less.moments(), x.unpaired(v, point, i, len(less))}
				if pair.None == "" && pair.Low == nil {
					pair.None = "it is beyond what a float holds"
				}
				s.Pairs = append(s.Pairs, pair)
			}
		}
	}
	return s
}

// unpaired returns why so many pairs have no interval; empty: they have.
func (x *ends) unpaired(variant, point, measure, pairs int) string {
	switch {
	case pairs > 1:
		return ""
	case pairs == 1:
		return "one pair has no interval"
	}
	for _, v := range []int{variant, 0} {
		name, of := x.plan.Variants[v], x.groups[v][point]
		switch {
		case of.Done == 0:
			return "no run of " + name + " has ended"
		case of.Done == of.Failed:
			return "all runs of " + name + " have failed"
		case len(sampleOf(x.values[v][point][measure])) == 0:
			return "no run of " + name + " has a value"
		}
	}
	return "no seed has a value in both"
}
