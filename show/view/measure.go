package view

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/measure"
	"github.com/worldkernel/worldkernel/world"
)

// MaxMeasured is how many rows are measured at once.
const MaxMeasured = 1 << 20

// Measuring says what is measured of a world, and when. Without At and When it is now.
type Measuring struct {
	Set    *measure.Set
	At     []string     // moments
	When   measure.When // ticks that have come
	From   string       // only ticks of When from this moment on; empty: from 0
	To     string       // only ticks of When up to this moment; empty: all that have come
	Memory int          // bytes of the world that are in memory; 0: as the world has it
}

// Measured is what a world was at a moment, in numbers.
type Measured struct {
	Tick    manifest.Tick
	Record  journal.Seq // the last that is part of the moment
	Columns []measure.Column
	Row     measure.Row
}

// MarshalJSON writes the tick, the record, and the columns in their order.
func (m Measured) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"tick":%d,"record":%d`, m.Tick, m.Record)
	for i, c := range m.Columns {
		value, err := json.Marshal(m.Row[i])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ",%q:%s", c.Name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Texts returns the row as tables have it; "" is null.
func (m Measured) Texts() []string {
	out := []string{measure.Text(uint64(m.Tick)), measure.Text(uint64(m.Record))}
	for _, v := range m.Row {
		out = append(out, measure.Text(v))
	}
	return out
}

// stop is one moment at which is measured.
type stop struct {
	record journal.Seq
	tick   manifest.Tick
}

// Measure measures at each moment, in their order. The error is that of At, a *measure.Error, or why
// the past cannot be read.
func (j Journal) Measure(ctx context.Context, s *Measuring) iter.Seq2[Measured, error] {
	return func(yield func(Measured, error) bool) {
		if len(s.At) == 0 && s.When.Every == 0 && len(s.When.Ticks) == 0 && !s.When.End {
			yield(j.measureNow(s.Set))
			return
		}
		stops, err := j.stops(s)
		if err != nil {
			yield(Measured{}, err)
			return
		}
		at := make([]journal.Seq, len(stops))
		for i, x := range stops {
			at[i] = x.record
		}
		columns := s.Set.Columns()
		done, over := 0, false
		err = j.Local.ReplayAt(ctx, at, s.Memory, func(record journal.Seq, m *world.Moment) error {
			tick := stops[done].tick
			done++
			row, err := s.Set.Eval(m, tick)
			if err == nil && !yield(Measured{tick, record, columns, row}, nil) {
				over, err = true, context.Canceled
			}
			return err
		})
		if err != nil && !over {
			yield(Measured{}, err)
		}
	}
}

func (j Journal) measureNow(set *measure.Set) (m Measured, err error) {
	j.Local.View(func(w *world.Moment) {
		m = Measured{Tick: w.Time(), Record: w.Head().ID, Columns: set.Columns()}
		m.Row, err = set.Eval(w, m.Tick)
	})
	return m, err
}

// stops returns the moments, in the order of their records and ticks.
func (j Journal) stops(s *Measuring) ([]stop, error) {
	end := j.End()
	now, err := j.timeOf(end)
	if err != nil {
		return nil, err
	}
	all := make(map[stop]bool)
	for _, name := range s.At {
		x, err := j.stopAt(name)
		if err != nil {
			return nil, err
		}
		all[x] = true
	}
	from, to := manifest.Tick(0), now
	if s.From != "" {
		x, err := j.stopAt(s.From)
		if err != nil {
			return nil, err
		}
		from = x.tick
	}
	if s.To != "" {
		x, err := j.stopAt(s.To)
		if err != nil {
			return nil, err
		}
		to = x.tick
	}
	for tick, ok := s.When.Next(from); ok && tick <= to; tick, ok = s.When.Next(tick + 1) {
		if len(all) == MaxMeasured {
			return nil, beyond(s.From, "this is more than %d rows: ask for fewer, with --from, --to or a greater --every", MaxMeasured)
		}
		record, err := j.EndOf(tick, end)
		if err != nil {
			return nil, err
		}
		if record > 0 {
			all[stop{record, tick}] = true
		}
		if tick == to {
			break
		}
	}
	if s.When.End {
		all[stop{end, now}] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b stop) int {
		return cmp.Or(cmp.Compare(a.record, b.record), cmp.Compare(a.tick, b.tick))
	}), nil
}

// stopAt returns the moment that a person named.
func (j Journal) stopAt(name string) (x stop, err error) {
	m, err := j.Moment(name)
	if err != nil {
		return x, err
	}
	if x.record, err = j.At(name); err != nil {
		return x, err
	}
	if m.tick {
		x.tick = m.last
		return x, nil
	}
	x.tick, err = j.timeOf(x.record)
	return x, err
}
