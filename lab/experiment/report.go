package experiment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
)

// A line of a plot has at most so many ticks, and all lines together: of more, evenly chosen ones.
const (
	maxLineTicks = 400
	maxAllTicks  = 200_000
)

// Report is what the page of a report draws.
type Report struct {
	Summary
	Variants []string     `json:"variants"`
	Points   [][]any      `json:"points"`
	Columns  []Column     `json:"columns"` // of measures that are drawn
	Ends     []reportEnd  `json:"ends"`
	Lines    []reportLine `json:"lines"`
}

// reportEnd is what the runs of a group have come to, seed by seed: null where nothing is.
type reportEnd struct {
	Variant int        `json:"v"`
	Point   int        `json:"p"`
	Measure int        `json:"m"`
	Values  []*float64 `json:"x"`
}

// reportLine is one measure of one variant at one point of the params over ticks, of all seeds together.
type reportLine struct {
	Variant int        `json:"v"`
	Point   int        `json:"p"`
	Measure int        `json:"m"`
	Ticks   []uint64   `json:"t"`
	Mean    []*float64 `json:"mean"`
	Low     []*float64 `json:"low"` // of the interval of the mean
	High    []*float64 `json:"high"`
	Tenth   []*float64 `json:"p10"` // so much of the runs lies below
	Most    []*float64 `json:"p90"`
}

// WriteReport writes a page with the results in a directory: one HTML file that loads nothing.
func WriteReport(w io.Writer, dir string) (err error) {
	r, err := lookAt(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	x, err := r.ends()
	if err != nil {
		return err
	}
	report := &Report{Summary: *x.summary(), Variants: r.plan.Variants, Points: r.plan.Points}
	for _, column := range r.plan.numeric() {
		report.Columns = append(report.Columns, r.plan.Columns[column])
	}
	report.Ends = x.drawn()
	if report.Lines, err = r.lines(); err != nil {
		return err
	}
	return report.write(w)
}

func (x *ends) drawn() (out []reportEnd) {
	for v := range x.values {
		for point := range x.values[v] {
			for i, seeds := range x.values[v][point] {
				end := reportEnd{Variant: v, Point: point, Measure: i}
				for _, v := range seeds {
					end.Values = append(end.Values, finite(number(v)))
				}
				out = append(out, end)
			}
		}
	}
	return out
}

// lines computes the lines over ticks.
func (r *results) lines() ([]reportLine, error) {
	columns := r.plan.numeric()
	groups := len(r.plan.Variants) * len(r.plan.Points)
	most := min(maxLineTicks, maxAllTicks/max(groups*len(columns), 1))
	ticks, err := r.ticks(most)
	if err != nil || len(ticks) < 2 {
		return nil, err
	}
	at := make(map[uint64]int, len(ticks))
	for i, tick := range ticks {
		at[tick] = i
	}
	samples := make([][]any, groups*len(columns)*len(ticks)) // by variant, point, measure and tick
	line := func(variant, point, measure int) [][]any {
		from := ((variant*len(r.plan.Points)+point)*len(columns) + measure) * len(ticks)
		return samples[from : from+len(ticks)]
	}
	err = r.visitResults(func(result *Result) error {
		for _, row := range result.Rows {
			tick, drawn := at[row.Tick]
			if !drawn {
				continue
			}
			for i, column := range columns {
				to := line(result.Variant, result.Point, i)
				to[tick] = append(to[tick], row.Values[column])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []reportLine
	for v := range r.plan.Variants {
		for p := range r.plan.Points {
			for i := range columns {
				l := reportLine{Variant: v, Point: p, Measure: i, Ticks: ticks}
				l.draw(line(v, p, i))
				out = append(out, l)
			}
		}
	}
	return out, nil
}

func (l *reportLine) draw(ticks [][]any) {
	for _, values := range ticks {
		x := sampleOf(values)
		m := x.moments()
		slices.SortFunc(x, (*big.Float).Cmp)
		l.Mean, l.Low, l.High = append(l.Mean, m.Mean), append(l.Low, m.Low), append(l.High, m.High)
		l.Tenth, l.Most = append(l.Tenth, partOf(x, 0.1)), append(l.Most, partOf(x, 0.9))
	}
}

// partOf returns the least value of a sorted sample that so much of it is not above.
func partOf(x sample, part float64) *float64 {
	if len(x) == 0 {
		return nil
	}
	return finite(x[max(int(math.Ceil(part*float64(len(x)))), 1)-1])
}

// ticks returns the ticks that are drawn, at most so many; none where that is less than two.
func (r *results) ticks(most int) ([]uint64, error) {
	seen := make(map[uint64]bool)
	err := r.visitResults(func(result *Result) error {
		for _, row := range result.Rows {
			seen[row.Tick] = true
		}
		return nil
	})
	all := make([]uint64, 0, len(seen))
	for tick := range seen {
		all = append(all, tick)
	}
	slices.Sort(all)
	if len(all) <= most || most < 2 {
		return all[:min(len(all), most)], err
	}
	out := make([]uint64, most)
	for i := range out {
		out[i] = all[i*(len(all)-1)/(most-1)]
	}
	return out, err
}

// ShowNumber prints a statistic for people: four significant figures, and of integers all.
func ShowNumber(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return fmt.Sprintf("%.0f", f)
	}
	if a := math.Abs(f); a >= 1000 && a < 1e15 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.4g", f)
}
