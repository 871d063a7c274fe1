package worldctl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/show/view"
)

// The forms of an answer.
const (
	formTable = "table"
	formJSON  = "json"
	formLines = "jsonl"
)

func (c *cli) checkOutput(cmd *cobra.Command) error {
	forms, hint := []string{formTable, formJSON, formLines}, "type -o table, -o json or -o jsonl"
	switch verbOf(cmd) {
	case "test":
		forms, hint = append(forms, formJUnit), "type -o table, -o json, -o jsonl or -o junit"
	case "measure":
		forms, hint = append(forms, formCSV), "type -o table, -o json, -o jsonl or -o csv"
	}
	if !slices.Contains(forms, c.output) {
		return usagef(hint, "%q is not a form of output", c.output)
	}
	return nil
}

// checkTexts reports a text for the journal, of the command line, that is no UTF-8: it would be another one there.
func checkTexts(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if fault := canon.CheckText([]byte(flag.Value.String())); fault != nil && slices.Contains([]string{"reason", "message", "as"}, flag.Name) {
			err = usagef("type it in UTF-8", "--%s: %w", flag.Name, fault)
		}
	})
	return err
}

// widthOf returns the columns of a terminal, and 0 for anything else.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}

// plain reports whether colors are not wanted.
func (c *cli) plain() bool { return c.noColor || c.origin.Plain }

// note tells the person at the terminal something that is not data.
func (c *cli) note(format string, args ...any) {
	if !c.quiet {
		fmt.Fprintln(c.stderr, c.inWorld(fmt.Sprintf(format, args...)))
	}
}

// hintNext tells the person at the terminal what to type next, below the answer.
func (c *cli) hintNext(format string, args ...any) {
	c.flush()
	c.note("next: "+format, args...)
}

// object prints one answer: v as JSON with its schema, or what table prints.
func (c *cli) object(name string, v any, table func()) error {
	if c.output == formTable {
		table()
		return nil
	}
	return c.objectJSON(name, v)
}

// answer prints what was found, as object does, or returns why nothing was.
func answer[T any](c *cli, name string, table func(T)) func(T, error) error {
	return func(v T, err error) error {
		if err != nil {
			return err
		}
		return c.object(name, v, func() { table(v) })
	}
}

// objectJSON is object for what has no other form than JSON: indented, or a line.
func (c *cli) objectJSON(name string, v any) error {
	b, err := view.Marshal(v)
	text := string(b)
	if c.output != formLines {
		text, err = indent(view.MarshalObject(name, v))
	}
	if err == nil {
		_, err = fmt.Fprintln(c.stdout, text)
	}
	return err
}

// indent prints JSON over several lines.
func indent(b []byte, err error) (string, error) {
	var out bytes.Buffer
	if err == nil {
		err = json.Indent(&out, b, "", "  ")
	}
	return out.String(), err
}

// columns says how the items of a list become a table.
type columns[T any] struct {
	header table.Row
	row    func(T) table.Row
	line   func(T) string // instead of a table: for lists that may be too long to align
	plain  bool           // no box, and lines of at most plainColumns where nothing else says how long
	whole  bool           // of plain ones: no line is cut
	none   string         // what to say when there is nothing; empty: nothing
}

// list prints items: a table, a JSON object that holds them under key, or a
// JSON object a line. Items are not held back, except for a table.
func list[T any](c *cli, name, key string, items iter.Seq2[T, error], in columns[T]) error {
	if c.output == formTable {
		return listTable(c, items, in)
	}
	separator := "\n"
	if c.output == formJSON {
		fmt.Fprintf(c.stdout, `{"schema":%q,%q:[`, view.SchemaOf(name), key)
	}
	for item, err := range items {
		if err != nil {
			return err
		}
		b, err := view.Marshal(item)
		if err != nil {
			return err
		}
		if c.output == formJSON {
			_, err = fmt.Fprintf(c.stdout, "%s%s", separator, b)
		} else {
			_, err = fmt.Fprintf(c.stdout, "%s\n", b)
		}
		if err != nil {
			return err
		}
		separator = ",\n"
	}
	if c.output == formJSON {
		fmt.Fprintln(c.stdout, "\n]}")
	}
	return nil
}

func listTable[T any](c *cli, items iter.Seq2[T, error], in columns[T]) error {
	rows := []table.Row{in.header}
	n := 0
	for item, err := range items {
		if err != nil {
			return err
		}
		n++
		if in.line == nil {
			rows = append(rows, in.row(item))
		} else if _, err := fmt.Fprintln(c.stdout, in.line(item)); err != nil {
			return err
		}
	}
	switch {
	case n == 0 && in.none != "":
		c.note("%s", in.none)
	case n > 0 && in.line == nil && in.plain:
		t := c.plainTable("", columnGap)
		if !c.verbose && !in.whole {
			c.cutLast(t, rows)
		}
		t.AppendHeader(in.header)
		t.AppendRows(rows[1:])
		t.Render()
	case n > 0 && in.line == nil:
		c.rows(rows)
	}
	return nil
}

// plainColumns is how long a line gets where no terminal says how wide it is.
const plainColumns = 100

// columnGap is between the columns of plain lines.
const columnGap = "  "

// plainTable is a table of plain lines.
func (c *cli) plainTable(left, right string) table.Writer {
	t := c.newTable()
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Box.PaddingLeft, t.Style().Box.PaddingRight = left, right
	t.SuppressTrailingSpaces()
	return t
}

// cutLast shortens the last column to what is left of a line.
func (c *cli) cutLast(t table.Writer, rows []table.Row) {
	left, last := cmp.Or(c.origin.Width, plainColumns), len(rows[0])
	for column := range last - 1 {
		widest := 0
		for _, row := range rows {
			widest = max(widest, text.StringWidth(fmt.Sprint(row[column])))
		}
		left -= widest + len(columnGap)
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: last, WidthMax: max(left, 1), WidthMaxEnforcer: func(cell string, most int) string {
		return text.Snip(strings.ReplaceAll(cell, "\n", " "), most, "…")
	}}})
}

// boxColumns is how long a line of facts may be for them to get a box: every line of one is
// as long as the longest, and states may have texts of megabytes.
const boxColumns = 1000

// when is a fact where there is one, and a pair that facts leaves out else.
func when(is bool, name string, value any) [2]any {
	if !is {
		return [2]any{}
	}
	return [2]any{name, value}
}

// facts prints names and values, one pair a line: in a box, wrapped to a terminal, or where a word
// or a line is too long for one as they are.
func (c *cli) facts(pairs ...[2]any) {
	pairs = slices.DeleteFunc(pairs, func(p [2]any) bool { return p[0] == nil })
	t := c.newTable()
	names, longest, word := 0, 0, 0
	for _, p := range pairs {
		t.AppendRow(table.Row{p[0], p[1]})
		names = max(names, len(fmt.Sprint(p[0])))
		for line := range strings.Lines(fmt.Sprint(p[1])) {
			longest = max(longest, len(line))
		}
		for w := range strings.FieldsSeq(fmt.Sprint(p[1])) {
			word = max(word, len(w))
		}
	}
	left := c.origin.Width - names - 7 // borders, and a gap on both sides
	if left > 0 && longest > left {
		t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, WidthMax: left, WidthMaxEnforcer: wrapped}})
		longest = left
	}
	if longest <= boxColumns && (c.origin.Width == 0 || word <= left) {
		t.Render()
		return
	}
	for _, p := range pairs {
		name := fmt.Sprint(p[0])
		for line := range strings.SplitSeq(fmt.Sprint(p[1]), "\n") {
			if c.origin.Width > 0 && strings.Contains(line, " ") { // what has no spaces is copied whole
				line = strings.ReplaceAll(wrapped(line, left+5), "\n", "\n"+strings.Repeat(" ", names+2))
			}
			fmt.Fprintln(c.stdout, strings.TrimRight(fmt.Sprintf("%-*s  %s", names, name, line), " "))
			name = ""
		}
	}
}

// tabulate prints items as a table. Of none it prints nothing.
func tabulate[T any](c *cli, header table.Row, items []T, row func(*T) table.Row) {
	rows := []table.Row{header}
	for i := range items {
		rows = append(rows, row(&items[i]))
	}
	if len(items) > 0 {
		c.rows(rows)
	}
}

func (c *cli) newTable() table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(c.stdout)
	if c.origin.Width > 0 && !c.plain() {
		t.SetOutputMirror(bold{c, t})
	}
	style := table.StyleLight
	style.Format.Header = text.FormatLower
	t.SetStyle(style)
	return t
}

// first bounds a list; 0 is no bound.
func first[T any](items iter.Seq2[T, error], limit uint64) iter.Seq2[T, error] {
	if limit == 0 {
		return items
	}
	return func(yield func(T, error) bool) {
		left := limit
		for item, err := range items {
			left--
			if !yield(item, err) || left == 0 {
				return
			}
		}
	}
}

// each yields the results of a function over a slice, until the first error.
func each[S, T any](from []S, f func(S) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, s := range from {
			t, err := f(s)
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// allItems yields the items of a slice.
func allItems[T any](items []T) iter.Seq2[T, error] {
	return each(items, func(item T) (T, error) { return item, nil })
}

// indented prints data over several lines.
func indented(d canon.Raw) (string, error) {
	return indent(d.MarshalJSON())
}

func visible(s, controls string) string { return view.Visible(s, controls) }

// minReason is the least width that the last column of a box is worth.
const minReason = 24

// rows prints a table, the first row being its head: in a box, whose last column is wrapped to
// what a terminal leaves. Where that is too little, or there is no room for the others, lines have
// as many columns as fit, and the rest of each below it.
func (c *cli) rows(rows []table.Row) {
	t := c.newTable()
	t.AppendHeader(rows[0])
	t.AppendRows(rows[1:])
	wide, last := c.origin.Width, len(rows[0])
	widths, sum := widthsOf(rows)
	left := wide - (sum - widths[last-1]) - 3*last - 1 // a border, and a gap on both sides
	switch {
	case wide == 0 || widths[last-1] <= left:
		t.Render()
	case left >= minReason:
		t.SetColumnConfigs([]table.ColumnConfig{{Number: last, WidthMax: left, WidthMaxEnforcer: wrapped}})
		t.Render()
	default:
		c.below(rows, widths)
	}
}

// below prints the columns that fit as lines, and the others below each.
func (c *cli) below(rows []table.Row, widths []int) {
	const gap, indent = 2, "    "
	fits, sum := 1, widths[0]
	for fits < len(widths)-1 && sum+gap+widths[fits] <= c.origin.Width {
		sum += gap + widths[fits]
		fits++
	}
	for i, row := range rows {
		var line strings.Builder
		for k, cell := range row[:fits] {
			line.WriteString(text.Pad(oneLine(cell), widths[k]+gap, ' '))
		}
		head := strings.TrimRight(line.String(), " ")
		if i == 0 {
			c.bold(head)
			continue
		}
		fmt.Fprintln(c.stdout, head)
		for k := fits; k < len(row); k++ {
			if value := oneLine(row[k]); value != "" {
				lines := wrapped(fmt.Sprintf("%v: %s", rows[0][k], value), c.origin.Width-len(indent))
				fmt.Fprintln(c.stdout, indent+strings.ReplaceAll(lines, "\n", "\n"+indent))
			}
		}
	}
}

// bold prints a line, in bold where that is wanted.
func (c *cli) bold(line string) {
	c.paintedOut(text.Bold.EscapeSeq(), line)
	fmt.Fprintln(c.stdout)
}

func oneLine(cell any) string { return strings.ReplaceAll(fmt.Sprint(cell), "\n", " ") }

// widthsOf returns how wide columns are, and their sum.
func widthsOf(rows []table.Row) (widths []int, sum int) {
	widths = make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], text.LongestLineLen(fmt.Sprint(cell)))
		}
	}
	for _, w := range widths {
		sum += w
	}
	return widths, sum
}

// wrapped breaks lines that are too long, between words where there are any.
func wrapped(s string, most int) string {
	most = max(most, 1)
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		for text.StringWidth(line) > most {
			head := text.Trim(line, most)
			if head == "" { // a character that is wider than that
				head = string([]rune(line)[:1])
			}
			if at := strings.LastIndexByte(head, ' '); at > len(head)-len(strings.TrimLeft(head, " ")) && !strings.HasPrefix(line[len(head):], " ") {
				head = head[:at]
			}
			out, line = append(out, strings.TrimRight(head, " ")), strings.TrimLeft(line[len(head):], " ")
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
