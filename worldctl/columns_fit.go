package worldctl

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

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
