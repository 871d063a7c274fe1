package worldctl

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/measure"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// formCSV is a form of what measure answers: a header, and a line for each row.
const formCSV = "csv"

// measureFlags are those of measure.
type measureFlags struct {
	exprs    []string
	at       []string
	every    uint64
	from, to string
}

func newMeasureCommand(c *cli) *cobra.Command {
	var f measureFlags
	cmd := &cobra.Command{
		Use: "measure [FILE]",
		RunE: c.onWorld(func(ctx context.Context, lw *local.World, args []string) error {
			m, err := c.measuring(lw, args, &f)
			if err != nil {
				return err
			}
			return c.measure(ctx, lw, m)
		}),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.exprs, "expr", nil, "besides, `MEASURE`: 'NAME: {cells: REDUCER, value: state.FIELD, take: mean}', or 'NAME: CEL' over those before it")
	flags.StringSliceVar(&f.at, "at", nil, "as the world was at `MOMENT,...`: a record (120), t5, a time, -10, head or a snapshot")
	flags.Uint64Var(&f.every, "every", 0, "at each `N`th tick")
	flags.StringVar(&f.from, "from", "", "only ticks from this `MOMENT` on")
	flags.StringVar(&f.to, "to", "", "only ticks up to this `MOMENT`")
	c.memoryFlag(cmd)
	return cmd
}

// measuring reads what is measured, and when.
func (c *cli) measuring(lw *local.World, args []string, f *measureFlags) (*view.Measuring, error) {
	doc, err := c.measures(args, f.exprs)
	if err != nil {
		return nil, err
	}
	var reducers []string
	lw.View(func(m *world.Moment) { reducers = slices.Sorted(maps.Keys(m.Manifest().Reducers)) })
	base := "."
	if len(args) > 0 {
		base = filepath.Dir(args[0])
	}
	set, err := measure.Compile(doc.Specs, measure.Env{Reducers: reducers, Limits: doc.Limits, Code: func(file string) (reducer.Code, error) {
		return source.ReadCode(c.path(base), file)
	}})
	if err != nil {
		return nil, c.inMeasures(args, err)
	}
	m := &view.Measuring{Set: set, At: f.at, When: doc.At, From: f.from, To: f.to, Memory: int(c.memory)}
	if f.every > 0 || len(f.at) > 0 {
		m.When = measure.When{Every: manifest.Tick(f.every)}
	}
	if m.When.Every == 0 && len(m.When.Ticks) == 0 && (f.from != "" || f.to != "") {
		return nil, usagef("say which ticks: --every 1", "--from and --to bound ticks, and none are asked for")
	}
	return m, nil
}

// measures reads the file, if one is named, and what was typed beside it.
func (c *cli) measures(args, exprs []string) (*measure.Document, error) {
	doc := new(measure.Document)
	if len(args) == 0 && len(exprs) == 0 {
		return nil, usagef("worldctl measure --expr 'agents: {cells: agent}'", "nothing is to be measured: want FILE or --expr")
	}
	if len(args) > 0 {
		var err error
		doc, err = measure.Read(c.path(args[0]))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usagef("worldctl measure --expr MEASURE takes measures from the command line", "there is no file %s", args[0])
		}
		if err != nil {
			return nil, c.inMeasures(args, err)
		}
	}
	for _, expr := range exprs {
		more, err := measure.Parse("--expr", []byte("measures:\n  "+strings.ReplaceAll(expr, "\n", "\n  ")+"\n"))
		if err != nil {
			return nil, usagef("worldctl measure --expr 'NAME: {cells: agent, value: state.coins, take: mean}'", "--expr %s: %s", expr, faultsOf(err))
		}
		for _, s := range more.Specs {
			if slices.ContainsFunc(doc.Specs, func(before measure.Spec) bool { return before.Name == s.Name }) {
				return nil, usagef("give it another name", "--expr %s: there is a measure %s already", expr, s.Name)
			}
			s.At, s.StarAt = measure.Place{}, measure.Place{}
			doc.Specs = append(doc.Specs, s)
		}
	}
	return doc, nil
}

// faultsOf returns what is wrong with a measure without its place, which nobody has typed.
func faultsOf(err error) string {
	var e *source.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	var out []string
	for _, f := range e.Faults {
		out = append(out, f.Msg)
	}
	return strings.Join(out, "; ")
}

// inMeasures names the file that an error is about, and says where its keys are described.
func (c *cli) inMeasures(args []string, err error) error {
	const next = "docs/measures.md has the keys of measures"
	if wrong := (*source.Error)(nil); errors.As(err, &wrong) {
		for i := range wrong.Faults {
			wrong.Faults[i].File = args[0] // as it was typed
		}
		return usagef(next, "%w", wrong)
	}
	var e *measure.DocumentError
	if !errors.As(err, &e) {
		return err
	}
	var out []string
	for _, f := range e.Faults {
		switch {
		case f.Line > 0 && len(args) > 0:
			out = append(out, fmt.Sprintf("%s:%s", args[0], f))
		case f.Measure != "":
			out = append(out, fmt.Sprintf("measure %s: %s", f.Measure, f.Msg))
		default:
			out = append(out, f.Msg)
		}
	}
	return usagef(next, "%s", strings.Join(out, "\n"))
}

// measure prints a row for each moment.
func (c *cli) measure(ctx context.Context, lw *local.World, m *view.Measuring) error {
	header := table.Row{"tick", "record"}
	names := []string{"tick", "record"}
	for _, col := range m.Set.Columns() {
		header, names = append(header, col.Name), append(names, col.Name)
	}
	rows := recordsOf(lw).Measure(ctx, m)
	if c.output != formCSV {
		return list(c, "measure", "rows", rows, columns[view.Measured]{header: header, row: measuredRow, none: "no tick of these has come yet"})
	}
	w := csv.NewWriter(c.stdout)
	if err := w.Write(names); err != nil {
		return err
	}
	for row, err := range rows {
		if err == nil {
			err = w.Write(row.Texts())
		}
		if err != nil {
			w.Flush()
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// measuredRow shortens floats: a person reads them.
func measuredRow(m view.Measured) table.Row {
	var out table.Row
	for i, text := range m.Texts() {
		if i >= 2 {
			if f, ok := m.Row[i-2].(float64); ok && f != math.Trunc(f) {
				text = fmt.Sprintf("%.6g", f)
			}
		}
		out = append(out, text)
	}
	return out
}
